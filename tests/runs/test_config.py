"""A config is read once, says every mistake by its key, and is in files what it always was."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import moqd
from moqd.runs.config import AlgorithmConfig, RunConfig, Surroundings, TaskConfig
from moqd.study.plan import Variant, make_study

PATH = Path("run") / "config.json"


@pytest.fixture(scope="module")
def config():
    task = moqd.make_task("arm-2", num_joints=3, reference_point=(1, 2))
    algorithm = moqd.make_algorithm("mome", task, num_cells=(2, 3), ga_batch=8)
    return RunConfig(
        TaskConfig.of(task),
        AlgorithmConfig.of(algorithm.name, algorithm.config),
        seed=7,
        iterations=20,
        snapshot_every=5,
        initial_solutions=3,
        batch=8,
        reference_point=(1.0, 2.0),
        surroundings=Surroundings.here(),
    )


def test_what_is_written_is_what_is_read(config):
    content = json.loads(json.dumps(config.to_json()))
    assert RunConfig.from_json(content, PATH) == config
    assert list(content)[:4] == ["format", "task", "algorithm", "seed"]
    assert content["seeded"] == 3
    assert content["algorithm"]["num_cells"] == [2, 3]
    assert content["task"]["options"] == {"name": "arm-2", "num_joints": 3, "reference_point": [1.0, 2.0]}
    planned = RunConfig.from_settings(json.loads(json.dumps(config.settings())), PATH)
    assert planned.settings() == config.settings()
    assert planned.digest == config.digest
    config.check_same(planned, PATH)
    other = replace(planned, iterations=9, algorithm=AlgorithmConfig("nsga2", {}))
    with pytest.raises(moqd.InputError, match="holds a run with another algorithm and iterations; move it away"):
        config.check_same(other, PATH)


def test_what_makes_a_run_the_same(config):
    """However long it goes on, wherever and how often it is saved; but in a study the budget counts too."""
    later = replace(config, iterations=99, checkpoint_minutes=1.0, surroundings=Surroundings(), reference_point=None)
    assert later.identity == config.identity
    assert later.digest != config.digest
    for other in (replace(config, seed=8), replace(config, batch=9), replace(config, initial_solutions=0)):
        assert other.identity != config.identity


def test_every_mistake_is_named_by_its_key(config):
    content = config.to_json()
    content["task"]["options"] = {"name": "arm-2", "reference_point": "x"}
    content["algorithm"] = {"name": 3}
    wrong = content | {"seed": -1, "seeded": None, "devices": "cpu", "batch": True}
    with pytest.raises(moqd.InputError) as caught:
        RunConfig.from_json(wrong, PATH)
    for said in (
        "is damaged: task.options.reference_point is 'x', not a list of numbers",
        "algorithm.name is '3', not a name",
        "seed is '-1', not a whole number of at least 0",
        "seeded is 'None', not",
        "devices is 'cpu', not",
        "batch is 'True', not",
    ):
        assert said in str(caught.value)
    for content in (None, [], {"task": []}, {"task": {"name": []}}):
        with pytest.raises(moqd.InputError, match=r"is damaged: task\.name is"):
            RunConfig.from_settings(content, PATH)


def test_options_that_are_refused_have_their_key(config):
    task = config.task.make()
    with pytest.raises(moqd.InputError, match=r"algorithm\.ga_batch is 'x'; give a whole number"):
        AlgorithmConfig("mome", {"ga_batch": "x"}).make(task)
    with pytest.raises(moqd.InputError, match=r"task\.options\.num_joints is 0; give a whole number"):
        replace(config.task, options={"name": "arm-2", "num_joints": 0}).make()


def test_files_of_earlier_versions_say_less(config):
    content = config.to_json()
    for name in ("versions", "xla_flags", "devices", "machine", "reference_point"):
        del content[name]
    del content["task"]["units"], content["task"]["constraints"]
    earlier = RunConfig.from_json(content, PATH)
    assert earlier.surroundings == Surroundings()
    assert earlier.to_json() == content  # and they are not told what they did not say
    task = moqd.make_task("arm-2", num_joints=3, reference_point=(1, 2))
    assert earlier.task.make_or_check(Path("run"), task) is task
    with pytest.raises(moqd.InputError, match="is of a task with bounds"):
        earlier.task.make_or_check(Path("run"), moqd.make_task("arm-2", num_joints=4))


@pytest.mark.slow
def test_a_plan_is_the_config_of_its_run(config, tmp_path):
    variant = Variant("mome", {"num_cells": [2, 3], "ga_batch": 8})
    study = make_study("x", tasks={"arm-2": {"num_joints": 3}}, algorithms={"v": variant}, seeds=[7], iterations=1)
    (planned,) = study.runs
    task = planned.config.task.make()
    run = moqd.run(planned.config.algorithm.make(task), task, iterations=1, seed=7, out=tmp_path / "run")
    run.config.check_same(planned.config, tmp_path)
    assert run.config.digest == planned.config.digest
