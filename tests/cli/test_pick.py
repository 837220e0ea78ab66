import json

import pytest

import moqd
from moqd.cli.main import main


@pytest.mark.usefixtures("odd_task")
def test_pick_tells_a_feature_from_an_objective_and_writes_json(tmp_path, capsys):
    task = moqd.make_task("odd")
    algorithm = moqd.make_algorithm("mome", task, ga_batch=8, num_cells=4)
    with pytest.warns(UserWarning, match=r"outside of the bounds of 'w \[/kg\]'"):
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
