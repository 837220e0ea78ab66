"""The fronts in objective space: that of every cell, and the global one."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moqd.core.archive import Archive
from moqd.core.metrics import cell_fronts, global_front
from moqd.plots.parallel_axes import LABEL_WIDTH, label_columns, parallel_axes, width_of
from moqd.plots.style import CONTEXT, FRONT, InlineFigure, note, objective_label
from moqd.runs.folder import Run
from moqd.tasks import Task


def fronts_figure(run: Run) -> Figure:
    """The fronts as their own figure."""
    archive, task = run.archive, run.task
    width, height = {1: (7, 4), 2: (7, 5), 3: (7, 6)}.get(task.num_objectives, (width_of(task.num_objectives), 4.5))
    figure = InlineFigure(figsize=(width, height), layout="constrained")
    fronts(figure.add_subplot(projection=projection(task)), archive, task)
    return figure


def projection(task: Task) -> str | None:
    """Of the axes that the fronts are drawn into."""
    return "3d" if task.num_objectives == 3 else None


def fronts(ax: Axes, archive: Archive, task: Task) -> None:
    """Draws the fronts in the user's units: two objectives as a plane, three as a space, more as parallel axes.

    The axes need the `projection` of the task. With one objective, the cells stand in order.
    """
    cells = [front * task.direction for front in cell_fronts(archive) if len(front)]
    if not cells:
        note(ax, "the archive is empty")
        ax.set_axis_off()
        return
    draw = {1: _ranking, 2: _plane, 3: _space}.get(task.num_objectives, _parallel)
    draw(ax, cells, global_front(archive) * task.direction, task)


def _ranking(ax: Axes, cells: list[np.ndarray], best: np.ndarray, task: Task) -> None:
    best_first = np.sort(np.concatenate(cells)[:, 0] * task.direction)[::-1] * task.direction
    ax.plot(np.arange(1, len(best_first) + 1), best_first, ".", color=CONTEXT, label="solution")
    ax.plot(1, best[0, 0], "o", color=FRONT, label="the best")
    ax.set(xlabel="rank", ylabel=objective_label(task, task.objective_names[0]))
    ax.legend(frameon=False)


def _plane(ax: Axes, cells: list[np.ndarray], best: np.ndarray, task: Task) -> None:
    for i, front in enumerate(cells):
        ordered = front[np.argsort(front[:, 0])]
        label = "front of a cell" if i == 0 else None
        ax.plot(*ordered.T, ".-", color=CONTEXT, markersize=3, linewidth=0.6, alpha=0.45, label=label)
    ordered = best[np.argsort(best[:, 0])]
    ax.plot(*ordered.T, "o-", color=FRONT, markersize=3.5, linewidth=1.2, label="global front")
    across, up = task.objective_names
    ax.set(xlabel=objective_label(task, across, width=54), ylabel=objective_label(task, up, width=44))
    ax.legend(frameon=False)


def _space(ax: Any, cells: list[np.ndarray], best: np.ndarray, task: Task) -> None:
    """Lines down to the floor show where the points of the global front are."""
    ax.computed_zorder = False  # the global front is in front, wherever it is in depth
    style = {"s": 7, "color": CONTEXT, "alpha": 0.5, "linewidths": 0}
    ax.scatter(*np.concatenate(cells).T, **style, label="front of a cell", rasterized=True)
    floor, ceiling = ax.get_zlim()
    stems = np.stack([best, np.where([True, True, False], best, floor), np.full_like(best, np.nan)], axis=1)
    ax.plot(*stems.reshape(-1, 3).T, color=FRONT, linewidth=0.5, alpha=0.25)
    ax.set_zlim(floor, ceiling)
    ax.scatter(*best.T, s=18, color=FRONT, edgecolors="white", linewidths=0.3, depthshade=False, label="global front")
    labels = [objective_label(task, name, width=30) for name in task.objective_names]
    ax.set_xlabel(labels[0], labelpad=12)
    ax.set_ylabel(labels[1], labelpad=12)
    ax.set_zlabel(labels[2], labelpad=14)
    ax.locator_params(nbins=5)
    ax.view_init(elev=22, azim=-55)
    ax.set_box_aspect(None, zoom=0.95)
    ax.legend(frameon=False, loc="upper left", markerscale=1.5)


def _parallel(ax: Axes, cells: list[np.ndarray], best: np.ndarray, task: Task) -> None:
    everything = np.concatenate(cells)
    low, high = everything.min(axis=0), everything.max(axis=0)
    for rows, colour, label in ((everything, CONTEXT, "front of a cell"), (best, FRONT, "global front")):
        alpha = min(1.0, max(0.05, 100 / len(rows)))
        parallel_axes(ax, rows, low, high, colors=colour, linewidths=0.5, alpha=alpha, rasterized=True)
        ax.plot([], [], color=colour, label=label)
    label_columns(ax, low, high, [objective_label(task, name, width=LABEL_WIDTH) for name in task.objective_names])
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
