"""Hypervolume improvement over short fronts, in JAX: for algorithms that ask for it many times an iteration.

Objectives are maximised and measured from the reference point, which is the origin here: what is not positive in every
objective encloses nothing. Every function takes a front of shape (front, objectives) with a mask `valid`, in any order,
dominated points or not, and works under `jit` and `vmap`.

Up to 3 objectives volumes are exact, from all pairs of points, which for a dozen points is faster than sorting. For more
they are estimated by `SAMPLES` quasi-random points in the box between the origin and the candidate: the error is below
1 % of that box (about 0.2 % in the mean). To measure whole archives once, exactly, see `moqd.metrics`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

EXACT_OBJECTIVES = 3
SAMPLES = 2048
SECTIONS, ROUNDS = 32, 2
"""How `anneal` searches: in each round the interval is cut into so many parts."""

Point = Float[Array, "objectives"]
Front = Float[Array, "front objectives"]
Mask = Bool[Array, "front"]
Volume = Float[Array, ""]


def hypervolume(front: Front, valid: Mask) -> Volume:
    """The volume that the front dominates above the origin, exact: its cost grows as front ** objectives."""
    return _volume(jnp.where(valid[:, None], jnp.maximum(front, 0), 0))


def improvement(point: Point, front: Front, valid: Mask) -> Volume:
    """By how much the front's hypervolume would grow with the point; estimated for more than 3 objectives."""
    point = jnp.maximum(point, 0)
    if point.shape[0] > EXACT_OBJECTIVES:
        return jnp.prod(point) * jnp.mean(_free_samples(point, front, valid))
    # What the point dominates, less what of that the front dominates already.
    return jnp.maximum(jnp.prod(point) - hypervolume(jnp.minimum(front, point[None, :]), valid), 0)


def shortfall(point: Point, front: Front, valid: Mask) -> Float[Array, ""]:
    """By how much every objective must grow until the point improves the hypervolume; at most 0 where it does.

    The additive epsilon indicator: it orders points that enclose nothing, also those beyond the reference point.
    """
    dominated_by = jnp.where(valid, jnp.min(front - point[None, :], axis=1), -jnp.inf)
    return jnp.maximum(jnp.max(-point), jnp.max(dominated_by, initial=-jnp.inf))


def anneal(point: Point, front: Front, valid: Mask, alpha: float) -> Point:
    """The point drawn back towards the origin until its improvement is `alpha` times what it was.

    It must improve the front. The improvement of d * point is convex and growing in d from where it leaves the front,
    so the search is between there and 1; over an empty front d is alpha ** (1 / objectives).
    """
    if point.shape[0] > EXACT_OBJECTIVES:
        reach = jnp.sort(jnp.where(_free_samples(point, front, valid), jnp.max(_samples(point.shape[0]), axis=1), 2))
        num_free = jnp.sum(reach <= 1)
        found = reach[jnp.maximum(jnp.ceil(alpha * num_free.astype(reach.dtype)).astype(num_free.dtype) - 1, 0)]
    else:
        target = alpha * improvement(point, front, valid)
        leaves = jnp.where(valid, jnp.min(front / jnp.maximum(point, 1e-30)[None, :], axis=1), 0)
        low, high = jnp.clip(jnp.max(leaves, initial=0), 0, 1), jnp.ones(())
        below, above = jnp.zeros(()), target / alpha
        part = jnp.arange(1, SECTIONS, dtype=point.dtype) / SECTIONS
        for _ in range(ROUNDS):
            inner = low + part * (high - low)
            edge = jnp.concatenate([low[None], inner, high[None]])
            volume = jax.vmap(lambda d: improvement(d * point, front, valid))(inner)
            volume = jnp.concatenate([below[None], volume, above[None]])
            at = jnp.clip(jnp.sum(volume < target), 1, SECTIONS)
            low, high, below, above = edge[at - 1], edge[at], volume[at - 1], volume[at]
        found = low + (high - low) * jnp.clip((target - below) / jnp.maximum(above - below, 1e-30), 0, 1)
    empty = jnp.float32(alpha ** (1 / point.shape[0]))
    return jnp.where(jnp.any(valid), jnp.minimum(found, 1), empty) * point


def _volume(front: Front) -> Volume:
    """Slabs between the values of the last objective, each as thick as the step and as large as what reaches it."""
    last = front[:, -1]
    if front.shape[1] == 1:
        return jnp.max(last)
    index = jnp.arange(last.size)
    below = (last[None, :] < last[:, None]) | ((last[None, :] == last[:, None]) & (index[None, :] < index[:, None]))
    thickness = last - jnp.max(jnp.where(below, last[None, :], 0), axis=1)
    reaches = last[None, :] >= last[:, None]
    if front.shape[1] == 2:
        return jnp.sum(thickness * jnp.max(jnp.where(reaches, front[None, :, 0], 0), axis=1))
    size = jax.vmap(lambda reaches: _volume(jnp.where(reaches[:, None], front[:, :-1], 0)))(reaches)
    return jnp.sum(thickness * size)


def _free_samples(point: Point, front: Front, valid: Mask) -> Bool[Array, "samples"]:
    """Which samples of the box below the point no member of the front dominates."""
    sample = _samples(point.shape[0]) * point[None, :]
    dominated = jnp.all(front[None, :, :] >= sample[:, None, :], axis=2) & valid[None, :]
    return ~jnp.any(dominated, axis=1)


def _samples(num_objectives: int) -> Float[Array, "samples objectives"]:
    """Kronecker's sequence in the unit cube, with the powers of the root of x^(d + 1) = x + 1 (Roberts, 2018)."""
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (num_objectives + 1))
    step = root ** -np.arange(1.0, num_objectives + 1)
    return jnp.asarray((0.5 + np.arange(1, SAMPLES + 1)[:, None] * step) % 1, jnp.float32)
