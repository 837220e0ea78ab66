import json
import math

import jax
import numpy as np
import pytest

import moqd
from moqd.cli.main import main
from moqd.core.tessellation import grid_centroids
from moqd.tasks import TASKS, Entry
from moqd.tasks.user_code import OwnConfig


def test_train_writes_a_run_and_a_picture(tmp_path, capsys):
    folder = tmp_path / "run"
    arguments = ["train", "arm-2", "--num-joints", "4", "--algorithm", "nsga2", "--population", "20"]
    assert main([*arguments, "--iterations", "3", "--seed", "2", "--out", str(folder)]) == 0
    run = moqd.load_run(folder)
    assert run.config["algorithm"]["population"] == 20
    assert run.config["task"]["options"] == {"name": "arm-2", "num_joints": 4}
    assert run.config["seed"] == 2
    assert (folder / "figures" / "overview.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "moqd_score" in printed
    assert "iteration 3/3" in printed
    assert main([*arguments, "--iterations", "3", "--out", str(folder)]) == 2
    assert f"holds a run already; continue that with: moqd resume {folder}, or write to" in capsys.readouterr().err


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
    assert run.config["devices"] == ["cpu", "cpu"]
    assert list(run.reference_point) == [-1.5, -0.06]
    assert list(run.metrics["evaluations"]) == [16, 64]
    solutions = run.solutions()
    assert [layer.kernel.shape[1:] for layer in solutions.genotype] == [(11, 8), (8, 3)]
    replay = moqd.replay(run.task, jax.tree.map(lambda leaf: leaf[0], solutions.genotype))
    np.testing.assert_allclose(replay.reward.sum(axis=0), solutions.objectives[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(replay.contact.mean(axis=0), solutions.features[0], atol=1e-6)


def test_a_sample_says_what_is_below_the_reference_point(capsys):
    """In both directions: the arm's objectives are minimised, and below means more than the reference point."""
    task = moqd.make_task("arm-2", reference_point=[0.4, 0.15])
    key_init, key_evaluate = jax.random.split(jax.random.key(1))
    cost = -np.asarray(task.evaluate(key_evaluate, task.init_genotype(key_init, 300)).fitness)
    over = cost >= np.array(task.reference_point)
    assert 0 < over.mean() < 1
    assert main(["tasks", "arm-2", "--sample", "300", "--seed", "1", "--reference-point", "0.4", "0.15"]) == 0
    words = capsys.readouterr().out.split()
    for i, name in enumerate(task.objective_names):
        at = len(words) - 1 - words[::-1].index(name)
        worst, reference, below = (words[at + column] for column in (1, 4, 5))
        assert worst == f"{cost[:, i].max():.4g}"
        assert reference == f"{task.reference_point[i]:g}"
        assert below == f"{over[:, i].mean():.1%}"
    assert f"{over.any(axis=1).mean():.1%} are below the reference point" in " ".join(words)


def test_lists_and_help(capsys):
    for arguments, expected in (
        (["tasks"], "bending ↓"),
        (["algorithms"], "nsga2-small"),
        ([], "moqd train"),
        (["--help"], "moqd tasks"),
        (["--version"], f"moqd {moqd.__version__}"),
    ):
        assert main(arguments) == 0
        assert expected in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_:
        main(["train", "arm-2", "--help"])
    assert exit_.value.code == 0
    printed = capsys.readouterr().out
    for flag in ("--algorithm", "--seed", "--iterations", "--num-cells", "--front-length", "--num-joints", "--out"):
        assert flag in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "unknown command 'trian'; did you mean 'train'"),
        (["train", "arm"], "unknown task 'arm'; did you mean 'arm-2'"),
        (["train", "arm-2", "--algorithm", "nsga3"], "unknown algorithm 'nsga3'; did you mean 'nsga2'"),
        (["train", "arm-2", "--num-cells", "0"], "num_cells is 0; give a whole number of at least 1"),
        (["train", "arm-2", "--num-cells", "4", "x"], "--num-cells has the value 'x'; give a whole number, or several"),
        (["train", "arm-2", "--num-cells", "4", "5", "6"], "a grid over 3 features, but task 'arm-2' has 2 (hand x,"),
        (["train", "arm-2", "--iterations", "-4"], "iterations is -4; give a whole number"),
        (["train", "arm-2", "--reference-point", "1"], "reference_point is (1.0,); give 2 finite numbers"),
        (["tasks", "all"], "unknown task 'all'"),
        (["tasks", "--sample", "10"], "--sample needs a task"),
        (["tasks", "arm-2", "--sample", "0"], "--sample is 0; give a whole number of at least 1"),
        (["tasks", "arm-2", "--sample", "1", "--seed", "4294967296"], "seed is 4294967296; give a whole number of at"),
        (["algorithms", "all"], "unexpected 'all'; moqd algorithms takes nothing beside its options"),
        (["train"], "moqd train needs a TASK; moqd tasks lists them: moqd train hopper-2."),
        (["train", "--seed", "1"], "moqd train needs a TASK"),
        (["train", "arm-2", "--sed", "1"], "unknown option '--sed' of moqd train; did you mean '--seed'"),
        (["train", "arm-2", "--seed", "x"], "--seed is 'x'; give a whole number."),
        (["train", "arm-2", "--seed"], "--seed needs a value; give a whole number."),
        (["train", "arm-2", "--population", "9"], "'--population' is not one of moqd train here: it belongs to nsga2"),
        (["train", "hoper-2", "--episode-length", "9"], "unknown task 'hoper-2'; did you mean"),
        (["train", "arm-2", "--preset", "huge"], "unknown preset 'huge'; known: paper, quick, small."),
        (["train", "arm-2", "--iterations", "1", "--evaluations", "2"], "give one of the two and not the other"),
        (["train", "arm-2", "--init-from", "nowhere"], "'nowhere' is not a run: it holds no config.json"),
        (["train", "arm-2", "--log-every", "0"], "log_every is 0; give a whole number of at least 1"),
        (["train", "arm-2", "--checkpoint-minutes", "-1"], "checkpoint_minutes is -1.0; give a number that is not"),
        (["train", "arm-2", "--snapshot-every", "0"], "snapshot_every is 0; give a whole number of at least 1"),
        (["train", "arm-2", "--out", "/dev/null/x"], "out is '/dev/null/x', which cannot be made"),
        (["train", "arm-2", "--seed", "[/x]"], "--seed is '[/x]'; give a whole number."),
        (["train", "--config", "nowhere/config.json"], "'nowhere' is not a run: it holds no config.json"),
        (["train", "--config", "nowhere"], "--config is 'nowhere'; give the path of a run's config.json"),
        (["train", "--out", "rastrigin-2", "arm-2"], "cannot tell the TASK from the value of an option here; write it"),
        (["train", "arm-2", "--algorithm", "mome", "--algorithm", "nsga3"], "unknown algorithm 'nsga3'"),
        (["resume"], "moqd resume needs a RUN"),
        (["resume", "x\0y"], "cannot be read ("),
        (["resume", "nowhere"], "'nowhere' is not a run: it holds no config.json"),
        (["resume", "/dev/null"], "'/dev/null' is not a run: it holds no config.json"),
        (["report", "nowhere"], "'nowhere' is not a run: it holds no config.json"),
        (["export", "nowhere", "--csv"], "'nowhere' is not a run: it holds no config.json"),
        (["export", "nowhere"], "moqd export needs a format; give --csv."),
        (["train", "hopper-2", "--episode-length", "0"], "episode_length is 0; give a whole number of at least 1"),
        (["train", "hopper-2", "--devices", "0"], "count is 0; give the number of devices"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


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
    assert moqd.load_run("plain").config["algorithm"]["num_cells"] == 7
    assert moqd.load_run("plain").archive.valid.shape == (7, 5)
    capsys.readouterr()


@pytest.mark.parametrize("name", ["runs", "records"])
def test_a_study_is_not_named_as_a_folder_beside_it(tmp_path, capsys, name):
    file = tmp_path / "study.toml"
    file.write_text(f'name = "{name}"\ntasks = ["arm-2"]\nalgorithms = ["mome"]\nseeds = 1\niterations = 1\n')
    assert main(["study", str(file), "--out", str(tmp_path)]) == 2
    assert f"a study cannot be named '{name}'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("whole", [True, False])
def test_a_study_names_tasks_from_files_again(tmp_path, capsys, monkeypatch, whole):
    monkeypatch.setattr("moqd.cli.study.AGAIN", ["--task gear.py:task"])
    monkeypatch.setattr("moqd.cli.study.conduct", lambda *_: whole)
    monkeypatch.setattr("moqd.cli.study.write_report_of", lambda *_: None)
    file = tmp_path / "gears.toml"
    file.write_text('name = "gears"\ntasks = ["arm-2"]\nalgorithms = ["mome"]\nseeds = 1\niterations = 1\n')
    main(["study", str(file), "--out", str(tmp_path)])
    command = f"moqd study {tmp_path / 'gears'} --task gear.py:task"
    assert (f"{command} --status says why" if whole else f"continue with: {command}\n") in capsys.readouterr().out


@pytest.fixture
def odd_task(monkeypatch):
    """What could be markup is in its names, and a feature is named as an objective."""
    task = moqd.FunctionTask(
        lambda x, kind: ([x, 1 - x], [2 * x]),
        name="odd",
        bounds={"x": (0.0, 1.0), "kind": moqd.Categorical(math.inf, math.nan)},
        objective_names=["v [m/s]", "w [/kg]"],
        minimised=["w [/kg]"],
        feature_names=["w [/kg]"],
        feature_bounds=[(0.0, 0.5)],
        reference_point=[0.0, 1.0],
    )
    monkeypatch.setitem(TASKS, "odd", Entry(lambda config: task, OwnConfig(), "from [/here]"))
    monkeypatch.setattr("moqd.report.write_report", lambda run, *_: run.path / "report.md")  # which takes seconds


@pytest.mark.usefixtures("odd_task")
def test_names_are_never_markup(tmp_path, capsys):
    assert main(["tasks", "odd", "--sample", "8"]) == 0
    told = capsys.readouterr().out
    assert "odd  from [/here]" in told
    assert "v [m/s] ↑, w [/kg] ↓" in told
    assert len([line for line in told.splitlines() if line.startswith(("  v [m/s] ", "  w [/kg] "))]) == 2
    small = ["--ga-batch", "8", "--num-cells", "4", "--iterations", "2"]
    assert main(["train", "odd", *small, "--out", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out
    assert ["best", "in", "v", "[m/s]", "w", "[/kg]"] in [line.split() for line in told.splitlines()]
    assert "outside of the bounds of 'w [/kg]'" in told


@pytest.mark.usefixtures("odd_task")
def test_pick_tells_a_feature_from_an_objective_and_writes_json(tmp_path, capsys):
    task = moqd.make_task("odd")
    algorithm = moqd.make_algorithm("mome", task, ga_batch=8, num_cells=4)
    moqd.run(algorithm, task, iterations=2, out=tmp_path / "run")
    pick = ["pick", str(tmp_path / "run"), "--episodes", "2"]
    assert main([*pick, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["kind"] in ("inf", "nan")
    values = [*found["objectives"].values(), *found["features"].values()]
    assert list(found["episodes"]) == ["v [m/s]", "w [/kg]", "w [/kg] (feature)"]
    assert [one["mean"] for one in found["episodes"].values()] == pytest.approx(values)
    assert main(pick) == 0
    rows = [line.split() for line in capsys.readouterr().out.strip().splitlines()[-3:]]
    assert [row[-5] for row in rows] == [f"{value:.5g}" for value in values]


@pytest.mark.slow
def test_a_run_with_resamples_is_repeated_from_its_config(tmp_path, monkeypatch):
    monkeypatch.setattr("moqd.report.write_report", lambda run, *_: run.path / "report.md")
    task = moqd.make_task("arm-2", num_joints=3, resamples=3)
    algorithm = moqd.make_algorithm("mome", task, ga_batch=8, num_cells=4)
    moqd.run(algorithm, task, iterations=1, out=tmp_path / "first")
    assert main(["train", "--config", str(tmp_path / "first"), "--out", str(tmp_path / "second")]) == 0
    assert moqd.load_run(tmp_path / "second").task.options == task.options
