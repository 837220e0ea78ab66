"""`run` and `resume`: an algorithm on a task, from the arguments or the folder of a run to its result."""

import os
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from moqd.algorithms import Algorithm, make_algorithm
from moqd.core.archive import Archive
from moqd.io.errors import EvaluationError, InputError, MissingFileError, to_repeat, to_resume
from moqd.io.options import checked_seed, whole_number
from moqd.runs.checkpoint import clean_up, oldest_iteration
from moqd.runs.compilation import use_cache
from moqd.runs.config import AlgorithmConfig, RunConfig, Surroundings, TaskConfig
from moqd.runs.control import Control
from moqd.runs.folder import (
    ARCHIVE,
    CONFIG,
    INITIAL,
    LOG,
    OUTCOME,
    TIMING,
    Run,
    last_row,
    read_archive,
    read_config,
    saved_iteration,
    write_archive,
)
from moqd.runs.journal import FAILURES, JOURNAL
from moqd.runs.ledger import EVALUATIONS, read_evaluations
from moqd.runs.lock import LOCK, RunLock
from moqd.runs.loop import Loop
from moqd.runs.presets import iterations_for
from moqd.runs.session import Callback, Session
from moqd.tasks import FunctionTask, Task

InitFrom = Run | Archive | str | os.PathLike[str]
"""What a run may begin from: another run, its archive, or the folder or file of one."""


def run(
    algorithm: Algorithm | str,
    task: Task,
    *,
    iterations: int | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
    log_every: int = 10,
    checkpoint_minutes: float = 5.0,
    snapshot_every: int | None = None,
    init_from: InitFrom | None = None,
    control: Control | None = None,
    progress: bool = False,
    **options: Any,
) -> Run:
    """Runs an algorithm on a task for a number of `iterations`, or of `evaluations` (in whole iterations).

    The algorithm is one that `make_algorithm` made, or a name, of which `options` may be given: ga_batch=64. A first
    batch of random solutions comes on top of either, and before it the solutions of the archive `init_from`, if there
    is one; of an `init_from` that is a run of the same function on the host, no design is evaluated that was evaluated
    there. With `out`, the run is written to that folder, with a checkpoint every `checkpoint_minutes` (0: after every
    chunk of iterations) from which `resume` continues it, and the archive's objectives and features every
    `snapshot_every` iterations. `control` stops it from another thread. `progress` shows how it goes.
    """
    use_cache()
    if isinstance(algorithm, str) and isinstance(task, Task):
        algorithm, options = make_algorithm(algorithm, task, **options), {}
    if not isinstance(algorithm, Algorithm) or not isinstance(task, Task):
        raise InputError("run takes an algorithm and then a task: run(make_algorithm('mome', task), task, ...).")
    if options:
        raise InputError(f"run knows no {', '.join(options)}; options of an algorithm are given to make_algorithm.")
    seed = checked_seed(seed)
    log_every = whole_number("log_every", log_every, least=1)
    if snapshot_every is not None:
        snapshot_every = whole_number("snapshot_every", snapshot_every, least=1)
    if not (isinstance(checkpoint_minutes, (int, float)) and checkpoint_minutes >= 0):
        raise InputError(f"checkpoint_minutes is {checkpoint_minutes!r}; give a number that is not negative.")
    start = None if init_from is None else _archive_from(init_from, task)
    loop = Loop(algorithm, task, seed)
    _inherit(loop, init_from, task)
    config = RunConfig(
        TaskConfig.of(task),
        AlgorithmConfig.of(algorithm.name, algorithm.config),
        seed,
        _budget(iterations, evaluations, loop.batch),
        log_every=log_every,
        snapshot_every=snapshot_every,
        checkpoint_minutes=float(checkpoint_minutes),
        initial_solutions=0 if start is None else int(np.sum(np.asarray(start.valid))),
        batch=loop.batch,
        surroundings=Surroundings.here(),
    )
    with ExitStack() as stack:
        if progress:
            from rich.console import Console

            from moqd.runs.display import Display

            # In a notebook plain lines, which need no ipywidgets and are one output.
            callbacks = [stack.enter_context(Display(Console(force_jupyter=False))), *callbacks]
        if out is None:
            return Session(loop, task, config, callbacks, control).go(start)
        folder = new_folder(Path(out))
        lock = stack.enter_context(RunLock(folder))
        new_folder(folder)  # still: another process may have been faster
        if start is not None:
            write_archive(folder / INITIAL, start)
        session = Session(loop, task, config, callbacks, control, lock)
        session.begin(folder)
        try:
            return session.go(start)
        except (InputError, EvaluationError):
            if not session.rows:  # nothing was found; so that it can be started again when it is fixed
                (lock.check() / CONFIG).unlink(missing_ok=True)  # unless another process has taken the folder over
            raise


def resume(
    path: str | os.PathLike[str],
    *,
    task: Task | None = None,
    algorithm: Algorithm | None = None,
    iterations: int | None = None,
    callbacks: Sequence[Callback] = (),
    control: Control | None = None,
) -> Run:
    """Continues a run from its newest checkpoint that is whole, to the end that it would have had all along.

    `iterations` is a new total, which extends a run that is finished. A task or an algorithm of the user's own has to
    be given again: files never hold code.
    """
    use_cache()
    folder = Path(path)
    config = read_config(folder)
    task = config.task.make_or_check(folder, task)
    algorithm = config.algorithm.make_or_check(folder, task, algorithm)
    wanted = config.iterations if iterations is None else whole_number("iterations", iterations, least=0)
    with RunLock(folder) as lock:
        clean_up(folder)
        if oldest_iteration(folder) < 0 and _is_finished(folder, config.iterations):
            raise InputError(f"the run in {str(folder)!r} is finished and has no checkpoint, {to_repeat(folder)}")
        (folder / OUTCOME).unlink(missing_ok=True)  # what came of it before counts no more
        config = replace(config, iterations=wanted)
        start = read_archive(folder / INITIAL, task)[0] if config.initial_solutions else None
        session = Session(Loop(algorithm, task, config.seed), task, config, callbacks, control, lock)
        return session.go(start, resuming=True)


def _is_finished(folder: Path, iterations: int) -> bool:
    """Whether the archive of the last iteration is there, and whole."""
    try:
        reached = saved_iteration(folder)
    except InputError:
        return False
    return (last_row(folder)[0] if reached is None else reached) >= iterations


def _archive_from(source: InitFrom, task: Task) -> Archive:
    """The archive to begin with, which must be one of such solutions as the task has."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            read_config(path).task.make_or_check(path, task)
            path = path / ARCHIVE
        try:
            archive, _ = read_archive(path, task)
        except MissingFileError as error:
            raise InputError(f"init_from: {str(error).rstrip('.')}, so there is nothing yet to begin with.") from error
    else:
        archive = source.archive if isinstance(source, Run) else source
    expected = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    shapes = [leaf.shape[2:] for leaf in jax.tree.leaves(archive.genotype)]
    wanted = [leaf.shape[1:] for leaf in jax.tree.leaves(expected)]
    if shapes != wanted or archive.fitness.shape[2] != task.num_objectives:
        raise InputError(
            f"init_from holds solutions of shapes {shapes} with {archive.fitness.shape[2]} objectives, but task "
            f"{task.name!r} has {wanted} and {task.num_objectives}; give an archive of the same task."
        )
    if not np.any(np.asarray(archive.valid)):
        raise InputError("init_from is an archive without solutions; give one that has some.")
    return archive


def _inherit(loop: Loop, source: InitFrom | None, task: Task) -> None:
    """Of a run of the same function all that it evaluated; an archive alone does not say what it was made by."""
    if loop.ledger is None or not isinstance(task, FunctionTask):
        return
    if isinstance(source, Run):
        config, folder, known = source.config, source.path, source._evaluations
    elif isinstance(source, str | os.PathLike) and not Path(source).is_file():
        config, folder, known = read_config(Path(source)), Path(source), None
    else:
        return
    if TaskConfig.of(task).difference(config.task):
        return
    if known is None and folder is not None:
        known = read_evaluations(folder, task)
    if known is not None and known.function and known.function == loop.ledger.evaluations.function:
        loop.ledger.inherit(known)


def _budget(iterations: int | None, evaluations: int | None, batch: int) -> int:
    if (iterations is None) == (evaluations is None):
        raise InputError(
            f"iterations is {iterations} and evaluations is {evaluations}; give one of the two and not the other."
        )
    if iterations is not None:
        return whole_number("iterations", iterations, least=0)
    assert evaluations is not None
    needed = iterations_for(whole_number("evaluations", evaluations, least=0), batch)
    if needed * batch != evaluations:
        warnings.warn(
            f"evaluations={evaluations} is not a multiple of the batch of {batch}: {(needed + 1) * batch} will be "
            "made, the first, random batch included.",
            stacklevel=3,
        )
    return needed


def new_folder(folder: Path) -> Path:
    """Makes the folder of a run, in which there must be none yet."""
    try:
        taken = folder.exists() and (not folder.is_dir() or not all(map(_is_left_over, folder.iterdir())))
        if not taken:
            folder.mkdir(parents=True, exist_ok=True)
            return folder
    except OSError as error:
        raise InputError(
            f"out is {str(folder)!r}, which cannot be made ({error.strerror}); give a folder that you may write to."
        ) from error
    if (folder / CONFIG).exists():
        raise InputError(
            f"out is {str(folder)!r}, which holds a run already; continue that with: {to_resume(folder)}, or write to "
            f"another folder, such as --out {_free(folder)}"
        )
    raise InputError(f"out is {str(folder)!r}, which is there already; give the name of a new folder.")


def _is_left_over(path: Path) -> bool:
    """Whether it is of a study, or of a process that was killed before it had written its config."""
    return path.name in (LOCK, INITIAL, EVALUATIONS, OUTCOME, LOG, TIMING, FAILURES, JOURNAL) or (
        path.name.startswith(".") and path.name.endswith(".tmp")
    )


def _free(folder: Path) -> Path:
    folder = folder if folder.name else folder.resolve()
    return next(path for i in range(2, 10**6) if not (path := folder.with_name(f"{folder.name}-{i}")).exists())
