import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moqd.core.networks import (
    apply_mlp,
    apply_policy,
    fold_preference,
    fold_standardisation,
    init_mlp,
    num_parameters,
)

PAPER = {  # observations and actions of the paper's robots; policies, critics of MOME-P2C and of MOME-PGX
    "ant-2": (87, 8, 2, 10_312, 182_788, 362_500),
    "ant-3": (87, 8, 3, 10_312, 183_814, 543_750),
    "halfcheetah-2": (18, 6, 2, 5_766, 146_436, 289_796),
    "hopper-2": (11, 3, 2, 5_123, 141_316, 279_556),
    "hopper-3": (11, 3, 3, 5_123, 142_342, 419_334),
    "walker-2": (17, 6, 2, 5_702, 145_924, 288_772),
}


@pytest.mark.parametrize("task", PAPER)
def test_parameter_counts_are_those_of_the_paper(task):
    num_obs, num_actions, num_objectives, policy, p2c, pgx = PAPER[task]

    def count(*sizes):
        return num_parameters(jax.eval_shape(lambda: init_mlp(jax.random.key(0), sizes)))

    assert count(num_obs, 64, 64, num_actions) == policy
    assert 2 * count(num_obs + num_actions + num_objectives, 256, 256, num_objectives) == p2c
    assert num_objectives * 2 * count(num_obs + num_actions, 256, 256, 1) == pgx


def test_a_network_is_what_its_layers_say(rng):
    network = init_mlp(jax.random.key(1), (5, 7, 3))
    x = rng.normal(size=(4, 5)).astype(np.float32)
    (first, second), relu = network, lambda x: np.maximum(x, 0)
    by_hand = relu(x @ np.asarray(first.kernel) + np.asarray(first.bias)) @ np.asarray(second.kernel)
    np.testing.assert_allclose(apply_mlp(network, jnp.asarray(x)), by_hand, atol=1e-5)
    np.testing.assert_allclose(apply_policy(network, jnp.asarray(x)), np.tanh(by_hand), atol=1e-5)


def test_kernels_are_lecun_uniform_and_biases_zero():
    network = init_mlp(jax.random.key(0), (300, 200, 100))
    for layer in network:
        bound = np.sqrt(3 / layer.kernel.shape[0])
        kernel = np.asarray(layer.kernel)
        assert np.all(np.abs(kernel) <= bound)
        assert np.std(kernel) == pytest.approx(bound / np.sqrt(3), rel=0.02)
        assert np.all(np.asarray(layer.bias) == 0)


@pytest.mark.parametrize("num_objectives", [1, 2, 3])
def test_the_folded_actor_is_the_actor_at_that_preference(num_objectives):
    key_actor, key_bias, key_obs, key_preference = jax.random.split(jax.random.key(0), 4)
    actor = init_mlp(key_actor, (11 + num_objectives, 64, 64, 3))
    actor = tuple(layer._replace(bias=jax.random.normal(key_bias, layer.bias.shape)) for layer in actor)
    obs = jax.random.normal(key_obs, (50, 11))
    preference = jax.random.dirichlet(key_preference, jnp.ones(num_objectives))
    conditioned = jnp.concatenate([obs, jnp.broadcast_to(preference, (50, num_objectives))], axis=1)
    policy = fold_preference(actor, preference)
    assert jax.tree.map(jnp.shape, policy) == jax.tree.map(jnp.shape, init_mlp(key_actor, (11, 64, 64, 3)))
    np.testing.assert_allclose(apply_policy(policy, obs), apply_policy(actor, conditioned), atol=1e-5)


def test_a_folded_standardisation_is_one_of_the_inputs(rng):
    network = init_mlp(jax.random.key(1), (5, 16, 3))
    obs = rng.normal([3.0, -1.0, 0.0], [0.1, 2.0, 5.0], (100, 3)).astype(np.float32)
    rest = rng.normal(size=(100, 2)).astype(np.float32)
    mean, scale = obs.mean(axis=0), obs.std(axis=0)
    folded = fold_standardisation(network, jnp.asarray(mean), jnp.asarray(scale))
    expected = apply_mlp(network, jnp.asarray(np.hstack([(obs - mean) / scale, rest])))
    np.testing.assert_allclose(apply_mlp(folded, jnp.asarray(np.hstack([obs, rest]))), expected, atol=1e-4)
