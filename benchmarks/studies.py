"""What a study costs beside its runs, and whether many small workers are as good as one large one.

Eight equal runs (hopper-2, MOME-P2C with the small preset, a few iterations) are made as a study by one worker with all
cores, and by as many workers as there are cores; the programs are in the cache already. What a study adds to a run is
what its process does before and after: starting Python, importing, building the task.
"""

import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from moqd.core.devices import num_cores
from moqd.study.execute import ExecutionOptions, StudyCallback, execute, write_study
from moqd.study.plan import Study, named_study
from moqd.study.status import standings_of
from moqd.study.workers import LocalWorkers

RUNS, ITERATIONS = 8, 6


class Measured(NamedTuple):
    """A study, measured."""

    workers: int
    cores: int
    seconds: float
    inside: float
    """Seconds of the runs themselves, as their metrics say, summed."""

    @property
    def overhead(self) -> float:
        """Of each run: what the workers were not running in."""
        return (self.seconds * self.workers - self.inside) / RUNS


def measure() -> list[Measured]:
    """By one worker, and by one for each core."""
    cores = num_cores()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for workers in (1, cores):  # so that all is compiled
            _take(_study(2), workers, cores // workers)
        return [_take(_study(RUNS), workers, cores // workers) for workers in (1, cores)]


def _study(runs: int) -> Study:
    return named_study(
        "small-main", tasks=["hopper-2"], algorithms=["mome-p2c"], seeds=range(runs), iterations=ITERATIONS
    )


def _take(study: Study, workers: int, cores: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_study(root, study)
        start = time.perf_counter()
        execute(study, root, LocalWorkers(workers), ExecutionOptions(cores, 5.0, False), StudyCallback())
        seconds = time.perf_counter() - start
        standings = standings_of(root, study)
        assert all(standing.state == "done" for standing in standings)
        return Measured(workers, cores, seconds, sum(standing.seconds for standing in standings))
