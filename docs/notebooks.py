"""The notebooks: kept as Python files with cells marked by `# %%`, as editors know them, and made into .ipynb here.

    .venv/bin/python docs/notebooks.py FOLDER

writes them into a folder, for Jupyter and Colab.
"""

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "notebooks"
MARK = re.compile(r"^# %%(.*)\n", re.MULTILINE)


class Cell(NamedTuple):
    kind: str
    """markdown or code."""
    text: str


def cells_of(source: str) -> list[Cell]:
    _, *parts = MARK.split(source)
    cells = []
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        kind = "markdown" if "[markdown]" in title else "code"
        prefix = "# " if kind == "markdown" else "# (?=%)"  # a magic is a comment in the Python file
        text = re.sub(rf"^(?:{prefix}|#$)" if kind == "markdown" else f"^{prefix}", "", body, flags=re.MULTILINE)
        cells.append(Cell(kind, text.strip("\n")))
    return cells


def notebook(cells: list[Cell]) -> str:
    """As nbformat 4.5 describes it, without outputs."""
    made = []
    for i, (kind, text) in enumerate(cells):
        cell = {"cell_type": kind, "id": f"cell-{i}", "metadata": {}, "source": text.splitlines(keepends=True)}
        made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def page(name: str, cells: list[Cell]) -> str:
    """As a page of the site, below its title a link to the notebook."""
    (_, first), *rest = cells
    title, _, text = first.partition("\n")
    link = f"[Download as a notebook]({name}.ipynb) for Jupyter or Colab."
    blocks = [cell.text if cell.kind == "markdown" else f"```python\n{cell.text}\n```" for cell in rest]
    return "\n\n".join([title, text.strip("\n"), link, *blocks]) + "\n"


def write_all(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(FOLDER.glob("*.py")):
        (folder / f"{path.stem}.ipynb").write_text(notebook(cells_of(path.read_text())))


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
