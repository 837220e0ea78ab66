"""The fronts in objective space: that of every cell, and the global one."""

import numpy as np
from matplotlib.axes import Axes

from moqd.archive import Archive
from moqd.metrics import cell_fronts, global_front
from moqd.plots.style import CONTEXT, FRONT
from moqd.tasks import Task


def fronts(ax: Axes, archive: Archive, task: Task) -> None:
    """Draws the fronts in the user's units: two objectives as a plane, more as parallel axes."""
    cells = [front * task.direction for front in cell_fronts(archive) if len(front)]
    best = global_front(archive) * task.direction
    if task.num_objectives == 2:
        _plane(ax, cells, best)
        labels = [name + (" (less is better)" if name in task.minimised else "") for name in task.objective_names]
        ax.set(xlabel=labels[0], ylabel=labels[1])
    else:
        labels = [f"{name} {'↓' if name in task.minimised else '↑'}" for name in task.objective_names]
        _parallel_axes(ax, np.concatenate(cells), best, labels)


def _plane(ax: Axes, cells: list[np.ndarray], best: np.ndarray) -> None:
    for i, front in enumerate(cells):
        ordered = front[np.argsort(front[:, 0])]
        label = "front of a cell" if i == 0 else None
        ax.plot(*ordered.T, ".-", color=CONTEXT, markersize=3, linewidth=0.6, alpha=0.45, label=label)
    ordered = best[np.argsort(best[:, 0])]
    ax.plot(*ordered.T, "o-", color=FRONT, markersize=3.5, linewidth=1.2, label="global front")
    ax.legend(frameon=False)


def _parallel_axes(ax: Axes, everything: np.ndarray, best: np.ndarray, labels: list[str]) -> None:
    low, high = everything.min(axis=0), everything.max(axis=0)
    scaled = (best - low) / np.where(high > low, high - low, 1)
    place = np.arange(len(labels))
    ax.plot(place, scaled.T, color=FRONT, linewidth=0.5, alpha=min(1.0, 100 / len(best)))
    ends = [f"{label}\n{round(a, 6):.2g} to {b:.2g}" for label, a, b in zip(labels, low, high, strict=True)]
    ax.set_xticks(place, ends)
    ax.set(ylabel="global front, between the archive's lowest and highest", ylim=(0, 1), xlim=(place[0], place[-1]))
