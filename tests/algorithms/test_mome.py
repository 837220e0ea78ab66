"""MOME's selection of cells by what offspring have added to them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import moocore
import numpy as np
import pytest

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
    gains = jax.jit(lambda: with_batch(before, archive, task, evaluation, jnp.zeros(40, bool)))()
    fronts = [np.asarray(front)[there] for front, there in zip(archive.fitness, np.asarray(archive.valid), strict=True)]
    best = np.max(np.concatenate([*fronts, evaluation.fitness]), axis=0)  # the unit, from the reference point on
    volume = lambda points: moocore.hypervolume(points / best, ref=[0, 0], maximise=True)  # noqa: E731
    added, tried = (MEMORY * np.asarray(numbers) for numbers in before)
    for fitness, feature in zip(np.asarray(evaluation.fitness), np.asarray(evaluation.feature), strict=True):
        cell = np.argmin(np.abs(np.asarray(archive.centroid)[:, 0] - feature[0]))
        added[cell] += volume(np.vstack([fronts[cell], fitness])) - volume(fronts[cell])
        tried[cell] += 1
    assert np.sum(added > MEMORY * np.asarray(before.added)) >= 3
    np.testing.assert_allclose(gains.added, added, rtol=1e-4)
    np.testing.assert_allclose(gains.tried, tried, rtol=1e-6)


@pytest.mark.parametrize("reference_point", [(0.0, 0.0), None])
def test_gains_have_no_unit_from_the_first_batch_on(reference_point):
    """Objectives of any size, also before there is anything to compare them with; a failure's penalty is no gain."""
    task = replace(task_of(), reference_point=reference_point)
    offspring = random_offspring(jax.random.key(0), task, 40)
    archive = archive_for(task, offspring.genotype, num_cells=4, front_length=20)
    nothing = CellGains(jnp.zeros(4), jnp.zeros(4))
    evaluation = jax.jit(task.evaluate)(jax.random.key(0), offspring.genotype)
    counts = jax.jit(
        lambda scale, penalty: with_batch(
            nothing,
            archive,
            task,
            evaluation._replace(
                fitness=jnp.where(jnp.arange(40)[:, None] < 5, penalty, evaluation.fitness * scale[None])
            ),
            jnp.ones(40, bool),
        )
    )
    small, large = (counts(jnp.array(scale), -jnp.array(scale)[None]) for scale in ([1.0, 1.0], [3000.0, 500.0]))
    np.testing.assert_allclose(large.added, small.added, rtol=1e-4)
    assert 0 < np.sum(small.added) <= 40
    assert np.all(np.isfinite(counts(jnp.array([1.0, 1.0]), jnp.full((1, 2), -1e20)).added))


def test_beyond_three_objectives_those_that_enter_count():
    task = moqd.make_task("dtlz2-5")
    offspring = random_offspring(jax.random.key(0), task, 40)
    archive = archive_for(task, offspring.genotype, num_cells=4, front_length=20)
    evaluation = jax.jit(task.evaluate)(jax.random.key(0), offspring.genotype)
    after, added = jax.jit(add)(archive, offspring, evaluation)
    nothing = CellGains(jnp.zeros(4), jnp.zeros(4))
    gains = jax.jit(lambda: with_batch(nothing, archive, task, evaluation, added))()
    np.testing.assert_array_equal(gains.added, np.asarray(after.valid).sum(axis=1))
    assert gains.tried.sum() == 40


def test_a_cell_of_which_little_is_known_is_expected_to_gain_as_much_as_others():
    gains = CellGains(jnp.array([30.0, 0.0, 0.0, 10.0]), jnp.array([9.0, 9.0, 0.0, 2.0]))
    np.testing.assert_allclose(gains.expected, [3.2, 0.2, 2.0, 4.0])  # the mean is 40 / 20
    nothing = CellGains(jnp.zeros(3), jnp.zeros(3))
    np.testing.assert_array_equal(nothing.expected, jnp.zeros(3))
