"""Tasks from plain functions of parameters."""

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from moqd.core.types import Evaluation, Genes, Genotype, Key
from moqd.io.errors import InputError
from moqd.io.options import is_count
from moqd.tasks.parameters import Bound, Real, Space, space_of
from moqd.tasks.pool import Call, Failure, Pool, Result, check_pool, make_pool
from moqd.tasks.task import Rendering, Task, averaged, validated

Evaluator = Literal["here", "processes", "ray"]


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


@dataclass(frozen=True, eq=False)
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
    bounds: Mapping[str, Bound] | Sequence[Bound] = field(default=(), kw_only=True)
    """Of each parameter (lowest, highest), a `Real`, an `Integer` or a `Categorical`; in a list, or by name."""
    parameter_names: Sequence[str] = field(default=(), kw_only=True)
    """If not given: those in `bounds`, or x0, x1, ..."""
    init: Callable[[Key], Genotype] | None = field(default=None, kw_only=True)
    """Instead of bounds: makes a random solution, any pytree of arrays of floats, from a JAX key, and is traced by JAX;
    the function takes such."""
    constraint_names: Sequence[str] = field(default=(), kw_only=True)
    """Constraints, whose values the function returns after the features. A solution is feasible if none is above 0."""
    traceable: bool = field(default=False, kw_only=True)
    """Whether the function is written in JAX and should be compiled."""
    batched: bool = field(default=False, kw_only=True)
    """Whether the function takes a matrix, one row per solution, and returns matrices."""
    noisy: bool = field(default=False, kw_only=True)
    """Whether the function also takes a `seed`, another at every call: a whole number, or a JAX key if traceable."""
    resamples: int | None = field(default=None, kw_only=True)
    """How often each solution is evaluated, to be averaged. If not given: once."""
    evaluator: Evaluator = field(default="here", kw_only=True)
    """Where the function is called: in this process, in other processes of this machine, or on a Ray cluster."""
    workers: int | None = field(default=None, kw_only=True)
    """Calls at once. If not given: one per core."""
    timeout: float | None = field(default=None, kw_only=True)
    """Seconds that a call may take. If not given: as long as it likes."""
    retries: int = field(default=0, kw_only=True)
    """How often an evaluation that failed, in whichever way, is tried again, after all others of its batch."""
    draw: Callable[..., Rendering] | None = field(default=None, kw_only=True, repr=False)
    """What the explorer shows of a solution: called as `function` is, it gives SVG or HTML as text, or `Frames`."""
    failures: deque[str] = field(default_factory=lambda: deque(maxlen=8), init=False, repr=False)
    """What went wrong last, newest at the end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.function is not None and not callable(self.function):
            raise InputError(f"function is {self.function!r}; give a function of a vector of parameters.")
        if self.init is not None and len(self.bounds):
            raise InputError("bounds and init both say what a solution is; give one of the two.")
        if self.init is None:
            space = space_of(self.bounds, self.parameter_names)
            object.__setattr__(self, "parameter_names", space.names)
            bounds = dict(zip(space.names, space.bounds, strict=True)) if space.by_name else space.bounds
            object.__setattr__(self, "bounds", bounds)
            self._check_arguments(space)
            self._check_scales(space)
        else:
            self._check_init(self.init)
        object.__setattr__(self, "constraint_names", tuple(self.constraint_names))
        if self.resamples is not None and not is_count(self.resamples):
            raise InputError(f"resamples is {self.resamples!r}; give a whole number of at least 1, or None.")
        check_pool(self.evaluator, workers=self.workers, timeout=self.timeout)
        if not is_count(self.retries, 0):
            raise InputError(f"retries is {self.retries!r}; give a whole number of at least 0.")
        if self.retries and (self.traceable or self.batched):
            raise InputError("retries is given, but solutions are evaluated all at once; leave it out.")
        if self.evaluator != "here" and (self.traceable or self.batched):
            how = "traceable" if self.traceable else "batched"
            raise InputError(
                f"evaluator is {self.evaluator!r}, which calls the function for one solution at a time; leave {how} "
                'out, or pass evaluator="here".'
            )

    def _check_arguments(self, space: Space) -> None:
        """That the function takes the parameters by their names, as far as it says what it takes."""
        if self.function is None or not space.by_name:
            return
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            return
        named = dict.fromkeys((*space.names, *(("seed",) if self.noisy else ())))
        try:
            signature.bind(**named)
        except TypeError as error:
            raise InputError(
                f"the function of task {self.name!r} takes {signature}, but is called with {', '.join(named)} by name "
                f"({error}); give its arguments these names."
            ) from error

    def _check_scales(self, space: Space) -> None:
        """That a compiled function, which computes with 32 bits, can reach the ends of a logarithmic scale."""
        least, most = (float(end) for end in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))
        for name, bound in zip(space.names, space.bounds, strict=True):
            if self.traceable and isinstance(bound, Real) and not least <= bound.low < bound.high <= most:
                raise InputError(
                    f"the bounds of {name} are {bound}, beyond the floats of 32 bits with which a compiled function "
                    f"computes; give bounds from {least:.2g} to {most:.2g}, or pass traceable=False."
                )

    def _check_init(self, init: Callable[[Key], Genotype]) -> None:
        """That there is something to vary."""
        leaves = jax.tree.leaves(jax.eval_shape(lambda: init(jax.random.key(0))))
        if not leaves or not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves):
            kinds = ", ".join(sorted({leaf.dtype.name for leaf in leaves})) or "nothing"
            raise InputError(
                f"init of task {self.name!r} makes arrays of {kinds}; make arrays of floats, and round them within the "
                "function where it wants whole numbers."
            )

    @cached_property
    def space(self) -> Space | None:
        """The parameters; None where solutions are other pytrees."""
        if self.init is not None:
            return None
        return space_of(self.bounds, self.parameter_names)

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
        if self.resamples is None:
            return self._evaluate(key, genotype, journal)
        often = self.resamples
        repeated = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf), often, axis=0), genotype)
        return averaged(self._evaluate(key, repeated, journal), often)

    def _evaluate(self, key: Key, genotype: Genotype, journal: Journal | None) -> Evaluation:
        if self.traceable:
            return self._evaluate_traced(key, genotype)
        return self.evaluation(self.measure(key, self.parameters(genotype), journal))

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
        arguments, named = self._arguments(self.parameters(genotype))
        return self.draw(*arguments, **named)

    # --------------------------------------------------------------------------------------------------- compiled

    def _evaluate_traced(self, key: Key, genotype: Genotype) -> Evaluation:
        x = genotype if self.space is None else self.space.traced_vector(genotype)
        number = jax.tree.leaves(genotype)[0].shape[0]
        keys = jax.random.split(key, number)
        batch = (number,) if self.batched else ()
        measure = lambda x, key: self._split(self._traced_call(x, key), jnp.asarray, batch)  # noqa: E731
        try:
            measured = measure(x, key) if self.batched else jax.vmap(measure)(x, keys)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"the function of task {self.name!r} raised {type(error).__name__} when JAX traced it "
                f"({first_line(error)}); write it with jax.numpy, or pass traceable=False to run it on the host."
            ) from error
        return self.evaluation(measured)

    def _traced_call(self, x: Any, key: Key) -> Any:
        seed = {"seed": key} if self.noisy else {}
        if self.space is not None and self.space.by_name:
            return self._function()(**self.space.columns(x), **seed)
        return self._function()(x, **seed)

    # ------------------------------------------------------------------------------------------------ on the host

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
        outcomes = self._known(rows, places, journal)
        missing = [i for i in range(number) if i not in outcomes]
        for attempt in range(1, self.retries + 2):
            if not missing:
                break
            seeds = self._seeds(key if attempt == 1 else jax.random.fold_in(key, attempt), number)
            calls = [self._arguments(rows[i], seeds[i]) for i in missing]
            again = []
            for index, result in self._calls(calls, [places[i] for i in missing], journal):
                is_sound = (journal is not None and journal.iteration > 0) or any(
                    one.measured is not None for one in outcomes.values()
                )
                row, outcome = missing[index], self._outcome(result, attempt, is_sound)
                if outcome.failure is not None and attempt <= self.retries:
                    again.append(row)
                    continue
                outcomes[row] = outcome
                if outcome.failure is not None:
                    self.failures.append(f"{outcome.failure.reason} at {self._told(rows[row])}")
                if journal is not None:
                    journal.note(places[row], self._noted(rows[row]), outcome)
            missing = sorted(again)
        columns = zip(*(self._columns(outcomes[i].measured) for i in range(number)), strict=True)
        return Measured(*(np.stack(column) for column in columns))

    def _seeds(self, key: Key, number: int) -> list[int] | list[None]:
        """One for each of a batch; None if the function takes none."""
        return np.asarray(jax.random.bits(key, (number,), "uint32")).tolist() if self.noisy else [None] * number

    def _known(self, rows: Sequence[Any], places: Sequence[int], journal: Journal | None) -> dict[int, Outcome]:
        if journal is None:
            return {}
        found = {i: journal.known(places[i], self._noted(row)) for i, row in enumerate(rows)}
        return {i: outcome for i, outcome in found.items() if outcome is not None}

    def _calls(
        self, calls: Sequence[Call], rows: Sequence[int], journal: Journal | None
    ) -> Iterator[tuple[int, Result]]:
        """What comes of the calls of some rows of a batch."""
        return self._pool.calls(calls)

    @cached_property
    def _pool(self) -> Pool:
        return make_pool(self.evaluator, self._function(), workers=self.workers, timeout=self.timeout)

    def _function(self) -> Callable[..., Any]:
        if self.function is None:
            raise InputError(
                f"task {self.name!r} has no function; evaluate its solutions by hand, with moqd.Optimizer."
            )
        return self.function

    def _arguments(self, x: Any, seed: int | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """How the function is called for one solution."""
        named = {} if seed is None else {"seed": seed}
        if self.space is not None and self.space.by_name:
            return (), self.space.values(x) | named
        return (jax.tree.map(np.array, x),), named  # a copy: a function may change what it is given

    def _noted(self, x: Any) -> Any:
        """A solution as a file says it."""
        if self.space is None:
            return [np.asarray(leaf, float).tolist() for leaf in jax.tree.leaves(x)]
        values = self.space.values(x)
        return {name: value if isinstance(value, (int, float)) else str(value) for name, value in values.items()}

    def _told(self, x: Any) -> str:
        if self.space is None:
            return "a solution"
        if self.space.by_name:
            return ", ".join(f"{name} = {value!r}" for name, value in self.space.values(x).items())
        return f"x = {np.asarray(x).tolist()}"

    def _outcome(self, result: Result, attempts: int, is_sound: bool) -> Outcome:
        """Of a function that `is_sound`, one result of another form is a failure; else the function is to be mended."""
        if result.failure is not None:
            return Outcome(None, result.failure, attempts)
        try:
            measured = _within_32_bits(self._split(result.value, lambda value: np.asarray(value, float)))
        except InputError:
            if not is_sound:
                raise
            return Outcome(None, Failure("wrong return", f"it returned {result.value!r}"), attempts)
        if all(np.all(np.isfinite(part)) for part in measured):
            return Outcome(measured, None, attempts)
        return Outcome(None, Failure("not finite", f"it returned {result.value!r}"), attempts)

    def _columns(self, measured: Measured | None) -> Measured:
        """NaN where an evaluation failed."""
        sizes = (self.num_objectives, self.num_features, len(self.constraint_names))
        return Measured(*(np.full(size, np.nan) for size in sizes)) if measured is None else measured

    def _measure_batch(self, x: Any, number: int, seed: int | None) -> Measured:
        function = self._function()
        if self.space is not None and self.space.by_name:
            arguments: tuple[Any, ...] = ()
            named = {name: self._options(name, column) for name, column in self.space.columns(x).items()}
        else:
            arguments, named = (x,), {}
        try:
            result = function(*arguments, **named, **({} if seed is None else {"seed": seed}))
        except Exception as error:
            what = f"it raised {type(error).__name__} ({first_line(error)})"
            self.failures.append(f"{what} at {self._told(x)}" if self.space is None or not named else what)
            return Measured(*(np.tile(column, (number, 1)) for column in self._columns(None)))
        measured = _within_32_bits(self._split(result, lambda value: np.asarray(value, float), (number,)))
        if not all(np.all(np.isfinite(part)) for part in measured):
            self.failures.append(f"it returned {result} at {self._told(x)}" if not named else f"it returned {result}")
        return measured

    def _options(self, name: str, column: Any) -> Any:
        """A column of choices as these."""
        assert isinstance(self.bounds, Mapping)
        options = getattr(self.bounds[name], "options", None)
        if options is None:
            return column
        table = np.empty(len(options), object)  # of options, which may be sequences themselves
        for index, option in enumerate(options):
            table[index] = option
        return table[column]

    # ---------------------------------------------------------------------------------------- what it returned

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
        return validated(self, Evaluation(fitness, features, valid, violation=violation))

    def _split(self, result: Any, asarray: Callable[[Any], Any], batch: tuple[int, ...] = ()) -> Measured:
        """What the function returned, as arrays of objectives, features and constraints: of a solution, or a batch."""
        parts = [("objectives", self.objective_names), ("features", self.feature_names)]
        parts.append(("constraints", self.constraint_names))
        expected = [kind for kind, names in parts if names]
        try:
            given = (result,) if len(expected) == 1 else tuple(result)
            found = {kind: asarray(value) for kind, value in zip(expected, given, strict=True)}
        except (TypeError, ValueError) as error:
            raise InputError(self._wrong_return(repr(result))) from error
        rows = f" for {batch[0]} rows" if batch else ""
        arrays = []
        for kind, names in parts:
            value = found[kind] if names else asarray(np.zeros((*batch, 0), np.float32))
            if value.shape != (*batch, len(names)):
                raise InputError(self._wrong_return(f"{kind} of shape {value.shape}{rows}"))
            arrays.append(value)
        return Measured(*arrays)

    def _wrong_return(self, what: str) -> str:
        lists = [f"[{', '.join(names)}]" for names in (self.objective_names, self.feature_names, self.constraint_names)]
        lists = [part for part in lists if part != "[]"]
        expected = lists[0] if len(lists) == 1 else f"the {('pair', 'triple')[len(lists) - 2]} {', '.join(lists)}"
        per_row = " for each row, as matrices" if self.batched else ""
        names = "" if self.constraint_names else " (constraints after these are named by constraint_names)"
        return f"the function of task {self.name!r} returned {what}; return {expected}{per_row}{names}."


def _within_32_bits(measured: Measured) -> Measured:
    """NaN for what 32 bits cannot hold; but a violation that is larger is a large violation."""
    most = np.finfo(np.float32).max
    objectives, features = (np.where(np.abs(part) <= most, part, np.nan) for part in measured[:2])
    most /= max(1, measured.constraints.shape[-1])  # they are summed
    constraints = np.where(np.isfinite(measured.constraints), np.clip(measured.constraints, -most, most), np.nan)
    return Measured(objectives, features, constraints)


def first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    return next(iter(str(error).splitlines()), "no message")
