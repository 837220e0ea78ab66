"""Tasks from plain functions of parameters."""

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from moqd.core.types import Evaluation, Genes, Genotype, Key
from moqd.io.errors import InputError
from moqd.tasks.checks import explained, first_line, require, require_count
from moqd.tasks.parameters import Bound, Real, Space, space_of
from moqd.tasks.pool import Call, Failure, HerePool, Result, WorkerPool, check_pool, make_pool
from moqd.tasks.task import Rendering, Task, averaged, validated


class Measured(NamedTuple):
    """What a function says of a solution (or of a batch), in the user's direction."""

    objectives: Any
    features: Any
    constraints: Any


class Outcome(NamedTuple):
    """What came of an evaluation on the host."""

    measured: Measured | None
    failure: Failure | None = None
    attempts: int = 1


@runtime_checkable
class Journal(Protocol):
    """Where evaluations of a batch are written down as they end, so that none has to be made again."""

    @property
    def iteration(self) -> int: ...

    def known(self, row: int, parameters: Any) -> Outcome | None:
        """What came of an evaluation that was made before."""

    def note(self, row: int, parameters: Any, outcome: Outcome) -> None:
        """An evaluation has ended."""


@dataclass(frozen=True, eq=False, repr=False)
class FunctionTask(Task):
    """A function `x -> (objectives, features)`, or `x -> objectives` where there are no features.

    `x` is a vector of parameters in the user's units; where `bounds` has names, the function takes the parameters as
    arguments of these names instead. With `traceable=True` the function is written in JAX and is compiled; without, it
    may be any Python and runs on the host, one solution after the other or, with an `evaluator`, several at once. A
    call that raises, returns a number that is not finite, takes longer than `timeout` or kills its process is a failed
    evaluation: it is counted, and the run goes on.
    """

    function: Callable[..., Any] | None
    """None: evaluated by hand (`moqd.Optimizer`)."""
    _: KW_ONLY
    bounds: Mapping[str, Bound] | Sequence[Bound] = ()
    """Of each parameter (lowest, highest), a `Real`, an `Integer` or a `Categorical`; in a list, or by name."""
    parameter_names: Sequence[str] = ()
    """If not given: those in `bounds`, or x0, x1, ..."""
    init: Callable[[Key], Genotype] | None = None
    """Instead of bounds: makes a random solution, any pytree of arrays of floats, from a JAX key, and is traced by JAX;
    the function takes such."""
    constraint_names: Sequence[str] = ()
    """Constraints, whose values the function returns after the features. A solution is feasible if none is above 0."""
    traceable: bool = False
    """Whether the function is written in JAX and should be compiled."""
    batched: bool = False
    """Whether the function takes a matrix, one row per solution, and returns matrices."""
    noisy: bool = False
    """Whether the function also takes a `seed`, another at every call: a whole number, or a JAX key if traceable."""
    resamples: int | None = None
    """How often each solution is evaluated, to be averaged. If not given: once."""
    evaluator: Literal["here", "processes", "ray"] = "here"
    """Where the function is called: in this process, in other processes of this machine, or on a Ray cluster."""
    workers: int | None = None
    """Calls at once. If not given: one per core."""
    timeout: float | None = None
    """Seconds that a call may take. If not given: as long as it likes."""
    retries: int = 0
    """How often an evaluation that failed, in whichever way, is tried again, after all others of its batch."""
    draw: Callable[..., Rendering] | None = field(default=None, repr=False)
    """What the explorer shows of a solution: called as `function` is, it gives SVG or HTML as text, or `Frames`."""
    failures: deque[str] = field(default_factory=lambda: deque(maxlen=8), init=False, repr=False)
    """What went wrong last, newest at the end."""

    def __post_init__(self) -> None:
        sound = self.function is None or callable(self.function)
        require(sound, "function", self.function, "a function of a vector of parameters")
        if self.init is not None and len(self.bounds):
            raise InputError("bounds and init both say what a solution is; give one of the two.")
        space = space_of(self.bounds, self.parameter_names) if self.init is None else None
        object.__setattr__(self, "space", space)
        if space is None:
            self._check_init()
        else:
            bounds = dict(zip(space.names, space.bounds, strict=True)) if space.by_name else space.bounds
            object.__setattr__(self, "parameter_names", space.names)
            object.__setattr__(self, "bounds", bounds)
            self._check_arguments(space)
            self._check_scales(space)
        super().__post_init__()
        require_count("resamples", self.resamples, optional=True)
        check_pool(self.evaluator, workers=self.workers, timeout=self.timeout)
        require_count("retries", self.retries, 0)
        if self.retries and (self.traceable or self.batched):
            raise InputError("retries is given, but solutions are evaluated all at once; leave it out.")
        if self.evaluator != "here" and (self.traceable or self.batched):
            advice = f'leave {"traceable" if self.traceable else "batched"} out, or pass evaluator="here"'
            raise InputError(f"evaluator is {self.evaluator!r}, which calls with one solution at a time; {advice}.")

    def _check_arguments(self, space: Space) -> None:
        """That the function takes the parameters by their names, as far as it says what it takes."""
        if self.function is None or not space.by_name:
            return
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            return
        named = dict.fromkeys((*space.names, *(("seed",) if self.noisy else ())))
        what = f"the function of task {self.name!r} takes {signature}, but is called with {', '.join(named)} by name"
        with explained(what, "give parameters and arguments the same names."):
            signature.bind(**named)

    def _check_scales(self, space: Space) -> None:
        """That a compiled function, which computes with 32 bits, can reach the ends of a logarithmic scale."""
        least, most = (float(end) for end in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))
        for name, bound in zip(space.names, space.bounds, strict=True):
            if self.traceable and isinstance(bound, Real) and not least <= bound.low < bound.high <= most:
                advice = f"give bounds from {least:.2g} to {most:.2g}, or pass traceable=False"
                raise InputError(f"the bounds of {name} are {bound}, beyond the floats of 32 bits in JAX; {advice}.")

    def _check_init(self) -> None:
        """That there is something to vary."""
        leaves = jax.tree.leaves(jax.eval_shape(lambda: self.init_genotype(jax.random.key(0), 1)))
        if not leaves or not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves):
            kinds = ", ".join(sorted({leaf.dtype.name for leaf in leaves})) or "nothing"
            advice = "make arrays of floats, and round them within the function where it wants whole numbers"
            raise InputError(f"init of task {self.name!r} makes arrays of {kinds}; {advice}.")

    @property
    def is_uncertain(self) -> bool:
        return self.function is not None and (self.noisy or self.resamples is not None)

    @property
    def genes(self) -> Genes | None:
        return None if self.space is None else self.space.genes

    def init_genotype(self, key: Key, num_genotypes: int) -> Genotype:
        """Uniform in the unit cube, in which genotypes live so that variation means the same in every unit."""
        if self.init is not None:
            return jax.vmap(self.init)(jax.random.split(key, num_genotypes))
        return jax.random.uniform(key, (num_genotypes, len(self.bounds)))

    def evaluate(self, key: Key, genotype: Genotype, journal: Journal | None = None) -> Evaluation:
        often = self.resamples
        if often is not None:
            genotype = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf), often, axis=0), genotype)
        if self.traceable:
            measured = self._measure_traced(key, genotype)
        else:
            measured = self.measure(key, self.parameters(genotype), journal)
        evaluation = self.evaluation(measured)
        return evaluation if often is None else averaged(evaluation, often)

    def parameters(self, genotype: Genotype) -> Any:
        """Genotypes in the user's units: of each the vector of its parameters (of a choice, its index)."""
        return jax.tree.map(np.asarray, genotype) if self.space is None else self.space.vector(genotype)

    def named_parameters(self, genotype: Genotype) -> dict[str, Any]:
        """Of one solution each parameter by its name: a float, an int, or one of the options."""
        if self.space is None:
            raise InputError(f"solutions of task {self.name!r} are no plain parameters; they are in genotype.")
        return self.space.values(self.space.vector(genotype))

    def render(self, genotype: Genotype) -> Rendering | None:
        if self.draw is None:
            return None
        arguments, named = self._call(self.parameters(genotype))
        return self.draw(*arguments, **named)

    # ------------------------------------------------------------------------------------------ how it is called

    def _call(self, x: Any, seed: Any = None, *, together: bool = False) -> Call:
        """The function's arguments for one solution; `together`: for a batch, or where JAX traces it."""
        named = {} if seed is None else {"seed": seed}
        if self.space is not None and self.space.by_name:
            return (), (self.space.columns(x) if together else self.space.values(x)) | named
        return (x if together else jax.tree.map(np.array, x),), named  # a copy: a function may change what it is given

    def _function(self) -> Callable[..., Any]:
        if self.function is None:
            advice = "evaluate its solutions by hand, with moqd.Optimizer"
            raise InputError(f"task {self.name!r} has no function; {advice}.")
        return self.function

    def _measure_traced(self, key: Key, genotype: Genotype) -> Measured:
        x = genotype if self.space is None else self.space.traced_vector(genotype)
        number = jax.tree.leaves(genotype)[0].shape[0]

        def measure(x: Any, key: Key) -> Measured:
            arguments, named = self._call(x, key if self.noisy else None, together=True)
            return self._split(self._function()(*arguments, **named), jnp.asarray, (number,) if self.batched else ())

        what = f"the function of task {self.name!r} cannot be traced by JAX"
        with explained(what, "write it with jax.numpy, or pass traceable=False to run it on the host."):
            return measure(x, key) if self.batched else jax.vmap(measure)(x, jax.random.split(key, number))

    def measure(
        self, key: Key, x: Any, journal: Journal | None = None, places: Sequence[int] | None = None
    ) -> Measured:
        """What the function says of parameters, a row each, called on the host; NaN where it failed.

        `places` are those of the rows in the batch that the journal is of, if they are not all of it.
        """
        number = jax.tree.leaves(x)[0].shape[0]
        if self.batched:
            return self._measure_batch(x, number, self._seeds(key, number)[0])
        places = range(number) if places is None else places
        rows = [jax.tree.map(lambda leaf, i=i: leaf[i], x) for i in range(number)]
        outcomes: dict[int, Outcome] = {}
        if journal is not None:
            known = {i: journal.known(places[i], self._noted(row)) for i, row in enumerate(rows)}
            outcomes = {i: outcome for i, outcome in known.items() if outcome is not None}
        is_sound = (journal is not None and journal.iteration > 0) or any(one.measured for one in outcomes.values())
        missing = [i for i in range(number) if i not in outcomes]
        for attempt in range(1, self.retries + 2):
            if not missing:
                break
            seeds = self._seeds(key if attempt == 1 else jax.random.fold_in(key, attempt), number)
            calls = [self._call(rows[i], seeds[i]) for i in missing]
            again = []
            for index, result in self._calls(calls, [places[i] for i in missing], journal):
                row, outcome = missing[index], self._outcome(result, attempt, is_sound)
                is_sound |= outcome.measured is not None
                if outcome.failure is not None and attempt <= self.retries:
                    again.append(row)
                    continue
                outcomes[row] = outcome
                if outcome.failure is not None:
                    self.failures.append(f"{outcome.failure.reason}{self._where(rows[row])}")
                if journal is not None:
                    journal.note(places[row], self._noted(rows[row]), outcome)
            missing = sorted(again)
        measured = [outcomes[i].measured or self._nothing for i in range(number)]
        return Measured(*map(np.stack, zip(*measured, strict=True)))

    def _seeds(self, key: Key, number: int) -> list[int] | list[None]:
        """One for each of a batch; None if the function takes none."""
        return np.asarray(jax.random.bits(key, (number,), "uint32")).tolist() if self.noisy else [None] * number

    def _calls(
        self, calls: Sequence[Call], rows: Sequence[int], journal: Journal | None
    ) -> Iterator[tuple[int, Result]]:
        """What comes of the calls of some rows of a batch."""
        return self._pool.calls(calls)

    @cached_property
    def _pool(self) -> HerePool | WorkerPool:
        return make_pool(self.evaluator, self._function(), workers=self.workers, timeout=self.timeout)

    def _measure_batch(self, x: Any, number: int, seed: int | None) -> Measured:
        (arguments, named), function = self._call(x, seed, together=True), self._function()
        try:
            result = function(*arguments, **named)
        except Exception as error:
            self.failures.append(f"it raised {type(error).__name__} ({first_line(str(error))}){self._where(x)}")
            return Measured(*(np.tile(column, (number, 1)) for column in self._nothing))
        measured = self._measured(result, (number,))
        if not _is_finite(measured):
            self.failures.append(f"it returned {result}{self._where(x)}")
        return measured

    def _noted(self, x: Any) -> Any:
        """A solution as a file says it."""
        if self.space is None:
            return [np.asarray(leaf, float).tolist() for leaf in jax.tree.leaves(x)]
        values = self.space.values(x)
        return {name: value if isinstance(value, (int, float)) else str(value) for name, value in values.items()}

    def _where(self, x: Any) -> str:
        if self.space is None:
            return " at a solution"
        if not self.space.by_name:
            return f" at x = {np.asarray(x).tolist()}"
        if x.ndim > 1:
            return ""  # a batch, which is too much to say
        return " at " + ", ".join(f"{name} = {value!r}" for name, value in self.space.values(x).items())

    # ---------------------------------------------------------------------------------------- what it returned

    def _outcome(self, result: Result, attempts: int, is_sound: bool) -> Outcome:
        """Of a function that `is_sound`, one result of another form is a failure; else the function is to be mended."""
        if result.failure is not None:
            return Outcome(None, result.failure, attempts)
        kind = "not finite"
        try:
            measured = self._measured(result.value)
            if _is_finite(measured):
                return Outcome(measured, None, attempts)
        except InputError:
            if not is_sound:
                raise
            kind = "wrong return"
        return Outcome(None, Failure(kind, f"it returned {result.value!r}"), attempts)

    def _measured(self, result: Any, batch: tuple[int, ...] = ()) -> Measured:
        """NaN for what 32 bits cannot hold; but a violation that is larger is a large violation."""
        objectives, features, constraints = self._split(result, lambda value: np.asarray(value, float), batch)
        most = np.finfo(np.float32).max
        objectives, features = (np.where(np.abs(part) <= most, part, np.nan) for part in (objectives, features))
        most /= max(1, len(self.constraint_names))  # they are summed
        constraints = np.where(np.isfinite(constraints), np.clip(constraints, -most, most), np.nan)
        return Measured(objectives, features, constraints)

    @property
    def _nothing(self) -> Measured:
        """Of an evaluation that failed."""
        return Measured(*(np.full(len(names), np.nan) for names in self._names.values()))

    @cached_property
    def evaluation(self) -> Callable[[Measured], Evaluation]:
        """What was measured of a batch, as algorithms take it.

        Compiled: operation by operation, it would take longer than a small population's generation.
        """
        return jax.jit(self._evaluation_of)

    def _evaluation_of(self, measured: Measured) -> Evaluation:
        objectives, features, constraints = (jnp.asarray(part, jnp.float32) for part in measured)
        valid, violation = jnp.ones(objectives.shape[0], bool), None
        if self.constraint_names:
            violation = jnp.sum(jnp.maximum(constraints, 0), axis=1)  # NaN stays NaN, and is a failure
        fitness = objectives * jnp.broadcast_to(self.direction, objectives.shape)
        # Finite, so that files can say it; but NaN is a failure.
        constraint = jnp.nan_to_num(constraints, nan=jnp.nan) if self.constraint_names else None
        return validated(self, Evaluation(fitness, features, valid, violation=violation, constraint=constraint))

    @property
    def _names(self) -> dict[str, Sequence[str]]:
        names = (self.objective_names, self.feature_names, self.constraint_names)
        return dict(zip(Measured._fields, names, strict=True))

    def _split(self, result: Any, asarray: Callable[[Any], Any], batch: tuple[int, ...] = ()) -> Measured:
        """What the function returned, as arrays of objectives, features and constraints: of a solution, or a batch."""
        expected = [kind for kind, names in self._names.items() if names]
        try:
            given = (result,) if len(expected) == 1 else tuple(result)
            found = {kind: asarray(value) for kind, value in zip(expected, given, strict=True)}
        except (TypeError, ValueError) as error:
            raise self._wrong_return(repr(result)) from error
        for kind, names in self._names.items():
            if not names:
                found[kind] = asarray(np.zeros((*batch, 0), np.float32))
            elif found[kind].shape != (*batch, len(names)):
                rows = f" for {batch[0]} rows" if batch else ""
                raise self._wrong_return(f"{kind} of shape {found[kind].shape}{rows}")
        return Measured(**found)

    def _wrong_return(self, what: str) -> InputError:
        lists = [f"[{', '.join(names)}]" for names in self._names.values() if names]
        expected = ("", "the pair ", "the triple ")[len(lists) - 1] + ", ".join(lists)
        per_row = " for each row, as matrices" if self.batched else ""
        more = "" if self.constraint_names else " (constraints after these are named by constraint_names)"
        return InputError(f"the function of task {self.name!r} returned {what}; return {expected}{per_row}{more}.")


def _is_finite(measured: Measured) -> bool:
    return all(np.all(np.isfinite(part)) for part in measured)
