"""An archive as a table for other programs."""

import csv
import io
import os
from pathlib import Path

from moqd.experiment.store import Run
from moqd.files import write_text


def solutions_csv(run: Run) -> str:
    """A row for each archived solution: its cell, features, objectives (in the user's units) and preference."""
    solutions = run.solutions()
    objectives = list(run.task.objective_names)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["cell", *run.task.feature_names, *objectives, *(f"preference {name}" for name in objectives)])
    columns = zip(solutions.cell, solutions.features, solutions.objectives, solutions.preference, strict=True)
    for cell, *values in columns:
        writer.writerow([int(cell), *(repr(float(value)) for part in values for value in part)])
    return text.getvalue()


def export_csv(run: Run, path: str | os.PathLike[str]) -> None:
    """Writes that table to a file."""
    write_text(Path(path), solutions_csv(run))
