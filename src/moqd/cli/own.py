"""Tasks of the user's own on the command line: every command takes `--task FILE.py:NAME`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rich.console import Console

from moqd.cli.parser import Line
from moqd.io.errors import InputError, unknown_name

Options = TypeVar("Options")


@dataclass(frozen=True)
class OwnOptions:
    """A task of your own."""

    task: tuple[str, ...] = field(default=(), metadata={"repeated": True})
    """The file and the name of a task of your own, such as mytask.py:task; it may be given several times."""
    accept_changes: bool = False
    """Use the task even if its file has changed since a run or a study was started with it."""


def parse(program: str, options: type[Options], arguments: Sequence[str], out: Console) -> Options:
    """The options of a command whose options are always the same; the user's own tasks are loaded."""
    line = Line(program, arguments).match(options, OwnOptions)
    found, own = line.build(out, options, OwnOptions)
    load_tasks(own)
    return found


def load_tasks(own: OwnOptions, *specs: str) -> list[Any]:
    """The tasks that are named by --task, and these; from now on they are known by their names."""
    specs = (*own.task, *specs)
    if own.accept_changes and not specs:
        raise InputError("--accept-changes is about a task of your own; give it with --task FILE.py:NAME.")
    if not specs:
        return []
    from moqd.tasks.user_code import load_own  # here, because JAX takes its time

    return [load_own(spec, accept_changes=own.accept_changes) for spec in specs]


def named_task(line: Line, task: str | None) -> str | None:
    """The task that a line is about, by name: one of moqd's, or FILE.py:NAME, which may also be given by --task."""
    from moqd.tasks import TASKS
    from moqd.tasks.user_code import is_own

    own = OwnOptions(**line.values(OwnOptions))
    if task is not None and own.task:
        raise InputError(f"{task!r} and --task {own.task[0]} are two tasks; give one of the two.")
    loaded = load_tasks(own, *([task] if task is not None and is_own(task) else []))
    if loaded:
        return loaded[0].name
    if task is not None and task not in TASKS:
        raise unknown_name("task", task, TASKS)
    return task
