"""Learning on problems whose values are known on paper, and single steps against NumPy."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moqd.core import preferences
from moqd.core.networks import Policy, apply_policy
from moqd.rl.buffer import Steps
from moqd.rl.running_stats import empty_stats, standardise, update
from moqd.rl.td3 import Agent, TD3Config, act, init_agent, train, value

CONFIG = TD3Config(critic_hidden_sizes=(64, 64), critic_learning_rate=1e-3, actor_learning_rate=1e-3, discount=0.9)
PROBE = Policy(num_obs=2, num_actions=1, hidden_sizes=(32, 32), apply=apply_policy)
PREFERENCES = np.array([[1, 0], [0.8, 0.2], [0.5, 0.5], [0.3, 0.7], [0, 1]], np.float32)
FIRST, SECOND = np.eye(2, dtype=np.float32)
TRAIN = jax.jit(train, static_argnames="config")


def rewards(action):
    """The first objective wants to go right, the second left; both are glad to be there."""
    return np.concatenate([5 - (action - 0.8) ** 2, 5 - (action + 0.8) ** 2], axis=-1)


def best(preference):
    """max_a w.r(a) = 5 - 2.56 w1 w2, at a = 0.8 (w1 - w2), since r = 5 - (a -+ 0.8)^2."""
    return 5 - 2.56 * preference[:, 0] * preference[:, 1]


@cache
def trained_on_two_steps() -> Agent:
    """Of a random policy: the first state leads to the second, and there the episode ends for good."""
    rng = np.random.default_rng(0)
    in_first = rng.random((3000, 256, 1)) < 0.5
    action = rng.uniform(-1, 1, (3000, 256, 1)).astype(np.float32)
    steps = Steps(
        obs=np.where(in_first, FIRST, SECOND),
        action=action,
        reward=rewards(action),
        next_obs=np.where(in_first, SECOND, 0 * SECOND),
        terminated=~in_first[..., 0],
    )
    agent = init_agent(jax.random.key(0), PROBE, 2, CONFIG, conditioned=True)
    return TRAIN(jax.random.key(1), agent, jax.tree.map(jnp.asarray, steps), CONFIG)[0]


@pytest.mark.parametrize("preference", PREFERENCES, ids=str)
def test_values_are_those_on_paper_for_every_preference(preference):
    """w.Q*(second, a | w) = w.r(a), and w.Q*(first, a | w) = w.r(a) + 0.9 (5 - 2.56 w1 w2)."""
    agent, action = trained_on_two_steps(), np.linspace(-0.9, 0.9, 7, dtype=np.float32)[:, None]
    preference = np.tile(preference, (7, 1))
    now = np.sum(preference * rewards(action), axis=1)
    for state, expected in ((SECOND, now), (FIRST, now + 0.9 * best(preference))):
        obs = jnp.asarray(np.tile(state, (7, 1)))
        for found in value(agent.critics, obs, jnp.asarray(action), jnp.asarray(preference)):
            np.testing.assert_allclose(found, expected, rtol=0.05)


def test_the_actor_follows_the_preference():
    agent = trained_on_two_steps()
    for state in (FIRST, SECOND):
        action = act(agent.actor, jnp.asarray(np.tile(state, (5, 1))), jnp.asarray(PREFERENCES))
        np.testing.assert_allclose(action[:, 0], 0.8 * (PREFERENCES[:, 0] - PREFERENCES[:, 1]), atol=0.1)


@pytest.mark.parametrize("conditioned", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_termination_cuts_the_future_and_truncation_does_not(conditioned):
    """One reward of 1 per step: cut by a fall it is worth 1, cut by a time limit 1 / (1 - 0.9) = 10."""
    rng = np.random.default_rng(0)
    falls = rng.random((4000, 64)) < 0.5
    state = np.where(falls[..., None], FIRST, SECOND)
    action = rng.uniform(-1, 1, (4000, 64, 1)).astype(np.float32)
    steps = Steps(state, action, np.ones((4000, 64, 1), np.float32), state, falls)
    config = replace(CONFIG, tau=0.05)
    agent = init_agent(jax.random.key(0), PROBE, 1, config, conditioned=conditioned)
    agent, losses = TRAIN(jax.random.key(1), agent, jax.tree.map(jnp.asarray, steps), config)
    found = value(agent.critics, jnp.eye(2), jnp.zeros((2, 1)), jnp.ones((2, 1)))
    np.testing.assert_allclose(found, [[1, 10]] * 2, rtol=0.05)
    assert np.isfinite(losses).all()


def numpy_mlp(network, x):
    *hidden, last = [(np.asarray(layer.kernel, float), np.asarray(layer.bias, float)) for layer in network]
    for kernel, bias in hidden:
        x = np.maximum(x @ kernel + bias, 0)
    return x @ last[0] + last[1]


@pytest.mark.parametrize("num_objectives", [1, 2])
def test_one_step_is_the_definition_in_numpy(num_objectives, rng):
    """The loss of both critics, the mean value, the loss of the actor after the critics' step, and all targets."""
    config, conditioned = replace(CONFIG, policy_noise=0.0, tau=0.25), num_objectives > 1
    agent = init_agent(jax.random.key(3), PROBE, num_objectives, config, conditioned=conditioned)
    # Targets that differ from what is trained.
    agent = agent._replace(target_actor=jax.tree.map(lambda leaf: leaf + 0.1, agent.actor))
    agent = agent._replace(target_critics=jax.tree.map(lambda leaf: 0.9 * leaf + 0.01, agent.critics))
    obs, next_obs = rng.normal(size=(2, 1, 32, 2)).astype(np.float32)
    action = rng.uniform(-1, 1, (1, 32, 1)).astype(np.float32)
    reward = rng.uniform(-1, 1, (1, 32, num_objectives)).astype(np.float32)
    terminated = rng.random((1, 32)) < 0.3
    # What each transition is trained for.
    preference = np.asarray(preferences.uniform(jax.random.split(jax.random.key(0))[0], 32, num_objectives))
    told = [preference] if conditioned else []
    steps = Steps(*map(jnp.asarray, (obs, action, reward, next_obs, terminated)))
    after, losses = TRAIN(jax.random.key(0), agent, steps, config)

    def vectors(critics, *inputs):
        each = [jax.tree.map(lambda leaf: leaf[i], critics) for i in range(2)]  # noqa: B023
        return np.stack([numpy_mlp(critic, np.concatenate([*inputs, *told], axis=-1)) for critic in each])

    def twins(critics, *inputs):
        return (vectors(critics, *inputs) * preference).sum(axis=-1)

    def actions(actor, obs):
        return np.tanh(numpy_mlp(actor, np.concatenate([obs, *told], axis=-1)))

    following = next_obs[0], actions(agent.target_actor, next_obs[0])
    least = twins(agent.target_critics, *following).min(axis=0)
    if conditioned:  # The less of the two by each objective would be another target.
        each = (vectors(agent.target_critics, *following).min(axis=0) * preference).sum(axis=-1)
        assert (each < least - 1e-3).any()
    target = (reward[0] * preference).sum(axis=-1) + np.where(terminated[0], 0, 0.9 * least)
    predicted = twins(agent.critics, obs[0], action[0])
    np.testing.assert_allclose(losses.critic, np.mean((predicted - target) ** 2, axis=1).sum(), rtol=1e-4)
    np.testing.assert_allclose(losses.mean_q, predicted[0].mean(), rtol=1e-4)
    own = actions(agent.actor, obs[0])
    np.testing.assert_allclose(losses.actor, -twins(after.critics, obs[0], own)[0].mean(), rtol=1e-4)
    for name in ("actor", "critics"):
        was, now = getattr(agent, f"target_{name}"), getattr(after, name)
        expected = jax.tree.map(lambda old, new: 0.75 * old + 0.25 * new, was, now)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), getattr(after, f"target_{name}"), expected
        )


def test_critics_see_standardised_observations_and_the_actor_those_that_are(rng):
    """An actor that sees nothing (its kernels are 0) leaves only the critics' view, which can be given beforehand."""
    agent = init_agent(jax.random.key(3), PROBE, 2, CONFIG, conditioned=True)
    blind = tuple(layer._replace(kernel=jnp.zeros_like(layer.kernel)) for layer in agent.actor)
    agent = agent._replace(actor=blind, target_actor=jax.tree.map(jnp.array, blind))
    obs, next_obs = rng.normal([2.0, 0.0], [0.1, 5.0], (2, 20, 32, 2)).astype(np.float32)
    action, reward = rng.uniform(-1, 1, (20, 32, 1)), rng.normal(size=(20, 32, 2))
    terminated = rng.random((20, 32)) < 0.3
    steps = Steps(*(jnp.asarray(a, jnp.float32) for a in (obs, action, reward, next_obs)), jnp.asarray(terminated))
    stats = update(empty_stats(2), steps.obs, jnp.ones((20, 32), bool))
    beforehand = steps._replace(obs=standardise(stats, steps.obs), next_obs=standardise(stats, steps.next_obs))

    def learn(agent, steps, stats):
        return TRAIN(jax.random.key(0), agent, steps, CONFIG, stats)

    ours, losses = learn(agent, steps, stats)
    expected, expected_losses = learn(agent, beforehand, empty_stats(2))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), ours, expected)
    np.testing.assert_allclose(jnp.stack(losses), jnp.stack(expected_losses), rtol=1e-3)
    # One that sees is given what is, so that it matters to it whether that was standardised.
    seeing = init_agent(jax.random.key(3), PROBE, 2, CONFIG, conditioned=True)
    _, losses = learn(seeing, steps, stats)
    _, others = learn(seeing, beforehand, empty_stats(2))
    assert abs(losses.actor - others.actor) > 1e-3


@pytest.mark.parametrize(
    ("delay", "num_steps", "actor_steps"),
    [(2, 5, 3), *(pytest.param(*other, marks=pytest.mark.slow) for other in ((1, 5, 5), (2, 6, 3), (3, 1, 1)))],
)
def test_the_actor_is_delayed(delay, num_steps, actor_steps):
    agent = init_agent(jax.random.key(0), PROBE, 2, CONFIG, conditioned=True)
    zeros = lambda *shape: jnp.zeros((num_steps, 4, *shape))  # noqa: E731
    steps = Steps(zeros(2), zeros(1), zeros(2), zeros(2), jnp.zeros((num_steps, 4), bool))
    after, _ = TRAIN(jax.random.key(0), agent, steps, replace(CONFIG, policy_delay=delay))
    assert after.critic_optimiser[0].count == num_steps
    assert after.actor_optimiser[0].count == actor_steps


def test_smoothing_noise_is_cut():
    """Where the value of the next state is its action times ten, targets stay within what the noise may do."""
    config = replace(CONFIG, policy_noise=1e6, noise_clip=0.3, policy_delay=1)
    agent = init_agent(jax.random.key(0), PROBE, 1, config, conditioned=False)
    zero = jax.tree.map(jnp.zeros_like, agent)
    # relu(10 a) - relu(-10 a) = 10 a, through two layers.
    kernels = [np.zeros(layer.kernel.shape[1:], np.float32) for layer in zero.critics]
    kernels[0][2, :2] = 10, -10
    kernels[1][0, 0] = kernels[1][1, 1] = 1
    kernels[2][:2, 0] = 1, -1
    critics = tuple(
        layer._replace(kernel=jnp.stack([jnp.asarray(kernel)] * 2))
        for layer, kernel in zip(zero.critics, kernels, strict=True)
    )
    agent = agent._replace(critics=zero.critics, target_critics=critics, target_actor=zero.target_actor)
    nothing = jnp.zeros((1, 10_240, 2))
    steps = Steps(nothing, nothing[..., :1], nothing[..., :1], nothing, jnp.zeros((1, 10_240), bool))
    _, losses = TRAIN(jax.random.key(0), agent, steps, config)
    # Noise this large is always cut: the target is 0.9 x 10 x (+-0.3), and both critics say 0.
    np.testing.assert_allclose(losses.critic, 2 * 2.7**2, rtol=1e-3)
    # An action that cannot be larger is not made larger: the targets are 9 x 1 and 9 x 0.7, in halves.
    *hidden, last = zero.target_actor
    most = agent._replace(target_actor=(*hidden, last._replace(bias=jnp.full_like(last.bias, 100))))
    _, losses = TRAIN(jax.random.key(0), most, steps, config)
    np.testing.assert_allclose(losses.critic, 9**2 + 6.3**2, rtol=0.02)


def test_losses_tell_when_a_parameter_is_not_finite():
    agent = init_agent(jax.random.key(0), PROBE, 1, CONFIG, conditioned=False)
    nothing = jnp.zeros((1, 4, 2))
    steps = Steps(nothing, nothing[..., :1], jnp.full((1, 4, 1), 1e30), nothing, jnp.zeros((1, 4), bool))
    _, losses = TRAIN(jax.random.key(0), agent, steps, CONFIG)
    assert not np.isfinite(losses.critic)
    spoiled = agent._replace(target_actor=jax.tree.map(lambda leaf: leaf * jnp.nan, agent.target_actor))
    fine = steps._replace(reward=nothing[..., :1], terminated=jnp.ones((1, 4), bool))
    assert np.isfinite(TRAIN(jax.random.key(0), agent, fine, CONFIG)[1].critic)
    assert not np.isfinite(TRAIN(jax.random.key(0), spoiled, fine, CONFIG)[1].critic)


@pytest.mark.slow
def test_preferences_of_one_objective_are_one():
    assert (preferences.uniform(jax.random.key(0), 100, 1) == 1).all()
