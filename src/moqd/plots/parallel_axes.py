"""Parallel axes: a line for every row of a table, across a vertical axis for each column."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

LABEL_WIDTH = 18
"""Characters per line in the label of a column."""


Columns = Float[np.ndarray, "columns"]


def parallel_axes(
    ax: Axes, rows: Float[np.ndarray, "rows columns"], low: Columns, high: Columns, **style: Any
) -> LineCollection:
    """Draws the rows, every column scaled from `low` to `high`; the style is that of a LineCollection."""
    place = np.arange(len(low))
    scaled = (rows - low) / np.where(high > low, high - low, 1)
    lines = LineCollection([np.stack([place, row], axis=1) for row in scaled], **style)
    ax.add_collection(lines, autolim=False)
    ax.set(xticks=[], yticks=[], ylim=(-0.02, 1.02), xlim=(-0.1, len(place) - 0.9))
    for x in place:
        ax.axvline(float(x), color="black", linewidth=0.8, zorder=1)
    ax.spines[:].set_visible(False)
    return lines


def label_columns(ax: Axes, low: Columns, high: Columns, labels: Sequence[str], fontsize: float = 8) -> None:
    """Writes the name and range of every column below it."""
    texts = [f"{label}\n{_ends(float(a), float(b))}" for label, a, b in zip(labels, low, high, strict=True)]
    ax.set_xticks(np.arange(len(texts)), texts, fontsize=fontsize)


def width_of(num_columns: int) -> float:
    """The width in inches that the labels of so many columns need."""
    return max(5.5, 1.35 * num_columns)


def _ends(low: float, high: float) -> str:
    """With as many digits as it takes to tell them apart; a value that is negligible next to the other is 0."""
    if not high > low:
        return f"{low:.6g} to {high:.6g}"
    first, last = (math.floor(math.log10(value)) for value in (max(abs(low), abs(high)), high - low))
    digits = 3 + min(max(0, first - last), 6)
    return " to ".join(f"{round(value, 5 - last) + 0.0:.{digits}g}" for value in (low, high))
