"""MOME's selection of cells by what offspring have added to them."""

import jax
import jax.numpy as jnp
import moocore
import numpy as np

import moqd
from moqd.algorithms.algorithm import archive_for, random_offspring
from moqd.algorithms.mome import MEMORY, CellGains, with_batch
from moqd.core.archive import add


def task_of():
    return moqd.problem(
        lambda x: (jnp.stack([x[0], 1 - x[0] * x[1]]), x[2:]),
        [(0.0, 1.0)] * 3,
        {"a": "max", "b": "max"},
        {"f": (0.0, 1.0)},
        name="gaining",
        reference_point=(0.0, 0.0),
        traceable=True,
    )


def test_cells_gain_the_hypervolume_that_each_solution_alone_would_add():
    task = task_of()
    first, second = (random_offspring(jax.random.key(seed), task, 40) for seed in range(2))
    evaluate = jax.jit(task.evaluate)
    archive = archive_for(task, first.genotype, num_cells=4, front_length=20)
    archive, _ = add(archive, first, evaluate(jax.random.key(0), first.genotype))
    evaluation = evaluate(jax.random.key(0), second.genotype)
    before = CellGains(jnp.array([1.0, 2.0, 0.0, 4.0]), jnp.array([10.0, 0.0, 3.0, 7.0]))
    gains = jax.jit(lambda: with_batch(before, archive, task, evaluation))()
    fronts = [np.asarray(front)[there] for front, there in zip(archive.fitness, np.asarray(archive.valid), strict=True)]
    best = np.max(np.concatenate(fronts), axis=0)  # the unit, from the reference point on
    volume = lambda points: moocore.hypervolume(points / best, ref=[0, 0], maximise=True)  # noqa: E731
    added, tried = (MEMORY * np.asarray(numbers) for numbers in before)
    for fitness, feature in zip(np.asarray(evaluation.fitness), np.asarray(evaluation.feature), strict=True):
        cell = np.argmin(np.abs(np.asarray(archive.centroid)[:, 0] - feature[0]))
        added[cell] += volume(np.vstack([fronts[cell], fitness])) - volume(fronts[cell])
        tried[cell] += 1
    assert np.sum(added > MEMORY * np.asarray(before.added)) >= 3
    np.testing.assert_allclose(gains.added, added, rtol=1e-4)
    np.testing.assert_allclose(gains.tried, tried, rtol=1e-6)


def test_a_cell_of_which_little_is_known_is_expected_to_gain_as_much_as_others():
    gains = CellGains(jnp.array([30.0, 0.0, 0.0, 10.0]), jnp.array([9.0, 9.0, 0.0, 2.0]))
    np.testing.assert_allclose(gains.expected, [3.2, 0.2, 2.0, 4.0])  # the mean is 40 / 20
    nothing = CellGains(jnp.zeros(3), jnp.zeros(3))
    np.testing.assert_array_equal(nothing.expected, jnp.zeros(3))
