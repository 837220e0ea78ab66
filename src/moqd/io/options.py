"""Options of tasks and algorithms: documented fields of frozen dataclasses, overridden by name."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, replace
from numbers import Integral
from typing import Any, TypeVar

from moqd.io.errors import InputError, unknown_name

Config = TypeVar("Config")
MOST_SEED = 2**32 - 1
ONE_OR_SEVERAL = int | tuple[int, ...]
"""The type of a field that holds a count, or a tuple of counts."""


def overridden(config: Config, overrides: Mapping[str, Any], owner: str) -> Config:
    """The config with other values for the named fields; `owner` is whose options they are, for the error."""
    known = {field.name: field for field in fields(config)}  # type: ignore[arg-type]
    for name, value in overrides.items():
        if name not in known:
            raise unknown_name("option", name, known, of=owner)
        _check(known[name], value, getattr(config, name))
    values = {name: _as_field(value, getattr(config, name)) for name, value in overrides.items()}
    return replace(config, **values)  # type: ignore[type-var]


def recorded(config: Any) -> dict[str, Any]:
    """The options as files hold them, by which runs are known.

    An option that was added later says in its metadata which value leaves results as they were `before`. With that
    value it is left out, so that runs of earlier versions are found, and are what they were.
    """
    return {
        option.name: value
        for option in fields(config)
        if (value := getattr(config, option.name)) != option.metadata.get("before", MISSING)
    }


def restored(config: Config, values: Mapping[str, Any], owner: str) -> Config:
    """The config of which `recorded` gave these values."""
    options = fields(config)  # type: ignore[arg-type]
    before = {option.name: option.metadata["before"] for option in options if "before" in option.metadata}
    return overridden(replace(config, **before), values, owner)  # type: ignore[type-var]


def _as_field(value: Any, default: Any) -> Any:
    """Of the field's own type, so that the same settings are the same however they were written."""
    if isinstance(default, str) and isinstance(value, Mapping):
        return ",".join(f"{name}:{share}" for name, share in value.items())
    if _is_sequence(value):
        return tuple(value)
    return float(value) if isinstance(default, float) and isinstance(value, int) else value


def _check(option: Field[Any], value: Any, default: Any) -> None:
    """Counts are whole and at least `least`, scales are not negative, switches are True or False."""
    least = option.metadata.get("least", 1)
    are_counts = _is_sequence(value) and all(map(is_count, value))
    if option.type == ONE_OR_SEVERAL:
        fits, wanted = is_count(value) or (are_counts and value), "a whole number of at least 1, or a list of them"
    elif isinstance(default, bool):
        fits, wanted = isinstance(value, bool), "True or False"
    elif isinstance(default, int):
        fits, wanted = is_count(value, least), f"a whole number of at least {least}"
    elif isinstance(default, float):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits, wanted = number and 0 <= value < float("inf"), "a number that is not negative"
    else:
        fits, wanted = not isinstance(default, tuple) or are_counts, "a list of whole numbers of at least 1"
    if not fits:
        raise InputError(f"{option.name} is {value!r}; give {wanted}.")


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def is_count(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def whole_number(argument: str, value: Any, *, least: int, most: int | None = None) -> int:
    """The value, which must be a whole number in these limits."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{argument} is {value!r}; give a whole number {allowed}.")
    return int(value)


def checked_seed(seed: Any) -> int:
    """The seed, which must be one that JAX takes."""
    return whole_number("seed", seed, least=0, most=MOST_SEED)
