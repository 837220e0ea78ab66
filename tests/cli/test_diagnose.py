"""`moqd diagnose`: its tables, its file, and tasks of the user's own."""

import json

import pytest

from moqd.cli import diagnose as command
from moqd.cli.main import main
from moqd.io.errors import AGAIN
from moqd.runs.diagnose import Diagnosis
from moqd.runs.user_code import OWN, SPECS
from moqd.tasks import TASKS

TASK = """
import moqd

task = moqd.FunctionTask(
    lambda x, y: ([x, 1 - x * y], [y]), name="of a file", bounds={"x": (0.0, 1.0), "y": (0.0, 1.0)},
    objective_names=["a", "b"], feature_names=["y"], feature_bounds=[(0.0, 1.0)],
)
"""


@pytest.fixture
def forgotten():
    """What is loaded from a file is not known afterwards."""
    known = dict(TASKS)
    yield
    TASKS.clear()
    TASKS.update(known)
    for loaded in (OWN, SPECS, AGAIN):
        loaded.clear()


@pytest.mark.slow  # compiles a generation part by part
def test_a_task_of_ones_own(tmp_path, capsys, monkeypatch, forgotten):
    (tmp_path / "mine.py").write_text(TASK)
    spec, run = f"{tmp_path / 'mine.py'}:task", str(tmp_path / "run")
    monkeypatch.setattr("moqd.report.write_report", lambda run, *_: run.path / "report.md")  # which takes seconds
    few = ["--ga-batch", "6", "--num-cells", "4", "--iterations", "2"]
    assert main(["train", spec, *few, "--out", run]) == 0
    assert main(["diagnose", run, "--task", spec, "--generations", "2", "--json", str(tmp_path / "d.json")]) == 0
    shown = capsys.readouterr().out
    assert "mome on of a file, from iteration 2: 2 generations" in shown
    assert "what offspring of each source are worth" in shown
    assert "of ga offspring would enter the archive." in shown
    assert "weight of" not in shown
    stored = json.loads((tmp_path / "d.json").read_text())
    assert [row["number"] for row in stored["offspring"]] == [12]
    assert stored["readings"].keys() == {"offspring"}
    OWN.clear()
    TASKS.pop("of a file")
    assert main(["diagnose", run]) == 2
    assert "is of the task 'of a file', which is not one of moqd's" in capsys.readouterr().err


FOUND = Diagnosis(
    algorithm="mome-p2c",
    task="hopper-2",
    iteration=7,
    generations=4,
    weight_of="speed [m/s]",
    offspring=[
        {
            "source": source,
            "number": 8,
            "entered": 0.5,
            "hypervolume": volume,
            "seconds": seconds,
            "hypervolume_per_second": volume / seconds,
        }
        for source, volume, seconds in (("ga", 0.1, 0.01), ("pg", 0.4, 0.02), ("actor", 0.2, 0.02))
    ],
    gradients=[
        {"preference": name, "number": 4, "improved": 0.25, "change": change}
        for name, change in (("all", -1.0), ("0 to 0.2", 1.0), ("0.8 to 1", -3.0))
    ],
    critics=[
        {
            "source": source,
            "preference": "all",
            "number": 8,
            "rank_correlation": rank,
            "predicted": 3.0,
            "returned": 2.0,
            "error": 1.0,
            "beyond_end": 0.2,
        }
        for source, rank in (("pg", 0.4), ("actor", None))
    ],
    falls=[
        {"source": source, "preference": "all", "number": 8, "fell": fell, "length": 90.0}
        for source, fell in (("ga", 0.5), ("pg", 0.25))
    ],
)


def test_every_table_is_read_aloud(tmp_path, capsys, monkeypatch):
    """3 times as much for 2 times the seconds is 1.5 times as much per second."""
    monkeypatch.setattr(command, "diagnose", lambda *_, **__: FOUND)
    for name in ("read_config", "devices_of", "use_devices"):
        monkeypatch.setattr(command, name, lambda _: None)
    assert main(["diagnose", str(tmp_path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for expected in (
        "A preference is the weight of speed [m/s].",
        "Learning pays here: pg and actor offspring add 3 times the hypervolume of ga per evaluation, and 1.5 times",
        "Gradients do not improve policies: 25% of children are better than their parent for their preference, and the "
        "mean change is -1; worst at preference 0.8 to 1 (-3).",
        "The critic ranks pg offspring moderately (0.40) and overestimates their returns by 1, and overestimates actor "
        "returns by 1; it also counts what would follow the time limit, with a weight of 0.20.",
        "Episodes that end in a fall: ga 50%, pg 25%.",
    ):
        assert expected in shown
    for row in ("ga 8 50% 0.1 0.01 10", "0.8 to 1 4 25% -3", "actor all 8 - 3 2 1", "pg all 8 25% 90"):
        assert row in shown


def test_mistakes(tmp_path, capsys):
    for arguments, message in (
        ([str(tmp_path)], "is not a run: it holds no config.json"),
        ([str(tmp_path), "--json", str(tmp_path)], "; give a file in a folder that is there."),
        ([], "moqd diagnose needs a RUN"),
    ):
        assert main(["diagnose", *arguments]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
