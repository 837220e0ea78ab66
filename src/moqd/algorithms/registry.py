"""The algorithms of the catalogue, imported: how each is built, and its options."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

from moqd.algorithms.algorithm import Algorithm, check_cells
from moqd.algorithms.catalogue import CATALOGUE, NOTHING, Listed
from moqd.algorithms.passive import with_passive_archive
from moqd.io.errors import InputError, unknown_name
from moqd.io.options import overridden, restored
from moqd.tasks.task import Task


class Entry(NamedTuple):
    """What a name stands for."""

    build: Callable[[str, Any, Task], Algorithm]
    config: Any
    passive: bool
    """Whether it has no archive of its own and gets a passive one."""
    summary: str
    for_vectors: Mapping[str, Any] = NOTHING
    """Where the defaults differ for tasks of plain parameters, whose solutions are vectors within bounds."""

    def config_for(self, task: Task) -> Any:
        """The default config for a task: the paper's for policies, what suits functions for plain parameters."""
        return self.config if task.genes is None else replace(self.config, **self.for_vectors)


def _imported(listed: Listed) -> Entry:
    module = import_module(f"moqd.algorithms.{listed.module}")
    config = getattr(module, listed.config)(**listed.changes)
    return Entry(getattr(module, listed.module), config, listed.passive, listed.summary, listed.for_vectors)


ALGORITHMS: dict[str, Entry] = {name: _imported(listed) for name, listed in CATALOGUE.items()}


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
    check_cells(config.num_cells, task)
    algorithm = entry.build(name, config, task)
    if not entry.passive:
        return algorithm
    return with_passive_archive(algorithm, task, num_cells=config.num_cells, front_length=config.front_length)
