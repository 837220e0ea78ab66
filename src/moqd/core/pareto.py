"""Pareto dominance, non-dominated sorting and crowding distance, for any number of maximised objectives.

Every function takes points of shape (points, objectives) and an optional `valid` mask (True: the row is a point), and
works under `jit` and `vmap`. Dominance is the paper's: at least as good in all objectives and better in one, so that
equal points do not dominate each other.

Crowding distance is that of Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II" (2002): per
objective, the gap between the two neighbours of a point scaled by the range of its front, averaged over objectives. An
objective that is constant on a front adds nothing. Where points share a value, their neighbours are found in the
lexicographic order of the whole vectors, so the result never depends on the order of the rows.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

Points = Float[Array, "points objectives"]
Mask = Bool[Array, "points"]


def dominates(a: Float[Array, "*batch objectives"], b: Float[Array, "*batch objectives"]) -> Bool[Array, "*batch"]:
    """Whether a is at least as good as b in every objective and better in one."""
    return jnp.all(a >= b, axis=-1) & jnp.any(a > b, axis=-1)


def non_dominated(points: Points, valid: Mask | None = None) -> Mask:
    """Which points no other point dominates; invalid rows are False."""
    valid = jnp.ones(points.shape[0], bool) if valid is None else valid
    beaten = jax.vmap(lambda point: jnp.any(valid & dominates(points, jnp.broadcast_to(point, points.shape))))(points)
    return valid & ~beaten


def non_dominated_ranks(points: Points, valid: Mask | None = None) -> Int[Array, "points"]:
    """The front of each point: 0 for the non-dominated, 1 for the non-dominated without these, ...; invalid rows last.

    A point's rank is the length of the longest chain of points that dominate each other and then it. Dominators come
    later in lexicographic order, so one pass from its end finds all ranks without a matrix of pairs.
    """
    num_points = points.shape[0]
    if num_points == 0:
        return jnp.zeros(0, jnp.int32)
    valid = jnp.ones(num_points, bool) if valid is None else valid
    order = _lexicographic(_keys(points, valid))
    ordered, num_valid = points[order], jnp.sum(valid)

    def rank_next(i: Int[Array, ""], ranks: Int[Array, "points"]) -> Int[Array, "points"]:
        last = num_valid - 1 - i
        point = jnp.broadcast_to(ordered[last], ordered.shape)
        return ranks.at[last].set(jnp.max(jnp.where(dominates(ordered, point), ranks + 1, 0), initial=0))

    # Rows that are not ranked, or not yet, hold -1: whatever they are compared with, they can never raise a rank.
    ranks = jax.lax.fori_loop(0, num_valid, rank_next, jnp.full(num_points, -1))
    return jnp.zeros(num_points, ranks.dtype).at[order].set(jnp.where(ranks < 0, num_points, ranks))


def crowding_distance(
    points: Points,
    valid: Mask | None = None,
    *,
    front: Int[Array, "points"] | None = None,
    extremes: Literal["infinite", "doubled"] = "infinite",
) -> Float[Array, "points"]:
    """NSGA-II's crowding distance within each front (one front unless `front` labels several); invalid rows get 0.

    The extremes of an objective have only one neighbour. Their distance is infinite (as is that of all points in a
    front of one or two), or with "doubled" they count the gap to that neighbour twice, a finite weight for selection.
    """
    num_points = points.shape[0]
    if num_points == 0:
        return jnp.zeros(0, points.dtype)
    valid = jnp.ones(num_points, bool) if valid is None else valid
    front = jnp.zeros(num_points, jnp.int32) if front is None else front
    front = jnp.where(valid, front, num_points)
    neighbours = _neighbours(points, valid, front)
    value = _values(points)

    def spread(of: Float[Array, "points"]) -> Float[Array, "points"]:
        largest = jax.ops.segment_max(of, front, num_points + 1)[front]
        return largest - jax.ops.segment_min(of, front, num_points + 1)[front]

    distance = _distance(value, neighbours, jax.vmap(spread)(value), extremes)
    if extremes == "infinite":
        distance = jnp.where(jnp.bincount(front, length=num_points + 1)[front] <= 2, jnp.inf, distance)
    return jnp.where(valid, distance, 0)


def truncate(points: Points, valid: Mask, size: int) -> Mask:
    """Which members of a front stay when it has at most `size` places.

    While there are more, the member with the smallest crowding distance is removed (among equals, the lexicographically
    smallest), and distances are recomputed. Lists of neighbours make a removal cheap: nothing is sorted twice.
    """
    num_points, num_objectives = points.shape
    if num_points <= size:
        return valid
    value, objective = _values(points), jnp.arange(num_objectives)
    neighbours = _neighbours(points, valid)
    # One more column receives what is written to a missing neighbour.
    ends = jnp.full((num_objectives, 1), num_points)
    neighbours = neighbours._replace(
        lower=jnp.concatenate([neighbours.lower, ends], axis=1), upper=jnp.concatenate([neighbours.upper, ends], axis=1)
    )

    def remove_one(state: tuple[Mask, _Neighbours]) -> tuple[Mask, _Neighbours]:
        valid, (lower, upper, lexicographic) = state
        highest = jnp.max(value, axis=1, where=valid[None, :], initial=-jnp.inf)
        extent = highest - jnp.min(value, axis=1, where=valid[None, :], initial=jnp.inf)
        around = _Neighbours(lower[:, :-1], upper[:, :-1], lexicographic)
        distance = _distance(value, around, extent[:, None], "infinite")
        least = jnp.min(distance, where=valid, initial=jnp.inf)
        gone = jnp.argmin(jnp.where(valid & (distance == least), lexicographic, num_points))
        below, above = lower[:, gone], upper[:, gone]
        lower = lower.at[objective, above].set(below)
        upper = upper.at[objective, below].set(above)
        return valid.at[gone].set(False), _Neighbours(lower, upper, lexicographic)

    return jax.lax.while_loop(lambda state: jnp.sum(state[0]) > size, remove_one, (valid, neighbours))[0]


class _Neighbours(NamedTuple):
    """The points before and after each point in ascending order of every objective; index n: none."""

    lower: Int[Array, "objectives points"]
    upper: Int[Array, "objectives points"]
    lexicographic: Int[Array, "points"]


def _neighbours(points: Points, valid: Mask, front: Int[Array, "points"] | None = None) -> _Neighbours:
    """The neighbours of the valid points within their fronts, ties in an objective in lexicographic order."""
    num_points, num_objectives = points.shape
    keys = _keys(points, valid)
    place = (_places_by_counting if num_points <= 128 else _places_by_sorting)(keys, front)
    row = jnp.arange(num_objectives)[:, None]
    in_order = jnp.full((num_objectives, num_points + 2), num_points)
    in_order = in_order.at[row, place + 1].set(jnp.where(valid, jnp.arange(num_points), num_points)[None, :])

    def neighbour(step: int) -> Int[Array, "objectives points"]:
        candidate = jnp.take_along_axis(in_order, place + 1 + step, axis=1)
        if front is None:
            return candidate
        same = jnp.append(front, -1)[candidate] == front[None, :]
        return jnp.where(same, candidate, num_points)

    return _Neighbours(neighbour(-1), neighbour(1), place[0])


def sort_key(value: Shaped[Array, "*batch"]) -> Shaped[Array, "*batch"]:
    """Integers in the order of the numbers, both zeros equal: XLA sorts faster by several integers than by floats."""
    if not jnp.issubdtype(value.dtype, jnp.floating):
        return value
    bits = jax.lax.bitcast_convert_type(jnp.where(value == 0, 0, value), f"int{8 * value.dtype.itemsize}")
    return jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits)


def _keys(points: Points, valid: Mask) -> Int[Array, "points objectives"]:
    """The keys by which rows are sorted: invalid rows come last."""
    keys = sort_key(points)
    return jnp.where(valid[:, None], keys, jnp.iinfo(keys.dtype).max)


def _lexicographic(keys: Int[Array, "points objectives"]) -> Int[Array, "points"]:
    """The ascending order of rows. Ranks and crowding distances of the same points share it: XLA sorts once."""
    return jnp.lexsort(tuple(keys.T[::-1]))


def _places_by_counting(
    keys: Int[Array, "points objectives"], front: Int[Array, "points"] | None
) -> Int[Array, "objectives points"]:
    """Each point's place in the order by (front, objective, lexicographic), from all pairs: fast for few points."""
    index = jnp.arange(keys.shape[0])
    before = index[None, :] < index[:, None]  # [i, k]: k comes before i

    def refine(before: Bool[Array, "points points"], key: Array) -> Bool[Array, "points points"]:
        return (key[None, :] < key[:, None]) | ((key[None, :] == key[:, None]) & before)

    for key in keys.T[::-1]:
        before = refine(before, key)
    orders = [refine(before, key) for key in keys.T]
    return jnp.stack([jnp.sum(order if front is None else refine(order, front), axis=1) for order in orders])


def _places_by_sorting(
    keys: Int[Array, "points objectives"], front: Int[Array, "points"] | None
) -> Int[Array, "objectives points"]:
    """The same places from sorting: for many points."""
    front = jnp.zeros(keys.shape[0], jnp.int32) if front is None else front
    lexicographic = _lexicographic(keys)

    def places(key: Int[Array, "points"]) -> Int[Array, "points"]:
        order = lexicographic[jnp.lexsort((key[lexicographic], front[lexicographic]))]
        return jnp.zeros_like(order).at[order].set(jnp.arange(order.size, dtype=order.dtype))

    return jax.vmap(places)(keys.T)


def _values(points: Points) -> Float[Array, "objectives points"]:
    """The objectives divided by 8, so that gaps are finite and ranges not so large that XLA rounds 1 / range to 0.

    Dividing by a power of two is exact: a distance is a ratio of gaps, and none of its bits changes.
    """
    return points.T / 8


def _distance(
    value: Float[Array, "objectives points"],
    neighbours: _Neighbours,
    extent: Float[Array, "objectives _"],
    extremes: Literal["infinite", "doubled"],
) -> Float[Array, "points"]:
    num_points = value.shape[1]
    no_lower, no_upper = neighbours.lower == num_points, neighbours.upper == num_points
    below = jnp.where(no_lower, value, jnp.take_along_axis(value, neighbours.lower, axis=1, mode="clip"))
    above = jnp.where(no_upper, value, jnp.take_along_axis(value, neighbours.upper, axis=1, mode="clip"))
    at_extreme = jnp.inf if extremes == "infinite" else 2 * (above - below)
    gap = jnp.where(no_lower | no_upper, at_extreme, above - below)
    return jnp.mean(jnp.where(extent > 0, gap / jnp.where(extent > 0, extent, 1), 0), axis=0)
