"""Carrying a study out: runs that are missing are made, those that failed are tried again, the others stay."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from moqd.algorithms import ALGORITHMS
from moqd.io.errors import InputError
from moqd.io.files import FORMAT, own_folder, read_json, users_folder, write_json
from moqd.io.options import restored
from moqd.runs.config import RunConfig
from moqd.runs.folder import OUTCOME
from moqd.runs.user_code import SPECS
from moqd.study.job import Ending, Job
from moqd.study.plan import PlannedRun, Study
from moqd.study.status import RUNS, folder_of, standing_of, timing_of
from moqd.study.workers import Workers

STUDY = "study.json"
"""What the study consists of, in its folder."""
TIMED = ("mome-p2c", "mome-pgx")
"""The algorithms whose parts are timed, as in the paper."""


class StudyCallback:
    """Something that is told how a study goes; override what you need."""

    def on_start(self, run: PlannedRun) -> None:
        """When a run is handed to the workers."""

    def on_end(self, run: PlannedRun, ending: Ending) -> None:
        """When it has ended, in whatever way."""

    def on_busy(self, run: PlannedRun) -> None:
        """When another process is found to be at a run, such as that of another study; this one waits for it."""

    def on_look(self) -> None:
        """Every second or so."""

    def on_timing(self, run: PlannedRun) -> None:
        """Before the parts of its algorithm are timed."""

    def on_timed(self, run: PlannedRun, ending: Ending) -> None:
        """When that has ended."""


@dataclass(frozen=True)
class ExecutionOptions:
    """How runs are made, on which their results do not depend (but for the number of cores, in their last bits)."""

    cores: int
    checkpoint_minutes: float
    timing: bool
    accept_changes: bool = False
    """Whether tasks of the user's own may be made with files that have changed since."""


def write_study(root: Path, study: Study) -> Path:
    """The folder of the study, with all that it consists of."""
    own_folder(users_folder(root) / RUNS)
    folder = own_folder(root / study.name)
    runs = [
        {"task": run.task, "algorithm": run.algorithm, "seed": run.seed, "settings": run.config.settings()}
        for run in study.runs
    ]
    content = json.loads(json.dumps({"format": FORMAT, **vars(study), "runs": runs}))
    path = folder / STUDY
    if not path.exists() or read_json(path, "a study") != content:
        write_json(path, content)
    return folder


def stored_study(folder: Path) -> Study:
    """What `write_study` wrote."""
    path = folder / STUDY
    content = read_json(path, "a study of moqd")
    try:
        runs = tuple(_stored_run(run, path) for run in content["runs"])
        tasks, algorithms = tuple(content["tasks"]), tuple(content["algorithms"])
        study = Study(folder.name, tasks, algorithms, tuple(content["seeds"]), content["reference"], runs)
        grid = Counter((run.task, run.algorithm, run.seed) for run in runs)
        planned = Counter(of for task in tasks for of in product([task], algorithms, study.seeds_of(task)))
        used = {run.task for run in runs}, {run.seed for run in runs}
        consistent = grid == planned and used == (set(tasks), set(study.seeds)) and study.reference in algorithms
        if not runs or not consistent:
            raise ValueError("its runs are not those of its tasks and algorithms")
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{str(path)!r} is damaged ({error}).") from error
    return study


def _stored_run(run: Mapping[str, Any], path: Path) -> PlannedRun:
    """Of tasks and algorithms that there are: its folder is named after them."""
    planned = PlannedRun(str(run["algorithm"]), RunConfig.from_settings(run["settings"], path))
    task, algorithm = planned.config.task, planned.config.algorithm
    if task.is_of_a_file and not task.is_registered:
        where = "add --task FILE.py:NAME (in Python, tasks=['FILE.py:NAME'])"
        raise InputError(f"the study is of the task {task.name!r} of your own; {where}.")
    if algorithm.is_of_a_file and algorithm.name not in ALGORITHMS:
        where = "add --algorithm FILE.py:NAME (in Python, algorithms=['FILE.py:NAME'])"
        raise InputError(f"the study is of the algorithm {algorithm.name!r} of your own; {where}.")
    if not task.is_registered or algorithm.name not in ALGORITHMS:
        raise ValueError(f"unknown {algorithm.name!r} on {task.name!r}")
    if (planned.task, planned.seed) != (run["task"], run["seed"]):
        raise ValueError("a task or seed that is not that of its settings")
    restored(ALGORITHMS[algorithm.name].config, algorithm.options, f"algorithm {algorithm.name!r}")
    return planned


def execute(
    study: Study,
    root: Path,
    workers: Workers,
    options: ExecutionOptions,
    callback: StudyCallback,
    stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Makes all runs of the study that are not done; whether it was done to the end, that is, not asked to stop."""
    waiting = [run for run in study.runs if standing_of(root, run).state != "done"]
    for run in waiting:
        with suppress(OSError):  # it may be another user's
            (folder_of(root, run) / OUTCOME).unlink(missing_ok=True)

    def make(runs: list[PlannedRun], timing: bool) -> None:
        """Until all have ended, in whatever way."""
        under_way = {run.key: run for run in runs}
        on_end = callback.on_timed if timing else callback.on_end
        for key, run in under_way.items():
            workers.submit(key, _job(root, run, options, timing))
            callback.on_start(run)
        elsewhere: set[str] = set()
        told = False
        while under_way:
            if stopping() and not told:
                told = True
                workers.stop()
            for key, ending in workers.ended(seconds=1.0):
                if ending is Ending.BUSY and not told:  # another study is at it: wait for what comes of it
                    elsewhere.add(key)
                    callback.on_busy(under_way[key])
                else:
                    on_end(under_way.pop(key), ending)
            for key in list(elsewhere):
                state = standing_of(root, under_way[key]).state
                if state == "running" and not told:
                    continue
                elsewhere.remove(key)
                if state == "done" or told:
                    on_end(under_way.pop(key), Ending.DONE if state == "done" else Ending.STOPPED)
                else:
                    workers.submit(key, _job(root, under_way[key], options, timing))
            callback.on_look()

    try:
        make(waiting, timing=False)
        for run in _to_time(study, root) if options.timing else ():
            if stopping():  # one after the other, so that they do not disturb each other
                break
            callback.on_timing(run)
            make([run], timing=True)
    except BaseException:
        workers.stop()  # or they would go on without anybody to tell them
        raise
    return not stopping()


def _job(root: Path, run: PlannedRun, options: ExecutionOptions, timing: bool) -> Job:
    folder, how = str(folder_of(root, run).absolute()), (options.cores, options.checkpoint_minutes, timing)
    return Job(folder, run.config, *how, own_code=list(SPECS), accept_changes=options.accept_changes)


def _to_time(study: Study, root: Path) -> list[PlannedRun]:
    """Of each algorithm that is timed, on each task, the first seed that is done; unless one was timed already."""
    done = defaultdict[tuple[str, str], list[PlannedRun]](list)
    for run in study.runs:
        if run.config.algorithm.name in TIMED and standing_of(root, run).state == "done":
            done[run.task, run.algorithm].append(run)
    return [runs[0] for runs in done.values() if all(timing_of(root, run) is None for run in runs)]
