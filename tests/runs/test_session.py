import csv
import json
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core.metrics import archive_metrics
from moqd.core.types import Evaluation, Transition
from moqd.report.run import write_report
from moqd.runs.loop import reference_from
from moqd.tasks.evaluate import evaluate_first
from tests.plain import PLAIN


def small(task):
    return moqd.make_algorithm("mome", task, ga_batch=16, num_cells=10, front_length=5, **PLAIN)


def bowl(traceable: bool = True, **changes):
    """Distance to two points, by where in the square: written so that NumPy and JAX give the same."""
    numpy = jnp if traceable else np

    def function(x):
        return [numpy.sum((x - 0.2) ** 2), numpy.sum((x - 0.8) ** 2)], x[:2]

    arguments = {
        "name": "bowl",
        "bounds": [(0.0, 1.0)] * 3,
        "objective_names": ["near", "far"],
        "minimised": ["near", "far"],
        "feature_names": ["x", "y"],
        "feature_bounds": [(0.0, 1.0)] * 2,
        "traceable": traceable,
    }
    return moqd.FunctionTask(function, **(arguments | changes))


class Recorder(moqd.Callback):
    def __init__(self):
        self.events = []

    def on_start(self, config):
        self.events.append(("start", config.iterations))

    def on_log(self, row):
        self.events.append(("log", row["iteration"]))

    def on_end(self, run):
        self.events.append(("end", run.metrics["iteration"][-1]))


@pytest.mark.slow
def test_cells_of_a_grid(tmp_path):
    task = bowl(feature_bounds=[(0.0, 1.0), (0.0, 0.6)])
    with pytest.warns(UserWarning, match=r"solutions are outside of the bounds of 'y'"):
        run = moqd.run("mome", task, num_cells=(4, 5), ga_batch=64, iterations=5, out=tmp_path / "run")
    assert run.archive.valid.shape == (20, 50)
    solutions = run.solutions()
    assert len(solutions.cell) > 20
    inside = np.clip(solutions.features, 0, [1, 0.6])
    counts = np.histogram2d(*inside.T, bins=(4, 5), range=task.feature_bounds)[0]
    assert np.array_equal(np.bincount(solutions.cell, minlength=20).reshape(4, 5), counts)
    again = moqd.load_run(tmp_path / "run", task=task)
    assert np.array_equal(again.archive.centroid, run.archive.centroid)
    # JSON has lists only, but it is the same algorithm.
    assert again.config.algorithm.options["num_cells"] == [4, 5]
    with pytest.warns(UserWarning, match=r"outside of the bounds of 'y'"):
        more = moqd.resume(tmp_path / "run", task=task, iterations=6)
    assert more.metrics["iteration"][-1] == 6
    algorithm = moqd.make_algorithm("mome", task, num_cells=[4, 5], ga_batch=64)
    with pytest.warns(UserWarning, match=r"outside of the bounds of 'y'"):
        assert moqd.resume(tmp_path / "run", algorithm=algorithm, task=task)
    assert moqd.explore(moqd.load_run(tmp_path / "run")).is_file()


def test_rows_at_every_log_point_and_always_at_the_last():
    task, recorder = moqd.make_task("arm-2"), Recorder()
    run = moqd.run(small(task), task, iterations=23, log_every=10, callbacks=[recorder])
    assert run.metrics["iteration"].tolist() == [0, 10, 20, 23]
    assert run.metrics["evaluations"].tolist() == [16, 176, 336, 384]
    assert (np.diff(run.metrics["seconds"]) > 0).all()
    assert recorder.events == [("start", 23), *(("log", i) for i in (0, 10, 20, 23)), ("end", 23)]
    assert run.metrics["added_random"].tolist()[1:] == [0, 0, 0]
    assert run.metrics["added_ga"][1] > 0
    last = archive_metrics(run.archive, run.reference_point, np.zeros(2))
    assert last["moqd_score"] == run.metrics["moqd_score"][-1]


def test_an_empty_archive_is_told(tmp_path):
    """And a run of which every evaluation fails does not end with one."""
    distances = bowl(traceable=False).function
    task = bowl(traceable=False, constraint_names=["c"])
    task = replace(task, function=lambda x: (*distances(x), [1.0]))
    settings = {"ga_batch": 16, "num_cells": 10, **PLAIN}
    with pytest.warns(UserWarning, match="archive is empty: none of 48 evaluations satisfied all .*; loosen") as told:
        run = moqd.run("mome", task, iterations=2, out=tmp_path / "run", **settings)
    assert len(told) == 1
    assert not run.archive.valid.any()
    assert "the archive is empty: none of 48 evaluations" in write_report(run).read_text()

    nowhere = replace(bowl(traceable=False), function=lambda x: (distances(x)[0], [float("nan")] * 2))
    with pytest.raises(moqd.EvaluationError, match="every evaluation of task 'bowl' failed"):
        moqd.run("mome", nowhere, iterations=2, **settings)


def test_an_algorithm_that_adds_nothing_is_told():
    task = bowl()
    algorithm = small(task)
    tell = lambda key, state, *_: (state, algorithm.tell(key, state, *_)[1])  # noqa: E731
    with pytest.warns(UserWarning, match="archive is empty: the algorithm added none of 48 feasible solutions"):
        moqd.run(algorithm._replace(tell=tell), task, iterations=2)


@pytest.mark.slow
def test_log_points_do_not_change_the_result():
    task = moqd.make_task("arm-2")
    one, other = (moqd.run(small(task), task, iterations=20, log_every=n) for n in (3, 20))
    for a, b in zip(jax.tree.leaves(one.archive), jax.tree.leaves(other.archive), strict=True):
        assert np.array_equal(a, b)


def test_a_host_function_runs_the_same_algorithm():
    compiled, hosted = (moqd.run(small(task), task, iterations=1) for task in (bowl(True), bowl(False)))
    assert np.array_equal(compiled.archive.valid, hosted.archive.valid)
    np.testing.assert_allclose(compiled.archive.fitness, hosted.archive.fitness, atol=1e-6)


@pytest.mark.slow  # compiles defaults
def test_names_are_enough():
    settings = {"iterations": 2, "ga_batch": 16, "num_cells": 10}
    named, made = (moqd.run("mome", task, **settings) for task in ("arm-2", moqd.make_task("arm-2")))
    assert named.config.identity == made.config.identity
    for one, other in zip(jax.tree.leaves(named.archive), jax.tree.leaves(made.archive), strict=True):
        assert np.array_equal(one, other)
    for names, making in (
        (("mome", "arm-3"), lambda: moqd.make_task("arm-3")),
        (("momes", "arm-2"), lambda: moqd.make_algorithm("momes", moqd.make_task("arm-2"))),
    ):
        with pytest.raises(moqd.InputError) as expected:
            making()
        with pytest.raises(moqd.InputError, match=re.escape(str(expected.value))):
            moqd.run(*names, iterations=2)


def test_evaluations_are_the_iterations_budget():
    task = moqd.make_task("arm-2")
    assert moqd.run(small(task), task, evaluations=32).metrics["evaluations"][-1] == 48
    with pytest.warns(UserWarning, match="evaluations=33 is not a multiple of the batch of 16: 32 will be made after"):
        assert moqd.run(small(task), task, evaluations=33).metrics["iteration"][-1] == 2


def test_the_reference_point_comes_from_the_first_batch():
    assert reference_from(np.array([0.0, 5.0, 0.0]), np.array([10.0, 5.0, 0.0])).tolist() == [-1.0, 4.5, -0.1]
    task = bowl()
    run = moqd.run(small(task), task, iterations=2)
    assert run.metrics["below_reference"][0] == 0
    again = moqd.run(small(task), task, iterations=5)
    assert run.config.reference_point == again.config.reference_point
    # In the user's units: both are minimised, so the reference is above everything seen.
    assert (np.array(run.config.reference_point) > 0).all()
    assert (run.reference_point < 0).all()
    given = moqd.run(small(task), bowl(reference_point=[3.0, 3.0]), iterations=1)
    assert given.config.reference_point == (3.0, 3.0)


def test_a_run_is_written_and_loaded(tmp_path):
    task = moqd.make_task("arm-2", num_joints=5, reference_point=[2.0, 0.4])
    options = {"num_cells": 10, "front_length": 5, "guided": False, "cell_selection": "uniform"}
    algorithm = moqd.make_algorithm("mome", task, ga_batch=16, **options)
    run = moqd.run(algorithm, task, iterations=12, seed=7, out=tmp_path / "deep" / "run")
    loaded = moqd.load_run(tmp_path / "deep" / "run")
    assert loaded.config == run.config
    assert loaded.config.algorithm.to_json() == {
        "name": "mome",
        "ga_batch": 16,
        "num_cells": 10,
        "front_length": 5,
        "variation": "sbx:0.7,iso-line:0.05,de:0.25",
        "iso_sigma": 0.05,
        "line_sigma": 0.5,
        "crowding": True,
    }
    assert loaded.config.seed == 7
    assert loaded.task.reference_point == (2.0, 0.4)
    for a, b in zip(jax.tree.leaves(run.archive), jax.tree.leaves(loaded.archive), strict=True):
        assert np.array_equal(a, b)
        assert a.dtype == b.dtype
    assert list(loaded.metrics) == list(run.metrics)
    for name in run.metrics:
        assert np.array_equal(run.metrics[name], loaded.metrics[name])
    with (tmp_path / "deep" / "run" / "metrics.csv").open() as file:
        header = next(csv.reader(file))
    assert header[:13] == [
        "iteration",
        "evaluations",
        "seconds",
        "moqd_score",
        "moqd_sparsity_score",
        "global_hypervolume",
        "global_sparsity",
        "max_sum_scores",
        "coverage",
        "moqd_sparsity_occupied",
        "num_solutions",
        "failed_evaluations",
        "below_reference",
    ]
    # What is archived is what the task says of it.
    where = np.asarray(loaded.archive.valid)
    evaluation = loaded.task.evaluate(jax.random.key(0), loaded.archive.genotype[where])
    np.testing.assert_allclose(evaluation.fitness, loaded.archive.fitness[where], rtol=1e-5, atol=1e-6)


def test_own_tasks_are_loaded_with_the_task(tmp_path):
    task = bowl()
    run = moqd.run(small(task), task, iterations=2, out=tmp_path / "run")
    seen = moqd.load_run(tmp_path / "run")
    assert moqd.pick(seen).parameters == moqd.pick(run).parameters, "to look at it, the task is not needed"
    with pytest.raises(moqd.InputError, match="has no function"):
        seen.task.evaluate(jax.random.key(0), run.solutions().genotype)
    with pytest.raises(moqd.InputError, match="of the task 'bowl', which is not one of moqd's; pass it as"):
        moqd.resume(tmp_path / "run")
    loaded = moqd.load_run(tmp_path / "run", task=task)
    assert np.array_equal(run.archive.fitness, loaded.archive.fitness)
    assert repr(loaded).startswith("Run(mome on bowl in ")
    with pytest.raises(
        moqd.InputError, match=r"is of a task with objectives \['near', 'far'\].*but the task 'arm-2' has"
    ):
        moqd.load_run(tmp_path / "run", task=moqd.make_task("arm-2"))
    with pytest.raises(moqd.InputError, match="is of a task with bounds"):
        moqd.load_run(tmp_path / "run", task=bowl(bounds=[(0.0, 2.0)] * 3))
    with pytest.raises(moqd.InputError, match="is of a task with parameters"):
        moqd.load_run(tmp_path / "run", task=replace(bowl(), parameter_names=["c", "b", "a"]))
    with pytest.raises(moqd.InputError, match="is of a task with name bowl, but the task 'bowl 2' has bowl 2"):
        moqd.load_run(tmp_path / "run", task=replace(bowl(), name="bowl 2"))


def test_solutions_are_a_table_in_the_users_units():
    task = bowl(bounds=[(0.0, 1.0)] * 3)
    run = moqd.run(small(task), task, iterations=3)
    solutions = run.solutions()
    assert len(solutions.objectives) == run.metrics["num_solutions"][-1]
    expected = np.sum((task.parameters(solutions.genotype) - 0.2) ** 2, axis=1)
    np.testing.assert_allclose(solutions.objectives[:, 0], expected, rtol=1e-4, atol=1e-6)
    assert set(solutions.cell) == set(np.flatnonzero(np.asarray(run.archive.valid).any(axis=1)))
    np.testing.assert_allclose(solutions.features, task.parameters(solutions.genotype)[:, :2], atol=1e-6)


def test_an_interrupted_run_keeps_what_it_found(tmp_path):
    calls = []

    def function(x):
        calls.append(1)
        if len(calls) > 16 * 25:
            raise KeyboardInterrupt
        return [x[0], 1 - x[0]], [x[1]]

    task = moqd.FunctionTask(
        function,
        name="t",
        bounds=[(0, 1)] * 2,
        objective_names=["a", "b"],
        feature_names=["f"],
        feature_bounds=[(0, 1)],
    )
    with pytest.raises(KeyboardInterrupt) as interrupt:
        moqd.run(small(task), task, iterations=100, out=tmp_path / "run")
    loaded = moqd.load_run(tmp_path / "run", task=task)
    assert loaded.metrics["iteration"].tolist() == [0, 10, 20]
    assert np.asarray(loaded.archive.valid).sum() >= loaded.metrics["num_solutions"][-1]
    assert np.array_equal(interrupt.value.run.archive.valid, loaded.archive.valid)
    assert interrupt.value.run.path == tmp_path / "run"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing says when the run ends; give iterations, evaluations, minutes, env_steps or patience"),
        (
            {"iterations": 1, "evaluations": 2},
            "evaluations is 2; give one of the two and not the other",
        ),
        ({"minutes": -1.0}, "minutes is -1.0; give a number that is not negative"),
        ({"patience": 0}, "patience is 0; give a whole number of at least 1"),
        ({"iterations": 1, "seeds": [1, 1]}, r"seeds is \[1, 1\]; give at least one seed, and each only once"),
        ({"iterations": 1, "seeds": []}, r"seeds is \[\]; give at least one"),
        ({"iterations": -1}, "iterations is -1; give a whole number of at least 0"),
        ({"iterations": 1, "seed": -5}, "seed is -5; give a whole number from 0 to"),
        (
            {"iterations": 1, "seed": 2**32},
            "seed is 4294967296; give a whole number from 0 to 4294967295",
        ),
        ({"iterations": 1, "log_every": 0}, "log_every is 0; give a whole number of at least 1"),
        ({"iterations": 1, "out": "/dev/null/run"}, "out is '/dev/null/run', which cannot be made"),
        ({"iterations": 1, "out": "."}, "out is '.', which is there already; give the name of a new folder"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments, message):
    task = moqd.make_task("arm-2")
    with pytest.raises(moqd.InputError, match=message):
        moqd.run(small(task), task, **arguments)


def test_bad_run_folders_get_one_sentence(tmp_path):
    with pytest.raises(moqd.InputError, match="is not a run"):
        moqd.load_run(tmp_path)
    task = moqd.make_task("arm-2")
    folder = tmp_path / "run"
    moqd.run(small(task), task, iterations=1, out=folder)
    archive = (folder / "archive.safetensors").read_bytes()
    (folder / "archive.safetensors").write_bytes(archive[: len(archive) // 2])
    with pytest.raises(moqd.InputError, match="is damaged"):
        moqd.load_run(folder)
    (folder / "archive.safetensors").unlink()
    with pytest.raises(
        moqd.InputError, match="is missing: the run has not written it yet; wait for its first checkpoint, or"
    ):
        moqd.load_run(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"format": 99}))
    with pytest.raises(moqd.InputError, match="has format 99, but this moqd reads up to 1; upgrade moqd"):
        moqd.load_run(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(moqd.InputError, match="is not a config of a moqd run"):
        moqd.load_run(folder)


def test_of_a_batch_that_is_not_full_every_episode_stays_with_its_policy():
    """On the host nothing is evaluated for nothing; with resamples there are several episodes of each policy."""
    task = moqd.FunctionTask(
        lambda x: [x[0], x[0]], name="t", bounds=[(0.0, 1.0)], objective_names=["a", "b"], resamples=2
    )

    def evaluate(genotype):
        fitness = jnp.tile(genotype, (1, 2))
        episode = jnp.repeat(genotype, 2, axis=0)[:, None]  # of one step
        flags = jnp.ones((len(episode), 1), bool)
        transitions = Transition(episode, episode, episode, episode, flags, flags)
        return Evaluation(fitness, jnp.zeros((len(genotype), 0)), jnp.ones(len(genotype), bool), transitions)

    found = evaluate_first(task, evaluate, jnp.asarray([[1.0], [2.0], [3.0], [9.0], [9.0]]), 3)
    assert found.fitness[:, 0].tolist() == [1, 2, 3, 3, 3]
    assert found.transitions.obs[:, 0, 0].tolist() == [1, 1, 2, 2, 3, 3, 3, 3, 3, 3]
