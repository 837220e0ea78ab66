"""`run`: an algorithm on a task, measured at every log point and written where the user wants it."""

import os
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moqd.algorithms import Algorithm
from moqd.errors import InputError
from moqd.experiment.loop import Loop
from moqd.experiment.store import FORMAT, MetricsFile, Run, write_archive, write_config
from moqd.metrics import archive_metrics
from moqd.tasks import Task
from moqd.types import Source


class Callback:
    """Something to do while a run goes on; override what you need."""

    def on_start(self, config: Mapping[str, Any]) -> None:
        """Before the first batch."""

    def on_log(self, row: Mapping[str, float]) -> None:
        """At every log point, with the row of metrics.csv."""

    def on_end(self, run: Run) -> None:
        """After the last iteration."""


def run(
    algorithm: Algorithm,
    task: Task,
    *,
    iterations: int | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
    log_every: int = 10,
) -> Run:
    """Runs an algorithm on a task for a number of `iterations`, or of `evaluations` (rounded up to whole iterations).

    A first batch of random solutions comes on top of either. With `out`, the run is written to that folder; when it is
    interrupted, what it has found so far is written too.
    """
    if not isinstance(algorithm, Algorithm) or not isinstance(task, Task):
        raise InputError("run takes an algorithm and then a task: run(make_algorithm('mome', task), task, ...).")
    _whole_number("seed", seed, least=0, most=2**32 - 1)
    _whole_number("log_every", log_every, least=1)
    loop = Loop(algorithm, task, seed)
    iterations = _budget(iterations, evaluations, loop.batch)
    folder = None if out is None else _new_folder(Path(out))
    config = {
        "format": FORMAT,
        "task": {
            "name": task.name,
            "options": task.options,
            "objectives": list(task.objective_names),
            "features": list(task.feature_names),
        },
        "algorithm": {"name": algorithm.name, **asdict(algorithm.config)},
        "seed": seed,
        "iterations": iterations,
        "log_every": log_every,
        "batch": loop.batch,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("moqd", "jax", "numpy")}},
        "devices": [device.device_kind for device in jax.local_devices()],
    }
    for callback in callbacks:
        callback.on_start(config)

    start = time.perf_counter()
    loop.start()
    config["reference_point"] = (loop.reference_point * task.direction).tolist()
    rows = [_row(loop, start)]
    file = None
    try:
        if folder is not None:
            write_config(folder, config)
            file = MetricsFile(folder / "metrics.csv", list(rows[0]))
        _log(rows[-1], file, callbacks)
        loop.stop_if_diverged()
        while loop.iteration < iterations:
            loop.advance(min((loop.iteration // log_every + 1) * log_every, iterations))
            rows.append(_row(loop, start))
            _log(rows[-1], file, callbacks)
    finally:
        if folder is not None:
            write_archive(folder, loop.archive)
        if file is not None:
            file.close()
    metrics = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    archive = loop.archive
    del loop.carry  # what was learned and learned from: not needed any more, and large
    archive = jax.tree.map(jnp.asarray, jax.device_get(archive))  # free of the devices it was made on
    result = Run(task, config, archive, metrics, folder)
    for callback in callbacks:
        callback.on_end(result)
    return result


def _row(loop: Loop, start: float) -> dict[str, float]:
    """The columns of metrics.csv, in their order."""
    progress = loop.carry.progress
    measured = archive_metrics(loop.archive, loop.reference_point, progress.best)
    below, exact = measured.pop("below_reference"), measured.pop("hypervolume_exact")
    return {
        "iteration": float(loop.iteration),
        "evaluations": float((loop.iteration + 1) * loop.batch),
        "seconds": time.perf_counter() - start,
        **measured,
        "failed_evaluations": float(progress.failed),
        "below_reference": below,
        **{f"added_{source.name.lower()}": float(progress.added[source]) for source in Source},
        "hypervolume_exact": exact,
        **{name: float(value) for name, value in loop.metrics.items()},
    }


def _log(row: Mapping[str, float], file: MetricsFile | None, callbacks: Sequence[Callback]) -> None:
    if file is not None:
        file.append(row)
    for callback in callbacks:
        callback.on_log(row)


def _budget(iterations: int | None, evaluations: int | None, batch: int) -> int:
    if (iterations is None) == (evaluations is None):
        raise InputError(
            f"iterations is {iterations} and evaluations is {evaluations}; give one of the two and not the other."
        )
    if iterations is not None:
        return _whole_number("iterations", iterations, least=0)
    assert evaluations is not None
    needed = -(-_whole_number("evaluations", evaluations, least=0) // batch)
    if needed * batch != evaluations:
        warnings.warn(
            f"evaluations={evaluations} is not a multiple of the batch of {batch}: {needed * batch} will be made.",
            stacklevel=3,
        )
    return needed


def _new_folder(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"out is {str(folder)!r}, which is there already; give the name of a new folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"out is {str(folder)!r}, which cannot be made ({error.strerror}); give a folder that you may write to."
        ) from error
    return folder


def _whole_number(argument: str, value: int, *, least: int, most: int | None = None) -> int:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limit = "" if most is None else f" and at most {most}"
        raise InputError(f"{argument} is {value!r}; give a whole number of at least {least}{limit}.")
    return int(value)
