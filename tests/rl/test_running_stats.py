"""Running statistics against NumPy's on everything at once."""

import jax
import jax.numpy as jnp
import numpy as np

from moqd.rl.running_stats import empty_stats, standardise, update

SCALE, SHIFT = np.array([3.0, 0.01, 500.0]), np.array([-7.0, 2.0, 1e4])


def test_all_batches_count_as_one(rng):
    stats, seen = empty_stats(3), []
    for batch in range(20):
        reward = rng.normal(SHIFT, SCALE * (1 + batch % 3), (6, 11, 3)).astype(np.float32)
        valid = rng.random((6, 11)) < (0.0 if batch == 4 else 0.7)
        # What did not happen must not count, whatever is there.
        padded = np.where(valid[..., None], reward, np.nan).astype(np.float32)
        stats = jax.jit(update)(stats, jnp.asarray(padded), jnp.asarray(valid))
        seen.append(reward[valid])
    seen = np.concatenate(seen).astype(float)
    assert stats.number == len(seen)
    np.testing.assert_allclose(stats.mean, seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(stats.variance, seen.var(axis=0), rtol=1e-3)

    standardised = np.asarray(standardise(stats, jnp.asarray(seen, jnp.float32)), float)
    np.testing.assert_allclose(standardised.mean(axis=0), 0, atol=0.01)
    np.testing.assert_allclose(standardised.var(axis=0), 1, rtol=0.01)
    scaled = np.asarray(standardise(stats, jnp.asarray(seen, jnp.float32), center=False), float)
    np.testing.assert_allclose(scaled.var(axis=0), 1, rtol=0.01)
    np.testing.assert_allclose(scaled.mean(axis=0), (seen / seen.std(axis=0)).mean(axis=0), rtol=0.01)


def test_a_reward_that_never_varies_keeps_its_scale():
    """However many there are: a plain sum of so many would be 0.3 % off, and its variance not 0."""
    reward = jnp.full((256, 1000, 1), 0.1)
    stats = empty_stats(1)
    for _ in range(2):
        stats = jax.jit(update)(stats, reward, jnp.ones((256, 1000), bool))
    assert stats.variance == 0
    np.testing.assert_allclose(standardise(stats, reward, center=False), 0.1, rtol=1e-6)
    np.testing.assert_allclose(standardise(stats, reward), 0, atol=1e-6)
    assert (standardise(empty_stats(1), reward) == reward).all()


def test_many_batches_do_not_wear_the_numbers_out():
    """A billion steps: the mean still follows what comes."""
    stats = empty_stats(1)._replace(number=jnp.float32(1e9), mean=jnp.ones(1), variance=jnp.ones(1))
    reward, valid = jnp.full((256, 1000, 1), 2.0), jnp.ones((256, 1000), bool)
    later = jax.jit(update)(stats, reward, valid)
    share = 256_000 / (1e9 + 256_000)
    np.testing.assert_allclose(later.mean - 1, share, rtol=1e-2)
    np.testing.assert_allclose(later.number, 1e9 + 256_000, rtol=1e-7)
