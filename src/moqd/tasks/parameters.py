"""Parameters of a function: reals, whole numbers and choices, all of them in the unit cube inside.

There variation means the same in every unit. A whole number or a choice takes an equal part of the unit interval.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from moqd.errors import InputError
from moqd.tasks.task import check_pair

MOST_VALUES = 2**23
"""Of a whole number: more of them a gene, which is a float of 32 bits, does not tell apart."""


@dataclass(frozen=True)
class Integer:
    """A whole number from `low` to `high`, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        whole = all(isinstance(end, (int, np.integer)) and not isinstance(end, bool) for end in (self.low, self.high))
        if not whole or self.low >= self.high:
            raise InputError(f"Integer({self.low!r}, {self.high!r}): give two whole numbers, the lower one first.")
        if self.number > MOST_VALUES:
            raise InputError(
                f"Integer({self.low}, {self.high}) has {self.number} values; give at most {MOST_VALUES}, or a pair of "
                "floats, and round within the function."
            )

    @property
    def number(self) -> int:
        return int(self.high) - int(self.low) + 1


@dataclass(frozen=True, init=False)
class Categorical:
    """One of some options: Categorical("steel", "oak", "glass")."""

    options: tuple[Any, ...]

    def __init__(self, *options: Any) -> None:
        if len(options) == 1 and isinstance(options[0], (list, tuple)):
            options = tuple(options[0])
        if len(options) < 2 or any(option in options[:i] for i, option in enumerate(options)):
            raise InputError(f"Categorical{options}: give at least two options that differ.")
        object.__setattr__(self, "options", options)

    @property
    def low(self) -> int:
        """Of its index."""
        return 0

    @property
    def number(self) -> int:
        return len(self.options)


Bound: TypeAlias = tuple[float, float] | Integer | Categorical


class Space(NamedTuple):
    """Parameters by their names."""

    names: tuple[str, ...]
    bounds: tuple[Bound, ...]
    by_name: bool
    """Whether a function takes them as arguments of these names, and not as one vector."""

    @property
    def num_designs(self) -> int | None:
        """How many there are; None where there are reals."""
        numbers = [bound.number for bound in self.bounds if isinstance(bound, (Integer, Categorical))]
        return math.prod(numbers) if len(numbers) == len(self.bounds) else None

    def vector(
        self, genotype: Float[Array | np.ndarray, "*batch parameters"]
    ) -> Float[np.ndarray, "*batch parameters"]:
        """In the user's units; of a choice its index."""
        return self._vector(np.asarray(genotype, float), np)

    def traced_vector(self, genotype: Float[Array, "*batch parameters"]) -> Float[Array, "*batch parameters"]:
        return self._vector(genotype, jnp)

    def _vector(self, unit: Any, xp: Any) -> Any:
        """low + unit * extent, of which whole numbers and choices take the floor."""
        ends = [bound if isinstance(bound, tuple) else (bound.low, bound.low + bound.number) for bound in self.bounds]
        lower, upper = (xp.broadcast_to(end, unit.shape) for end in np.asarray(ends, unit.dtype).T)
        value = xp.clip(lower + unit * (upper - lower), lower, upper)  # rounding may lead beyond them
        discrete = np.array([_is_discrete(bound) for bound in self.bounds])
        if not discrete.any():
            return value
        whole = xp.minimum(xp.floor(value), upper - xp.ones_like(upper))
        return xp.where(xp.broadcast_to(discrete, unit.shape), whole, value)

    def values(self, vector: Float[np.ndarray, "parameters"]) -> dict[str, Any]:
        """Each parameter as it is: a float, an int, or one of the options."""
        return {
            name: _value(bound, number) for name, bound, number in zip(self.names, self.bounds, vector, strict=True)
        }

    def columns(self, vectors: Any) -> dict[str, Any]:
        """Of vectors (batched, or traced) each parameter as an array; of whole numbers and choices, integers."""
        return {
            name: vectors[..., i].astype(int) if _is_discrete(bound) else vectors[..., i]
            for i, (name, bound) in enumerate(zip(self.names, self.bounds, strict=True))
        }

    def genotype(self, values: Mapping[str, Any] | Sequence[Any]) -> Float[np.ndarray, "parameters"]:
        """Where some values lie in the unit cube."""
        if isinstance(values, Mapping):
            if set(values) != set(self.names):
                raise InputError(f"the parameters are {', '.join(map(str, values))}; give {', '.join(self.names)}.")
            values = [values[name] for name in self.names]
        if len(values) != len(self.names):
            raise InputError(f"{len(values)} parameters are given; give {len(self.names)}: {', '.join(self.names)}.")
        return np.array(
            [_unit(name, bound, value) for name, bound, value in zip(self.names, self.bounds, values, strict=True)],
            np.float32,
        )


def _is_discrete(bound: Bound) -> bool:
    return isinstance(bound, (Integer, Categorical))


def _value(bound: Bound, number: float) -> Any:
    if isinstance(bound, Categorical):
        return bound.options[int(number)]
    return int(number) if isinstance(bound, Integer) else float(number)


def _unit(name: str, bound: Bound, value: Any) -> float:
    if isinstance(bound, Categorical):
        if value not in bound.options:
            raise InputError(f"{name} is {value!r}; give one of {', '.join(map(repr, bound.options))}.")
        return (bound.options.index(value) + 0.5) / bound.number
    low, high = (bound.low, bound.high) if isinstance(bound, Integer) else bound
    sound = isinstance(value, (int, float, np.number)) and math.isfinite(value) and low <= value <= high
    if not sound or (isinstance(bound, Integer) and value != int(value)):
        whole = "a whole number" if isinstance(bound, Integer) else "a number"
        raise InputError(f"{name} is {value!r}; give {whole} from {low} to {high}.")
    return (value - low + 0.5) / bound.number if isinstance(bound, Integer) else (value - low) / (high - low)


def space_of(bounds: Mapping[str, Bound] | Sequence[Bound], names: Sequence[str] = ()) -> Space:
    """The parameters that `bounds` describes: by name, or one after the other."""
    by_name = isinstance(bounds, Mapping)
    if not by_name and (isinstance(bounds, str) or not isinstance(bounds, Sequence | np.ndarray)):
        raise InputError(f"bounds is {bounds!r}; give (lowest, highest) of each parameter, in a list or by name.")
    entries = tuple(bounds.values() if isinstance(bounds, Mapping) else bounds)
    if not entries:
        raise InputError("bounds is empty; give (lowest, highest) for each parameter.")
    labels = tuple(bounds) if isinstance(bounds, Mapping) else tuple(f"bounds[{i}]" for i in range(len(entries)))
    for label, entry in zip(labels, entries, strict=True):
        if not _is_discrete(entry):
            check_pair(label, entry)
    if by_name and tuple(names) not in ((), labels):
        raise InputError("parameter_names is given, but bounds has names already; leave parameter_names out.")
    names = labels if by_name else tuple(names) or tuple(f"x{i}" for i in range(len(entries)))
    if len(names) != len(entries) or len(set(names)) < len(names):
        raise InputError(
            f"parameter_names is {names}; give {len(entries)} different names, one for each of the bounds."
        )
    if by_name and not all(isinstance(name, str) and name.isidentifier() for name in names):
        raise InputError(
            f"bounds is of {', '.join(map(repr, names))}, which the function takes as arguments; give names that "
            "Python takes for such, or a list of bounds."
        )
    return Space(names, tuple(map(_plain, entries)), by_name)


def _plain(bound: Bound) -> Bound:
    """A pair of floats, whatever it was given as."""
    if isinstance(bound, (Integer, Categorical)):
        return bound
    low, high = bound
    return float(low), float(high)
