"""The statistics of studies against SciPy, statsmodels, all permutations, and values worked out on paper."""

import math
from itertools import combinations, product
from statistics import NormalDist, quantiles

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from statsmodels.stats.multitest import multipletests

from moqd.study.statistics import (
    column_quartiles,
    effect_size,
    holm_bonferroni,
    interquartile_mean,
    interquartile_mean_interval,
    mann_whitney,
    quartiles,
    smallest_adjusted_p,
)

NONE = np.zeros(0)
SAMPLES = st.lists(st.integers(-5, 5), min_size=1, max_size=12).map(lambda values: np.array(values, float))


def sample(*values: float) -> np.ndarray:
    return np.array(values, float)


def test_quartiles_interpolate():
    # Of four values the quarters are 0.75, 1.5 and 2.25 steps from the first.
    assert quartiles(sample(40, 10, 20, 30)) == (17.5, 25, 32.5)
    assert quartiles(sample(7)) == (7, 7, 7)
    assert np.isnan(quartiles(NONE)).all()


@pytest.mark.parametrize("number", [2, 3, 6, 20])
def test_quartiles_agree_with_the_standard_library(number, rng):
    values = rng.standard_normal(number)
    assert quartiles(values) == pytest.approx(quantiles(values, n=4, method="inclusive"))


def test_quartiles_of_columns_leave_out_what_is_missing(rng):
    table = rng.standard_normal((6, 5))
    table[0, 1] = table[3:, 2] = np.nan
    table[4, 3] = np.inf
    table[:, 4] = np.nan
    found = column_quartiles(table)
    for column in range(4):
        there = [value for value in table[:, column] if math.isfinite(value)]
        assert found[:, column] == pytest.approx(quantiles(there, n=4, method="inclusive"))
    assert np.isnan(found[:, 4]).all()
    assert np.isnan(column_quartiles(np.zeros((0, 2)))).all()


def test_interquartile_mean_worked_out_on_paper():
    assert interquartile_mean(sample(900, 2, 3, 4, 5, 1, 0, 800)) == 3.5  # without 0, 1 and 800, 900
    assert interquartile_mean(sample(3, 100, 2, 1, 5, -100)) == 2.75  # a quarter of six is one: (1 + 2 + 3 + 5) / 4
    assert interquartile_mean(sample(1, 2, 9)) == 4  # a quarter of three is none
    # The squares of 5 to 14, of 0 to 19: 985 / 10.
    assert interquartile_mean(np.arange(20.0) ** 2) == 98.5
    assert np.isnan(interquartile_mean(NONE))


@pytest.mark.parametrize("values", [(1, 2, 4, 8), (0, 1, 3, 7, 20)])
def test_interval_agrees_with_all_resamples(values):
    """Every resample is as likely as any other; 2.5 % of them are beyond each end, as well as 5000 draws can tell."""
    everything = np.sort(list(product(values, repeat=len(values))), axis=1)[:, 1:-1].mean(axis=1)
    low, high = interquartile_mean_interval(sample(*values))
    assert np.mean(everything < low) - 0.007 < 0.025 < np.mean(everything <= low) + 0.007
    assert np.mean(everything > high) - 0.007 < 0.025 < np.mean(everything >= high) + 0.007


def test_the_same_values_have_the_same_interval(rng):
    values = rng.standard_normal(9)
    low, high = interquartile_mean_interval(values)
    assert (low, high) == interquartile_mean_interval(values) == interquartile_mean_interval(values[::-1])
    assert low < interquartile_mean(values) < high


def test_interval_of_equal_values_and_of_too_few():
    assert interquartile_mean_interval(sample(2, 2, 2, 2, 2)) == (2, 2)
    assert interquartile_mean_interval(sample(0.1, 0.1, 0.1)) == pytest.approx((0.1, 0.1))
    assert np.isnan(interquartile_mean_interval(sample(2))).all()
    assert np.isnan(interquartile_mean_interval(NONE)).all()


def test_mann_whitney_worked_out_on_paper():
    # Of the 20 ways to choose 3 ranks of 6, one is as low as this and one as high.
    assert mann_whitney(sample(1, 2, 3), sample(4, 5, 6)) == pytest.approx(2 / 20)
    # 1, 2, 4 are above 3 others once; U of 0 and 1 are one way each, and so are 8 and 9.
    assert mann_whitney(sample(1, 2, 4), sample(3, 5, 6)) == pytest.approx(4 / 20)
    assert mann_whitney(sample(1), sample(2)) == 1
    for equal in (sample(3), sample(3, 3, 3), np.full(12, 0.1)):
        assert mann_whitney(equal, equal) == 1
    assert np.isnan(mann_whitney(NONE, sample(1)))
    assert np.isnan(mann_whitney(sample(1), NONE))


@pytest.mark.parametrize(("num_first", "num_second"), [(1, 4), (2, 3), (3, 3), (4, 4), (3, 6), (5, 5)])
def test_mann_whitney_agrees_with_all_permutations(num_first, num_second, rng):
    """Twice the share of divisions into two samples that are as extreme."""
    values = rng.permutation(num_first + num_second).astype(float)
    wins = lambda first: sum(a > b for a in first for b in set(values) - set(first))  # noqa: E731
    everything = np.array([wins(first) for first in combinations(values, num_first)])
    for first in list(combinations(values, num_first))[:20]:
        u = wins(first)
        expected = min(1, 2 * min(np.mean(everything <= u), np.mean(everything >= u)))
        second = sample(*(set(values) - set(first)))
        assert mann_whitney(sample(*first), second) == pytest.approx(expected)


def test_mann_whitney_with_ties_is_the_normal_approximation():
    first, second = sample(1, 2, 2, 5), sample(2, 3, 5, 6, 7)
    # Pairs won by the first: 0; 0.5; 0.5; 2 + 0.5. U = 3.5, of which 10 is the mean. Ties: three 2, two 5.
    variance = 4 * 5 / 12 * (9 + 1 - (3**3 - 3 + 2**3 - 2) / (9 * 8))
    expected = 2 * NormalDist().cdf((3.5 - 10 + 0.5) / math.sqrt(variance))
    assert mann_whitney(first, second) == pytest.approx(expected)
    assert effect_size(first, second) == 3.5 / 20


@given(SAMPLES, SAMPLES)
def test_mann_whitney_and_effect_of_any_samples(first, second):
    p = mann_whitney(first, second)
    assert 0 < p <= 1
    assert p == pytest.approx(mannwhitneyu(first, second, alternative="two-sided").pvalue)
    assert p == pytest.approx(mann_whitney(second, first)) == pytest.approx(mann_whitney(-first, -second))
    effect = effect_size(first, second)
    assert effect == pytest.approx(mannwhitneyu(first, second).statistic / (len(first) * len(second)))
    assert effect + effect_size(second, first) == pytest.approx(1)
    assert effect == pytest.approx(effect_size(-second, -first))


def test_effect_worked_out_on_paper():
    assert effect_size(sample(4, 5), sample(1, 2, 3)) == 1
    assert effect_size(sample(1, 2), sample(3, 4, 5)) == 0
    assert effect_size(sample(2, 4), sample(1, 2, 3)) == (1 + 0.5 + 3) / 6
    assert np.isnan(effect_size(sample(1), NONE))


def test_holm_worked_out_on_paper():
    # 0.01 * 4, 0.02 * 3, 0.03 * 2 (raised to 0.06 anyway), 0.9 * 1; and 0.6 * 2 is capped, so the next is 1 too.
    assert holm_bonferroni(sample(0.9, 0.01, 0.03, 0.02)) == pytest.approx([0.9, 0.04, 0.06, 0.06])
    assert holm_bonferroni(sample(0.7, 0.6)) == pytest.approx([1, 1])
    assert holm_bonferroni(sample(0.04)) == pytest.approx([0.04])
    assert holm_bonferroni(NONE).shape == (0,)


@pytest.mark.parametrize("number", [1, 2, 7, 13])
def test_holm_agrees_with_statsmodels(number, rng):
    """A few only: it collects garbage at every call, which takes longer than all the rest."""
    p_values = rng.choice([1e-8, 0.001, 0.0101, 0.02, 0.3, 1.0], number) * rng.choice([1, rng.uniform()], number)
    assert holm_bonferroni(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


@pytest.mark.parametrize(
    ("num_first", "num_second", "num_tests", "expected"),
    [
        (5, 5, 7, 2 / 252 * 7),  # 0.0556: 5 seeds are too few for 8 algorithms
        (6, 6, 7, 2 / 924 * 7),  # 0.0152
        (3, 3, 1, 2 / 20),
        (3, 5, 2, 2 / 56 * 2),
        (3, 3, 13, 1),
        (1, 1, 1, 1),
    ],
)
def test_smallest_adjusted_p(num_first, num_second, num_tests, expected):
    assert smallest_adjusted_p(num_first, num_second, num_tests) == pytest.approx(expected)


def test_smallest_adjusted_p_is_that_of_samples_apart():
    for number in (2, 8, 9, 20):
        apart = mannwhitneyu(np.arange(number), 100 + np.arange(20), alternative="two-sided").pvalue
        assert smallest_adjusted_p(number, 20, 4) == pytest.approx(4 * apart)
    assert np.isnan(smallest_adjusted_p(0, 5, 3))
