"""What the page does at its edges: few or no solutions, runs that differ, tasks with nothing to show, late gaits."""

import json
import re
from dataclasses import dataclass, fields, replace
from html import unescape
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.explorer import write_explorer
from moqd.explorer.gaits import record
from moqd.io.errors import EvaluationError
from moqd.runs.config import AlgorithmConfig
from tests.plots.made import made_run

FRAMES = 5
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Block(moqd.FunctionTask):
    """A robot of one body; its first parameter says how fast it goes, and what that is worth."""

    def replay(self, genotype):
        time = 0.1 * np.arange(FRAMES)
        position = np.zeros((FRAMES, 1, 3))
        speed = float(np.asarray(genotype)[0])
        position[:, 0, 0] = time * speed
        return moqd.Replay(
            time=time,
            position=position,
            rotation=np.tile([1.0, 0, 0, 0], (FRAMES, 1, 1)),
            body_names=("block",),
            shape_body=np.array([0]),
            shape_start=np.zeros((1, 3)),
            shape_end=np.array([[0.3, 0, 0.2]]),
            shape_radius=np.array([0.1]),
            reward=np.full((FRAMES - 1, self.num_objectives), speed / (FRAMES - 1)),
            contact=np.ones((FRAMES - 1, self.num_features), bool),
        )


def block_run(features=2, objectives=2):
    run = varied(made_run(features, objectives))
    return replace(run, task=Block(**{one.name: getattr(run.task, one.name) for one in fields(run.task) if one.init}))


def varied(run):
    """With solutions that differ."""
    genotype = np.random.default_rng(7).uniform(size=run.archive.genotype.shape)
    return replace(run, archive=run.archive._replace(genotype=jnp.asarray(genotype, jnp.float32)))


def with_cells(run, cells):
    """Only the first of its cells."""
    archive = run.archive
    cut = {name: getattr(archive, name)[:cells] for name in ("centroid", "fitness", "feature", "preference", "valid")}
    genotype = archive.genotype[:cells]
    return replace(run, archive=archive._replace(**cut, genotype=genotype))


def opened(browser, runs, folder, *, change=lambda content: None, **options):
    """The page of runs; `change` may alter what it holds."""
    path = write_explorer(runs, folder / "explorer.html", **options)
    before, _, rest = path.read_text().partition('<script type="application/json" id="content">')
    text, _, after = rest.partition("</script>")
    content = json.loads(text)
    change(content)
    text = json.dumps(content).replace("<", "\\u003c")
    path.write_text(f'{before}<script type="application/json" id="content">{text}</script>{after}')
    browser.complaints.clear()
    browser.open(path.as_uri())
    browser.wait("window.moqd && window.moqd.ready")
    return content


def text_of(browser, selector):
    return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")


def note(browser):
    return browser.run("document.querySelector('.stage:not([hidden]) .note')?.innerText ?? ''")


def facts(browser):
    """Of the solution: the cells of each row by its label."""
    rows = browser.run(
        "[...document.querySelectorAll('#facts tbody tr')].map((row) => [...row.children].map((one) => one.innerText))"
    )
    return {label: cells for label, *cells in rows}


def choose_in(browser, selector, value):
    browser.run(
        f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)};"
        "one.dispatchEvent(new Event('input')); one.dispatchEvent(new Event('change')); })()"
    )


def fills(browser):
    return browser.run("[...document.querySelectorAll('#map .cell path')].map((one) => one.getAttribute('fill'))")


# ------------------------------------------------------------------------------------------------ few or no solutions


@pytest.mark.parametrize(("features", "objectives"), [(0, 2), (1, 1), (2, 2), (2, 3), (3, 4)])
def test_an_empty_archive_says_so(browser, tmp_path, features, objectives):
    content = opened(browser, [made_run(features, objectives, empty=True)], tmp_path)
    assert content["runs"][0]["solutions"]["cell"]["i4"] == ""
    assert "The archive is empty" in text_of(browser, "#recommended")
    assert "The archive is empty" in text_of(browser, "#solutions")
    assert "The archive is empty" in note(browser)
    browser.run("window.moqd.selectCell(0)")
    for quantity in ("size", "objective 0", "preference"):
        choose_in(browser, "#colour-by", quantity)
    browser.run("document.getElementById('compare').click()")
    assert browser.run("window.moqd.state().solution") is None
    assert browser.complaints == []


@pytest.mark.parametrize(("features", "objectives"), [(0, 2), (1, 2), (2, 3), (3, 5)])
def test_one_solution_only(browser, tmp_path, features, objectives):
    run = made_run(features, objectives)
    valid = jnp.zeros_like(run.archive.valid).at[0, 0].set(True)
    opened(browser, [replace(run, archive=run.archive._replace(valid=valid))], tmp_path)
    assert browser.run("window.moqd.recommended()") == 0
    assert browser.run("window.moqd.state().solution") == 0
    for quantity in ("size", "objective 0", "preference"):
        choose_in(browser, "#colour-by", quantity)
    assert browser.complaints == []


@pytest.mark.parametrize("features", [1, 2])
def test_values_that_differ_by_rounding_alone(browser, tmp_path, features):
    run = made_run(features, 3)
    rng = np.random.default_rng(0)
    sums = rng.dirichlet(np.ones(3), run.archive.fitness.shape[:2])
    sums[:3, 0] = np.eye(3)
    fitness = jnp.asarray(sums, jnp.float32)
    opened(browser, [replace(run, archive=run.archive._replace(fitness=fitness))], tmp_path)
    choose_in(browser, "#colour-by", "preference")
    # As close as two numbers can be, of any size.
    found = browser.run("""(() => {
        const page = [...document.scripts].at(-1).textContent;
        const part = page.slice(page.indexOf("/** Whether two values differ"), page.indexOf("/** A tick with no more"));
        const ticksOf = new Function(`${part}; return ticksOf;`)();
        return [[1 / 3, 1 / 3 + 2 ** -54], [1, 1 + 2 ** -52], [1e300, 1e300], [0, 0], [NaN, NaN], [0, 1], [-3, 2],
            [1e6, 1e6 + 1e-5], [0, 5e-324]].map(([low, high]) => ticksOf(low, high));
    })()""")
    assert [len(ticks) for ticks in found[:5]] == [1] * 5
    np.testing.assert_allclose(found[5], [0, 0.2, 0.4, 0.6, 0.8, 1], atol=1e-12)
    assert found[6] == [-3, -2, -1, 0, 1, 2]
    assert all(len(ticks) <= 7 for ticks in found)
    assert browser.complaints == []


# --------------------------------------------------------------------------------------------- several runs, training


@pytest.mark.parametrize("features", [1, 2, 3])
def test_runs_with_other_cells(browser, tmp_path, features):
    runs = [made_run(features, 2), with_cells(made_run(features, 2, seed=1), 4)]
    opened(browser, runs, tmp_path)
    counts = [run.archive.valid.shape[0] for run in runs]
    assert counts == [12, 4]
    assert browser.run("document.querySelector('#colour-by [value=difference]')") is None
    last = int(runs[0].solutions().cell.max())
    browser.run(f"window.moqd.selectCell({last})")
    browser.run(f"document.querySelector('[data-cell=\"{last}\"]').focus()")
    for i in (1, 0, 1, 0):
        choose_in(browser, "#run", str(i))
        assert browser.run("document.querySelectorAll('#map .cell').length") == counts[i]
        solutions = runs[i].solutions()
        state = browser.run("window.moqd.state()")
        assert state["run"] == i
        assert solutions.cell[state["solution"]] == state["cell"]
        rows = np.flatnonzero(solutions.cell == state["cell"]).tolist()
        assert sorted(browser.run("window.moqd.shownFront()")) == rows
    assert browser.complaints == []


def test_the_cell_is_kept_where_it_is_occupied(browser, tmp_path):
    runs = [made_run(2, 2), made_run(2, 2)]
    opened(browser, runs, tmp_path)
    browser.run("window.moqd.selectCell(2)")
    choose_in(browser, "#run", "1")
    assert browser.run("window.moqd.state().cell") == 2
    browser.run("window.moqd.selectCell(11)")
    assert browser.run("window.moqd.shownFront()") == []
    choose_in(browser, "#run", "0")
    solutions = runs[0].solutions()
    assert browser.run("window.moqd.state().cell") == solutions.cell[browser.run("window.moqd.recommended()")]
    assert browser.complaints == []


def test_the_difference_of_hypervolume(browser, tmp_path):
    first = made_run(2, 2)
    second = replace(first, archive=first.archive._replace(fitness=first.archive.fitness + 0.5))
    opened(browser, [first, second], tmp_path)
    before = fills(browser)
    choose_in(browser, "#colour-by", "difference")
    assert "difference of hypervolume" in text_of(browser, "#colour-bar")
    assert fills(browser) != before
    label = browser.run("document.querySelector('[data-cell=\"0\"]').getAttribute('aria-label')")
    assert "difference of hypervolume: " in label
    assert MINUS not in label.split(",")[1]
    choose_in(browser, "#run", "1")
    assert "difference of hypervolume" in text_of(browser, "#colour-bar")
    assert browser.complaints == []


@pytest.mark.slow
def test_the_training_is_shown(browser, tmp_path):
    task = moqd.make_task("arm-2")
    algorithm = moqd.make_algorithm("mome", task, num_cells=8, ga_batch=8)
    run = moqd.run(algorithm, task, iterations=6, out=tmp_path / "arm", snapshot_every=2)
    snapshots = run.snapshots()
    opened(browser, [run], tmp_path)
    assert browser.run("document.getElementById('training').hidden") is False
    choose_in(browser, "#colour-by", "size")
    seen = []
    for i, snapshot in enumerate(snapshots):
        choose_in(browser, "#training-at", str(i))
        assert text_of(browser, "#training-label") == f"iteration {snapshot.iteration}"
        labels = browser.run(
            "[...document.querySelectorAll('#map .cell')].sort((a, b) => a.dataset.cell - b.dataset.cell)"
            ".map((one) => one.getAttribute('aria-label'))"
        )
        for cell, label in enumerate(labels):
            assert f"solutions: {np.sum(snapshot.cell == cell)}," in label
        seen.append(fills(browser))
    assert len({tuple(one) for one in seen}) > 1
    choose_in(browser, "#colour-by", "preference")
    choose_in(browser, "#training-at", "0")
    first, most = snapshots[0], float(np.median(snapshots[0].features[:, 0]))
    limits = [{"name": run.task.feature_names[0], "relation": "<=", "value": most}]
    browser.run(f"window.moqd.setLimits({json.dumps(limits)})")
    for cell in np.unique(first.cell):
        label = browser.run(f"document.querySelector('[data-cell=\"{cell}\"]').getAttribute('aria-label')")
        none = not np.any((first.cell == cell) & (first.features[:, 0].astype(float) <= most))
        assert ("none within the limits" in label) == none
    choose_in(browser, "#training-at", str(len(snapshots)))
    assert text_of(browser, "#training-label") == "now"
    assert browser.complaints == []


# ------------------------------------------------------------------------------------------- what is seen of a solution


def test_parameters_take_the_place_of_a_picture(browser, tmp_path):
    run = varied(made_run(2, 2))
    opened(browser, [run], tmp_path)
    solutions = run.solutions()
    values = run.task.parameters(np.asarray(solutions.genotype))
    for row in (0, len(solutions.cell) - 1):
        browser.run(f"window.moqd.selectSolution({row})")
        browser.wait(f"document.querySelector('figcaption').innerText.startsWith('solution {row} ')")
        assert note(browser) == ""
        shown = facts(browser)
        for i, name in enumerate(run.task.parameter_names):
            assert float(shown[name][0]) == pytest.approx(values[row, i], abs=1e-3)
    assert browser.run("document.querySelectorAll('#solutions tr[data-row]:not(.playable)').length") == 0
    assert "in this page" not in text_of(browser, "#front-legend")
    assert browser.complaints == []


def test_without_parameters_there_is_nothing_to_show(browser, tmp_path):
    opened(browser, [made_run(2, 2)], tmp_path, change=lambda content: content["runs"][0].update(parameters=None))
    assert note(browser) == "This task has no pictures of its solutions."
    assert browser.complaints == []


@pytest.mark.parametrize("own", [True, False])
def test_a_picture_that_is_not_there_can_be_had(browser, tmp_path, own):
    run = made_run(2, 2, path=tmp_path / "a run")
    run = replace(run, task=replace(run.task, draw=lambda x: "<p>drawn</p>"))

    def change(content):
        content["runs"][0].update(own=own, gaits={"0": content["runs"][0]["gaits"]["0"]})

    opened(browser, [run], tmp_path, gaits="all", change=change)
    browser.run("window.moqd.selectSolution(1)")
    browser.wait("document.querySelector('.note')")
    assert "This page has no picture of this solution" in note(browser)
    assert ('write_explorer([run], "explorer.html", gaits="all")' in note(browser)) == own
    assert (f"moqd explore '{tmp_path / 'a run'}' --serve" in note(browser)) != own
    assert "no picture in this page" in text_of(browser, "#front-legend")
    assert "x0" in facts(browser)
    browser.run("window.moqd.selectSolution(0)")
    browser.wait("document.querySelector('.stage iframe')")
    assert browser.run("document.querySelectorAll('#solutions tr.playable').length") == 1
    assert browser.complaints == []


def test_a_task_from_a_file_is_named_again(browser, tmp_path):
    run = made_run(2, 2, path=tmp_path)
    run = replace(run, task=replace(run.task, draw=lambda x: "<p>drawn</p>"))
    known = {"own": False, "again": " --task FILE.py:NAME"}
    opened(browser, [run], tmp_path, gaits="none", change=lambda content: content["runs"][0].update(known))
    browser.wait("document.querySelector('.note')")
    for option in ("--serve", "--gaits all"):
        assert f"moqd explore {tmp_path} {option} --task FILE.py:NAME" in note(browser)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"error": "drawing it failed: <b>no</b>"}, "drawing it failed: <b>no</b>"),
        ({"images": [], "dt": 0.1}, ""),
        ({}, ""),
    ],
)
def test_entries_that_show_nothing(browser, tmp_path, entry, says):
    opened(browser, [made_run(2, 2)], tmp_path, change=lambda content: _with_entry(content, entry))
    browser.run("window.moqd.selectSolution(0)")
    browser.wait("document.querySelector('figcaption').innerText.startsWith('solution 0 ')")
    assert note(browser) == says
    assert "x0" in facts(browser)
    assert browser.complaints == []


def test_pictures_without_time_between_them(browser, tmp_path):
    pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
    entry = {"images": [pixel] * 4, "dt": 0}
    opened(browser, [made_run(2, 2)], tmp_path, change=lambda content: _with_entry(content, entry))
    browser.run("window.moqd.selectSolution(0)")
    browser.wait("window.moqd.state().frames === 4")
    browser.run("window.moqd.seek(3)")
    assert text_of(browser, "#time") == "0.15 s"
    assert browser.complaints == []


def _with_entry(content, entry):
    content["runs"][0].update(drawable=True, gaits={"0": entry})


@pytest.mark.parametrize("features", [0, 2])
def test_a_robot_is_seen_with_and_without_feet(browser, tmp_path, features):
    opened(browser, [block_run(features)], tmp_path)
    browser.wait(f"window.moqd.state().frames === {FRAMES}")
    width, shown = browser.run(
        "(() => { const one = document.querySelector('.stage canvas'); return [one.width, one.clientWidth]; })()"
    )
    assert width == shown > 100
    # At once, not only when its size changes next.
    then = "window.moqd.selectSolution(1).then(() => document.querySelector('.stage canvas').width)"
    assert browser.run(then) == shown
    assert browser.run("document.querySelector('.strip').hidden") == (features == 0)
    assert browser.complaints == []


def test_a_gait_that_fails_leaves_the_others(monkeypatch):
    run, replay = block_run(), Block.replay
    first = float(run.solutions().genotype[0, 0])

    def stumble(task, genotype):
        if float(genotype[0]) == first:
            raise EvaluationError("it stumbled.")
        return replay(task, genotype)

    monkeypatch.setattr(Block, "replay", stumble)
    robot, gaits = record(run, "all", 0)
    assert gaits.pop("0") == {"error": "it stumbled."}
    assert len(gaits) == len(run.solutions().cell) - 1
    assert all("data" in gait for gait in gaits.values())
    assert robot["bodies"] == ["block"]
    assert record(run, "none", 0) == (robot, {})
    valid = jnp.zeros_like(run.archive.valid).at[0, 0].set(True)
    alone = replace(run, archive=run.archive._replace(valid=valid))
    assert record(alone, "all", 0) == (None, {"0": {"error": "it stumbled."}})


# ------------------------------------------------------------------------------------------------------- comparing


def test_two_gaits_side_by_side(browser, tmp_path):
    run = block_run()
    opened(browser, [run], tmp_path, gaits="all")
    browser.run("window.moqd.selectSolution(0)")
    browser.wait("document.querySelector('figcaption').innerText.startsWith('solution 0 ')")
    browser.run("document.getElementById('compare').click()")
    browser.run("window.moqd.selectSolution(1)")
    browser.wait("document.querySelectorAll('.stage canvas').length === 2")
    captions = browser.run("[...document.querySelectorAll('figcaption')].map((one) => one.innerText)")
    assert [caption.split(" ·")[0] for caption in captions] == ["A: solution 0", "B: solution 1"]
    shown = [float(text.replace(MINUS, "-")) for text in facts(browser)["objective 0 (m/s)"]]
    solutions = run.solutions()
    expected = np.column_stack([solutions.objectives[:2, 0], solutions.genotype[:2, 0]])
    np.testing.assert_allclose(shown, expected.ravel(), atol=1e-3)
    browser.run("document.getElementById('compare').click()")
    assert browser.run("document.querySelectorAll('.stage').length") == 1
    assert browser.complaints == []


def test_what_is_pinned_while_it_is_awaited_arrives(browser, tmp_path):
    run = block_run()
    opened(browser, [run], tmp_path, gaits="all")
    # All at once: before any gait can be there.
    browser.run("""(() => {
        window.moqd.selectCell(0);
        window.moqd.selectSolution(2);
        document.getElementById("compare").click();
        window.moqd.selectSolution(1);
    })()""")
    browser.wait("document.querySelectorAll('.stage canvas').length === 2")
    captions = browser.run("[...document.querySelectorAll('figcaption')].map((one) => one.innerText)")
    assert [caption.split(" ·")[0] for caption in captions] == ["A: solution 2", "B: solution 1"]
    replayed = [float(facts(browser)["objective 0 (m/s)"][i]) for i in (1, 3)]
    np.testing.assert_allclose(replayed, run.solutions().genotype[[2, 1], 0], atol=1e-3)
    assert browser.complaints == []


# ----------------------------------------------------------------------------------------------------------- facts


@pytest.mark.parametrize("path", ["", "/somewhere/a run"])
def test_how_to_get_a_solution(browser, tmp_path, path):
    run = made_run(2, 2)
    known = {"exportable": True, "own": False, "path": path}
    opened(browser, [run], tmp_path, change=lambda content: content["runs"][0].update(known))
    row = browser.run("window.moqd.state().solution")
    if path:
        assert text_of(browser, ".command code") == f"moqd pick '{path}' --solution {row} --export policy.npz"
        return
    _check_calls(browser, run)


def test_own_tasks_are_chosen_from_in_python(browser, tmp_path):
    run = made_run(2, 2, path=Path("somewhere"))
    opened(browser, [run], tmp_path)
    _check_calls(browser, run)


def _check_calls(browser, run):
    """Calls in Python give the solution that is shown; where none would, none is shown."""
    assert text_of(browser, ".command code") == "moqd.pick(run, [0.5, 0.5])"
    solutions = run.solutions()
    browser.run("window.moqd.setPreference([0.7, 0.3])")
    browser.run("window.moqd.setLimits([{name: 'objective 1', relation: '<=', value: 0.5}])")
    browser.run("window.moqd.setRule('achievement')")
    for cell in np.unique(solutions.cell):
        browser.run(f"window.moqd.selectCell({cell})")
        browser.wait(f"document.querySelector('figcaption').innerText.endsWith('cell {cell}')")
        row = browser.run("window.moqd.state().solution")
        call = browser.run("document.querySelector('.command code')?.innerText ?? ''")
        recommended = [browser.run(f"window.moqd.{one}") for one in ("recommended()", f"recommendedIn({cell})")]
        assert bool(call) == (row in recommended)
        if call:
            assert 'limits=["objective 1<=0.5"], rule="achievement"' in call
            found = eval(call, {"moqd": moqd, "run": run})
            assert list(found.objectives.values()) == solutions.objectives[row].tolist()
        assert "''" not in text_of(browser, "body")
    assert browser.complaints == []


def test_constraints_are_among_the_facts(browser, tmp_path):
    run = made_run(2, 2)
    values = np.array([-0.25, np.nan], np.float32)
    archive = run.archive._replace(constraint=jnp.broadcast_to(values, (*run.archive.valid.shape, 2)))
    run = replace(run, task=replace(run.task, constraint_names=["margin", "feature 0"]), archive=archive)
    opened(browser, [run], tmp_path)
    told = facts(browser)
    assert told["margin"] == [f"{MINUS}0.25"]
    assert told["feature 0 (constraint)"] == [DASH]
    assert browser.complaints == []


def test_a_notebook_shows_the_page_in_a_frame(browser, tmp_path):
    page = write_explorer(made_run(2, 2), tmp_path / "explorer.html")
    assert isinstance(page, Path)
    frame = page._repr_html_()
    (srcdoc,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert unescape(srcdoc) == page.read_text()
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><body>{frame}</body>")
    browser.complaints.clear()
    browser.open(notebook.as_uri())
    browser.wait("document.readyState === 'complete'")
    assert browser.complaints == []
    page.unlink()
    assert page._repr_html_() is None


def test_facts_say_only_what_is_known(browser, tmp_path):
    run = made_run(2, 2)
    known = {"seed": None, "iteration": 200, "iterations": 1000, "evaluations": 5}
    opened(browser, [run], tmp_path, change=lambda content: content["runs"][0].update(facts=known))
    told = text_of(browser, "#facts-of-run")
    assert "200 of 1000" in told
    assert "seed" not in told
    known["iteration"] = 1000
    opened(browser, [run], tmp_path, change=lambda content: content["runs"][0].update(facts=known))
    told = text_of(browser, "#facts-of-run")
    assert "1000" in told
    assert " of 1000" not in told


@pytest.mark.parametrize(
    ("algorithm", "weight", "told"),
    [
        ("mome-p2c", 0.25, ["0.25 : 0.75"]),
        ("mome-p2c-one-hot", 0.0, ["0.00 : 1.00"]),
        ("mome-pgx", None, [DASH]),
        ("mome", 0.25, None),
        ("nsga2", 0.25, None),
        ("by hand", 0.25, None),
    ],
)
def test_a_preference_only_where_solutions_are_made_for_one(browser, tmp_path, algorithm, weight, told):
    """Algorithms without gradients give their solutions random preferences, which mean nothing."""
    run = made_run(2, 2)
    weights = [0.0, 0.0] if weight is None else [weight, 1 - weight]
    preference = jnp.broadcast_to(jnp.array(weights, jnp.float32), run.archive.preference.shape)
    config = replace(run.config, algorithm=AlgorithmConfig(algorithm, {}))
    run = replace(run, config=config, archive=run.archive._replace(preference=preference))
    content = opened(browser, [run], tmp_path)
    assert facts(browser).get("made for preference") == told
    assert (content["runs"][0]["solutions"]["preference"] is None) == (told is None)
    assert browser.complaints == []


def test_pages_without_the_newer_fields_open(browser, tmp_path):
    def change(content):
        for name in ("drawable", "parameters", "exportable", "own"):
            content["runs"][0].pop(name, None)
        content["runs"][0]["facts"].pop("iteration", None)

    opened(browser, [made_run(2, 2)], tmp_path, change=change)
    assert browser.run("window.moqd.state().solution") is not None
    assert browser.complaints == []
