"""A study in Python says what its report says."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

import moqd
from moqd.study.execute import write_study
from moqd.study.plan import Variant, make_study
from moqd.study.status import folder_of

ROOT = Path(__file__).parent.parent.parent


def test_tables_are_those_of_the_report():
    """Whose files were written when the study was made."""
    folder = ROOT / "results" / "small-crowding"
    study = moqd.load_study(folder)
    assert "6 of 6 runs are finished" in repr(study)
    for name in ("runs", "summary", "comparisons", "tally", "curves"):
        with (folder / "tables" / f"{name}.csv").open() as file:
            expected = list(csv.DictReader(file))
        found = study.rows(name)
        for one, other in zip(found, expected, strict=True):
            for column, text in other.items():
                if isinstance(one[column], float):
                    np.testing.assert_allclose(one[column], float(text or "nan"), rtol=1e-6, err_msg=column)
                else:
                    assert str(one[column]) == text
    frame = study.to_pandas("metrics")
    last = frame.groupby(["task", "algorithm", "seed"], sort=False).last()
    assert last["moqd_score"].tolist() == [row["moqd_score"] for row in study.rows()]
    with pytest.raises(moqd.InputError, match="unknown table 'run'; did you mean 'runs'"):
        study.rows("run")
    with pytest.raises(moqd.InputError, match="the archive of short-fronts on hopper-2, seed 0 is not here"):
        study.run("hopper-2", "short-fronts", 0)


@pytest.mark.slow
def test_a_study_that_has_begun(tmp_path):
    plan = make_study(
        "tiny",
        tasks={"arm-2": {"num_joints": 3}},
        algorithms={"wide": Variant("mome", {"ga_batch": 8, "num_cells": 8}), "nsga2": Variant("nsga2", {})},
        seeds=[0, 1],
        iterations=1,
        log_every=1,
    )
    folder, planned = write_study(tmp_path, plan), plan.runs[0]
    task = planned.config.task.make()
    out = folder_of(tmp_path, planned)
    algorithm = moqd.make_algorithm("mome", task, ga_batch=8, num_cells=8)
    made = moqd.run(algorithm, task, iterations=1, log_every=1, seed=planned.seed, out=out)
    study = moqd.load_study(folder)
    assert (study.tasks, study.algorithms, study.seeds) == (("arm-2",), ("wide", "nsga2"), (0, 1))
    assert [(row["algorithm"], row["seed"]) for row in study.rows()] == [("wide", 0)]
    assert study.to_pandas("metrics")["moqd_score"].tolist() == made.metrics["moqd_score"].tolist()
    assert {row["outcome"] for row in study.rows("comparisons")} == {"not tested"}
    assert [row["state"] for row in study.rows("unfinished")] == ["waiting"] * 3
    run = study.run("arm-2", "wide", 0)
    assert np.array_equal(run.archive.fitness, made.archive.fitness)
    with pytest.raises(moqd.InputError, match="the study has no run of 'wide' on 'arm-2' with seed 7"):
        study.run("arm-2", "wide", 7)
    shutil.rmtree(out)
    assert study.rows(), "what was loaded stays"
    with pytest.raises(moqd.InputError, match="study"):
        moqd.load_study(tmp_path / "none")
