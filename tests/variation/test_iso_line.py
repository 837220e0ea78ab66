import jax
import jax.numpy as jnp
import numpy as np

from moqd.variation.iso_line import iso_line


def test_without_noise_the_child_is_on_the_line(rng):
    x = {"a": jnp.asarray(rng.standard_normal((50, 4)), jnp.float32), "b": jnp.ones((50, 2, 3))}
    y = jax.tree.map(lambda leaf: leaf + 1 + jnp.abs(leaf), x)
    child = iso_line(jax.random.key(0), x, y, iso_sigma=0.0, line_sigma=0.5)
    along = [((c - a) / (b - a)).reshape(50, -1) for a, b, c in zip(*map(jax.tree.leaves, (x, y, child)), strict=True)]
    along = np.concatenate(along, axis=1)
    # One amount for the whole genotype, another for every child.
    np.testing.assert_allclose(along, np.broadcast_to(along[:, :1], along.shape), atol=1e-4)
    assert 0.3 < along[:, 0].std() < 0.7


def test_noise_is_isotropic_with_the_given_scale():
    x = jnp.zeros((2000, 5))
    child = np.asarray(iso_line(jax.random.key(0), x, x, iso_sigma=0.1, line_sigma=10.0))
    np.testing.assert_allclose(np.cov(child.T), 0.01 * np.eye(5), atol=1e-3)


def test_bounds_hold():
    x = jnp.full((100, 3), 0.99)
    child = iso_line(jax.random.key(0), x, 1 - x, iso_sigma=0.5, line_sigma=0.5, bounds=(0.0, 1.0))
    assert (child >= 0).all()
    assert (child <= 1).all()
