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
    labels = [name + (" (less is better)" if name in task.minimised else "") for name in task.objective_names]
    if task.num_objectives == 2:
        for i, front in enumerate(cells):
            ordered = front[np.argsort(front[:, 0])]
            label = "front of a cell" if i == 0 else None
            ax.plot(*ordered.T, ".-", color=CONTEXT, markersize=3, linewidth=0.6, alpha=0.45, label=label)
        ordered = best[np.argsort(best[:, 0])]
        ax.plot(*ordered.T, "o-", color=FRONT, markersize=3.5, linewidth=1.2, label="global front")
        ax.set(xlabel=labels[0], ylabel=labels[1])
    else:
        everything = np.concatenate(cells)
        low, high = everything.min(axis=0), everything.max(axis=0)
        scaled = (best - low) / np.where(high > low, high - low, 1)
        ax.plot(np.arange(task.num_objectives), scaled.T, color=FRONT, linewidth=0.5, alpha=0.3)
        ticks = [f"{label}\n{a:.3g} to {b:.3g}" for label, a, b in zip(labels, low, high, strict=True)]
        ax.set_xticks(np.arange(task.num_objectives), ticks)
        ax.set(ylabel="global front, lowest to highest in the archive", ylim=(0, 1))
    if task.num_objectives == 2:
        ax.legend(frameon=False)
