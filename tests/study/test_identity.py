"""The identity of a run outlives new options: runs under results/records are found by every later version."""

from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path

import pytest

import moqd
from moqd.algorithms import ALGORITHMS
from moqd.io.options import recorded, restored
from moqd.runs.config import AlgorithmConfig, RunConfig, TaskConfig
from moqd.study.file import read_study
from moqd.study.plan import PlannedRun
from moqd.study.summaries import check_record, record_of

RESULTS = Path(__file__).parent.parent.parent / "results"


@pytest.mark.parametrize(
    ("name", "number"), [("small-main", 108), ("small-ablations", 42), ("small-walker", 24), ("small-crowding", 6)]
)
def test_every_record_is_found(name, number):
    study = read_study(RESULTS / f"{name}.toml")
    assert len(study.runs) == number
    for run in study.runs:
        check_record(record_of(RESULTS, run), run)  # raises if it is not there, or of other settings


@dataclass(frozen=True)
class Config:
    batch: int = 8
    sizes: tuple[int, ...] = (2, 3)


Later = make_dataclass(
    "Later", [("depth", int, field(default=5, metadata={"before": 1}))], bases=(Config,), frozen=True
)


def key_of(config):
    return PlannedRun("label", config_of(config)).key


def config_of(config):
    return RunConfig(TaskConfig("task", {"name": "task"}), AlgorithmConfig.of("mine", config), seed=0, iterations=3)


def test_an_option_that_is_added_later_changes_no_identity_at_the_value_of_before():
    assert key_of(Later(depth=1)) == key_of(Config())
    assert key_of(Later(depth=5)) != key_of(Config())
    assert config_of(Later(depth=1)).identity == config_of(Config()).identity
    assert config_of(Later(depth=5)).identity != config_of(Config()).identity
    assert recorded(Later(depth=1)) == {"batch": 8, "sizes": (2, 3)}


def test_what_was_recorded_is_restored_whatever_the_defaults_are_now():
    for config in (Later(depth=1), Later(depth=5), Later(batch=3, depth=2, sizes=(7,))):
        assert restored(Later(), recorded(config), "it") == config
    with pytest.raises(moqd.InputError, match="unknown option 'width' of it"):
        restored(Later(), {"width": 3}, "it")


@pytest.mark.parametrize("name", [name for name, entry in ALGORITHMS.items() if not entry.is_ours])
def test_the_papers_settings_are_recorded_as_they_were(name):
    """None of the options that came after the records is in the identity of what the paper's study runs."""
    entry = ALGORITHMS[name]
    later = {option for option, about in type(entry.config).__dataclass_fields__.items() if "before" in about.metadata}
    assert not later & set(recorded(entry.config))
    if later and entry.for_vectors:
        assert later & set(recorded(replace(entry.config, **entry.for_vectors)))
