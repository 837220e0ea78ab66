"""A function of parameters as a task, in the fewest words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moqd.io.errors import InputError
from moqd.tasks.checks import require
from moqd.tasks.function import FunctionTask
from moqd.tasks.parameters import Bound
from moqd.tasks.task import UNKNOWN


def problem(
    function: Callable[..., Any],
    parameters: Mapping[str, Bound] | Sequence[Bound],
    objectives: Mapping[str, str],
    features: Mapping[str, tuple[float, float] | None] | Sequence[str] = (),
    constraints: Sequence[str] = (),
    **options: Any,
) -> FunctionTask:
    """The task of a function of parameters that returns lists: objectives, features (if any), constraints (if any).

    `parameters` maps each name to its bounds, and the function takes them by name; of a list of bounds, it takes a
    vector. `objectives` maps each name to "max" or "min", `features` to its bounds (lowest, highest), or to None if
    `moqd.run` is to learn them; a list of names learns all. A solution is feasible if no constraint is above 0.
    `options` are those of `FunctionTask`; the task's name is by default the function's.
    """
    require(isinstance(objectives, Mapping), "objectives", objectives, "'max' or 'min' for each name, as a dictionary")
    for name, goal in objectives.items():
        if goal not in ("max", "min"):
            raise InputError(f"the goal of objective {name!r} is {goal!r}; use 'max' or 'min'.")
    return FunctionTask(
        function,
        bounds=parameters,
        objective_names=list(objectives),
        minimised=[name for name, goal in objectives.items() if goal == "min"],
        feature_names=features if isinstance(features, str) else list(features),
        feature_bounds=[bounds or UNKNOWN for bounds in features.values()] if isinstance(features, Mapping) else (),
        constraint_names=constraints,
        **{"name": getattr(function, "__name__", "problem"), **options},
    )
