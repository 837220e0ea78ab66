import jax
import jax.numpy as jnp
import numpy as np

from moqd.core.thresholds import FARTHEST, anneal_thresholds, empty_thresholds

ALPHA = 0.1


def told(threshold, points, cells, feasible=None):
    points = jnp.asarray(points, jnp.float32)
    feasible = jnp.ones(len(points), bool) if feasible is None else jnp.asarray(feasible)
    gain = jnp.where(feasible & (points > 0).all(axis=1), 1.0, 0.0)
    return jax.jit(anneal_thresholds, static_argnums=5)(threshold, points, jnp.asarray(cells), feasible, gain, ALPHA)


def test_the_first_point_of_a_cell_is_drawn_back_to_a_share_of_its_volume():
    threshold = told(empty_thresholds(3, 10, 2), [[1.0, 4.0]], [1])
    assert threshold.valid.sum() == 1
    np.testing.assert_allclose(threshold.point[1, 0], np.sqrt(ALPHA) * np.array([1, 4]), rtol=1e-6)


def test_told_again_and_again_the_threshold_becomes_the_point():
    threshold = empty_thresholds(1, 10, 2)
    for _ in range(60):
        threshold = told(threshold, [[1.0, 1.0]], [0])
        assert threshold.valid.sum() == 1  # each dominates the one before
    assert (threshold.point[0][threshold.valid[0]] > 0.98).all()


def test_fronts_keep_their_length_and_no_dominated_point(rng):
    threshold = empty_thresholds(2, 5, 2)
    for _ in range(10):
        angle = rng.uniform(0, np.pi / 2, 20)
        threshold = told(threshold, np.stack([np.cos(angle), np.sin(angle)], axis=1), rng.integers(0, 2, 20))
    assert (threshold.valid.sum(axis=1) == 5).all()
    for front in np.asarray(threshold.point):
        assert not any((a >= b).all() and (a > b).any() for a in front for b in front)
        assert (np.linalg.norm(front, axis=1) <= 1 + 1e-6).all()


def test_beyond_the_reference_point_shortfalls_are_annealed_by_cell():
    threshold = told(
        empty_thresholds(3, 10, 2), [[-0.5, 1.0], [-0.2, -0.4], [-0.1, -0.1]], [0, 0, 2], [True, True, False]
    )
    first = -FARTHEST + ALPHA * (FARTHEST - 0.4)
    np.testing.assert_allclose(threshold.approached, [first, -FARTHEST, -FARTHEST], rtol=1e-6)
    assert not threshold.valid.any()
