"""NSGA-II's survival against pymoo's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pymoo.core.population import Population as PymooPopulation
from pymoo.core.problem import Problem
from pymoo.operators.survival.rank_and_crowding import RankAndCrowding

from moqd.algorithms.nsga2 import survive
from moqd.algorithms.population import Population, tournament

SURVIVE = jax.jit(survive, static_argnums=2)


@pytest.mark.parametrize("kind", ["random", "front"])
@pytest.mark.parametrize("num_objectives", [2, 3, 5])
@pytest.mark.parametrize("number", [1, 10, 37, 50])
def test_survivors_are_pymoos(number, num_objectives, kind, rng):
    for _ in range(5):
        fitness = rng.standard_normal((100, num_objectives)).astype(np.float32)
        if kind == "front":  # one front, of which most must go
            fitness = np.abs(fitness) / np.linalg.norm(fitness, axis=1, keepdims=True)
        survivor, merit = SURVIVE(jnp.asarray(fitness), jnp.ones(100, bool), number)
        population = PymooPopulation.new(F=-fitness.astype(float), id=np.arange(100))
        theirs = RankAndCrowding().do(Problem(), population, n_survive=number)
        rank, crowding = theirs.get("rank"), theirs.get("crowding")
        assert sorted(-np.asarray(merit)[:, 0]) == sorted(rank)
        # Only which of the extremes of the last front stay can be a tie, and then all that stay of it are extremes.
        tied = np.isinf(crowding[rank == rank.max()]).all()
        decided = np.ones(number, bool) if not tied else rank < rank.max()
        ours = set(np.asarray(survivor).tolist())
        assert set(theirs.get("id")[decided]) <= ours
        assert tied or len(ours) == decided.sum()
        assert not (kind == "front" and number > 2 * num_objectives and tied)


def test_tournaments_prefer_rank_then_crowding():
    merit = jnp.asarray([[0.0, 1.0], [0.0, 5.0], [-1.0, 9.0], [-2.0, np.inf]])
    everyone = Population(jnp.arange(4), jnp.zeros((4, 2)), jnp.zeros((4, 2)), jnp.ones(4, bool), merit)
    wins = np.bincount(tournament(jax.random.key(0), everyone, 20_000).genotype, minlength=4) / 20_000
    # Of the 16 ordered pairs, the best wins 7, the next 5, then 3 and 1.
    np.testing.assert_allclose(wins, np.array([5, 7, 3, 1]) / 16, atol=0.015)
