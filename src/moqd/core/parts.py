"""Parts of a program that have a name, so that somebody outside can find them and run them on their own.

A program says `@part("training")` above a function and knows nothing more of it; timing looks for the calls.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Call(NamedTuple):
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


_watched: ContextVar[tuple[Any, dict[str, Call]] | None] = ContextVar("watched", default=None)


def part(name: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """The function, whose calls `calls_of_parts` sees."""

    def named(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @wraps(function)
        def call(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
            watched = _watched.get()
            # Arguments of a trace within this one (of a loop, say) have no meaning outside of it.
            if watched is not None and all(_trace(leaf) in (None, watched[0]) for leaf in jax.tree.leaves(arguments)):
                watched[1][name] = Call(function, arguments)
            return function(*arguments, **keywords)

        return call

    return named


@contextmanager
def calls_of_parts() -> Iterator[dict[str, Call]]:
    """The last call of each part that is made meanwhile."""
    calls: dict[str, Call] = {}
    token = _watched.set((_trace(jnp.zeros(())), calls))
    try:
        yield calls
    finally:
        _watched.reset(token)


def _trace(value: Any) -> Any:
    """What is being traced where this value was made; None for one that is known."""
    return value._trace if isinstance(value, jax.core.Tracer) else None
