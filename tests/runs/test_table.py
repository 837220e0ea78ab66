"""Constraints are kept, and solutions are a table with names: against what the function itself says of each row."""

import csv
import io
import shutil
import sys
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest

import moqd
from moqd.choose.export import solutions_csv
from moqd.io.files import read_tensors, whole, write_tensors
from moqd.runs.folder import read_archive
from moqd.runs.packing import packed
from moqd.study.summaries import without_genotypes
from tests.plain import PLAIN
from tests.plots.made import made_run


def spring(wire, coils, material):
    density = {"steel": 7.8, "Al6063": 2.7}[material]
    mass, stiffness = wire**2 * coils * density, wire**4 / coils
    return [mass, stiffness], [coils, wire], [2 - wire * coils, coils - 18.5]


def spring_task():
    return moqd.FunctionTask(
        spring,
        name="spring",
        bounds={"wire": (0.5, 4.0), "coils": moqd.Integer(3, 20), "material": moqd.Categorical("steel", "Al6063")},
        objective_names=["mass", "stiffness"],
        minimised=["mass"],
        feature_names=["coils", "width"],
        feature_bounds=[(3, 20), (0.5, 4.0)],
        constraint_names=["slenderness", "length"],
        units={"mass": "g", "width": "mm"},
    )


@pytest.fixture(scope="module")
def spring_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spring") / "run"
    return moqd.run("mome", spring_task(), iterations=3, ga_batch=32, num_cells=8, front_length=30, **PLAIN, out=folder)


def test_the_table_is_what_the_function_says(spring_run):
    frame = spring_run.to_pandas()
    assert list(frame) == [
        *("cell", "coils", "width", "mass", "stiffness", "slenderness", "length", "wire", "coils (parameter)"),
        "material",
    ]
    assert len(frame) == int(np.sum(spring_run.archive.valid)) > 8
    assert pd.api.types.is_integer_dtype(frame["coils (parameter)"])
    assert set(frame["material"]) <= {"steel", "Al6063"}
    for _, row in frame.iterrows():
        told = spring(row["wire"], row["coils (parameter)"], row["material"])
        shown = row[["mass", "stiffness", "coils", "width", "slenderness", "length"]].astype(float)
        np.testing.assert_allclose(shown, np.concatenate(told), rtol=1e-5)
        assert max(told[2]) <= 0
    metrics = spring_run.metrics_frame()
    assert metrics["evaluations"].tolist() == spring_run.metrics["evaluations"].tolist()


def test_csv_is_the_same_table(spring_run):
    header, *rows = csv.reader(io.StringIO(solutions_csv(spring_run)))
    frame = spring_run.to_pandas()
    assert header == list(frame)
    for name, texts in zip(header, zip(*rows, strict=True), strict=True):
        assert list(texts) == [str(value) for value in frame[name].tolist()]


def test_preferences_are_shown_where_solutions_were_made_for_them(spring_run):
    assert not spring_run.has_preferences
    assert moqd.pick(spring_run).preference == ()
    added = {"added_pg": np.array([0.0, 3.0, 0.0])}
    learned = replace(spring_run.config, algorithm=replace(spring_run.config.algorithm, name="mome-p2c"))
    assert not replace(spring_run, metrics={}).has_preferences, "by its name, mome makes none"
    for changes in ({"metrics": spring_run.metrics | added}, {"metrics": {}, "config": learned}):
        made = replace(spring_run, **changes)
        assert made.has_preferences
        np.testing.assert_array_equal(made.to_pandas()["preference mass"], made.solutions().preference[:, 0])
        assert len(moqd.pick(made).preference) == 2


def test_without_pandas_it_says_how_to_get_it(spring_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(moqd.InputError, match=r"pip install 'moqd\[pandas\]'"):
        spring_run.to_pandas()


def test_constraints_are_there_again_and_folders_without_them_load_and_go_on(spring_run, tmp_path):
    loaded = moqd.load_run(spring_run.path)  # by its outline
    np.testing.assert_array_equal(loaded.solutions().constraints, spring_run.solutions().constraints)
    old = tmp_path / "old"
    shutil.copytree(spring_run.path, old)
    tensors = read_tensors(old / "archive.safetensors")
    del tensors["constraint"]
    write_tensors(old / "archive.safetensors", {name: whole(array) for name, array in tensors.items()})
    run = moqd.load_run(old)
    assert np.isnan(run.solutions().constraints).all()
    np.testing.assert_array_equal(run.archive.fitness, spring_run.archive.fitness)
    with pytest.raises(moqd.InputError, match="length is not known"):
        moqd.pick(run, limits=["length<=0"])


def test_records_of_studies_and_runs_that_begin_from_it_do_not_need_them(spring_run):
    assert without_genotypes(spring_run.archive).constraint is None
    archive, _ = read_archive(spring_run.path / "archive.safetensors", replace(spring_run.task, constraint_names=()))
    np.testing.assert_array_equal(archive.fitness, spring_run.archive.fitness)


def test_a_task_without_constraints_keeps_nothing_more():
    run = made_run()
    assert len(jax.tree.leaves(run.archive)) == 7
    assert run.solutions().constraints is None
    assert not [name for name in packed(run.archive) if "constraint" in name]


@pytest.mark.parametrize(
    ("limit", "keeps"),
    [
        ("mass<30", lambda row: row["mass"] < 30),
        ("stiffness >= 2", lambda row: row["stiffness"] >= 2),
        ("material==Al6063", lambda row: row["material"] == "Al6063"),
        ("material != Al6063", lambda row: row["material"] != "Al6063"),
        ("coils<=12", lambda row: row["coils"] <= 12),
        ("coils (parameter)>10", lambda row: row["coils (parameter)"] > 10),
        ("width>1.5", lambda row: row["width"] > 1.5),
        ("wire>1.5", lambda row: row["wire"] > 1.5),
        ("slenderness<-3", lambda row: row["slenderness"] < -3),
    ],
)
def test_limits_keep_what_pandas_keeps(spring_run, limit, keeps):
    from moqd.choose.pick import choose

    frame = spring_run.to_pandas()
    expected = np.flatnonzero([keeps(row) for _, row in frame.iterrows()])
    assert 0 < len(expected) < len(frame)
    for rule in ("weighted", "knee"):
        choice = choose(spring_run, spring_run.solutions(), limits=[limit], rule=rule)
        np.testing.assert_array_equal(choice.candidates, expected)
        assert choice.row in expected


def test_equality_is_as_exact_as_the_archive(spring_run):
    solutions = spring_run.solutions()
    told = float(f"{solutions.features[3, 1]:.9g}")  # as a table shows it
    chosen = moqd.pick(spring_run, limits=[f"width=={told}"])
    assert chosen.features["width"] == solutions.features[3, 1]
    assert chosen.constraints.keys() == {"slenderness", "length"}


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("masss<3", "unknown objective, feature, constraint or parameter 'masss' of a limit; did you mean 'mass'"),
        ("material==wood", "unknown option of material 'wood'; known: Al6063, steel"),
        ("material>=steel", "material is a choice; use == or !="),
        ("mass=3", "in quotes"),
        ("mass<=heavy", "give a name, one of <=, >=, ==, !=, <, >, and a finite number or an option"),
        ("mass<0", "no solution is within mass<0.0; in the archive mass ranges from"),
    ],
)
def test_limits_that_cannot_be(spring_run, limit, says):
    with pytest.raises(moqd.InputError, match=says):
        moqd.pick(spring_run, limits=[limit])
