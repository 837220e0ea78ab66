"""The loop `ask -> evaluate -> tell` as compiled calls with donated state.

A traceable task is compiled together with the algorithm into one loop over the iterations between two log points; the
number of iterations is an argument, so that it is compiled once. A host task runs the same three calls from Python.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moqd.algorithms import Algorithm
from moqd.archive import Archive
from moqd.errors import EvaluationError
from moqd.tasks import Task
from moqd.types import Evaluation, Key, Offspring, Source

FAILED_BATCHES = 3
"""A run in which every evaluation of so many first batches failed stops."""


class Purpose(IntEnum):
    """What a key is for: every key is a function of (seed, iteration, purpose)."""

    ASK = 0
    EVALUATE = 1
    TELL = 2


class Progress(NamedTuple):
    """What is counted on the device."""

    added: Int[Array, "sources"]
    """Offspring of each source that entered the archive since the last log point."""
    failed: Int[Array, ""]
    best: Float[Array, "objectives"]
    """The best seen so far of each objective."""


class Carry(NamedTuple):
    """All that one iteration hands to the next."""

    state: Any
    progress: Progress
    metrics: dict[str, Float[Array, ""]]


class Loop:
    """An algorithm on a task, from the first random batch on; `carry` is always that of the last whole iteration."""

    carry: Carry
    iteration: int
    reference_point: Float[np.ndarray, "objectives"]
    """Maximised, as fitness is."""

    def __init__(self, algorithm: Algorithm, task: Task, seed: int) -> None:
        self._algorithm, self._task = algorithm, task
        self._root = jax.random.key(seed)
        self._ask = jax.jit(algorithm.ask)
        self._evaluate = jax.jit(task.evaluate) if task.traceable else task.evaluate
        self._tell = jax.jit(self._tell_and_count, donate_argnums=1)
        self._fused = jax.jit(self._iterate, donate_argnums=3)
        self.batch = jax.eval_shape(algorithm.init, self._root)[1].source.shape[0]

    @property
    def archive(self) -> Archive:
        return self.carry.state.archive  # type: ignore[no-any-return]

    def start(self) -> None:
        """The first batch, and further ones until an evaluation succeeds; this settles the reference point."""
        state, offspring = jax.jit(self._algorithm.init)(self._key(0, Purpose.ASK))
        evaluation = self._evaluate(self._key(0, Purpose.EVALUATE), offspring.genotype)
        self.carry = self._first_carry(state, offspring, evaluation)
        self.carry = self._tell(self._key(0, Purpose.TELL), self.carry, offspring, evaluation)
        self.iteration = 0
        while not np.any(evaluation.valid):
            if self.iteration + 1 == FAILED_BATCHES:
                raise EvaluationError(self._why_all_failed())
            self.carry, evaluation = self._step(self.iteration + 1, self.carry)
            self.iteration += 1
        if self._task.reference_point is not None:
            self.reference_point = np.asarray(self._task.reference_point) * self._task.direction
        else:
            self.reference_point = reference_from(np.asarray(evaluation.fitness, float)[np.asarray(evaluation.valid)])

    def advance(self, stop: int) -> None:
        """Iterates up to and including iteration `stop`; additions are counted from here on."""
        added = jnp.zeros_like(self.carry.progress.added)
        self.carry = self.carry._replace(progress=self.carry.progress._replace(added=added))
        if self._task.traceable:
            self.carry = self._fused(self._root, jnp.int32(self.iteration + 1), jnp.int32(stop + 1), self.carry)
            self.iteration = stop
        while self.iteration < stop:
            self.carry, _ = self._step(self.iteration + 1, self.carry)
            self.iteration += 1

    def _step(self, iteration: int | Int[Array, ""], carry: Carry) -> tuple[Carry, Evaluation]:
        offspring = self._ask(self._key(iteration, Purpose.ASK), carry.state)
        evaluation = self._evaluate(self._key(iteration, Purpose.EVALUATE), offspring.genotype)
        return self._tell(self._key(iteration, Purpose.TELL), carry, offspring, evaluation), evaluation

    def _iterate(self, root: Key, start: Int[Array, ""], stop: Int[Array, ""], carry: Carry) -> Carry:
        return jax.lax.fori_loop(start, stop, lambda iteration, carry: self._step(iteration, carry)[0], carry)

    def _key(self, iteration: int | Int[Array, ""], purpose: Purpose) -> Key:
        return jax.random.fold_in(jax.random.fold_in(self._root, iteration), int(purpose))

    def _tell_and_count(self, key: Key, carry: Carry, offspring: Offspring, evaluation: Evaluation) -> Carry:
        state, info = self._algorithm.tell(key, carry.state, offspring, evaluation)
        seen = jnp.where(evaluation.valid[:, None], evaluation.fitness, -jnp.inf)
        progress = Progress(
            added=carry.progress.added.at[info.source].add(info.added.astype(jnp.int32)),
            failed=carry.progress.failed + jnp.sum(~evaluation.valid, dtype=jnp.int32),
            best=jnp.maximum(carry.progress.best, jnp.max(seen, axis=0)),
        )
        return Carry(state, progress, info.metrics)

    def _first_carry(self, state: Any, offspring: Offspring, evaluation: Evaluation) -> Carry:
        progress = Progress(
            added=jnp.zeros(len(Source), jnp.int32),
            failed=jnp.zeros((), jnp.int32),
            best=jnp.full(self._task.num_objectives, -jnp.inf),
        )
        _, info = jax.eval_shape(self._algorithm.tell, self._root, state, offspring, evaluation)
        return Carry(state, progress, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), info.metrics))

    def _why_all_failed(self) -> str:
        failures = list(getattr(self._task, "failures", ()))
        reason = failures[-1] if failures else "it returned objectives or features that are not finite"
        return (
            f"every evaluation of task {self._task.name!r} failed in the first {FAILED_BATCHES} batches: {reason}; "
            "a run needs finite objectives and features from at least some solutions."
        )


def reference_from(fitness: Float[np.ndarray, "batch objectives"]) -> Float[np.ndarray, "objectives"]:
    """The worst of each objective minus a tenth of its range (of its size, at least 1, where all are the same)."""
    worst, extent = fitness.min(axis=0), np.ptp(fitness, axis=0)
    return worst - 0.1 * np.where(extent > 0, extent, np.maximum(np.abs(worst), 1.0))
