"""Packages that only some people need: the extras of pyproject.toml."""

from importlib import import_module
from typing import Any

from moqd.io.errors import InputError


def need(module: str, extra: str, what: str) -> Any:
    """The module; if it is not installed, the error says which extra brings what `what` needs."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # something else is missing
        raise InputError(
            f"{what} needs the package {module.partition('.')[0]!r}, which is not installed; install it with: "
            f"pip install 'moqd[{extra}]'"
        ) from error
