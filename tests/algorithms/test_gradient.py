"""What is particular to the algorithms with policy gradients."""

from dataclasses import asdict, dataclass, fields, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.algorithms import ALGORITHMS, Algorithm
from moqd.algorithms.algorithm import Draw, init_key
from moqd.algorithms.gradient import critic_for_variation, empty_experience, recall, remember
from moqd.core.devices import on_one
from moqd.core.networks import Policy, apply_policy
from moqd.core.types import Evaluation, Source, Transition
from moqd.rl.td3 import act, value
from moqd.runs.loop import Loop
from tests.algorithms.test_algorithms import small
from tests.walk import LENGTH, Walk, walk

PAPER = {
    "critic_steps": 300,
    "minibatch": 256,
    "critic_hidden_sizes": (256, 256),
    "critic_learning_rate": 3e-4,
    "actor_learning_rate": 3e-4,
    "policy_learning_rate": 1e-3,
    "pg_steps": 100,
    "policy_noise": 0.2,
    "noise_clip": 0.2,
    "discount": 0.99,
    "tau": 0.005,
    "policy_delay": 2,
    "buffer_size": 1_000_000,
    "num_cells": 128,
    "front_length": 50,
    "iso_sigma": 0.005,
    "line_sigma": 0.05,
    "ga_batch": 128,
}
OURS = {"center_rewards": False, "standardise_obs": True}  # docs/deviations.md
OWN = {
    "mome-p2c": {"pg_batch": 64, "actor_batch": 64, "pg_preferences": "uniform", "crowding": True},
    "mome-pgx": {"pg_batch": 128, "crowding": True},
    "pga-me": {"pg_batch": 128, "elite_cells": None},
    "pga-me-128": {"pg_batch": 128, "elite_cells": 128},
}


@pytest.mark.parametrize("name", OWN)
def test_defaults_are_the_paper_values(name):
    config, expected = asdict(ALGORITHMS[name].config), PAPER | OURS | OWN[name]
    assert {field: config[field] for field in expected} == expected


def test_what_an_agent_is_drawn_from_draws_nothing_else():
    key = jax.random.key(0)
    keys = [jax.random.key_data(init_key(key, draw)).tolist() for draw in Draw]
    assert len(set(map(tuple, keys))) == len(Draw)
    task = walk()
    for name in ("mome-p2c", "mome"):
        _, offspring = small(name, task).init(key)
        first = task.init_genotype(init_key(key, Draw.GENOTYPE), 12)
        jax.tree.map(np.testing.assert_array_equal, offspring.genotype, first)


@pytest.mark.parametrize(
    ("ablation", "changed"),
    [
        ("keep-pref", {"pg_preferences": "parent"}),
        ("one-hot", {"pg_preferences": "one-hot"}),
        ("no-actor", {"pg_batch": 128, "actor_batch": 0}),
        ("no-ga", {"pg_batch": 128, "ga_batch": 0, "actor_batch": 128}),
        ("no-crowding", {"crowding": False}),
    ],
)
def test_ablations_differ_from_their_base_only_as_declared(ablation, changed):
    base, ablated = (asdict(ALGORITHMS[name].config) for name in ("mome-p2c", f"mome-p2c-{ablation}"))
    assert {field: ablated[field] for field in base if base[field] != ablated[field]} == changed


@cache
def started(name: str, num_objectives: int = 2, iterations: int = 2, **overrides) -> tuple[Loop, Algorithm]:
    task = walk(num_objectives)
    algorithm = small(name, task, **overrides)
    loop = Loop(algorithm, task, seed=0)
    loop.start()
    loop.advance(iterations)
    return loop, algorithm


BATCHES = {"ga_batch": 4, "pg_batch": 5, "actor_batch": 7}


def rows(tree, which):
    return jax.tree.map(lambda leaf: leaf[np.asarray(which)], tree)


def test_p2c_offspring_are_what_the_paper_says():
    loop, algorithm = started("mome-p2c", 3, **BATCHES)
    state = loop.carry.state
    offspring = algorithm.ask(jax.random.key(0), state)
    assert np.bincount(offspring.source, minlength=4).tolist() == [0, 4, 5, 7]
    # The actor at every one of its preferences, the last of which are one-hot.
    actor = rows(offspring, offspring.source == Source.ACTOR)
    assert (actor.preference[-3:] == np.eye(3)).all()
    assert (actor.preference[:-3] > 0).all()
    obs = jax.random.normal(jax.random.key(1), (7, 2))
    np.testing.assert_allclose(
        jax.vmap(apply_policy)(actor.genotype, obs), act(state.agent.actor, obs, actor.preference), atol=1e-6
    )
    # Of the gradient: preferences of the interior, all different.
    gradient = rows(offspring, offspring.source == Source.PG)
    assert len(np.unique(gradient.preference, axis=0)) == 5
    # A child of Iso+LineDD has the preference of a member of the archive.
    carried = np.asarray(state.archive.preference[state.archive.valid])
    for preference in rows(offspring, offspring.source == Source.GA).preference:
        assert (carried == np.asarray(preference)).all(axis=1).any()


def test_one_hot_gradients_aim_for_each_objective_in_equal_shares():
    loop, _ = started("mome-p2c", 3, **BATCHES)
    offspring = small("mome-p2c-one-hot", walk(3), **BATCHES).ask(jax.random.key(0), loop.carry.state)
    found = rows(offspring, offspring.source == Source.PG).preference
    assert (found == np.eye(3)[[0, 0, 1, 1, 2]]).all()


def test_keep_pref_gradients_aim_for_what_the_parent_carries():
    loop, base = started("mome-p2c", 3, **BATCHES)
    archive = loop.archive
    carried = np.asarray(archive.preference[archive.valid])
    offspring = small("mome-p2c-keep-pref", walk(3), **BATCHES).ask(jax.random.key(0), loop.carry.state)
    for preference in rows(offspring, offspring.source == Source.PG).preference:
        assert (carried == np.asarray(preference)).all(axis=1).any()
    fresh = base.ask(jax.random.key(0), loop.carry.state)
    for preference in rows(fresh, fresh.source == Source.PG).preference:
        assert not (carried == np.asarray(preference)).all(axis=1).any()


@pytest.mark.slow
def test_pgx_shares_end_with_the_actor_of_each_objective():
    loop, algorithm = started("mome-pgx", 3, pg_batch=8, ga_batch=4)
    state = loop.carry.state
    offspring = algorithm.ask(jax.random.key(0), state)
    pg, actor, ga = Source.PG, Source.ACTOR, Source.GA
    assert offspring.source.tolist() == [pg, pg, actor, pg, pg, actor, pg, actor, ga, ga, ga, ga]
    assert (offspring.preference[:8] == np.eye(3)[[0, 0, 0, 1, 1, 1, 2, 2]]).all()
    for objective, row in enumerate((2, 5, 7)):
        for own, all_agents in zip(
            jax.tree.leaves(offspring.genotype), jax.tree.leaves(state.agents.actor), strict=True
        ):
            assert (own[row] == all_agents[objective]).all()


@pytest.mark.slow
def test_pgx_agents_learn_their_own_objective():
    """The first wants speed, the second no effort: their actors end apart."""
    loop, _ = started("mome-pgx", iterations=25, critic_steps=200, critic_learning_rate=3e-3, actor_learning_rate=3e-3)
    actors, obs = loop.carry.state.agents.actor, loop.carry.state.experience.buffer.steps.obs[:50]
    speed, effort = (np.asarray(apply_policy(rows(actors, i), obs)) for i in (0, 1))
    assert speed.mean() > 0.7
    assert np.abs(effort).mean() < 0.3


@pytest.mark.slow  # tests/rl/test_td3.py has an actor that follows the preference
def test_p2c_actor_learns_every_trade_off():
    """Action a earns (a, -a^2) before standardisation: the more speed counts, the faster."""
    loop, _ = started("mome-p2c", iterations=25, critic_steps=200, critic_learning_rate=3e-3, actor_learning_rate=3e-3)
    state = loop.carry.state
    obs = state.experience.buffer.steps.obs[:50]
    preference = np.array([[1, 0], [0.5, 0.5], [0, 1]], np.float32)
    fast, between, still = (
        float(jnp.mean(act(state.agent.actor, obs, jnp.broadcast_to(jnp.asarray(w), (50, 2))))) for w in preference
    )
    assert fast > 0.7
    assert abs(still) < 0.3
    assert still < between < fast


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cells"), [("pga-me", 8 * 4), ("pga-me-128", 128)])
def test_pga_me_keeps_the_best_sum_of_every_cell(name, cells):
    task = walk(3)
    algorithm = small(name, task)
    state, offspring = on_one(jax.jit(algorithm.init)(jax.random.key(0)))
    assert state.active.archive.valid.shape == (cells, 1)
    assert state.archive.valid.shape == (8, 4)
    tell, evaluate, best = jax.jit(algorithm.tell), jax.jit(task.evaluate), {}
    for i in range(6):
        evaluation = on_one(evaluate(jax.random.key(i), offspring.genotype))
        state, _ = tell(jax.random.key(i), state, offspring, evaluation)
        centroid = np.asarray(state.active.archive.centroid)
        for fitness, feature in zip(np.asarray(evaluation.fitness), np.asarray(evaluation.feature), strict=True):
            cell = int(np.argmin(np.abs(centroid - feature).sum(axis=1)))
            best[cell] = max(best.get(cell, -np.inf), fitness.sum())
        offspring = on_one(algorithm.ask(jax.random.key(i), state))
        assert np.bincount(offspring.source, minlength=4).tolist() == [0, 6, 5, 1]
    elites = state.active.archive
    assert np.flatnonzero(elites.valid[:, 0]).tolist() == sorted(best)
    for cell, fitness in best.items():
        np.testing.assert_allclose(elites.fitness[cell, 0, 0], fitness, rtol=1e-5)
    # What is learned from is the sum, too.
    buffer = state.active.experience.buffer
    assert buffer.steps.reward.shape == (300, 1)
    assert state.archive.fitness.shape == (8, 4, 3)


@pytest.mark.slow  # a run of each
@pytest.mark.parametrize("name", ["mome-p2c", "mome-pgx", "pga-me"])
def test_every_row_says_how_learning_goes(name, tmp_path):
    task = walk()
    result = moqd.run(small(name, task), task, iterations=4, log_every=2, out=tmp_path / "run")
    for column in ("critic_loss", "actor_loss", "mean_q", "buffer_share", "added_pg", "added_ga", "added_actor"):
        assert np.isfinite(result.metrics[column]).all()
        assert len(result.metrics[column]) == 3
    # Steps of five batches of 12 episodes, of at most 8 steps each, in a buffer of 300.
    assert 0 < result.metrics["buffer_share"][0] <= 12 * LENGTH / 300
    assert result.metrics["buffer_share"][-1] == 1
    assert (tmp_path / "run" / "metrics.csv").read_text().splitlines()[0].count("critic_loss") == 1


@pytest.mark.slow
def test_training_that_diverges_stops_the_run_and_keeps_the_archive(tmp_path):
    task = walk()
    algorithm = small("mome-p2c", task, critic_learning_rate=1e30)
    with pytest.raises(
        moqd.DivergenceError, match=r"'mome-p2c' diverged in iteration \d: .* lower critic_learning_rate"
    ):
        moqd.run(algorithm, task, iterations=20, out=tmp_path / "run")
    archive = moqd.load_run(tmp_path / "run", task=task).archive
    with pytest.raises(moqd.DivergenceError) as raised:  # without a folder too, and in the first training
        moqd.run(algorithm, task, iterations=0)
    assert raised.value.archive.valid.any()
    assert archive.valid.any()
    for leaf in jax.tree.leaves(rows(archive.genotype, archive.valid)):
        assert np.isfinite(leaf).all()


@pytest.mark.parametrize("center", [True, False])
def test_old_rewards_too_are_recalled_by_the_newest_statistics(center, rng):
    config = ALGORITHMS["mome-p2c"].config
    config = replace(config, buffer_size=100, minibatch=1000, critic_steps=1, center_rewards=center)
    length, time = np.arange(1, 9), np.arange(8)
    number = np.arange(64, dtype=np.float32).reshape(8, 8, 1)
    policy = Policy(num_obs=1, num_actions=1, hidden_sizes=(4,), apply=apply_policy)
    experience, happened = empty_experience(policy, 2, config), {}
    for batch, (mean, spread) in enumerate((([3, -0.1], [1, 0.02]), ([50, 4], [9, 0.5]))):
        transitions = Transition(
            obs=number + 64 * batch,
            action=number,
            reward=rng.normal(mean, spread, (8, 8, 2)).astype(np.float32),
            next_obs=number,
            terminated=time == length[:, None] - 1,
            valid=time < length[:, None],
        )
        evaluation = Evaluation(
            jnp.zeros((8, 2)), jnp.zeros((8, 1)), jnp.ones(8, bool), jax.tree.map(jnp.asarray, transitions)
        )
        experience = remember(experience, evaluation, config)
        valid = transitions.valid
        happened |= dict(zip(transitions.obs[valid][:, 0], transitions.reward[valid], strict=True))

    every = np.array(list(happened.values()))
    shift = every.mean(axis=0) if center else 0
    steps = recall(jax.random.key(0), experience, config)
    expected = [(happened[float(obs)] - shift) / every.std(axis=0) for obs in steps.obs[0, :, 0]]
    np.testing.assert_allclose(steps.reward[0], expected, rtol=1e-4, atol=1e-4)
    assert len(np.unique(steps.obs)) == len(happened) == 72


@pytest.mark.parametrize("standardise_obs", [True, False])
def test_what_critics_see_is_standardised_by_all_that_was_observed(standardise_obs):
    task = walk()
    algorithm = small("mome-p2c", task, standardise_obs=standardise_obs)
    state, offspring = algorithm.init(jax.random.key(0))
    evaluation = task.evaluate(jax.random.key(1), offspring.genotype)
    experience = remember(state.experience, evaluation, algorithm.config)
    happened = np.asarray(evaluation.transitions.obs[evaluation.transitions.valid])
    obs = happened[:50]
    action, preference = jnp.zeros((50, task.policy.num_actions)), jnp.tile(jnp.array([0.3, 0.7]), (50, 1))
    seen = (obs - happened.mean(axis=0)) / happened.std(axis=0) if standardise_obs else obs
    folded = jax.tree.map(lambda leaf: leaf[None], critic_for_variation(state.agent, experience))
    found = value(folded, jnp.asarray(obs), action, preference)[0]
    np.testing.assert_allclose(found, value(state.agent.critics, jnp.asarray(seen), action, preference)[0], atol=1e-4)


def test_failed_evaluations_are_not_learned_from():
    task = walk()
    algorithm = small("mome-p2c", task)
    state, offspring = algorithm.init(jax.random.key(0))
    evaluation = task.evaluate(jax.random.key(1), offspring.genotype)
    failed = evaluation._replace(valid=jnp.arange(12) == 5)
    tell = jax.jit(algorithm.tell)
    after, _ = tell(jax.random.key(2), state, offspring, failed)
    happened = int(evaluation.transitions.valid[5].sum())
    assert after.experience.buffer.size == happened
    assert after.experience.reward_stats.number == happened
    assert (after.experience.buffer.steps.obs[:happened] == evaluation.transitions.obs[5, :happened]).all()
    # Two episodes of each policy: those of the other policies go.
    twice = jax.tree.map(lambda leaf: jnp.repeat(leaf, 2, axis=0), evaluation.transitions)
    experience = remember(state.experience, failed._replace(transitions=twice), algorithm.config)
    assert experience.buffer.size == 2 * happened
    assert (experience.buffer.steps.obs[happened : 2 * happened] == evaluation.transitions.obs[5, :happened]).all()
    # Nothing at all to learn from is no reason to stop.
    nothing = evaluation._replace(valid=jnp.zeros(12, bool))
    after, info = tell(jax.random.key(2), state, offspring, nothing)
    assert after.experience.buffer.size == 0
    assert all(np.isfinite(value) for value in info.metrics.values())


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("mome-p2c", {"actor_batch": 1}, "actor_batch is 1, but each of the 2 objectives is injected once"),
        ("mome-p2c", {"ga_batch": -1}, "ga_batch is -1; give a whole number of at least 0"),
        ("mome-p2c", {"ga_batch": 0, "pg_batch": 0, "actor_batch": 0}, "are all 0; give at least one"),
        (
            "mome-p2c",
            {"critic_hidden_sizes": [64, 0]},
            r"critic_hidden_sizes is \[64, 0\]; give a list of whole numbers",
        ),
        ("mome-p2c", {"center_rewards": 1}, "center_rewards is 1; give True or False"),
        ("mome-pgx", {"pg_batch": 1}, "pg_batch is 1, but each of the 2 objectives needs a share"),
        ("mome-p2c", {"discount": 1.0}, "discount is 1.0; give a number below 1"),
        ("mome-p2c", {"tau": 1.5}, "tau is 1.5; give a number from 0 to 1"),
        ("mome-p2c", {"critic_hidden_sizes": ()}, "critic_hidden_sizes is empty; give at least one"),
        ("pga-me", {"elite_cells": 0}, "elite_cells is 0; give a whole number of at least 1"),
    ],
)
def test_bad_options_get_one_sentence(name, overrides, message):
    with pytest.raises(moqd.InputError, match=message):
        moqd.make_algorithm(name, walk(), **overrides)


def test_solutions_without_a_gradient_get_one_sentence():
    with pytest.raises(moqd.InputError, match="are no policies; use 'mome' for it"):
        moqd.make_algorithm("mome-p2c", moqd.make_task("arm-2"))


class Bold(Walk):
    """Its policies act in a way of their own."""

    @property
    def policy(self):
        return super().policy._replace(apply=lambda policy, obs: jnp.sign(apply_policy(policy, obs)))


def test_policies_that_act_in_their_own_way_get_one_sentence():
    task = Bold(**{field.name: getattr(walk(), field.name) for field in fields(walk())})
    for name in ("mome-p2c", "mome-pgx", "pga-me"):
        with pytest.raises(moqd.InputError, match="task 'walk' have an `apply` of their own; use 'mome' for it"):
            moqd.make_algorithm(name, task)


@dataclass(frozen=True, eq=False)
class Spoiled(Walk):
    """Every third walk of a batch meets a number that is none, of which its objectives know nothing."""

    def evaluate(self, key, genotype):
        evaluation = super().evaluate(key, genotype)
        third = jnp.arange(evaluation.valid.shape[0]) % 3 == 0
        transitions = evaluation.transitions
        next_obs = jnp.where(third[:, None, None] & transitions.valid[..., None], jnp.nan, transitions.next_obs)
        return evaluation._replace(transitions=transitions._replace(next_obs=next_obs))


def test_a_walk_through_what_is_no_number_has_failed():
    task = Spoiled(**{field.name: getattr(walk(), field.name) for field in fields(walk())})
    run = moqd.run(small("mome-p2c", task), task, iterations=2)
    assert run.metrics["failed_evaluations"].tolist()[-1] == 12
    assert all(np.isfinite(column).all() for column in run.metrics.values())


class Silent(Walk):
    def evaluate(self, key, genotype):
        return super().evaluate(key, genotype)._replace(transitions=None)


def test_a_task_of_policies_without_transitions_is_told_what_is_missing():
    task = Silent(**{field.name: getattr(walk(), field.name) for field in fields(walk())})
    with pytest.raises(moqd.InputError, match="'mome-p2c' learns from transitions, but task 'walk' gave none"):
        moqd.run(small("mome-p2c", task), task, iterations=1)
