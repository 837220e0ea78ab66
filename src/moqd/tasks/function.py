"""Tasks from plain functions of a vector of bounded parameters."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from moqd.errors import InputError
from moqd.tasks.task import Rendering, Task, check_bounds, validated
from moqd.types import Evaluation, Key


@dataclass(frozen=True, eq=False)
class FunctionTask(Task):
    """A function `x -> (objectives, features)`, or `x -> objectives` where there are no features.

    `x` is a vector of parameters in the user's units. With `traceable=True` the function is written in JAX and is
    compiled; without, it may be any Python and runs on the host, one solution after the other. A call that raises or
    returns a number that is not finite is a failed evaluation: it is counted, and the run goes on.
    """

    function: Callable[[Any], Any]
    bounds: Sequence[tuple[float, float]] = field(kw_only=True)
    """(lowest, highest) of each parameter."""
    parameter_names: Sequence[str] = field(default=(), kw_only=True)
    """If not given: x0, x1, ..."""
    traceable: bool = field(default=False, kw_only=True)
    """Whether the function is written in JAX and should be compiled."""
    batched: bool = field(default=False, kw_only=True)
    """Whether the function takes a matrix, one row per solution, and returns matrices."""
    draw: Callable[[Any], Rendering] | None = field(default=None, kw_only=True, repr=False)
    """What the explorer shows of a solution: a function of `x` that gives SVG or HTML as text, or `Frames`."""
    failures: deque[str] = field(default_factory=lambda: deque(maxlen=8), init=False, repr=False)
    """What went wrong last, newest at the end."""

    genotype_bounds: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise InputError(f"function is {self.function!r}; give a function of a vector of parameters.")
        if len(self.bounds) == 0:
            raise InputError("bounds is empty; give (lowest, highest) for each parameter.")
        check_bounds("bounds", self.bounds)
        names = tuple(self.parameter_names) or tuple(f"x{i}" for i in range(len(self.bounds)))
        if len(names) != len(self.bounds) or len(set(names)) < len(names):
            raise InputError(
                f"parameter_names is {names}; give {len(self.bounds)} different names, one for each of the bounds."
            )
        object.__setattr__(self, "parameter_names", names)

    def init_genotype(self, key: Key, num_genotypes: int) -> Float[Array, "batch parameters"]:
        """Uniform in the unit cube, in which genotypes live so that variation means the same in every unit."""
        return jax.random.uniform(key, (num_genotypes, len(self.bounds)))

    def evaluate(self, key: Key, genotype: Float[Array, "batch parameters"]) -> Evaluation:
        return self._evaluate_traced(genotype) if self.traceable else self._evaluate_on_host(np.asarray(genotype))

    def parameters(
        self, genotype: Float[Array | np.ndarray, "*batch parameters"]
    ) -> Float[np.ndarray, "*batch parameters"]:
        """Genotypes in the user's units."""
        lower, upper = np.asarray(self.bounds, float).T
        return lower + np.asarray(genotype, float) * (upper - lower)

    def render(self, genotype: Float[Array | np.ndarray, "parameters"]) -> Rendering | None:
        return None if self.draw is None else self.draw(self.parameters(genotype))

    def _evaluate_traced(self, genotype: Float[Array, "batch parameters"]) -> Evaluation:
        lower, upper = jnp.asarray(np.asarray(self.bounds, np.float32).T)[:, None, :]
        x = lower + genotype * (upper - lower)
        measure = lambda x: self._split(self.function(x), jnp.asarray)  # noqa: E731
        try:
            fitness, feature = (measure if self.batched else jax.vmap(measure))(x)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"the function of task {self.name!r} raised {type(error).__name__} when JAX traced it "
                f"({first_line(error)}); write it with jax.numpy, or pass traceable=False to run it on the host."
            ) from error
        return self._evaluation(fitness, feature)

    def _evaluate_on_host(self, genotype: Float[np.ndarray, "batch parameters"]) -> Evaluation:
        x = self.parameters(genotype)
        if self.batched:
            fitness, feature = self._measure(x, (len(x),))
        else:
            rows = [self._measure(row, ()) for row in x]
            fitness, feature = (np.stack(column) for column in zip(*rows, strict=True))
        return self._evaluation(jnp.asarray(fitness, jnp.float32), jnp.asarray(feature, jnp.float32))

    def _evaluation(self, fitness: Array, feature: Array) -> Evaluation:
        return validated(self, Evaluation(fitness, feature, jnp.ones(fitness.shape[0], bool)))

    def _measure(self, x: Float[np.ndarray, "*batch parameters"], batch: tuple[int, ...]) -> tuple[Any, Any]:
        """Objectives and features as the function gives them; NaN, and a note in `failures`, where it fails."""
        try:
            result = self.function(x)
        except Exception as error:
            self.failures.append(f"it raised {type(error).__name__} ({first_line(error)}) at x = {x.tolist()}")
            return np.full((*batch, self.num_objectives), np.nan), np.full((*batch, self.num_features), np.nan)
        fitness, feature = self._split(result, lambda value: np.asarray(value, float))
        if not (np.all(np.isfinite(fitness)) and np.all(np.isfinite(feature))):
            self.failures.append(f"it returned {result} at x = {x.tolist()}")
        return fitness, feature

    def _split(self, result: Any, asarray: Callable[[Any], Any]) -> tuple[Any, Any]:
        """What the function returned, as an array of (maximised) objectives and one of features."""
        try:
            objectives, features = result if self.feature_names else (result, ())
            fitness, feature = asarray(objectives), asarray(features)
        except (TypeError, ValueError) as error:
            raise InputError(self._wrong_return(repr(result))) from error
        if not self.feature_names:
            feature = asarray(np.zeros((*fitness.shape[:-1], 0), np.float32))
        for kind, value, number in (
            ("objectives", fitness, self.num_objectives),
            ("features", feature, self.num_features),
        ):
            if value.ndim != 1 + self.batched or value.shape[-1] != number:
                raise InputError(self._wrong_return(f"{kind} of shape {value.shape}"))
        return fitness * asarray(np.broadcast_to(self.direction, fitness.shape)), feature

    def _wrong_return(self, what: str) -> str:
        expected = f"[{', '.join(self.objective_names)}]"
        if self.feature_names:
            expected = f"the pair {expected}, [{', '.join(self.feature_names)}]"
        per_row = " for each row, as matrices" if self.batched else ""
        return f"the function of task {self.name!r} returned {what}; return {expected}{per_row}."


def first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    return next(iter(str(error).splitlines()), "no message")
