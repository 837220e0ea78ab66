"""Imports point one way, and only declared dependencies are imported."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "moqd").rglob("*.py"))
LAYERS = [
    {"errors", "types", "networks", "devices"},
    {"pareto", "tessellation", "preferences", "options"},
    {"archive", "variation", "rl", "tasks"},
    {"algorithms"},
    {"metrics", "experiment"},
    {"plots", "explorer"},
    {"cli"},
]
PACKAGES = {"sklearn": "scikit-learn"}
COMPANIONS = {"mujoco-mjx"}
"""Not imported by us, but by Brax; pinned to the version of mujoco."""


def layer_of(module: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if module in layer)


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "moqd" else [node.module]
            found |= set(names)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_imports_point_one_way(path):
    module = path.relative_to(ROOT / "src" / "moqd").parts[0].removesuffix(".py")
    if module == "__init__":
        return
    for name in imports_of(path):
        if name.startswith("moqd."):
            assert layer_of(name.split(".")[1]) <= layer_of(module), f"{path} imports {name}"


def test_dependencies_are_declared_and_used():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split("[>=]", requirement)[0] for requirement in project["dependencies"]} - COMPANIONS
    used = {name.split(".")[0] for path in SOURCES for name in imports_of(path)}
    foreign = used - set(sys.stdlib_module_names) - {"moqd"}
    assert {PACKAGES.get(name, name) for name in foreign} == declared


def test_mujoco_and_mjx_are_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(requirement.split("==") for requirement in project["dependencies"] if "mujoco" in requirement)
    assert pinned["mujoco"] == pinned["mujoco-mjx"]
    assert pinned["mujoco"].startswith("3.")


def test_only_locomotion_imports_the_simulator():
    foreign = {"brax", "mujoco", "flax", "etils"}
    importers = {path.stem for path in SOURCES if {name.split(".")[0] for name in imports_of(path)} & foreign}
    assert importers == {"locomotion"}
