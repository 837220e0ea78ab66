"""How many floating-point operations a function takes, counted in what JAX traces of it."""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

MOVING = (
    *("reshape", "broadcast_in_dim", "slice", "dynamic_slice", "dynamic_update_slice", "gather", "scatter", "select_n"),
    *("concatenate", "transpose", "squeeze", "pad", "rev", "iota", "copy", "copy_p", "stop_gradient", "device_put"),
    *("convert_element_type", "bitcast_convert_type"),
)
"""What only moves numbers."""


class Operations(NamedTuple):
    """Multiplications and additions of matrix products, and one for each element of everything else."""

    matrix: float = 0.0
    other: float = 0.0

    def times(self, factor: float) -> "Operations":
        return Operations(self.matrix * factor, self.other * factor)

    def plus(self, more: "Operations") -> "Operations":
        return Operations(self.matrix + more.matrix, self.other + more.other)


def count(function: Callable[..., Any], *arguments: Any, trips: int = 1) -> Operations:
    """Of one call. Loops whose length depends on values are taken to go round `trips` times."""
    return _total(jax.make_jaxpr(function)(*arguments).jaxpr, trips)


def _total(jaxpr: Any, trips: int) -> Operations:
    total = Operations()
    for equation in jaxpr.eqns:
        total = total.plus(_of(equation, trips))
    return total


def _of(equation: Any, trips: int) -> Operations:
    name, out = equation.primitive.name, equation.outvars[0].aval
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return Operations(matrix=2.0 * out.size * prod(shape[axis] for axis in contracted))
    inner = [_total(jaxpr, trips) for jaxpr in _inner(equation.params)]
    if name == "cond":
        return max(inner, key=sum)
    if inner:
        factor = {"scan": equation.params.get("length", 1), "while": trips}.get(name, 1)
        if name == "shard_map":
            factor = equation.params["mesh"].size
        total = Operations()
        for one in inner:
            total = total.plus(one.times(factor))
        return total
    if name in MOVING or not jnp.issubdtype(out.dtype, jnp.floating):
        return Operations()
    reduces = name.startswith(("reduce_", "cum", "arg"))
    return Operations(other=float(equation.invars[0].aval.size if reduces else out.size))


def _inner(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(one, "eqns"):
                yield one
            elif hasattr(one, "jaxpr") and hasattr(one.jaxpr, "eqns"):
                yield one.jaxpr
