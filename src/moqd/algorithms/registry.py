"""Algorithms by their names, for a task."""

from collections.abc import Mapping
from typing import Any

from moqd.algorithms.algorithm import Algorithm, check_cells, check_feature_bounds
from moqd.algorithms.catalogue import ALGORITHMS, Entry
from moqd.algorithms.passive import with_passive_archive
from moqd.io.errors import InputError, unknown_name
from moqd.io.options import overridden, restored
from moqd.tasks.task import Task


def make_algorithm(name: str, task: Task, **overrides: Any) -> Algorithm:
    """An algorithm by its name, for a task; `overrides` are fields of its config, such as `num_cells`."""
    if not isinstance(task, Task):
        raise InputError(f"task is {task!r}; give a task, such as make_task('arm-2').")
    config = overridden(_entry(name).config_for(task), overrides, f"algorithm {name!r}")
    return _build(name, config, task)


def restore_algorithm(record: Mapping[str, Any], task: Task) -> Algorithm:
    """The algorithm that a file describes by its name and options, as `moqd.io.options.recorded` gave them."""
    values = dict(record)
    name = values.pop("name", None)
    return _build(name, restored(_entry(name).config, values, f"algorithm {name!r}"), task)


def _entry(name: Any) -> Entry:
    if name not in ALGORITHMS:
        raise unknown_name("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]


def _build(name: str, config: Any, task: Task) -> Algorithm:
    entry = ALGORITHMS[name]
    check_feature_bounds(task)
    if hasattr(config, "num_cells"):
        check_cells(config.num_cells, task)
    algorithm = entry.build(name, config, task)
    if not entry.passive:
        return algorithm
    return with_passive_archive(algorithm, task, num_cells=config.num_cells, front_length=config.front_length)
