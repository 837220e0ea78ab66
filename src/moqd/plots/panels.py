"""Figures of many small panels: their text, their numbers, and the one legend that they share."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from moqd.plots.style import display_name, note, plain, task_title, tasks_in_order
from moqd.study.summaries import Results

SMALL: dict[Any, float] = {"font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "axes.labelpad": 3}
"""Text sizes for `matplotlib.rc_context`; `small_panel` sets those of ticks, which matplotlib creates late."""
TICK_SIZE = 7
CHARACTER = 0.062
"""Average width of a character of size 8, in inches."""
NO_RESULT = "no finished run"


def metric_panels(
    results: Results, labels: Sequence[str], handles: Mapping[str, Artist], *, height: float, least: float = 1.6
) -> tuple[Figure, list[str], Any]:
    """A figure with a row for each label and a column for each task, the tasks, and the axes of each.

    A row is `height` inches high, and a column at least `least` inches wide.
    """
    tasks = tasks_in_order(results.study)
    width = panel_width(len(tasks), least=least)
    figure = Figure(figsize=(width * len(tasks) + 0.3, height * len(labels) + 0.7), layout="constrained")
    shared_legend(figure, handles)
    axes = figure.subplots(len(labels), len(tasks), squeeze=False, sharex="col")
    for ax, task in zip(axes[0], tasks, strict=True):
        ax.set_title(wrapped(task_title(task), width))
    for ax, label in zip(axes[:, 0], labels, strict=True):
        ax.set_ylabel(label)
    figure.align_ylabels(axes[:, 0])
    return figure, tasks, axes.T


def shared_legend(figure: Figure, handles: Mapping[str, Artist]) -> None:
    """One legend above all panels, by label of the algorithm, in as few rows as there is room for."""
    if not handles:
        return
    room = min(30 * CHARACTER, figure.get_figwidth() - 0.6)
    names = [wrapped(display_name(label), room) for label in handles]
    longest = max(len(line) for name in names for line in name.split("\n"))
    at_most = max(1, int(figure.get_figwidth() / (longest * CHARACTER + 0.5)))
    num_rows = math.ceil(len(names) / at_most)
    num_columns = math.ceil(len(names) / num_rows)
    style: dict[str, Any] = {"loc": "outside upper center", "frameon": False, "handlelength": 2.6, "columnspacing": 1.4}
    figure.legend(list(handles.values()), names, ncols=num_columns, **style)


def small_panel(ax: Axes) -> None:
    """Few and short numbers, a light grid, and a frame that is open on the right and at the top."""
    ax.tick_params(labelsize=TICK_SIZE, length=2.5, pad=2)
    for axis, most in ((ax.xaxis, 4), (ax.yaxis, 5)):
        axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(short_number)
    ax.grid(color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def nothing_in(ax: Axes, text: str) -> None:
    """A panel that says why it is empty, without numbers on its axes."""
    note(ax, text)
    ax.tick_params(bottom=False, left=False, labelbottom=False, labelleft=False)
    ax.grid(visible=False)
    ax.spines[:].set(visible=True, color="0.8")


def panel_width(num_columns: int, *, least: float, most: float = 4.0, page: float = 10.0) -> float:
    """In inches: the columns share the width of a page, within limits."""
    return min(most, max(least, page / num_columns))


def wrapped(text: str, inches: float) -> str:
    """The text in lines of at most that width."""
    return plain(textwrap.fill(text, max(6, int(inches / CHARACTER))))


def short_number(value: float, _: float | None = None) -> str:
    """A short number, also as the formatter of an axis: 0.25, 12, 1.5k, 3M, 2e-5."""
    size = abs(value)
    if 1e3 <= size < 1e12:
        return EngFormatter(sep="")(value)
    if 1e-3 <= size < 1e3 or size == 0:
        text = f"{value:.6g}"
    else:
        digits, exponent = f"{value:.3e}".split("e")
        text = f"{float(digits):g}e{int(exponent)}"
    return text.replace("-", "\N{MINUS SIGN}")
