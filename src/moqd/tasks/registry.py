"""Tasks by their names."""

from dataclasses import asdict, fields, replace
from typing import Any

from moqd.core.types import Genotype
from moqd.io.errors import unknown_name
from moqd.io.options import overridden
from moqd.tasks.catalogue import TASKS
from moqd.tasks.task import Replay, Task


def make_task(name: str, **overrides: Any) -> Task:
    """A task by its name; `overrides` are its options, such as `num_joints` of arm-2 or a `reference_point`."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    entry = TASKS[name]
    general = {"reference_point", "resamples"} - {field.name for field in fields(entry.config)}
    own = {option: value for option, value in overrides.items() if option not in general}
    config = overridden(entry.config, own, f"task {name!r}")
    task = entry.build(config)
    options = {"name": name, **asdict(config)}
    for option in sorted(general & set(overrides)):
        if overrides[option] is not None:
            task = replace(task, **{option: overrides[option]})
            options[option] = getattr(task, option)
    return replace(task, options=options)


def replay(task: Task, genotype: Genotype) -> Replay:
    """The episode of one policy: poses of all bodies over time with their shapes, to be drawn."""
    return task.replay(genotype)
