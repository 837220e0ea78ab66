"""MCX against its rules in plain Python, and what its paper says of T-DominO."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import moqd
from moqd.algorithms.mcx import McxConfig, mcx, t_domino
from moqd.core.tessellation import centroids
from moqd.core.types import Evaluation, Offspring, Source
from moqd.runs.loop import Loop

BATCH, OPTIONS = 30, {"reach": 1, "memory": 3}


def plane(num_objectives, num_features=2):
    """Bounds of the features that differ in scale; nobody evaluates anything."""
    return moqd.FunctionTask(
        lambda x: (x[:num_objectives], x[:num_features]),
        name="plane",
        bounds=[(0, 1)] * max(num_objectives, num_features),
        objective_names=[f"f{i}" for i in range(num_objectives)],
        feature_names=[f"d{i}" for i in range(num_features)],
        feature_bounds=[(0.0, 10.0**i) for i in range(num_features)],
        traceable=True,
    )


def random_evaluation(rng, task, *, num_values=5):
    """Small whole numbers, so that there are many ties; some solutions fail, some are infeasible."""
    upper = np.array([high for _, high in task.feature_bounds])
    return Evaluation(
        fitness=jnp.asarray(rng.integers(0, num_values, (BATCH, task.num_objectives)), jnp.float32),
        feature=jnp.asarray(rng.uniform(-0.2, 1.2, (BATCH, task.num_features)) * upper, jnp.float32),
        valid=jnp.asarray(rng.random(BATCH) < 0.8),
        violation=jnp.asarray(np.where(rng.random(BATCH) < 0.2, 1, 0), jnp.float32),
    )


def score_of(vector, anchors):
    exponent, mantissa = t_domino(vector, anchors)
    return float(mantissa) * 2.0 ** int(exponent)


def told(algorithm, evaluations):
    """The states after each evaluation. A genotype is the number of the solution, over all batches."""
    state, offspring = jax.jit(algorithm.init)(jax.random.key(0))
    tell = jax.jit(algorithm.tell)
    for i, evaluation in enumerate(evaluations):
        number = jnp.arange(BATCH, dtype=jnp.float32)[:, None] + i * BATCH
        genotype = jnp.broadcast_to(number, offspring.genotype.shape)
        batch = Offspring(genotype, offspring.preference, jnp.full(BATCH, Source.GA, jnp.int32))
        state, info = tell(jax.random.key(i), state, batch, evaluation)
        yield state, info


class Naive:
    """The rules as the paper tells them."""

    def __init__(self, task, num_cells, *, reach, memory):
        self.upper = np.array([high for _, high in task.feature_bounds])
        self.centroids = centroids(num_cells, task.feature_bounds) / self.upper
        self.width = 1 / np.array(num_cells if isinstance(num_cells, tuple) else [num_cells**0.5] * 2)
        self.reach, self.length = reach, memory
        self.elite, self.memory = {}, {}

    def cell_of(self, feature):
        return int(np.argmin(np.sum((self.centroids - np.clip(feature / self.upper, 0, 1)) ** 2, axis=1)))

    def is_near(self, a, b):
        away = np.abs(self.centroids[a] - self.centroids[b]) / self.width
        return bool(np.all(away <= self.reach + 0.5))

    def offer(self, name, fitness, feature):
        cell, fitness = self.cell_of(feature), tuple(map(int, fitness))
        anchors = [fitness] + [one for other in self.memory if self.is_near(cell, other) for one in self.memory[other]]
        if cell in self.elite and naive_score(fitness, anchors) <= naive_score(self.elite[cell][1], anchors):
            return False
        self.elite[cell] = (name, fitness)
        self.memory[cell] = [*self.memory.get(cell, []), fitness][-self.length :]
        return True


def naive_score(vector, anchors):
    return math.prod(sum(vector[j] >= anchor[j] for anchor in anchors) for j in range(len(vector)))


@pytest.mark.parametrize(("num_cells", "num_objectives"), [((4, 5), 2), ((4, 5), 3), (17, 2)])
def test_it_follows_the_rules(num_cells, num_objectives):
    task, rng = plane(num_objectives), np.random.default_rng(num_objectives)
    naive = Naive(task, num_cells, **OPTIONS)
    evaluations = [random_evaluation(rng, task) for _ in range(8)]
    algorithm = mcx("mcx", McxConfig(num_cells=num_cells, ga_batch=BATCH, **OPTIONS), task)
    for i, (state, info) in enumerate(told(algorithm, evaluations)):
        evaluation = evaluations[i]
        added = [
            bool(evaluation.feasible[j])
            and naive.offer(i * BATCH + j, np.asarray(evaluation.fitness[j]), np.asarray(evaluation.feature[j]))
            for j in range(BATCH)
        ]
        assert info.added.tolist() == added
        elites, memory = state.elites, state.memory
        assert set(np.flatnonzero(elites.valid)) == set(naive.elite)
        for cell, (name, fitness) in naive.elite.items():
            assert tuple(elites.fitness[cell].tolist()) == fitness
            assert (elites.genotype[cell] == name).all()
            remembered = memory.fitness[cell][: int(memory.num_written[cell])]
            assert sorted(map(tuple, remembered.tolist())) == sorted(naive.memory[cell])
    assert len(naive.elite) > 0.8 * len(naive.centroids)
    assert (state.memory.num_written > OPTIONS["memory"]).any()  # the ring has come round


VECTORS = st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=12)


@given(VECTORS, st.tuples(*[st.integers(0, 4)] * 3), st.data())
def test_whoever_dominates_another_scores_higher_on_anchors_that_it_is_one_of(others, vector, data):
    better = tuple(value + data.draw(st.integers(0, 2)) for value in vector)
    anchors = np.full((14, 3), np.inf, np.float32)
    anchors[: len(others) + 2] = [*others, vector, better]
    score = [score_of(jnp.asarray(one, jnp.float32), jnp.asarray(anchors)) for one in (vector, better)]
    assert score == [naive_score(one, anchors.tolist()) for one in (vector, better)]
    assert score[1] > score[0] or vector == better


def test_balanced_solutions_score_higher_than_extreme_ones():
    """Worked out on paper: of n vectors on a line, the i-th best in one objective is the i-th worst in the other."""
    front = jnp.stack([jnp.arange(9.0), 8 - jnp.arange(9.0)], axis=1)
    scores = [score_of(one, front) for one in front]
    assert scores == [(i + 1) * (9 - i) for i in range(9)]
    assert max(scores) == scores[4] == 25


def test_products_of_many_counts_stay_within_32_bits():
    """Each solution dominates all before it, so each enters: after 600 of them, 600 to the 14th power is too much."""
    task = plane(14)
    algorithm = mcx("mcx", McxConfig(num_cells=(1, 1), ga_batch=BATCH, memory=1000), task)
    evaluations = [
        Evaluation(
            jnp.broadcast_to(jnp.arange(i * BATCH, (i + 1) * BATCH, dtype=jnp.float32)[:, None], (BATCH, 14)),
            jnp.zeros((BATCH, 2)),
            jnp.ones(BATCH, bool),
        )
        for i in range(22)
    ]
    assert all(info.added.all() for _, info in told(algorithm, evaluations))


@pytest.mark.slow
def test_in_a_run_it_keeps_balanced_solutions():
    """On a problem of the paper: few solutions of the front of its cell are more balanced than an elite.

    How balanced: by the largest shortfall from the best in the cell, as a share of the range of the front.
    """
    task = moqd.make_task("rastrigin-2")
    loop = Loop(moqd.make_algorithm("mcx", task, num_cells=(6, 6), ga_batch=50), task, seed=0)
    loop.start()
    loop.advance(100)
    elites, archive = loop.carry.state.active.elites, loop.archive
    more_balanced = []
    for cell in np.flatnonzero(np.sum(archive.valid, axis=1) >= 5):
        front = np.asarray(archive.fitness[cell])[np.asarray(archive.valid[cell])]
        best, extent = front.max(axis=0), np.ptp(front, axis=0)
        shortfall = np.max((best - front) / extent, axis=1)
        of_elite = np.max((best - np.asarray(elites.fitness[cell])) / extent)
        more_balanced.append(np.mean(shortfall < of_elite - 1e-6))
    assert len(more_balanced) > 20
    assert np.median(more_balanced) < 0.3


def test_neighbours_count_and_those_farther_away_do_not():
    """One feature, ten cells: a solution that is worse in the middle is judged by whom it is near."""
    task = plane(2, num_features=1)
    algorithm = mcx("mcx", McxConfig(num_cells=(10,), ga_batch=BATCH, reach=2, memory=2), task)
    # The elite of cell 5 is (0, 9); a challenger (3, 3) ties on the two of them: 2 * 1 = 1 * 2.
    elite, challenger = (0.0, 9.0), (3.0, 3.0)

    def enters(witness, cell):
        """After another cell has got a witness."""
        rows = [(witness, cell), (elite, 5), (challenger, 5)]
        evaluation = Evaluation(
            jnp.asarray([row for row, _ in rows] + [(0.0, 0.0)] * (BATCH - 3)),
            jnp.asarray([[(at + 0.5) / 10] for _, at in rows] + [[0.0]] * (BATCH - 3)),
            jnp.arange(BATCH) < 3,
        )
        ((_, info),) = told(algorithm, [evaluation])
        return bool(info.added[2])

    balanced = (2.0, 2.0)  # which the challenger beats in both, the elite in one: 3 * 2 against 1 * 3
    assert enters(balanced, 3)
    assert enters(balanced, 7)
    assert not enters(balanced, 2)
    assert not enters(balanced, 8)
    assert not enters((9.0, 5.0), 4)  # which the elite beats in one and the challenger in none
