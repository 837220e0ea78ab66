"""Whether two functions compute the same: a fingerprint of their code and of what it refers to."""

import functools
import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes, range, PurePath)
CONTAINERS = (tuple, list, dict, set, frozenset)
CODE = ("co_code", "co_exceptiontable", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags")
"""All that a piece of code does, except for its constants; where it stands does not matter."""


def fingerprint(*values: Any) -> bytes:
    """The same only for functions and values that are the same; empty where something in them cannot be looked into.

    A function is its code, its defaults, and what it refers to in its closure and among the globals of its module:
    other functions, values, and modules, of which those of the user's own count with their text and others with their
    version. Other objects may be anything tomorrow, so nothing is said of a function that refers to one.
    """
    sha = hashlib.sha256(sys.version.encode())  # whose code may be another for the same text
    try:
        for token in _tokens(values, {}):
            sha.update(len(token).to_bytes(8, "little") + token)
    except Exception:  # whatever an object does that is asked what it is
        return b""
    return sha.digest()


def _tokens(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """`seen` are those that may come up again within themselves."""
    if type(value) in PLAIN or isinstance(value, PurePath):
        yield f"{type(value).__name__} {value!r}".encode()
    elif id(value) in seen:
        yield f"seen {list(seen).index(id(value))}".encode()
    elif (name := _name_of_installed(value)) is not None:
        yield name.encode()
    elif type(value) in CONTAINERS:
        yield f"{type(value).__name__} of {len(value)}".encode()
        yield from _items(value, seen)
    elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield f"{value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, CodeType):
        yield from _tokens((*(getattr(value, part) for part in CODE), value.co_consts), seen)
    elif isinstance(value, FunctionType):
        seen[id(value)] = value
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        names = sorted(_names(value.__code__) & value.__globals__.keys())
        used = [(name, value.__globals__[name]) for name in names]
        yield from _tokens((value.__code__, value.__defaults__, value.__kwdefaults__, cells, used), seen)
    elif isinstance(value, functools.partial):
        yield from _tokens(("partial", value.func, value.args, value.keywords), seen)
    elif isinstance(value, ModuleType):
        seen[id(value)] = value
        yield from _texts(value)
    elif isinstance(value, type) and value.__module__ in sys.modules:
        yield value.__qualname__.encode()
        yield from _tokens(sys.modules[value.__module__], seen)
    elif hasattr(value, "__wrapped__") and _name_of_installed(type(value)) is not None:  # as by functools.cache
        yield from _tokens((type(value), value.__wrapped__), seen)
    else:
        raise TypeError(f"a {type(value).__name__} cannot be looked into")


def _items(container: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    if isinstance(container, set | frozenset):  # whose order is another in every process
        yield from sorted(b"".join(_tokens(item, seen)) for item in container)
        return
    if not isinstance(container, tuple):
        seen[id(container)] = container
    items: Iterable[Any] = container.items() if isinstance(container, dict) else container
    for item in items:
        yield from _tokens(item, seen)


def _names(code: CodeType) -> set[str]:
    """What it refers to, with what functions within it refer to (and some attributes, which do no harm)."""
    return set(code.co_names).union(*(_names(part) for part in code.co_consts if isinstance(part, CodeType)))


def _name_of_installed(value: Any) -> str | None:
    """The name and version of something that belongs to Python or an installed package, if it is to be found there."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if not isinstance(module, str) or module not in sys.modules:
        return None
    package = sys.modules.get(module.partition(".")[0])
    file = getattr(package, "__file__", None) or ""
    is_installed = {"site-packages", "dist-packages"} & set(Path(file).parts)
    if not is_installed and module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    version = getattr(package, "__version__", "")
    if isinstance(value, ModuleType):
        return f"module {module} {version}"
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    found: Any = sys.modules[module]
    for part in str(name).split("."):
        found = getattr(found, part, None)
    return f"{module}.{name} {version}" if found is value else None


def _texts(module: ModuleType) -> Iterator[bytes]:
    """The text of a module, or of all modules of a package."""
    file = getattr(module, "__file__", None)
    if file is None or Path(file).suffix != ".py":
        raise TypeError(f"module {module.__name__} has no text")
    folder = Path(file).parent
    for path in sorted(folder.rglob("*.py")) if hasattr(module, "__path__") else [Path(file)]:
        yield path.relative_to(folder).as_posix().encode()
        yield path.read_bytes()
