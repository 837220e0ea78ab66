"""MOME's selection of cells by what offspring have added to them."""

import jax
import jax.numpy as jnp
import moocore
import numpy as np

import moqd
from moqd.algorithms.algorithm import GAIN_MEMORY, archive_for, random_offspring, with_gain
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
    before = jnp.array([1.0, 2.0, 0.0, 4.0])
    gain = jax.jit(lambda: with_gain(before, archive, task, evaluation))()
    fronts = [np.asarray(front)[there] for front, there in zip(archive.fitness, np.asarray(archive.valid), strict=True)]
    best = np.max(np.concatenate(fronts), axis=0)  # the unit, from the reference point on
    volume = lambda points: moocore.hypervolume(points / best, ref=[0, 0], maximise=True)  # noqa: E731
    expected = GAIN_MEMORY * np.asarray(before)
    for fitness, feature in zip(np.asarray(evaluation.fitness), np.asarray(evaluation.feature), strict=True):
        cell = np.argmin(np.abs(np.asarray(archive.centroid)[:, 0] - feature[0]))
        expected[cell] += volume(np.vstack([fronts[cell], fitness])) - volume(fronts[cell])
    np.testing.assert_allclose(gain, expected, rtol=1e-4)
    assert np.sum(np.asarray(gain) > GAIN_MEMORY * np.asarray(before)) >= 3
