"""A task of one's own class: what it gets wrong is caught at its boundary."""

import pickle
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core.types import Evaluation
from moqd.tasks.task import UNKNOWN, averaged


@dataclass(frozen=True, eq=False)
class Line(moqd.Task):
    """A pytree genotype; half of the fitness is not finite, and nobody says so."""

    num_values: int = 2

    def init_genotype(self, key, num_genotypes):
        return {"x": jax.random.normal(key, (num_genotypes,)), "y": jnp.zeros((num_genotypes, 2, 2))}

    def evaluate(self, key, genotype):
        x = genotype["x"]
        fitness = jnp.where(x > 0, x, jnp.nan)[:, None] * jnp.ones((1, self.num_values))
        return Evaluation(fitness, jnp.zeros((x.shape[0], 0)), jnp.ones(x.shape[0], bool))


@pytest.mark.parametrize("traceable", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_non_finite_is_failed_and_counted(traceable, tmp_path):
    task = Line(name="line", objective_names=["a", "b"], traceable=traceable)
    algorithm = moqd.make_algorithm("mome", task, ga_batch=32)
    run = moqd.run(algorithm, task, iterations=3, out=tmp_path / "run")
    assert 0 < run.metrics["failed_evaluations"][0] < 32
    assert run.archive.valid.shape == (1, 50)
    assert (run.archive.genotype["x"][run.archive.valid] > 0).all()
    loaded = moqd.load_run(tmp_path / "run", task=task)
    for a, b in zip(jax.tree.leaves(run.archive), jax.tree.leaves(loaded.archive), strict=True):
        assert np.array_equal(a, b)


def test_a_wrong_shape_gets_one_sentence():
    task = Line(name="line", objective_names=["a", "b"], num_values=3)
    with pytest.raises(moqd.InputError, match=r"task 'line' gave fitness of shape \(8, 3\); \(8, 2\) is expected"):
        moqd.run(moqd.make_algorithm("mome", task, ga_batch=8), task, iterations=1)


def test_units_are_of_objectives_and_features():
    task = Line(name="line", objective_names=["a", "b"], units={"a": "kg"})
    assert (task.label("a"), task.label("b")) == ("a (kg)", "b")
    with pytest.raises(moqd.InputError, match="parameter 'c' of units; known: a, b"):
        Line(name="line", objective_names=["a", "b"], units={"c": "kg"})


def test_bounds_that_are_not_known_are_so_in_another_process_too():
    """Where the same NaN is another object."""
    task = Line(name="line", objective_names=["a", "b"], feature_names=["f", "g"], feature_bounds=[(0, 1), UNKNOWN])
    again = pickle.loads(pickle.dumps(task))
    assert not again.has_feature_bounds
    assert again.within([(5, 6), (2, 3)]).feature_bounds == ((0, 1), (2, 3))
    assert again.feature_ranges == {"f": "0 to 1", "g": "(learned by a run)"}


def test_a_task_without_features_is_averaged():
    evaluation = averaged(Evaluation(jnp.arange(12.0).reshape(6, 2), jnp.zeros((6, 0)), jnp.ones(6, bool)), 3)
    assert evaluation.feature.shape == (2, 0)
    assert evaluation.fitness.tolist() == [[2, 3], [8, 9]]


@pytest.mark.parametrize("name", ["ant-3", "hopper-3", "arm-2"])
def test_all_that_is_measured_of_a_robot_has_a_unit(name):
    task = moqd.make_task(name)
    assert set(task.units) == {*task.objective_names, *task.feature_names}


def test_a_label_of_a_robot():
    task = moqd.make_task("hopper-2")
    assert task.label("forward velocity") == "forward velocity (m/s, summed over steps)"
    assert task.label("foot contact") == "foot contact (share of steps on the ground)"
