"""The short way to a task."""

from dataclasses import fields

import pytest

import moqd
from moqd.io.errors import InputError


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


def test_a_goal_is_max_or_min():
    with pytest.raises(InputError, match="'mass' is 'low'; use 'max' or 'min'"):
        moqd.problem(beam, SPACE, {"mass": "low"}, {})
