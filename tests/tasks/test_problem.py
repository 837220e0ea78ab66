"""The short way to a task."""

from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.io.errors import InputError
from moqd.tasks.task import UNKNOWN


def beam(width, height, wood):
    return [width * height, width * height**3], [height], [width - height]


SPACE = {"width": (1.0, 2.0), "height": moqd.Integer(1, 9), "wood": moqd.Categorical("oak", "pine")}


def test_it_is_the_task_of_the_long_way():
    short = moqd.problem(
        beam, SPACE, {"mass": "min", "stiffness": "max"}, {"height": (1, 9)}, ["flat"], units={"mass": "kg"}
    )
    long = moqd.FunctionTask(
        beam,
        name="beam",
        bounds=SPACE,
        objective_names=["mass", "stiffness"],
        minimised=["mass"],
        feature_names=["height"],
        feature_bounds=[(1, 9)],
        constraint_names=["flat"],
        units={"mass": "kg"},
    )
    for one in fields(long):
        assert getattr(short, one.name) == getattr(long, one.name) or one.name == "failures", one.name
    assert moqd.problem(beam, SPACE, {"mass": "min"}, {}, name="other").name == "other"


def test_a_list_of_bounds_is_for_a_function_of_a_vector():
    task = moqd.problem(lambda x: [x[0], x[1]], [(0, 1), (0, 2)], {"a": "max", "b": "min"}, name="pair")
    assert (task.parameter_names, task.num_features) == (("x0", "x1"), 0)
    evaluation = task.evaluate(jax.random.key(0), jnp.full((3, 2), 0.5, jnp.float32))
    np.testing.assert_allclose(evaluation.fitness, [[0.5, -1.0]] * 3)


def test_a_goal_is_max_or_min():
    with pytest.raises(InputError, match="'mass' is 'low'; use 'max' or 'min'"):
        moqd.problem(beam, SPACE, {"mass": "low"}, {})


def test_features_without_bounds_may_be_a_list():
    task, same = (moqd.problem(beam, SPACE, {"mass": "min"}, features) for features in (["height"], {"height": None}))
    assert task.feature_names == same.feature_names == ("height",)
    assert task.feature_bounds == same.feature_bounds == (UNKNOWN,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"constraints": "flat"}, "constraint_names is 'flat'; give a list"),
        ({"features": "height"}, "feature_names is 'height'; give a list"),
        ({"features": {"height": (9, 1)}}, r"feature 'height' is \(9, 1\); give \(lowest, highest\)"),
        ({"parameters": SPACE | {"wood": ["oak", "pine"]}}, r"wood is .*; give \(lowest, highest\).*Categorical"),
        ({"parameters": SPACE | {"depth": (0, 1)}}, "called with .*depth by name .*the same names"),
        ({"units": {"wdith": "m"}}, "'wdith' of units; did you mean 'width'"),
    ],
)
def test_a_mistake_is_told_in_the_words_of_the_user(given, message):
    sound = {"parameters": SPACE, "objectives": {"mass": "min"}, "features": {}}
    with pytest.raises(InputError, match=message):
        moqd.problem(beam, **sound | given)


def test_everything_that_is_shown_may_have_a_unit():
    units = {"mass": "kg", "height": "cm", "flat": "mm", "width": "m"}
    task = moqd.problem(beam, SPACE, {"mass": "min"}, ["height"], ["flat"], units=units)
    assert [task.label(name) for name in units] == ["mass (kg)", "height (cm)", "flat (mm)", "width (m)"]
    assert "width (m)" in task._repr_html_()
