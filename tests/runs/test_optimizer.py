"""Ask and tell by hand: the same as a run of the function, whenever and in whichever order one tells."""

from pathlib import Path

import jax
import numpy as np
import pytest

import moqd
from moqd.report import write_report
from tests.plain import PLAIN

NAMES = {
    "name": "brew",
    "bounds": {"temperature": (60.0, 100.0), "minutes": moqd.Integer(1, 9)},
    "objective_names": ["taste", "cost"],
    "minimised": ["cost"],
    "feature_names": ["strength"],
    "feature_bounds": [(0.0, 900.0)],
    "constraint_names": ["bitter"],
}
OPTIONS = {"ga_batch": 6, "num_cells": 5, "front_length": 10}


def brew(temperature, minutes):
    taste = -((temperature - 80) ** 2) - (minutes - 4) ** 2
    return [taste, 0.1 * temperature + minutes], [temperature * minutes], [temperature * minutes - 800]


@pytest.fixture(autouse=True)
def no_files_of_figures(monkeypatch):
    """Figures are drawn but not written, which takes most of the time of a report."""
    monkeypatch.setattr("moqd.report.run.save", lambda *_: None)


@pytest.fixture(scope="module")
def task():
    return moqd.FunctionTask(None, **NAMES)


@pytest.mark.slow
def test_telling_by_hand_is_a_run_of_the_function(task, tmp_path, rng):
    direct = moqd.FunctionTask(brew, **NAMES)
    expected = moqd.run(moqd.make_algorithm("mome", direct, **OPTIONS), direct, iterations=2, seed=3)
    # It is closed and made again in the middle of each batch, and told in any order.
    for number in (3, 7, 4, 4):
        with moqd.Optimizer(task, "mome", seed=3, out=tmp_path / "bench", **OPTIONS) as optimizer:
            for _ in range(number):
                candidates = optimizer.ask()
                one = candidates[rng.integers(len(candidates))]
                optimizer.tell(one, *brew(**one.parameters))
    with moqd.Optimizer(task, "mome", seed=3, out=tmp_path / "bench", **OPTIONS) as optimizer:
        assert [candidate.iteration for candidate in optimizer.ask()] == [3] * 6
        run = optimizer.run
    assert run.metrics["evaluations"].tolist() == [6, 12, 18]
    for ours, theirs in zip(jax.tree.leaves(run.archive), jax.tree.leaves(expected.archive), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert moqd.pick(run).parameters["minutes"] in range(1, 10)
    # Without the task one can still look at it.
    again = moqd.load_run(tmp_path / "bench")
    assert moqd.pick(again).parameters == moqd.pick(run).parameters


def test_failures_and_mistakes(task):
    with moqd.Optimizer(task, ga_batch=4, num_cells=5, **PLAIN) as optimizer:
        assert optimizer.batch == 4
        with pytest.raises(moqd.InputError, match="nothing yet"):
            _ = optimizer.run
        first, *others = optimizer.ask()
        for wrong, said in (
            (([1.0], [2.0], [0.0]), "objectives is .* give 2 numbers: taste, cost"),
            (([1.0, 2.0], [], [0.0]), "features is .* give 1 numbers: strength"),
            (([1.0, float("nan")], [1.0], [0.0]), "not finite; say fail"),
        ):
            with pytest.raises(moqd.InputError, match=said):
                optimizer.tell(first, *wrong)
        optimizer.fail(first, "the kettle broke")
        with pytest.raises(moqd.InputError, match="not one that is waited for"):
            optimizer.fail(first)
        for one in others:
            optimizer.tell(one, *brew(**one.parameters))
        assert len(optimizer.ask()) == 4
        assert optimizer.run.metrics["failed_evaluations"].tolist() == [1]
        path = optimizer.run.path
        assert "the kettle broke" in (path / "failures.jsonl").read_text()
    assert not path.exists(), "without a folder it ends with the optimizer"
    with pytest.raises(moqd.InputError, match="closed"):
        optimizer.ask()
    with pytest.raises(moqd.InputError, match="a task of plain parameters"):
        moqd.Optimizer(moqd.make_task("arm-2"))
    with pytest.raises(moqd.InputError, match=r"evaluate its solutions by hand, with moqd\.Optimizer"):
        moqd.run(moqd.make_algorithm("mome", task, **OPTIONS), task, iterations=1)


@pytest.mark.slow  # compiles defaults
def test_everything_fails(task):
    said = "failed in the first 3 batches: it was told to have failed"
    with moqd.Optimizer(task, ga_batch=2, num_cells=5) as optimizer:
        for _ in range(6):
            optimizer.fail(optimizer.ask()[0])
        with pytest.raises(moqd.EvaluationError, match=said):
            optimizer.ask()


def test_what_was_told_is_on_the_disk_and_it_ends_with_its_iterations(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("os.fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink()))
    task, journal = moqd.FunctionTask(brew, **NAMES), tmp_path / "bench" / "journal" / "00000000.jsonl"
    with moqd.Optimizer(task, out=tmp_path / "bench", ga_batch=2, num_cells=5, **PLAIN, iterations=0) as optimizer:
        for told, one in enumerate(optimizer.ask()):
            assert synced.count(journal) == told
            optimizer.tell(one, *brew(**one.parameters))
        with pytest.raises(moqd.InputError, match="all of its iterations are done"):
            optimizer.ask()
        assert len(optimizer.run.metrics["iteration"]) == 1, "what was found is there"
    with moqd.Optimizer(task, out=tmp_path / "bench", ga_batch=2, num_cells=5, **PLAIN, iterations=1) as optimizer:
        assert {one.iteration for one in optimizer.ask()} == {1}, "it goes on with more of them"


def test_what_is_told_by_hand_is_not_evaluated_anew_for_a_report(tmp_path):
    task = moqd.FunctionTask(None, resamples=1, **NAMES)
    with moqd.Optimizer(task, out=tmp_path / "bench", ga_batch=4, num_cells=5, **PLAIN, iterations=0) as optimizer:
        for one in optimizer.ask():
            optimizer.tell(one, *brew(**one.parameters))
        with pytest.raises(moqd.InputError, match="has no function"):
            moqd.reevaluate(optimizer.run)
        assert write_report(optimizer.run).exists()
    assert write_report(moqd.load_run(tmp_path / "bench", task=task)).exists()


def test_numbers_must_be_finite_in_32_bits(task):
    with moqd.Optimizer(task, **OPTIONS, **PLAIN) as optimizer:
        with pytest.raises(moqd.InputError, match="in 32 bits not finite"):
            optimizer.tell(optimizer.ask()[0], [1e40, 1.0], [1.0], [0.0])
        assert len(optimizer.ask()) == OPTIONS["ga_batch"]
