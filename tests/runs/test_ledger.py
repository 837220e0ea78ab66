"""No design is evaluated twice on the host: a repeat gives its place to a new one, and what is known stays known."""

import shutil
from collections import Counter
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core.types import Offspring
from moqd.io.files import read_tensors
from moqd.runs.ledger import EVALUATIONS, Evaluations, Ledger, ledger_for, read_evaluations, write_evaluations
from moqd.runs.loop import Loop
from moqd.tasks.function import Measured
from tests.plain import PLAIN
from tests.quick import only

NAMES = {
    "name": "gear",
    "bounds": {
        "teeth": moqd.Integer(-4, 9),
        "width": moqd.Integer(1, 8),
        "holes": moqd.Integer(0, 3),
        "material": moqd.Categorical("steel", "oak", "glass"),
    },
    "objective_names": ["load", "cost"],
    "minimised": ["cost"],
    "feature_names": ["size"],
    "feature_bounds": [(-40.0, 80.0)],
}
NUM_DESIGNS = 14 * 8 * 4 * 3
TINY = NAMES | {"bounds": {"teeth": moqd.Integer(0, 3), "material": moqd.Categorical("steel", "oak", "glass")}}
BATCH = 24
OPTIONS = {
    "mome": {"ga_batch": BATCH, "num_cells": 8, "front_length": 5, **PLAIN},
    "nsga2-small": {"population": BATCH, "num_cells": 8},
    "spea2-small": {"population": BATCH, "num_cells": 8},
}


def worth(teeth, width, holes, material):
    weight = {"steel": 7.8, "oak": 0.7, "glass": 2.5}[material]
    return [weight * teeth - holes**2, (width - 3.3) ** 2 * weight + holes], [teeth * width + holes]


def counted(calls, fails=lambda *design: False):
    """It fails for some designs; every call is counted in a folder, so that it refers to nothing that changes."""

    def function(teeth, width, holes, material):
        design = (teeth, width, holes, material)
        path = calls / " ".join(map(str, design))
        path.write_text(path.read_text() + "x" if path.exists() else "x")
        if fails(*design):
            raise ValueError("no such gear")
        return worth(*design)

    calls.mkdir(exist_ok=True)
    return function


def calls_in(folder):
    return Counter({path.name: len(path.read_text()) for path in folder.iterdir()})


def tiny(calls):
    def function(teeth, material):
        calls.append((teeth, material))
        return worth(teeth, teeth + 1, 0, material)

    return moqd.FunctionTask(function, **TINY)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


@pytest.mark.parametrize("name", only(["mome"], OPTIONS))
def test_there_are_as_many_calls_as_designs(name, tmp_path):
    task = moqd.FunctionTask(counted(tmp_path / "calls", lambda teeth, *_: teeth == 5), **NAMES)
    run = moqd.run(name, task, iterations=12, out=tmp_path / "run", **OPTIONS[name])
    calls = calls_in(tmp_path / "calls")
    assert set(calls.values()) == {1}
    assert len(calls) == run.metrics["evaluations"][-1] == 13 * BATCH, "each place went to a new design"
    assert run.metrics["reused_evaluations"].tolist() == [0] * len(run.metrics["iteration"])
    failed = sum(design.startswith("5 ") for design in calls)
    assert run.metrics["failed_evaluations"][-1] == failed > 0
    assert len((tmp_path / "run" / "failures.jsonl").read_text().splitlines()) == failed
    # All of it is written down, as the function said it.
    known = read_evaluations(tmp_path / "run", task)
    assert known.iteration.tolist() == np.repeat(np.arange(13), BATCH).tolist()
    for parameters, *measured in zip(*known.columns[:4], strict=True):
        values = task.space.values(parameters)
        expected = ([np.nan] * 2, [np.nan]) if values["teeth"] == 5 else worth(**values)
        for said, part in zip(expected, measured, strict=False):
            np.testing.assert_array_equal(part, np.asarray(said, float))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_a_space_without_new_designs_is_no_reason_to_stop(name):
    calls: list = []
    task = tiny(calls)
    run = moqd.run(name, task, iterations=20, log_every=1, **OPTIONS[name])
    assert len(calls) == len(set(calls)) == 12
    assert run.metrics["iteration"][-1] == 20
    assert run.metrics["evaluations"][-1] == 21 * BATCH
    assert run.metrics["reused_evaluations"][-1] == 21 * BATCH - 12
    assert run.metrics["failed_evaluations"][-1] == 0
    # What was not called is told with the right values: the archive is that of all twelve designs.
    for parameters, objectives in zip(
        task.parameters(run.solutions().genotype), run.solutions().objectives, strict=True
    ):
        values = task.space.values(parameters)
        np.testing.assert_allclose(objectives, worth(values["teeth"], values["teeth"] + 1, 0, values["material"])[0])


@pytest.mark.slow
def test_failures_that_are_known_do_not_stop_a_run():
    """In a space of two designs of which one fails, a batch is often of that one alone."""

    def function(x):
        if x[0] == 1:
            raise ValueError("not this one")
        return [1.0, 2.0]

    task = moqd.FunctionTask(function, name="two", bounds=[moqd.Integer(0, 1)], objective_names=["a", "b"])
    run = moqd.run("mome", task, iterations=30, ga_batch=1, num_cells=1, front_length=2, line_sigma=0.0, iso_sigma=9.0)
    assert run.metrics["failed_evaluations"][-1] > 5
    assert run.metrics["reused_evaluations"][-1] == 29


@pytest.mark.slow
def test_real_parameters_are_as_without_a_ledger(monkeypatch):
    def function(x):
        return [x[0] - x[1] ** 2, x[1] + x[2]], [x[2]]

    names = {name: value for name, value in NAMES.items() if name != "bounds"}
    task = moqd.FunctionTask(function, bounds=[(-40.0, 40.0)] * 3, **names)
    # Such that nothing ends in a corner, and nothing is a copy of its parent.
    options = OPTIONS["mome"] | {"iso_sigma": 1e-3, "line_sigma": 1e-3}
    run = moqd.run("mome", task, iterations=4, **options)
    monkeypatch.setattr("moqd.runs.loop.ledger_for", lambda task: None)
    without = moqd.run("mome", task, iterations=4, **options)
    assert same(run.archive, without.archive)
    assert [*run.metrics] == [*without.metrics, "reused_evaluations"]


# ----------------------------------------------------------------------------------------------- killed and resumed


OFTEN = (0, 5, BATCH, 3 * BATCH + 7, 8 * BATCH + 23, 11 * BATCH)


@pytest.mark.parametrize(
    ("name", "minutes", "kills"),
    [
        ("mome", 60, (5, 8 * BATCH + 23)),  # within the first batch, and between two checkpoints
        *[
            pytest.param(name, minutes, OFTEN, marks=pytest.mark.slow)
            for name in ("mome", "nsga2-small")
            for minutes in (0, 60)
        ],
    ],
)
def test_killed_at_any_time_and_resumed_it_ends_with_the_same_bits_and_calls(name, minutes, kills, tmp_path):
    """Before some of its calls the function copies the run's folder as it is: what a kill would leave then."""
    folder, calls = tmp_path / "run", []

    def function(teeth, width, holes, material):
        if folder.exists() and len(calls) in kills:
            shutil.copytree(folder, tmp_path / f"killed-{len(calls)}", ignore=shutil.ignore_patterns(".lock"))
        calls.append((teeth, width, holes, material))
        if holes == 2:
            raise ValueError("no such gear")
        return worth(teeth, width, holes, material)

    class Save(moqd.Callback):
        def on_progress(self, iteration):
            if iteration in (5, 9):
                control.checkpoint()

    task, control = moqd.FunctionTask(function, **NAMES), moqd.Control()
    whole = moqd.run(
        name,
        task,
        iterations=12,
        out=folder,
        checkpoint_minutes=minutes,
        callbacks=[Save()],
        control=control,
        **OPTIONS[name],
    )
    made, number = list(calls), len(calls)
    shutil.move(folder, tmp_path / "whole")
    for kill in kills:
        calls.clear()
        copy = tmp_path / f"killed-{kill}"
        again = moqd.resume(copy, task=task)
        assert same(whole.archive, again.archive), kill
        assert calls == made[kill:], kill
        assert len(calls) == number - kill
        for one, other in zip(*(read_evaluations(path, task) for path in (copy, tmp_path / "whole")), strict=True):
            assert np.array_equal(one, other, equal_nan=True) if isinstance(one, np.ndarray) else one == other
        for column in ("reused_evaluations", "failed_evaluations", "moqd_score"):
            assert np.array_equal(again.metrics[column], whole.metrics[column])


@pytest.mark.slow
def test_interrupted_in_an_exhausted_space_it_knows_what_it_knew(tmp_path):
    calls: list = []
    task = tiny(calls)
    whole = moqd.run("mome", task, iterations=12, out=tmp_path / "whole", **OPTIONS["mome"])
    calls.clear()

    class Stop(moqd.Callback):
        def on_progress(self, iteration):
            if iteration == 6:
                control.stop()

    control = moqd.Control()
    with pytest.raises(moqd.StoppedError):
        moqd.run(
            "mome", task, iterations=12, out=tmp_path / "run", callbacks=[Stop()], control=control, **OPTIONS["mome"]
        )
    again = moqd.resume(tmp_path / "run", task=task)
    assert same(whole.archive, again.archive)
    assert len(calls) == 12
    assert again.metrics["reused_evaluations"].tolist() == whole.metrics["reused_evaluations"].tolist()


@pytest.mark.slow
def test_a_run_goes_on_though_its_evaluations_are_not_there(tmp_path):
    """As in runs of earlier versions."""
    task = moqd.FunctionTask(worth, **NAMES)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / EVALUATIONS).write_bytes(b"of a process that was killed before it had written its config")
    moqd.run("mome", task, iterations=3, out=tmp_path / "run", **OPTIONS["mome"])
    path = tmp_path / "run" / EVALUATIONS
    content = path.read_bytes()
    path.write_bytes(content[:-8])
    with pytest.warns(UserWarning, match=r"is damaged.* Designs that it knows may be evaluated again"):
        moqd.resume(tmp_path / "run", task=task, iterations=4)
    path.unlink()
    run = moqd.resume(tmp_path / "run", task=task, iterations=5)
    assert run.metrics["iteration"].tolist() == [0, 1, 2, 3, 4, 5]
    write_evaluations(tmp_path / "run", Ledger(replace(task, constraint_names=["c"])).evaluations)
    with pytest.warns(UserWarning, match="does not fit the task"):
        moqd.resume(tmp_path / "run", task=task, iterations=6)
    noisy = moqd.FunctionTask(lambda seed, **gear: worth(**gear), noisy=True, **NAMES)
    run = moqd.resume(tmp_path / "run", task=noisy, iterations=7)
    assert np.isnan(run.metrics["reused_evaluations"][-1]), "a task that counts less than before"


# -------------------------------------------------------------------------------------------- begun from another run


@pytest.fixture(scope="module")
def coarse(tmp_path_factory):
    """A run in a folder, and the same in memory alone."""
    folder = tmp_path_factory.mktemp("coarse")
    task = moqd.FunctionTask(counted(folder / "calls"), **NAMES)
    written, kept = (moqd.run("mome", task, iterations=6, out=out, **OPTIONS["mome"]) for out in (folder / "run", None))
    return task, written, kept, folder / "calls"


def finer(task, calls, source, **arguments):
    """A run with more cells, and what it called."""
    for path in calls.iterdir():
        path.unlink()
    options = OPTIONS["mome"] | {"num_cells": 20, "iterations": 2, "seed": 1} | arguments
    return moqd.run("mome", task, init_from=source, **options), calls_in(calls)


SOURCES = {
    "run": lambda task, written, kept: written,
    "path": lambda task, written, kept: written.path,
    "string": lambda task, written, kept: str(written.path),
    "loaded": lambda task, written, kept: moqd.load_run(written.path, task=task),
    "in memory": lambda task, written, kept: kept,
}


@pytest.mark.slow
def test_a_finer_grid_takes_what_the_coarse_one_knows(coarse):
    task, written, kept, calls = coarse
    known = set(map(tuple, read_evaluations(written.path, task).parameters))
    anew, calls_anew = finer(task, calls, written.archive)
    initial = int(written.metrics["num_solutions"][-1])
    assert sum(calls_anew.values()) == initial + 3 * BATCH, "an archive alone does not say what it was made by"
    new = {design for design in calls_anew if vector_of(task, design) not in known}
    assert len(new) < 3 * BATCH, "of what the coarse archive did not keep some would be evaluated again"
    for source in SOURCES.values():
        run, made = finer(task, calls, source(task, written, kept))
        assert same(run.archive, anew.archive)
        assert made == dict.fromkeys(new, 1)
        assert run.metrics["evaluations"][-1] == initial + 3 * BATCH
        assert run.metrics["reused_evaluations"][-1] == initial + 3 * BATCH - len(new)
    _, made = finer(task, calls, run)
    assert not [design for design in made if design in new or vector_of(task, design) in known], "it hands all on"


def vector_of(task, design):
    teeth, width, holes, material = design.split()
    values = {"teeth": int(teeth), "width": int(width), "holes": int(holes), "material": material}
    return tuple(task.space.vector(task.space.genotype(values)))


@pytest.mark.parametrize(
    ("what", "where"),
    only(
        [("other values in its closure", "in memory")],
        [
            (what, where)
            for what in ("other code", "other values in its closure", "another name", "an object that may be anything")
            for where in ("run", "in memory")
        ],
    ),
)
def test_what_another_function_said_is_not_believed(coarse, what, where):
    task, written, kept, calls = coarse
    initial = int(written.metrics["num_solutions"][-1])
    others = {
        "other code": replace(task, function=lambda **gear: task.function(**gear)),
        "other values in its closure": replace(task, function=counted(calls, lambda teeth, *_: teeth > 10)),
        "another name": replace(task, name="cog"),
        "an object that may be anything": replace(task, function=Counting(task.function)),
    }
    _, made = finer(others[what], calls, SOURCES[where](task, written, kept), iterations=0)
    assert sum(made.values()) == initial + BATCH


def test_what_the_same_function_said_is_believed(coarse):
    task, written, _, calls = coarse
    _, made = finer(task, calls, written, iterations=0)
    assert sum(made.values()) < BATCH


class Counting:
    def __init__(self, function):
        self.function = function

    def __call__(self, teeth, width, holes, material):
        return self.function(teeth, width, holes, material)


@pytest.mark.slow
def test_killed_before_its_first_checkpoint_it_still_knows_what_it_took_over(coarse, tmp_path):
    task, written, _, calls = coarse
    expected, made = finer(task, calls, written)

    class Kill(moqd.Callback):
        def on_start(self, config):
            shutil.copytree(tmp_path / "run", tmp_path / "killed", ignore=shutil.ignore_patterns(".lock"))

    finer(task, calls, written, out=tmp_path / "run", callbacks=[Kill()])
    for path in calls.iterdir():
        path.unlink()
    run = moqd.resume(tmp_path / "killed", task=task)
    assert same(run.archive, expected.archive)
    assert calls_in(calls) == made
    assert run.metrics["reused_evaluations"].tolist() == expected.metrics["reused_evaluations"].tolist()


@pytest.mark.slow
def test_what_failed_elsewhere_is_tried_here_and_what_was_resumed_with_another_function_is_not_believed(tmp_path):
    task = moqd.FunctionTask(counted(tmp_path / "calls", lambda teeth, *_: teeth == 5), **NAMES)
    first = moqd.run("mome", task, iterations=8, out=tmp_path / "run", **OPTIONS["mome"])
    failed = {design for design in calls_in(tmp_path / "calls") if design.startswith("5 ")}
    run, made = finer(task, tmp_path / "calls", first, iterations=8, seed=0, num_cells=8)
    assert failed & set(made), "it may have been the licence server"
    assert sum(design.startswith("5 ") for design in made) == run.metrics["failed_evaluations"][-1]
    other = replace(task, function=worth)
    assert read_evaluations(tmp_path / "run", task).function
    moqd.resume(tmp_path / "run", task=other, iterations=9)
    assert not read_evaluations(tmp_path / "run", task).function


# ------------------------------------------------------------------------------------------------ tasks of other kinds


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({"resamples": 2}, 2),
        pytest.param({"resamples": 1}, 1, marks=pytest.mark.slow),
        pytest.param({"noisy": True}, 1, marks=pytest.mark.slow),
    ],
)
def test_noise_is_evaluated_as_often_as_ever(options, times):
    calls: list = []

    def noisy(teeth, material, seed):
        calls.append((teeth, material))
        return worth(teeth, 2, 1, material)

    task = moqd.FunctionTask(noisy, noisy=True, **TINY) if "noisy" in options else replace(tiny(calls), **options)
    run = moqd.run("mome", task, iterations=2, **OPTIONS["mome"])
    assert len(calls) == 3 * BATCH * times
    assert "reused_evaluations" not in run.metrics
    assert run._evaluations is None


def test_only_plain_parameters_on_the_host_have_a_ledger():
    class Own(moqd.FunctionTask):
        def evaluate(self, key, genotype, journal=None):
            return super().evaluate(key, genotype, journal)

    nets = moqd.FunctionTask(
        lambda net: [1.0, 2.0], name="net", init=lambda key: {"w": jnp.zeros(3)}, objective_names=["a", "b"]
    )
    host = moqd.FunctionTask(worth, **NAMES)
    assert ledger_for(host) is not None
    assert ledger_for(replace(host, batched=True)) is not None
    traced = moqd.FunctionTask(
        lambda x: [x[0], x[1]], traceable=True, name="t", bounds=[(0, 1)] * 2, objective_names=["a", "b"]
    )
    for task in (moqd.make_task("arm-2"), traced, nets, Own(worth, **NAMES), replace(host, resamples=1)):
        assert ledger_for(task) is None


@pytest.mark.slow
def test_a_batched_function_is_called_for_what_is_new(tmp_path):
    calls: list = []

    def function(x):
        calls.extend(map(tuple, x))
        x += 1000  # it may do with it what it likes
        x -= 1000
        return np.stack([x[:, 0], x[:, 1] ** 2], axis=1), x[:, 2:3]

    names = {name: value for name, value in NAMES.items() if name != "bounds"}
    bounds = [moqd.Integer(0, 9), moqd.Integer(-3, 3), moqd.Categorical(4.0, 5.0)]
    task = moqd.FunctionTask(function, bounds=bounds, batched=True, **names)
    run = moqd.run("nsga2-small", task, iterations=12, **OPTIONS["nsga2-small"])
    assert len(calls) == len(set(calls)) == 10 * 7 * 2
    assert run.metrics["reused_evaluations"][-1] == 13 * BATCH - 140
    calls.clear()
    moqd.run("nsga2-small", task, iterations=5, out=tmp_path / "run", **OPTIONS["nsga2-small"])
    again = moqd.resume(tmp_path / "run", task=task, iterations=12)
    assert same(run.archive, again.archive)
    assert len(calls) == len(set(calls)) == 140


@pytest.mark.slow
def test_of_a_batched_call_that_failed_as_a_whole_nothing_is_known():
    calls: list = []

    def function(x):
        calls.append(set(map(tuple, x)))
        if len(calls) == 2:
            raise ConnectionError("the licence server is gone")
        return np.concatenate([x, x], axis=1)

    task = moqd.FunctionTask(function, name="t", bounds=[moqd.Integer(0, 99)], objective_names=["a", "b"], batched=True)
    run = moqd.run("nsga2-small", task, iterations=20, population=10)
    assert run.metrics["failed_evaluations"][-1] == 10
    assert calls[1] & set.union(*calls[2:])
    assert run.metrics["reused_evaluations"][-1] == 210 - sum(map(len, calls))


# --------------------------------------------------------------------------------------------------------- by hand


@pytest.mark.slow
def test_nobody_is_asked_for_the_same_design_twice(tmp_path, rng):
    task, told = moqd.FunctionTask(None, **TINY), []
    options = {"ga_batch": 5, "num_cells": 4, "out": tmp_path / "bench"}
    done = "every design that there is has been evaluated"

    def tell_all():
        while True:  # it is closed and made again after every few
            with moqd.Optimizer(task, **options) as optimizer:
                for _ in range(3):
                    candidates = optimizer.ask()
                    one = candidates[rng.integers(len(candidates))]
                    told.append(tuple(one.parameters.values()))
                    optimizer.tell(one, *worth(one.parameters["teeth"], 2, 1, one.parameters["material"]))

    with pytest.raises(moqd.InputError, match=done):
        tell_all()
    assert len(told) == len(set(told)) == 12
    with pytest.raises(moqd.InputError, match=done):
        moqd.Optimizer(task, **options)
    direct = moqd.FunctionTask(lambda teeth, material: worth(teeth, 2, 1, material), **TINY)
    found = moqd.load_run(tmp_path / "bench", task=task)
    iterations = int(found.metrics["iteration"][-1])
    expected = moqd.run("mome", direct, iterations=iterations, ga_batch=5, num_cells=4)
    assert same(found.archive, expected.archive)


@pytest.mark.slow
def test_where_results_vary_one_is_asked_again():
    told = []
    with moqd.Optimizer(moqd.FunctionTask(None, noisy=True, **TINY), ga_batch=4, num_cells=4) as optimizer:
        for _ in range(5):
            for one in optimizer.ask():
                told.append((one.parameters["teeth"], one.parameters["material"]))
                optimizer.tell(one, *worth(one.parameters["teeth"], 2, 1, one.parameters["material"]))
    assert len(told) == 20 > len(set(told))


# ------------------------------------------------------------------------------------------------------ the ledger


def test_against_a_naive_ledger(rng):
    """Random batches with many repeats: a set of designs and a dictionary of values say the same."""
    task = moqd.FunctionTask(worth, constraint_names=["c"], **NAMES)
    told, values, calls = set(), {}, []

    def random(number):
        genotype = jnp.asarray(rng.uniform(size=(number, 4)) ** 4, jnp.float32)
        return Offspring(genotype, jnp.asarray(rng.uniform(size=(number, 2)), jnp.float32), jnp.arange(number))

    def said(parameters):
        design = tuple(parameters)
        if design not in values:
            calls.append(design)
            values[design] = rng.normal(size=4)
        return values[design]

    ledger = Ledger(task)
    inherited = ledger.designs(random(40).genotype).parameters
    numbers = np.array([said(row) for row in inherited])
    measured = numbers[:, :2], numbers[:, 2:3], numbers[:, 3:]
    ledger.inherit(Evaluations(b"", inherited, *measured, np.zeros(40, np.int32)))
    calls.clear()
    for iteration in range(30):
        asked, further = random(20), [random(20) for _ in range(3)]
        offspring, designs = ledger.without_repeats(asked, iter(further))
        rows = list(zip(*map(np.asarray, jax.tree.leaves(asked)), strict=True))
        here, open_places = set(), []
        for place, row in enumerate(rows):
            design = tuple(task.space.vector(row[0]))
            if design in told | here:
                open_places.append(place)
            here.add(design)
        for more in further:
            for place, row in enumerate(zip(*map(np.asarray, jax.tree.leaves(more)), strict=True)):
                design = tuple(task.space.vector(row[0]))
                if place in open_places and design not in told | here:
                    open_places.remove(place)
                    rows[place] = row
                    here.add(design)
        for leaf, expected in zip(jax.tree.leaves(offspring), zip(*rows, strict=True), strict=True):
            np.testing.assert_array_equal(leaf, np.stack(expected))
        before, asked_for = len(calls), []

        def measure(rows, designs=designs, asked_for=asked_for):
            asked_for.extend(tuple(designs.parameters[row]) for row in rows)
            numbers = np.array([said(designs.parameters[row]) for row in rows])
            return Measured(numbers[:, :2], numbers[:, 2:3], numbers[:, 3:])

        found = np.concatenate(ledger.measured(designs, iteration, measure), axis=1)
        np.testing.assert_array_equal(found, [values[tuple(row)] for row in designs.parameters])
        assert calls[before:] == asked_for, "only what nobody has said yet"
        told |= {tuple(row) for row in designs.parameters}
        assert ledger.num_calls == len(calls)
        if iteration == 15:  # from here on another goes on, which has read what this one wrote
            known, ledger = ledger.evaluations, Ledger(task)
            ledger.restore(known, iteration)
            assert ledger.num_calls == len(calls)
    assert len(told) > 200


def test_it_grows_and_goes_back(tmp_path):
    task = moqd.FunctionTask(lambda x: [x[0], x[1]], name="t", bounds=[(-1.0, 1.0)] * 2, objective_names=["a", "b"])
    ledger, said = (
        Ledger(task),
        lambda parameters: Measured(parameters, np.zeros((len(parameters), 0)), np.zeros((len(parameters), 0))),
    )
    all_designs = ledger.designs(np.random.default_rng(0).uniform(size=(5000, 2)))
    for iteration in range(10):
        rows = slice(500 * iteration, 500 * (iteration + 1))
        part = type(all_designs)(all_designs.parameters[rows], all_designs.keys[rows])
        ledger.measured(part, iteration, lambda rows, part=part: said(part.parameters[rows]))
    write_evaluations(tmp_path, ledger.evaluations)
    assert set(read_tensors(tmp_path / EVALUATIONS)) == set(Evaluations._fields)
    back = Ledger(task)
    back.restore(read_evaluations(tmp_path, task), 6)
    assert back.num_calls == 3500
    np.testing.assert_array_equal(back.evaluations.parameters, all_designs.parameters[:3500])
    asked: list = []

    def measure(rows):
        asked.extend(rows)
        return said(all_designs.parameters[rows])

    np.testing.assert_array_equal(back.measured(all_designs, 7, measure).objectives, all_designs.parameters)
    assert asked == list(range(3500, 5000))


@pytest.mark.slow
def test_a_run_compiles_its_programs_once():
    """Also where a repeat gave its place to a new design, so that offspring come from the host."""
    task = moqd.FunctionTask(worth, **NAMES)
    loop = Loop(moqd.make_algorithm("mome", task, ga_batch=4, num_cells=8), task, seed=0)
    replaced, without_repeats = [], loop.ledger.without_repeats

    def noting(asked, further):
        offspring, designs = without_repeats(asked, further)
        replaced.append(offspring is not asked)
        return offspring, designs

    loop.ledger.without_repeats = noting
    loop.start()
    for _ in range(12):
        loop.advance(loop.iteration + 1)
    assert {True, False} == set(replaced)
    assert (loop._tell._cache_size(), loop._ask._cache_size()) == (1, 1)
