"""Tasks by name, and the classes for one's own."""

from collections.abc import Callable
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any, NamedTuple

from moqd.core.types import Genotype
from moqd.io.errors import unknown_name
from moqd.io.options import overridden
from moqd.tasks.analytic import ArmConfig, Dtlz2Config, RastriginConfig, arm, dtlz2, rastrigin
from moqd.tasks.function import FunctionTask
from moqd.tasks.gymnasium import gymnasium_task
from moqd.tasks.jax_env import jax_env_task
from moqd.tasks.locomotion import SCENES, LocomotionConfig, locomotion
from moqd.tasks.parameters import Categorical, Integer, Real
from moqd.tasks.task import Frames, Rendering, Replay, Task

__all__ = [
    "TASKS",
    "Categorical",
    "Frames",
    "FunctionTask",
    "Integer",
    "Real",
    "Rendering",
    "Replay",
    "Task",
    "gymnasium_task",
    "jax_env_task",
    "make_task",
    "replay",
]


class Entry(NamedTuple):
    """What a name stands for."""

    build: Callable[[Any], Task]
    config: Any
    summary: str
    policies: bool = False
    """Whether its solutions are policies, so that it suits algorithms with policy gradients."""


TASKS: dict[str, Entry] = {
    name: Entry(partial(locomotion, name), LocomotionConfig(), scene.summary, policies=True)
    for name, scene in SCENES.items()
} | {
    "arm-2": Entry(arm, ArmConfig(), "a planar arm reaches everywhere, with little bending and little torque"),
    "rastrigin-2": Entry(rastrigin, RastriginConfig(), "two Rastrigin functions with optima apart"),
    "dtlz2-5": Entry(dtlz2, Dtlz2Config(), "DTLZ2 with five objectives"),
}


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
