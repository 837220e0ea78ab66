"""What the documentation shows is run: every Python block, file by file, every example; and every command is one."""

import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

import moqd
from benchmarks import evidence
from moqd.algorithms import ALGORITHMS
from moqd.cli.main import COMMANDS, main
from moqd.io.errors import AGAIN
from moqd.runs.user_code import OWN, SPECS, load_algorithm, load_task
from moqd.study.file import read_study
from moqd.tasks import TASKS

ROOT = Path(__file__).parent.parent.parent
ELSEWHERE = ("choosing.md",)  # which is about a run: tests/explorer has one
TEXTS = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").glob("**/*.md") if page.parent.name != "notebooks"),  # made for the site
]
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
"""Whose examples are small enough to be run in this process; tests/documentation/test_site.py does."""
PAGES = [
    page for page in TEXTS if "import moqd" in page.read_text() and page.name not in ELSEWHERE and page not in REFERENCE
]
NEEDED = {"coming-from.md": "ribs"}
"""What a page imports that only `make bench` installs."""
QUICK = ("README.md",)
"""What a reader tries first; each is a process of its own that compiles everything.

tests/runs/test_user_code.py runs the skeleton."""
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
    if page.name in NEEDED:
        pytest.importorskip(NEEDED[page.name])
    run_in(tmp_path, "\n".join(blocks(page, "python")))


def test_every_block_is_of_a_kind_that_is_tested():
    for page in TEXTS:
        kinds = set(re.findall(r"^```([\w{}-]*)[^\n]*\n(?:.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE))
        directives = {kind for kind in kinds if kind.startswith("{")}  # which the strict build of the site checks
        assert kinds - directives <= {"python", "sh", "toml", "", "html"}, page
        assert page in (*PAGES, *REFERENCE) or page.name in ELSEWHERE or not blocks(page, "python"), page


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
    words = shlex.split(line)
    assert words[0] in COMMANDS, line
    loading = ("load_run", "read_config", "is_study", "read_study", "execute", "write_study", "stored_study")
    module = import_module(f"moqd.cli.{words[0]}")
    for name in {*loading, "make_task"} & set(vars(module)):
        monkeypatch.setattr(module, name, parsed)
    monkeypatch.setattr("moqd.cli.look.look_at", parsed)
    own = [word for word in words if word.startswith("--task") or ".py:" in word]
    if own:  # a file that is the reader's
        monkeypatch.setattr("moqd.runs.user_code.load_task", lambda *_, **__: moqd.make_task("arm-2"))
    if "docs/skeleton.py" in line:
        (tmp_path / "docs").symlink_to(ROOT / "docs")
    known = dict(ALGORITHMS)
    try:
        with suppress(_ParsedError):
            assert main(words) == 0, line
    finally:
        ALGORITHMS.clear()
        ALGORITHMS.update(known)
        SPECS.clear()
        AGAIN.clear()


def test_the_study_of_the_guide_is_one(tmp_path):
    (example,) = blocks(ROOT / "docs" / "studies.md", "toml")
    file = tmp_path / "study.toml"
    file.write_text(example)
    study = read_study(file)
    assert (study.name, study.reference, len(study.runs)) == ("gradient-steps", "mome-p2c", 3 * (3 + 6))
    assert {run.config.algorithm.options.get("pg_steps") for run in study.runs} == {100, 200, None}


def test_the_study_of_an_algorithm_of_ones_own_is_one(tmp_path):
    (example,) = blocks(ROOT / "docs" / "writing-an-algorithm.md", "toml")
    file = tmp_path / "mine.toml"
    file.write_text(example)
    known = dict(ALGORITHMS)
    try:
        load_algorithm(f"{ROOT / 'docs' / 'skeleton.py'}:half_random")
        study = read_study(file)
    finally:
        ALGORITHMS.clear()
        ALGORITHMS.update(known)
        SPECS.clear()
        AGAIN.clear()
    assert (study.name, study.reference, len(study.runs)) == ("mine", "half-random", 3 * 6)
    assert {run.config.algorithm.options["num_cells"] for run in study.runs} == {128}
    assert {run.config.algorithm.options["front_length"] for run in study.runs} == {50}


def test_the_map_of_the_code_has_every_public_name():
    text = (ROOT / "docs" / "design.md").read_text()
    table = text[text.index("Public names, importable from `moqd`") : text.index("The four Pareto functions")]
    assert set(moqd.__all__) <= set(re.findall(r"`(\w+)`", table))


def test_the_study_of_the_tutorial_is_one(tmp_path):
    page = ROOT / "docs" / "comparing-algorithms.md"
    (example,) = blocks(page, "toml")
    (tmp_path / "compare.toml").write_text(example)
    (tmp_path / "bridge.py").write_text(blocks(page, "python")[0])
    try:
        load_task(f"{tmp_path}/bridge.py:task")
        study = read_study(tmp_path / "compare.toml")
    finally:
        OWN.pop("bridge", None)
        TASKS.pop("bridge", None)
        SPECS.clear()
        AGAIN.clear()
    assert (study.name, study.reference, len(study.runs)) == ("bridges", "mome", 24)


@pytest.mark.parametrize(
    "example",
    [pytest.param(file, marks=() if file.name in QUICK else pytest.mark.slow, id=file.name) for file in EXAMPLES],
)
def test_examples_run(example, tmp_path):
    run_in(tmp_path, example.read_text())


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow if path.name == "evidence.md" else (), id=path.name)  # all of them
        for path in evidence.DOCUMENTS
    ],
)
def test_tables_of_evidence_are_those_of_the_results(path):
    text = path.read_text()
    assert "made by python -m benchmarks.evidence" in text
    assert evidence.filled(text) == text


def test_studies_of_the_results_can_be_read():
    for path in sorted((ROOT / "results").glob("*.toml")):
        assert read_study(path).name == path.stem
