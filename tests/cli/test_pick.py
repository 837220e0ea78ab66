import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.cli.main import main
from tests.plain import PLAIN
from tests.plots.made import made_run


@pytest.mark.usefixtures("odd_task")
def test_pick_tells_a_feature_from_an_objective_and_writes_json(tmp_path, capsys):
    task = moqd.make_task("odd")
    algorithm = moqd.make_algorithm("mome", task, ga_batch=8, num_cells=4, **PLAIN)
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


def test_pick_shows_whole_names_units_and_constraints_and_takes_limits_on_all(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run = made_run(2, 5)
    names = ["thermal conductivity at room temperature", *run.task.objective_names[1:]]
    task = replace(run.task, objective_names=names, units={names[0]: "W/(m K)"}, constraint_names=["margin"])
    constraint = -jnp.arange(float(run.archive.valid.size)).reshape(*run.archive.valid.shape, 1)
    made = {**run.metrics, "added_pg": np.ones(4)}
    run = replace(run, task=task, archive=run.archive._replace(constraint=constraint), metrics=made)
    monkeypatch.setattr("moqd.cli.pick.load_run", lambda path: run)
    assert main(["pick", "run", "--limit", "margin<=-3", "--limit", "x0 == 0"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    assert all(word in out for word in ("↑", *names[0].split(), "(W/(m"))
    chosen = moqd.pick(run, limits=["margin<=-3"])
    (margin,) = [line.split() for line in out.splitlines() if line.strip().startswith("margin")]
    assert margin[1] == f"{chosen.constraints['margin']:.5g}"
    assert main(["pick", "run", "--json", "--limit", "margin<=-3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["constraints"] == chosen.constraints
    assert found["made_for"] == list(chosen.preference)
    run = replace(run, metrics=made | {"added_pg": np.zeros(4)})
    assert main(["pick", "run", "--json"]) == 0
    assert "made_for" not in json.loads(capsys.readouterr().out)
