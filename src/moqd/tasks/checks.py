"""Checks of what the user gives: an error says what was given, and what to give instead."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from jaxtyping import Float

from moqd.io.errors import InputError
from moqd.io.options import is_count

INTERVAL = "(lowest, highest), finite, with lowest < highest"


def require(sound: bool, argument: str, value: object, wanted: str) -> None:
    if not sound:
        raise InputError(f"{argument} is {value!r}; give {wanted}.")


def require_count(argument: str, value: object, least: int = 1, *, optional: bool = False) -> None:
    """It must be a whole number, or None if it is optional."""
    wanted = f"a whole number of at least {least}{', or None' if optional else ''}"
    require((optional and value is None) or is_count(value, least), argument, value, wanted)


def require_counts(argument: str, value: object) -> None:
    sound = isinstance(value, Sequence) and not isinstance(value, str) and all(map(is_count, value))
    require(sound, argument, value, "a list of whole numbers of at least 1")


def require_extent(argument: str, value: tuple[float, float]) -> None:
    """It must be an interval in floats of 32 bits too."""
    require(is_interval(value), argument, value, INTERVAL)
    with np.errstate(all="ignore"):
        lowest, highest = np.asarray(value, np.float32)
        extent = highest - lowest
    if not np.finfo(np.float32).tiny <= extent < np.inf:
        why = "whose extent is 0 or infinite in 32 bits, as features are"
        raise InputError(f"{argument} is {value}, {why}; subtract an offset from the feature, or scale it.")


def is_interval(value: object) -> bool:
    """Whether it is (lowest, highest), both finite."""
    pair = numbers(value)
    return pair.shape == (2,) and bool(np.all(np.isfinite(pair)) and pair[0] < pair[1])


def numbers(value: object) -> Float[np.ndarray, "..."]:
    """The value as an array of floats; if it is not a number, NaN, which no check accepts."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        return np.array(np.nan)


@contextmanager
def explained(what: str, advice: str) -> Iterator[None]:
    """Where the user's code runs: if it raises, the error says `what` went wrong, why, and what to do."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{what} ({type(error).__name__}: {first_line(str(error))}); {advice}") from error


def first_line(message: str) -> str:
    return next(iter(message.splitlines()), "no message")
