"""What the page knows: a JSON document, in which arrays of numbers are base64 of their bytes.

Objectives, features and limits are in the user's units and direction; `sign` turns an objective into what is maximised.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moqd.choose.ask import asks_for
from moqd.choose.pick import AUGMENTATION, RULES, global_front_rows, scale_of, simplex_lattice
from moqd.core.metrics import cell_hypervolumes, hypervolume
from moqd.explorer.gaits import draws
from moqd.plots.archive_map import cell_polygons
from moqd.runs.folder import Run, Snapshot
from moqd.runs.table import Solutions, columns_of
from moqd.tasks import Task

MOST_SNAPSHOTS = 60
TYPES = {"float32": "f4", "float64": "f8", "int32": "i4"}


def array(values: Any, dtype: str) -> dict[str, str]:
    """An array of numbers, row by row, little-endian."""
    content = np.ascontiguousarray(values, np.dtype(dtype).newbyteorder("<"))
    return {TYPES[dtype]: b64encode(content.tobytes()).decode()}


def content_of(runs: Sequence[Run], *, served: bool) -> dict[str, Any]:
    """Everything except gaits, for runs of the same task."""
    return {
        "format": 1,
        "served": served,
        "rules": RULES,
        "augmentation": AUGMENTATION,
        "lattice": array(simplex_lattice(runs[0].task.num_objectives), "float64"),
        "runs": [_run(run) | ({"asks": asks_for(run)} if served else {}) for run in runs],
    }


def _run(run: Run) -> dict[str, Any]:
    task, archive, solutions = run.task, run.archive, run.solutions()
    fitness = solutions.objectives.astype(float) * task.direction
    scale = scale_of(fitness)
    lower, upper = np.asarray(archive.feature_bounds, float)
    centroid = np.asarray(archive.centroid, float)
    return {
        "name": run.path.name if run.path is not None else task.name,
        "path": str(run.path) if run.path is not None else "",
        "task": task.name,
        "algorithm": run.config.algorithm.name,
        "own": task.options is None,
        "again": " --task FILE.py:NAME" if "fingerprint" in (task.options or {}) else "",
        "exportable": task.policy is not None and task.options is not None,
        "facts": {
            "seed": run.config.seed,
            "iteration": _last(run, "iteration"),
            "iterations": run.config.iterations if run.config.of_iterations else _last(run, "iteration"),
            "evaluations": _last(run, "evaluations"),
        },
        "objectives": [
            {"name": name, "label": task.label(name), "sign": float(sign)}
            for name, sign in zip(task.objective_names, task.direction, strict=True)
        ],
        "features": [
            {"name": name, "label": task.label(name), "low": float(low), "high": float(high)}
            for name, low, high in zip(task.feature_names, lower, upper, strict=True)
        ],
        "reference_point": [float(value) for value in run.config.reference_point or ()],
        "centroid": array(centroid, "float32"),
        "polygons": [array(polygon, "float32") for polygon in cell_polygons(centroid, lower, upper)]
        if task.num_features == 2
        else None,
        "solutions": {
            "cell": array(solutions.cell, "int32"),
            "objectives": array(solutions.objectives, "float32"),
            "features": array(solutions.features, "float32"),
            "preference": array(solutions.preference, "float32") if run.has_preferences else None,
        },
        "front": array(global_front_rows(fitness), "int32"),
        "scale": {"low": scale.low.tolist(), "high": scale.high.tolist()},
        "hypervolume": array(cell_hypervolumes(archive, run.reference_point), "float64"),
        "snapshots": [_snapshot(one, run) for one in _some(run.snapshots())],
        "parameters": _named(task, solutions, "parameter"),
        "constraints": _named(task, solutions, "constraint"),
        "drawable": draws(task),
        "robot": None,
        "gaits": {},
    }


def _last(run: Run, column: str) -> int:
    return int([0, *run.metrics.get(column, ())][-1])


def _some(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """The first, the last, and some evenly spaced between them; more would enlarge the file for no visible gain."""
    rows = np.unique(np.linspace(0, len(snapshots) - 1, MOST_SNAPSHOTS).round().astype(int)) if snapshots else ()
    return [snapshots[row] for row in rows]


def _named(task: Task, solutions: Solutions, kind: str) -> dict[str, Any] | None:
    """The parameters or the constraints of all solutions, if they have such; a choice is the place of its option."""
    columns = [column for column in columns_of(task, solutions) if column.kind == kind]
    if not columns:
        return None
    options = [list(map(str, column.options)) for column in columns]
    values = np.stack([column.numbers for column in columns], axis=1)
    names = [task.label(column.header) for column in columns]
    headers = [column.header for column in columns]  # which limits name
    return {"names": names, "headers": headers, "values": array(values, "float64"), "options": options}


def _snapshot(snapshot: Snapshot, run: Run) -> Mapping[str, Any]:
    fitness = snapshot.objectives.astype(float) * run.task.direction
    values = np.zeros(run.archive.centroid.shape[0])
    for cell in np.unique(snapshot.cell):
        values[cell] = hypervolume(fitness[snapshot.cell == cell], run.reference_point)
    return {
        "iteration": snapshot.iteration,
        "cell": array(snapshot.cell, "int32"),
        "objectives": array(snapshot.objectives, "float32"),
        "features": array(snapshot.features, "float32"),
        "hypervolume": array(values, "float64"),
    }
