"""The report of a run: its numbers are the run's, its links lead somewhere, and no run is too odd for it."""

import re
from dataclasses import replace

import numpy as np
import pytest

import moqd
from moqd.report import write_report
from moqd.runs.reevaluate import MEASURED, Reevaluation
from tests.plain import PLAIN
from tests.plots.made import made_run

SIX = ["moqd_score", "moqd_sparsity_score", "global_hypervolume", "global_sparsity", "max_sum_scores", "coverage"]
NOTHING = Reevaluation(
    resamples=1, before=dict.fromkeys(MEASURED, 0.0), after=dict.fromkeys(MEASURED, 0.0), moved=0.0, failed=0
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    task = moqd.make_task("arm-2", num_joints=3)
    algorithm = moqd.make_algorithm("mome", task, ga_batch=16, num_cells=10, front_length=5, **PLAIN)
    return moqd.run(algorithm, task, iterations=3, log_every=1, seed=4, out=tmp_path_factory.mktemp("a run") / "arm")


@pytest.fixture(scope="module")
def text(run):
    path = write_report(run)
    assert path == run.path / "report.md"
    return path.read_text()


@pytest.fixture
def text_only(monkeypatch):
    """Figures are drawn but not written, which takes most of the time."""
    monkeypatch.setattr("moqd.report.run.save", lambda *_: None)


def rows_of(text, section):
    """The rows of the table in a section, without its head."""
    _, _, rest = text.partition(f"## {section}\n")
    lines = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[unescaped(cell.strip()) for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def unescaped(text):
    return re.sub(r"\\([^\w\s])", r"\1", text)


def figures_of(text):
    return re.findall(r"\((figures/[^)]*)\)", text)


def test_the_numbers_are_those_of_the_run(run, text):
    assert text.startswith("# mome on arm-2, seed 4\n")
    rows = rows_of(text, "Summary")
    assert [row[0] for row in rows] == [f"`{name}`" for name in SIX]
    for name, (_, first, last, _) in zip(SIX, rows, strict=True):
        np.testing.assert_allclose([float(first), float(last)], run.metrics[name][[0, -1]], rtol=1e-5)
    assert f"- {run.metrics['num_solutions'][-1]:.0f} solutions after 64 evaluations" in text
    assert f"- wall time: {run.metrics['seconds'][-1]:.1f} s" in text
    assert "- hypervolume is exact" in text
    assert "failed" not in text
    assert "Stopped" not in text


def test_the_ends_of_the_front_are_solutions_in_the_users_units(run, text):
    solutions = run.solutions()
    rows = rows_of(text, "Ends of the global front")
    assert [row[0] for row in rows] == ["bending", "torque"]
    for i, (_, *values, cell) in enumerate(rows):
        at = np.argmin(solutions.objectives[:, i])  # both are minimised
        expected = [*solutions.objectives[at], *solutions.features[at]]
        np.testing.assert_allclose([float(value) for value in values], expected, rtol=1e-5)
        assert int(cell) == solutions.cell[at]
    assert "bending (rad², mean), less is better" in text
    assert "hand x (arm lengths)" in text


def test_the_settings_are_those_of_the_config(run, text):
    settings = {(group, name): value for group, name, value in rows_of(text, "Settings")}
    assert settings["task", "num_joints"] == "3"
    assert settings["algorithm", "name"] == "mome"
    assert settings["algorithm", "ga_batch"] == "16"
    assert settings["run", "seed"] == "4"
    assert settings["run", "iterations"] == "3"
    assert settings["run", "devices"] == '["cpu", "cpu"]'
    assert settings["versions", "moqd"] == moqd.__version__


def test_every_figure_is_there_twice(run, text):
    names = ["overview", "learning_curves", "archive_map", "fronts"]
    assert figures_of(text) == [f"figures/{name}.{kind}" for name in names for kind in ("png", "pdf")]
    assert sorted(path.name for path in (run.path / "figures").iterdir()) == sorted(
        f"{name}.{kind}" for name in names for kind in ("png", "pdf")
    )
    for link in figures_of(text):
        start = b"\x89PNG\r\n\x1a\n" if link.endswith("png") else b"%PDF-"
        assert (run.path / link).read_bytes().startswith(start)


def test_it_says_how_to_go_on(run, text):
    assert f"`moqd resume '{run.path}'`" in text  # quoted, because there is a space in it
    assert f"`moqd export '{run.path}' --csv`" in text
    (call,) = re.findall(r"`run = (moqd.load_run\(.*?\))`", text)
    assert eval(call).metrics["coverage"].tolist() == run.metrics["coverage"].tolist()


def test_the_same_run_gives_the_same_bytes(run, text):
    before = {path: path.read_bytes() for path in (run.path / "figures").iterdir()}
    write_report(moqd.load_run(run.path))
    assert (run.path / "report.md").read_text() == text
    assert {path.name for path, content in before.items() if path.read_bytes() != content} == set()


@pytest.mark.usefixtures("text_only")
def test_an_interrupted_run(run, tmp_path):
    some = {name: column[:2] for name, column in run.metrics.items()}
    text = write_report(replace(run, metrics=some, path=tmp_path)).read_text()
    assert f"**Stopped at iteration 1 of 3**; continue with: `moqd resume {tmp_path}`" in text
    assert rows_of(text, "Summary")[0][2] == f"{some['moqd_score'][-1]:.6g}"
    one = {name: column[:1] for name, column in run.metrics.items()}
    assert "**Stopped at iteration 0 of 3**" in write_report(replace(run, metrics=one, path=tmp_path)).read_text()
    text = write_report(replace(run, metrics={}, path=tmp_path)).read_text()
    assert "**Stopped at iteration 0 of 3**" in text
    assert "There is no row of metrics yet." in text


@pytest.mark.parametrize(("num_features", "num_objectives"), [(0, 2), (1, 1), (3, 3), (5, 5)])
def test_all_kinds_of_tasks(num_features, num_objectives, tmp_path):
    run = made_run(num_features, num_objectives, path=tmp_path)
    text = write_report(run).read_text()
    assert all((tmp_path / link).is_file() for link in figures_of(text))
    assert ("figures/archive_map.png" in text) == (num_features > 0)
    assert ("There is no map of the archive" in text) == (num_features == 0)
    assert [row[0] for row in rows_of(text, "Ends of the global front")] == list(run.task.objective_names)
    # A task and an algorithm of the user's own are needed again, and the command line does not have them.
    assert f"`run = moqd.load_run('{tmp_path}', task=task)`" in text
    assert f"`moqd.resume('{tmp_path}', task=task, algorithm=algorithm)`" in text
    assert "moqd export" not in text


@pytest.mark.usefixtures("text_only")
def test_a_task_from_a_file_is_named_again(tmp_path):
    run = made_run(path=tmp_path)
    there = replace(run.config.task, options={"name": "own", "fingerprint": "0" * 16})
    text = write_report(replace(run, config=replace(run.config, task=there))).read_text()
    assert f"`run = moqd.load_run('{tmp_path}', task=task)`" in text
    assert f"`moqd export {tmp_path} --csv --task FILE.py:NAME`" in text
    there = replace(there, description={**there.description, "bounds": [[0, 1]] * 2})
    text = write_report(replace(run, config=replace(run.config, task=there))).read_text()
    assert f"`run = moqd.load_run('{tmp_path}')`" in text
    assert f"`moqd export {tmp_path} --csv`" in text


@pytest.mark.usefixtures("text_only")
def test_without_a_score_there_is_none_to_survive(tmp_path, monkeypatch):
    monkeypatch.setattr("moqd.report.run.read_reevaluation", lambda run: NOTHING)
    text = unescaped(write_report(made_run(path=tmp_path)).read_text())
    assert "added to an empty archive: there was no moqd_score to survive." in text
    assert "nan" not in text


@pytest.mark.usefixtures("text_only")
def test_a_folder_that_cannot_be_written_to_is_left_alone(tmp_path, monkeypatch):
    def reevaluate(run):
        assert run.path is None
        return NOTHING

    monkeypatch.setattr("moqd.report.run.reevaluate", reevaluate)
    monkeypatch.setattr("os.access", lambda *_: False)
    run = made_run(path=tmp_path)
    run = replace(run, task=replace(run.task, function=lambda x, seed: x, noisy=True))
    assert "## Re-evaluation" in write_report(run, tmp_path / "elsewhere").read_text()


@pytest.mark.parametrize("num_objectives", [2, 3, 5])
def test_an_empty_archive_and_numbers_that_are_not_finite(num_objectives, tmp_path):
    run = made_run(2, num_objectives, empty=True, path=tmp_path)
    assert np.isnan(run.metrics["max_sum_scores"]).all()
    text = write_report(run).read_text()
    assert "The archive is empty." in text
    assert rows_of(text, "Summary")[4][:3] == ["`max_sum_scores`", "none", "none"]


@pytest.mark.usefixtures("text_only")
def test_what_needs_attention_is_said(tmp_path):
    run = made_run(path=tmp_path)
    counts = {"failed_evaluations": 1234.0, "below_reference": 7.0, "hypervolume_exact": 0.0, "seconds": 3723.0}
    text = write_report(replace(run, metrics=run.metrics | {n: np.full(4, v) for n, v in counts.items()})).read_text()
    assert "- 1,234 evaluations failed and are not in the archive" in text
    assert "- 7 solutions are below the reference point" in text
    assert "- hypervolume is an estimate" in text
    assert "- wall time: 1 h 2 min" in text


def test_names_cannot_break_the_report(tmp_path):
    run = made_run(path=tmp_path)
    names = ["a|b <script>", "$x$ and *y*"]
    task = replace(run.task, objective_names=names, minimised=[], units={names[0]: "50 $ | kg"})
    text = write_report(replace(run, task=task)).read_text()
    assert "<script" not in text.replace(r"\<script", "")
    head = next(line for line in text.splitlines() if line.startswith("| best in"))
    assert head == r"| best in | a\|b \<script\> (50 \$ \| kg) | \$x\$ and \*y\* | feature 0 | feature 1 | cell |"


def test_a_run_without_a_folder_and_a_folder_that_is_a_link(tmp_path):
    with pytest.raises(moqd.InputError, match="the run has no folder"):
        write_report(made_run())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(moqd.InputError, match="is not a folder but a link"):
        write_report(made_run(path=tmp_path / "run"))
    assert list((tmp_path / "elsewhere").iterdir()) == []
