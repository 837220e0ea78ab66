"""What a run begins with: designs that are known, and a sample from which feature bounds are learned."""

import re

import numpy as np
import pandas as pd
import pytest

import moqd
from moqd.runs.initial import NUM_SAMPLES, beginning
from moqd.runs.ledger import INITIAL, read_evaluations
from moqd.tasks.task import UNKNOWN
from tests.plain import PLAIN
from tests.runs.test_session import bowl

DESIGNS = [
    {"wire": 1.0, "turns": 7, "material": "steel"},
    [2.5, 3, "oak"],
    np.array([0.5, 15, "glass"], object),
    {"material": "oak", "turns": 3, "wire": 2.5},  # as the second
]
SMALL = {"ga_batch": 16, "num_cells": 4, "front_length": 3, **PLAIN}


def spring(calls=None, **changes):
    """Calls are noted in the order of the parameters."""

    def function(wire, turns, material):
        if calls is not None:
            calls.append((wire, turns, material))
        return [wire * turns, wire**2 + turns], [wire * 100, turns]

    arguments = {
        "name": "spring",
        "bounds": {
            "wire": (0.5, 3.0),
            "turns": moqd.Integer(3, 15),
            "material": moqd.Categorical("steel", "oak", "glass"),
        },
        "objective_names": ["force", "weight"],
        "minimised": ["weight"],
        "feature_names": ["coil", "turns"],
        "feature_bounds": [(0.0, 400.0), (0.0, 20.0)],
    }
    return moqd.FunctionTask(function, **(arguments | changes))


def test_known_designs_are_evaluated_first_and_are_in_the_ledger(tmp_path):
    calls = []
    task = spring(calls)
    run = moqd.run("mome", task, iterations=1, start=DESIGNS, out=tmp_path / "run", **SMALL)
    assert [call[1:] for call in calls[:3]] == [(7, "steel"), (3, "oak"), (15, "glass")]
    np.testing.assert_allclose([call[0] for call in calls[:3]], [1.0, 2.5, 0.5], rtol=1e-6)
    assert len(set(calls)) == len(calls), "none twice"
    told = read_evaluations(tmp_path / "run", task)
    assert (told.iteration == INITIAL).sum() == 3
    assert run.config.initial_solutions == 4
    assert run.metrics["evaluations"].tolist() == [20, 36]
    again = moqd.resume(tmp_path / "run", task=task, iterations=2)
    assert len(set(calls)) == len(calls) == again.metrics["evaluations"][-1] - 1
    # Designs come before those of another archive.
    number = len(again.solutions().cell)
    archive = beginning(task, DESIGNS, again, 0).archive
    assert archive.valid.shape == (1, 4 + number)
    np.testing.assert_array_equal(archive.genotype[0, 4:], again.solutions().genotype)


def test_a_table_is_the_same_as_a_list(tmp_path):
    path = tmp_path / "designs.csv"
    path.write_text("turns, wire,material\n7,1.0,steel\n3,2.5, oak\n\n15,0.5,glass\n3,2.5,oak\n")
    framed = pd.read_csv(path, skipinitialspace=True).to_dict("records")
    table, listed, framed = (beginning(spring(), start, None, 0).archive for start in (path, DESIGNS, framed))
    np.testing.assert_array_equal(table.genotype, listed.genotype)
    np.testing.assert_array_equal(framed.genotype, listed.genotype)
    assert table.valid.tolist() == listed.valid.tolist() == [[True] * 4]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([{"wire": 1.0}], r"start\[0\]: the parameters are wire; give wire, turns, material"),
        ([DESIGNS[0], {**DESIGNS[0], "coil": 1}], r"start\[1\]: the parameters are .*coil; give wire, turns, material"),
        ([DESIGNS[0], [9.0, 7, "oak"]], r"start\[1\]: wire is 9.0; give a number from 0.5 to 3.0"),
        ([[1.0, 7.5, "oak"]], r"start\[0\]: turns is 7.5; give a whole number from 3 to 15"),
        ([[1.0, 7, "ash"]], r"start\[0\]: material is 'ash'; give one of 'steel', 'oak', 'glass'"),
        ([[1.0, 7]], r"start\[0\]: 2 parameters are given; give 3: wire, turns, material"),
        ([], r"start is \[\]; give a list of designs, or a CSV file"),
        ("missing.csv", "missing.csv.* is missing"),
        ("wire,turns\n1,7\n", r"the header of '.*' is 'wire, turns'; give wire, turns, material"),
        ("wire,turns,material\n1,7,oak\n1,7\n", r"row 2 of '.*' has 2 values; give 3: wire, turns, material"),
        ("wire,turns,material\n1,7,oak\nx,7,oak\n", r"row 2 of '.*': wire is 'x'; give a number from 0.5 to 3.0"),
    ],
)
def test_a_mistake_is_told_with_its_row(start, message, tmp_path):
    if isinstance(start, str):
        path = tmp_path / "designs.csv"
        if "\n" in start:
            path.write_text(start)
        start = path if "\n" in start else tmp_path / start
    with pytest.raises(moqd.InputError, match=message):
        beginning(spring(), start, None, 0)


def test_tasks_without_parameters_take_no_designs():
    with pytest.raises(moqd.InputError, match="start gives parameters, but solutions of task 'hopper-2' have none"):
        beginning(moqd.make_task("hopper-2"), DESIGNS, None, 0)


def test_unknown_feature_bounds_are_learned_and_kept(tmp_path):
    calls = []
    task = spring(calls, feature_bounds=())
    assert task.feature_bounds == (UNKNOWN, UNKNOWN)
    learned = pytest.warns(UserWarning, match=r"feature bounds learned from 64 random solutions: coil .* to .*, turns")
    with learned, pytest.warns(UserWarning, match="no reference_point"):
        runs = moqd.run("mome", task, iterations=1, seeds=[3, 4], out=tmp_path, **SMALL)
    features = np.array([[wire * 100, turns] for wire, turns, _ in calls[:NUM_SAMPLES]])
    low, high = features.min(axis=0), features.max(axis=0)
    expected = np.stack([low - 0.1 * (high - low), high + 0.1 * (high - low)], axis=1)
    np.testing.assert_allclose(runs[0].task.feature_bounds, expected, atol=0.01 * (high - low).max())
    first, second = (run.task.feature_bounds for run in runs)
    assert first == second
    # What was learned from was not evaluated again, and is in the archive's history.
    of_first = calls[: NUM_SAMPLES + int(runs[0].metrics["evaluations"][-1]) - NUM_SAMPLES]
    assert len(set(of_first)) == len(of_first)
    assert runs[0].config.initial_solutions == NUM_SAMPLES
    loaded = moqd.load_run(tmp_path / "seed-3")
    assert loaded.task.feature_bounds == moqd.load_run(tmp_path / "seed-3", task=task).task.feature_bounds == first
    before = len(calls)
    more = moqd.resume(tmp_path / "seed-3", task=task, iterations=2)
    assert (more.task.feature_bounds, len(calls) - before) == (first, 16)
    np.testing.assert_allclose(np.asarray(more.archive.feature_bounds).T, first, rtol=1e-6)
    # Another run that begins from it has the same.
    assert beginning(task, None, more, 0).task.feature_bounds == first
    assert beginning(task, None, tmp_path / "seed-3", 0).task.feature_bounds == first


@pytest.mark.slow
def test_learned_bounds_hold_the_designs_of_the_user():
    """Which random solutions hardly ever come near."""
    calls, learned = [], r"learned from 64 random solutions and 2 designs of start: coil"

    def function(wire, turns):
        calls.append((wire, turns))
        return [wire * turns, wire + turns], [turns, wire**20]

    corners = [[3.0, 15], {"wire": 1.0, "turns": 3}]
    bounds = {"wire": (0.5, 3.0), "turns": moqd.Integer(3, 15)}
    names = {"objective_names": ["force", "sum"], "feature_names": ["coil", "weight"]}
    task = moqd.FunctionTask(function, name="spring", bounds=bounds, **names)
    with pytest.warns(UserWarning, match=learned):
        run = moqd.run("mome", task, iterations=1, start=corners, **SMALL)
    assert run.task.feature_bounds[1][1] > 3.0**20
    assert len(set(calls)) == len(calls) == run.metrics["evaluations"][-1], "none twice"
    with pytest.warns(UserWarning, match="learned from 64 random solutions: coil"):
        assert beginning(task, None, None, 0).task.feature_bounds[1][1] < 3.0**20
    with pytest.warns(UserWarning, match=learned.replace("coil", "x")):  # also where there is no ledger
        bounds = beginning(bowl(feature_bounds=()), [[1.0] * 3, [0.0] * 3], None, 0).task.feature_bounds
    assert bounds == ((0.0, 1.1), (0.0, 1.1))


def test_learned_bounds_are_not_below_0_unless_a_solution_is():
    """There is no negative mass."""

    def function(x):
        return [x[0], -x[0]], [1000 * x[0], x[0] - 0.5, 0.0]

    names = ["mass", "balance", "nothing"]
    task = moqd.FunctionTask(function, name="t", bounds=[(0, 1)], objective_names=["a", "b"], feature_names=names)
    with pytest.warns(UserWarning, match="learned"):
        mass, balance, nothing = beginning(task, None, None, 0).task.feature_bounds
    assert mass[0] == nothing[0] == 0 < nothing[1]
    assert balance[0] < -0.5


def test_only_what_is_not_known_is_learned():
    task = spring(feature_bounds=[(0.0, 400.0), UNKNOWN])
    with pytest.warns(UserWarning, match=r"random solutions: turns [\d.]+ to [\d.]+\.$"):
        (known, (low, high)) = beginning(task, None, None, 0).task.feature_bounds
    assert known == (0.0, 400.0)
    assert low < 4
    assert high > 14
    with pytest.warns(UserWarning, match="x .* to .*, y"):
        bounds = beginning(bowl(feature_bounds=()), None, None, 0).task.feature_bounds
    np.testing.assert_allclose(bounds, [(-0.1, 1.1)] * 2, atol=0.1)
    constant = moqd.FunctionTask(
        lambda x: ([x[0], 1.0], [7.0]), name="c", bounds=[(0, 1)], objective_names=["a", "b"], feature_names=["f"]
    )
    with pytest.warns(UserWarning, match=re.escape("f 6.3 to 7.7")):
        beginning(constant, None, None, 0)


def test_a_mistake_is_told_before_bounds_are_learned():
    calls = []
    task = spring(calls, feature_bounds=())
    for arguments in ({"iterations": 1, "cells": 3}, {"iterations": 1, "log_every": 0}, {}):
        with pytest.raises(moqd.InputError):
            moqd.run("mome", task, **arguments)
    with pytest.raises(moqd.InputError, match="feature bounds of task 'spring' are not known"):
        moqd.Optimizer(task, "mome")
    assert not calls

    def failing(x):
        raise ValueError("no licence")

    names = {"objective_names": ["a", "b"], "feature_names": ["f"]}
    with pytest.raises(moqd.EvaluationError, match=r"cannot be learned.*no licence.*; give feature_bounds"):
        moqd.run("mome", moqd.FunctionTask(failing, name="f", bounds=[(0, 1)], **names), iterations=1)


def test_an_optimizer_asks_for_known_designs_first(tmp_path):
    task = spring()
    with moqd.Optimizer(task, "mome", out=tmp_path / "run", start=DESIGNS[:2], **SMALL) as optimizer:
        asked = optimizer.ask()
        assert [one.parameters["material"] for one in asked] == ["steel", "oak"]
        assert [one.parameters["wire"] for one in asked] == pytest.approx([1.0, 2.5])
        for one in asked:
            optimizer.tell(one, *task.function(**one.parameters))
        assert len(optimizer.ask()) == 16
