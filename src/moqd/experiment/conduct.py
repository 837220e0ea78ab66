"""Carrying a study out: runs that are missing are made, those that failed are tried again, the others stay."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moqd.algorithms import ALGORITHMS
from moqd.errors import InputError, StorageError
from moqd.experiment.job import Ending, Job
from moqd.experiment.progress import RUNS, Standing, folder_of, standing_of
from moqd.experiment.run import OUTCOME
from moqd.experiment.study import PlannedRun, Study
from moqd.experiment.timing import TIMING
from moqd.experiment.workers import Workers
from moqd.files import FORMAT, own_folder, read_json, write_json
from moqd.tasks import TASKS

STUDY = "study.json"
"""What the study consists of, in its folder."""
TIMED = ("mome-p2c", "mome-pgx")
"""The algorithms whose parts are timed, as in the paper."""


class Watcher:
    """Something that is told how a study goes; override what you need."""

    def on_start(self, run: PlannedRun) -> None:
        """When a run is handed to the workers."""

    def on_end(self, run: PlannedRun, ending: Ending) -> None:
        """When it has ended, in whatever way."""

    def on_look(self) -> None:
        """Every second or so."""

    def on_timing(self, run: PlannedRun) -> None:
        """Before the parts of its algorithm are timed."""


@dataclass(frozen=True)
class Manner:
    """How runs are made, on which their results do not depend (but for the number of cores, in their last bits)."""

    cores: int
    checkpoint_minutes: float
    timing: bool


def write_study(root: Path, study: Study) -> Path:
    """The folder of the study, with all that it consists of."""
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{str(root)!r} could not be made ({error.strerror}).") from error
    own_folder(root / RUNS)
    folder = own_folder(root / study.name)
    runs = [
        {"task": run.task, "algorithm": run.algorithm, "seed": run.seed, "settings": run.settings} for run in study.runs
    ]
    content = {
        "format": FORMAT,
        "name": study.name,
        "tasks": study.tasks,
        "algorithms": study.algorithms,
        "seeds": study.seeds,
        "reference": study.reference,
        "runs": runs,
    }
    text = json.loads(json.dumps(content))
    path = folder / STUDY
    if not path.exists() or read_json(path, "a study") != text:
        write_json(path, text)
    return folder


def stored_study(folder: Path) -> Study:
    """What `write_study` wrote."""
    path = folder / STUDY
    content = read_json(path, "a study of moqd")
    try:
        runs = tuple(_stored_run(run) for run in content["runs"])
        tasks, algorithms = tuple(content["tasks"]), tuple(content["algorithms"])
        study = Study(folder.name, tasks, algorithms, tuple(content["seeds"]), content["reference"], runs)
        consistent = {run.task for run in runs} == set(tasks) and {run.algorithm for run in runs} == set(algorithms)
        if not runs or not consistent or study.reference not in algorithms:
            raise ValueError("its runs are not those of its tasks and algorithms")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{str(path)!r} is damaged ({error}).") from error
    return study


def _stored_run(run: Mapping[str, Any]) -> PlannedRun:
    """Of tasks and algorithms that there are: its folder is named after them."""
    settings = run["settings"]
    if not isinstance(settings, dict) or settings["task"]["name"] != run["task"] or run["task"] not in TASKS:
        raise ValueError(f"unknown task {run['task']!r}")
    if settings["algorithm"]["name"] not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {settings['algorithm']['name']!r}")
    for name, least in (("iterations", 0), ("seed", 0), ("log_every", 1)):
        if type(settings[name]) is not int or settings[name] < least:
            raise ValueError(f"{name} is {settings[name]!r}")
    if settings["seed"] != run["seed"]:
        raise ValueError("a seed that is not that of its settings")
    return PlannedRun(str(run["task"]), str(run["algorithm"]), int(run["seed"]), settings)


def conduct(
    study: Study,
    root: Path,
    workers: Workers,
    manner: Manner,
    watcher: Watcher,
    stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Makes all runs of the study that are not done; whether it was done to the end, that is, not asked to stop."""
    waiting = [run for run in study.runs if standing_of(root, run).state != "done"]
    for run in waiting:
        _forget_failure(root, run)
    if _all_of(waiting, False, root, workers, manner, watcher, stopping) and manner.timing:
        timed = [run for run in _to_time(study) if _needs_timing(root, run)]
        for run in timed:  # one after the other, so that they do not disturb each other
            watcher.on_timing(run)
            _all_of([run], True, root, workers, manner, watcher, stopping)
    return not stopping()


def _all_of(
    runs: list[PlannedRun],
    timing: bool,
    root: Path,
    workers: Workers,
    manner: Manner,
    watcher: Watcher,
    stopping: Callable[[], bool],
) -> bool:
    """Whether all have ended, in whatever way, and nobody asked to stop."""
    under_way = {run.key: run for run in runs}
    for run in runs:
        workers.submit(run.key, _job(root, run, manner, timing))
        watcher.on_start(run)
    told = False
    while under_way:
        if stopping() and not told:
            told = True
            workers.stop()
        for key, ending in workers.ended(seconds=1.0):
            run = under_way[key]
            if ending is Ending.BUSY and not told:  # another study is at it: wait for what comes of it
                workers.submit(key, _job(root, run, manner, timing))
                continue
            del under_way[key]
            if not timing:
                watcher.on_end(run, ending)
        watcher.on_look()
    return not told


def _job(root: Path, run: PlannedRun, manner: Manner, timing: bool) -> Job:
    folder = str(folder_of(root, run).absolute())
    return Job(folder, run.settings, manner.cores, manner.checkpoint_minutes, timing)


def _forget_failure(root: Path, run: PlannedRun) -> None:
    (folder_of(root, run) / OUTCOME).unlink(missing_ok=True)


def _to_time(study: Study) -> list[PlannedRun]:
    """The first seed of each algorithm that is timed, on each task."""
    first: dict[tuple[str, str], PlannedRun] = {}
    for run in study.runs:
        if run.settings["algorithm"]["name"] in TIMED:
            first.setdefault((run.task, run.algorithm), run)
    return list(first.values())


def _needs_timing(root: Path, run: PlannedRun) -> bool:
    folder = folder_of(root, run)
    standing: Standing = standing_of(root, run)
    return standing.state == "done" and not (folder / TIMING).exists()
