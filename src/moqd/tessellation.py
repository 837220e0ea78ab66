"""Cells of the feature space: centroidal Voronoi tessellations, regular grids, and the cell of a feature.

CVT-MAP-Elites: Vassiliades, Chatzilygeroudis & Mouret, "Using centroidal Voronoi tessellations to scale up the
multidimensional archive of phenotypic elites algorithm" (2018).
"""

from collections.abc import Sequence
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

Bounds = Sequence[tuple[float, float]]
"""(lowest, highest) of each feature."""


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
    samples = np.random.default_rng(seed).random((max(50_000, 20 * num_cells), num_features))
    # One thread: k-means adds up in another order, and so to other bits, with another number of threads.
    with threadpool_limits(limits=1):
        return KMeans(num_cells, n_init=1, random_state=seed).fit(samples).cluster_centers_
