"""The loop `ask -> evaluate -> tell` as compiled calls with donated state.

A traceable task is compiled together with the algorithm into one loop over the iterations between two log points; the
number of iterations is an argument, so that it is compiled once. A host task runs the same three calls from Python; so
does a task or an algorithm that spreads its batch over the devices, so that only this is done by all of them. Between
`ask` and `evaluate` of a host task stands its ledger, so that no design is evaluated twice.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt

from moqd.algorithms import Algorithm
from moqd.algorithms.algorithm import random_offspring
from moqd.algorithms.effort import ALIKE, TURNS
from moqd.core.archive import Archive
from moqd.core.devices import compile_briefly, on_one, release_memory, shapes_on_one
from moqd.core.types import Evaluation, Key, Offspring, Source
from moqd.io.errors import DivergenceError, EvaluationError, InputError
from moqd.runs.folder import members
from moqd.runs.journal import RunJournal
from moqd.runs.ledger import INITIAL, Designs, Evaluations, ledger_for
from moqd.tasks import FunctionTask, Task
from moqd.tasks.evaluate import Evaluator, evaluate_first
from moqd.tasks.task import validated

FAILED_BATCHES = 3
"""A run in which every evaluation of so many first batches failed stops."""

ATTEMPTS = 8
"""How often offspring that were evaluated before are varied again; then as often drawn at random."""

TIMED = TURNS // 2
"""Generations of either kind by which their cost is measured."""

LARGE = 2**26
"""Bytes of archive and buffer from which on a run takes care of its memory."""


class Purpose(IntEnum):
    """What a key is for: every key is a function of (seed, iteration, purpose)."""

    ASK = 0
    EVALUATE = 1
    TELL = 2
    EVALUATE_INITIAL = 3
    TELL_INITIAL = 4
    ASK_AGAIN = 5
    LEARN_BOUNDS = 6
    DIAGNOSE = 7


class Progress(NamedTuple):
    """What is counted on the device."""

    added: Int[Array, "sources"]
    """Offspring of each source that entered the archive since the last log point."""
    steps: UInt[Array, ""]
    """Environment steps since the last log point."""
    failed: Int[Array, ""]
    feasible: Int[Array, ""]
    """Evaluations that kept to all constraints."""
    best: Float[Array, "objectives"]
    """The best seen so far of each objective in feasible solutions (in all, while there is none)."""
    worst: Float[Array, "objectives"]


class Carry(NamedTuple):
    """All that one iteration hands to the next."""

    state: Any
    progress: Progress


Metrics = dict[str, Float[Array, ""]]


class Loop:
    """An algorithm on a task, from the first random batch on; `carry` is always that of the last whole iteration."""

    batch: int
    """Offspring per iteration."""
    carry: Carry
    metrics: Metrics
    """Those of the last iteration that the algorithm adds to the log."""
    iteration: int
    env_steps: int
    """Environment steps up to the last log point; 0 where the task counts none."""
    reference_point: Float[np.ndarray, "objectives"]
    """Maximised, as fitness is."""
    learning_cost: float | None
    """How many times as long a generation with learning takes, where the algorithm asks for it; None until measured."""

    def __init__(self, algorithm: Algorithm, task: Task, seed: int) -> None:
        self._algorithm, self._task, self._is_prepared = algorithm, task, False
        self.begin(seed)
        self._keys = jax.jit(keys_for)
        self._keys_again = jax.jit(keys_again)
        self._random = jax.jit(lambda key: random_offspring(key, task, self.batch))
        self._spread = task.uses_devices or algorithm.uses_devices
        self._init: Any = jax.jit(lambda key: strongly_typed(algorithm.init(key)))
        self._ask: Any = self._ask_in_parts if algorithm.uses_devices else jax.jit(self._ask_or_init)
        self._tell: Any = jax.jit(self._tell_and_count, donate_argnums=1)
        self._fused = jax.jit(self._iterate, donate_argnums=3)
        self._state, self._offspring = jax.eval_shape(lambda key: strongly_typed(algorithm.init(key)), self._root)
        explores = self._offspring.noise is not None
        self._evaluator = Evaluator(task, transitions=algorithm.needs_transitions, explores=explores)
        self._large = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self._state)) >= LARGE
        self.batch = self._offspring.source.shape[0]

    def begin(self, seed: int, known: Sequence[Evaluations] = ()) -> None:
        """Another run, with what is compiled already, and without evaluating again what is known."""
        self._root = jax.random.key(seed)
        self.learning_cost = None
        self._seconds: tuple[list[float], list[float]] = [], []
        """Of generations without and with learning, while their cost is measured."""
        self.journal: RunJournal | None = None
        self.ledger = ledger_for(self._task)
        """None where designs may be evaluated again: compiled, noisy, or no plain parameters."""
        if self.ledger is not None:
            for evaluated in known:
                self.ledger.inherit(evaluated)
        self._all_failed = 0
        """Batches in a row of which every evaluation failed, of a task on the host."""

    @property
    def archive(self) -> Archive:
        return self.carry.state.archive

    def write_to(self, folder: Path) -> None:
        """Evaluations on the host are journalled there, and what the journal knows is not evaluated again."""
        if isinstance(self._task, FunctionTask) and not self._task.traceable and not self._task.batched:
            self.journal = RunJournal(folder, self._task)

    def start(self, initial: Archive | None = None, learning_cost: float | None = None) -> None:
        """The first batch, after the initial solutions if there are any, and further ones until a solution is feasible.

        This settles the reference point. If a few batches have no feasible solution, it is one of the others. An
        algorithm that asks what learning costs is told `learning_cost`, or else it is measured.
        """
        self.carry, self.iteration, self.env_steps = self._first_carry(), -1, 0
        if learning_cost is not None and self._algorithm.pace is not None:
            self._settle_cost(learning_cost)
        if initial is not None:
            self._tell_initial(initial)
        while self.iteration < 0 or int(self.carry.progress.feasible) == 0:
            if self.iteration + 1 == FAILED_BATCHES:
                break
            self._run_chunk(self.iteration + 1)
        if not np.all(np.isfinite(self.carry.progress.best)):
            raise EvaluationError(self._why_all_failed("first"))
        if self._task.reference_point is not None:
            self.reference_point = np.asarray(self._task.reference_point) * self._task.direction
        else:
            progress = self.carry.progress
            self.reference_point = reference_from(np.asarray(progress.worst, float), np.asarray(progress.best, float))

    def carry_shapes(self) -> Carry:
        """What a carry is restored into."""
        return Carry(self._state, jax.eval_shape(self._no_progress))

    def restore(
        self,
        carry: Carry,
        metrics: Metrics,
        iteration: int,
        env_steps: int,
        reference_point: Float[np.ndarray, "objectives"],
    ) -> None:
        """Goes on from an iteration, with all as it was then."""
        self.carry, self.metrics = carry, metrics
        self.iteration, self.env_steps, self.reference_point = iteration, env_steps, reference_point

    def place(self, array: Any) -> Array:
        """An array of the carry where it belongs; its own, as what is donated must be."""
        return on_one(jnp.array(array)) if self._spread else jnp.array(array)

    def advance(self, stop: int) -> None:
        """One chunk of iterations, at most up to and including iteration `stop`."""
        self._run_chunk(stop)
        self.stop_if_diverged()
        if self._all_failed == FAILED_BATCHES:
            raise EvaluationError(self._why_all_failed("last"))

    def count_anew(self) -> None:
        """After a log point."""
        total, progress = self.total_steps, self.carry.progress
        progress = progress._replace(added=jnp.zeros_like(progress.added), steps=jnp.zeros_like(progress.steps))
        self.carry, self.env_steps = self.carry._replace(progress=progress), total

    @property
    def counts_steps(self) -> bool:
        """Whether the task says how long episodes are; of one on the host it is expected of policies."""
        if not self._task.traceable:
            return self._task.policy is not None
        return jax.eval_shape(self._task.evaluate, self._root, self._offspring.genotype).num_steps is not None

    @property
    def total_steps(self) -> int:
        """Environment steps up to now."""
        return self.env_steps + int(self.carry.progress.steps)

    def prepare(self) -> None:
        """Compiles what takes long, before there is a state: compiling takes as much memory, for a while."""
        if self._spread and self._task.traceable and not self._is_prepared:
            self._compile_ahead()
            self._is_prepared = True

    def _run_chunk(self, stop: int) -> None:
        if self._task.traceable and not self._spread:
            bounds = jnp.int32(self.iteration + 1), jnp.int32(stop + 1)
            self.carry, self.metrics = self._fused(self._root, *bounds, self.carry)
            self.iteration = stop
        else:
            before = None if self._task.traceable else int(self.carry.progress.failed)  # only a host task waits for it
            calls = 0 if self.ledger is None else self.ledger.num_calls
            step = self._step if self.learning_cost is not None or self._algorithm.pace is None else self._timed_step
            self.carry, self.metrics = step(self._root, jnp.int32(self.iteration + 1), self.carry)
            self.iteration += 1
            if before is not None:
                every = int(self.carry.progress.failed) - before == self.batch
                none_made = self.ledger is not None and self.ledger.num_calls == calls
                self._all_failed = self._all_failed + 1 if every and not none_made else 0

    def _tell_initial(self, initial: Archive) -> None:
        """Solutions from elsewhere, evaluated as this task does and told as random ones are, batch by batch."""
        _, solutions = members(initial, (initial.genotype, initial.preference))
        number = solutions[1].shape[0]
        for index, start in enumerate(range(0, number, self.batch)):
            rows = np.arange(start, start + self.batch)
            at = partial(np.take, indices=np.minimum(rows, number - 1), axis=0)
            genotype, preference = jax.tree.map(lambda leaf, at=at: jnp.asarray(at(leaf)), solutions)
            source = jnp.full(self.batch, int(Source.RANDOM), jnp.int32)
            offspring = as_random(Offspring(genotype, preference, source), self._offspring)
            offspring = on_one(offspring) if self._spread else offspring
            key = key_for(self._root, jnp.int32(index), Purpose.EVALUATE_INITIAL)
            evaluate = partial(self._evaluate, key, iteration=INITIAL, name=f"seeds-{index}")
            evaluation = evaluate_first(self._task, evaluate, offspring, min(self.batch, number - start))
            there = self.place(rows < number)
            steps = None if evaluation.num_steps is None else jnp.where(there, evaluation.num_steps, 0)
            evaluation = evaluation._replace(valid=evaluation.valid & there, num_steps=steps)
            key = key_for(self._root, jnp.int32(index), Purpose.TELL_INITIAL)
            self.carry, self.metrics = self._tell(key, self.carry, offspring, evaluation)
        progress = self.carry.progress
        padding = jnp.int32(-number % self.batch)  # which is not valid, but has not failed
        self.carry = self.carry._replace(progress=progress._replace(failed=progress.failed - padding))

    def _iterate(self, root: Key, start: Int[Array, ""], stop: Int[Array, ""], carry: Carry) -> tuple[Carry, Metrics]:
        """The seed is an argument, so that runs with other seeds take the same program from the cache."""
        _, metrics = jax.eval_shape(self._step, root, start, carry)
        none_yet = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)
        return jax.lax.fori_loop(start, stop, lambda i, last: self._step(root, i, last[0]), (carry, none_yet))

    def _step(self, root: Key, iteration: Int[Array, ""], carry: Carry) -> tuple[Carry, Metrics]:
        key_ask, key_evaluate, key_tell = self._keys(root, iteration)
        offspring, designs = self._ask(key_ask, iteration, carry.state), None
        if self.ledger is not None:
            asked, further = offspring, self._ask_again(root, iteration, carry.state)
            offspring, designs = self.ledger.without_repeats(asked, further)
            offspring = asked if offspring is asked else jax.tree.map(self.place, offspring)
        evaluation = self._evaluate(key_evaluate, offspring, iteration, designs=designs)
        return self._tell(key_tell, carry, offspring, evaluation)

    def _timed_step(self, root: Key, iteration: Int[Array, ""], carry: Carry) -> tuple[Carry, Metrics]:
        """A step of either kind, until their cost is known: of three of each, the first of which compile."""
        assert self._algorithm.pace is not None
        begin, kind = time.perf_counter(), self._seconds[bool(self._algorithm.pace.learns(carry.state))]
        self.carry, metrics = jax.block_until_ready(self._step(root, iteration, carry))
        kind.append(time.perf_counter() - begin)
        if min(map(len, self._seconds)) >= TIMED:
            without, learning = (sum(seconds[1:]) / len(seconds[1:]) for seconds in self._seconds)
            self._settle_cost(max(round(learning / without, 2), ALIKE + 0.01))
        return self.carry, metrics

    def _settle_cost(self, cost: float) -> None:
        assert self._algorithm.pace is not None
        self.learning_cost = cost
        self.carry = self.carry._replace(state=self._algorithm.pace.with_cost(self.carry.state, cost))

    def _ask_again(self, root: Key, iteration: Int[Array, ""], state: Any) -> Iterator[Offspring]:
        """What may stand in for designs that were evaluated before: varied again, and then random."""
        key_vary, key_random = self._keys_again(root, iteration)
        yield from (self._ask(key, iteration, state) for key in key_vary)
        yield from map(self._random, key_random)

    def _evaluate(
        self,
        key: Key,
        offspring: Offspring,
        iteration: Int[Array, ""] | int,
        name: str = "",
        designs: Designs | None = None,
    ) -> Evaluation:
        journal = None if self.journal is None else self.journal.batch(int(iteration), name)
        if self.ledger is None:
            return self._evaluator(key, offspring.genotype, journal, offspring.noise)
        return self.ledger.evaluate(key, designs or self.ledger.designs(offspring.genotype), int(iteration), journal)

    def _compile_ahead(self) -> None:
        """All at once if the algorithm learns: its buffer will take the memory anyway. Otherwise one program after the
        other, each time giving back what compiling took, so that the peak is that of one."""

        def compile_one(name: str, *arguments: Any) -> None:
            setattr(self, name, getattr(self, name).lower(*arguments).compile())

        def compile_init() -> None:
            self._init = compile_briefly(self._init.lower(self._root))

        def trace_evaluator() -> tuple[Any, ...]:
            """And the arguments of `tell`, which takes what it gives."""
            evaluation = self._evaluator.trace(self._root, self._offspring.genotype, self._offspring.noise)
            return shapes_on_one((self._root, self.carry_shapes(), self._offspring, evaluation))

        if self._algorithm.uses_devices:
            with ThreadPoolExecutor() as pool:
                under_way = [pool.submit(compile_init)]  # while the evaluator is traced
                told = trace_evaluator()
                under_way += [pool.submit(self._evaluator.compile), pool.submit(compile_one, "_tell", *told)]
                for one in under_way:
                    one.result()
            release_memory()
            return
        told = trace_evaluator()
        compile_init()
        compile_one("_ask", *shapes_on_one((self._root, jnp.int32(0), self._state)))
        release_memory()
        self._evaluator.compile()
        release_memory()
        compile_one("_tell", *told)
        release_memory()

    def _ask_or_init(self, key: Key, iteration: Int[Array, ""], state: Any) -> Offspring:
        """Iteration 0 is the first, random batch; as a branch, so that no second program is compiled for it."""
        return jax.lax.cond(
            iteration == 0, lambda key: self._algorithm.init(key)[1], lambda key: self._algorithm.ask(key, state), key
        )

    def _ask_in_parts(self, key: Key, iteration: Int[Array, ""], state: Any) -> Offspring:
        if iteration < 2:
            self._tidy()
        # Always on the same device, that for which `tell` is compiled.
        offspring = on_one(self._first if iteration == 0 else self._algorithm.ask(key, state))
        if iteration < 2:  # which compiled something
            self._tidy()
        return offspring

    def _tidy(self) -> None:
        """Where memory matters: in a small run the time would be felt sooner."""
        if self._large:
            release_memory()

    def _tell_and_count(
        self, key: Key, carry: Carry, offspring: Offspring, evaluation: Evaluation
    ) -> tuple[Carry, Metrics]:
        if self._algorithm.needs_transitions and evaluation.transitions is None:
            raise InputError(
                f"algorithm {self._algorithm.name!r} learns from transitions, but task {self._task.name!r} gave none; "
                "its evaluate must return them, or use 'mome'."
            )
        evaluation = validated(self._task, evaluation)
        state, info = self._algorithm.tell(key, carry.state, offspring, evaluation)
        fitness, valid, seen = evaluation.fitness, evaluation.valid, carry.progress
        feasible = jnp.sum(evaluation.feasible, dtype=jnp.int32)
        # The ranges are of feasible solutions as soon as there are any; those of others count no more then.
        first = (seen.feasible == 0) & (feasible > 0)
        counts = jnp.where(seen.feasible + feasible > 0, offspring.may_enter(evaluation), valid)[:, None]
        progress = Progress(
            added=seen.added.at[info.source].add(info.added.astype(jnp.int32)),
            steps=seen.steps + (0 if evaluation.num_steps is None else jnp.sum(evaluation.num_steps, dtype=jnp.uint32)),
            failed=seen.failed + jnp.sum(~valid, dtype=jnp.int32),
            feasible=seen.feasible + feasible,
            best=jnp.maximum(
                jnp.where(first, -jnp.inf, seen.best), jnp.max(fitness, axis=0, where=counts, initial=-jnp.inf)
            ),
            worst=jnp.minimum(
                jnp.where(first, jnp.inf, seen.worst), jnp.min(fitness, axis=0, where=counts, initial=jnp.inf)
            ),
        )
        return Carry(strongly_typed(state), progress), info.metrics

    def _first_carry(self) -> Carry:
        state, self._first = self._init(key_for(self._root, jnp.int32(0), Purpose.ASK))
        carry = Carry(state, self._no_progress())
        return on_one(carry) if self._spread else carry

    def _no_progress(self) -> Progress:
        return Progress(
            added=jnp.zeros(len(Source), jnp.int32),
            steps=jnp.zeros((), jnp.uint32),
            failed=jnp.zeros((), jnp.int32),
            feasible=jnp.zeros((), jnp.int32),
            best=jnp.full(self._task.num_objectives, -jnp.inf, jnp.float32),
            worst=jnp.full(self._task.num_objectives, jnp.inf, jnp.float32),
        )

    def stop_if_diverged(self) -> None:
        """Learning must not go on from numbers that are not finite; the archive holds none and stays as it is."""
        for name, value in jax.device_get(self.metrics).items():
            if not np.isfinite(value):
                rates = ("critic_learning_rate", "actor_learning_rate", "learning_rate", "discount")
                *others, last = found = [rate for rate in rates if hasattr(self._algorithm.config, rate)] or [""]
                learns = len(found) > 1
                advice = f"lower {', '.join(others)} or {last}" if learns else "log only numbers that are finite"
                raise DivergenceError(
                    f"{'training of ' if learns else ''}{self._algorithm.name!r} diverged in iteration "
                    f"{self.iteration}: {name} is {value} (the archive is kept); {advice}.",
                    self.archive,
                )

    def _why_all_failed(self, which: str) -> str:
        failures = list(getattr(self._task, "failures", ()))
        reason = failures[-1] if failures else "it returned objectives or features that are not finite"
        return (
            f"every evaluation of task {self._task.name!r} failed in the {which} {FAILED_BATCHES} batches: {reason}; "
            "a run needs finite objectives and features from at least some solutions."
        )


Tree = TypeVar("Tree")


def strongly_typed(tree: Tree) -> Tree:
    """Without JAX's weak types, which a Python number in a state has until it is computed with: after a change from
    weak to strong, the whole program would be compiled again."""
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), tree)


def as_random(offspring: Offspring, like: Offspring) -> Offspring:
    """With the other fields that an algorithm's offspring have: without noise, made for no feature, for the archive."""

    def filled(leaf: Array | None, value: float) -> Array | None:
        return None if leaf is None else jnp.full(leaf.shape, value, leaf.dtype)

    return offspring._replace(
        noise=filled(like.noise, 0), aim=filled(like.aim, np.nan), enters=filled(like.enters, True)
    )


def key_for(root: Key, iteration: Int[Array, ""], purpose: Purpose) -> Key:
    return jax.random.fold_in(jax.random.fold_in(root, iteration), int(purpose))


def keys_for(root: Key, iteration: Int[Array, ""]) -> tuple[Key, Key, Key]:
    """Those of an iteration: to ask, evaluate and tell."""
    ask, evaluate, tell = (key_for(root, iteration, one) for one in (Purpose.ASK, Purpose.EVALUATE, Purpose.TELL))
    return ask, evaluate, tell


def keys_again(root: Key, iteration: Int[Array, ""]) -> tuple[list[Key], list[Key]]:
    """Those of an iteration to vary again, and to draw at random."""
    keys = list(jax.random.split(key_for(root, iteration, Purpose.ASK_AGAIN), 2 * ATTEMPTS))
    return keys[:ATTEMPTS], keys[ATTEMPTS:]


def reference_from(
    worst: Float[np.ndarray, "objectives"], best: Float[np.ndarray, "objectives"]
) -> Float[np.ndarray, "objectives"]:
    """The worst of each objective minus a tenth of its range (of its size, at least 1, where all are the same)."""
    extent = best - worst
    return worst - 0.1 * np.where(extent > 0, extent, np.maximum(np.abs(worst), 1.0))
