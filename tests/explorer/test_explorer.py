"""The page in a real browser: it shows what Python holds, chooses as Python does, and asks nobody for anything.

And the commands `moqd explore` and `moqd pick`, on the same run of a robot."""

import gzip
import json
import re
import shutil
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import moqd
from moqd.choose.pick import RULES, choose
from moqd.cli.main import main
from moqd.explorer import write_explorer
from moqd.explorer.gaits import packed_gait
from moqd.explorer.serve import ExplorerServer
from moqd.explorer.write import explorer_page
from moqd.runs.config import AlgorithmConfig
from tests.plots.made import made_run

HOSTILE = '</script><img src=x onerror="window.hacked=1">&amp;<b>'


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    """A run of a hopper, small in every way."""
    task = moqd.make_task("hopper-2", episode_length=40, hidden_sizes=(8,))
    algorithm = moqd.make_algorithm("mome", task, ga_batch=32, num_cells=12, front_length=6)
    return moqd.run(
        algorithm, task, iterations=4, out=tmp_path_factory.mktemp("runs") / "hopper", log_every=2, snapshot_every=2
    )


def opened(browser, runs, folder, **options):
    path = write_explorer(runs, folder / "explorer.html", **options)
    browser.requests.clear()
    browser.complaints.clear()
    browser.open(path.as_uri())
    browser.wait("window.moqd && window.moqd.ready")
    return path


def nothing_wrong(browser, path):
    assert browser.requests == [path.as_uri()], "no request but the file"
    assert browser.complaints == []


def centre_of(browser, selector):
    return browser.run(
        f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
        "one.scrollIntoView({block: 'center'});"
        "const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )


@pytest.mark.parametrize(("features", "objectives"), [(0, 2), (1, 2), (2, 2), (3, 3), (4, 5)])
def test_every_cell_shows_its_front(browser, tmp_path, features, objectives):
    run = made_run(features, objectives)
    path = opened(browser, [run], tmp_path)
    solutions = run.solutions()
    for cell in np.unique(solutions.cell):
        browser.run(f"window.moqd.selectCell({cell})")
        assert sorted(browser.run("window.moqd.shownFront()")) == np.flatnonzero(solutions.cell == cell).tolist()
        listed = browser.run("[...document.querySelectorAll('[data-row]')].map((line) => Number(line.dataset.row))")
        assert sorted(listed) == np.flatnonzero(solutions.cell == cell).tolist()
    nothing_wrong(browser, path)


def test_clicking_a_cell_shows_exactly_its_front(browser, robot, tmp_path):
    path = opened(browser, [robot], tmp_path)
    solutions = robot.solutions()
    for cell in np.unique(solutions.cell):
        browser.click(*centre_of(browser, f'[data-cell="{cell}"]'))
        assert browser.run("window.moqd.state().cell") == cell
        rows = sorted(browser.run("window.moqd.shownFront()"))
        assert rows == np.flatnonzero(solutions.cell == cell).tolist()
        drawn = browser.run(
            "[...document.querySelectorAll('[data-point]')].map((dot) => "
            "[dot.dataset.point, dot.getAttribute('cx'), dot.getAttribute('cy')].map(Number))"
        )
        assert sorted(int(row) for row, *_ in drawn) == rows
        is_on_scale(solutions.objectives[[int(row) for row, *_ in drawn]], np.array(drawn)[:, 1:])
    nothing_wrong(browser, path)


def is_on_scale(objectives, places):
    """Dots are where their values are: x grows with the first objective, y (downwards) falls with the second."""
    for values, pixels, direction in zip(objectives.T, places.T, (1, -1), strict=True):
        if np.ptp(values) < 1e-3 * np.abs(values).max():
            continue
        slope, start = np.polyfit(values, pixels, 1)
        np.testing.assert_allclose(pixels, slope * values + start, atol=0.1)
        assert slope * direction > 0


def test_three_objectives_are_seen_from_any_side(browser, tmp_path):
    """Without perspective: pixels are an affine map of the objectives, another one after dragging."""
    run = made_run(2, 3)
    path = opened(browser, [run], tmp_path)
    solutions, maps = run.solutions(), []
    cell = int(np.argmax(np.bincount(solutions.cell)))
    browser.run(f"window.moqd.selectCell({cell})")
    chosen = browser.run("window.moqd.state().solution")
    for _ in range(2):
        drawn = np.array(
            browser.run(
                "[...document.querySelectorAll('#front [data-point]')].map((dot) => "
                "[dot.dataset.point, dot.getAttribute('cx'), dot.getAttribute('cy')].map(Number))"
            )
        )
        rows = drawn[:, 0].astype(int)
        assert sorted(rows) == np.flatnonzero(solutions.cell == cell).tolist()
        values = np.column_stack([solutions.objectives[rows], np.ones(len(rows))])
        assert len(rows) > 4, "otherwise any map would fit"
        found, *_ = np.linalg.lstsq(values, drawn[:, 1:], rcond=None)
        np.testing.assert_allclose(values @ found, drawn[:, 1:], atol=0.01)
        maps.append(found)
        x, y = centre_of(browser, "#front")
        browser.drag((x, y), (x + 60, y + 20))
        browser.wait("!document.querySelector('#front').classList.contains('turning')")
    assert np.abs(maps[0] - maps[1]).max() > 1
    assert browser.run("window.moqd.state().solution") == chosen, "dragging chooses nothing"
    row = int(rows[0])
    browser.click(*centre_of(browser, f'#front [data-point="{row}"]'))
    assert browser.run("window.moqd.state().solution") in rows
    nothing_wrong(browser, path)


@pytest.mark.parametrize("objectives", [2, 3])
def test_preferences_choose_as_python_does(browser, tmp_path, objectives):
    run = made_run(2, objectives)
    path = opened(browser, [run], tmp_path)
    solutions, rng = run.solutions(), np.random.default_rng(objectives)
    names = run.task.objective_names
    for i in range(50):
        preference = (
            rng.dirichlet(np.ones(objectives)).tolist() if i > objectives else np.eye(objectives)[i - 1].tolist()
        )
        rule, limits = list(RULES)[i % 3], []
        if i % 2:
            name = names[int(rng.integers(objectives))]
            value = float(rng.choice(solutions.objectives[:, names.index(name)]))
            limits = [{"name": name, "relation": str(rng.choice([">=", "<="])), "value": value}]
        browser.run(
            f"window.moqd.setRule({json.dumps(rule)}); window.moqd.setPreference({json.dumps(preference)});"
            f"window.moqd.setLimits({json.dumps(limits)})"
        )
        shown = browser.run("window.moqd.state().preference")
        np.testing.assert_allclose(shown, preference, atol=1e-12)
        texts = [f"{one['name']}{one['relation']}{one['value']!r}" for one in limits]
        choice = choose(run, solutions, shown, limits=texts, rule=rule)
        assert browser.run("window.moqd.recommended()") == choice.row
        cell = int(rng.choice(solutions.cell))
        inside = np.intersect1d(choice.candidates, np.flatnonzero(solutions.cell == cell))
        found = browser.run(f"window.moqd.recommendedIn({cell})")
        if len(inside):
            there = choose(run, solutions, shown, limits=texts, rule=rule, feature=run.archive.centroid[cell])
            assert found == there.row
        else:
            assert found is None
    browser.run("window.moqd.setLimits([{name: 'objective 0', relation: '>=', value: 1e9}])")
    assert browser.run("window.moqd.recommended()") is None
    nothing_wrong(browser, path)


def test_a_gait_plays_to_its_last_pose(browser, robot, tmp_path):
    path = opened(browser, [robot], tmp_path)
    row = browser.run("window.moqd.recommended()")
    replay = robot.task.replay(jax.tree.map(lambda leaf: leaf[row], robot.solutions().genotype))
    browser.run(f"window.moqd.selectSolution({row})")
    browser.wait("window.moqd.state().frames > 0")
    assert browser.run("window.moqd.state().frames") == len(replay.time)
    browser.run("window.moqd.pause(); window.moqd.seek(0)")
    for frame in (0, len(replay.time) // 2, len(replay.time) - 1):
        browser.run(f"window.moqd.seek({frame})")
        shown = browser.run("window.moqd.pose().positions")
        np.testing.assert_allclose(shown, replay.position[frame], atol=0.3e-3)
    browser.run("window.moqd.seek(0); window.moqd.play()")
    browser.wait("window.moqd.state().frame > 3")
    pixels = "document.querySelector('.player canvas').toDataURL()"
    before = browser.run(pixels)
    browser.wait(f"{pixels} !== {json.dumps(before)}", 10)
    nothing_wrong(browser, path)


def test_the_keyboard_alone_can_do_it(browser, robot, tmp_path):
    path = opened(browser, [robot], tmp_path)

    def tab_to(condition):
        for _ in range(80):
            browser.press("Tab")
            if browser.run(f"Boolean({condition})"):
                return
        raise AssertionError(f"no Tab leads to {condition}")

    browser.run("window.moqd.pause()")
    tab_to("document.activeElement.matches('input[type=range]') && document.activeElement.closest('.preference')")
    before = browser.run("window.moqd.state().preference")
    browser.press("ArrowLeft")
    browser.wait(f"window.moqd.state().preference[0] !== {before[0]}")
    after = browser.run("window.moqd.state().preference")
    assert sum(after) == pytest.approx(1)
    tab_to("document.activeElement.matches('[data-cell]')")
    cell = browser.run("window.moqd.state().cell")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        browser.press(key)
        browser.press("Enter")
        if browser.run("window.moqd.state().cell") != cell:
            break
    assert browser.run("window.moqd.state().cell") != cell
    tab_to("document.activeElement.matches('[data-row]')")
    browser.press("ArrowDown")
    row = browser.run("Number(document.activeElement.dataset.row)")
    browser.press("Enter")
    assert browser.run("window.moqd.state().solution") == row
    tab_to("document.activeElement.id === 'play'")
    browser.press(" ")
    tab_to("document.activeElement.matches('input[type=range]') && !document.activeElement.closest('.preference')")
    nothing_wrong(browser, path)


def test_names_stay_text(browser, tmp_path):
    run = made_run(2, 3)
    task = replace(
        run.task,
        name=HOSTILE,
        objective_names=[HOSTILE, "b<i>", "c"],
        minimised=["c"],
        feature_names=[f"{HOSTILE} f", "g"],
        units={},
        draw=lambda x: "<svg xmlns='http://www.w3.org/2000/svg'><script>parent.hacked=2</script></svg>",
    )
    config = replace(run.config, algorithm=AlgorithmConfig(HOSTILE, {}))
    run = replace(run, task=task, config=config)
    path = opened(browser, [run, run], tmp_path)
    for cell in np.unique(run.solutions().cell)[:3]:
        browser.run(f"window.moqd.selectCell({cell})")
    browser.run(f"window.moqd.selectSolution({browser.run('window.moqd.recommended()')})")
    assert browser.run("window.hacked") is None
    assert browser.run("document.querySelectorAll('img[src=x], b b').length") == 0
    assert HOSTILE in browser.run("document.body.innerText + document.body.textContent")
    assert [one for one in browser.requests if not one.startswith(("about:", "data:"))] == [path.as_uri()]
    assert all("sandboxed" in one for one in browser.complaints), "but that the drawing's script was not run"


def test_what_a_task_draws_is_shown(browser, tmp_path):
    run = made_run(1, 2)
    image = np.zeros((4, 6, 3), np.uint8)
    for drawn in (lambda x: "<p>drawn</p>", lambda x: moqd.Frames([image, image + 255], 0.1)):
        one = replace(run, task=replace(run.task, draw=drawn))
        path = opened(browser, [one], tmp_path)
        browser.run(f"window.moqd.selectSolution({browser.run('window.moqd.recommended()')})")
        browser.wait("document.querySelector('.player iframe, .player img, .player canvas')")
        assert browser.complaints == []
        assert all(one == path.as_uri() or one.startswith(("data:", "about:", "blob:")) for one in browser.requests)


def test_two_runs_and_training(browser, robot, tmp_path):
    path = opened(browser, [robot, robot], tmp_path)
    assert browser.run("[...document.querySelectorAll('option')].some((one) => /difference/i.test(one.textContent))")
    assert browser.run("Boolean(document.getElementById('training-at'))")
    nothing_wrong(browser, path)


def test_served_it_simulates_what_is_not_in_it(browser, robot):
    import threading

    with ExplorerServer(explorer_page([robot], gaits="none", served=True), [robot]) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        browser.complaints.clear()
        browser.open(server.address)
        browser.wait("window.moqd && window.moqd.ready")
        row = len(robot.solutions().cell) - 1
        browser.run(f"window.moqd.selectSolution({row})")
        browser.wait("window.moqd.state().frames > 0")
        assert browser.complaints == []
        server.shutdown()
        thread.join()


@pytest.mark.slow  # films, and simulates anew
def test_pick_chooses_exports_films_and_tries(robot, tmp_path, capsys):
    policy, film = tmp_path / "policy.npz", tmp_path / "gait.gif"
    arguments = ["--preference", "0.7,0.3", "--limit", "energy>=-10", "--export", str(policy), "--video", str(film)]
    assert main(["pick", str(robot.path), *arguments, "--episodes", "8"]) == 0
    printed = capsys.readouterr().out
    chosen = moqd.pick(robot, [0.7, 0.3], limits=["energy>=-10"])
    assert f"{chosen.objectives['energy']:.5g}" in printed
    assert "in 8 episodes from random initial states" in printed
    observation = np.linspace(-1, 1, 11, dtype=np.float32)
    np.testing.assert_allclose(moqd.load_policy(policy)(observation), chosen.policy(observation), atol=1e-6)
    assert film.read_bytes().startswith(b"GIF89a")


def test_pick_as_json_and_by_number(robot, capsys):
    assert main(["pick", str(robot.path), "--preference", "1,0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    solutions = robot.solutions()
    assert found["solution"] == int(np.argmax(solutions.objectives[:, 0]))
    assert (found["rule"], found["value"]) == ("weighted", 1.0)
    assert main(["pick", str(robot.path), "--solution", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["objectives"].values()) == solutions.objectives[1].tolist()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--preference", "a,b"], "--preference is 'a,b'; give numbers with commas"),
        (["--preference", "1"], "give 2 weights"),
        (["--limit", "energy"], "in quotes"),
        (["--solution", "99999"], "--solution is 99999; the run has those from 0 to"),
        (["--solution", "1", "--preference", "1,1"], "give one of the two"),
        (["--export", "policy.zip"], "ends in .npz or .onnx"),
        (["--video", "gait.avi"], "ends in .mp4 or .gif"),
        (["--episodes", "0"], "at least 1"),
        (["--rule", "best"], "best"),
    ],
)
def test_mistakes_of_pick_are_one_sentence(robot, capsys, arguments, says):
    assert main(["pick", str(robot.path), *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_explore_writes_one_file_within_its_budget(robot, tmp_path, capsys):
    out = tmp_path / "page.html"
    assert main(["explore", str(robot.path), "--out", str(out), "--budget", "6"]) == 0
    assert f"written to {out}" in " ".join(capsys.readouterr().out.split())
    assert out.stat().st_size < 6e6
    assert main(["explore", str(robot.path), "--gaits", "none"]) == 0
    assert (robot.path / "explorer.html").stat().st_size < out.stat().st_size


@pytest.mark.slow  # a process for each
def test_mistakes_of_explore_are_one_sentence(robot, tmp_path, capsys):
    other = moqd.make_task("arm-2", num_joints=3)
    moqd.run(moqd.make_algorithm("mome", other, num_cells=4, ga_batch=8), other, iterations=1, out=tmp_path / "arm")
    for arguments, says in (
        ([str(robot.path), str(tmp_path / "arm")], "must have the same objectives and features"),
        ([str(tmp_path / "nothing")], "is not a run"),
        ([str(robot.path), "--budget", "0"], "more than 0"),
        ([str(robot.path), "--port", "70000"], "from 0 to 65535"),
        ([str(robot.path), "--serve", "--out", "x.html"], "leave --out out"),
    ):
        assert main(["explore", *arguments]) == 2
        assert says in " ".join(capsys.readouterr().err.split())


def test_the_guide_runs(robot, tmp_path, monkeypatch):
    """On this run instead of the demo's."""
    shutil.copytree(robot.path, tmp_path / "runs" / "demo")
    monkeypatch.chdir(tmp_path)
    guide = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text()
    exec("\n".join(re.findall(r"```python\n(.*?)```", guide, re.DOTALL)), {})
    assert (tmp_path / "policy.npz").exists()


def test_gaits_are_those_of_the_replay(robot):
    """Packed as the page takes them, and unpacked here by what gaits.py says of it."""
    genotype = jax.tree.map(lambda leaf: leaf[:10], robot.solutions().genotype)
    for i, replay in enumerate(robot.task.replays(genotype)):
        alone = robot.task.replay(jax.tree.map(lambda leaf, i=i: leaf[i], genotype))
        np.testing.assert_array_equal(replay.position, alone.position)
        gait = packed_gait(replay)
        planes = np.frombuffer(gzip.decompress(b64decode(gait["data"])), np.uint8).reshape(4, -1)
        table = np.cumsum(np.ascontiguousarray(planes.T).view("<i4").reshape(-1, gait["frames"]), axis=1)
        bodies = len(replay.body_names)
        poses = table[: 7 * bodies].T.reshape(-1, bodies, 7)
        np.testing.assert_allclose(poses[..., :3] / 2000, replay.position, atol=0.25e-3 + 1e-6)
        np.testing.assert_allclose(poses[..., 3:] / 16384, replay.rotation, atol=0.5 / 16384 + 1e-6)
        np.testing.assert_array_equal(table[7 * bodies :, 1:].T, replay.contact)
