"""NSGA-II's survival against pymoo's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pymoo.core.population import Population as PymooPopulation
from pymoo.core.problem import Problem
from pymoo.operators.survival.rank_and_crowding import RankAndCrowding

from moqd.algorithms.nsga2 import ranked as by_crowding
from moqd.algorithms.population import Population, _shuffled, survive, tournament
from moqd.algorithms.spea2 import ranked as by_strength

SURVIVE = jax.jit(survive, static_argnums=(0, 4))


@pytest.mark.parametrize("kind", ["random", "front"])
@pytest.mark.parametrize("num_objectives", [2, 3, 5])
@pytest.mark.parametrize("number", [1, 10, 37, 50])
def test_survivors_are_pymoos(number, num_objectives, kind, rng):
    for _ in range(5):
        fitness = rng.standard_normal((100, num_objectives)).astype(np.float32)
        if kind == "front":  # one front, of which most must go
            fitness = np.abs(fitness) / np.linalg.norm(fitness, axis=1, keepdims=True)
        survivor, merit = SURVIVE(by_crowding, jnp.asarray(fitness), jnp.ones(100, bool), jnp.zeros(100), number)
        population = PymooPopulation.new(F=-fitness.astype(float), id=np.arange(100))
        theirs = RankAndCrowding().do(Problem(), population, n_survive=number)
        rank, crowding = theirs.get("rank"), theirs.get("crowding")
        assert sorted(-np.asarray(merit)[:, 1]) == sorted(rank)
        # Only which of the extremes of the last front stay can be a tie, and then all that stay of it are extremes.
        tied = np.isinf(crowding[rank == rank.max()]).all()
        decided = np.ones(number, bool) if not tied else rank < rank.max()
        ours = set(np.asarray(survivor).tolist())
        assert set(theirs.get("id")[decided]) <= ours
        assert tied or len(ours) == decided.sum()
        assert not (kind == "front" and number > 2 * num_objectives and tied)


@pytest.mark.parametrize("number_feasible", [0, 5, 30, 100])
@pytest.mark.parametrize("number", [10, 50])
def test_constrained_survivors_are_pymoos(number, number_feasible, rng):
    """Feasible ones by rank and crowding, then those with the least violation."""
    fitness = rng.standard_normal((100, 2)).astype(np.float32)
    violation = np.where(rng.permutation(100) < number_feasible, 0, rng.uniform(0.1, 2, 100)).astype(np.float32)
    survivor, merit = SURVIVE(by_crowding, jnp.asarray(fitness), jnp.ones(100, bool), jnp.asarray(violation), number)
    population = PymooPopulation.new(F=-fitness.astype(float), G=violation[:, None].astype(float), id=np.arange(100))
    problem = Problem(n_var=1, n_obj=2, n_ieq_constr=1)
    theirs = RankAndCrowding().do(problem, population, n_survive=number).get("id")
    ours = np.asarray(survivor)
    np.testing.assert_array_equal(np.sort(violation[ours]), np.sort(violation[theirs]))
    infeasible = violation[ours] > 0
    assert set(ours[infeasible]) == set(theirs[violation[theirs] > 0])
    np.testing.assert_array_equal(np.asarray(merit)[:, 0], -violation[ours])
    assert not np.any(np.diff(infeasible.astype(int)) < 0), "feasible ones come first"


@pytest.mark.parametrize("ranked", [by_crowding, by_strength])
def test_feasible_beats_infeasible_and_less_violation_beats_more(ranked):
    fitness = jnp.asarray([[0.0, 0.0], [9.0, 9.0], [8.0, 8.0], [99.0, 99.0]])
    violation, valid = jnp.asarray([0.0, 2.0, 1.0, 0.0]), jnp.asarray([True, True, True, False])
    survivor, merit = survive(ranked, fitness, valid, violation, 4)
    assert survivor.tolist() == [0, 2, 1, 3]
    everyone = Population(
        jnp.arange(4)[survivor], fitness, fitness[survivor], valid[survivor], violation[survivor], merit
    )
    wins = np.bincount(tournament(jax.random.key(0), everyone, 9_000).genotype, minlength=4) / 9_000
    np.testing.assert_allclose(wins, np.array([5, 1, 3, 0]) / 9, atol=0.02)


def test_tournaments_prefer_rank_then_crowding():
    merit = jnp.asarray([[0.0, 1.0], [0.0, 5.0], [-1.0, 9.0], [-2.0, np.inf]])
    everyone = Population(jnp.arange(4), jnp.zeros((4, 2)), jnp.zeros((4, 2)), jnp.ones(4, bool), jnp.zeros(4), merit)
    wins = np.bincount(tournament(jax.random.key(0), everyone, 20_000).genotype, minlength=4) / 20_000
    # Of the 16 ordered pairs, the best wins 7, the next 5, then 3 and 1.
    np.testing.assert_allclose(wins, np.array([5, 7, 3, 1]) / 16, atol=0.015)


@pytest.mark.parametrize("num_valid", [16, 50, 64])
def test_the_parents_of_one_child_are_drawn_apart(num_valid):
    """Also where there are as many children as members, of which each has its turn: 1 in `num_valid` are the same."""
    places, none = jnp.arange(64), jnp.zeros((64, 2))
    everyone = Population(places, none, none, places < num_valid, jnp.zeros(64), none)
    draw = jax.jit(lambda key: tournament(key, everyone, 4 * num_valid, blocks=4).genotype.reshape(4, num_valid))
    drawn = np.array([draw(jax.random.key(i)) for i in range(200)])
    assert (drawn < num_valid).all()
    for one, other in [(0, 1), (1, 2), (2, 3), (0, 3)]:
        assert abs((drawn[:, one] == drawn[:, other]).mean() * num_valid - 1) < 0.35


@pytest.mark.parametrize("size", [1, 2, 100, 256, 257, 5_000])
def test_members_are_shuffled_and_the_valid_come_first(size):
    valid = np.random.default_rng(size).random(size) < 0.7
    shuffled = np.asarray(_shuffled(jax.random.key(size), 40, jnp.asarray(valid)))
    np.testing.assert_array_equal(np.sort(shuffled, axis=1), np.tile(np.arange(size), (40, 1)))
    assert np.all(np.diff(valid[shuffled].astype(int), axis=1) <= 0)
    if valid.sum() > 1:
        first = np.searchsorted(np.flatnonzero(valid), shuffled[:, 0]) / (valid.sum() - 1)
        assert abs(first.mean() - 0.5) < 4 * 0.5 / np.sqrt(40), "anyone can be the first"
