"""What is imported when it is first used, so that what needs little, such as the command line's lists, starts at once:
names of packages (PEP 562), and tasks and algorithms by their names."""

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
        module, there = names.get(name, (package, name))
        found = _submodule(package, name) if module == package else getattr(import_module(module), there)
        setattr(sys.modules[package], name, found)
        return found

    def listed() -> list[str]:
        return sorted({*(name for name in vars(sys.modules[package]) if name.startswith("__")), *names})

    return get, listed


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


def later(module: str, name: str) -> Any:
    """What an object needs to show itself, which is in a package that knows the object, and not the reverse."""
    return getattr(import_module(module), name)


Loaded = tuple[Callable[..., Any], Any]
"""A function that builds a task or an algorithm, and the config with its defaults."""


@dataclass(frozen=True)
class Listed:
    """What a name of a task or an algorithm stands for."""

    summary: str
    load: Callable[[], Loaded]
    """Imports what is needed."""

    @property
    def build(self) -> Callable[..., Any]:
        return self.load()[0]

    @property
    def config(self) -> Any:
        return self.load()[1]


def loader(module: str, function: str, config: str, *first: Any, **changes: Any) -> Callable[[], Loaded]:
    """By the names of a module, of a function in it with these first arguments, and of a config with these changes."""

    def load() -> Loaded:
        found = import_module(module)
        return partial(getattr(found, function), *first), getattr(found, config)(**changes)

    return load
