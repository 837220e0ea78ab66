"""Gaits for the page: recorded for the solutions that one looks at first, and packed until the budget is used up.

A gait is a table of whole numbers: a row for each coordinate (of all bodies x, y, z in units of half a millimetre and
the quaternion w, x, y, z in units of 1/16384, then 1 or 0 for each foot on the ground), a column for each frame, as
differences from one frame to the next. Their bytes (all lowest ones first) are compressed by gzip and in base64.
"""

import gzip
import io
import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from moqd.choose.pick import global_front_rows, scale_of, values_by
from moqd.core.types import Genotype
from moqd.io.errors import EvaluationError, InputError
from moqd.plots.gait import is_planar
from moqd.runs.folder import Run
from moqd.runs.table import Solutions
from moqd.tasks import FunctionTask, Replay, Task

LENGTH, ANGLE = 2000.0, 16384.0
AT_ONCE = 64
"""Gaits recorded between two updates of the progress."""


Entry = dict[str, Any]
"""A gait, what a task draws instead, or the error: what the page knows of one solution."""


def robot_of(replay: Replay, feet: Sequence[str]) -> dict[str, Any]:
    """The shapes of the robot, and whether it moves in a plane (y = 0)."""
    return {
        "bodies": list(replay.body_names),
        "feet": list(feet),
        "planar": is_planar(replay),
        "dt": float(replay.time[1] - replay.time[0]) if len(replay.time) > 1 else 0.05,
        "shapes": [
            {"body": int(body), "start": start.tolist(), "end": end.tolist(), "radius": float(radius)}
            for body, start, end, radius in zip(
                replay.shape_body, replay.shape_start, replay.shape_end, replay.shape_radius, strict=True
            )
        ],
    }


def packed_gait(replay: Replay) -> Entry:
    """A gait in the format of the page."""
    frames = len(replay.time)
    poses = np.concatenate([replay.position * LENGTH, replay.rotation * ANGLE], axis=2).reshape(frames, -1)
    contact = np.concatenate([np.zeros((1, replay.contact.shape[1])), replay.contact])
    table = np.rint(np.concatenate([poses, contact], axis=1)).astype(np.int64).T
    steps = np.diff(table, axis=1, prepend=0).astype("<i4")
    planes = np.ascontiguousarray(steps).view(np.uint8).reshape(-1, 4).T
    return {
        "frames": frames,
        "objectives": [float(value) for value in replay.reward.sum(axis=0)],
        "data": b64encode(gzip.compress(np.ascontiguousarray(planes).tobytes(), 9, mtime=0)).decode(),
    }


def record(
    run: Run, wish: str, budget: float, tick: Callable[[int], None] = lambda _: None
) -> tuple[dict[str, Any] | None, dict[str, Entry]]:
    """The robot that all gaits share, and gaits or pictures by the row of their solution, as text for JSON.

    The `wish` is "none", "all", or "some": those looked at first, until they take more bytes than the budget. There is
    no robot if solutions are not policies of one, or none can be replayed. `tick` is told how many are done.
    """
    task, solutions = run.task, run.solutions()
    rows = _rows(run, solutions, wish) if moves(task) or draws(task) else []
    robot = _first_robot(task, solutions) if moves(task) else None
    recorded: dict[str, Entry] = {}
    used, at_once = 0, AT_ONCE if moves(task) else 1
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        entries = _packed(task, solutions, some) if moves(task) else [shown(task, _at(solutions, row)) for row in some]
        for row, entry in zip(some, entries, strict=True):
            used += len(json.dumps({str(row): entry}, separators=(",", ":")))
            if used > budget and wish != "all":
                return robot, recorded
            recorded[str(row)] = entry
        tick(start + len(some))
    return robot, recorded


def _rows(run: Run, solutions: Solutions, wish: str) -> list[int]:
    """In the order in which gaits are recorded."""
    if wish == "some":
        return list(dict.fromkeys(_looked_at_first(solutions, solutions.objectives.astype(float) * run.task.direction)))
    return list(range(len(solutions.cell))) if wish == "all" else []


def _looked_at_first(solutions: Solutions, fitness: np.ndarray) -> Iterator[int]:
    """The global front, then each cell's knee, then its extremes."""
    scaled, num_objectives = scale_of(fitness).scaled(fitness), fitness.shape[1]
    yield from global_front_rows(fitness).tolist()
    even = np.full(num_objectives, 1 / num_objectives)
    members = [np.nonzero(solutions.cell == cell)[0] for cell in np.unique(solutions.cell)]
    for rows in members:
        yield int(rows[np.argmax(values_by("knee", scaled[rows], even))])
    for rows in members:
        yield from rows[np.argmax(fitness[rows], axis=0)].tolist()


def gait_of(task: Task, solutions: Solutions, row: int) -> Entry:
    """The gait of one solution, or the picture that its task draws."""
    return seen(task, _at(solutions, row))


def seen(task: Task, genotype: Genotype) -> Entry:
    """The gait of a solution, or the picture that its task draws."""
    return packed_gait(task.replay(genotype)) if moves(task) else shown(task, genotype)


def moves(task: Task) -> bool:
    """Whether solutions of the task can be replayed."""
    return type(task).replay is not Task.replay


def draws(task: Task) -> bool:
    """Whether the task draws its solutions itself."""
    if isinstance(task, FunctionTask) and type(task).render is FunctionTask.render:
        return task.draw is not None
    return type(task).render is not Task.render


def shown(task: Task, genotype: Genotype) -> Entry:
    """For a solution that is not a policy of a robot: what its task draws, or why that failed."""
    try:
        drawn = task.render(genotype)
        if drawn is None or isinstance(drawn, str):
            return {} if drawn is None else {"html": drawn}
        images = [_png(image) for image in drawn.images]
        if not images or not (math.isfinite(drawn.seconds) and drawn.seconds > 0):
            raise InputError("it gave no picture, or no time between them")
        return {"images": images, "dt": float(drawn.seconds)}
    except Exception as error:  # the user's own code: one solution that cannot be drawn is not the end
        return {"error": f"drawing it failed: {type(error).__name__}: {error}"}


def _first_robot(task: Task, solutions: Solutions) -> dict[str, Any] | None:
    """The robot, from the first solution that can be replayed."""
    for row in range(len(solutions.cell)):
        with suppress(EvaluationError):
            return robot_of(task.replay(_at(solutions, row)), task.feature_names)
    return None


def _packed(task: Task, solutions: Solutions, rows: Sequence[int]) -> list[Entry]:
    """The gaits of these solutions, or the reason why one has none."""
    try:
        return [packed_gait(replay) for replay in task.replays(_at(solutions, np.asarray(rows)))]
    except EvaluationError as error:
        if len(rows) == 1:
            return [{"error": str(error)}]
    return [gait for row in rows for gait in _packed(task, solutions, [row])]


def _at(solutions: Solutions, rows: int | Int[np.ndarray, "rows"]) -> Genotype:
    return jax.tree.map(lambda leaf: leaf[rows], solutions.genotype)


def _png(image: np.ndarray) -> str:
    from matplotlib.image import imsave  # here, because it takes its time

    content = io.BytesIO()
    image = np.asarray(image)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise InputError(f"a picture is {image.dtype} of shape {image.shape}, not uint8 of shape (height, width, 3)")
    imsave(content, image, format="png")
    return f"data:image/png;base64,{b64encode(content.getvalue()).decode()}"
