import pytest

import moqd
from moqd.cli import main


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
    assert "which is there already; give the name of a new folder" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("task", ["rastrigin-2", "dtlz2-5"])
def test_train_draws_every_task(task, tmp_path):
    small = ["--ga-batch", "8", "--num-cells", "6"]
    assert main(["train", task, *small, "--evaluations", "16", "--out", str(tmp_path / "run")]) == 0


def test_lists_and_help(capsys):
    for arguments, expected in (
        (["tasks"], "bending ↓"),
        (["algorithms"], "nsga2-small"),
        ([], "moqd train"),
        (["--help"], "moqd tasks"),
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
        (["train", "arm-2", "--iterations", "-4"], "iterations is -4; give a whole number"),
        (["train", "arm-2", "--reference-point", "1"], "reference_point is (1.0,); give 2 finite numbers"),
        (["tasks", "all"], "moqd tasks takes no arguments"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["train"], ["train", "arm-2", "--sed", "1"], ["train", "arm-2", "--seed", "x"]])
def test_bad_flags_exit_with_2(arguments):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
