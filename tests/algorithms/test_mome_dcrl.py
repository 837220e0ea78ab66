"""An actor for every feature: that it is learned, on a problem solved on paper, and what is made of the actor."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.algorithms import make_algorithm
from moqd.algorithms.gradient import WORST, Experience
from moqd.algorithms.mome_dcrl import MomeDcrlConfig, rewarded_for_aim
from moqd.core.devices import on_one
from moqd.core.networks import Policy, apply_policy
from moqd.core.types import Source
from moqd.rl.buffer import Steps
from moqd.rl.running_stats import RunningStats, empty_stats
from moqd.rl.td3 import act, init_agent, train
from tests.walk import walk

CONFIG = MomeDcrlConfig(critic_hidden_sizes=(64, 64), critic_learning_rate=1e-3, actor_learning_rate=1e-3)
SMALL = {
    "num_cells": 8,
    "front_length": 4,
    "ga_batch": 5,
    "pg_batch": 4,
    "actor_batch": 3,
    "critic_steps": 4,
    "pg_steps": 3,
    "minibatch": 16,
    "critic_hidden_sizes": (16, 16),
    "buffer_size": 300,
}


def seen_of(*stats):
    return Experience(None, RunningStats(jnp.float32(10), *map(jnp.asarray, stats)), empty_stats(1))


def test_rewards_are_worth_less_the_further_the_feature_is_from_the_aim():
    """By hand: rewards of mean -1 and 5 and standard deviation 2 and 1 are measured from -5 and 3, in deviations."""
    steps = Steps(
        obs=jnp.zeros((3, 1)),
        action=jnp.zeros((3, 1)),
        reward=jnp.array([[-1.0, 5.0], [-1.0, 5.0], [-9.0, 6.0]]) / jnp.array([[2.0, 1.0]]),
        next_obs=jnp.zeros((3, 1)),
        terminated=jnp.zeros(3, bool),
        aim=jnp.array([[0.5, 0.0], [0.5, 0.0], [-1.0, 1.0]]),
        achieved=jnp.array([[0.5, 0.0], [0.8, 0.4], [-1.0, 1.0]]),  # the second is a quarter of the range away
    )
    stats = np.float32([-1, 5]), np.float32([4, 1])
    for center, reward in ((False, steps.reward), (True, steps.reward - jnp.array([[-0.5, 5.0]]))):
        config = MomeDcrlConfig(center_rewards=center, similarity_length=0.1)
        found = rewarded_for_aim(steps._replace(reward=reward), seen_of(*stats), config).reward
        expected = [[WORST, WORST], [WORST * np.exp(-2.5)] * 2, [0, 3]]  # nothing is below 0
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("num_objectives", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_actions_follow_the_feature_that_is_asked_for(num_objectives):
    """One step, whose feature is the action and whose rewards are all the same: the best action is the aim itself."""
    rng = np.random.default_rng(0)
    shape = (4000, 128)
    action, aim = (rng.uniform(-1, 1, (*shape, 1)).astype(np.float32) for _ in range(2))
    obs = rng.normal(size=(*shape, 2)).astype(np.float32)
    reward = np.full((*shape, num_objectives), 1.0, np.float32)
    steps = Steps(obs, action, reward, obs, np.ones(shape, bool), aim=aim, achieved=action)
    config = MomeDcrlConfig(**{**CONFIG.__dict__, "similarity_length": 0.3})
    stats = np.zeros(num_objectives, np.float32), np.ones(num_objectives, np.float32)

    @jax.jit
    def learned(steps):
        policy = Policy(num_obs=2, num_actions=1, hidden_sizes=(32, 32), apply=apply_policy)
        start = partial(init_agent, conditioned=num_objectives > 1, num_features=1)
        agent = start(jax.random.key(0), policy, num_objectives, config)
        return train(jax.random.key(1), agent, rewarded_for_aim(steps, seen_of(*stats), config), config)[0]

    agent = learned(jax.tree.map(jnp.asarray, steps))
    asked = jnp.linspace(-0.8, 0.8, 9)[:, None]
    preference = jnp.full((9, num_objectives), 1 / num_objectives)
    done = act(agent.actor, jnp.zeros((9, 2)), preference, asked)
    np.testing.assert_allclose(done, asked, atol=0.1)


def generations(name, task, number, **options):
    algorithm = make_algorithm(name, task, **(SMALL | options))
    init, tell, evaluate = jax.jit(algorithm.init), jax.jit(algorithm.tell), jax.jit(task.evaluate)
    state, offspring = on_one(init(jax.random.key(0)))
    for i in range(number):
        evaluation = on_one(evaluate(jax.random.key(1), offspring.genotype))
        before, (state, info) = state, tell(jax.random.key(i), state, offspring, evaluation)
        yield before, offspring, evaluation, info, state
        offspring = on_one(algorithm.ask(jax.random.key(i), state))


@pytest.mark.slow  # tests/choose/test_ask.py has a run of it
def test_offspring_know_their_aim_and_so_does_experience():
    task = walk()
    for before, offspring, evaluation, info, after in generations("mome-dcrl", task, 3):
        for_none = np.isin(offspring.source, [Source.RANDOM, Source.GA])
        np.testing.assert_array_equal(np.isnan(offspring.aim[:, 0]), for_none)
        known = np.asarray(before.archive.feature)[np.asarray(before.archive.valid)]
        assert np.isin(offspring.aim[~for_none], known).all()  # features of the archive
        assert offspring.enters.all()
        steps, size = after.experience.buffer.steps, int(after.experience.buffer.size)
        newest = np.asarray(evaluation.transitions.valid).sum()
        achieved = np.repeat(2 * evaluation.feature[:, 0] - 1, np.asarray(evaluation.transitions.valid).sum(axis=1))
        np.testing.assert_allclose(steps.achieved[size - newest : size, 0], achieved, atol=1e-6)
        aimed = np.where(for_none, evaluation.feature[:, 0], offspring.aim[:, 0])
        of_steps = np.repeat(2 * aimed - 1, np.asarray(evaluation.transitions.valid).sum(axis=1))
        np.testing.assert_allclose(steps.aim[size - newest : size, 0], of_steps, atol=1e-6)
        missed = np.abs(aimed - evaluation.feature[:, 0])[np.asarray(offspring.source) == Source.ACTOR]
        assert float(info.metrics["aim_error"]) == pytest.approx(np.mean(missed) if len(missed) else 0, abs=1e-6)


@pytest.mark.slow  # a minute to compile
def test_an_actor_that_is_not_injected_is_learned_from_but_not_kept():
    """As in DCG-ME; a passive archive takes what its actor does all the same."""
    task, kept = walk(), {}
    for injection in (False, True):
        made = list(generations("mome-dcrl", task, 4, injection=injection))
        is_actor = [np.asarray(offspring.source) == Source.ACTOR for _, offspring, *_ in made]
        for which, (_, offspring, *_) in zip(is_actor, made, strict=True):
            assert np.array_equal(offspring.enters, ~which | injection)
        added = np.concatenate([np.asarray(one[3].added)[which] for which, one in zip(is_actor, made, strict=True)])
        assert len(added) == 9
        assert int(made[-1][4].experience.buffer.size) == 300, "the steps of all are learned from"
        kept[injection] = added.any()
    assert kept == {False: False, True: True}
    *_, (_, offspring, _, info, after) = generations("dcg-me", task, 2)
    assert after.active.archive.fitness.shape[-1] == 1
    assert np.asarray(info.added)[np.asarray(offspring.source) == Source.ACTOR].any()


def test_mistakes():
    for options, message in (
        ({"after_fall": "worst"}, "after_fall is 'worst'.*leave it at 'nothing'"),
        ({"similarity_length": 0.0}, "similarity_length is 0.0"),
        ({"actor_batch": 1}, "actor_batch is 1"),
        ({"actor_batch": 0, "ga_batch": 0, "pg_batch": 0}, "all 0"),
    ):
        with pytest.raises(moqd.InputError, match=message):
            make_algorithm("mome-dcrl", walk(), **(SMALL | options))
