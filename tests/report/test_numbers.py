"""Numbers are short, but not so short that they mislead."""

# ruff: noqa: RUF001  dashes and minus signs are what is shown

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moqd.report.numbers import Scale, duration, duration_of, probability, scale_of

NUMBERS = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-12)


@pytest.mark.parametrize(
    ("values", "unit", "shown"),
    [
        ([0.877, 1.0], "", ["0.877", "1.000"]),
        ([0.0123, 0.877], "", ["0.0123", "0.8770"]),
        ([11321.4, 9.28], "", ["11,321", "9.3"]),
        ([387412.0, -1200.5], "×10³", ["387.4", "−1.2"]),
        ([1.23456e8, 2e7], "×10⁶", ["123.5", "20.0"]),
        ([0.01234, 0.0005, 1e-9], "×10⁻³", ["12.34", "0.50", "1e−06"]),
        ([-48.51, 762.4], "", ["−48.5", "762.4"]),
        ([0.0, 0.0], "", ["0", "0"]),
        ([math.nan, 2.0, math.inf], "", ["–", "2.000", "none"]),
        ([math.nan], "", ["–"]),
    ],
)
def test_columns(values, unit, shown):
    scale = scale_of(values)
    assert scale.unit == unit
    assert [scale.show(value) for value in values] == shown


@given(st.lists(NUMBERS, min_size=1))
def test_what_is_shown_is_the_number(values):
    """To 4 digits for the largest of the column, to at least two digits for all."""
    scale = scale_of(values)
    largest = max(map(abs, values))
    for value in values:
        read = float(scale.show(value).replace("−", "-").replace(",", "")) * 10.0**scale.exponent
        assert abs(read - value) <= min(5.01e-4 * largest, 0.0501 * abs(value))
        assert len(scale.show(value)) <= 9


def test_probabilities():
    shown = {0.0496: "0.0496", 0.05: "0.05", 1.0: "1", 0.0009999: "< 0.001", 1e-12: "< 0.001", 0.001: "0.001"}
    assert {p: probability(p) for p in shown} == shown
    assert probability(math.nan) == "–"


def test_durations():
    assert [duration(seconds) for seconds in (0.0, 59.94, 60, 3599.6, 3723)] == [
        *("0.0 s", "59.9 s", "1 min 0 s", "1 h 0 min", "1 h 2 min")
    ]
    assert duration_of(30, 119) == "30.0 of 119.0 s"
    assert duration_of(30, 120) == "0.5 of 2.0 min"
    assert duration_of(3600, 9000) == "1.0 of 2.5 h"
    assert Scale(0, 3).show(1234.5) == "1,234.500"
