"""How evenly the final fronts are filled: a box over seeds for every algorithm, metrics by tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from moqd.core.metrics import METRICS
from moqd.plots.panels import NO_RESULT, SMALL, metric_panels, nothing_in, small_panel, wrapped
from moqd.plots.style import AlgorithmStyle, Styles, algorithm_styles
from moqd.study.analysis import final_metrics
from moqd.study.summaries import Results

ROWS = ("moqd_sparsity_score", "moqd_sparsity_occupied", "global_sparsity")
HEIGHT = 1.5
FEW = 5
"""Minimum number of boxes that a panel has room for, so that few boxes are not too wide."""
POINTS: dict[str, Any] = {"markersize": 2.4, "markeredgecolor": "black", "markeredgewidth": 0.4}
WIDE_RANGE = 40
"""The ratio of largest to smallest value from which on the axis is logarithmic."""


@rc_context(SMALL)
def sparsity_boxes_figure(results: Results, algorithms: Sequence[str]) -> Figure:
    """A row for each metric, a column for each task; lower is better in all of them."""
    styles, finals = algorithm_styles(results.study), final_metrics(results)
    handles = {label: Patch(**styles[label].of_area) for label in algorithms}
    labels = [wrapped(METRICS[metric].label, HEIGHT) + "\n(less is better)" for metric in ROWS]
    least = max(1.6, 0.14 * len(algorithms))
    figure, tasks, columns = metric_panels(results, labels, handles, height=HEIGHT, least=least)
    for task, column in zip(tasks, columns, strict=True):
        found = {
            label: [final for final in finals if (final["task"], final["algorithm"]) == (task, label)]
            for label in algorithms
        }
        for ax, metric in zip(column, ROWS, strict=True):
            boxes(ax, {label: np.array([run[metric] for run in runs], float) for label, runs in found.items()}, styles)
    return figure


def boxes(ax: Axes, values: Mapping[str, Float[np.ndarray, "seeds"]], styles: Styles) -> None:
    """Draws the median, quartiles and extremes of each algorithm, and its seeds as points, from left to right.

    One seed is a marker in the colour of its algorithm: its box would be a line without any.
    """
    small_panel(ax)
    middle, half = (len(values) - 1) / 2, max(len(values), FEW) / 2 + 0.2
    ax.set(xticks=[], xlim=(middle - half, middle + half))
    known = [(place, label, sample[np.isfinite(sample)]) for place, (label, sample) in enumerate(values.items())]
    known = [(place, label, sample) for place, label, sample in known if len(sample)]
    if not known:
        nothing_in(ax, NO_RESULT)
        return
    for place, label, sample in known:
        if len(sample) == 1:
            ax.plot(place, sample[0], linestyle="", markersize=5, zorder=4, **styles[label].of_marker)
        else:
            _box(ax, place, sample, styles[label])
    everything = np.concatenate([sample for _, _, sample in known])
    if everything.min() > 0 and everything.max() > WIDE_RANGE * everything.min():
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, 1.08 * everything.max() or 1)


def _box(ax: Axes, place: int, sample: Float[np.ndarray, "seeds"], style: AlgorithmStyle) -> None:
    """The points are coloured too, because a flat box would not show its colour."""
    edge = style.of_area["edgecolor"]
    drawn = ax.boxplot(
        sample,
        positions=[place],
        widths=0.7,
        whis=(0, 100),
        showcaps=False,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        whiskerprops={"linewidth": 0.7},
        medianprops={"color": edge, "linewidth": 1.2, "solid_capstyle": "butt"},
    )
    drawn["boxes"][0].set(**style.of_area)
    ax.plot(np.full(len(sample), place), sample, "o", color=style.colour, zorder=4, **POINTS)
