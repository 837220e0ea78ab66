"""The folded actor is the conditioned actor."""

import jax
import jax.numpy as jnp
import numpy as np

from moqd.core import preferences
from moqd.core.networks import apply_policy, init_mlp
from moqd.rl.td3 import act
from moqd.variation.actor_injection import inject


def test_folding_equals_conditioning():
    key_actor, key_bias, key_preference, key_obs = jax.random.split(jax.random.key(0), 4)
    actor = init_mlp(key_actor, (5 + 3, 16, 16, 2))
    actor = jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(key_bias, leaf.shape), actor)
    preference = preferences.uniform_and_one_hot(key_preference, 9, 3)
    obs = jax.random.normal(key_obs, (9, 5))
    policies = inject(actor, preference)
    assert [layer.kernel.shape for layer in policies] == [(9, 5, 16), (9, 16, 16), (9, 16, 2)]
    action = jax.vmap(apply_policy)(policies, obs)
    np.testing.assert_allclose(action, act(actor, obs, preference), atol=1e-6)
    assert np.abs(np.diff(action, axis=0)).max() > 0.01


def test_a_feature_and_a_preference_are_folded_together():
    key_actor, key_preference, key_aim, key_obs = jax.random.split(jax.random.key(0), 4)
    actor = init_mlp(key_actor, (5 + 2 + 3, 16, 16, 2))
    preference, aim = preferences.uniform(key_preference, 9, 3), jax.random.uniform(key_aim, (9, 2))
    obs = jax.random.normal(key_obs, (9, 5))
    policies = inject(actor, jnp.concatenate([aim, preference], axis=1))
    action = jax.vmap(apply_policy)(policies, obs)
    np.testing.assert_allclose(action, act(actor, obs, preference, aim), atol=1e-6)
