"""Hypervolume improvement over short fronts, in JAX: for algorithms that need it many times per iteration.

Objectives are maximised and measured from the reference point, which is the origin here: a point that is not positive
in every objective encloses nothing. Every function takes a front of shape (front, objectives) with a mask `valid`, in
any order, with or without dominated points, and works under `jit` and `vmap`.

Up to 3 objectives volumes are exact. For more they are estimated from `SAMPLES` quasi-random points in the box between
the origin and the candidate, with an error below 1 % of that box. To measure a whole archive see `moqd.core.metrics`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

EXACT_OBJECTIVES = 3
SAMPLES = 2048
UNROLLED = 16
SECTIONS, ROUNDS = 16, 2
"""How `anneal` searches: the number of parts into which each round divides the interval, and the number of rounds."""

Point = Float[Array, "objectives"]
Front = Float[Array, "front objectives"]
Mask = Bool[Array, "front"]
Volume = Float[Array, ""]


def improvement(point: Point, front: Front, valid: Mask) -> Volume:
    """By how much the front's hypervolume would grow with the point; estimated for more than 3 objectives."""
    point = jnp.maximum(point, 0)
    if point.shape[0] > EXACT_OBJECTIVES:
        return jnp.prod(point) * jnp.mean(_free_samples(point, front, valid))
    # The volume that the point dominates minus the part that the front already dominates; 0 must survive rounding.
    dominated = jnp.any(valid & jnp.all(front >= point[None, :], axis=1))
    return jnp.where(dominated, 0, jnp.maximum(jnp.prod(point) - _volume(_sorted(front, valid), point), 0))


def shortfall(point: Point, front: Front, valid: Mask) -> Float[Array, ""]:
    """By how much every objective must grow until the point improves the hypervolume; at most 0 where it does.

    The additive epsilon indicator, which also orders points that enclose nothing, such as those below the reference
    point.
    """
    dominated_by = jnp.where(valid, jnp.min(front - point[None, :], axis=1), -jnp.inf)
    return jnp.maximum(jnp.max(-point), jnp.max(dominated_by, initial=-jnp.inf))


def anneal(point: Point, front: Front, valid: Mask, alpha: float) -> Point:
    """The point moved towards the origin until its improvement is `alpha` times what it was.

    It must improve the front. The improvement of d * point is convex and increasing in d from where it leaves the
    front, so the search is between there and 1; over an empty front d is alpha ** (1 / objectives).
    """
    if point.shape[0] > EXACT_OBJECTIVES:
        reach = jnp.sort(jnp.where(_free_samples(point, front, valid), jnp.max(_samples(point.shape[0]), axis=1), 2))
        num_free = jnp.sum(reach <= 1)
        found = reach[jnp.maximum(jnp.ceil(alpha * num_free.astype(reach.dtype)).astype(num_free.dtype) - 1, 0)]
    else:
        order = _sorted(front, valid)
        whole = jnp.prod(point) - _volume(order, point)
        target = alpha * whole
        leaves = jnp.where(valid, jnp.min(front / jnp.maximum(point, 1e-30)[None, :], axis=1), 0)
        low, high = jnp.clip(jnp.max(leaves, initial=0), 0, 1), jnp.ones(())
        below, above = jnp.zeros(()), whole
        part = jnp.arange(1, SECTIONS, dtype=point.dtype) / SECTIONS
        for _ in range(ROUNDS):
            inner = low + part * (high - low)
            edge = jnp.concatenate([low[None], inner, high[None]])
            volume = jax.vmap(lambda d: jnp.prod(d * point) - _volume(order, d * point))(inner)
            volume = jnp.concatenate([below[None], volume, above[None]])
            at = jnp.clip(jnp.sum(volume < target), 1, SECTIONS)
            low, high, below, above = edge[at - 1], edge[at], volume[at - 1], volume[at]
        found = low + (high - low) * jnp.clip((target - below) / jnp.maximum(above - below, 1e-30), 0, 1)
    empty = jnp.float32(alpha ** (1 / point.shape[0]))
    return jnp.where(jnp.any(valid), jnp.minimum(found, 1), empty) * point


class _Sorted(NamedTuple):
    """A front in descending order of its first objective; clipping all points at one changes no order."""

    point: Front
    level: Int[Array, "front"]
    """The descending order of the last objective, as indices into `point`."""


def _sorted(front: Front, valid: Mask) -> _Sorted:
    point = jnp.where(valid[:, None], jnp.maximum(front, 0), 0)
    point = point[jnp.argsort(-point[:, 0])]
    return _Sorted(point, jnp.argsort(-point[:, -1]))


def _volume(front: _Sorted, clip: Point) -> Volume:
    """Of the front clipped at a point: slabs between values of the last objective, each as large as what reaches it."""
    point = jnp.minimum(front.point, clip[None, :])
    num_points, num_objectives = point.shape
    if num_objectives == 1:
        return jnp.max(point[:, 0])
    if num_objectives == 2:
        return _area(point[:, 0], point[None, :, 1])[0]
    index = jnp.arange(num_points)
    place = jnp.zeros(num_points, index.dtype).at[front.level].set(index)
    reaches = place[None, :] <= index[:, None]
    return jnp.sum(_steps(point[front.level, 2]) * _area(point[:, 0], jnp.where(reaches, point[None, :, 1], 0)))


def _area(width: Float[Array, "front"], height: Float[Array, "slabs front"]) -> Float[Array, "slabs"]:
    """Of staircases of descending widths. A loop of a dozen turns, unrolled, is one fused operation."""
    if width.size > UNROLLED:
        return jnp.sum(_steps(width)[None, :] * jax.lax.cummax(height, axis=1), axis=1)
    step, highest, area = _steps(width), jnp.zeros(height.shape[0]), jnp.zeros(height.shape[0])
    for i in range(width.size):
        highest = jnp.maximum(highest, height[:, i])
        area += step[i] * highest
    return area


def _steps(descending: Float[Array, "front"]) -> Float[Array, "front"]:
    return descending - jnp.append(descending[1:], 0)


def _free_samples(point: Point, front: Front, valid: Mask) -> Bool[Array, "samples"]:
    """Which samples of the box below the point no member of the front dominates."""
    sample = _samples(point.shape[0]) * point[None, :]
    dominated = jnp.all(front[None, :, :] >= sample[:, None, :], axis=2) & valid[None, :]
    return ~jnp.any(dominated, axis=1)


def _samples(num_objectives: int) -> Float[Array, "samples objectives"]:
    """Sobol's sequence in the unit cube, in the middle of its intervals."""
    from scipy.stats import qmc  # here, because it takes its time, and most runs never need it

    sequence = qmc.Sobol(num_objectives, scramble=False).random(SAMPLES) + 0.5 / SAMPLES
    return jnp.asarray(sequence, jnp.float32)
