"""An archive as a table for other programs."""

import csv
import io
import os
from pathlib import Path

from moqd.io.files import write_text
from moqd.runs.folder import Run


def solutions_csv(run: Run) -> str:
    """The table of `run.columns()`, a row for each archived solution."""
    columns, text = run.columns(), io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return text.getvalue()


def export_csv(run: Run, path: str | os.PathLike[str]) -> None:
    """Writes the table of `solutions_csv` to a file."""
    write_text(Path(path), solutions_csv(run))
