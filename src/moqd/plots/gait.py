"""A gait as pictures: one pose drawn into `ax`, and a whole episode as a video."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon

from moqd.io.errors import InputError
from moqd.tasks import Replay

VIDEOS = (".mp4", ".gif")
FRAME_RATE = 20
SKY, GROUND, LINES, BODY = "#f7f8fa", "#e4e7eb", "#c3c9d1", "#3b6ea5"
AZIMUTH, ELEVATION = np.radians(-60), np.radians(22)
"""The viewpoint for a robot that does not move in a plane."""
HALF = 1.6
"""Minimum distance in metres that is visible on either side of the robot."""


def write_video(
    replay: Replay, path: Path, title: str, tick: Callable[[], None] = lambda: None, *, seconds: float | None = None
) -> None:
    """Writes a gait as .gif or .mp4 (which needs the program ffmpeg); `tick` is called after each frame."""
    writer = video_writer(path)
    figure = Figure(figsize=(6.4, 4), dpi=100)
    figure.patch.set_facecolor(SKY)
    ax = figure.add_axes((0, 0, 1, 1))
    with writer.saving(figure, str(path), 100):
        for frame in frames_shown(replay, seconds):
            draw_pose(ax, replay, frame)
            ax.text(0.02, 0.95, title, transform=ax.transAxes, va="top", fontsize=9, parse_math=False)
            ax.text(0.98, 0.95, f"{replay.time[frame]:.1f} s", transform=ax.transAxes, va="top", ha="right", fontsize=9)
            writer.grab_frame()
            tick()


def frames_shown(replay: Replay, seconds: float | None = None) -> list[int]:
    """The frames nearest to a constant frame rate."""
    end = replay.time[-1] if seconds is None else min(seconds, float(replay.time[-1]))
    times = np.arange(0, end + 1e-9, 1 / FRAME_RATE)
    return [int(frame) for frame in np.abs(replay.time[None, :] - times[:, None]).argmin(axis=1)]


def video_writer(path: Path) -> AbstractMovieWriter:
    if path.suffix not in VIDEOS:
        raise InputError(f"cannot write a video to {str(path)!r}: give a name that ends in .mp4 or .gif.")
    if path.suffix == ".gif":
        return PillowWriter(fps=FRAME_RATE)
    if shutil.which("ffmpeg") is None:
        raise InputError(".mp4 needs the program ffmpeg, which is not installed; install it, or write a .gif instead.")
    return FFMpegWriter(fps=FRAME_RATE, codec="libx264", extra_args=["-pix_fmt", "yuv420p"])


def draw_pose(ax: Axes, replay: Replay, frame: int) -> None:
    """The robot on the ground, seen from the side if it moves in a plane, otherwise from above."""
    ax.clear()
    ax.set_axis_off()
    planar = is_planar(replay)
    ends = shape_ends(replay, frame)
    root = replay.position[frame, 0]
    _ground(ax, root, planar)
    first, last = (_seen(points, root, planar) for points in ends)
    for i in np.argsort(first[:, 2] + last[:, 2]):  # the farthest first
        _capsule(ax, first[i, :2], last[i, :2], float(replay.shape_radius[i]))
    ax.set(xlim=(-HALF, HALF), ylim=(-0.45, 2 * HALF * 4 / 6.4 - 0.45) if planar else (-HALF * 4 / 6.4, HALF * 4 / 6.4))
    ax.set_aspect("equal")


def is_planar(replay: Replay) -> bool:
    """Whether the robot moves in the plane y = 0."""
    return bool(np.ptp(replay.position[:, :, 1]) < 1e-3)


def shape_ends(replay: Replay, frame: int) -> tuple[Float[np.ndarray, "shapes 3"], Float[np.ndarray, "shapes 3"]]:
    """Where the axes of all shapes start and end."""
    position, rotation = replay.position[frame][replay.shape_body], replay.rotation[frame][replay.shape_body]
    return position + _rotated(rotation, replay.shape_start), position + _rotated(rotation, replay.shape_end)


def _rotated(quaternion: Float[np.ndarray, "n 4"], vector: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3"]:
    w, axis = quaternion[:, :1], quaternion[:, 1:]
    turned = np.cross(axis, vector) + w * vector
    return vector + 2 * np.cross(axis, turned)


def _seen(point: Float[np.ndarray, "n 3"], root: Float[np.ndarray, "3"], planar: bool) -> Float[np.ndarray, "n 3"]:
    """Coordinates to the right, up and towards the viewer, relative to the robot; in a plane, up is from the ground."""
    if planar:
        return np.stack([point[:, 0] - root[0], point[:, 2], -point[:, 1]], axis=1)
    x, y, z = (point - root * [1, 1, 0]).T
    right = -np.sin(AZIMUTH) * x + np.cos(AZIMUTH) * y
    near = np.cos(AZIMUTH) * x + np.sin(AZIMUTH) * y
    cos, sin = np.cos(ELEVATION), np.sin(ELEVATION)
    return np.stack([right, cos * z - sin * near, cos * near + sin * z], axis=1)


def _ground(ax: Axes, root: Float[np.ndarray, "3"], planar: bool) -> None:
    if planar:
        ax.axhspan(-1, 0, color=GROUND, linewidth=0)
        for metre in range(int(np.floor(root[0] - HALF)), int(np.ceil(root[0] + HALF)) + 1):
            ax.plot([metre - root[0]] * 2, [0, -0.08], color=LINES, linewidth=1.2)
            ax.text(metre - root[0], -0.12, f"{metre} m", ha="center", va="top", fontsize=8, clip_on=True)
        return
    corner = np.floor(root[:2]) - 4
    for i in range(10):
        for ends in ([[i, 0], [i, 9]], [[0, i], [9, i]]):
            seen = _seen(np.pad(corner + ends, ((0, 0), (0, 1))), root, planar)
            ax.plot(seen[:, 0], seen[:, 1], color=LINES, linewidth=0.8)


def _capsule(ax: Axes, start: Float[np.ndarray, "2"], end: Float[np.ndarray, "2"], radius: float) -> None:
    along = end - start
    length = float(np.hypot(*along))
    style = {"facecolor": BODY, "edgecolor": SKY, "linewidth": 0.4}
    if length > 1e-9:
        side = np.array([-along[1], along[0]]) / length * radius
        ax.add_patch(Polygon([start + side, end + side, end - side, start - side], closed=True, **style))
    for point in (start, end):
        ax.add_patch(Circle((float(point[0]), float(point[1])), radius, **style))
