"""Tasks by name, and the classes for one's own."""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

from moqd.errors import unknown_name
from moqd.options import overridden
from moqd.tasks.analytic import ArmConfig, Dtlz2Config, RastriginConfig, arm, dtlz2, rastrigin
from moqd.tasks.function import FunctionTask
from moqd.tasks.locomotion import SCENES, LocomotionConfig, locomotion
from moqd.tasks.task import Frames, Rendering, Replay, Task
from moqd.types import Genotype

__all__ = ["TASKS", "Frames", "FunctionTask", "Rendering", "Replay", "Task", "make_task", "replay"]


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
    """A task by its name; `overrides` are its options, such as `num_joints` of arm-2, or a `reference_point`."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    entry = TASKS[name]
    own = {option: value for option, value in overrides.items() if option != "reference_point"}
    config = overridden(entry.config, own, f"task {name!r}")
    task = entry.build(config)
    options = {"name": name, **asdict(config)}
    if overrides.get("reference_point") is not None:
        task = replace(task, reference_point=overrides["reference_point"])
        options["reference_point"] = task.reference_point
    return replace(task, options=options)


def replay(task: Task, genotype: Genotype) -> Replay:
    """The episode of one policy: poses of all bodies over time with their shapes, to be drawn."""
    return task.replay(genotype)
