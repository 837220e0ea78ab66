import jax
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
