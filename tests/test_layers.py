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
    {"io"},
    {"core"},
    {"variation", "rl", "tasks"},
    {"algorithms"},
    {"runs"},
    {"study"},
    {"choose", "plots"},
    {"explorer"},
    {"report"},
    {"cli"},
]
PACKAGES = {"mo_gymnasium": "mo-gymnasium", "sklearn": "scikit-learn"}
COMPANIONS = {"mujoco-mjx"}
"""Not imported by us, but by Brax; pinned to the version of mujoco."""


def layer_of(module: str) -> int:
    """Names of the public API, which only users import, are above all layers."""
    return next((i for i, layer in enumerate(LAYERS) if module in layer), len(LAYERS))


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "moqd" else [node.module]
            found |= set(names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "need":
            found.add(node.args[0].value)  # of an extra
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_imports_point_one_way(path):
    module = path.relative_to(ROOT / "src" / "moqd").parts[0].removesuffix(".py")
    if module == "__init__":
        return
    for name in imports_of(path):
        if name.startswith("moqd."):
            assert layer_of(name.split(".")[1]) <= layer_of(module), f"{path} imports {name}, which is not below it"


def test_dependencies_are_declared_and_used():
    """Those of the extras only within functions, so that moqd works without them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name_of = lambda requirement: re.split(r"[\[>=]", requirement)[0]  # noqa: E731
    declared = set(map(name_of, project["dependencies"])) - COMPANIONS
    optional = {name_of(one) for extra in project["optional-dependencies"].values() for one in extra}
    optional -= declared | COMPANIONS | {"moqd"}
    used = {name.split(".")[0] for path in SOURCES for name in imports_of(path)}
    foreign = {PACKAGES.get(name, name) for name in used - set(sys.stdlib_module_names) - {"moqd"}}
    assert foreign == declared | optional
    for path in SOURCES:
        at_once = {name.split(".")[0] for name in imported_at_once(ast.parse(path.read_text()))}
        assert not at_once & optional, f"{path} imports {at_once & optional} outside of a function"


def imported_at_once(node: ast.AST) -> set[str]:
    """What is imported when this is run, not when a function in it is called."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return set()
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {node.module or ""}
    return set().union(*map(imported_at_once, ast.iter_child_nodes(node)))


def test_mujoco_and_mjx_are_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(requirement.split("==") for requirement in project["optional-dependencies"]["robots"])
    assert pinned["mujoco"] == pinned["mujoco-mjx"]
    assert pinned["mujoco"].startswith("3.")


def test_only_locomotion_imports_the_simulator():
    def importers(*foreign):
        return {path.stem for path in SOURCES if {name.split(".")[0] for name in imports_of(path)} & set(foreign)}

    assert importers("brax", "flax", "etils") == {"locomotion"}
    assert importers("mujoco") == {"locomotion", "episode"}  # the latter for robots of Gymnasium
