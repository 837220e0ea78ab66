import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moqd.variation import cma_es


def test_constants_are_those_of_the_tutorial():
    """Its default population for 10 parameters, 10 samples; the numbers are worked out by hand from its table 1."""
    c = cma_es.constants(10, 10, separable=False)
    weight = [math.log(5.5) - math.log(i) for i in (1, 2, 3, 4, 5)]
    np.testing.assert_allclose(c.weight, np.array(weight) / sum(weight))
    np.testing.assert_allclose(c.weight, [0.4562726, 0.2707531, 0.1622311, 0.0852335, 0.0255096], atol=1e-6)
    assert c.selection == pytest.approx(3.1672992, abs=1e-6)
    assert c.step_rate == pytest.approx(5.1672992 / 18.1672992, abs=1e-6)
    assert c.step_damping == pytest.approx(1 + 5.1672992 / 18.1672992, abs=1e-6)  # sqrt(2.167 / 11) is below 1
    assert c.path_rate == pytest.approx(4.31672992 / 14.63345984, abs=1e-6)
    assert c.rank_one_rate == pytest.approx(2 / (127.69 + 3.1672992), abs=1e-6)
    assert c.rank_mu_rate == pytest.approx(2 * (1.1672992 + 0.3157264) / (144 + 3.1672992), abs=1e-6)
    assert c.expected_norm == pytest.approx(math.sqrt(10) * (1 - 1 / 40 + 1 / 2100))
    diagonal = cma_es.constants(10, 10, separable=True)
    assert diagonal.rank_one_rate == pytest.approx(4 * c.rank_one_rate)
    assert diagonal.rank_mu_rate == pytest.approx(4 * c.rank_mu_rate)


@pytest.mark.parametrize("separable", [False, True])
def test_rates_are_rates_for_all_sizes(separable):
    for num_parameters in (1, 2, 30, 1000):
        for num_samples in (1, 2, 5, 20, 500):
            c = cma_es.constants(num_parameters, num_samples, separable=separable)
            assert sum(c.weight) == pytest.approx(1)
            assert min(c.weight) > 0
            assert 0 < c.rank_one_rate <= 1
            assert 0 <= c.rank_mu_rate <= 1 - c.rank_one_rate + 1e-12
            assert 0 < c.step_rate < 1
            assert 0 < c.path_rate < 1.01


def minimise(function, mean, *, separable, generations, num_samples=20, step=0.5):
    c = cma_es.constants(mean.shape[1], num_samples, separable=separable)

    def generation(distributions, key):
        sample = cma_es.sample(key, distributions, num_samples)
        order = jnp.argsort(function(sample), axis=1)
        return cma_es.update(distributions, jnp.take_along_axis(sample, order[:, :, None], axis=1), c), None

    first = cma_es.start(mean, jnp.full(mean.shape[0], step), separable=separable)
    return jax.jit(lambda first, keys: jax.lax.scan(generation, first, keys)[0])(
        first, jax.random.split(jax.random.key(0), generations)
    )


def test_an_ill_conditioned_rotated_ellipsoid_is_minimised_by_a_full_covariance(rng):
    axes = jnp.asarray(np.linalg.qr(rng.standard_normal((10, 10)))[0], jnp.float32)
    scale = 10.0 ** jnp.linspace(0, 4, 10)

    def ellipsoid(x):
        return jnp.sum((x @ axes) ** 2 * jnp.broadcast_to(scale, x.shape), axis=-1)

    mean = jnp.ones((3, 10))
    full = minimise(ellipsoid, mean, separable=False, generations=350)
    assert (ellipsoid(full.mean) < 1e-8).all()
    # The covariance has become the inverse of the ellipsoid's matrix, up to a factor.
    condition = (full.scale.max(axis=1) / full.scale.min(axis=1)) ** 2
    assert ((condition > 1e3) & (condition < 1e5)).all()
    diagonal = minimise(ellipsoid, mean, separable=True, generations=350)
    assert (ellipsoid(diagonal.mean) > 100 * ellipsoid(full.mean)).all()


def test_a_diagonal_covariance_is_enough_along_the_axes():
    scale = 10.0 ** jnp.linspace(0, 4, 200)

    def ellipsoid(x):
        return jnp.sum(x**2 * jnp.broadcast_to(scale, x.shape), axis=-1)

    mean = jnp.ones((2, 200))
    found = minimise(ellipsoid, mean, separable=True, generations=1500)
    assert found.axes is None
    assert found.covariance.shape == (2, 200)
    assert (ellipsoid(found.mean) < 1e-6 * ellipsoid(mean)).all()


def test_samples_have_the_distributions_covariance():
    covariance = jnp.asarray([[[2.0, 0.9], [0.9, 1.0]]])
    value, axes = jnp.linalg.eigh(covariance)
    given = cma_es.start(jnp.asarray([[3.0, -1.0]]), jnp.full(1, 0.5), separable=False)
    given = given._replace(covariance=covariance, axes=axes, scale=jnp.sqrt(value))
    sample = np.asarray(cma_es.sample(jax.random.key(0), given, 20_000))[0]
    np.testing.assert_allclose(sample.mean(axis=0), [3, -1], atol=0.02)
    np.testing.assert_allclose(np.cov(sample.T), 0.25 * covariance[0], atol=0.02)


def test_degenerate_ones_are_told_and_restarted():
    least, most = jnp.float32(1e-6), jnp.float32(1e3)
    given = cma_es.start(jnp.ones((5, 3)), jnp.asarray([0.1, 1e-7, 1e4, 0.1, 0.1]), separable=True)
    given = given._replace(
        scale=given.scale.at[3, 0].set(1e-4), mean=given.mean.at[4, 1].set(jnp.nan), generation=jnp.full(5, 7)
    )
    which = cma_es.degenerate(given, least, most)
    assert which.tolist() == [False, True, True, True, True]
    fresh = cma_es.start(jnp.zeros((5, 3)), jnp.full(5, 0.2), separable=True)
    both = cma_es.restart(given, which, fresh)
    assert both.generation.tolist() == [7, 0, 0, 0, 0]
    assert both.mean[0].tolist() == [1, 1, 1]
    assert not cma_es.degenerate(both, least, most).any()
