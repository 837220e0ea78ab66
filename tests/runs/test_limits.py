"""When a run ends, how often it logs, and what a run that was stopped gives."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.runs.config import MOST_ITERATIONS, RunConfig, usual_log_every
from moqd.runs.loop import Loop
from moqd.study.plan import Variant, make_study, named_study
from tests.plain import PLAIN
from tests.runs.test_session import bowl
from tests.walk import Walk, walk


def assert_same(one, other):
    for a, b in zip(jax.tree.leaves(one.archive), jax.tree.leaves(other.archive), strict=True):
        assert np.array_equal(a, b)


@pytest.fixture
def clock(monkeypatch):
    """Stands still, unless a test moves it on."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr("moqd.runs.session.time", SimpleNamespace(perf_counter=lambda: now.seconds))
    return now


def tiny(task):
    return moqd.make_algorithm("mome", task, ga_batch=16, num_cells=4, front_length=3, **PLAIN)


@pytest.fixture(scope="module")
def whole():
    """A run that nothing ended before its time."""
    task = bowl(traceable=False)
    return moqd.run(tiny(task), task, iterations=20)


@pytest.mark.slow
def test_the_time_is_kept_saved_and_extended(clock, whole, tmp_path):
    """A call takes a second, so a batch takes 16, and a minute is over in the third iteration after the first batch."""
    task = bowl(traceable=False)
    function = task.function

    def slow(x):
        clock.seconds += 1
        return function(x)

    task = replace(task, function=slow)
    given = {"task": task, "algorithm": tiny(task)}
    run = moqd.run(**given, minutes=1, out=tmp_path / "run")
    assert run.metrics["iteration"].tolist() == [0, 1, 2, 3]
    assert run.metrics["seconds"].tolist() == [16, 32, 48, 64]
    assert run.ended == "ended at iteration 3, because its time (1 min) is over."
    said = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (said["iterations"], said["minutes"], said["log_every"]) == (3, 1, None)
    assert moqd.load_run(tmp_path / "run").config == run.config
    clock.seconds += 1000  # which pass while nothing runs
    more = moqd.resume(tmp_path / "run", **given, minutes=1.5)
    assert more.metrics["seconds"].tolist() == [16, 32, 48, 64, 80, 96]
    last = moqd.resume(tmp_path / "run", **given, iterations=20)
    assert (last.config.iterations, last.config.minutes, last.ended) == (20, None, "")
    assert_same(last, whole)


@pytest.mark.slow
def test_chunks_meet_the_time_and_log_points_grow(clock, monkeypatch):
    """0.1 s an iteration, so a minute is 600; compiled chunks, which cannot be interrupted, end there."""
    advance, task = Loop.advance, bowl()
    chunks = []

    def counted(loop, stop):
        before = loop.iteration
        advance(loop, stop)
        chunks.append(loop.iteration - before)
        clock.seconds += 0.1 * (loop.iteration - before)

    monkeypatch.setattr(Loop, "advance", counted)
    algorithm = tiny(task)
    run = moqd.run(algorithm, task, minutes=1, snapshot_every=250)
    last = run.config.iterations
    assert last in (600, 601)
    grid = [i for i in range(last) if not str(i)[2:].strip("0")]  # two digits, and then zeros
    assert run.metrics["iteration"].tolist() == [*grid, last] if last not in grid else grid
    assert max(chunks) == 10
    assert_same(run, moqd.run(algorithm, task, iterations=last))


@pytest.mark.slow
def test_environment_steps_are_a_budget(tmp_path):
    """The run ends with the iteration in which they are made, also one that is compiled as a whole."""

    class Counted(Walk):
        def evaluate(self, key, genotype):
            evaluation = super().evaluate(key, genotype)
            return evaluation._replace(num_steps=jnp.sum(evaluation.transitions.valid, axis=1, dtype=jnp.int32))

    fields = {name: value for name, value in vars(walk()).items() if not name.startswith("_")}
    task = Counted(**fields)
    algorithm = moqd.make_algorithm("mome", task, ga_batch=16, num_cells=4, front_length=3)
    whole = moqd.run(algorithm, task, iterations=40, log_every=1)
    steps = whole.metrics["env_steps"]
    given = {"task": task, "algorithm": algorithm}
    budget = int(steps[20]) - 1
    run = moqd.run(**given, env_steps=budget, out=tmp_path / "run")
    assert run.config.iterations == run.metrics["iteration"][-1] == 20
    assert run.metrics["env_steps"][-1] == steps[20]
    assert run.ended == f"ended at iteration 20, because its {budget:,} environment steps are made."
    assert moqd.load_run(tmp_path / "run", task=task).config == run.config
    more = moqd.resume(tmp_path / "run", **given, env_steps=int(steps[40]))
    assert_same(more, whole)


def test_a_task_that_counts_no_steps_has_no_budget_of_them():
    fields = {name: value for name, value in vars(walk()).items() if not name.startswith("_")}
    with pytest.raises(moqd.InputError, match="env_steps is 10, but task 'walk' counts no steps"):
        moqd.run("mome", walk(), ga_batch=16, num_cells=4, env_steps=10)
    with pytest.raises(moqd.InputError, match="env_steps is 10, but task 'walk' counted no steps"):
        moqd.run("mome", Walk(**(fields | {"traceable": False})), ga_batch=16, num_cells=4, env_steps=10)
    with pytest.raises(moqd.InputError, match="env_steps is 10, but task 'bowl' counts no steps"):
        moqd.run(tiny(bowl()), bowl(), env_steps=10)


def test_a_study_may_compare_at_equal_environment_steps():
    study = make_study(
        "s",
        tasks={"hopper-2": {}},
        algorithms={name: Variant(name, {}) for name in ("mome", "pg-morl")},
        seeds=[0],
        preset="small",
        env_steps=100_000,
    )
    assert [run.config.env_steps for run in study.runs] == [100_000] * 2
    settings = [run.config.settings() for run in study.runs]
    assert all(one["env_steps"] == 100_000 and "iterations" not in one for one in settings)
    again = [RunConfig.from_settings(json.loads(json.dumps(one)), Path("study.json")) for one in settings]
    assert again == [run.config for run in study.runs]
    with pytest.raises(moqd.InputError, match="evaluations and env_steps are both given"):
        named_study("small-main", evaluations=10, env_steps=10)


def test_patience_ends_a_run_that_has_found_all():
    """Of four designs nothing better comes; the score is looked at in every row."""
    task = moqd.FunctionTask(
        lambda x: [x, 3 - x], name="four", bounds={"x": moqd.Integer(0, 3)}, objective_names=["a", "b"]
    )
    run = moqd.run(
        "mome",
        task,
        ga_batch=4,
        front_length=5,
        num_cells=1,
        **PLAIN,
        patience=4,
        iterations=100,
        log_every=2,
    )
    scores, iteration = run.metrics["moqd_score"], run.metrics["iteration"]
    stalled = iteration - iteration[[np.argmax(scores[: i + 1]) for i in range(len(scores))]]
    assert stalled[-1] >= 4 > stalled[:-1].max()
    assert run.config.iterations == iteration[-1] < 100
    assert run.ended == f"ended at iteration {iteration[-1]:.0f}, because its MOQD score is that of iteration 0 still."


def test_short_runs_log_ten_times():
    lengths = {0: 1, 5: 1, 20: 2, 50: 5, 99: 9, 100: 10, 1000: 10, MOST_ITERATIONS: None}
    assert {iterations: usual_log_every(iterations) for iterations in lengths} == lengths
    assert usual_log_every(1000, most=2) == 2, "a preset's own is not exceeded"

    def logged(**budget):
        study = make_study("s", tasks={"hopper-2": {}}, algorithms={"mome": Variant("mome", {})}, seeds=[0], **budget)
        return study.runs[0].config.log_every

    assert logged(iterations=20) == logged(evaluations=20 * 64) == 2
    assert logged() == logged(preset="quick") == logged(iterations=20, log_every=10) == 10


class Enough(moqd.Callback):
    """Stops a run when it is at an iteration."""

    def __init__(self, iteration):
        self.iteration, self.run = iteration, None

    def on_progress(self, iteration):
        return iteration == self.iteration

    def on_end(self, run):
        self.run = run


def test_a_callback_stops_a_run_which_can_go_on(whole, tmp_path, capsys):
    task, enough = bowl(traceable=False), Enough(5)
    algorithm = tiny(task)
    run = moqd.run(algorithm, task, iterations=20, callbacks=[enough], out=tmp_path / "run")
    assert run is enough.run
    assert run.ended == "stopped at iteration 5 of 20, as a callback asked."
    assert run.metrics["iteration"].tolist() == [0, 2, 4]
    assert len(moqd.load_run(tmp_path / "run", task=task).solutions().cell) == len(run.solutions().cell)
    more = moqd.resume(tmp_path / "run", task=task, algorithm=algorithm, progress=True)
    assert capsys.readouterr().out.count("goes on from iteration 5 of 20") == 1
    assert more.metrics["iteration"].tolist() == whole.metrics["iteration"].tolist() == list(range(0, 21, 2))
    assert_same(more, whole)


def test_several_seeds_are_the_runs_that_each_would_be(whole, tmp_path):
    task = bowl(traceable=False)
    with pytest.warns(UserWarning, match="'bowl' has no reference_point: .* cannot be compared"):
        runs = moqd.run(tiny(task), task, iterations=20, seeds=[4, 0], out=tmp_path)
    assert [run.path for run in runs] == [tmp_path / "seed-4", tmp_path / "seed-0"]
    assert [run.config.seed for run in runs] == [4, 0]
    assert_same(runs[1], whole)
    assert not np.array_equal(runs[0].archive.fitness, whole.archive.fitness)
    with pytest.raises(moqd.InputError, match="seed-0', which holds a run already"):
        moqd.run(tiny(task), task, iterations=2, seeds=[1, 0], out=tmp_path)
    assert not (tmp_path / "seed-1").exists()
