"""What the documentation shows is run: every Python block, file by file, and every example."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from moqd.experiment.study_file import read_study

ROOT = Path(__file__).parent.parent
ELSEWHERE = ("explorer.md",)  # which is about a run: tests/explorer has one
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "import moqd" in page.read_text() and page.name not in ELSEWHERE
]
SLOW = ("locomotion.md",)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run_in(folder: Path, code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in SLOW else (), id=page.name) for page in PAGES],
)
def test_pages_run(page, tmp_path):
    run_in(tmp_path, "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)))


def test_the_study_of_the_guide_is_one(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "studies.md").read_text(), re.DOTALL)
    file = tmp_path / "study.toml"
    file.write_text(example)
    study = read_study(file)
    assert (study.name, study.reference, len(study.runs)) == ("gradient-steps", "mome-p2c", 2 * 3 * 6)
    assert {run.settings["algorithm"].get("pg_steps") for run in study.runs} == {100, 200, None}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_run(example, tmp_path):
    run_in(tmp_path, example.read_text())
