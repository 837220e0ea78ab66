"""`run` and `resume`: an algorithm on a task, from the arguments or the folder of a run to its result."""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from moqd.algorithms import Algorithm, make_algorithm
from moqd.algorithms.algorithm import check_feature_bounds
from moqd.io.errors import InputError, to_repeat, to_resume
from moqd.io.options import checked_seed, whole_number
from moqd.runs.checkpoint import clean_up, oldest_iteration
from moqd.runs.compilation import use_cache
from moqd.runs.config import (
    MOST_ITERATIONS,
    AlgorithmConfig,
    RunConfig,
    Surroundings,
    TaskConfig,
    usual_log_every,
)
from moqd.runs.control import Control
from moqd.runs.folder import (
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
)
from moqd.runs.initial import InitFrom, Start, beginning
from moqd.runs.journal import FAILURES, JOURNAL
from moqd.runs.ledger import EVALUATIONS
from moqd.runs.lock import LOCK, RunLock
from moqd.runs.loop import Loop
from moqd.runs.presets import iterations_for
from moqd.runs.session import Callback, Session
from moqd.tasks import Task, make_task


@overload
def run(
    algorithm: Algorithm | str,
    task: Task | str,
    *,
    iterations: int | None = None,
    evaluations: int | None = None,
    minutes: float | None = None,
    env_steps: int | None = None,
    patience: int | None = None,
    seed: int = 0,
    seeds: None = None,
    out: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
    log_every: int | None = None,
    checkpoint_minutes: float = 5.0,
    snapshot_every: int | None = None,
    start: Start | None = None,
    init_from: InitFrom | None = None,
    control: Control | None = None,
    progress: bool = False,
    **options: Any,
) -> Run: ...


@overload
def run(algorithm: Algorithm | str, task: Task | str, *, seeds: Sequence[int], **settings: Any) -> list[Run]: ...


def run(
    algorithm: Algorithm | str,
    task: Task | str,
    *,
    iterations: int | None = None,
    evaluations: int | None = None,
    minutes: float | None = None,
    env_steps: int | None = None,
    patience: int | None = None,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
    log_every: int | None = None,
    checkpoint_minutes: float = 5.0,
    snapshot_every: int | None = None,
    start: Start | None = None,
    init_from: InitFrom | None = None,
    control: Control | None = None,
    progress: bool = False,
    **options: Any,
) -> Run | list[Run]:
    """Runs an algorithm on a task until the first of its limits is reached.

    Limits are `iterations` (or `evaluations`, rounded down to whole iterations), `minutes` since the start, compiling
    included, `env_steps`: steps of the environment, the first batch's included, and `patience`: iterations without an
    improvement of the MOQD score, which is checked in every logged row.

    The algorithm is one that `make_algorithm` made, or a name with `options`: ga_batch=64. The task is one of your own,
    one that `make_task` made with options, or a name. A first batch of random solutions comes on top of all limits, as
    do the designs of `start` and the solutions of `init_from`, which precede it; designs that `init_from`, a run of the
    same function on the host, has evaluated are not evaluated again. With `seeds`, a list of runs is returned, one per
    seed. With `out`, a run is written to that folder (OUT/seed-0 ... for several), with a checkpoint every
    `checkpoint_minutes` (0: after every chunk of iterations) from which `resume` continues it, and objectives and
    features every `snapshot_every` iterations. `control` stops it from another thread, and so does a callback that
    returns True. `progress` shows how it goes.
    """
    use_cache()
    if isinstance(seeds, int):
        raise InputError(f"seeds is {seeds}; give a sequence, such as range({seeds}), or one run's seed={seeds}.")
    each = [checked_seed(one) for one in ([seed] if seeds is None else seeds)]
    if not each or len(set(each)) < len(each):
        raise InputError(f"seeds is {seeds!r}; give at least one seed, and each only once.")
    task = make_task(task) if isinstance(task, str) else task
    if not isinstance(algorithm, str | Algorithm) or not isinstance(task, Task):
        raise InputError("run takes an algorithm and then a task: run('mome', task, ...).")
    if isinstance(algorithm, Algorithm) and options:
        raise InputError(f"run knows no {', '.join(options)}; options of an algorithm are given to make_algorithm.")
    limits = _limits(iterations, evaluations, minutes, env_steps, patience)
    if log_every is not None:
        log_every = whole_number("log_every", log_every, least=1)
    if snapshot_every is not None:
        snapshot_every = whole_number("snapshot_every", snapshot_every, least=1)
    _check_minutes("checkpoint_minutes", checkpoint_minutes)
    # What is wrong is said before anything is evaluated to learn feature bounds from.
    if isinstance(algorithm, Algorithm):
        check_feature_bounds(task)
    elif not task.has_feature_bounds:
        make_algorithm(algorithm, task.within([(0.0, 1.0)] * task.num_features), **options)
    folders: list[Path | None] = [None] * len(each)
    if out is not None:
        folders = [Path(out) if seeds is None else Path(out) / f"seed-{one}" for one in each]
    for new in filter(None, folders):
        _check_new(new)
    if len(each) > 1 and task.reference_point is None:
        own = "each run takes one from its first batch, so their hypervolumes and MOQD scores cannot be compared"
        warnings.warn(f"task {task.name!r} has no reference_point: {own}.", stacklevel=2)
    task, initial, known = beginning(task, start, init_from, each[0])
    if isinstance(algorithm, str):
        algorithm = make_algorithm(algorithm, task, **options)
    loop = Loop(algorithm, task, each[0])
    if env_steps is not None and not loop.counts_steps:
        raise InputError(
            f"env_steps is {env_steps}, but task {task.name!r} counts no steps; give evaluations instead, or have its "
            "evaluate return num_steps."
        )
    if evaluations is not None:
        limits["iterations"] = _whole_iterations(evaluations, loop.batch)
    config = RunConfig(
        TaskConfig.of(task),
        AlgorithmConfig.of(algorithm.name, algorithm.config),
        each[0],
        **limits,
        log_every=usual_log_every(limits["iterations"]) if log_every is None else log_every,
        snapshot_every=snapshot_every,
        checkpoint_minutes=float(checkpoint_minutes),
        initial_solutions=0 if initial is None else int(np.sum(np.asarray(initial.valid))),
        batch=loop.batch,
        surroundings=Surroundings.here(),
    )
    runs = []
    for one, folder in zip(each, folders, strict=True):
        loop.begin(one, known)
        with _shown(callbacks, progress) as shown, _locked(folder) as lock:
            runs.append(Session(loop, task, replace(config, seed=one), shown, control, lock).go(initial))
    return runs[0] if seeds is None else runs


@contextmanager
def _locked(folder: Path | None) -> Iterator[RunLock | None]:
    """A new run's own folder, if one is given."""
    if folder is None:
        yield None
        return
    with RunLock(new_folder(folder)) as lock:
        new_folder(folder)  # still: another process may have been faster
        yield lock


def resume(
    path: str | os.PathLike[str],
    *,
    task: Task | None = None,
    algorithm: Algorithm | None = None,
    iterations: int | None = None,
    minutes: float | None = None,
    env_steps: int | None = None,
    patience: int | None = None,
    callbacks: Sequence[Callback] = (),
    control: Control | None = None,
    progress: bool = False,
) -> Run:
    """Continues a run from its newest checkpoint that is whole, to the end that it would have had all along.

    `iterations`, `minutes`, `env_steps` and `patience` extend a run that is finished: new limits from its start on,
    which replace those that it had. A task or an algorithm of the user's own has to be given again: files never hold
    code.
    """
    use_cache()
    folder = Path(path)
    config = read_config(folder)
    task = config.task.make_or_check(folder, task)
    algorithm = config.algorithm.make_or_check(folder, task, algorithm)
    limits = {}
    if (iterations, minutes, env_steps, patience) != (None, None, None, None):
        limits = _limits(iterations, None, minutes, env_steps, patience)
    with _shown(callbacks, progress) as shown, RunLock(folder) as lock:
        clean_up(folder)
        if oldest_iteration(folder) < 0 and _is_finished(folder, config.iterations):
            raise InputError(f"the run in {str(folder)!r} is finished and has no checkpoint, {to_repeat(folder)}")
        (folder / OUTCOME).unlink(missing_ok=True)  # what came of it before counts no more
        initial = read_archive(folder / INITIAL, task)[0] if config.initial_solutions else None
        session = Session(Loop(algorithm, task, config.seed), task, replace(config, **limits), shown, control, lock)
        return session.go(initial, resuming=True)


@contextmanager
def _shown(callbacks: Sequence[Callback], progress: bool) -> Iterator[Sequence[Callback]]:
    """The callbacks, and a display if the progress is to be shown."""
    if not progress:
        yield callbacks
        return
    from rich.console import Console

    from moqd.runs.display import Display

    with Display(Console(force_jupyter=False)) as display:  # plain lines in a notebook: they need no ipywidgets
        yield [display, *callbacks]


def _is_finished(folder: Path, iterations: int) -> bool:
    """Whether the archive of the last iteration is there, and whole."""
    try:
        reached = saved_iteration(folder)
    except InputError:
        return False
    return (last_row(folder)[0] if reached is None else reached) >= iterations


def _limits(
    iterations: int | None, evaluations: int | None, minutes: float | None, env_steps: int | None, patience: int | None
) -> dict[str, Any]:
    """Those of a RunConfig, before it is known how many iterations the evaluations are."""
    if iterations is not None and evaluations is not None:
        raise InputError(
            f"iterations is {iterations} and evaluations is {evaluations}; give one of the two and not the other."
        )
    if all(limit is None for limit in (iterations, evaluations, minutes, env_steps, patience)):
        raise InputError(
            "nothing says when the run ends; give iterations, evaluations, minutes, env_steps or patience."
        )
    _check_minutes("minutes", 0 if minutes is None else minutes)
    for name, count in (("iterations", iterations), ("evaluations", evaluations)):
        whole_number(name, 0 if count is None else count, least=0)
    return {
        "iterations": MOST_ITERATIONS if iterations is None else int(iterations),
        "minutes": minutes,
        "env_steps": None if env_steps is None else whole_number("env_steps", env_steps, least=1),
        "patience": None if patience is None else whole_number("patience", patience, least=1),
    }


def _whole_iterations(evaluations: int, batch: int) -> int:
    needed = iterations_for(evaluations, batch)
    if needed * batch != evaluations:
        warnings.warn(
            f"evaluations={evaluations} is not a multiple of the batch of {batch}: {needed * batch} will be made after "
            "the first, random batch.",
            stacklevel=3,
        )
    return needed


def _check_minutes(argument: str, minutes: Any) -> None:
    if isinstance(minutes, bool) or not (isinstance(minutes, (int, float)) and 0 <= minutes < float("inf")):
        raise InputError(f"{argument} is {minutes!r}; give a number that is not negative.")


def new_folder(folder: Path) -> Path:
    """Makes the folder of a run, in which there must be none yet."""
    try:
        _check_new(folder)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    except OSError as error:
        raise InputError(
            f"out is {str(folder)!r}, which cannot be made ({error.strerror}); give a folder that you may write to."
        ) from error


def _check_new(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and all(map(_is_left_over, folder.iterdir()))):
        return
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
