"""What a notebook shows of runs, archives, solutions and tasks: HTML in which all names are text."""

from base64 import b64encode
from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np

from moqd.choose.pick import Solution, ends_of_front
from moqd.core.archive import Archive
from moqd.core.metrics import METRICS, formatted
from moqd.plots.archive_map import cells
from moqd.plots.overview import overview_figure
from moqd.plots.style import InlineFigure
from moqd.runs.folder import Run
from moqd.tasks import Task

MOST_ROWS = 30
"""Rows of a table that are shown."""


def run_html(run: Run) -> str:
    """Its summary, the overview, and the ends of the global front."""
    task, solutions = run.task, run.solutions()
    last = {name: column[-1] for name, column in run.metrics.items() if len(column)}
    facts = {METRICS[name].label: formatted(name, last[name]) for name in METRICS if name in last}
    if "evaluations" in last:
        facts["evaluations"] = f"{last['evaluations']:,.0f}"
    header = ["best in", *map(task.label, (*task.objective_names, *task.feature_names)), "cell"]
    ends = [
        [name, *map(_number, (*solutions.objectives[row], *solutions.features[row])), str(solutions.cell[row])]
        for name, row in ends_of_front(task, solutions).items()
    ]
    picture = _image(overview_figure(run)) if ends else ""
    return _titled(repr(run), _table((), [*facts.items()]), picture, _table(header, ends) if ends else "")


def archive_html(archive: Archive) -> str:
    """Its size, and how many solutions every cell has."""
    num_features = archive.centroid.shape[1]
    if num_features not in (1, 2) or not np.any(archive.valid):
        return _titled(repr(archive))
    figure = InlineFigure(figsize=(4.5, 3.2), layout="constrained")
    ax = figure.subplots()
    drawn = cells(ax, archive, np.sum(np.asarray(archive.valid), axis=1).astype(float))
    ylabel = "feature 1" if num_features == 2 else "solutions"
    ax.set(title="solutions of every cell", xlabel="feature 0", ylabel=ylabel)
    if drawn is not None:
        figure.colorbar(drawn, ax=ax)
    return _titled(repr(archive), _image(figure))


def solution_html(solution: Solution) -> str:
    """All that is known of it by its names."""
    facts = {solution.task.label(name): _number(value) for name, value in solution.named.items()}
    return _titled(f"solution of {solution.task.name}, cell {solution.cell}", _table((), [*facts.items()]))


def task_html(task: Task) -> str:
    """Its objectives, features, constraints and parameters."""
    rows = [
        ("objective", task.label(name), "less is better" if name in task.minimised else "more is better")
        for name in task.objective_names
    ]
    rows += [("feature", task.label(name), extent) for name, extent in task.feature_ranges.items()]
    rows += [("constraint", task.label(name), "at most 0") for name in task.constraint_names]
    if (space := task.space) is not None:
        bounds = zip(space.names, space.bounds, strict=True)
        rows += [("parameter", task.label(name), str(bound)) for name, bound in bounds]
    return _titled(f"{type(task).__name__} {task.name}", _table(("", "name", ""), rows))


def _titled(title: str, *parts: str) -> str:
    return f"<div><p><b>{escape(title)}</b></p>{''.join(parts)}</div>"


def _table(header: Iterable[str], rows: list[Any]) -> str:
    def line(row: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(str(text))}</{tag}>' for text in row)}</tr>"

    more = [(f"... and {len(rows) - MOST_ROWS} more",)] * (len(rows) > MOST_ROWS)
    body = "".join(line(row, "td") for row in (*rows[:MOST_ROWS], *more))
    return f"<table><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


def _image(figure: InlineFigure) -> str:
    picture = b64encode(figure._repr_png_()).decode()
    return f'<img alt="the archive" style="max-width: 100%" src="data:image/png;base64,{picture}">'


def _number(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else str(value)
