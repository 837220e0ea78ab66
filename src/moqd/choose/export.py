"""An archive as a table for other programs."""

import csv
import io
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from moqd.io.files import write_text
from moqd.runs.folder import Run
from moqd.tasks import FunctionTask


def told_apart(names: Sequence[str], taken: Collection[str], kind: str) -> list[str]:
    """The names, where those that are already taken are marked by their kind: "speed (feature)"."""
    return [f"{name} ({kind})" if name in taken else name for name in names]


def solutions_csv(run: Run) -> str:
    """A row for each archived solution: its cell, features, objectives (in the user's units) and preference.

    If solutions are plain parameters, the row includes them.
    """
    solutions, task = run.solutions(), run.task
    objectives = list(task.objective_names)
    space = task.space if isinstance(task, FunctionTask) else None
    features = told_apart(task.feature_names, objectives, "feature")
    names = told_apart(() if space is None else space.names, {*task.feature_names, *objectives}, "parameter")
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["cell", *features, *objectives, *(f"preference {name}" for name in objectives), *names])
    columns = zip(solutions.cell, solutions.features, solutions.objectives, solutions.preference, strict=True)
    for row, (cell, *values) in enumerate(columns):
        parameters = {} if space is None else space.values(space.vector(solutions.genotype[row]))
        writer.writerow([int(cell), *(repr(float(value)) for part in values for value in part), *parameters.values()])
    return text.getvalue()


def export_csv(run: Run, path: str | os.PathLike[str]) -> None:
    """Writes the table of `solutions_csv` to a file."""
    write_text(Path(path), solutions_csv(run))
