"""MOVE against its rules in plain Python, and what its paper says of many objectives."""

from collections import Counter
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.algorithms.move import MoveConfig, move, subsets
from moqd.core.types import Evaluation
from moqd.runs.loop import Loop
from tests.algorithms.test_mcx import BATCH, plane, random_evaluation, told


@pytest.mark.parametrize(
    ("num_objectives", "number", "asked", "size"),
    [(1, 3, 3, 1), (2, 50, 3, 1), (3, 50, 3, 1), (4, 50, 3, 3), (10, 50, 3, 3), (14, 50, 7, 7), (6, 5, 9, 5)],
)
def test_subsets_are_odd_even_and_as_different_as_there_are(num_objectives, number, asked, size):
    drawn = subsets(num_objectives, number, asked)
    assert drawn.shape == (number, num_objectives)
    assert (drawn.sum(axis=1) == size).all()
    times = Counter(map(tuple, drawn.tolist()))
    assert max(times.values()) == -(-number // comb(num_objectives, size))
    assert len(times) == min(number, comb(num_objectives, size))
    uses = drawn.sum(axis=0)
    assert uses.min() > 0
    assert uses.max() <= 1.5 * uses.min() + 2
    assert np.array_equal(drawn, subsets(num_objectives, number, asked))


class Naive:
    """The rules as the paper tells them; for copies of a subset and a limit as our documentation does."""

    def __init__(self, groups, limit):
        self.groups, self.limit = groups, limit
        self.elite = [None] * len(groups)

    def offer(self, name, fitness):
        votes = {}
        for cell, (group, elite) in enumerate(zip(self.groups, self.elite, strict=True)):
            if elite is None:
                votes[cell] = np.inf
            else:
                number = sum(fitness[j] > elite[1][j] for j in group)
                if number > len(group) / 2:
                    votes[cell] = number
        taken = []
        for cell in sorted(votes, key=lambda cell: (-votes[cell], cell)):
            if self.groups[cell] not in [self.groups[other] for other in taken]:
                taken.append(cell)
        taken = taken[: self.limit]
        for cell in taken:
            self.elite[cell] = (name, fitness)
        return len(taken)


@pytest.mark.parametrize(
    ("num_objectives", "num_elites", "limit"), [(5, 10, None), (5, 10, 3), (7, 25, 1), (2, 7, None), (3, 8, 2)]
)
def test_it_follows_the_rules(num_objectives, num_elites, limit):
    task, rng = plane(num_objectives), np.random.default_rng(num_elites)
    config = MoveConfig(num_elites=num_elites, elites_per_child=limit, ga_batch=BATCH)
    members = subsets(num_objectives, num_elites, config.subset_size)
    naive = Naive([tuple(np.flatnonzero(row)) for row in members], limit)
    evaluations = [random_evaluation(rng, task, num_values=9) for _ in range(8)]
    most = 0
    for i, (state, info) in enumerate(told(move("move", config, task), evaluations)):
        evaluation = evaluations[i]
        taken = [
            naive.offer(i * BATCH + j, tuple(evaluation.fitness[j].tolist())) if evaluation.feasible[j] else 0
            for j in range(BATCH)
        ]
        most = max(most, *taken)
        assert info.added.tolist() == [number > 0 for number in taken]
        assert state.elites.valid.tolist() == [elite is not None for elite in naive.elite]
        for cell, elite in enumerate(naive.elite):
            if elite is not None:
                assert tuple(state.elites.fitness[cell].tolist()) == elite[1]
                assert (state.elites.genotype[cell] == elite[0]).all()
    assert state.elites.valid.all()
    assert most == min(limit or num_elites, len(set(naive.groups)))


def test_a_child_needs_more_than_half_of_the_votes():
    """By hand, one subset: (5, 5, 5) gives way to whoever is better in two of three, however bad it is in the third."""
    task = plane(4)
    config = MoveConfig(num_elites=1, ga_batch=BATCH)
    group = np.flatnonzero(subsets(4, 1, 3)[0])

    def elite_after(*rows):
        fitness = np.zeros((BATCH, 4), np.float32)
        fitness[: len(rows), group] = rows
        evaluation = Evaluation(jnp.asarray(fitness), jnp.zeros((BATCH, 2)), jnp.arange(BATCH) < len(rows))
        ((state, _),) = told(move("move", config, task), [evaluation])
        return tuple(state.elites.fitness[0][group].tolist())

    assert elite_after((5, 5, 5)) == (5, 5, 5)
    assert elite_after((5, 5, 5), (6, 6, -9)) == (6, 6, -9)
    assert elite_after((5, 5, 5), (6, 5, 5)) == (5, 5, 5)  # one vote: equal is not better
    assert elite_after((5, 5, 5), (9, 4, 4)) == (5, 5, 5)
    assert elite_after((5, 5, 5), (6, 6, -9), (0, 7, 0)) == (0, 7, 0)


def spheres(num_objectives=10, parameters=10):
    """Distances from points that are apart, so that no solution is best in all."""
    centre = jnp.asarray(np.random.default_rng(1).uniform(0.3, 0.7, (num_objectives, parameters)), jnp.float32)
    names = [f"distance {i}" for i in range(num_objectives)]
    return moqd.FunctionTask(
        lambda x: (jnp.sum((x[None, :] - centre) ** 2, axis=1), x[:2]),
        name="spheres",
        bounds=[(0.0, 1.0)] * parameters,
        objective_names=names,
        minimised=names,
        feature_names=["a", "b"],
        feature_bounds=[(0.0, 1.0)] * 2,
        reference_point=[2.0] * num_objectives,
        traceable=True,
    )


@pytest.mark.slow  # a run of its own
def test_fifty_elites_improve_all_of_ten_objectives():
    """The best distance from each of ten points, also compared with as many random solutions."""
    task, iterations = spheres(), 60
    algorithm = moqd.make_algorithm("move", task, num_cells=4, front_length=2)
    loop = Loop(algorithm, task, seed=0)
    loop.start()

    def nearest():
        elites = loop.carry.state.active.elites
        assert elites.valid.all()
        return np.max(np.asarray(elites.fitness), axis=0)  # inside, more is better

    first = nearest()
    loop.advance(iterations)
    last = nearest()
    rows = algorithm.config.ga_batch * (iterations + 1)
    at_random = task.evaluate(jax.random.key(1), task.init_genotype(jax.random.key(0), rows)).fitness.max(axis=0)
    assert loop.carry.state.active.elites.fitness.shape == (50, 10)
    assert (last > first).all()
    assert (last > np.asarray(at_random)).all()
    assert np.median(last / np.asarray(at_random)) < 0.6  # of the distance


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"subset_size": 4}, "subset_size is 4; give an odd number"),
        ({"elites_per_child": 0}, "elites_per_child is 0; give a whole number of at least 1, or None"),
        ({"num_elites": 0}, "num_elites is 0; give a whole number of at least 1"),
    ],
)
def test_bad_options_get_one_sentence(overrides, message):
    with pytest.raises(moqd.InputError, match=message):
        moqd.make_algorithm("move", moqd.make_task("arm-2"), **overrides)
