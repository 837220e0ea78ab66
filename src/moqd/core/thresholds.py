"""Threshold fronts: what a solution has to improve on in each cell. They rise more slowly than the cell's own front.

MAP-Annealing: Fontaine & Nikolaidis, "Covariance Matrix Adaptation MAP-Annealing" (2023); with fronts in objective
space Zhao & Nikolaidis (2025). Points are measured from the reference point, which is the origin here.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moqd.core.pareto import truncate
from moqd.core.volume import anneal, improvement

FARTHEST = 1.0
"""The first threshold of a cell's shortfall."""


class Thresholds(NamedTuple):
    """What a solution has to improve on, by cell."""

    point: Float[Array, "cells threshold objectives"]
    valid: Bool[Array, "cells threshold"]
    approached: Float[Array, "cells"]
    """Minus a shortfall, the threshold of a cell as long as it has no solution above the reference point."""


def empty_thresholds(num_cells: int, length: int, num_objectives: int) -> Thresholds:
    """The thresholds of empty cells."""
    return Thresholds(
        point=jnp.zeros((num_cells, length, num_objectives)),
        valid=jnp.zeros((num_cells, length), bool),
        approached=jnp.full(num_cells, -FARTHEST),
    )


def anneal_thresholds(
    threshold: Thresholds,
    point: Float[Array, "batch objectives"],
    cell: Int[Array, "batch"],
    feasible: Bool[Array, "batch"],
    gain: Float[Array, "batch"],
    alpha: float,
) -> Thresholds:
    """The thresholds after a batch: points are inserted in order; shortfalls move towards the best of each cell."""
    length = threshold.valid.shape[1]
    nearest = threshold.approached.at[cell].max(jnp.where(feasible, jnp.minimum(jnp.min(point, axis=1), 0), -jnp.inf))
    approached = threshold.approached + alpha * (nearest - threshold.approached)
    order = jnp.nonzero(gain > 0, size=gain.size, fill_value=0)[0]

    def insert(i: Int[Array, ""], threshold: Thresholds) -> Thresholds:
        candidate, at = point[order[i]], cell[order[i]]
        front, valid = threshold.point[at], threshold.valid[at]

        def enter(threshold: Thresholds) -> Thresholds:
            new = anneal(candidate, front, valid, alpha)
            kept = jnp.append(valid & ~jnp.all(new[None, :] >= front, axis=1), True)
            kept = truncate(jnp.concatenate([front, new[None]]), kept, length)
            place = jnp.where(kept[-1], jnp.argmin(kept[:-1]), length)  # `length` is dropped
            return Thresholds(
                threshold.point.at[at, place].set(new, mode="drop"),
                threshold.valid.at[at].set(kept[:-1]).at[at, place].set(True, mode="drop"),
                approached,
            )

        # An earlier solution of the batch may have left nothing to improve.
        return jax.lax.cond(improvement(candidate, front, valid) > 0, enter, lambda threshold: threshold, threshold)

    return jax.lax.fori_loop(0, jnp.sum(gain > 0), insert, threshold._replace(approached=approached))
