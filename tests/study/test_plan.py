"""What a study consists of: the paper's own, parts of them, and mistakes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from moqd.algorithms import ABLATIONS as PARTS
from moqd.io.errors import InputError
from moqd.runs.config import RunConfig
from moqd.study.plan import STUDIES, Variant, make_study, named_study, with_seeds

SIX = ("ant-2", "ant-3", "halfcheetah-2", "hopper-2", "hopper-3", "walker-2")
MAIN = ("mome-p2c", "mome-pgx", "mome", "pga-me", "nsga2", "nsga2-small", "spea2", "spea2-small")
ABLATIONS = ("mome-p2c", "mome-pgx", *(f"mome-p2c-{name}" for name in PARTS))


def keys_of(study):
    return {run.key for run in study.runs}


def tiny(**others):
    settings = {"tasks": {"arm-2": {}}, "algorithms": {"mome": Variant("mome", {})}, "seeds": [0], "iterations": 2}
    return make_study("tiny", **(settings | others))


def test_the_papers_studies():
    main, ablations, pga = (named_study(f"paper-{part}") for part in ("main", "ablations", "pga"))
    assert (main.tasks, main.algorithms, main.seeds) == (SIX, MAIN, tuple(range(20)))
    assert ablations.algorithms == ABLATIONS
    assert len(ABLATIONS) == 7
    assert pga.algorithms == ("mome-p2c", "pga-me", "pga-me-128")
    assert [len(study.runs) for study in (main, ablations, pga)] == [6 * 8 * 20, 6 * 7 * 20, 6 * 3 * 20]
    whole = named_study("paper")
    assert keys_of(whole) == keys_of(main) | keys_of(ablations) | keys_of(pga)
    assert len(keys_of(whole)) == len(whole.runs) == 6 * (8 + 5 + 1) * 20
    assert whole.groups == {"baselines": MAIN, "ablations": ABLATIONS, "pga": pga.algorithms}
    assert {study.reference for study in (main, ablations, pga, whole)} == {"mome-p2c"}


@pytest.mark.parametrize("task", SIX)
def test_the_papers_runs_have_the_papers_budget(task):
    """1,024,000 evaluations each, 1000 steps: 4000 iterations of 256, or 640 of 1600 for the large populations."""
    for run in named_study("paper", tasks=[task], seeds=[3]).runs:
        config = run.config
        assert config.seed == 3
        assert config.task.options["episode_length"] == 1000
        large = run.algorithm in ("nsga2", "spea2")
        assert config.iterations == (640 if large else 4000)
        assert config.log_every == (2 if large else 10)


def test_small_studies_are_the_same_with_the_small_preset():
    assert set(STUDIES) == {
        f"{size}{part}" for size in ("paper", "small") for part in ("", "-main", "-ablations", "-pga", "-extended")
    }
    small = named_study("small-main", tasks=["hopper-2", "ant-2"], seeds=range(3))
    assert small.algorithms == MAIN
    assert len(small.runs) == 2 * 8 * 3
    assert {run.config.task.options["episode_length"] for run in small.runs} == {250}
    assert not keys_of(small) & keys_of(named_study("paper-main", tasks=["hopper-2", "ant-2"], seeds=range(3)))


def test_a_budget_of_time_is_known_by_its_minutes():
    (run,) = tiny(iterations=None, minutes=5).runs
    assert run.config.settings()["minutes"] == 5.0
    assert "iterations" not in run.config.settings()
    assert keys_of(tiny(iterations=None, minutes=5.0)) == {run.key} != keys_of(tiny(iterations=None, minutes=2))
    again = RunConfig.from_settings(json.loads(json.dumps(run.config.settings())), Path("study.json"))
    assert again == run.config
    # How far it came is not what it is known by.
    assert replace(run.config, iterations=7).digest == run.config.digest
    for wrong, said in (
        ({"minutes": 5}, "iterations and minutes are both given"),
        ({"iterations": None, "minutes": 0}, "minutes is 0; give a number above 0"),
    ):
        with pytest.raises(InputError, match=said):
            tiny(**wrong)


def test_every_setting_changes_the_key_and_nothing_else_does():
    base = tiny()
    assert keys_of(tiny()) == keys_of(base)
    assert keys_of(tiny(reference="mome", preset=None)) == keys_of(base)
    for other in (
        tiny(seeds=[1]),
        tiny(iterations=3),
        tiny(log_every=7),
        tiny(snapshot_every=1),
        tiny(tasks={"arm-2": {"num_joints": 3}}),
        tiny(tasks={"arm-2": {"reference_point": [1.0, 2.0]}}),
        tiny(algorithms={"mome": Variant("mome", {"num_cells": 10})}),
        tiny(algorithms={"nsga2": Variant("nsga2", {})}),
    ):
        assert not keys_of(other) & keys_of(base)
    tuned = [tiny(algorithms={"mome": Variant("mome", {"line_sigma": value})}) for value in (1, 1.0)]
    assert keys_of(tuned[0]) == keys_of(tuned[1])
    renamed = tiny(algorithms={"mine": Variant("mome", {})})
    assert keys_of(renamed) == keys_of(base), "a label is no setting"


def test_all_algorithms_log_after_as_many_evaluations():
    """Every 5 iterations of 64; populations of 400 every 320/400 of a generation, which is 1."""
    runs = named_study("small-main", tasks=["hopper-2"], seeds=[0], log_every=5).runs
    assert {run.algorithm: run.config.log_every for run in runs} == {
        name: 1 if name in ("nsga2", "spea2") else 5 for name in MAIN
    }
    assert tiny(log_every=7).runs[0].config.log_every == 7


def test_a_part_of_a_study_shares_its_runs():
    part = named_study("small", tasks=["walker-2"], algorithms=["mome", "pga-me-128"], seeds=[2])
    assert keys_of(part) < keys_of(named_study("small"))
    assert part.reference == "mome"


def test_own_algorithms_are_one_group():
    study = tiny(algorithms={"mome": Variant("mome", {}), "few cells": Variant("mome", {"num_cells": 4})})
    assert study.groups == {"algorithms": ("mome", "few cells")}


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"tasks": {}}, "there are no tasks; give at least one"),
        ({"algorithms": {}}, "there are no algorithms"),
        ({"seeds": []}, "there are no seeds"),
        ({"seeds": [-1]}, "seed is -1; give a whole number from 0 to 4294967295"),
        ({"seeds": [2**32]}, "seed is 4294967296; give"),
        ({"seeds": [0, 0]}, "seed 0 is given twice"),
        ({"tasks": {"arm": {}}}, "unknown task 'arm'; did you mean 'arm-2'"),
        ({"tasks": {"arm-2": {"joints": 2}}}, "unknown option 'joints' of task 'arm-2'; did you mean 'num_joints'"),
        ({"algorithms": {"a": Variant("nsga3", {})}}, "unknown algorithm 'nsga3'"),
        (
            {"algorithms": {"mine": Variant("mome", {"num_cells": 0})}},
            "num_cells is 0; give a whole number of at least 1",
        ),
        (
            {"algorithms": {"a": Variant("mome", {}), "b": Variant("mome", {})}},
            "'b' has the same settings as 'a'",
        ),
        ({"reference": "other"}, "unknown reference 'other'"),
        ({"evaluations": 10}, "iterations and evaluations are both given"),
        ({"iterations": None, "evaluations": 10}, "evaluations is 10, but .mome. makes 50 per iteration"),
        ({"iterations": -1}, "iterations is -1; give a whole number of at least 0"),
        ({"log_every": 0}, "log_every is 0; give a whole number of at least 1"),
        ({"preset": "tiny"}, "unknown preset 'tiny'"),
    ],
)
def test_mistakes_are_said(others, message):
    with pytest.raises(InputError, match=message):
        tiny(**others)


def test_other_seeds_are_not_too_many_either():
    with pytest.raises(InputError, match="these are 10001 runs; give fewer seeds, for at most 10000 runs"):
        with_seeds(tiny(), range(10_001))


def test_names_are_known_and_given_once():
    with pytest.raises(InputError, match="unknown study 'paper-man'; did you mean 'paper-main'"):
        named_study("paper-man")
    with pytest.raises(InputError, match="task 'ant-2' is given twice"):
        named_study("small-main", tasks=["ant-2", "ant-2"])
