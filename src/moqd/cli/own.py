"""Code of the user's own on the command line: every command takes `--task` and `--algorithm FILE.py:NAME`."""

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
    """Use your own code even if its file has changed since a run or a study was started with it."""


@dataclass(frozen=True)
class OwnCode(OwnOptions):
    """A task or an algorithm of your own."""

    algorithm: tuple[str, ...] = field(default=(), metadata={"repeated": True})
    """The file and the name of an algorithm of your own, such as mine.py:mine; it may be given several times."""


def parse(program: str, options: type[Options], arguments: Sequence[str], out: Console) -> Options:
    """The options of a command whose options are always the same; the user's own code is loaded."""
    line = Line(program, arguments).match(options, OwnCode)
    found, own = line.build(out, options, OwnCode)
    load_code(own)
    return found


def load_code(own: OwnCode) -> None:
    """What is named by --task and --algorithm is known by its name from now on."""
    _check_changes(own, bool(own.task or own.algorithm))
    load_tasks(own)
    for spec in own.algorithm:
        from moqd.runs.user_code import load_algorithm  # here, because JAX takes its time

        load_algorithm(spec, accept_changes=own.accept_changes)


def _check_changes(own: OwnOptions, there_is_some: bool) -> None:
    if own.accept_changes and not there_is_some:
        raise InputError(
            "--accept-changes is about code of your own; give it with --task FILE.py:NAME or --algorithm FILE.py:NAME."
        )


def named_algorithm(line: Line) -> str | None:
    """The algorithm that a line names by --algorithm: one of moqd's, or FILE.py:NAME, which is loaded."""
    from moqd.algorithms import ALGORITHMS
    from moqd.runs.user_code import is_own, load_algorithm

    word = line.word("--algorithm")
    if word is not None and is_own(word):
        return load_algorithm(word, accept_changes=line.has("--accept-changes"))
    if word is not None and word not in ALGORITHMS:
        raise unknown_name("algorithm", word, ALGORITHMS)
    return word


def load_tasks(own: OwnOptions, *specs: str) -> list[Any]:
    """The tasks that are named by --task, and these; from now on they are known by their names."""
    specs = (*own.task, *specs)
    if not specs:
        return []
    from moqd.runs.user_code import load_task  # here, because JAX takes its time

    return [load_task(spec, accept_changes=own.accept_changes) for spec in specs]


def named_task(line: Line, task: str | None) -> str | None:
    """The task that a line is about, by name: one of moqd's, or FILE.py:NAME, which may also be given by --task."""
    from moqd.runs.user_code import is_own
    from moqd.tasks import TASKS

    own = OwnOptions(**line.values(OwnOptions))
    if task is not None and own.task:
        raise InputError(f"{task!r} and --task {own.task[0]} are two tasks; give one of the two.")
    specs = [task] if task is not None and is_own(task) else []
    _check_changes(own, bool(specs or own.task or is_own(line.word("--algorithm") or "")))
    loaded = load_tasks(own, *specs)
    if loaded:
        return loaded[0].name
    if task is not None and task not in TASKS:
        raise unknown_name("task", task, TASKS)
    return task
