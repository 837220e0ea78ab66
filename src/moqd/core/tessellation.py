"""Cells of the feature space: centroidal Voronoi tessellations, regular grids, and the cell of a feature.

CVT-MAP-Elites: Vassiliades, Chatzilygeroudis & Mouret, "Using centroidal Voronoi tessellations to scale up the
multidimensional archive of phenotypic elites algorithm" (2018).
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from threadpoolctl import threadpool_limits

from moqd.io.errors import InputError, StorageError
from moqd.io.files import read_tensors, whole, write_tensors

Bounds = Sequence[tuple[float, float]]
"""(lowest, highest) of each feature."""
NumCells: TypeAlias = int | tuple[int, ...]
"""A single number for a centroidal Voronoi tessellation, or one number per feature for a regular grid."""
SHIPPED = Path(__file__).with_name("cells.safetensors")
"""The tessellations of the default number of cells: computing one takes longer than everything else before a run."""
SHIPPED_CELLS, SHIPPED_FEATURES = 128, range(1, 7)


def centroids(num_cells: NumCells, bounds: Bounds) -> Float[np.ndarray, "cells features"]:
    """The centroids of a tessellation, or of a grid if there is one number per feature."""
    return grid_centroids(num_cells, bounds) if isinstance(num_cells, tuple) else cvt_centroids(num_cells, bounds)


def total_cells(num_cells: NumCells) -> int:
    return math.prod(num_cells) if isinstance(num_cells, tuple) else num_cells


def cvt_centroids(num_cells: int, bounds: Bounds, *, seed: int = 0) -> Float[np.ndarray, "cells features"]:
    """Centroids that spread `num_cells` cells of about equal size over the bounds.

    The same for the same arguments on every machine: cells must mean the same in every run.
    """
    unit = _unit_cvt(num_cells, len(bounds), seed)
    lower, upper = np.asarray(bounds, float).reshape(-1, 2).T
    return (lower + unit * (upper - lower)).astype(np.float32)


def grid_centroids(shape: Sequence[int], bounds: Bounds) -> Float[np.ndarray, "cells features"]:
    """Centroids of a regular grid with shape[i] cells along feature i."""
    axes = [low + (np.arange(n) + 0.5) / n * (high - low) for n, (low, high) in zip(shape, bounds, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(shape)).astype(np.float32)


def nearest_cell(
    feature: Float[Array, "batch features"],
    centroid: Float[Array, "cells features"],
    bounds: Float[Array, "2 features"],
) -> Int[Array, "batch"]:
    """The cell whose centroid is nearest, in units of the bounds; a feature beyond its bounds counts as on them."""
    lower, upper = bounds[0][None, :], bounds[1][None, :]
    feature = jnp.clip(feature, lower, upper) / (upper - lower)
    centroid = centroid / (upper - lower)
    # A running minimum over the cells, eight at a time: on a CPU several times as fast as an argmin over a matrix.
    padded = jnp.pad(centroid, ((0, -centroid.shape[0] % 8), (0, 0)), constant_values=jnp.inf)
    portions = padded.reshape(padded.shape[0] // 8, 8, centroid.shape[1])

    def nearer(i: Int[Array, ""], found: tuple[Array, Array]) -> tuple[Array, Array]:
        least, cell = found
        for j in range(8):
            distance = sum(
                ((feature[:, k] - portions[i, j, k]) ** 2 for k in range(feature.shape[1])), jnp.zeros(feature.shape[0])
            )
            cell = jnp.where(distance < least, 8 * i + j, cell)
            least = jnp.minimum(distance, least)
        return least, cell

    nowhere = jnp.full(feature.shape[0], jnp.inf), jnp.zeros(feature.shape[0], jnp.int32)
    return jax.lax.fori_loop(0, portions.shape[0], nearer, nowhere)[1]


@lru_cache(maxsize=32)
def _unit_cvt(num_cells: int, num_features: int, seed: int) -> Float[np.ndarray, "cells features"]:
    if num_features == 0 or num_cells == 1:
        return np.full((1, num_features), 0.5)
    if (num_cells, seed) == (SHIPPED_CELLS, 0) and num_features in SHIPPED_FEATURES:
        with suppress(InputError):  # if it is not there, it is computed
            return read_tensors(SHIPPED.resolve())[str(num_features)]
    if _kept is None:
        return _compute_cvt(num_cells, num_features, seed)
    name = f"{num_cells}-{num_features}-{seed}-sklearn-{version('scikit-learn')}-numpy-{version('numpy')}.safetensors"
    centroids = _load(_kept / name)
    if centroids is None:
        centroids = _compute_cvt(num_cells, num_features, seed)
        _keep(_kept / name, centroids)
    return centroids


def _compute_cvt(num_cells: int, num_features: int, seed: int) -> Float[np.ndarray, "cells features"]:
    from sklearn.cluster import KMeans  # here, because it takes longer to import than everything else

    samples = np.random.default_rng(seed).random((max(50_000, 20 * num_cells), num_features))
    # One thread: with another number of threads, k-means sums in another order, which changes the last bits.
    with threadpool_limits(limits=1):
        return KMeans(num_cells, n_init=1, random_state=seed).fit(samples).cluster_centers_


def write_shipped() -> None:
    """Computes anew what is shipped."""
    computed = {str(n): whole(_compute_cvt(SHIPPED_CELLS, n, 0)) for n in SHIPPED_FEATURES}
    write_tensors(SHIPPED, computed)


def keep_cells_in(folder: Path) -> None:
    """From now on, caches tessellations in this folder: large ones take a minute to compute."""
    global _kept
    _kept = folder


_kept: Path | None = None


def _load(path: Path) -> Float[np.ndarray, "cells features"] | None:
    """The cached centroids; None if they are missing or damaged, and have to be computed again."""
    try:
        return read_tensors(path).get("centroid")
    except InputError:
        return None


def _keep(path: Path, centroid: Float[np.ndarray, "cells features"]) -> None:
    with suppress(OSError, StorageError):  # the cache only saves time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_tensors(path, {"centroid": whole(centroid)})
