"""The archives of a study side by side: tasks by algorithms, the hypervolume of every cell on one scale per task."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moqd.core.archive import Archive
from moqd.core.metrics import cell_hypervolumes
from moqd.plots import panels
from moqd.plots.archive_map import cells
from moqd.plots.style import QUANTITY, display_name, task_title, tasks_in_order
from moqd.study.analysis import representative
from moqd.study.summaries import Result, Results
from moqd.tasks import Task

Map = tuple[Archive, Float[np.ndarray, "cells"]]
"""An archive, and the hypervolume of each of its cells."""
LEFT, GAP, RIGHT, LINE, BELOW = 0.45, 0.1, 0.9, 0.145, 0.28
"""In inches: left of the panels, between two panels, right of them for the colour bar, a line of text, below a row."""
LEAST_WIDTH = 4.6


class Sheet(NamedTuple):
    """A figure with positions in inches from the left and from the top."""

    figure: Figure
    width: float
    height: float

    def write(self, x: float, y: float, text: str, **style: Any) -> None:
        """The first line starts at (x, y); the others follow below, with equal heights."""
        for i, line in enumerate(text.split("\n")):
            self.figure.text(x / self.width, 1 - (y + i * LINE) / self.height, line, **style)

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """With the upper left corner at (x, y)."""
        bottom = 1 - (y + height) / self.height
        return self.figure.add_axes((x / self.width, bottom, width / self.width, height / self.height))


@rc_context(panels.SMALL)
def archives_figure(results: Results, algorithms: Sequence[str]) -> Figure:
    """A row for each task, a column for each algorithm: the archive of the seed with the median MOQD score."""
    tasks = {name: results.tasks[name] for name in tasks_in_order(results.study)}
    side = panels.panel_width(len(algorithms), least=0.95, most=1.7)
    lefts = [LEFT + i * (side + GAP) for i in range(len(algorithms))]
    width = max(LEAST_WIDTH, lefts[-1] + side + RIGHT)
    names = [panels.wrapped(display_name(label), side) for label in algorithms]
    titles = [panels.wrapped(task_title(name), 1.5) for name in tasks]
    indent = 1.35 * panels.CHARACTER * max(len(line) for title in titles for line in title.split("\n"))
    captions = [panels.wrapped(_caption(task), width - LEFT - indent - 0.1) for task in tasks.values()]
    above = LINE * max(map(_num_lines, names)) + 0.15
    texts = [LINE * max(map(_num_lines, both)) + 0.12 for both in zip(titles, captions, strict=True)]
    heights = [side if task.num_features else 2.5 * LINE for task in tasks.values()]
    rows = [text + height + BELOW for text, height in zip(texts, heights, strict=True)]
    height = above + sum(rows)
    sheet = Sheet(Figure(figsize=(width, height)), width, height)
    for left, name in zip(lefts, names, strict=True):
        from_below = above - LINE * _num_lines(name)
        sheet.write(left + side / 2, from_below + 0.05, name, ha="center", size=panels.SMALL["axes.titlesize"])
    for i, (name, task) in enumerate(tasks.items()):
        top = above + sum(rows[:i])
        sheet.write(LEFT, top + LINE, titles[i], weight="bold")
        sheet.write(LEFT + indent, top + LINE, captions[i], color="0.25")
        axes = [sheet.axes(left, top + texts[i], side, heights[i]) for left in lefts]
        beside = sheet.axes(lefts[-1] + side + GAP, top + texts[i], 0.1, heights[i])
        archive_row(axes, beside, [_map(results.of(name, label)) for label in algorithms], task)
    return sheet.figure


def archive_row(axes: Sequence[Axes], beside: Axes, maps: Sequence[Map | None], task: Task) -> None:
    """Draws a map of one task into each of the axes, all on one scale; the colour bar goes into `beside`."""
    values = np.concatenate([np.zeros(0), *(one[1][np.any(one[0].valid, axis=1)] for one in maps if one is not None)])
    norm = Normalize(values.min(), values.max()) if values.size else Normalize(0, 1)
    for ax, one in zip(axes, maps, strict=True):
        panels.small_panel(ax)
        ax.grid(visible=False)
        if one is None:
            panels.nothing_in(ax, panels.NO_RESULT.replace(" ", "\n", 1))
        elif not np.any(one[0].valid):
            panels.nothing_in(ax, "the archive\nis empty")
        elif task.num_features == 0:
            panels.nothing_in(ax, panels.short_number(float(f"{one[1][0]:.4g}")))
        else:
            cells(ax, *one, norm=norm, fine=True)
        if values.size:
            _same_frame(ax, task, values.max(), numbered=ax is axes[0])
    if values.size and task.num_features > 1:
        bar = beside.figure.colorbar(
            ScalarMappable(norm, QUANTITY), cax=beside, label="hypervolume", ticks=MaxNLocator(4)
        )
        bar.ax.yaxis.set_major_formatter(panels.short_number)
        bar.ax.tick_params(labelsize=panels.TICK_SIZE, length=2.5)
    else:
        beside.set_axis_off()


def _same_frame(ax: Axes, task: Task, highest: float, *, numbered: bool) -> None:
    """The panels of a task with one or two features have the same axes; only the first has numbers."""
    if task.num_features not in (1, 2):
        return
    ax.set_xlim(*task.feature_bounds[0])
    ax.set_ylim(*task.feature_bounds[1] if task.num_features == 2 else (0, 1.05 * highest or 1))
    ax.xaxis.set_major_locator(MaxNLocator(2))
    ax.yaxis.set_major_locator(MaxNLocator(2 if task.num_features == 2 else 4))
    ax.tick_params(labelbottom=numbered, labelleft=numbered)


def _map(runs: Sequence[Result]) -> Map | None:
    """The map of the representative run, if there is a run."""
    if not runs:
        return None
    run = representative(runs)
    return run.archive, cell_hypervolumes(run.archive, run.reference_point)


def _num_lines(text: str) -> int:
    return 1 + text.count("\n")


def _caption(task: Task) -> str:
    """What the row of a task shows."""
    names, units = list(task.feature_names), {task.units.get(name) for name in task.feature_names}
    unit = next(iter(units)) if len(units) == 1 else None
    if unit is None:
        names = [task.label(name) for name in names]
    ending = f" ({unit})" if unit else ""
    if not names:
        return "no features, so the archive is one cell: its hypervolume"
    if len(names) == 1:
        return f"hypervolume of every cell over {names[0]}{ending}; grey: empty cell"
    if len(names) == 2:
        return f"across: {names[0]}, up: {names[1]}{ending}; grey: empty cell"
    ends = [f"{panels.short_number(low)} to {panels.short_number(high)}" for low, high in task.feature_bounds]
    if len(set(ends)) > 1:
        names = [f"{name}, {end}" for name, end in zip(names, ends, strict=True)]
    else:
        ending += f", each {ends[0]}"
    return f"a line through the centre of every occupied cell; axes from left: {'; '.join(names)}{ending}"
