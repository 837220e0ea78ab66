"""The statistics of a study: how a metric is spread over seeds, and whether two algorithms differ in it.

A sample is the values of a metric, one per seed, all finite. What cannot be said of an empty sample is nan.
"""

import numpy as np
from jaxtyping import Float
from scipy import stats

Sample = Float[np.ndarray, "_"]

QUARTERS = (0.25, 0.5, 0.75)
TRIMMED = 0.25
"""The share of a sample that the interquartile mean leaves out at either end."""
CONFIDENCE = 0.95
RESAMPLES = 5000


def quartiles(sample: Sample) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper quartile, by linear interpolation."""
    lower, median, upper = np.quantile(sample, QUARTERS).tolist() if len(sample) else [float("nan")] * 3
    return lower, median, upper


def column_quartiles(table: Float[np.ndarray, "seeds columns"]) -> Float[np.ndarray, "3 columns"]:
    """The quartiles of each column, whose values that are not finite are left out."""
    known = np.isfinite(table)
    whole = np.all(known, axis=0) & (len(table) > 0)
    found = np.empty((len(QUARTERS), table.shape[1]))
    if np.any(whole):
        found[:, whole] = np.quantile(table[:, whole], QUARTERS, axis=0)
    for column in np.flatnonzero(~whole):
        found[:, column] = quartiles(table[known[:, column], column])
    return found


def interquartile_mean(sample: Sample) -> float:
    """The mean of the middle half: a quarter of the values, rounded down, is left out at either end."""
    return float(stats.trim_mean(sample, TRIMMED)) if len(sample) else float("nan")


def interquartile_mean_interval(sample: Sample) -> tuple[float, float]:
    """The ends of its confidence interval, by the percentile bootstrap; nan for fewer than two values.

    Always drawn from the same seed, and from the sample in order, so that the same values have the same interval.
    """
    if len(sample) < 2:
        return float("nan"), float("nan")
    drawn = stats.bootstrap(
        (np.sort(sample),),
        lambda resamples, axis: stats.trim_mean(resamples, TRIMMED, axis=axis),
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    low, high = drawn.confidence_interval
    return float(low), float(high)


def mann_whitney(first: Sample, second: Sample) -> float:
    """The p value of the two-sided Mann-Whitney U test, for samples that are not paired.

    As SciPy chooses: exact where one of the samples has at most 8 values and none are equal, else the normal
    approximation, which corrects for ties and for continuity.
    """
    if not len(first) or not len(second):
        return float("nan")
    if np.ptp(np.concatenate([first, second])) == 0:
        return 1.0
    return float(stats.mannwhitneyu(first, second, alternative="two-sided").pvalue)


def effect_size(first: Sample, second: Sample) -> float:
    """The share of pairs, one value from each sample, in which that of the first is greater; ties count half."""
    if not len(first) or not len(second):
        return float("nan")
    return float(np.mean((np.sign(first[:, None] - second) + 1) / 2))


def holm_bonferroni(p_values: Sample) -> Sample:
    """The p values of a family of tests, raised so that a level is the chance of any false finding (Holm, 1979).

    The smallest is multiplied by the number of tests, the next by one less, and so on; none becomes more than 1, or
    less than what a smaller one becomes.
    """
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.maximum.accumulate(np.minimum(factors * p_values[order], 1))
    return adjusted


def smallest_adjusted_p(num_first: int, num_second: int, num_tests: int) -> float:
    """The p value of two samples of these sizes that are fully apart, if it is the smallest of so many tests, adjusted.

    With too few seeds it is above the level of significance, whatever the values.
    """
    p_value = mann_whitney(np.arange(float(num_first)), num_first + np.arange(float(num_second)))
    return float(np.minimum(num_tests * p_value, 1))
