"""How algorithms compare over evaluations and over time: the median over seeds, with quartiles, by metric and task."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from moqd.core.metrics import METRICS, OVER_TIME
from moqd.plots.panels import NO_RESULT, SMALL, metric_panels, nothing_in, small_panel, wrapped
from moqd.plots.style import Styles, algorithm_styles
from moqd.study.analysis import Curve, curve
from moqd.study.summaries import Results

HEIGHT = 1.3


@rc_context(SMALL)
def comparison_figure(results: Results, algorithms: Sequence[str], over: str = "evaluations") -> Figure:
    """A row for each metric, a column for each task; `over` evaluations or seconds."""
    styles = algorithm_styles(results.study)
    handles = {label: Line2D([], [], **styles[label].of_line) for label in algorithms}
    labels = [wrapped(METRICS[metric].label, HEIGHT) for metric in OVER_TIME]
    figure, tasks, columns = metric_panels(results, labels, handles, height=HEIGHT)
    for task, column in zip(tasks, columns, strict=True):
        found = {label: results.of(task, label) for label in algorithms}
        for ax, metric in zip(column, OVER_TIME, strict=True):
            curves(ax, {label: curve(runs, metric, over) for label, runs in found.items() if runs}, styles)
        if any(found.values()):
            column[-1].set_xlabel(over)
    return figure


def curves(ax: Axes, found: Mapping[str, Curve], styles: Styles) -> None:
    """Draws the curves of one metric on one task, by algorithm."""
    small_panel(ax)
    for label, (at, median, lower, upper) in found.items():
        style = styles[label]
        ax.fill_between(at, lower, upper, color=style.colour, alpha=0.18, linewidth=0)
        alone = np.isfinite(median).sum() == 1  # one point makes no line
        ax.plot(at, median, **style.of_line | (style.of_marker if alone else {}), markersize=3)
    if not any(np.isfinite(one.median).any() for one in found.values()):
        nothing_in(ax, "no value" if found else NO_RESULT)
