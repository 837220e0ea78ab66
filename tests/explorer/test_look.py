"""How the page looks: all text can be read, whatever the window, the names and the number of objectives."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.choose.pick import Limit, choose, scale_of
from moqd.explorer import write_explorer
from moqd.runs.table import columns_of
from tests.plots.made import made_run

SIZES = {"1280": (1280, 800), "1440": (1440, 900), "1920": (1920, 1080), "phone": (390, 844)}
OBJECTIVE = "mean squared displacement of the body"
FEATURES = (
    "ground contact of the left hind foot",
    "proportion of time spent in the air",
    "WIDEST MAXIMUM MOMENTUM OF A WHEEL",
    "averageheightabovethegroundinmetre",
    "feature with a rather ordinary name",
    "rate of turning about the long axis",
)
COMPLAINTS = """(() => {
    const found = [];
    const inside = (one, frame) => one.left >= frame.left - 1 && one.right <= frame.right + 1
        && one.top >= frame.top - 1 && one.bottom <= frame.bottom + 1;
    const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
    for (const svg of document.querySelectorAll("#map svg, #front svg")) {
        const seen = (one) => [...one.childNodes].filter((part) => part.nodeName !== "title");
        const texts = [...svg.querySelectorAll("text")].map((one) => ({ box: one.getBoundingClientRect(),
            text: seen(one).map((part) => part.textContent).join(" ") }));
        const frame = svg.getBoundingClientRect();
        texts.forEach(({ box, text }, i) => {
            if (!inside(box, frame)) found.push(`${text} leaves its picture`);
            texts.slice(i + 1).filter((other) => over(box, other.box)).forEach((other) =>
                found.push(`${text} covers ${other.text}`));
        });
    }
    const scrolled = "#solutions, #facts, #limits, .unseen, svg, .named-select, .sheet *, details:not([open]) *";
    for (const card of document.querySelectorAll(".card, .top")) {
        for (const one of card.querySelectorAll("*")) {
            const box = one.getBoundingClientRect();
            if (!box.width || one.closest(scrolled)) continue;
            const name = `${one.tagName} ${one.id} ${one.textContent.slice(0, 40)}`;
            const frame = (one.closest("#map") ?? card).getBoundingClientRect();
            if (!inside(box, frame)) found.push(`${name} leaves its card`);
            if (one.children.length || one.matches("input") || !one.clientWidth) continue;
            const cut = one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).textOverflow !== "ellipsis";
            if (cut) found.push(`${name} is cut`);
        }
    }
    if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the window");
    return found;
})()"""


def long_run(num_features, num_objectives):
    """A run whose names have 40 letters, and differ only at their ends."""
    run = made_run(num_features, num_objectives)
    objectives = [f"{OBJECTIVE} {i:02}" for i in range(num_objectives)]
    features = [f"{name:<37.37} {i:02}".replace("  ", " _") for i, name in enumerate(FEATURES[:num_features])]
    assert {len(name) for name in (*objectives, *features)} == {40}
    task = replace(
        run.task,
        name="a task whose name has about forty letters",
        objective_names=objectives,
        minimised=objectives[-1:],
        feature_names=features,
        units={objectives[0]: "metres per second", **dict.fromkeys(features[:1], "degrees")},
    )
    return replace(run, task=task)


def opened(browser, run, folder):
    path = write_explorer([run], folder / "explorer.html")
    browser.complaints.clear()
    browser.open(path.as_uri())
    browser.wait("window.moqd && window.moqd.ready")


def settle(browser):
    """What observes sizes draws anew in the next frame."""
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")


@pytest.fixture
def sized(browser):
    """A browser whose window gets its usual size again."""
    yield browser
    browser.dark(False)
    browser.resize(1440, 900)


@pytest.mark.parametrize(("features", "objectives", "sizes"), [(2, 2, ["1440"]), (1, 3, ["phone"]), (6, 8, ["1280"])])
def test_long_names_stay_in_their_panels(sized, tmp_path, features, objectives, sizes):
    _check(sized, long_run(features, objectives), tmp_path, sizes)


@pytest.mark.slow
@pytest.mark.parametrize("objectives", range(1, 9))
@pytest.mark.parametrize("features", range(7))
def test_any_names_stay_in_their_panels(sized, tmp_path, features, objectives):
    for run in (made_run(features, objectives), long_run(features, objectives)):
        _check(sized, run, tmp_path, SIZES)


def _check(browser, run, folder, sizes):
    opened(browser, run, folder)
    limits = [
        {"name": name, "relation": "<=", "value": 5} for name in (*run.task.objective_names, *run.task.feature_names)
    ]
    for size in sizes:
        browser.resize(*SIZES[size], phone=size == "phone")
        browser.run("window.moqd.setLimits([])")
        settle(browser)
        assert browser.run(COMPLAINTS) == [], size
        browser.run("document.getElementById('compare').click()")
        browser.run(f"window.moqd.setLimits({json.dumps(limits[-3:])})")
        browser.run("window.moqd.selectCell(0)")
        settle(browser)
        browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert browser.run(COMPLAINTS) == [], f"{size}, comparing"
        browser.run("document.getElementById('compare').click()")
    assert browser.complaints == []


def test_names_that_differ_at_their_ends_can_be_told_apart(sized, tmp_path):
    """On every axis and in every head of the table, at the smallest size."""
    opened(sized, long_run(6, 8), tmp_path)
    sized.resize(*SIZES["phone"], phone=True)
    settle(sized)
    for selector, number in (
        ("#front .axis-label tspan", 8),
        ("#map .axis-label tspan", 6),
        ("#solutions thead th", 10),
    ):
        texts = sized.run(f"[...document.querySelectorAll('{selector}')].map((one) => one.textContent)")
        assert len(texts) == len(set(texts)) == number


def test_three_objectives_are_turned_by_keys_and_stay_in_their_panel(sized, tmp_path):
    opened(sized, long_run(1, 3), tmp_path)
    place = "document.querySelector('#front [data-point]').getAttribute('cx')"
    sized.run("document.getElementById('front').focus()")
    seen = set()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft"):
        for _ in range(13):
            sized.press(key)
        settle(sized)
        seen.add((sized.run(place), sized.run(place.replace("cx", "cy"))))
        assert sized.run(COMPLAINTS) == [], key
    assert len(seen) == 5


def test_limits_on_features_and_objectives(browser, tmp_path):
    run = made_run(2, 2)
    opened(browser, run, tmp_path)
    solutions, rng = run.solutions(), np.random.default_rng(0)
    columns = dict(zip(run.task.objective_names, solutions.objectives.T.astype(float), strict=True))
    columns |= dict(zip(run.task.feature_names, solutions.features.T.astype(float), strict=True))
    offered = browser.run(
        "document.getElementById('add-limit').click();"
        "[...document.querySelectorAll('.limit select:first-child option')].map((one) => one.value)"
    )
    assert offered == [*columns, *run.task.parameter_names]
    fitness = solutions.objectives.astype(float) * run.task.direction
    values = scale_of(fitness).scaled(fitness) @ [0.5, 0.5]
    for _ in range(12):
        names = rng.choice(list(columns), 2, replace=False)
        limits = [(str(name), str(rng.choice([">=", "<="])), float(rng.choice(columns[name]))) for name in names]
        keeps = np.all([_holds(columns[name], relation, value) for name, relation, value in limits], axis=0)
        told = [{"name": name, "relation": relation, "value": value} for name, relation, value in limits]
        browser.run(f"window.moqd.setLimits({json.dumps(told)})")
        found = browser.run("window.moqd.recommended()")
        if keeps.any():
            assert values[found] == pytest.approx(np.max(values[keeps]))
            assert keeps[found]
        else:
            assert found is None
    browser.run("window.moqd.setLimits([{name: 'feature 1', relation: '>=', value: 99}])")
    assert "feature 1 ranges from" in browser.run("document.getElementById('recommended').innerText")
    assert browser.complaints == []


def wooden_run():
    """With parameters that are a number and a choice, and with constraints, one of which is called like a feature."""
    run = made_run(2, 2)
    rng = np.random.default_rng(3)
    genotype = rng.uniform(size=run.archive.genotype.shape)
    constraint = -rng.uniform(size=(*run.archive.valid.shape, 2))
    arrays = {"genotype": jnp.asarray(genotype, jnp.float32), "constraint": jnp.asarray(constraint, jnp.float32)}
    task = replace(
        run.task,
        function=lambda width, material: None,
        bounds={"width": moqd.Integer(1, 12), "material": moqd.Categorical("oak", "pine & fir", "elm")},
        parameter_names=(),
        constraint_names=["margin", "feature 0"],
        units={"width": "mm"},
    )
    return replace(run, task=task, archive=run.archive._replace(**arrays))


def test_limits_on_parameters_and_constraints_are_those_of_pick(browser, tmp_path):
    run, rng = wooden_run(), np.random.default_rng(0)
    opened(browser, run, tmp_path)
    columns, solutions, none = {one.header: one for one in columns_of(run.task, run.solutions())}, run.solutions(), 0
    named = ["margin", "feature 0 (constraint)", "width", "material"]
    groups = browser.run(
        "document.getElementById('add-limit').click();"
        "[...document.querySelectorAll('.limit optgroup')].map((one) => [one.label, ...[...one.children].map((name) => "
        "name.value)])"
    )
    assert [group[0] for group in groups] == ["objectives", "features", "constraints", "parameters"]
    assert groups[2][1:] + groups[3][1:] == named
    for _ in range(30):
        limits = []
        for name in rng.choice([*named, "objective 0"], 4, replace=False).tolist():
            value = rng.choice(columns[name].values)
            relation = str(rng.choice(["==", "!="] if name == "material" else [">=", "<="]))
            limits.append((name, relation, str(value) if name == "material" else float(value)))
        browser.run(f"window.moqd.setLimits({json.dumps([Limit(*one)._asdict() for one in limits])})")
        try:
            expected = choose(run, solutions, limits=limits).row
        except moqd.InputError:
            expected, none = None, none + 1
        assert browser.run("window.moqd.recommended()") == expected, limits
    assert 0 < none < 25
    # By hand: what is offered follows the name.
    browser.run("window.moqd.setLimits([]); document.getElementById('add-limit').click()")
    pick = "const name = document.querySelector('.limit select'); name.value = '{}'; "
    pick += "name.dispatchEvent(new Event('change'))"
    browser.run(f"(() => {{ {pick.format('material')} }})()")
    shown = "[...document.querySelectorAll('.limit > select option')].map((one) => one.textContent)"
    assert browser.run(shown) == ["=", "≠", "oak", "pine & fir", "elm"]
    assert browser.run("window.moqd.state().limits") == [{"name": "material", "relation": "==", "value": "oak"}]
    browser.run("window.moqd.selectSolution(window.moqd.recommended())")
    settle(browser)
    assert 'limits=["material==oak"]' in browser.run("document.getElementById('command').textContent")
    browser.run(f"(() => {{ {pick.format('width')} }})()")
    assert browser.run(shown) == ["≥", "≤"]
    assert browser.run("window.moqd.state().limits") == []
    browser.run(
        "window.moqd.setLimits([{name: 'width', relation: '>=', value: 99}, {name: 'material', relation: '==', "
        "value: 'elm'}])"
    )
    told = browser.run("document.getElementById('recommended').innerText")
    assert "width ranges from 1 to 12, material is oak or pine & fir or elm" in told
    assert browser.complaints == []


@pytest.mark.parametrize("size", ["1440", "phone"])
def test_limits_on_choices_stay_in_their_panel(sized, tmp_path, size):
    opened(sized, wooden_run(), tmp_path)
    sized.resize(*SIZES[size], phone=size == "phone")
    limits = [("material", "!=", "pine & fir"), ("width", ">=", 2), ("feature 0 (constraint)", "<=", -0.1)]
    sized.run(f"window.moqd.setLimits({json.dumps([Limit(*one)._asdict() for one in limits])})")
    settle(sized)
    assert sized.run(COMPLAINTS) == []
    inside = (
        "[...document.querySelectorAll('.limit > *')].every((one) => one.getBoundingClientRect().right <= innerWidth)"
    )
    assert sized.run(inside)


def _holds(values, relation, value):
    return values >= value if relation == ">=" else values <= value


def test_a_feature_with_the_name_of_an_objective(browser, tmp_path):
    run = made_run(1, 2)
    run = replace(run, task=replace(run.task, feature_names=["objective 1"], units={}))
    opened(browser, run, tmp_path)
    least = float(run.solutions().features.min())
    rows = np.flatnonzero(run.solutions().features[:, 0] == least)
    limits = [{"name": "objective 1 (feature)", "relation": "<=", "value": least}]
    browser.run(f"window.moqd.setLimits({json.dumps(limits)})")
    assert browser.run("window.moqd.recommended()") in rows


def test_functions_have_solutions_and_no_policies(browser, tmp_path):
    run = made_run(2, 2)
    opened(browser, run, tmp_path)
    browser.run(f"window.moqd.selectCell({int(np.flatnonzero(~np.any(run.archive.valid, axis=1))[0])})")
    words = browser.run("document.body.innerText + document.querySelector('noscript, #help').textContent")
    assert "no solution with these features was found yet" in words
    assert "polic" not in words + browser.run("document.getElementById('help').textContent")
