"""Resamples, and how much of an archive survives fresh evaluation."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.report import write_report
from moqd.runs.reevaluate import read_reevaluation

NAMES = {
    "name": "noisy",
    "bounds": [(0.0, 1.0), (0.0, 1.0)],
    "objective_names": ["gain", "cost"],
    "minimised": ["cost"],
    "feature_names": ["where"],
    "feature_bounds": [(0.0, 1.0)],
    "reference_point": [-3.0, 3.0],
}


def on_host(x, seed):
    noise = np.random.default_rng(seed).normal(0, 0.2)
    return [x[0] + noise, x[0] ** 2], [x[1]]


def traced(x, seed):
    return [x[0] + 0.2 * jax.random.normal(seed), x[0] ** 2], [x[1]]


def fixed(x):
    return [x[0], x[0] ** 2], [x[1]]


@pytest.fixture(autouse=True)
def no_files_of_figures(monkeypatch):
    """Figures are drawn but not written, which takes most of the time of a report."""
    monkeypatch.setattr("moqd.report.run.save", lambda *_: None)


@pytest.mark.parametrize("traceable", [True, False])
def test_resamples_are_averaged(traceable):
    function = traced if traceable else on_host
    task = moqd.FunctionTask(function, noisy=True, traceable=traceable, resamples=400, **NAMES)
    genotype = jnp.asarray([[0.25, 0.5], [0.5, 0.5], [0.5, 0.5]])
    evaluation = task.evaluate(jax.random.key(0), genotype)
    np.testing.assert_allclose(evaluation.fitness[:, 0], [0.25, 0.5, 0.5], atol=0.04)
    np.testing.assert_allclose(evaluation.std[:, 0], 0.2, atol=0.03)
    np.testing.assert_allclose(evaluation.std[:, 1], 0, atol=1e-6)
    assert evaluation.fitness[1, 0] != evaluation.fitness[2, 0], "each has its own noise"
    again = task.evaluate(jax.random.key(0), genotype)
    np.testing.assert_array_equal(evaluation.fitness, again.fitness)
    one = task.resampled(1).evaluate(jax.random.key(1), genotype)
    assert one.fitness.shape == (3, 2)


def run_of(task, folder):
    return moqd.run(
        moqd.make_algorithm("mome", task, ga_batch=32, num_cells=6, front_length=10), task, iterations=12, out=folder
    )


@pytest.mark.slow
def test_luck_does_not_survive_and_merit_does(tmp_path):
    lucky = run_of(moqd.FunctionTask(on_host, noisy=True, **NAMES), tmp_path / "lucky")
    calls = []
    merit = run_of(moqd.FunctionTask(lambda x: calls.append(x) or fixed(x), **NAMES), tmp_path / "merit")
    again = moqd.reevaluate(lucky, resamples=100)
    assert again.survival < 0.95, "what noise had added is gone"
    # What is left is what the solutions are worth: hardly more than without any noise.
    calls.clear()
    worth = moqd.reevaluate(merit)
    assert len(calls) == merit.metrics["num_solutions"][-1], "nothing is evaluated to fill a batch"
    assert again.after["moqd_score"] < worth.before["moqd_score"] * 1.05
    assert worth.survival == pytest.approx(1)
    assert (worth.moved, worth.failed, worth.resamples) == (0, 0, 1)
    assert worth.after["num_solutions"] == merit.metrics["num_solutions"][-1]
    report = write_report(lucky).read_text()
    assert "## Re-evaluation" in report
    assert f"{again.survival:.1%}" in report.replace("\\", "")


@pytest.mark.slow  # draws figures
def test_a_report_of_an_uncertain_task_evaluates_anew(tmp_path):
    run = run_of(moqd.FunctionTask(on_host, noisy=True, resamples=2, **NAMES), tmp_path / "run")
    number, said = int(run.metrics["num_solutions"][-1]), []
    assert "over 2 evaluations" in write_report(run, say=said.append).read_text()
    assert said == [f"re-evaluating {number} solutions", "drawing the report"]
    assert read_reevaluation(moqd.load_run(tmp_path / "run", task=run.task)).before["num_solutions"] == number
    # What it says of another archive, such as the one that a resumed run had before, is not said of this one.
    first = np.argwhere(run.archive.valid)[0]
    other = run.archive._replace(valid=run.archive.valid.at[tuple(first)].set(False))
    assert read_reevaluation(replace(run, archive=other)) is None
    with pytest.raises(moqd.InputError, match="seed is 4294967296; give a whole number from 0 to"):
        moqd.reevaluate(run, seed=2**32)


def test_every_task_knows_resamples():
    arm = moqd.make_task("arm-2", resamples=3)
    assert (arm.num_resamples, arm.options["resamples"]) == (3, 3)
    hopper = moqd.make_task("hopper-2", resamples=3)
    assert hopper.num_resamples == 3
    assert hopper.resampled(5).num_resamples == 5
    with pytest.raises(moqd.InputError, match="resamples is 0"):
        moqd.make_task("arm-2", resamples=0)


@pytest.mark.slow
def test_as_often_as_in_the_run_and_never_other_than_is_said(tmp_path):
    task = moqd.FunctionTask(fixed, **NAMES)
    run = run_of(task, tmp_path / "run")
    for resamples in (0, -1):
        with pytest.raises(moqd.InputError, match="give a whole number of at least 1"):
            moqd.reevaluate(run, resamples=resamples)

    class Once(moqd.Task):
        """A task of somebody who knows nothing of resamples."""

        def init_genotype(self, key, num_genotypes):
            return task.init_genotype(key, num_genotypes)

        def evaluate(self, key, genotype):
            return task.evaluate(key, genotype)

    names = {name: value for name, value in NAMES.items() if name != "bounds"}
    own = run_of(Once(traceable=False, **names), None)
    found = moqd.reevaluate(own)
    assert (found.resamples, found.survival, found.moved) == (1, 1.0, 0.0)
    with pytest.raises(moqd.InputError, match="evaluates a solution once"):
        moqd.reevaluate(own, resamples=20)
