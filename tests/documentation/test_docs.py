"""What the documentation shows is run: every Python block, file by file, every example; and every command is one."""

import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import moqd.cli.explore
import moqd.cli.main
import moqd.cli.pick
import moqd.cli.study
from benchmarks import evidence
from moqd.cli.main import COMMANDS, main
from moqd.study.file import read_study

ROOT = Path(__file__).parent.parent.parent
ELSEWHERE = ("explorer.md",)  # which is about a run: tests/explorer has one
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [page for page in TEXTS if "import moqd" in page.read_text() and page.name not in ELSEWHERE]
QUICK = ("README.md", "skeleton.py")
"""What a reader tries first; each is a process of its own that compiles everything."""
EXAMPLES = [*sorted((ROOT / "examples").glob("*.py")), ROOT / "docs" / "skeleton.py"]


def run_in(folder: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if page.name in QUICK else pytest.mark.slow, id=page.name) for page in PAGES],
)
def test_pages_run(page, tmp_path):
    run_in(tmp_path, "\n".join(blocks(page, "python")))


def test_every_block_is_of_a_kind_that_is_tested():
    for page in TEXTS:
        kinds = set(re.findall(r"^```(\w*)\n(?:.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))
        assert kinds <= {"python", "sh", "toml", "", "html"}, page
        assert page in PAGES or page.name in ELSEWHERE or not blocks(page, "python"), page


def test_the_shortest_program_is_short():
    (program,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in program.splitlines() if line.strip()]) <= 12


COMMAND_LINES = sorted(
    {
        (page.name, match.group(1))
        for page in TEXTS
        for block in blocks(page, "sh")
        for match in re.finditer(r"^(?:\S+/)?moqd (.*?)(?:\s+#.*)?$", block, re.MULTILINE)
    }
)


class _ParsedError(Exception):
    """The command was understood; it need not be carried out."""


@pytest.mark.parametrize(("page", "line"), COMMAND_LINES)
def test_every_command_is_one(page, line, monkeypatch, tmp_path):
    """Its arguments are understood, up to where it would load or run something."""

    def parsed(*_, **__):
        raise _ParsedError

    monkeypatch.chdir(tmp_path)
    for module, names in (
        (moqd.cli.main, ("make_task", "read_config", "load_run", "is_study")),
        (moqd.cli.explore, ("load_run",)),
        (moqd.cli.pick, ("load_run",)),
        (moqd.cli.study, ("read_study", "conduct", "write_study", "stored_study")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, parsed, raising=False)
    words = shlex.split(line)
    assert words[0] in COMMANDS, line
    own = [word for word in words if word.startswith("--task") or ".py:" in word]
    if own:  # a file that is the reader's
        monkeypatch.setattr(moqd.cli.main, "load_own", lambda *_, **__: None)
        monkeypatch.setitem(moqd.cli.main.OWN, "arm-2", None)
    with suppress(_ParsedError):
        assert main(words) == 0, line


def test_the_study_of_the_guide_is_one(tmp_path):
    (example,) = blocks(ROOT / "docs" / "studies.md", "toml")
    file = tmp_path / "study.toml"
    file.write_text(example)
    study = read_study(file)
    assert (study.name, study.reference, len(study.runs)) == ("gradient-steps", "mome-p2c", 3 * (3 + 6))
    assert {run.settings["algorithm"].get("pg_steps") for run in study.runs} == {100, 200, None}


@pytest.mark.parametrize(
    "example",
    [pytest.param(file, marks=() if file.name in QUICK else pytest.mark.slow, id=file.name) for file in EXAMPLES],
)
def test_examples_run(example, tmp_path):
    run_in(tmp_path, example.read_text())


@pytest.mark.parametrize("path", evidence.DOCUMENTS, ids=lambda path: path.name)
def test_tables_of_evidence_are_those_of_the_results(path):
    text = path.read_text()
    assert "made by python -m benchmarks.evidence" in text
    assert evidence.filled(text) == text


def test_studies_of_the_results_can_be_read():
    for path in sorted((ROOT / "results").glob("*.toml")):
        assert read_study(path).name == path.stem
