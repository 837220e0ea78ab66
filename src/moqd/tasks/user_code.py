"""Tasks of the user's own from a file: FILE.py:NAME, as the command line takes them.

Code is loaded only from a file that was named on the command line. What a run records of it is a fingerprint, so that a
run is not continued with a task that has changed.
"""

import hashlib
import importlib.util
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle

from moqd.io.errors import AGAIN, InputError
from moqd.tasks import TASKS, Entry
from moqd.tasks.task import Task

OWN: dict[str, Task] = {}
"""Those that were loaded, by their names."""
SPECS: list[str] = []
"""Where they came from, for other processes."""


@dataclass(frozen=True)
class OwnConfig:
    """What a run records of a task of the user's own."""

    fingerprint: str = field(default="", metadata={"hidden": True})
    """Of the file that it came from."""


def is_own(word: str) -> bool:
    """Whether it looks like FILE.py:NAME."""
    return ".py:" in word


def load_own(spec: str, *, accept_changes: bool = False) -> Task:
    """Loads FILE.py:NAME and makes the task known by its name.

    NAME is a task, or a function that makes one. With `accept_changes`, it also stands for what it was before its file
    changed.
    """
    file, _, name = spec.rpartition(":")
    path = Path(file or spec)
    if not file or path.suffix != ".py" or not name.isidentifier():
        raise InputError(f"--task is {spec!r}; give the file and the name of the task in it, such as mytask.py:task.")
    if not path.is_file():
        raise InputError(f"--task is {spec!r}, but there is no file {str(path)!r}.")
    task = _found(path, name)
    if task.name in TASKS and task.name not in OWN:
        raise InputError(f"the task in {spec!r} is named {task.name!r}, as one of moqd's is; give it another name.")
    fingerprint = hashlib.sha256(path.read_bytes()).hexdigest()[:16]

    def build(config: OwnConfig) -> Task:
        if config.fingerprint != fingerprint and not accept_changes:
            raise InputError(
                f"{str(path)!r} has changed since the run was made (its fingerprint was {config.fingerprint} and is "
                f"{fingerprint}); use the file as it was, or add --accept-changes if the task is still the same."
            )
        return task

    OWN[task.name] = task
    SPECS.append(f"{path.resolve()}:{name}")
    AGAIN.append(f"--task {shlex.quote(spec)}")
    config, policies = OwnConfig(fingerprint), task.policy is not None
    TASKS[task.name] = Entry(f"from {path.name}", lambda: (build, config), policies=policies)
    return task


def _found(path: Path, name: str) -> Task:
    module = _module(path)
    if not hasattr(module, name):
        known = ", ".join(sorted(key for key, value in vars(module).items() if isinstance(value, Task))) or "none"
        raise InputError(f"{str(path)!r} has no {name!r}; the tasks in it: {known}.")
    found = getattr(module, name)
    try:
        task = found if isinstance(found, Task) else found() if callable(found) else None
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name!r} of {str(path)!r} raised {type(error).__name__}: {error}.") from error
    if not isinstance(task, Task):
        raise InputError(f"{name!r} in {str(path)!r} is no task and makes none; give a moqd.FunctionTask or the like.")
    return task


def _module(path: Path) -> Any:
    """The file as a module; its functions are sent to other processes with all that they refer to."""
    name = f"moqd_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # for what stands beside it
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{str(path)!r} could not be loaded: {type(error).__name__}: {error}.") from error
    cloudpickle.register_pickle_by_value(module)
    return module
