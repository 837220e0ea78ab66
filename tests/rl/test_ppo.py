"""Advantages against a naive loop, one step against NumPy, and learning where the best action is known on paper."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from moqd.core.networks import Policy, apply_policy
from moqd.core.types import Transition
from moqd.rl.ppo import PPOConfig, advantages, init_learner, log_probability, policy_of, seen, train
from moqd.rl.running_stats import empty_stats, update
from tests.rl.test_td3 import numpy_mlp

CONFIG = PPOConfig(minibatch=64, learning_rate=3e-3, discount=0.9, gae_lambda=0.8, value_hidden_sizes=(16,))
PROBE = Policy(num_obs=2, num_actions=1, hidden_sizes=(16,), apply=apply_policy)
TRAIN = jax.jit(train, static_argnames="config")


def stacked(number, config=CONFIG, num_objectives=2):
    keys = jax.random.split(jax.random.key(0), number)
    return jax.vmap(lambda key: init_learner(key, PROBE, num_objectives, config))(keys)


def random_episodes(rng, *shape, num_objectives=2):
    """Some of which end early, by a fall or by the clock."""
    length = rng.integers(1, shape[-1] + 1, shape[:-1])
    time = np.arange(shape[-1])
    ends = time == length[..., None] - 1
    arrays = (
        rng.normal(size=(*shape, 2)),
        rng.uniform(-1, 1, (*shape, 1)),
        rng.normal(size=(*shape, num_objectives)),
        rng.normal(size=(*shape, 2)),
    )
    falls = ends & (rng.random(shape[:-1]) < 0.5)[..., None]
    columns = [jnp.asarray(array, jnp.float32) for array in arrays]
    return Transition(*columns, jnp.asarray(falls), jnp.asarray(time < length[..., None]))


def naive_advantages(reward, value, next_value, terminated, valid, config):
    found = np.zeros(reward.shape)
    for episode in range(reward.shape[0]):
        for start in range(reward.shape[1]):
            share = 1.0
            for step in range(start, reward.shape[1]):
                if not valid[episode, step]:
                    break
                after = 0 if terminated[episode, step] else config.discount * next_value[episode, step]
                found[episode, start] += share * (reward[episode, step] + after - value[episode, step])
                share *= config.discount * config.gae_lambda
    return found


def test_advantages_are_those_of_a_naive_loop(rng):
    episodes = random_episodes(rng, 5, 12)
    value, next_value = rng.normal(size=(2, 5, 12, 2)).astype(np.float32)
    given = episodes.reward, jnp.asarray(value), jnp.asarray(next_value), episodes.terminated, episodes.valid
    found = jax.jit(lambda *given: advantages(*given, CONFIG))(*given)
    np.testing.assert_allclose(found, naive_advantages(*map(np.asarray, given), CONFIG), atol=1e-4)


def test_the_first_step_is_the_definition_in_numpy(rng):
    """With a single minibatch, losses are those of the advantages and values as they are before anything is trained."""
    config = replace(CONFIG, epochs=1, minibatch=40)
    learners, episodes = stacked(2, config), random_episodes(rng, 2, 4, 10)
    learners = learners._replace(obs_stats=jax.vmap(seen)(learners.obs_stats, random_episodes(rng, 2, 4, 10)))
    weight = np.array([[0.3, 0.7], [1, 0]], np.float32)
    after, losses = TRAIN(jax.random.key(1), learners, episodes, jnp.asarray(weight), config)
    value_losses = []
    for i in range(2):
        one, own = (jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), tree) for tree in (learners, episodes))
        valid = own.valid
        follows = np.where(valid[..., None], own.reward, 0).astype(float)
        for step in reversed(range(9)):
            follows[:, step] += 0.9 * follows[:, step + 1]
        unit = follows[valid].std(axis=0)
        np.testing.assert_allclose(np.sqrt(after.return_stats.variance[i]), unit, rtol=1e-4)
        value, next_value = (
            numpy_mlp(one.networks.value, (obs - one.obs_stats.mean) / np.sqrt(one.obs_stats.variance))
            for obs in (own.obs, own.next_obs)
        )
        advantage = naive_advantages(own.reward / unit, value, next_value, own.terminated, valid, config)
        value_losses.append((advantage[valid] ** 2).sum(axis=1).mean())
    # Every ratio is 1, so that the policies' loss is minus the mean of standardised advantages: 0.
    np.testing.assert_allclose(losses.policy, 0, atol=1e-5)
    np.testing.assert_allclose(losses.value, np.mean(value_losses), rtol=1e-3)


def test_the_policy_takes_observations_as_they_are(rng):
    learner = init_learner(jax.random.key(0), PROBE, 2, CONFIG)
    obs = jnp.asarray(rng.normal([3.0, -1.0], [0.1, 20.0], (1, 50, 2)), jnp.float32)
    stats = update(empty_stats(2), obs, jnp.ones((1, 50), bool))
    learner = learner._replace(obs_stats=stats)
    standardised = (obs - obs.mean(axis=(0, 1))[None, None]) / obs.std(axis=(0, 1))[None, None]
    np.testing.assert_allclose(
        apply_policy(policy_of(learner), obs), apply_policy(learner.networks.actor, standardised), atol=1e-5
    )
    np.testing.assert_allclose(learner.noise, CONFIG.initial_noise, rtol=1e-6)


def test_the_probability_is_that_of_the_normal_distribution(rng):
    networks = init_learner(jax.random.key(0), PROBE, 2, CONFIG).networks
    obs, action = rng.normal(size=(2, 20, 2)).astype(np.float32)
    action = jnp.asarray(action[:, :1])
    expected = norm(np.asarray(apply_policy(networks.actor, jnp.asarray(obs))), 0.5).logpdf(np.asarray(action))[:, 0]
    np.testing.assert_allclose(log_probability(networks, jnp.asarray(obs), action), expected, rtol=1e-4)


@pytest.mark.slow
def test_without_episodes_a_learner_stays_what_it_is(rng):
    """...and what another one of the stack learns does not depend on it."""
    learners, episodes = stacked(2), random_episodes(rng, 2, 4, 10)
    weight = jnp.full((2, 2), 0.5)
    some = episodes._replace(valid=episodes.valid & jnp.array([True, False])[:, None, None])
    after, _ = TRAIN(jax.random.key(1), learners, some, weight, CONFIG)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1], b[1]), after, learners)
    assert not np.array_equal(after.networks.log_noise[0], learners.networks.log_noise[0])


def test_each_of_a_stack_learns_what_its_weight_wants():
    """One step per episode with rewards -(a - 0.6)^2 and -(a + 0.6)^2: the best action is 0.6 (w1 - w2)."""
    config = replace(CONFIG, minibatch=128)
    weight = jnp.array([[1.0, 0.0], [0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])

    @jax.jit
    def iteration(learners, key):
        key_act, key_train = jax.random.split(key)
        obs = jnp.broadcast_to(jnp.array([1.0, -1.0]), (4, 128, 1, 2))
        mean = jax.vmap(apply_policy)(jax.vmap(policy_of)(learners), obs)
        action = mean + learners.noise[:, None, None] * jax.random.normal(key_act, mean.shape)
        reward = jnp.concatenate([-((action - 0.6) ** 2), -((action + 0.6) ** 2)], axis=-1)
        ended = jnp.ones((4, 128, 1), bool)
        learners, losses = train(
            key_train, learners, Transition(obs, action, reward, obs, ended, ended), weight, config
        )
        return learners, losses

    learners, losses = jax.lax.scan(iteration, stacked(4, config), jax.random.split(jax.random.key(2), 60))
    action = jax.vmap(apply_policy)(jax.vmap(policy_of)(learners), jnp.broadcast_to(jnp.array([1.0, -1.0]), (4, 1, 2)))
    np.testing.assert_allclose(action[:, 0, 0], 0.6 * (weight[:, 0] - weight[:, 1]), atol=0.1)
    assert (learners.noise < CONFIG.initial_noise).all()
    assert np.isfinite(losses.policy).all()


def test_losses_tell_when_a_parameter_is_not_finite(rng):
    learners, episodes = stacked(1), random_episodes(rng, 1, 4, 10)
    broken = episodes._replace(reward=episodes.reward.at[0, 0, 0, 0].set(jnp.inf))
    assert not np.isfinite(TRAIN(jax.random.key(1), learners, broken, jnp.ones((1, 2)), CONFIG)[1].policy)
