"""The notebooks run, cell by cell, and are what Jupyter opens."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import notebooks  # noqa: E402

PATHS = sorted(notebooks.FOLDER.glob("*.py"))
QUICK = ("own_design_problem",)


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow, id=path.stem) for path in PATHS]
)
def test_notebooks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace = {"__name__": "__main__"}
    for kind, text in notebooks.cells_of(path.read_text()):
        if kind == "code":
            code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
            *before, last = re.split(r"\n(?=[^\s)\]}])", code)
            exec("\n".join(before), namespace)
            try:
                shown = eval(last, namespace)  # what a notebook would show
            except SyntaxError:
                exec(last, namespace)
            else:
                if hasattr(shown, "_repr_html_"):
                    assert "<" in shown._repr_html_()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_they_are_notebooks(path):
    cells = notebooks.cells_of(path.read_text())
    made = json.loads(notebooks.notebook(cells))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert cells[0].kind == "markdown"
    assert cells[0].text.startswith("# ")
    assert any(cell.text.startswith("%pip install") for cell in cells)
    assert len({cell["id"] for cell in made["cells"]}) == len(cells)
    joined = ["".join(cell["source"]) for cell in made["cells"]]
    assert not any(line.startswith("# %%") for text in joined for line in text.splitlines())
    page = notebooks.page(path.stem, cells)
    assert page.count("```python") == sum(cell.kind == "code" for cell in cells)
