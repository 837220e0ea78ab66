"""The archive in feature space: a quantity of every cell as height (one feature) or colour (more)."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from scipy.spatial import Voronoi

from moqd.core.archive import Archive
from moqd.core.metrics import cell_hypervolumes
from moqd.io.errors import InputError
from moqd.plots.parallel_axes import LABEL_WIDTH, label_columns, parallel_axes, width_of
from moqd.plots.style import CONTEXT, EMPTY, QUANTITY, InlineFigure, feature_label
from moqd.runs.folder import Run
from moqd.tasks import Task

Values = Float[np.ndarray, "cells"]


def archive_map_figure(run: Run, hypervolume: Values | None = None) -> Figure:
    """The map as its own figure, below every pair of three or four features; `hypervolume`: of the cells, if known."""
    task, archive = run.task, run.archive
    value = cell_hypervolumes(archive, run.reference_point) if hypervolume is None else hypervolume
    if task.num_features not in (3, 4):
        size = {1: (7, 4), 2: (6.4, 5)}.get(task.num_features, (width_of(task.num_features), 4.5))
        figure = InlineFigure(figsize=size, layout="constrained")
        archive_map(figure.subplots(), archive, value, task)
        return figure
    num_rows = 1 if task.num_features == 3 else 2
    figure = InlineFigure(figsize=(10, 3.1 * num_rows + 3.6), layout="constrained")
    above, below = np.asarray(figure.subfigures(2, 1, height_ratios=[3.1 * num_rows, 3.6]))
    feature_pairs(above.subplots(num_rows, 3).flat, archive, value, task)
    archive_map(below.subplots(), archive, value, task)
    return figure


def archive_map(ax: Axes, archive: Archive, hypervolume: Values, task: Task) -> None:
    """Draws every occupied cell as `cells` does, with labels and, if there are colours, a colour bar."""
    if task.num_features == 0:
        raise InputError(f"task {task.name!r} has no features, so its archive is one cell and has no map.")
    drawn = cells(ax, archive, hypervolume)
    if task.num_features == 1:
        ax.set(xlabel=feature_label(task, task.feature_names[0], width=80), ylabel="hypervolume (grey: empty cell)")
    elif task.num_features == 2:
        across, up = (feature_label(task, name) for name in task.feature_names)
        ax.set(xlabel=across, ylabel=up)
    else:
        lower, upper = np.asarray(archive.feature_bounds, float)
        label_columns(ax, lower, upper, [feature_label(task, name, width=LABEL_WIDTH) for name in task.feature_names])
        ax.set_title("every occupied cell as a line through its centre")
    if drawn is not None and np.any(archive.valid):
        label = "hypervolume" + " (grey: empty cell)" * (task.num_features == 2)
        ax.figure.colorbar(drawn, ax=ax, label=label, fraction=0.046, pad=0.03)


def cells(
    ax: Axes, archive: Archive, value: Values, *, norm: Normalize | None = None, fine: bool = False
) -> ScalarMappable | None:
    """Draws `value` of every occupied cell: one feature as bars, two as a mosaic, more as parallel axes.

    Empty cells are grey; with parallel axes they are left out. Returns what has a scale of colours, if anything has:
    the scale is `norm`, or that of the values if it is not given. In small panels lines should be fine.
    """
    occupied, num_features = np.any(np.asarray(archive.valid), axis=1), archive.centroid.shape[1]
    if num_features == 1:
        _bars(ax, archive, value, occupied, 0 if fine else 0.3)
        return None
    style = {"cmap": QUANTITY, "norm": norm or _scale(value[occupied])}
    if num_features == 2:
        return _mosaic(ax, archive, value, occupied, style | {"linewidths": 0.25 if fine else 0.5})
    best_last = np.flatnonzero(occupied)[np.argsort(value[occupied])]
    style |= {"array": value[best_last], "linewidths": 0.6 if fine else 1.2}
    lower, upper = np.asarray(archive.feature_bounds, float)
    return parallel_axes(ax, np.asarray(archive.centroid, float)[best_last], lower, upper, **style)


def feature_pairs(axes: Iterable[Axes], archive: Archive, value: Values, task: Task) -> None:
    """Draws the centres of all cells in the plane of every two features, one after the other; the best lie on top."""
    occupied = np.any(np.asarray(archive.valid), axis=1)
    centroid = np.asarray(archive.centroid, float)
    best_last = np.flatnonzero(occupied)[np.argsort(value[occupied])]
    labels = [feature_label(task, name) for name in task.feature_names]
    style: dict[str, Any] = {"cmap": QUANTITY, "norm": _scale(value[occupied])}
    for ax, (i, j) in zip(axes, combinations(range(task.num_features), 2), strict=True):
        ax.scatter(centroid[~occupied, i], centroid[~occupied, j], s=14, color=EMPTY)
        x, y = centroid[best_last].T[[i, j]]
        ax.scatter(x, y, s=26, c=value[best_last], edgecolors="white", linewidths=0.3, **style)
        ax.set(xlim=task.feature_bounds[i], ylim=task.feature_bounds[j], xlabel=labels[i], ylabel=labels[j])


def cell_polygons(
    centroid: Float[np.ndarray, "cells 2"], lower: Float[np.ndarray, "2"], upper: Float[np.ndarray, "2"]
) -> list[Float[np.ndarray, "_ 2"]]:
    """The Voronoi cells of the centroids within the bounds, in units of the bounds as cells are."""
    unit = (centroid - lower) / (upper - lower)
    # Mirrored over each side, the borders between a point and its images are the sides of the box.
    images = [np.where(np.arange(2) == axis, 2 * side - unit, unit) for axis in (0, 1) for side in (0, 1)]
    diagram = Voronoi(np.concatenate([unit, *images]))
    corners = [diagram.vertices[diagram.regions[diagram.point_region[i]]] for i in range(len(unit))]
    return [lower + np.clip(polygon, 0, 1) * (upper - lower) for polygon in corners]


def _scale(known: np.ndarray) -> Normalize:
    """One scale for all known values."""
    return Normalize(known.min(), known.max()) if known.size else Normalize(0, 1)


def _mosaic(ax: Axes, archive: Archive, value: Values, occupied: np.ndarray, style: dict[str, Any]) -> ScalarMappable:
    lower, upper = np.asarray(archive.feature_bounds, float)
    polygons = cell_polygons(np.asarray(archive.centroid, float), lower, upper)
    empty, filled = ([polygons[i] for i in np.flatnonzero(there)] for there in (~occupied, occupied))
    ax.add_collection(PolyCollection(empty, facecolors=EMPTY, edgecolors="white", linewidths=style["linewidths"]))
    drawn = PolyCollection(filled, array=value[occupied], edgecolors="white", **style)
    ax.add_collection(drawn)
    ax.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), box_aspect=1)
    ax.locator_params(nbins=5)
    return drawn


def _bars(ax: Axes, archive: Archive, value: Values, occupied: np.ndarray, border: float) -> None:
    (lower,), (upper,) = np.asarray(archive.feature_bounds, float)
    centroid = np.asarray(archive.centroid, float)[:, 0]
    order = np.argsort(centroid)
    edges = np.concatenate([[lower], (centroid[order][1:] + centroid[order][:-1]) / 2, [upper]])
    there, start, width = occupied[order], edges[:-1], np.diff(edges)
    for left, wide in zip(start[~there], width[~there], strict=True):
        ax.axvspan(left, left + wide, color=EMPTY, linewidth=0)
    heights = value[order][there]
    ax.bar(start[there], heights, width[there], align="edge", color=CONTEXT, edgecolor="white", linewidth=border)
    ax.set_xlim(lower, upper)
