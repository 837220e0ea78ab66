"""One picture of a run: the map of its archive next to its fronts."""

import os
from pathlib import Path

import numpy as np

from moqd.core.metrics import cell_hypervolumes
from moqd.plots.archive_map import Values, archive_map
from moqd.plots.fronts import fronts, projection
from moqd.plots.parallel_axes import width_of
from moqd.plots.style import InlineFigure, plain
from moqd.runs.folder import Run


def save_overview(run: Run, path: str | os.PathLike[str]) -> None:
    """Writes the picture to a file: .png, .pdf, .svg or what else matplotlib knows."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    overview_figure(run).savefig(path, dpi=150)


def overview_figure(run: Run, hypervolume: Values | None = None) -> InlineFigure:
    """The map of the archive, if there are features, next to the fronts; `hypervolume`: that of the cells, if known."""
    value = cell_hypervolumes(run.archive, run.reference_point) if hypervolume is None else hypervolume
    mapped = run.task.num_features > 0
    widths = [width_of(run.task.num_features)] * mapped + [width_of(run.task.num_objectives)]
    figure = InlineFigure(figsize=(sum(widths) + 0.5, 5), layout="constrained")
    grid = figure.add_gridspec(1, len(widths), width_ratios=widths)
    if mapped:
        ax = figure.add_subplot(grid[0])
        archive_map(ax, run.archive, value, run.task)
        ax.set_title("hypervolume of every cell's front")
    ax = figure.add_subplot(grid[-1], projection=projection(run.task))
    fronts(ax, run.archive, run.task)
    ax.set_title("the fronts", pad=24 if run.task.num_objectives > 3 else None)
    valid = np.asarray(run.archive.valid)
    figure.suptitle(
        plain(f"{run.task.name}, {run.config.algorithm.name}")
        + f": {valid.sum()} solutions, coverage {valid.any(axis=1).mean():.0%}"
    )
    return figure
