"""Operators of bounded vectors: in distribution as pymoo's, as their closed forms say, and within their bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pymoo.operators.crossover.sbx import cross_sbx
from pymoo.operators.mutation.pm import mut_pm
from scipy import stats

from moqd.core.types import Genes
from moqd.variation.differential import de_elite, de_rand
from moqd.variation.discrete import settle
from moqd.variation.gaussian import gaussian, mirror
from moqd.variation.mixture import OPERATORS, VariationConfig
from moqd.variation.polynomial import polynomial
from moqd.variation.sbx import sbx

NUMBER = 20_000
REALS = Genes(np.zeros(3, int), np.ones(3, bool))
MIXED = Genes(np.array([0, 10, 4]), np.array([True, True, False]))
"""A real, a whole number of ten values, a choice of four."""


def rows(*values):
    return jnp.tile(jnp.asarray(values, jnp.float32), (NUMBER, 1))


def assert_same_distribution(ours, theirs):
    for mine, other in zip(np.asarray(ours).T, np.asarray(theirs, np.float32).T, strict=True):  # both in 32 bits
        assert stats.ks_2samp(mine, other).pvalue > 1e-3


@pytest.mark.parametrize(
    ("first", "second"), [((0.2, 0.5, 0.01), (0.6, 0.5001, 0.3)), ((0.9, 0.0, 1.0), (0.4, 1.0, 0.97))]
)
def test_crossover_is_distributed_as_pymoos(first, second):
    ours = sbx(jax.random.key(0), rows(*first), rows(*second), REALS, rate=1.0)
    parents = np.stack([np.tile(first, (NUMBER, 1)), np.tile(second, (NUMBER, 1))])
    eta, exchanged = np.full((NUMBER, 1), 15.0), np.full((NUMBER, 1), 0.5)
    children = cross_sbx(parents, np.zeros(3), np.ones(3), eta, 0.5, exchanged, random_state=np.random.default_rng(1))
    assert_same_distribution(ours, children[0])


@pytest.mark.parametrize("parent", [(0.5, 0.1, 0.98), (0.0, 1.0, 0.3)])
def test_polynomial_mutation_is_distributed_as_pymoos(parent):
    ours = polynomial(jax.random.key(0), rows(*parent), REALS, rate=1.0)
    theirs = mut_pm(
        np.tile(parent, (NUMBER, 1)),
        np.zeros(3),
        np.ones(3),
        np.full(NUMBER, 20.0),
        np.full(NUMBER, 1 / 3),
        at_least_once=False,
        random_state=np.random.default_rng(1),
    )
    assert_same_distribution(ours, theirs)


@pytest.mark.parametrize("name", ["sbx", "polynomial"])
@pytest.mark.parametrize("genes", [REALS, MIXED])
def test_no_child_is_a_copy_of_its_parents(name, genes):
    parents = [rows(0.45, 0.45, 0.625), rows(0.45, 0.45, 0.625)]
    child = np.asarray(OPERATORS[name].apply(jax.random.key(0), parents, genes, VariationConfig()))
    assert (child != np.asarray(parents[0])).any(axis=1).all()


def test_crossed_children_keep_the_middle_of_their_parents():
    # Far from the bounds the spread is symmetric: half of the crossed genes are near either parent.
    child = np.asarray(sbx(jax.random.key(0), rows(0.45, 0.4, 0.5), rows(0.55, 0.6, 0.5), REALS, rate=1.0))
    kept = np.isclose(child, np.array([0.45, 0.4, 0.5]), atol=0)
    assert kept[:, 2].all()  # equal genes are not crossed
    # A half is not crossed and stays 0.45; of the others half are near each parent.
    assert child[:, 0].mean() == pytest.approx(0.5 * 0.45 + 0.5 * 0.5, abs=2e-3)


def test_differential_steps_are_differences():
    parent, base, one, two = rows(0.5, 0.5, 0.5), rows(0.3, 0.3, 0.3), rows(0.4, 0.2, 0.3), rows(0.2, 0.4, 0.3)
    child = np.asarray(de_rand(jax.random.key(0), parent, base, one, two, REALS))
    taken = child[:, 2] != 0.5
    assert 0.4 < taken.mean() < 0.8
    np.testing.assert_allclose(child[taken, 2], 0.3, atol=1e-6)  # base + F * 0
    both = (child[:, 0] != 0.5) & (child[:, 1] != 0.5)
    factor = (child[both, 0] - 0.3) / 0.2
    assert factor.min() >= 0.3 - 1e-5
    assert factor.max() <= 0.9 + 1e-5
    np.testing.assert_allclose(child[both, 1], 0.3 - 0.2 * factor, atol=1e-5)  # one F for the whole child
    assert ((child != 0.5).sum(axis=1) >= 1).all()
    towards = np.asarray(de_elite(jax.random.key(0), parent, rows(0.7, 0.7, 0.7), one, one, REALS))
    moved = towards[towards != 0.5]
    assert moved.min() >= 0.5 + 0.3 * 0.2 - 1e-5
    assert moved.max() <= 0.5 + 0.9 * 0.2 + 1e-5


def test_gaussian_steps_have_all_scales_and_are_mirrored():
    child = np.asarray(gaussian(jax.random.key(0), rows(0.5, 0.5, 0.5), None, sigma=0.3))
    moved = np.abs(child - 0.5)[child != 0.5]
    # Sizes are log-uniform from 0.009 to 0.3: the mean of their squares is known. Between one gene and all three of a
    # child move: the mean of a log-uniform share.
    low, high = 0.03 * 0.3, 0.3
    assert moved.size / child.size == pytest.approx((1 - 1 / 3) / np.log(3), rel=0.02)
    steps = np.asarray(gaussian(jax.random.key(1), jnp.zeros((100 * NUMBER, 1)), None, sigma=0.3))
    assert np.mean(steps**2) == pytest.approx((high**2 - low**2) / (2 * np.log(high / low)), rel=0.02)
    np.testing.assert_allclose(mirror(jnp.array([[-0.2, 1.3, 0.4, 2.1]])), [[0.2, 0.7, 0.4, 0.1]], atol=1e-6)


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_keeps_bounds_and_levels(name, rng):
    operator = OPERATORS[name]
    unit = lambda: jnp.asarray(rng.random((NUMBER, 3)), jnp.float32)  # noqa: E731
    parents = [unit() for _ in range(operator.num_parents)]
    child = np.asarray(operator.apply(jax.random.key(0), parents, MIXED, VariationConfig(iso_sigma=0.3, line_sigma=1)))
    assert child.min() >= 0
    assert child.max() <= 1
    for gene, number in ((1, 10), (2, 4)):
        levels = child[:, gene] * number - 0.5  # in the middle of their parts
        np.testing.assert_allclose(levels, np.round(levels), atol=1e-4)
        before = np.floor(np.asarray(parents[0])[:, gene] * number)
        assert (np.round(levels) != before).mean() > 0.02  # and they do move
        assert set(np.round(levels).astype(int)) == set(range(number))


def test_whole_numbers_move_by_their_step_on_average_and_by_at_least_one_if_they_must():
    parent = rows(0.5, 0.45, 0.625)  # level 4 of 10, choice 2 of 4
    child = settle(jax.random.key(0), MIXED, parent, parent + jnp.float32(0.03))
    levels = np.asarray(child[:, 1]) * 10 - 0.5
    assert set(np.round(levels)) == {4, 5}
    assert levels.mean() == pytest.approx(4.3, abs=0.02)  # 0.03 of the range is 0.3 of a level
    np.testing.assert_allclose(child[:, 0], 0.53, atol=1e-6)
    choice = np.round(np.asarray(child[:, 2]) * 4 - 0.5).astype(int)
    shares = np.bincount(choice, minlength=4) / NUMBER
    np.testing.assert_allclose(shares, [0.04, 0.04, 0.88, 0.04], atol=0.01)  # 0.12 of a choice: another, evenly
    forced = settle(jax.random.key(0), MIXED, parent, parent, forced=jnp.ones(parent.shape, bool))
    levels = np.round(np.asarray(forced[:, 1]) * 10 - 0.5)
    assert set(levels) == {3, 5}
    assert 0.45 < (levels == 3).mean() < 0.55
    assert (np.round(np.asarray(forced[:, 2]) * 4 - 0.5) != 2).all()


def test_whole_numbers_at_their_ends_move_inwards():
    ends = rows(0.0, 0.95, 0.1)
    child = settle(jax.random.key(0), MIXED, ends, ends + jnp.float32(0.4), forced=jnp.ones(ends.shape, bool))
    assert (np.round(np.asarray(child[:, 1]) * 10 - 0.5) < 9).all()
