import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from moqd import InputError
from moqd.core import preferences


@pytest.mark.parametrize("num_objectives", [1, 2, 3, 5])
def test_uniform_is_dirichlet(num_objectives):
    sample = np.asarray(preferences.uniform(jax.random.key(0), 20_000, num_objectives))
    assert (sample >= 0).all()
    np.testing.assert_allclose(sample.sum(axis=1), 1, atol=1e-5)
    if num_objectives > 1:
        # One coordinate of Dirichlet(1) is Beta(1, m - 1).
        for column in sample.T:
            assert stats.kstest(column, stats.beta(1, num_objectives - 1).cdf).pvalue > 1e-3


def test_one_hot_shares_are_equal_and_the_first_get_one_more():
    assert np.array_equal(preferences.one_hot(8, 3).sum(axis=0), [3, 3, 2])
    assert np.array_equal(preferences.one_hot(2, 3), np.eye(3)[:2])
    assert preferences.one_hot(0, 3).shape == (0, 3)


def test_uniform_and_one_hot_ends_with_every_objective():
    sample = np.asarray(preferences.uniform_and_one_hot(jax.random.key(0), 10, 3))
    assert sample.shape == (10, 3)
    assert np.array_equal(sample[-3:], np.eye(3))
    with pytest.raises(InputError, match="num_preferences is 2, but each of the 3 objectives"):
        preferences.uniform_and_one_hot(jax.random.key(0), 2, 3)


def test_mixed_is_half_one_hot():
    sample = np.asarray(preferences.mixed(jax.random.key(0), 9, 2))
    assert np.array_equal(sample[:4], [[1, 0], [1, 0], [0, 1], [0, 1]])
    assert (sample[4:] > 0).all()


@pytest.mark.parametrize("num_objectives", [1, 2, 3, 5, 10])
def test_anchors_are_spread_over_the_simplex(num_objectives):
    anchor = np.asarray(preferences.no_gains(num_objectives).anchor)
    assert np.array_equal(anchor[:num_objectives], np.eye(num_objectives))
    assert (anchor >= 0).all()
    np.testing.assert_allclose(anchor.sum(axis=1), 1, atol=1e-6)
    if num_objectives > 1:
        assert len(np.unique(anchor.round(4), axis=0)) == len(anchor)
        # No objective is neglected: means over the simplex are 1 / m.
        np.testing.assert_allclose(anchor.mean(axis=0), 1 / num_objectives, atol=0.08)


@pytest.mark.parametrize("num_objectives", [2, 3])
def test_adaptive_preferences_find_what_gains_and_go_on_trying_the_rest(num_objectives):
    """Only offspring for the first objective gain anything."""
    sample, update = jax.jit(preferences.adaptive, static_argnums=1), jax.jit(preferences.with_gains)
    gains = preferences.no_gains(num_objectives)
    first = np.asarray(sample(jax.random.key(0), 1000, gains))
    for step in range(40):
        preference = sample(jax.random.key(step), 16, gains)
        gains = update(gains, preference, jnp.where(preference[:, 0] > 0.8, 1.0, 0.0), jnp.ones(16, bool))
    last = np.asarray(sample(jax.random.key(1), 1000, gains))
    for preference in (first, last):
        assert (preference >= 0).all()
        np.testing.assert_allclose(preference.sum(axis=1), 1, atol=1e-5)
    assert (last[:, 0] > 0.8).mean() > 1.5 * (first[:, 0] > 0.8).mean()
    assert (last[:, 0] < 0.5).mean() > 0.1


def test_gains_count_for_the_nearest_anchor_and_are_forgotten():
    none = preferences.no_gains(2)
    preference = jnp.array([[0.99, 0.01], [0.0, 1.0], [1.0, 0.0]])
    known = preferences.with_gains(none, preference, jnp.array([2.0, 3.0, 5.0]), jnp.array([True, True, False]))
    assert known.added[:2].tolist() == [2, 3]
    assert known.made[:2].tolist() == [2, 2]
    for _ in range(200):
        known = preferences.with_gains(known, preference, jnp.zeros(3), jnp.zeros(3, bool))
    np.testing.assert_allclose(known.made, 1, atol=1e-3)
    np.testing.assert_allclose(known.added, 0, atol=1e-3)
