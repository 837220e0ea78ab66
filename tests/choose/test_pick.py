"""Choosing a solution: against brute force, and on fronts that are worked out by hand."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moqd
from moqd.choose.export import solutions_csv
from moqd.choose.pick import (
    RULES,
    Limit,
    best_of,
    choose,
    neighbours,
    reevaluated,
    scale_of,
    simplex_lattice,
    values_by,
)
from moqd.core.archive import empty_archive
from moqd.runs.config import AlgorithmConfig, RunConfig, TaskConfig
from tests.plots.made import made_run

EVEN = np.array([0.5, 0.5])


def run_of(objectives, cells=None, *, minimised=()):
    """A run whose archive holds these solutions, cell by cell; features are the numbers of the cells."""
    objectives = np.asarray(objectives, np.float32)
    cells = np.zeros(len(objectives), int) if cells is None else np.asarray(cells)
    names = ["speed", "energy", "height"][: objectives.shape[1]]
    task = moqd.FunctionTask(
        lambda x: x,
        name="made",
        bounds=[(-10, 10)],
        parameter_names=["gene"],
        objective_names=names,
        minimised=minimised,
        feature_names=["place"],
        feature_bounds=[(0.0, 4.0)],
    )
    front = int(np.bincount(cells).max())
    centroid = jnp.arange(cells.max() + 1.0)[:, None]
    archive = empty_archive(
        jnp.zeros((1, 1)), centroid, jnp.array([[0.0], [4.0]]), num_objectives=len(names), front_length=front
    )
    for row, cell in enumerate(cells):
        place = int(np.sum(cells[:row] == cell))
        archive = archive._replace(
            fitness=archive.fitness.at[cell, place].set(objectives[row] * task.direction),
            feature=archive.feature.at[cell, place].set(float(cell)),
            genotype=archive.genotype.at[cell, place].set(row / 20),
            valid=archive.valid.at[cell, place].set(True),
        )
    config = RunConfig(TaskConfig.of(task), AlgorithmConfig("by hand", {}), 0, 0, reference_point=(0.0,) * len(names))
    return moqd.Run(task, config, archive, {})


HOLLOW = [[10, 0], [4.5, 4.5], [0, 10]]
"""A weighted sum never finds the one in the middle."""


def test_by_hand():
    run = run_of(HOLLOW)
    chosen = moqd.pick(run, [0.5, 0.5])
    assert chosen.objectives == {"speed": 10, "energy": 0}, "of equals, the first"
    assert (chosen.rule, chosen.value) == ("weighted", 0.5)
    assert moqd.pick(run, [0.49, 0.51]).objectives == {"speed": 0, "energy": 10}
    chosen = moqd.pick(run, [2, 2], rule="achievement")
    assert chosen.objectives == {"speed": 4.5, "energy": 4.5}
    assert chosen.value == pytest.approx(-(0.5 * 0.55 + 0.001 * 0.55))
    assert moqd.pick(run, [0.9, 0.1], rule="achievement").objectives == {"speed": 10, "energy": 0}


def test_the_knee_by_hand():
    """Scaled: (0, 1), (0.8, 0.8), (1, 0). With the weight w of the first objective, the middle is worth 0.8 and the
    others 1 - w and w, so without it max(w, 1 - w) is left: it is missed where 0.2 < w < 0.8."""
    value = values_by("knee", np.array([[0, 1], [0.8, 0.8], [1, 0]]), EVEN)
    weight = np.arange(101) / 100
    left = np.maximum(weight, 1 - weight)
    assert value[1] == pytest.approx(np.mean(np.maximum(0.8 - left, 0)))
    lost = np.mean(np.maximum((1 - weight) - 0.8, 0))
    np.testing.assert_allclose(value[[0, 2]], lost - 1)
    assert moqd.pick(run_of([[0, 10], [8, 8], [10, 0]]), rule="knee").objectives == {"speed": 8, "energy": 8}
    assert moqd.pick(run_of([[3, 4]]), rule="knee").objectives == {"speed": 3, "energy": 4}


def test_less_of_a_minimised_objective_is_better_and_limits_are_in_the_users_units():
    run = run_of([[1, 5], [2, 7], [3, 9]], minimised=["energy"])
    assert moqd.pick(run, [0, 1]).objectives["energy"] == 5
    assert moqd.pick(run, [1, 0]).objectives["speed"] == 3
    assert moqd.pick(run, [1, 0], limits=["energy<=8"]).objectives["speed"] == 2
    assert moqd.pick(run, [0, 1], limits=["speed >= 2.5"]).objectives["speed"] == 3
    assert moqd.pick(run, [1, 0], limits=["energy<=7", "speed<=1.5"]).objectives["speed"] == 1
    with pytest.raises(
        moqd.InputError, match=r"no solution is within energy<=1.0; in the archive energy ranges from 5 to 9"
    ):
        moqd.pick(run, [1, 0], limits=["energy<=1"])


def test_a_feature_asks_for_its_cell_or_the_nearest_that_has_something():
    run = run_of([[1, 1], [2, 2], [0, 3], [9, 9]], cells=[0, 2, 2, 4])
    assert moqd.pick(run, [1, 0], feature=[0.2]).cell == 0
    assert moqd.pick(run, [1, 0], feature=[2]).objectives == {"speed": 2, "energy": 2}
    assert moqd.pick(run, [1, 0], feature=[1.4]).cell == 2, "cell 1 is empty"
    assert moqd.pick(run, [1, 0], feature=[-100]).cell == 0, "beyond the bounds is on them"
    assert moqd.pick(run, [1, 0], feature=[0], limits=["energy>=2"]).cell == 2
    assert moqd.pick(run, [1, 0]).cell == 4
    chosen = moqd.pick(run, [0, 1], feature=[2])
    assert (chosen.place, chosen.features) == (1, {"place": 2.0})
    assert chosen.parameters == {"gene": pytest.approx(-10 + 20 * 2 / 20)}


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), number=st.integers(1, 30), objectives=st.integers(2, 3))
def test_against_brute_force(rule, seed, number, objectives):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 6, (number, objectives)).astype(float)  # with many ties
    weights = rng.dirichlet(np.ones(objectives))
    scaled = scale_of(points).scaled(points)
    worth = []
    for i, row in enumerate(scaled):
        if rule == "weighted":
            worth.append(float(np.dot(weights, row)))
        elif rule == "achievement":
            worth.append(-max(weights * (1 - row)) - 1e-3 * float(np.dot(weights, 1 - row)))
        else:
            others = np.delete(scaled, i, axis=0)
            lost = [max(0, w @ row - max(others @ w)) if len(others) else 1.0 for w in simplex_lattice(objectives)]
            worth.append(np.mean(lost) - any(row == scaled.max(axis=0)))
    value = values_by(rule, scaled, weights)
    np.testing.assert_allclose(value, worth, atol=1e-12)
    best = best_of(value, scaled)
    assert worth[best] == pytest.approx(max(worth), abs=1e-12)
    if rule != "knee":
        assert not any(np.all(other >= points[best]) and np.any(other > points[best]) for other in points)


def test_the_lattice_is_even_and_whole():
    for objectives in range(1, 9):
        lattice = simplex_lattice(objectives)
        np.testing.assert_allclose(lattice.sum(axis=1), 1)
        assert len(np.unique(lattice, axis=0)) == len(lattice) <= max(300, objectives)
        for unit in np.eye(objectives):
            assert any(np.array_equal(row, unit) for row in lattice)


def test_neighbours_are_on_the_front_and_near():
    run = run_of([[0, 10], [5, 6], [6, 5], [10, 0], [5, 5]])
    solutions = run.solutions()
    choice = choose(run, solutions, [0.5, 0.5])
    assert choice.row == 1
    assert neighbours(solutions, choice, run.task.direction, 2) == [2, 0]


def test_every_solution_of_an_archive_can_be_found():
    run = made_run(2, 3)
    solutions = run.solutions()
    for cell in np.unique(solutions.cell):
        chosen = moqd.pick(run, [1, 1, 1], feature=np.asarray(run.archive.centroid)[cell])
        assert chosen.cell == cell
        at = np.asarray(run.archive.fitness)[cell, chosen.place] * run.task.direction
        np.testing.assert_array_equal(list(chosen.objectives.values()), at)


def test_names_may_hold_relations_and_a_limit_may_be_given_whole():
    run = run_of(HOLLOW)
    odd = replace(run, task=replace(run.task, objective_names=["a>=b", "c"]))
    assert moqd.pick(odd, [1, 1], limits=["a>=b<=5", "c<=5"]).objectives == {"a>=b": 4.5, "c": 4.5}
    for limit in (Limit("speed", "<=", 5), ("speed", "<=", 5)):
        assert moqd.pick(run, [1, 0], limits=[limit]).objectives["speed"] == 4.5
    for wrong in (Limit("speed", "=<", 5), Limit("speed", ">=", float("inf")), "5<=speed"):
        with pytest.raises(moqd.InputError, match=r"invalid limit .* one of <=, >="):
            moqd.pick(run, [1, 0], limits=[wrong])


def test_a_front_of_one_solution_does_not_bring_the_units_back():
    """All others are dominated: they are scaled by what there is of each objective."""
    run = run_of([[10, 1000], [9, 900], [8, 999]], cells=[0, 1, 1])
    chosen = moqd.pick(run, [0.5, 0.5], feature=[1])  # (0.5, 0) and (0, 0.99)
    assert chosen.objectives == {"speed": 8, "energy": 999}
    assert moqd.pick(run, [0.7, 0.3], feature=[1]).objectives == {"speed": 9, "energy": 900}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"preference": [1]}, "give 2 weights"),
        ({"preference": [0, 0]}, "not all 0"),
        ({"preference": [-1, 2]}, "not negative"),
        ({"preference": [float("nan"), 1]}, "give 2 weights"),
        ({"preference": "ab"}, "give 2 weights"),
        ({"rule": "best"}, "unknown rule 'best'"),
        ({"feature": [1, 2]}, "give 1 numbers, for place"),
        ({"feature": "x"}, "give 1 numbers"),
        ({"limits": "speed>=1"}, "give a list"),
        ({"limits": ["speed"]}, "in quotes"),
        ({"limits": ["speed>=nan"]}, "in quotes"),
        ({"limits": ["sped>=1"]}, "speed"),
    ],
)
def test_mistakes_are_said(arguments, says):
    with pytest.raises(moqd.InputError, match=says):
        moqd.pick(run_of(HOLLOW), **{"preference": [1, 1], **arguments})


def test_an_empty_archive_has_nothing_to_choose_from():
    with pytest.raises(moqd.InputError, match="the archive is empty"):
        moqd.pick(made_run(empty=True), [1, 1])


def test_what_is_no_policy_says_so():
    chosen = moqd.pick(run_of(HOLLOW), [1, 1])
    with pytest.raises(moqd.InputError, match="not policies"):
        chosen.policy([0.0])
    with pytest.raises(moqd.InputError, match="cannot be replayed"):
        chosen.replay()


@pytest.mark.slow
def test_a_fresh_evaluation_of_a_function_is_the_same_again():
    task = moqd.FunctionTask(
        lambda x: ([x[0], -x[1]], [x[0]]),
        name="own",
        bounds=[(0, 1), (0, 2)],
        objective_names=["a", "b"],
        minimised=["b"],
        feature_names=["c"],
        feature_bounds=[(0, 1)],
    )
    run = moqd.run(moqd.make_algorithm("mome", task, num_cells=4, ga_batch=8), task, iterations=2)
    chosen = moqd.pick(run, [1, 1])
    again = reevaluated(chosen, 3)
    assert {name: column.tolist() for name, column in again.items()} == {
        name: [value] * 3 for name, value in {**chosen.objectives, **chosen.features}.items()
    }
    with pytest.raises(moqd.InputError, match="seed is 4294967296; give a whole number from 0 to"):
        reevaluated(chosen, 1, seed=2**32)
    failing = replace(task, function=lambda x: 1 / 0)
    assert all(np.isnan(column).all() for column in reevaluated(replace(chosen, task=failing), 2).values())


def test_a_feature_with_the_name_of_an_objective_is_told_apart():
    run = run_of([[0.5, 0.25]])
    task = replace(run.task, function=lambda x: ([2.0, 3.0], [0.5]), feature_names=["speed"], parameter_names=["speed"])
    run = replace(run, task=task)
    again = reevaluated(moqd.pick(run, [1, 1]), 2)
    expected = {"speed": [2, 2], "energy": [3, 3], "speed (feature)": [0.5, 0.5]}
    assert {name: column.tolist() for name, column in again.items()} == expected
    header = solutions_csv(run).splitlines()[0].split(",")
    assert header[:4] == ["cell", "speed (feature)", "speed", "energy"]
    assert header[-1] == "speed (parameter)"
