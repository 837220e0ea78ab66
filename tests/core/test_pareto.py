"""Dominance, ranks, crowding and truncation against moocore, pymoo and brute force."""

import jax
import jax.numpy as jnp
import moocore
import numpy as np
import pytest
from pymoo.operators.survival.rank_and_crowding.metrics import get_crowding_function
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from moqd.core import pareto
from tests import naive

SIZES = (1, 2, 3, 7, 50, 128, 129, 200)
OBJECTIVES = (1, 2, 3, 4, 5, 6)
MASK, RANKS = jax.jit(pareto.non_dominated), jax.jit(pareto.non_dominated_ranks)
CROWDING = jax.jit(pareto.crowding_distance, static_argnames="extremes")
TRUNCATE = jax.jit(pareto.truncate, static_argnums=2)
PYMOO_CROWDING = get_crowding_function("cd")
KINDS = ("continuous", "tied", "duplicated")


def random_points(rng: np.random.Generator, kind: str, num_points: int, num_objectives: int) -> np.ndarray:
    points = rng.standard_normal((num_points, num_objectives))
    if kind == "tied":
        points = rng.integers(0, 4, points.shape).astype(float)
    if kind == "duplicated":
        points = points[rng.integers(0, max(num_points // 2, 1), num_points)]
    return points.astype(np.float32)


def padded(points: np.ndarray, rng: np.random.Generator) -> tuple[jax.Array, jax.Array, np.ndarray]:
    """The points in random rows among invalid ones, so that a function that looks at those is found out."""
    size = 64 if len(points) < 64 else 256  # two sizes, since each is compiled anew: all pairs are counted, or sorted
    place = rng.permutation(size)[: len(points)]
    everything = rng.standard_normal((size, points.shape[1])).astype(np.float32) * 100
    everything[place] = points
    valid = np.zeros(size, bool)
    valid[place] = True
    return jnp.asarray(everything), jnp.asarray(valid), place


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_objectives", OBJECTIVES)
@pytest.mark.parametrize("num_points", SIZES)
def test_mask_and_ranks_agree_with_moocore_and_pymoo(kind, num_objectives, num_points, rng):
    points = random_points(rng, kind, num_points, num_objectives)
    everything, valid, place = padded(points, rng)

    mask = np.asarray(MASK(everything, valid))
    expected = moocore.is_nondominated(points.astype(float), maximise=True, keep_weakly=True)
    assert np.array_equal(mask[place], expected)
    assert not mask[~np.asarray(valid)].any()

    ranks = np.asarray(RANKS(everything, valid))
    if num_objectives > 1:  # moocore ranks at least two
        assert np.array_equal(ranks[place], moocore.pareto_rank(points.astype(float), maximise=True))
    fronts = NonDominatedSorting().do(-points.astype(float))
    for rank, front in enumerate(fronts):
        assert set(front) == set(np.flatnonzero(ranks[place] == rank))
    assert (ranks[~np.asarray(valid)] >= len(fronts)).all()


@pytest.mark.parametrize("num_objectives", OBJECTIVES)
@pytest.mark.parametrize("num_points", SIZES)
def test_crowding_distance_agrees_with_pymoo(num_objectives, num_points, rng):
    points = random_points(rng, "continuous", num_points, num_objectives)
    everything, valid, place = padded(points, rng)
    ours = np.asarray(CROWDING(everything, valid))
    theirs = PYMOO_CROWDING.do(points.astype(float))
    np.testing.assert_allclose(ours[place], theirs, rtol=1e-5)
    assert not ours[~np.asarray(valid)].any()


def test_crowding_distance_is_taken_within_each_front(rng):
    points = random_points(rng, "continuous", 300, 3)
    ranks = RANKS(jnp.asarray(points))
    together = np.asarray(CROWDING(jnp.asarray(points), front=ranks))
    for rank in np.unique(ranks):
        front = np.flatnonzero(np.asarray(ranks) == rank)
        np.testing.assert_allclose(together[front], PYMOO_CROWDING.do(points[front].astype(float)), rtol=1e-5)


@pytest.mark.parametrize("extremes", ["infinite", "doubled"])
@pytest.mark.parametrize(
    "points",
    [np.zeros((0, 2)), np.ones((1, 3)), np.ones((2, 2)), np.ones((5, 2)), [[0, 1], [1, 1], [3, 1]], np.eye(4)],
)
def test_small_and_constant_fronts_are_ordinary(points, extremes):
    points = jnp.asarray(points, jnp.float32)
    assert not np.isnan(CROWDING(points, extremes=extremes)).any()
    assert np.array_equal(RANKS(points) == 0, MASK(points))
    for size in (1, 2, 3):
        kept = TRUNCATE(points, jnp.ones(len(points), bool), size)
        assert np.sum(kept) == min(size, len(points))


def test_crowding_distance_worked_out_on_paper():
    points = jnp.asarray([[0.0, 10.0], [1.0, 8.0], [4.0, 5.0], [5.0, 0.0]])
    # The second: (4 - 0) / 5 in the first objective and (10 - 5) / 10 in the second, averaged.
    np.testing.assert_allclose(CROWDING(points), [np.inf, 0.65, 0.8, np.inf], rtol=1e-6)
    # An extreme counts the gap to its only neighbour twice: 2 * 1 / 5 and 2 * 2 / 10 for the first.
    doubled = CROWDING(points, extremes="doubled")
    np.testing.assert_allclose(doubled, [0.4, 0.65, 0.8, (2 * 1 / 5 + 2 * 5 / 10) / 2], rtol=1e-6)
    # A constant objective adds nothing but still counts in the average.
    constant = jnp.concatenate([points, jnp.ones((4, 1))], axis=1)
    np.testing.assert_allclose(CROWDING(constant)[1:3], np.array([1.3, 1.6]) / 3, rtol=1e-6)


def test_huge_objectives_are_ordinary():
    """Their range is no finite number; distances are those of the same front at another scale."""
    points = np.array([[0, 0], [-3.4e38, 3.4e38], [3.4e38, -3.4e38], [-1, 1], [1e38, -1e38]], np.float32)
    for extremes in ("infinite", "doubled"):
        distance, scaled = (CROWDING(jnp.asarray(front), extremes=extremes) for front in (points, points * 2.0**-10))
        assert np.array_equal(distance, scaled)
    assert TRUNCATE(jnp.asarray(points), jnp.ones(5, bool), 3).tolist() == [False, True, True, True, False]


QUICK = [(20, 2, "tied"), (40, 3, "duplicated"), (150, 4, "continuous")]
"""Every number to be left is compiled anew: the other combinations in the long tests."""


@pytest.mark.parametrize(
    ("num_points", "num_objectives", "kind"),
    [
        pytest.param(*shape, kind, marks=() if (*shape, kind) in QUICK else pytest.mark.slow)
        for shape in [(20, 2), (40, 3), (140, 2), (150, 4)]
        for kind in KINDS
    ],
)
def test_truncation_removes_one_at_a_time(num_points, num_objectives, kind, rng):
    """Against computing every distance again after each removal."""
    points = np.unique(random_points(rng, kind, num_points, num_objectives), axis=0)
    points = points[rng.permutation(len(points))]
    everything, valid, place = padded(points, rng)
    front = [tuple(point) for point in points.tolist()]
    for size in {1, 2, len(points) // 2, len(points) - 1} - {0}:
        kept = np.asarray(TRUNCATE(everything, valid, size))[place]
        assert {front[i] for i in np.flatnonzero(kept)} == set(naive.truncate(front, size))


def test_sort_keys_order_as_numbers_do():
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 2**32, 2_000, dtype=np.uint32).view(np.float32)
    ordinary = anything[np.isfinite(anything) & (np.abs(anything) >= np.finfo(np.float32).tiny)]
    values = np.concatenate([ordinary, rng.permutation(ordinary), [0.0, -0.0, np.inf, -np.inf]]).astype(np.float32)
    keys = np.asarray(pareto.sort_key(jnp.asarray(values)))
    np.testing.assert_array_equal(keys[:, None] < keys[None, :], values[:, None] < values[None, :])
    assert np.all(keys < np.iinfo(np.int32).max), "what is no point comes after all points"
