"""SPEA2's environmental selection against its definition, done naively."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moqd.algorithms.population import survive
from moqd.algorithms.spea2 import kth_least, ranked, spea2_fitness, squared_distances, truncate
from tests import naive

FITNESS = jax.jit(lambda points, valid: spea2_fitness(points, valid, squared_distances(points, valid)))
SURVIVE = jax.jit(survive, static_argnums=(0, 4))
TRUNCATE = jax.jit(truncate, static_argnums=3)


def naive_truncate(points: np.ndarray, number: int) -> list[int]:
    """Every list of distances sorted again at each removal; of full ties the first vector, and of equals the last."""
    alive = list(range(len(points)))
    distance = np.asarray(squared_distances(jnp.asarray(points), jnp.ones(len(points), bool)))
    first = [next(k for k in alive if (points[k] == points[i]).all()) for i in alive]
    while len(alive) > number:
        alive.remove(min(alive, key=lambda i: (sorted(distance[i][alive]), first[i], -i)))
    return alive


@pytest.mark.parametrize("num_objectives", [2, 3])
def test_fitness_is_strength_and_density(num_objectives, rng):
    points = rng.integers(0, 6, (60, num_objectives)).astype(np.float32)
    vectors = [tuple(point) for point in points.tolist()]
    strength = [sum(naive.dominates(a, b) for b in vectors) for a in vectors]
    raw = [sum(s for a, s in zip(vectors, strength, strict=True) if naive.dominates(a, b)) for b in vectors]
    gaps = np.sort(np.linalg.norm(points[:, None] - points[None], axis=2), axis=1)
    expected = np.array(raw) + 1 / (gaps[:, int(np.sqrt(60))] + 2)  # column 0 is the distance to itself
    np.testing.assert_allclose(FITNESS(jnp.asarray(points), jnp.ones(60, bool)), expected, rtol=1e-5)


def test_kth_least_is_exact(rng):
    values = np.abs(rng.standard_normal((30, 50))).astype(np.float32)
    values[:, 5:9] = np.array([0, np.inf, 1e-38, 0], np.float32)
    for k in (1, 3, 25, 50):
        assert np.array_equal(kth_least(jnp.asarray(values), k), np.sort(values, axis=1)[:, k - 1])


@pytest.mark.parametrize("kind", ["continuous", "grid", "duplicated", "equal", "tiny"])
@pytest.mark.parametrize("number", [1, 7, 20, 39])
def test_truncation_is_the_published_one(kind, number, rng):
    points = np.abs(rng.standard_normal((40, 3)))
    if kind == "grid":  # many distances tie, also the second and the third
        points = rng.integers(0, 4, (40, 3)).astype(float)
    if kind == "duplicated":
        points = points[rng.integers(0, 15, 40)]
    if kind == "equal":
        points = np.ones((40, 3))
    if kind == "tiny":  # many squared distances are 0, but no vectors are equal
        points *= 1e-19
    points = points.astype(np.float32)
    distance = squared_distances(jnp.asarray(points), jnp.ones(40, bool))
    kept = np.flatnonzero(TRUNCATE(jnp.asarray(points), distance, jnp.ones(40, bool), number))
    assert len(kept) == number
    assert kept.tolist() == naive_truncate(points, number)


def test_survival_fills_up_and_cuts_down(rng):
    points = rng.standard_normal((80, 2)).astype(np.float32)
    valid = np.ones(80, bool)
    valid[::7] = False
    score = np.asarray(FITNESS(jnp.asarray(points), jnp.asarray(valid)))
    num_front = int((score[valid] < 1).sum())
    for number in (num_front - 2, num_front, num_front + 10, 75):
        survivor, merit = SURVIVE(ranked, jnp.asarray(points), jnp.asarray(valid), jnp.zeros(len(points)), number)
        survivor = np.asarray(survivor)
        assert len(set(survivor.tolist())) == number
        num_valid = min(number, valid.sum())
        assert valid[survivor[:num_valid]].all()
        if number >= num_front:
            best = np.flatnonzero(valid)[np.argsort(score[valid], kind="stable")[:num_valid]]
            assert set(survivor[:num_valid]) == set(best)
        else:
            assert (score[survivor] < 1).all()
        assert np.array_equal(merit[:, 1], -score[survivor])
