"""Improvements against moocore's hypervolume."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core.volume import anneal, improvement, shortfall

ALPHA = 0.1
improvements = jax.jit(jax.vmap(improvement))
annealings = jax.jit(jax.vmap(partial(anneal, alpha=ALPHA)))
shortfalls = jax.jit(jax.vmap(shortfall))


def fronts(rng, num_objectives, number=64, length=10):
    """Random candidates and fronts, some empty, with dominated and repeated points, some not above the origin."""
    point = rng.uniform(-0.05, 1.2, (number, num_objectives)).astype(np.float32)
    front = rng.random((number, length, num_objectives)).astype(np.float32)
    front[::5, 1] = front[::5, 0]
    front[::7, 2, 0] = -0.5
    valid = rng.random((number, length)) < np.linspace(0, 1, number)[:, None]
    return point, front, valid


def expected(point, front, valid):
    origin, front = np.zeros(point.size), front[valid].astype(float)
    before = moqd.hypervolume(front, origin) if len(front) else 0.0
    return moqd.hypervolume(np.concatenate([front, point[None].astype(float)]), origin) - before


@pytest.mark.parametrize("num_objectives", [1, 2, 3])
@pytest.mark.parametrize("length", [10, 50])
def test_improvements_are_exact_up_to_three_objectives(num_objectives, length, rng):
    cases = fronts(rng, num_objectives, length=length)
    want = [expected(*case) for case in zip(*cases, strict=True)]
    np.testing.assert_allclose(improvements(*cases), want, atol=1e-6)
    assert sum(value > 1e-4 for value in want) > 5


@pytest.mark.parametrize("num_objectives", [4, 5])
def test_improvements_of_more_objectives_are_within_one_percent_of_the_box(num_objectives, rng):
    cases = fronts(rng, num_objectives)
    want = np.array([expected(*case) for case in zip(*cases, strict=True)])
    box = np.prod(np.maximum(cases[0], 0), axis=1)
    assert (np.abs(improvements(*cases) - want) <= 0.01 * box + 1e-7).all()


@pytest.mark.parametrize("num_objectives", [1, 2, 3])
def test_an_annealed_point_improves_by_alpha_times_as_much(num_objectives, rng):
    point, front, valid = fronts(rng, num_objectives, number=200)
    before = np.asarray(improvements(point, front, valid))
    after = np.asarray(improvements(annealings(point, front, valid), front, valid))
    counts = before > 1e-3
    assert counts.sum() > 30
    np.testing.assert_allclose(after[counts] / before[counts], ALPHA, atol=1e-3)


def test_over_an_empty_front_the_annealed_point_is_known(rng):
    for num_objectives in (2, 3, 5):
        point = rng.random((4, num_objectives)).astype(np.float32)
        nothing = np.zeros((4, 10, num_objectives), np.float32), np.zeros((4, 10), bool)
        np.testing.assert_allclose(annealings(point, *nothing), ALPHA ** (1 / num_objectives) * point, rtol=1e-6)


def test_annealed_points_of_many_objectives_lie_between_the_front_and_the_point(rng):
    point, front, valid = fronts(rng, 5)
    before = np.asarray(improvements(point, front, valid))
    counts = before > 0.02
    near = np.asarray(annealings(point, front, valid))
    assert (near <= point)[counts].all()
    after = np.asarray(improvements(near, front, valid))[counts]
    assert counts.sum() > 5
    assert abs(np.mean(after / before[counts]) - ALPHA) < 0.05


def test_raised_by_its_shortfall_a_point_begins_to_improve(rng):
    point, front, valid = fronts(rng, 2, number=300)
    point -= 0.3
    lacks = np.asarray(shortfalls(point, front, valid))
    improves = np.asarray(improvements(point, front, valid)) > 0
    assert (improves == (lacks < 0)).all()
    raised = point + np.maximum(lacks, 0)[:, None]
    assert (np.asarray(improvements(raised + 1e-3, front, valid)) > 0).all()
    short = lacks > 1e-3
    assert (np.asarray(improvements(raised - 1e-3, front, valid))[short] <= 1e-6).all()


def test_the_volume_of_one_point_is_that_of_its_box():
    front = jnp.zeros((3, 3)).at[0].set(jnp.asarray([0.5, 0.5, 0.5]))
    valid = jnp.asarray([True, False, False])
    assert improvement(jnp.ones(3), front, valid) == 1 - 0.125
