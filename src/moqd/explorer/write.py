"""The page as one HTML file that needs nothing else."""

import hashlib
import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from moqd.explorer.content import content_of
from moqd.explorer.gaits import record
from moqd.io.errors import InputError, known_name
from moqd.io.files import write_text
from moqd.runs.folder import Run, checked_run

SCRIPTS = (
    "dom.js",
    "choose.js",
    "data.js",
    "colours.js",
    "parallel.js",
    "map.js",
    "scatter.js",
    "space.js",
    "front.js",
    "scene.js",
    "player.js",
    "panel.js",
    "main.js",
)
"""Our own scripts, in order; all of them share one scope."""
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; frame-src 'self'; "
    "connect-src {server}; base-uri 'none'; form-action 'none'"
)
"""What the browser allows the page: only our scripts, and no requests unless the page is served."""
EXPLORER = "explorer.html"
MEGABYTE = 1_000_000
GAITS = ("some", "all", "none")
ROBOT = 10_000
"""Bytes reserved for the shapes of a robot."""
BUDGET = 25.0
"""Default size of the file in megabytes, if possible."""


class ExplorerPage(type(Path())):  # type: ignore[misc]
    """The path of a page, which a notebook shows."""

    def _repr_html_(self) -> str | None:
        if not self.is_file():
            return None
        page = escape(self.read_text(encoding="utf-8"))
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width: 100%; height: 800px; border: 0"></iframe>'
        )


def write_explorer(
    runs: Run | Sequence[Run],
    path: str | os.PathLike[str] | None = None,
    *,
    gaits: str = "some",
    budget: float = BUDGET,
    tick: Callable[[int, int], None] = lambda run, number: None,
) -> ExplorerPage:
    """Writes the page of a run, or of several of one task; if no path is given, into the folder of the first. Returns
    its path, which a notebook shows as the page itself.

    `gaits` is "some" (of the solutions that one looks at first, within the budget in megabytes), "all" or "none".
    """
    runs = [runs] if isinstance(runs, Run | str | os.PathLike) else runs
    check_together(runs)
    if path is None and runs[0].path is not None:
        path = runs[0].path / EXPLORER
    if path is None:
        raise InputError("the run has no folder; give a path for its page.")
    write_text(Path(path), explorer_page(runs, gaits=gaits, budget=budget, tick=tick))
    return ExplorerPage(path)


def explorer_page(
    runs: Sequence[Run],
    *,
    gaits: str = "some",
    budget: float = BUDGET,
    served: bool = False,
    tick: Callable[[int, int], None] = lambda run, number: None,
) -> str:
    """The page as text."""
    check_together(runs)
    known_name("gaits", gaits, GAITS)
    title, content = f"{runs[0].task.name}: explorer", content_of(runs, served=served)
    bare = len(page_text(title, content).encode()) + ROBOT * len(runs)
    share = max(0.0, budget * MEGABYTE - bare) / len(runs)
    for i, run in enumerate(runs):
        robot, recorded = record(run, gaits, share, partial(tick, i))
        content["runs"][i] |= {"robot": robot, "gaits": recorded}
    return page_text(title, content)


def check_together(runs: Sequence[Run]) -> None:
    """Runs on one page must have the same objectives and features."""
    if not runs:
        raise InputError("there is no run to show; give at least one.")
    tasks = [checked_run(run).task for run in runs]
    kinds = [(task.objective_names, sorted(task.minimised), task.feature_names, task.feature_bounds) for task in tasks]
    for run, kind in zip(runs, kinds, strict=True):
        if kind != kinds[0]:
            raise InputError(
                f"{str(run.path)!r} is of the task {run.task.name!r} and {str(runs[0].path)!r} of {tasks[0].name!r}; "
                "runs on one page must have the same objectives and features."
            )


def page_text(title: str, content: Mapping[str, Any]) -> str:
    """The file. Names stay text: the content is data, in which no tag can begin."""
    own = "\n".join(_part(name) for name in SCRIPTS)
    try:
        data = json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    except ValueError as error:
        raise InputError("cannot write the page: the run contains a number that is not finite.") from error
    script = f'(() => {{\n"use strict";\n{own}\n}})();'
    parts = {
        "TITLE": escape(title),
        "POLICY": POLICY.format(scripts=_fingerprint(script), server="'self'" if content["served"] else "'none'"),
        "STYLE": _part("style.css"),
        "CONTENT": data,
        "SCRIPT": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _part("page.html"))


def _fingerprint(script: str) -> str:
    """The hash by which a Content-Security-Policy recognises a script."""
    return f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    return (files("moqd.explorer") / "page" / name).read_text(encoding="utf-8")
