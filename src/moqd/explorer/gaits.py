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
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from moqd.choose.pick import global_front_rows, scale_of, values_by
from moqd.core.types import Genotype
from moqd.io.errors import EvaluationError, InputError
from moqd.plots.gait import is_planar
from moqd.runs.folder import Run, Solutions
from moqd.tasks import FunctionTask, Replay, Task

LENGTH, ANGLE = 2000.0, 16384.0
AT_ONCE = 64
"""Gaits recorded between two updates of the progress."""


class Gaits(NamedTuple):
    """The gaits of one run."""

    robot: dict[str, Any] | None
    """The robot that all gaits share; None if solutions are not policies of a robot, or none can be replayed."""
    gaits: dict[str, dict[str, Any]]
    """By the row of the solution, as text for JSON."""


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


def packed_gait(replay: Replay) -> dict[str, Any]:
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


def wanted(run: Run, solutions: Solutions, front: Sequence[int]) -> Iterator[int]:
    """Rows in the order in which gaits are recorded: the global front, then each cell's knee, then its extremes."""
    fitness = solutions.objectives.astype(float) * run.task.direction
    scaled = scale_of(fitness).scaled(fitness)
    yield from map(int, front)
    even = np.full(run.task.num_objectives, 1 / run.task.num_objectives)
    members = [np.nonzero(solutions.cell == cell)[0] for cell in np.unique(solutions.cell)]
    for rows in members:
        yield int(rows[np.argmax(values_by("knee", scaled[rows], even))])
    for rows in members:
        for objective in range(run.task.num_objectives):
            yield int(rows[np.argmax(fitness[rows, objective])])


def record(run: Run, wish: str, budget: float, tick: Callable[[int], None] = lambda _: None) -> Gaits:
    """Gaits of the solutions that are wanted ("none", "some" or "all"), until they take more bytes than the budget.

    "all" takes every solution, whatever the budget. `tick` is told how many are done.
    """
    solutions = run.solutions()
    if len(solutions.cell) == 0:
        return Gaits(None, {})
    rows = _rows(run, solutions, wish)
    if not moves(run.task):
        return Gaits(None, _rendered(run, solutions, rows, wish, budget, tick) if draws(run.task) else {})
    robot = _first_robot(run.task, solutions)
    recorded: dict[str, dict[str, Any]] = {}
    used = 0
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        for row, gait in zip(some, _packed(run.task, solutions, some), strict=True):
            used += _size(row, gait)
            if used > budget and wish != "all":
                return Gaits(robot, recorded)
            recorded[str(row)] = gait
        tick(min(len(rows), start + AT_ONCE))
    return Gaits(robot, recorded)


def gait_of(task: Task, solutions: Solutions, row: int) -> dict[str, Any]:
    """The gait of one solution, or the picture that its task draws."""
    genotype = _at(solutions, row)
    return packed_gait(task.replay(genotype)) if moves(task) else shown(task, genotype)


def moves(task: Task) -> bool:
    """Whether solutions of the task can be replayed."""
    return type(task).replay is not Task.replay


def draws(task: Task) -> bool:
    """Whether the task draws its solutions itself."""
    if isinstance(task, FunctionTask) and type(task).render is FunctionTask.render:
        return task.draw is not None
    return type(task).render is not Task.render


def shown(task: Task, genotype: Genotype) -> dict[str, Any]:
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


def _rows(run: Run, solutions: Solutions, wish: str) -> list[int]:
    if wish == "none":
        return []
    if wish == "all":
        return list(range(len(solutions.cell)))
    fitness = solutions.objectives * run.task.direction
    return list(dict.fromkeys(wanted(run, solutions, global_front_rows(fitness).tolist())))


def _first_robot(task: Task, solutions: Solutions) -> dict[str, Any] | None:
    """The robot, from the first solution that can be replayed."""
    for row in range(len(solutions.cell)):
        with suppress(EvaluationError):
            return robot_of(task.replay(_at(solutions, row)), task.feature_names)
    return None


def _packed(task: Task, solutions: Solutions, rows: Sequence[int]) -> list[dict[str, Any]]:
    """The gaits of these solutions, or the reason why one has none."""
    try:
        return [packed_gait(replay) for replay in task.replays(_at(solutions, np.asarray(rows)))]
    except EvaluationError as error:
        if len(rows) == 1:
            return [{"error": str(error)}]
    return [gait for row in rows for gait in _packed(task, solutions, [row])]


def _rendered(
    run: Run, solutions: Solutions, rows: Sequence[int], wish: str, budget: float, tick: Callable[[int], None]
) -> dict[str, dict[str, Any]]:
    recorded: dict[str, dict[str, Any]] = {}
    used = 0
    for number, row in enumerate(rows, start=1):
        content = shown(run.task, _at(solutions, row))
        used += _size(row, content)
        if used > budget and wish != "all":
            break
        recorded[str(row)] = content
        tick(number)
    return recorded


def _size(row: int, entry: dict[str, Any]) -> int:
    """The size of an entry in the file, in bytes."""
    return len(json.dumps({str(row): entry}, separators=(",", ":")))


def _at(solutions: Solutions, rows: int | Int[np.ndarray, "rows"]) -> Genotype:
    return jax.tree.map(lambda leaf: leaf[rows], solutions.genotype)


def _png(image: np.ndarray) -> str:
    from matplotlib.image import imsave  # here, because it takes its time

    content = io.BytesIO()
    image = np.asarray(image)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise InputError(
            f"a picture is of type {image.dtype} and shape {image.shape}, not uint8 and (height, width, 3)"
        )
    imsave(content, image, format="png")
    return f"data:image/png;base64,{b64encode(content.getvalue()).decode()}"
