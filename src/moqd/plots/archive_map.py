"""The archive in feature space: a quantity of every cell as colour (two features) or height (one)."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from scipy.spatial import Voronoi

from moqd.archive import Archive
from moqd.errors import InputError
from moqd.plots.style import CONTEXT, EMPTY, QUANTITY


def archive_map(
    ax: Axes,
    archive: Archive,
    value: Float[np.ndarray, "cells"],
    *,
    feature_names: tuple[str, ...],
    label: str = "hypervolume",
) -> None:
    """Draws `value` of every occupied cell; empty cells stay grey."""
    centroid = np.asarray(archive.centroid, float)
    lower, upper = np.asarray(archive.feature_bounds, float)
    occupied = np.asarray(archive.valid).any(axis=1)
    if len(feature_names) == 1:
        _strip(ax, centroid[:, 0], np.where(occupied, value, 0), lower[0], upper[0])
        ax.set(xlabel=feature_names[0], ylabel=label)
    elif len(feature_names) == 2:
        _mosaic(ax, centroid, np.where(occupied, value, np.nan), lower, upper, label)
        ax.set(xlabel=feature_names[0], ylabel=feature_names[1])
    else:
        raise InputError(f"the archive has {len(feature_names)} features; a map can be drawn of one or two.")


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


def _mosaic(
    ax: Axes, centroid: np.ndarray, value: np.ndarray, lower: np.ndarray, upper: np.ndarray, label: str
) -> None:
    known = value[np.isfinite(value)]
    colours = ScalarMappable(Normalize(*(known.min(), known.max()) if known.size else (0, 1)), QUANTITY)
    faces = [colours.to_rgba(v) if np.isfinite(v) else EMPTY for v in value]
    cells = cell_polygons(centroid, lower, upper)
    ax.add_collection(PolyCollection(cells, facecolors=faces, edgecolors="white", linewidths=0.5))
    ax.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), box_aspect=1)
    ax.locator_params(nbins=5)
    ax.figure.colorbar(colours, ax=ax, label=label, fraction=0.046, pad=0.03)


def _strip(ax: Axes, centroid: np.ndarray, value: np.ndarray, lower: float, upper: float) -> None:
    order = np.argsort(centroid)
    edges = np.concatenate([[lower], (centroid[order][1:] + centroid[order][:-1]) / 2, [upper]])
    ax.bar(edges[:-1], value[order], np.diff(edges), align="edge", color=CONTEXT, edgecolor="white", linewidth=0.3)
    ax.set_xlim(lower, upper)
