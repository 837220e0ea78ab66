"""What a run has learned: its state in the newest checkpoint, which is only read."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import jax

from moqd.algorithms import Algorithm
from moqd.io.errors import InputError, to_repeat
from moqd.runs.checkpoint import CHECKPOINTS, Checkpoint, newest_checkpoint
from moqd.runs.config import RunConfig
from moqd.runs.folder import Run, read_config
from moqd.runs.loop import Loop
from moqd.tasks import Task


class Learned(NamedTuple):
    config: RunConfig
    task: Task
    algorithm: Algorithm
    checkpoint: Checkpoint

    @property
    def state(self) -> Any:
        """The algorithm's."""
        return self.checkpoint.state.state


def load_learned(
    run: Run | str | os.PathLike[str], task: Task | None = None, algorithm: Algorithm | None = None
) -> Learned:
    """Of a run, or of its folder; a task or an algorithm of the user's own has to be given again."""
    if isinstance(run, Run):
        if run.path is None:
            raise InputError("the run is not in a folder, so it has no checkpoint; make it with run(..., out=FOLDER).")
        task = run.task if task is None else task
        run = run.path
    folder = Path(run)
    config = read_config(folder)
    task = config.task.make_or_check(folder, task)
    algorithm = config.algorithm.make_or_check(folder, task, algorithm)
    loop, found = Loop(algorithm, task, config.seed), None
    if (folder / CHECKPOINTS).exists():
        found = newest_checkpoint(folder, loop.carry_shapes(), loop.place, config.identity, remove_damaged=False)
    if found is None:
        raise InputError(f"the run in {str(folder)!r} has no checkpoint, {to_repeat(folder)}")
    return Learned(config, task, algorithm, found)


def parts_of(state: Any, kind: type) -> list[Any]:
    """The parts of a state that are of a type, wherever they are in it."""
    is_one = lambda part: isinstance(part, kind)  # noqa: E731
    return [part for part in jax.tree.leaves(state, is_leaf=is_one) if is_one(part)]
