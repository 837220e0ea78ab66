"""What the runs of a study have given so far: all that its report is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from moqd.core.archive import Archive
from moqd.study.plan import Study
from moqd.tasks import Task


class Result(NamedTuple):
    """A run that is finished."""

    task: str
    algorithm: str
    """Its label in the study."""
    seed: int
    metrics: Mapping[str, Float[np.ndarray, "rows"]]
    """The columns of metrics.csv."""
    archive: Archive
    """With nothing but the fitness of its solutions: what the others of all runs take together may be too much."""
    reference_point: Float[np.ndarray, "objectives"]
    """In the units and the (maximised) direction of `archive.fitness`."""
    config: Mapping[str, Any]
    path: Path
    """Of the run's folder, or of its record."""


class Unfinished(NamedTuple):
    """A run that the study has planned, and of which there is no result yet."""

    task: str
    algorithm: str
    seed: int
    state: str
    """waiting, running, stopped or failed."""
    reason: str
    """Why it failed, or how far it is; may be empty."""


@dataclass(frozen=True)
class Results:
    """All of it."""

    study: Study
    results: tuple[Result, ...]
    unfinished: tuple[Unfinished, ...]
    tasks: Mapping[str, Task]
    timings: Mapping[tuple[str, str], Mapping[str, Any]]
    """By task and algorithm, what timing.json says, where there is one."""

    def of(self, task: str, algorithm: str) -> list[Result]:
        """The results of an algorithm on a task, seed by seed."""
        return [result for result in self.results if (result.task, result.algorithm) == (task, algorithm)]
