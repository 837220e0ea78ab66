import json
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

import moqd
from moqd.cli.main import main
from moqd.cli.train import plan_of
from moqd.core.tessellation import grid_centroids
from moqd.runs.ledger import read_evaluations
from tests.plain import FLAGS


def test_train_writes_a_run_and_a_picture(tmp_path, capsys):
    folder = tmp_path / "run"
    arguments = ["train", "arm-2", "--num-joints", "4", "--algorithm", "nsga2", "--population", "20", *FLAGS[:2]]
    assert main([*arguments, "--iterations", "3", "--seed", "2", "--out", str(folder)]) == 0
    run = moqd.load_run(folder)
    assert run.config.algorithm.options["population"] == 20
    assert run.config.task.options == {"name": "arm-2", "num_joints": 4}
    assert run.config.seed == 2
    assert (folder / "figures" / "overview.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "moqd_score" in printed
    assert "iteration 3/3" in printed
    assert main([*arguments, "--iterations", "3", "--out", str(folder)]) == 2
    assert f"holds a run already; continue that with: moqd resume {folder}, or write to" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("odd_task")
def test_known_designs_and_no_time_for_more_with_several_seeds(tmp_path, capsys):
    designs, small = tmp_path / "designs.csv", ["--ga-batch", "8", "--num-cells", "4"]
    designs.write_text("kind,x\nnan,0.25\ninf,0.125\n")
    arguments = ["train", "odd", *small, "--minutes", "0", "--seed", "3", "4", "--start", str(designs)]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.count("ended at iteration 0, because its time (0 min) is over.") == 2
    for seed in (3, 4):
        run = moqd.load_run(tmp_path / "out" / f"seed-{seed}")
        assert (run.config.seed, run.config.minutes, run.config.iterations) == (seed, 0, 0)
        assert run.metrics["evaluations"].tolist() == [10]
        assert read_evaluations(run.path, run.task).parameters[:2].tolist() == [[0.25, 1], [0.125, 0]]


@pytest.mark.slow
@pytest.mark.parametrize("task", ["rastrigin-2", "dtlz2-5"])
def test_train_draws_every_task(task, tmp_path):
    small = ["--ga-batch", "8", "--num-cells", "6"]
    assert main(["train", task, *small, "--evaluations", "16", "--out", str(tmp_path / "run")]) == 0


@pytest.mark.slow
def test_a_robot_from_the_command_line(tmp_path):
    """Train, read the run back, and see a policy of its archive do again what the archive says of it."""
    folder, small = tmp_path / "run", ["--episode-length", "30"]
    arguments = ["--ga-batch", "16", "--num-cells", "8", "--hidden-sizes", "8", "--iterations", "3", "--devices", "2"]
    assert main(["train", "hopper-2", *small, *arguments, "--algorithm", "mome", "--out", str(folder)]) == 0
    run = moqd.load_run(folder)
    assert run.task.config.episode_length == 30
    assert run.config.surroundings.devices == ("cpu", "cpu")
    assert list(run.reference_point) == [-1.5, -0.06]
    assert list(run.metrics["evaluations"]) == [16, 32, 48, 64]
    solutions = run.solutions()
    assert [layer.kernel.shape[1:] for layer in solutions.genotype] == [(11, 8), (8, 3)]
    replay = moqd.replay(run.task, jax.tree.map(lambda leaf: leaf[0], solutions.genotype))
    np.testing.assert_allclose(replay.reward.sum(axis=0), solutions.objectives[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(replay.contact.mean(axis=0), solutions.features[0], atol=1e-6)


@pytest.mark.slow
def test_cells_of_a_grid_from_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("moqd.report.write_report", lambda run, *_: run.path / "report.md")  # which takes seconds
    small = ["--ga-batch", "32", "--iterations", "2", "--front-length", "5"]
    assert main(["train", "arm-2", "--num-cells", "4", "5", *small, "--out", "run"]) == 0
    assert json.loads((tmp_path / "run" / "config.json").read_text())["algorithm"]["num_cells"] == [4, 5]
    run = moqd.load_run("run")
    assert np.array_equal(run.archive.centroid, grid_centroids((4, 5), run.task.feature_bounds))
    assert run.archive.valid.shape == (20, 5)
    features = run.solutions().features
    bins = [np.digitize(column, np.linspace(-1, 1, n + 1)[1:-1]) for column, n in zip(features.T, (4, 5), strict=True)]
    assert np.array_equal(run.solutions().cell, np.ravel_multi_index(bins, (4, 5)))
    assert moqd.explore(run).is_file()
    # Repeated, and with a single number before the task.
    assert main(["train", "--config", "run", "--out", "again"]) == 0
    again = moqd.load_run("again")
    assert np.array_equal(again.archive.fitness, run.archive.fitness)
    assert main(["train", "--num-cells", "7", "arm-2", *small, "--out", "plain"]) == 0
    assert moqd.load_run("plain").config.algorithm.options["num_cells"] == 7
    assert moqd.load_run("plain").archive.valid.shape == (7, 5)
    capsys.readouterr()


@pytest.mark.slow
def test_a_run_with_resamples_is_repeated_from_its_config(tmp_path, monkeypatch):
    monkeypatch.setattr("moqd.report.write_report", lambda run, *_: run.path / "report.md")
    task = moqd.make_task("arm-2", num_joints=3, resamples=3)
    algorithm = moqd.make_algorithm("mome", task, ga_batch=8, num_cells=4)
    moqd.run(algorithm, task, iterations=1, out=tmp_path / "first")
    assert main(["train", "--config", str(tmp_path / "first"), "--out", str(tmp_path / "second")]) == 0
    assert moqd.load_run(tmp_path / "second").task.options == task.options


def test_a_task_is_found_among_the_values_of_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = plan_of(["--out", "rastrigin-2", "--num-cells", "4", "arm-2", "--algorithm=nsga2"], Console())
    assert (plan.task_name, plan.algorithm_name, plan.algorithm.num_cells) == ("arm-2", "nsga2", 4)
    assert plan.options.out == Path("rastrigin-2")
