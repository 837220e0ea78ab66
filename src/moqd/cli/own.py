"""Code of the user's own on the command line: every command takes `--task` and `--algorithm FILE.py:NAME`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rich.console import Console

from moqd.cli.parser import Line
from moqd.io.errors import InputError, known_name

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


Parsed = tuple[Options, OwnCode]


def parse(program: str, options: type[Options], arguments: Sequence[str], out: Console) -> Parsed[Options]:
    """The options of a command whose options are always the same, and the user's own code, which is loaded."""
    found, own = Line(program, arguments).match(options, OwnCode).build(out, options, OwnCode)
    specs = [f"task {spec}" for spec in own.task] + [f"algorithm {spec}" for spec in own.algorithm]
    _check_changes(own, bool(specs))
    for spec in specs:
        from moqd.runs.user_code import load  # here, because JAX takes its time

        load(spec, accept_changes=own.accept_changes)
    return found, own


def _check_changes(own: OwnOptions, there_is_some: bool) -> None:
    if own.accept_changes and not there_is_some:
        raise InputError("--accept-changes is about code of your own; give it with --task or --algorithm FILE.py:NAME.")


def named_algorithm(line: Line) -> str | None:
    """The algorithm that a line names by --algorithm: one of moqd's, or FILE.py:NAME, which is loaded."""
    from moqd.algorithms import ALGORITHMS
    from moqd.runs.user_code import is_own, load_algorithm

    word = line.word("--algorithm")
    if word is not None and is_own(word):
        return load_algorithm(word, accept_changes="--accept-changes" in line.written)
    return None if word is None else known_name("algorithm", word, ALGORITHMS)


def named_task(line: Line, task: str | None) -> str | None:
    """The task that a line is about, by name: one of moqd's, or FILE.py:NAME, which may also be given by --task."""
    from moqd.runs.user_code import is_own, load_task
    from moqd.tasks import TASKS

    own = OwnOptions(**line.values(OwnOptions))
    if task is not None and own.task:
        raise InputError(f"{task!r} and --task {own.task[0]} are two tasks; give one of the two.")
    specs = own.task or ((task,) if task is not None and is_own(task) else ())
    _check_changes(own, bool(specs or is_own(line.word("--algorithm") or "")))
    loaded = [load_task(spec, accept_changes=own.accept_changes) for spec in specs]
    if loaded:
        return loaded[0].name
    return None if task is None else known_name("task", task, TASKS)
