import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from moqd.algorithms import ALGORITHMS
from moqd.plots.panels import SMALL, nothing_in, panel_width, shared_legend, short_number, small_panel, wrapped
from tests.plots.made import assert_readable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.1 + 0.2, "0.3"),
        (1, "1"),
        (-12.5, "\N{MINUS SIGN}12.5"),
        (999, "999"),
        (1500, "1.5k"),
        (-2e6, "\N{MINUS SIGN}2M"),
        (3e9, "3G"),
        (2.5e13, "2.5e13"),
        (0.001, "0.001"),
        (3 * 1e-4, "3e\N{MINUS SIGN}4"),  # 3.0000000000000003e-4
        (7.5e-4, "7.5e\N{MINUS SIGN}4"),
    ],
)
def test_short_numbers(value, text):
    assert short_number(value) == text


@pytest.mark.parametrize("width", [2.0, 4.6, 10.0])
@pytest.mark.parametrize("labels", [["mome-p2c"], list(ALGORITHMS), ["a", "long_$_" * 12]])
def test_the_legend_has_room(width, labels):
    with rc_context(SMALL):
        figure = Figure(figsize=(width, 5), layout="constrained")
        shared_legend(figure, {label: Line2D([], []) for label in labels})
    figure.subplots(2, 1)
    assert_readable(figure)
    (legend,) = figure.legends
    assert len(legend.get_texts()) == len(labels)
    # Above all panels, and nothing of it beyond the figure.
    box = legend.get_window_extent()
    assert box.y0 >= max(ax.get_window_extent().y1 for ax in figure.axes)
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_no_algorithm_no_legend():
    figure = Figure()
    shared_legend(figure, {})
    assert not figure.legends


def test_columns_share_a_page_between_the_least_and_the_most():
    # 10 / 5 = 2 inches; 10 / 20 = 0.5 is too narrow; 10 / 1 = 10 is too wide.
    assert [panel_width(n, least=1.5, most=4.0, page=10) for n in (5, 20, 1)] == [2.0, 1.5, 4.0]


def test_a_panel_with_nothing_has_no_numbers():
    figure = Figure()
    ax = figure.subplots()
    small_panel(ax)
    nothing_in(ax, "nothing here")
    figure.draw_without_rendering()
    shown = [label.get_visible() for axis in (ax.xaxis, ax.yaxis) for label in axis.get_majorticklabels()]
    assert not any(shown)
    assert [text.get_text() for text in ax.texts] == ["nothing here"]


def test_wrapped_text_fits_and_holds_no_formula():
    with rc_context(SMALL):
        figure = Figure(figsize=(5, 5))
        text = figure.text(0, 0, wrapped("front left foot contact and whatever else there is " * 3, 2.0))
    figure.draw_without_rendering()
    assert text.get_window_extent().width / figure.dpi <= 2.0 * 1.05
    assert wrapped("a$b$c", 5) == r"a\$b\$c"
    assert np.all([len(line) <= 16 for line in wrapped("x" * 50, 1.0).split("\n")])  # 1 inch / 0.062 = 16 characters
