"""The actor of a run, asked for what its archive does not have."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.choose.ask import asks_for
from moqd.core.networks import apply_policy
from moqd.rl.td3 import Agent, act
from moqd.runs.learned import load_learned, parts_of
from tests.walk import walk

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


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """The run of an algorithm, which is made once."""
    folder = tmp_path_factory.mktemp("asked")

    @cache
    def made(name):
        return moqd.run(moqd.make_algorithm(name, walk(), **SMALL), walk(), iterations=3, out=folder / name)

    return made


@pytest.mark.parametrize("name", [pytest.param("mome-p2c", marks=pytest.mark.slow), "mome-dcrl"])
def test_the_answer_is_the_actor_there_and_what_it_is_worth(run_of, name):
    run, task = run_of(name), walk()
    feature = [0.7] if name == "mome-dcrl" else None
    answer = moqd.ask_actor(run, [3, 1], feature=feature)
    assert answer.preference == (0.75, 0.25)
    assert answer.asked_features == ({} if feature is None else {"right": 0.7})
    (agent,) = parts_of(load_learned(run).state, Agent)
    obs = jax.random.normal(jax.random.key(0), (20, 2))
    preference = jnp.tile(jnp.array([0.75, 0.25]), (20, 1))
    aim = None if feature is None else jnp.full((20, 1), 0.4)  # 0.7 of [0, 1] in [-1, 1]
    expected = act(agent.actor, obs, preference, aim)
    np.testing.assert_allclose(answer.policy(obs), expected, atol=1e-6)
    genotype = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], answer.genotype)
    np.testing.assert_allclose(apply_policy(answer.genotype, obs), expected, atol=1e-6)
    evaluation = task.evaluate(jax.random.key(0), genotype)
    np.testing.assert_allclose(list(answer.objectives.values()), evaluation.fitness[0], rtol=1e-5)
    np.testing.assert_allclose(list(answer.features.values()), evaluation.feature[0], rtol=1e-5)
    there = np.asarray(run.archive.fitness)[answer.cell][np.asarray(run.archive.valid)[answer.cell]]
    found = np.asarray(evaluation.fitness[0])
    assert answer.is_new == (not np.any(np.all(there >= found, axis=1)))
    assert "asked for preference (0.75, 0.25)" in repr(answer)
    assert moqd.ask_actor(run.path, [3, 1], feature=feature, task=task).objectives == answer.objectives


@pytest.mark.slow  # compiles two more
def test_what_may_be_asked_for_depends_on_the_actor(run_of):
    both = ["preference", "feature"]
    asked = {"mome-p2c": both[:1], "mome-dcrl": both, "dcrl-me": both[1:]}
    assert {name: asks_for(run_of(name)) for name in asked} == asked
    with pytest.raises(moqd.InputError, match="the actor of 'mome-p2c' takes a preference and no feature"):
        moqd.ask_actor(run_of("mome-p2c"), feature=[0.5])
    with pytest.raises(moqd.InputError, match="maximises the sum of the objectives and takes no preference"):
        moqd.ask_actor(run_of("dcrl-me"), [1, 2], feature=[0.5])
    answer = moqd.ask_actor(run_of("dcrl-me"), feature=[0.5])
    assert answer.preference == ()
    assert "asked for right=0.5: " in repr(answer)


def test_what_cannot_be_asked_is_one_sentence(run_of, tmp_path):
    plain = {"iterations": 1, "ga_batch": 8, "num_cells": 8}
    with pytest.raises(moqd.InputError, match="the actor of 'mome-dcrl' takes a feature; give 1 numbers, for right"):
        moqd.ask_actor(run_of("mome-dcrl"))
    with pytest.raises(moqd.InputError, match="give 2 weights"):
        moqd.ask_actor(run_of("mome-dcrl"), [1, 2, 3], feature=[0.5])
    with pytest.raises(moqd.InputError, match="not in a folder"):
        moqd.ask_actor(replace(run_of("mome-dcrl"), path=None), feature=[0.5])
    run = moqd.run("mome", walk(), **plain, out=tmp_path / "run")
    with pytest.raises(moqd.InputError, match="is of algorithm 'mome', which has no actor that can be asked"):
        moqd.ask_actor(run)
