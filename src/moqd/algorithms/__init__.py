"""Algorithms by name. A variant is a value of a config field, never a copy of code."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from moqd.algorithms.algorithm import Algorithm
from moqd.algorithms.mome import MomeConfig, mome
from moqd.algorithms.nsga2 import nsga2
from moqd.algorithms.passive import with_passive_archive
from moqd.algorithms.population import PopulationConfig
from moqd.algorithms.spea2 import spea2
from moqd.errors import InputError, unknown_name
from moqd.options import overridden
from moqd.tasks.task import Task

__all__ = ["ALGORITHMS", "Algorithm", "make_algorithm", "with_passive_archive"]


class Entry(NamedTuple):
    """What a name stands for."""

    build: Callable[[str, Any, Task], Algorithm]
    config: Any
    passive: bool
    """Whether it has no archive of its own and gets a passive one."""
    summary: str


NSGA2 = SPEA2 = PopulationConfig()

ALGORITHMS: dict[str, Entry] = {
    "mome": Entry(mome, MomeConfig(), False, "MAP-Elites with a front in every cell"),
    "nsga2": Entry(nsga2, NSGA2, True, "non-dominated sorting and crowding, with a passive archive"),
    "nsga2-small": Entry(nsga2, replace(NSGA2, population=256), True, "nsga2 with a small population"),
    "spea2": Entry(spea2, SPEA2, True, "strength, density and truncation, with a passive archive"),
    "spea2-small": Entry(spea2, replace(SPEA2, population=256), True, "spea2 with a small population"),
}


def make_algorithm(name: str, task: Task, **overrides: Any) -> Algorithm:
    """An algorithm by its name, for a task; `overrides` are fields of its config, such as `num_cells`."""
    if name not in ALGORITHMS:
        raise unknown_name("algorithm", name, ALGORITHMS)
    if not isinstance(task, Task):
        raise InputError(f"task is {task!r}; give a task, such as make_task('arm-2').")
    entry = ALGORITHMS[name]
    config = overridden(entry.config, overrides, f"algorithm {name!r}")
    algorithm = entry.build(name, config, task)
    if not entry.passive:
        return algorithm
    return with_passive_archive(algorithm, task, num_cells=config.num_cells, front_length=config.front_length)
