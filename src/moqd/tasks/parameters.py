"""Parameters of a function: reals, whole numbers and choices, all of them in the unit cube inside.

There variation means the same in every unit. A whole number or a choice takes an equal part of the unit interval, and
on a logarithmic scale so does every factor: from 0.01 to 0.1 it is as far as from 0.1 to 1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from moqd.core.types import Genes
from moqd.io.errors import InputError
from moqd.tasks.checks import INTERVAL, is_interval, numbers, require

MOST_VALUES = 2**23
"""Of a whole number: more of them a gene, which is a float of 32 bits, does not tell apart."""


@dataclass(frozen=True)
class Real:
    """A number from `low` to `high`, both included: the same as the pair (low, high), unless `log` is given."""

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    """Whether its scale is logarithmic: for what spans orders of magnitude, such as a learning rate."""

    def __post_init__(self) -> None:
        given = f"Real({self.low!r}, {self.high!r}{', log=True' if self.log else ''})"
        require(isinstance(self.log, bool), "log", self.log, "True or False")
        if not is_interval((self.low, self.high)):
            raise InputError(f"{given}: give two finite numbers, the lower one first.")
        low, high = numbers((self.low, self.high)).tolist()
        if self.log and low <= 0:
            advice = "give two positive numbers, or leave log out"
            raise InputError(f"{given}: a logarithmic scale cannot reach {self.low!r}; {advice}.")
        if self.log and math.log(low) == math.log(high):
            raise InputError(f"{given}: these have the same logarithm; leave log out.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)


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
            advice = f"give at most {MOST_VALUES}, or a pair of floats, and round within the function"
            raise InputError(f"Integer({self.low}, {self.high}) has {self.number} values; {advice}.")

    @property
    def number(self) -> int:
        return int(self.high) - int(self.low) + 1


@dataclass(frozen=True, init=False)
class Categorical:
    """One of some options: Categorical("steel", "oak", "glass")."""

    options: tuple[Any, ...]
    low: ClassVar[int] = 0
    """Of its index."""

    def __init__(self, *options: Any) -> None:
        if len(options) == 1 and isinstance(options[0], (list, tuple)):
            options = tuple(options[0])
        if len(options) < 2 or any(option in options[:i] for i, option in enumerate(options)):
            raise InputError(f"Categorical{options}: give at least two options that differ.")
        object.__setattr__(self, "options", options)

    @property
    def number(self) -> int:
        return len(self.options)


Bound: TypeAlias = tuple[float, float] | Real | Integer | Categorical


class Space(NamedTuple):
    """Parameters by their names."""

    names: tuple[str, ...]
    bounds: tuple[Bound, ...]
    """A real is a pair here, but for one with a logarithmic scale."""
    by_name: bool
    """Whether a function takes them as arguments of these names, and not as one vector."""

    @property
    def genes(self) -> Genes:
        """What variation needs to know of them."""
        return Genes(
            num_values=np.array([0 if isinstance(b, (tuple, Real)) else b.number for b in self.bounds]),
            is_ordered=np.array([not isinstance(bound, Categorical) for bound in self.bounds]),
        )

    @property
    def num_designs(self) -> int | None:
        """How many there are; None where there are reals."""
        num_values = self.genes.num_values.tolist()
        return math.prod(num_values) if all(num_values) else None

    def vector(
        self, genotype: Float[Array | np.ndarray, "*batch parameters"]
    ) -> Float[np.ndarray, "*batch parameters"]:
        """In the user's units; of a choice its index."""
        return self._vector(np.asarray(genotype, float), np)

    def traced_vector(self, genotype: Float[Array, "*batch parameters"]) -> Float[Array, "*batch parameters"]:
        return self._vector(genotype, jnp)

    def _vector(self, unit: Any, xp: Any) -> Any:
        """low + unit * extent: whole numbers and choices take its floor, logarithmic scales its exponential."""
        lower, upper = _columns(map(_ends, self.bounds), unit, xp)
        value = xp.clip(lower + unit * (upper - lower), lower, upper)  # rounding may lead beyond them
        discrete = self.genes.num_values > 0
        if discrete.any():
            whole = xp.minimum(xp.floor(value), upper - xp.ones_like(upper))
            value = xp.where(xp.broadcast_to(discrete, unit.shape), whole, value)
        is_log = np.array([isinstance(bound, Real) for bound in self.bounds])
        if not is_log.any():
            return value
        is_log = xp.broadcast_to(is_log, unit.shape)
        low, high = _columns(((b.low, b.high) if isinstance(b, Real) else (1, 1) for b in self.bounds), unit, xp)
        power = xp.clip(xp.exp(xp.where(is_log, value, xp.zeros_like(value))), low, high)
        # Exact at the ends, of which the logarithms are rounded.
        power = xp.where(unit <= 0, low, xp.where(unit >= 1, high, power))
        return xp.where(is_log, power, value)

    def values(self, vector: Float[np.ndarray, "parameters"]) -> dict[str, Any]:
        """Each parameter as it is: a float, an int, or one of the options."""
        return dict(zip(self.names, map(_value, self.bounds, vector), strict=True))

    def columns(self, vectors: Any) -> dict[str, Any]:
        """Of vectors each parameter as an array; choices are options, or indices where JAX traces the function."""
        return {name: column_of(self.bounds[i], vectors[..., i]) for i, name in enumerate(self.names)}

    def genotype(self, values: Mapping[str, Any] | Sequence[Any]) -> Float[np.ndarray, "parameters"]:
        """Where some values lie in the unit cube."""
        if isinstance(values, Mapping):
            if set(values) != set(self.names):
                raise InputError(f"the parameters are {', '.join(map(str, values))}; give {', '.join(self.names)}.")
            values = [values[name] for name in self.names]
        if len(values) != len(self.names):
            raise InputError(f"{len(values)} parameters are given; give {len(self.names)}: {', '.join(self.names)}.")
        return np.array(list(map(_unit, self.names, self.bounds, values)), np.float32)


def _columns(pairs: Iterable[tuple[float, float]], unit: Any, xp: Any) -> Any:
    """The first and the second of each pair, both in the shape and the type of the genes."""
    return (xp.broadcast_to(end, unit.shape) for end in np.asarray(list(pairs), unit.dtype).T)


def _ends(bound: Bound) -> tuple[float, float]:
    """What the genes 0 and 1 stand for."""
    if isinstance(bound, tuple):
        return bound
    if isinstance(bound, Real):
        return math.log(bound.low), math.log(bound.high)
    return bound.low, bound.low + bound.number


def column_of(bound: Bound, column: Any) -> Any:
    """A parameter as an array; choices are options, or indices where JAX traces it."""
    if isinstance(bound, Categorical) and isinstance(column, np.ndarray):
        return np.fromiter(bound.options, object)[column.astype(int)]  # they may be sequences themselves
    return column if isinstance(bound, (tuple, Real)) else column.astype(int)


def _value(bound: Bound, number: float) -> Any:
    if isinstance(bound, Categorical):
        return bound.options[int(number)]
    return int(number) if isinstance(bound, Integer) else float(number)


def _unit(name: str, bound: Bound, value: Any) -> float:
    if isinstance(bound, Categorical):
        require(value in bound.options, name, value, f"one of {', '.join(map(repr, bound.options))}")
        return (bound.options.index(value) + 0.5) / bound.number
    low, high = bound if isinstance(bound, tuple) else (bound.low, bound.high)
    sound = isinstance(value, (int, float, np.number)) and math.isfinite(value) and bool(low <= value <= high)
    if isinstance(bound, Integer):
        require(sound and int(value) == value, name, value, f"a whole number from {low} to {high}")
        return (value - low + 0.5) / bound.number
    require(sound, name, value, f"a number from {low} to {high}")
    if isinstance(bound, Real):
        low, high, value = math.log(low), math.log(high), math.log(value)
    return (value - low) / (high - low)


def space_of(bounds: Mapping[str, Bound] | Sequence[Bound], names: Sequence[str] = ()) -> Space:
    """The parameters that `bounds` describes: by name, or one after the other."""
    sound = isinstance(bounds, Mapping | Sequence | np.ndarray) and not isinstance(bounds, str)
    require(sound, "bounds", bounds, "(lowest, highest) of each parameter, in a list or by name")
    entries = tuple(bounds.values() if isinstance(bounds, Mapping) else bounds)
    if not entries:
        raise InputError("bounds is empty; give (lowest, highest) for each parameter.")
    by_name = isinstance(bounds, Mapping)
    labels = tuple(bounds) if isinstance(bounds, Mapping) else tuple(f"bounds[{i}]" for i in range(len(entries)))
    for label, entry in zip(labels, entries, strict=True):
        if not isinstance(entry, (Real, Integer, Categorical)):
            require(is_interval(entry), label, entry, f"{INTERVAL}, or moqd.Integer(...) or moqd.Categorical(...)")
    if by_name and tuple(names) not in ((), labels):
        raise InputError("parameter_names is given, but bounds has names already; leave parameter_names out.")
    names = labels if by_name else tuple(names) or tuple(f"x{i}" for i in range(len(entries)))
    differ = len(names) == len(set(names)) == len(entries)
    require(differ, "parameter_names", names, f"{len(entries)} different names, one for each of the bounds")
    usable = not by_name or all(isinstance(name, str) and name.isidentifier() for name in names)
    require(usable, "bounds", bounds, "names that Python takes for arguments, or a list of bounds")
    return Space(names, tuple(map(_plain, entries)), by_name)


def _plain(bound: Bound) -> Bound:
    """A pair of floats, whatever it was given as, where it is one."""
    if isinstance(bound, (Integer, Categorical)) or (isinstance(bound, Real) and bound.log):
        return bound
    low, high = (bound.low, bound.high) if isinstance(bound, Real) else bound
    return float(low), float(high)
