"""What learning costs: seconds per iteration of its two parts, for the algorithms that learn."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from moqd.plots.panels import SMALL, nothing_in, shared_legend, small_panel, wrapped
from moqd.plots.style import Styles, algorithm_styles, task_title, tasks_in_order
from moqd.study.analysis import wall_clock_table
from moqd.study.summaries import Results

PARTS = {"policy_gradient_variation": "policy-gradient variation", "training": "training of actors and critics"}
GROUP = 0.95
"""Minimum width of the bars of a task, in inches."""


@rc_context(SMALL)
def wall_clock_figure(results: Results, algorithms: Sequence[str]) -> Figure:
    """A panel for each part, in which every task has a bar for each algorithm that was timed."""
    rows = [row for row in wall_clock_table(results).rows if row[1] in algorithms and row[2] in PARTS]
    tasks = [task for task in tasks_in_order(results.study) if any(task == row[0] for row in rows)]
    every = algorithm_styles(results.study)
    styles = {label: every[label] for label in algorithms if any(label == row[1] for row in rows)}
    width = max(4.5, max(GROUP, 0.16 * len(styles) + 0.2) * len(tasks) + 0.6)
    figure = Figure(figsize=(width, 3.6), layout="constrained")
    shared_legend(figure, {label: Patch(**style.of_area) for label, style in styles.items()})
    axes = figure.subplots(len(PARTS), 1, sharex=True)
    for ax, (name, title) in zip(axes, PARTS.items(), strict=True):
        bars(ax, {(task, label): seconds for task, label, part, *seconds in rows if part == name}, tasks, styles)
        ax.set_title(title)
    if rows:
        figure.supylabel("seconds per iteration", fontsize=SMALL["axes.labelsize"])
    return figure


def bars(ax: Axes, timed: Mapping[tuple[str, str], Sequence[float]], tasks: Sequence[str], styles: Styles) -> None:
    """Draws medians as bars and quartiles as whiskers, by task and algorithm, with a gap where nothing was timed."""
    small_panel(ax)
    if not timed:
        nothing_in(ax, "no algorithm that learns was timed")
        return
    ax.grid(visible=False, axis="x")
    ax.set_xticks(range(len(tasks)), [wrapped(task_title(task), GROUP) for task in tasks])
    ax.tick_params(axis="x", length=0)
    middle, half = (len(tasks) - 1) / 2, max(len(tasks), 3) / 2
    ax.set_xlim(middle - half, middle + half)
    width, whiskers = 0.8 / max(len(styles), 3), {"elinewidth": 0.8, "capsize": 1.5}
    for i, (label, style) in enumerate(styles.items()):
        there = [place for place, task in enumerate(tasks) if (task, label) in timed]
        seconds = np.array([timed[tasks[place], label] for place in there]).reshape(-1, 3)
        around = np.abs(seconds[:, 1:] - seconds[:, :1]).T
        places = np.array(there, float) + (i - (len(styles) - 1) / 2) * width
        ax.bar(places, seconds[:, 0], width, yerr=around, error_kw=whiskers, **style.of_area)
