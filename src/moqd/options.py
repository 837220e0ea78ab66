"""Options of tasks and algorithms: documented fields of frozen dataclasses, overridden by name."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from moqd.errors import InputError, unknown_name

Config = TypeVar("Config")


def overridden(config: Config, overrides: Mapping[str, Any], owner: str) -> Config:
    """The config with other values for the named fields; `owner` is whose options they are, for the error."""
    known = [field.name for field in fields(config)]  # type: ignore[arg-type]
    for name, value in overrides.items():
        if name not in known:
            raise unknown_name("option", name, known, of=owner)
        _check(name, value, getattr(config, name))
    return replace(config, **overrides)  # type: ignore[type-var]


def _check(name: str, value: Any, default: Any) -> None:
    """Counts are whole and positive, scales are not negative."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(default, int) and not isinstance(default, bool):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name} is {value!r}; give a whole number of at least 1.")
    elif isinstance(default, float) and not (number and 0 <= value < float("inf")):
        raise InputError(f"{name} is {value!r}; give a number that is not negative.")
