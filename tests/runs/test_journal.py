"""Evaluations on the host: what fails is recorded and never archived, and what was made is not made again."""

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core.archive import add, empty_archive
from moqd.core.types import Offspring
from moqd.runs.journal import RunJournal
from moqd.tasks.function import Measured, Outcome
from tests.quick import only

NAMES = {
    "name": "awkward",
    "bounds": {"a": (0.0, 1.0), "b": (-1.0, 1.0)},
    "objective_names": ["gain", "cost"],
    "minimised": ["cost"],
    "feature_names": ["where"],
    "feature_bounds": [(-1.0, 1.0)],
}
POPULATION = 40


def made_measured():
    """Made here, because a name of this module would have each worker import it, and JAX."""

    def measured(a, b):
        return [a - b**2, a**2 + 0.1 * abs(b)], [b]

    return measured


measured = made_measured()


def made_awkward():
    """One call in ten fails, in each of four ways: which one depends on the parameters alone.

    It refers to nothing here, so that workers need not load this module, and JAX with it, whenever one has died.
    """

    def awkward(a, b):
        way = int(a * 1e6) % 40
        if way == 0:
            raise RuntimeError(f"no result at {a}")
        if way == 1:
            time.sleep(60)
        if way == 2:
            return [float("nan"), 1.0], [b]
        if way == 3:
            os._exit(9)
        return [a - b**2, a**2 + 0.1 * abs(b)], [b]

    return awkward


@dataclass(frozen=True, eq=False)
class Recorded(moqd.FunctionTask):
    """Keeps what it was asked and said."""

    batches: list = field(default_factory=list, init=False)

    def evaluate(self, key, genotype, journal=None):
        evaluation = super().evaluate(key, genotype, journal)
        self.batches.append((np.asarray(genotype), evaluation))
        return evaluation


def small(task, name="nsga2-small"):
    return moqd.make_algorithm(name, task, population=POPULATION, num_cells=8, front_length=10, variation="iso-line")


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow  # tests/tasks/test_pool.py fails in every way once
def test_a_thousand_evaluations_of_which_a_tenth_fails_in_every_way(tmp_path):
    task = Recorded(made_awkward(), evaluator="processes", workers=2, timeout=0.5, **NAMES)
    run = moqd.run(small(task), task, iterations=24, out=tmp_path / "run")
    assert run.metrics["evaluations"][-1] == 1000
    asked = np.concatenate([genotype for genotype, _ in task.batches])
    expected = [int(parameters[0] * 1e6) % 40 for parameters in task.parameters(asked)]
    failures = lines_of(tmp_path / "run" / "failures.jsonl")
    kinds = {"raised": 0, "timeout": 1, "not finite": 2, "died": 3}
    for kind, way in kinds.items():
        assert sum(one["kind"] == kind for one in failures) == expected.count(way) > 10, kind
    assert run.metrics["failed_evaluations"][-1] == len(failures) == sum(way < 4 for way in expected)
    for one in failures:
        assert int(one["parameters"]["a"] * 1e6) % 40 == kinds[one["kind"]]
        assert ("no result at" in one["traceback"]) == (one["kind"] == "raised")

    made = empty_archive(
        jnp.asarray(asked[:1]), run.archive.centroid, run.archive.feature_bounds, num_objectives=2, front_length=10
    )
    add_some, none = jax.jit(add), jnp.zeros(POPULATION, jnp.int32)
    for genotype, evaluation in task.batches:
        good = np.flatnonzero(evaluation.valid)
        rows = np.resize(good, POPULATION)  # the others are padding, so that this is compiled once
        only = jax.tree.map(lambda leaf, rows=rows: leaf[rows], evaluation)
        only = only._replace(valid=jnp.arange(POPULATION) < len(good))
        made, _ = add_some(made, Offspring(jnp.asarray(genotype[rows]), jnp.zeros((POPULATION, 2)), none), only)
    valid = np.asarray(run.archive.valid)
    np.testing.assert_array_equal(valid, made.valid)
    for name in ("genotype", "fitness", "feature"):
        np.testing.assert_array_equal(np.asarray(getattr(run.archive, name))[valid], getattr(made, name)[valid])


@pytest.mark.parametrize("evaluator", ["here", "processes"])
def test_what_fails_now_and_then_is_tried_again(evaluator, tmp_path):
    """In whichever way: a third of the solutions raises, a third gives NaN, twice each; and one always."""

    def now_and_then(a, b):
        tries = tmp_path / f"{evaluator} {a}"
        tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
        if b > 0.9 or (len(tries.read_text()) < 3 and b > -0.3):
            return ([float("nan"), 1.0], [b]) if b > 0.3 else 1 / 0
        return [a - b**2, a**2], [b]

    task = moqd.FunctionTask(now_and_then, evaluator=evaluator, retries=2, **NAMES)
    journal, key = RunJournal(tmp_path, task), jax.random.key(0)
    evaluation = task.evaluate(key, task.init_genotype(key, POPULATION), journal.batch(0))
    journal.close()
    entries = lines_of(tmp_path / "journal" / "00000000.jsonl")
    assert len(entries) == POPULATION
    for entry in entries:
        b = entry["parameters"]["b"]
        assert entry["attempts"] == (3 if b > -0.3 else 1)
        assert ("failure" in entry) == (b > 0.9)
    failures = lines_of(tmp_path / "failures.jsonl")
    assert len(failures) == sum("failure" in entry for entry in entries) == np.sum(~evaluation.valid) > 0
    with pytest.raises(moqd.InputError, match="retries is -1"):
        moqd.FunctionTask(now_and_then, retries=-1, **NAMES)
    with pytest.raises(moqd.InputError, match="retries is given, but solutions are evaluated all at once"):
        moqd.FunctionTask(now_and_then, retries=1, batched=True, **NAMES)


def interrupted(calls, at):
    """Counts its calls in a file, fails now and then, and is interrupted once, by Ctrl-C."""

    def function(a, b):
        number = len(calls.read_text()) if calls.exists() else 0
        if number == at and not (calls.parent / "was").exists():
            (calls.parent / "was").touch()
            raise KeyboardInterrupt
        with calls.open("a") as file:
            file.write("x")
        if int(a * 1e6) % 10 == 0:
            raise ValueError("now and then")
        return measured(a, b)

    return function


@pytest.mark.parametrize("at", only([3 * POPULATION + 25], [17, 3 * POPULATION + 25]))
def test_a_resumed_run_evaluates_only_what_is_missing(tmp_path, at):
    whole = moqd.FunctionTask(interrupted(tmp_path / "whole", -1), **NAMES)
    expected = moqd.run(small(whole), whole, iterations=4, out=tmp_path / "expected")
    task = moqd.FunctionTask(interrupted(tmp_path / "calls", at), **NAMES)
    with pytest.raises(KeyboardInterrupt):
        moqd.run(small(task), task, iterations=4, out=tmp_path / "run", checkpoint_minutes=60)
    # A line that was cut off is as if it were not there.
    journal = max((tmp_path / "run" / "journal").iterdir())
    journal.write_text(journal.read_text() + '{"row": 39, "param')
    run = moqd.resume(tmp_path / "run", task=task)
    assert len((tmp_path / "calls").read_text()) == 5 * POPULATION
    assert not (tmp_path / "expected" / "journal").exists(), "with one checkpoint, nobody needs it"
    for one, other in zip(jax.tree.leaves(run.archive), jax.tree.leaves(expected.archive), strict=True):
        np.testing.assert_array_equal(one, other)
    told = [lines_of(tmp_path / folder / "failures.jsonl") for folder in ("run", "expected")]
    for lines in told:
        for line in lines:
            line.pop("traceback")
    assert told[0] == told[1]
    assert len(told[0]) == run.metrics["failed_evaluations"][-1] > 0


@pytest.mark.slow
def test_a_finished_run_keeps_what_its_older_checkpoint_needs(tmp_path):
    """If the newer one is damaged, the run goes on from there, and evaluates nothing again."""
    calls = []

    def counted(a, b):
        calls.append((a, b))
        return [a - b**2, a**2], [b]

    task = moqd.FunctionTask(counted, **NAMES)
    moqd.run(small(task), task, iterations=2, log_every=1, checkpoint_minutes=0, out=tmp_path / "run")
    assert [path.name for path in (tmp_path / "run" / "journal").iterdir()] == ["00000002.jsonl"]
    (tmp_path / "run" / "checkpoints" / "00000002" / "state.safetensors").write_bytes(b"")
    with pytest.warns(UserWarning, match="goes on from iteration 1"):
        moqd.resume(tmp_path / "run", task=task, iterations=3)
    assert len(set(calls)) == len(calls) == 4 * POPULATION


def test_a_line_that_was_cut_off_does_not_take_the_next_with_it(tmp_path):
    task, parameters = moqd.FunctionTask(measured, **NAMES), {"a": 0.5, "b": 0.25}
    journal = RunJournal(tmp_path, task)
    path = tmp_path / "journal" / "00000000.jsonl"
    journal.batch(0)
    path.write_text('{"row": 39, "param')
    for row in range(2):
        journal.batch(0).note(row, parameters, Outcome(Measured([1.0, 2.0], [0.5], [])))
    journal.close()
    assert path.read_text().count("\n") == 3
    again = journal.batch(0)
    assert [again.known(row, parameters) is not None for row in (0, 1, 39)] == [True, True, False]


@pytest.mark.parametrize(("evaluator", "times"), [("here", 0), ("processes", 2)])
def test_what_comes_from_a_pool_survives_a_power_cut(evaluator, times, tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("os.fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink()))
    journal = RunJournal(tmp_path, moqd.FunctionTask(measured, evaluator=evaluator, **NAMES))
    batch = journal.batch(0)
    for row in range(2):
        batch.note(row, {"a": 0.5, "b": 0.25}, Outcome(Measured([1.0, 2.0], [0.5], [])))
    journal.close()
    assert synced.count(tmp_path / "journal" / "00000000.jsonl") == times


def test_a_journal_of_other_parameters_is_not_believed(tmp_path):
    task = moqd.FunctionTask(interrupted(tmp_path / "calls", 30), **NAMES)
    with pytest.raises(KeyboardInterrupt):
        moqd.run(small(task), task, iterations=0, out=tmp_path / "run")
    (journal,) = (tmp_path / "run" / "journal").iterdir()
    lines = lines_of(journal)
    lines[0]["parameters"]["a"] += 0.1
    lines[1]["objectives"] = ["high", 2]
    lines[2]["objectives"] = [1.0]
    lines[3] = "what?"
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    moqd.resume(tmp_path / "run", task=task)
    assert len((tmp_path / "calls").read_text()) == POPULATION + 4


def test_it_does_not_matter_who_is_first(tmp_path):
    def uneven(a, b):
        time.sleep(0.02 * a)
        return measured(a, b)

    runs = [
        moqd.run(small(task), task, iterations=1)
        for task in (
            moqd.FunctionTask(uneven, evaluator="processes", workers=2, **NAMES),
            moqd.FunctionTask(measured, **NAMES),
        )
    ]
    for one, other in zip(*(jax.tree.leaves(run.archive) for run in runs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_run_in_which_everything_begins_to_fail_stops_and_can_go_on(tmp_path):
    broken = tmp_path / "broken"

    def function(a, b):
        if broken.exists():
            raise ConnectionError("the licence server is gone")
        return measured(a, b)

    class Break(moqd.Callback):
        def on_progress(self, iteration):
            if iteration == 2:
                broken.touch()

    task = moqd.FunctionTask(function, **NAMES)
    with pytest.raises(moqd.EvaluationError, match="failed in the last 3 batches: it raised ConnectionError"):
        moqd.run(small(task), task, iterations=8, out=tmp_path / "run", callbacks=[Break()])
    broken.unlink()
    run = moqd.resume(tmp_path / "run", task=task)
    assert run.metrics["iteration"][-1] == 8
    assert run.metrics["failed_evaluations"][-1] == 3 * POPULATION


@pytest.mark.parametrize("name", only(["nsga2-small"], ["mome", "nsga2-small", "spea2-small"]))
def test_only_what_is_feasible_is_archived(name):
    def function(a, b):
        objectives, features = measured(a, b)
        return objectives, features, [0.2 - a, b - 0.5]

    task = Recorded(function, constraint_names=["a is large", "b is small"], **NAMES)
    options = {"ga_batch" if name == "mome" else "population": POPULATION, "variation": "iso-line"}
    run = moqd.run(moqd.make_algorithm(name, task, num_cells=8, **options), task, iterations=3)
    a, b = task.parameters(run.solutions().genotype).T
    assert len(a) > 5
    assert (a >= 0.2 - 1e-6).all()
    assert (b <= 0.5 + 1e-6).all()
    asked = task.parameters(np.concatenate([genotype for genotype, _ in task.batches]))
    violated = np.maximum(0.2 - asked[:, 0], 0) + np.maximum(asked[:, 1] - 0.5, 0)
    assert run.metrics["infeasible_evaluations"][-1] == np.sum(violated > 0) > 5
    np.testing.assert_allclose(
        np.concatenate([evaluation.violation for _, evaluation in task.batches]), violated, atol=1e-6
    )
    # The reference point is that of the feasible solutions of the first batch.
    _, first = task.batches[0]
    fitness = np.asarray(first.fitness)[np.asarray(first.feasible)]
    worst, best = fitness.min(axis=0), fitness.max(axis=0)
    np.testing.assert_allclose(run.reference_point, worst - 0.1 * (best - worst), rtol=1e-5)


@pytest.mark.slow
def test_a_population_finds_what_is_feasible_though_it_begins_without():
    def function(a, b):
        objectives, features = measured(a, b)
        return objectives, features, [0.98 - a, 0.98 - b]

    task = moqd.FunctionTask(function, constraint_names=["a", "b"], **NAMES)
    algorithm = moqd.make_algorithm("nsga2-small", task, population=20, num_cells=8, iso_sigma=0.05, line_sigma=0.2)
    run = moqd.run(algorithm, task, iterations=25)
    assert run.metrics["num_solutions"][0] == 0
    assert run.metrics["num_solutions"][-1] > 0
    assert run.metrics["moqd_score"][-1] >= 0


def test_a_function_may_change_what_it_is_given(tmp_path):
    """With retries, and beside a journal, each call gets the parameters as they are."""
    seen = []

    def shifts(x):
        seen.append(x.copy())
        x -= 10
        if len(seen) < 3:
            raise RuntimeError("not the first time")
        return [x[0], -x[0]], [x[1]]

    names = {name: value for name, value in NAMES.items() if name not in ("bounds", "feature_bounds")}
    task = moqd.FunctionTask(shifts, bounds=[(0.0, 1.0)] * 2, feature_bounds=[(-10.0, -9.0)], retries=1, **names)
    journal = RunJournal(tmp_path, task)
    task.evaluate(jax.random.key(0), jnp.asarray([[0.2, 0.4], [0.6, 0.8]]), journal.batch(0))
    journal.close()
    np.testing.assert_allclose(seen, [[0.2, 0.4], [0.6, 0.8], [0.2, 0.4], [0.6, 0.8]], rtol=1e-6)
    noted = lines_of(tmp_path / "journal" / "00000000.jsonl")
    assert len(noted) == 2
    for line in noted:
        first, second = line["parameters"].values()
        np.testing.assert_allclose([line["objectives"][0], line["features"][0]], [first - 10, second - 10], rtol=1e-6)


def test_one_result_of_another_form_is_a_failure_where_others_are_right(tmp_path):
    called = []

    def forgets(a, b):
        called.append(a)
        return None if len(called) == 3 else measured(a, b)

    task = moqd.FunctionTask(forgets, **NAMES)
    run = moqd.run(small(task), task, iterations=0, out=tmp_path / "run")
    assert run.metrics["failed_evaluations"].tolist() == [1]
    (line,) = lines_of(tmp_path / "run" / "failures.jsonl")
    assert (line["kind"], line["reason"]) == ("wrong return", "it returned None")
    always = moqd.FunctionTask(lambda a, b: None, **NAMES)
    with pytest.raises(moqd.InputError, match="returned None; return"):
        moqd.run(small(always), always, iterations=0)


@pytest.mark.parametrize("batched", [False, True])
def test_numbers_beyond_32_bits_are_failures_that_are_told_and_violations_are_large(batched):
    def huge(a, b):
        objective = np.where(b > 0.5, 1e99, a)
        result = [objective, a], [b], [np.where(b < -0.5, 1e99, -1.0), np.where(b < -0.5, 1e99, -1.0)]
        return [np.stack(part, axis=-1) for part in result] if batched else result

    names = NAMES | {"constraint_names": ["heat", "noise"]}
    task = moqd.FunctionTask(huge, batched=batched, **names)
    genotype = jnp.asarray([[0.5, 0.5], [0.5, 0.9], [0.5, 0.1]])
    evaluation = task.evaluate(jax.random.key(0), genotype)
    assert evaluation.valid.tolist() == [True, False, True]
    assert len(task.failures) == 1
    assert "e+99" in task.failures[0]
    assert evaluation.violation[0] == 0
    assert 1e38 < evaluation.violation[2] < np.inf
