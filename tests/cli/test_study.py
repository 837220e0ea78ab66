import pytest

from moqd.cli.main import main


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
    monkeypatch.setattr("moqd.cli.study.execute", lambda *_: whole)
    monkeypatch.setattr("moqd.cli.study.write_report_of", lambda *_: None)
    file = tmp_path / "gears.toml"
    file.write_text('name = "gears"\ntasks = ["arm-2"]\nalgorithms = ["mome"]\nseeds = 1\niterations = 1\n')
    main(["study", str(file), "--out", str(tmp_path)])
    command = f"moqd study {tmp_path / 'gears'} --task gear.py:task"
    assert (f"{command} --status says why" if whole else f"continue with: {command}\n") in capsys.readouterr().out
