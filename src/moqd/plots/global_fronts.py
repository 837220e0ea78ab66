"""The global fronts of algorithms in one picture per task, in the user's units."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from moqd.core.metrics import global_front, non_dominated
from moqd.plots.panels import NO_RESULT, SMALL, TICK_SIZE, nothing_in, panel_width, shared_legend, small_panel, wrapped
from moqd.plots.parallel_axes import label_columns, parallel_axes
from moqd.plots.style import Styles, algorithm_styles, objective_label, task_title, tasks_in_order
from moqd.study.analysis import representative
from moqd.study.summaries import Results
from moqd.tasks import Task

Fronts = Mapping[str, Float[np.ndarray, "_ objectives"]]
"""The front of each algorithm; maximised."""
PAIRS = 3
"""The pairs of three objectives: one panel each, side by side."""
ACROSS = 4
HEIGHT = 2.3


@rc_context(SMALL)
def global_fronts_figure(results: Results, algorithms: Sequence[str]) -> Figure:
    """A panel for each task; with three objectives one for every pair, with more one wide panel."""
    tasks, styles = tasks_in_order(results.study), algorithm_styles(results.study)
    narrow = [task for task in tasks if results.tasks[task].num_objectives < 3]
    wide = [task for task in tasks if task not in narrow]
    num_columns = max(min(len(narrow), ACROSS), PAIRS if wide else 1)
    num_rows = -(-len(narrow) // num_columns) + len(wide)
    width = panel_width(num_columns, least=2.4, most=3.6)
    figure = Figure(figsize=(width * num_columns, HEIGHT * num_rows + 0.5), layout="constrained")
    looks = {label: styles[label].of_line | styles[label].of_marker for label in algorithms}
    shared_legend(figure, {label: Line2D([], [], markersize=4, **look) for label, look in looks.items()})
    grid = figure.add_gridspec(num_rows, num_columns)
    places = {task: [grid[divmod(i, num_columns)]] for i, task in enumerate(narrow)}
    for i, task in enumerate(wide, num_rows - len(wide)):
        in_pairs = results.tasks[task].num_objectives == 3
        places[task] = [grid[i, j] for j in range(PAIRS)] if in_pairs else [grid[i, :PAIRS]]
    for task, own in places.items():
        axes = [figure.add_subplot(place) for place in own]
        axes[len(axes) // 2].set_title(wrapped(task_title(task), width))
        found = {label: results.of(task, label) for label in algorithms}
        fronts = {label: global_front(representative(runs).archive) for label, runs in found.items() if runs}
        fronts_panel(axes, fronts, results.tasks[task], styles)
    return figure


def fronts_panel(axes: Sequence[Axes], fronts: Fronts, task: Task, styles: Styles) -> None:
    """Draws the fronts of one task: into three axes if it has three objectives, into one otherwise."""
    known = {label: front for label, front in fronts.items() if len(front)}
    for ax in axes:
        small_panel(ax)
        if not known:
            nothing_in(ax, "the archives are empty" if fronts else NO_RESULT)
    if not known:
        return
    if task.num_objectives == 1:
        _best(axes[0], known, task, styles)
    elif task.num_objectives <= 3:
        for ax, pair in zip(axes, combinations(range(task.num_objectives), 2), strict=True):
            _plane(ax, known, pair, task, styles)
    else:
        _parallel(axes[0], known, task, styles)


def _best(ax: Axes, fronts: Fronts, task: Task, styles: Styles) -> None:
    for place, (label, front) in enumerate(fronts.items()):
        ax.plot(place, front[0, 0] * task.direction[0], **styles[label].of_line | styles[label].of_marker)
    ax.margins(x=0.2)
    ax.set(xticks=[], ylabel=objective_label(task, task.objective_names[0]))


def _plane(ax: Axes, fronts: Fronts, pair: tuple[int, int], task: Task, styles: Styles) -> None:
    """All points of a front, and a line through those that are not dominated in these two objectives."""
    for label, front in fronts.items():
        points = front[:, pair]
        style = styles[label]
        user = points * task.direction[list(pair)]
        ax.plot(*user.T, linestyle="", marker=".", markersize=2, color=style.colour, alpha=0.5, markeredgewidth=0)
        edge = user[non_dominated(points)]
        edge = edge[np.argsort(edge[:, 0])]
        marked = np.unique(np.linspace(0, len(edge) - 1, 9).astype(int)).tolist()
        ax.plot(*edge.T, markersize=3.5, markevery=marked, **style.of_line | style.of_marker)
    across, up = (task.objective_names[i] for i in pair)
    ax.set(xlabel=objective_label(task, across, width=40), ylabel=objective_label(task, up, width=30))


def _parallel(ax: Axes, fronts: Fronts, task: Task, styles: Styles) -> None:
    everything = np.concatenate(list(fronts.values())) * task.direction
    low, high = everything.min(axis=0), everything.max(axis=0)
    for label in sorted(fronts, key=lambda label: styles[label].stands_out):
        front = fronts[label]
        alpha = min(1.0, max(0.1, 40 / len(front)))
        style = {"colors": styles[label].colour, "linestyles": styles[label].line, "linewidths": 0.6, "alpha": alpha}
        parallel_axes(ax, front * task.direction, low, high, rasterized=True, **style)
    labels = [objective_label(task, name, width=18) for name in task.objective_names]
    label_columns(ax, low, high, labels, fontsize=TICK_SIZE)
