"""Tasks and algorithms of the user's own from a file: FILE.py:NAME, as the command line takes them.

Code is loaded only from a file that was named on the command line. What a run records of it is a fingerprint, so that a
run is not continued with code that has changed.
"""

import hashlib
import importlib.util
import inspect
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import cloudpickle

from moqd import algorithms, tasks
from moqd.algorithms import ALGORITHMS, Algorithm, batch_fields
from moqd.io.errors import AGAIN, InputError
from moqd.tasks import TASKS, Task

OWN: dict[str, Task] = {}
"""Tasks that were loaded, by their names."""
SPECS: list[str] = []
"""What was loaded, for `load` in other processes."""


@dataclass(frozen=True)
class OwnConfig:
    """What a run records of a task of the user's own."""

    fingerprint: str = field(default="", metadata={"hidden": True})
    """Of the file that it came from."""


def is_own(word: str) -> bool:
    """Whether it looks like FILE.py:NAME."""
    return ".py:" in word


def load(spec: str, *, accept_changes: bool = False) -> None:
    """Loads what another process has noted in `SPECS`."""
    kind, _, own = spec.partition(" ")
    {"task": load_task, "algorithm": load_algorithm}[kind](own, accept_changes=accept_changes)


def load_task(spec: str, *, accept_changes: bool = False) -> Task:
    """Loads FILE.py:NAME, which is a task or a function that makes one, and makes the task known by its name.

    With `accept_changes`, it also stands for what it was before its file changed.
    """
    code = _Code.load("task", spec, Task)
    task = code.found
    if not isinstance(task, Task) and callable(task):
        with _failing(f"{code} raised "):
            task = task()
    if not isinstance(task, Task):
        raise InputError(f"{code} is no task and makes none; give a moqd.FunctionTask or the like.")
    code.check_name(task.name, task.name in TASKS and task.name not in OWN)

    def build(config: OwnConfig) -> Task:
        code.check(config.fingerprint, accept_changes)
        return task

    OWN[task.name] = task
    loaded, policies = (build, OwnConfig(code.fingerprint)), task.policy is not None
    TASKS[task.name] = tasks.Entry(f"from {code.path.name}", lambda: loaded, policies=policies)
    code.note(spec)
    return task


def load_algorithm(spec: str, *, accept_changes: bool = False) -> str:
    """Loads FILE.py:NAME and makes the algorithm known; its name, which this gives, is NAME with hyphens.

    NAME is a function (name, config, task) -> Algorithm. The annotation of `config` is a frozen dataclass whose fields
    all have defaults: the algorithm's options.
    """
    code = _Code.load("algorithm", spec, Algorithm)
    options, name = _options_of(code), code.name.replace("_", "-")
    code.check_name(name, name in ALGORITHMS and not hasattr(ALGORITHMS[name].config, "fingerprint"))

    @dataclass(frozen=True, kw_only=True)
    class Options(options):  # type: ignore[misc]
        fingerprint: str = field(default=code.fingerprint, metadata={"hidden": True})
        """Of the file that it came from."""

    described = options.__doc__ and not options.__doc__.startswith(f"{options.__name__}(")  # as dataclass does itself
    Options.__doc__ = options.__doc__ if described else f"Options of {name}."

    def build(name: str, config: Any, task: Task) -> Algorithm:
        code.check(config.fingerprint, accept_changes)
        algorithm = code.found(name, config, task)
        if not isinstance(algorithm, Algorithm):
            raise InputError(f"{code} gave {algorithm!r}; return a moqd.Algorithm.")
        return algorithm

    summary = inspect.getdoc(code.found) or f"from {code.path.name}"
    ALGORITHMS[name] = algorithms.Entry(summary.splitlines()[0], lambda: (build, Options()), name)
    code.note(spec)
    return name


def _options_of(code: "_Code") -> type:
    """The dataclass of an algorithm's options."""
    parameters = list(inspect.signature(code.found).parameters) if inspect.isfunction(code.found) else []
    options = get_type_hints(code.found).get(parameters[1]) if len(parameters) == 3 else None
    if not is_dataclass(options) or not isinstance(options, type) or not options.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise InputError(
            f"{code} is not a function (name, config: Config, task) -> Algorithm; give one, with a frozen dataclass "
            "as the annotation of its config."
        )
    where = f"{options.__name__} of {str(code.path)!r}"
    try:
        options()
    except TypeError as error:
        raise InputError(f"{where} has a field without a default; give it one.") from error
    if not batch_fields(options):
        raise InputError(
            f"{where} does not say how many offspring there are in an iteration; give it a field whose name ends in "
            "_batch, such as ga_batch."
        )
    return options


class _Code(NamedTuple):
    """Something in a file."""

    kind: str
    path: Path
    name: str
    found: Any
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.name!r} of {str(self.path)!r}"

    @classmethod
    def load(cls, kind: str, spec: str, of: type) -> "_Code":
        file, _, name = spec.rpartition(":")
        path = Path(file or spec)
        if not file or path.suffix != ".py" or not name.isidentifier():
            raise InputError(
                f"--{kind} is {spec!r}; give the file and the name of the {kind} in it, such as my{kind}.py:{kind}."
            )
        if not path.is_file():
            raise InputError(f"--{kind} is {spec!r}, but there is no file {str(path)!r}.")
        module = _module(path)
        if not hasattr(module, name):
            there = [key for key, value in vars(module).items() if _is(value, of)]
            raise InputError(f"{str(path)!r} has no {name!r}; the {kind}s in it: {', '.join(sorted(there)) or 'none'}.")
        return cls(kind, path, name, getattr(module, name), hashlib.sha256(path.read_bytes()).hexdigest()[:16])

    def check_name(self, name: str, is_taken: bool) -> None:
        if is_taken:
            raise InputError(f"the {self.kind} {self} is named {name!r}, as one of moqd's is; give it another name.")

    def check(self, fingerprint: str, accept_changes: bool) -> None:
        """That a run which recorded this fingerprint was made with the same file."""
        if fingerprint != self.fingerprint and not accept_changes:
            raise InputError(
                f"{str(self.path)!r} has changed since the run was made (fingerprint {fingerprint}, now "
                f"{self.fingerprint}); use the file as it was, or add --accept-changes if the {self.kind} is the same."
            )

    def note(self, spec: str) -> None:
        """For other processes, and for the commands that go on."""
        SPECS.append(f"{self.kind} {self.path.resolve()}:{self.name}")
        AGAIN.append(f"--{self.kind} {shlex.quote(spec)}")


def _is(value: Any, of: type) -> bool:
    """Whether it is one, or a function that says that it makes one."""
    return isinstance(value, of) or getattr(value, "__annotations__", {}).get("return") in (of, of.__name__)


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """What goes wrong in the user's code is said in one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{what}{type(error).__name__}: {error}.") from error


def _module(path: Path) -> Any:
    """The file as a module; its functions are sent to other processes with all that they refer to."""
    name, folder = f"moqd_own_{path.stem}", str(path.resolve().parent)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # for what stands beside it
    with _failing(f"{str(path)!r} could not be loaded: "):
        spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return module
