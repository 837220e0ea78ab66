"""The guide of MOME on plain parameters: who leads, what empty cells lend, and how soon something is feasible."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.algorithms.guide import (
    GAIN,
    LEAST,
    MOST,
    SIZE,
    START,
    initial_guide,
    is_led,
    renew_guide,
    select_guided,
    share_of,
    with_strays,
)
from moqd.core.archive import add, empty_archive, select_uniform
from moqd.core.types import Evaluation, Offspring, Source


def narrow(x):
    """Two of six parameters trade off; the others must be near 0.7, which one in a million random vectors is."""
    off = jnp.abs(x[2:] - 0.7) - 0.02
    return jnp.stack([x[0], 1 - x[0] ** 2 - jnp.sum((x[1] - 0.3) ** 2)]), x[1:2], off


def task_of(function=narrow, **others):
    return moqd.FunctionTask(
        function,
        name="narrow",
        bounds=[(0.0, 1.0)] * 6,
        objective_names=["a", "b"],
        feature_names=["f"],
        feature_bounds=[(0.0, 1.0)],
        constraint_names=[f"c{i}" for i in range(4)],
        traceable=True,
        **{"reference_point": [0.0, 0.0], **others},
    )


@pytest.mark.slow
def test_a_small_feasible_region_is_found_as_fast_as_by_nsga2():
    task = task_of()
    runs = {name: [moqd.run(name, task, evaluations=6000, seed=s) for s in range(3)] for name in ("mome", "nsga2")}
    last = lambda name, column: np.median([run.metrics[column][-1] for run in runs[name]])  # noqa: E731
    share = jnp.mean(jax.vmap(lambda x: jnp.all(narrow(x)[2] <= 0))(jax.random.uniform(jax.random.key(0), (10**6, 6))))
    assert share < 1e-5
    assert last("mome", "global_hypervolume") >= 0.95 * last("nsga2", "global_hypervolume") > 0
    assert last("mome", "moqd_score") > 1.1 * last("nsga2", "moqd_score")
    # Without the guide nothing leads there.
    with pytest.warns(UserWarning, match="the archive is empty"):
        alone = moqd.run("mome", task, evaluations=6000, guided=False)
    assert alone.metrics["global_hypervolume"][-1] < 0.5 * last("mome", "global_hypervolume")


@pytest.mark.parametrize("batch", [10, 50, 256])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.6, 1.0])
def test_a_share_is_led_in_every_part_of_the_batch(batch, share):
    led = np.asarray(is_led(share, batch))
    assert abs(led.sum() - share * batch) <= 1.5
    for part in np.array_split(led, 5):  # so that no operator, which has a block, goes without
        assert abs(part.sum() - share * len(part)) <= 1.5


def offspring_of(number):
    genotype = jnp.arange(6.0 * number).reshape(number, 6)
    return Offspring(genotype, jnp.ones((number, 2)) / 2, jnp.full(number, Source.GA))


@pytest.mark.slow
def test_cells_lend_their_least_infeasible_solution_until_they_have_a_feasible_one():
    centroid, bounds = jnp.array([[0.25], [0.75]]), jnp.array([[0.0], [1.0]])
    offspring = offspring_of(4)
    archive = empty_archive(offspring.genotype, centroid, bounds, num_objectives=2, front_length=3)
    guide = initial_guide(offspring, 2, constrained=True)
    evaluation = Evaluation(
        fitness=jnp.ones((4, 2)),
        feature=jnp.array([[0.2], [0.3], [0.1], [0.9]]),
        valid=jnp.array([True, True, True, False]),
        violation=jnp.array([2.0, 1.0, 1.0, 0.5]),
    )
    guide = renew_guide(guide, archive, task_of(), offspring, evaluation)
    lent = with_strays(archive, guide.strays)
    np.testing.assert_array_equal(np.asarray(lent.valid).sum(axis=1), [1, 0])  # a failed one is lent by nobody
    np.testing.assert_array_equal(lent.genotype[0, 0], offspring.genotype[1])  # the first of the least infeasible
    found, _ = add(archive, offspring, evaluation._replace(violation=jnp.array([0.0, 1.0, 1.0, 0.5])))
    np.testing.assert_array_equal(with_strays(found, guide.strays).genotype, found.genotype)
    assert not np.asarray(archive.valid).any()


def test_the_guide_leads_while_it_advances_or_is_beyond_the_reference_point():
    offspring, task = offspring_of(4), task_of()
    archive = empty_archive(
        offspring.genotype, jnp.array([[0.5]]), jnp.array([[0.0], [1.0]]), num_objectives=2, front_length=3
    )
    guide = initial_guide(offspring, 1, constrained=False)
    assert float(share_of(guide, task)) == pytest.approx(MOST)

    @jax.jit
    def told(guide, fitness):
        evaluation = Evaluation(jnp.asarray(fitness), jnp.zeros((4, 1)), jnp.ones(4, bool))
        return renew_guide(guide, archive, task, offspring, evaluation)

    beyond = told(guide, np.full((4, 2), -1.0, np.float32))
    for _ in range(60):  # never better: no progress
        beyond = told(beyond, np.full((4, 2), -2.0, np.float32))
    assert float(beyond.progress) < 0.01
    assert float(share_of(beyond, task)) == pytest.approx(MOST)  # nothing counts yet
    inside = beyond
    for _ in range(60):
        inside = told(inside, np.full((4, 2), 1.0, np.float32))
    assert float(share_of(inside, task)) == pytest.approx(LEAST, abs=0.02)
    rising = inside
    for i in range(30):
        rising = told(rising, np.full((4, 2), 2.0 + i, np.float32))
    assert float(share_of(rising, task)) == pytest.approx(MOST)


def test_a_guide_leads_all_the_way_to_what_is_feasible_and_then_earns_its_share():
    """Also where no reference point is known."""
    task, offspring = task_of(reference_point=None), offspring_of(SIZE)
    guide = initial_guide(offspring, 1, constrained=True)

    def of(num_infeasible):
        violation = jnp.zeros(SIZE).at[:num_infeasible].set(1.0)
        members = guide.population._replace(valid=jnp.ones(SIZE, bool), violation=violation)
        return float(share_of(guide._replace(population=members), task))

    assert of(SIZE) == pytest.approx(MOST)
    assert of(SIZE // 2) == pytest.approx(MOST / 2)
    assert of(0) == pytest.approx(GAIN * START)


@pytest.mark.parametrize(("better", "expected"), [pytest.param(1.0, 0.95, marks=pytest.mark.slow), (-1.0, 0.5)])
def test_parents_are_mostly_from_cells_that_add_hypervolume_once_there_are_some(better, expected):
    task = task_of()
    first = Offspring(jnp.zeros((2, 6)).at[0].set(1.0), jnp.ones((2, 2)) / 2, jnp.full(2, Source.GA))
    centroid, bounds = jnp.array([[0.25], [0.75]]), jnp.array([[0.0], [1.0]])
    archive = empty_archive(first.genotype, centroid, bounds, num_objectives=2, front_length=3)
    evaluation = Evaluation(jnp.array([[better, better], [-2.0, -2.0]]), centroid, jnp.ones(2, bool))
    archive, _ = add(archive, first, evaluation)
    guide = initial_guide(first, 2, constrained=False)._replace(progress=jnp.zeros(()))
    members = guide.population._replace(  # of which all count, so that the guide leads least, and each is a 7
        genotype=jnp.full((64, 6), 7.0),
        fitness=jnp.ones((64, 2)),
        valid=jnp.ones(64, bool),
        violation=jnp.zeros(64),
    )
    guide = guide._replace(population=members)
    parents = select_guided(jax.random.key(0), archive, guide, task, 1000, 2, select_uniform).genotype[:1000, 0]
    assert np.mean(parents == 7) == pytest.approx(LEAST, abs=0.01)
    assert np.mean(parents[parents != 7] == 1) == pytest.approx(expected + (1 - expected) / 2 * (better > 0), abs=0.05)


@pytest.mark.slow  # as test_algorithms does on another problem
def test_guided_runs_resume_to_the_bit(tmp_path):
    def wide(x):
        fitness, feature, off = narrow(x)
        return fitness, feature, off - 0.3

    task = task_of(wide)
    options = {"num_cells": 8, "front_length": 5, "ga_batch": 12}
    whole = moqd.run("mome", task, iterations=6, seed=1, **options)
    moqd.run("mome", task, iterations=3, seed=1, out=tmp_path / "run", **options)
    resumed = moqd.resume(tmp_path / "run", task=task, iterations=6)
    assert np.asarray(whole.archive.valid).any()
    for mine, other in zip(jax.tree.leaves(whole.archive), jax.tree.leaves(resumed.archive), strict=True):
        np.testing.assert_array_equal(mine, other)
