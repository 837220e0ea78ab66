"""Packages whose names are imported when they are first used (PEP 562), so that what needs little starts at once."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, for what its file imports below `if TYPE_CHECKING:`, and submodules."""
    names = {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for block in ast.parse(Path(file).read_text(encoding="utf-8")).body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }

    def get(name: str) -> Any:
        if name in names:
            module, there = names[name]
            found = getattr(import_module(module), there)
        else:
            found = _submodule(package, name)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *names})


def _submodule(package: str, name: str) -> Any:
    path = f"{package}.{name}"
    missing = AttributeError(f"module {package!r} has no attribute {name!r}")
    if name.startswith("__"):
        raise missing
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        raise missing from None
