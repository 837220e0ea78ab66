import math

import pytest

import moqd
from moqd.runs.user_code import OwnConfig
from moqd.tasks import TASKS, Entry


@pytest.fixture
def odd_task(monkeypatch):
    """What could be markup is in its names, and a feature is named as an objective."""
    task = moqd.FunctionTask(
        lambda x, kind: ([x, 1 - x], [2 * x]),
        name="odd",
        bounds={"x": (0.0, 1.0), "kind": moqd.Categorical(math.inf, math.nan)},
        objective_names=["v [m/s]", "w [/kg]"],
        minimised=["w [/kg]"],
        feature_names=["w [/kg]"],
        feature_bounds=[(0.0, 0.5)],
        reference_point=[0.0, 1.0],
    )
    monkeypatch.setitem(TASKS, "odd", Entry("from [/here]", lambda: (lambda config: task, OwnConfig())))
    monkeypatch.setattr("moqd.report.write_report", lambda run, *_: run.path / "report.md")  # which takes seconds
