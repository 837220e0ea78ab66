"""How fast the explorer's page is in a browser: ready after it is opened, and after a click.

A run of ant-2 with an archive that is full (128 cells x 50), of random policies with made-up objectives on fronts, so
that nothing has to be learned first; their gaits are real.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import moqd
from moqd.core.archive import empty_archive
from moqd.core.tessellation import cvt_centroids
from moqd.explorer import write_explorer
from tests.explorer.browser import CHROMIUM, Browser

CELLS, FRONT = 128, 50
CLICKS = 20


class Measured(NamedTuple):
    """Of one page."""

    megabytes: float
    solutions: int
    writing: float
    """Seconds to write it, gaits included."""
    ready: list[float]
    """Seconds from opening it until all is drawn."""
    clicks: dict[str, list[float]]
    """Milliseconds from a click until what it changes is painted."""


def full_run() -> moqd.Run:
    """An archive that is full."""
    task = moqd.make_task("ant-2", episode_length=250)
    rng = np.random.default_rng(0)
    centroid = cvt_centroids(CELLS, task.feature_bounds)
    bounds = jnp.asarray(np.asarray(task.feature_bounds, np.float32).T)
    genotype = task.init_genotype(jax.random.key(0), CELLS * FRONT)
    archive = empty_archive(
        jax.tree.map(lambda leaf: leaf[:1], genotype),
        jnp.asarray(centroid),
        bounds,
        num_objectives=2,
        front_length=FRONT,
    )
    angle = np.sort(rng.uniform(0.1, 1.4, (CELLS, FRONT)), axis=1)
    size = rng.uniform(0.5, 1, (CELLS, 1))
    fitness = np.stack([300 * size * np.sin(angle), 300 * size * np.cos(angle) - 400], axis=2)
    archive = archive._replace(
        genotype=jax.tree.map(lambda leaf: leaf.reshape(CELLS, FRONT, *leaf.shape[1:]), genotype),
        fitness=jnp.asarray(fitness, jnp.float32),
        feature=jnp.broadcast_to(jnp.asarray(centroid)[:, None], (CELLS, FRONT, 4)),
        preference=jnp.asarray(rng.dirichlet([1, 1], (CELLS, FRONT)), jnp.float32),
        valid=jnp.ones((CELLS, FRONT), bool),
    )
    config = {
        "algorithm": {"name": "made up"},
        "seed": 0,
        "iterations": 0,
        "reference_point": list(task.reference_point or ()),
    }
    return moqd.Run(task, config, archive, {"evaluations": np.array([0.0])})


def measure() -> Measured:
    if CHROMIUM is None:
        sys.exit("the explorer is measured in a Chromium, and there is none; install one, or set CHROMIUM to it.")
    run = full_run()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # the browser may still write there
        path = Path(folder) / "explorer.html"
        start = time.perf_counter()
        write_explorer([run], path)
        writing = time.perf_counter() - start
        with Browser(Path(folder) / "chromium") as browser:
            ready = []
            for _ in range(3):
                browser.open("about:blank")
                start = time.perf_counter()
                browser.open(path.as_uri())
                browser.wait("window.moqd && window.moqd.ready")
                ready.append(time.perf_counter() - start)
            cells = np.random.default_rng(1).integers(CELLS, size=CLICKS)
            clicks = {
                "a cell": [_painted(browser, f"window.moqd.selectCell({cell})") for cell in cells],
                "a solution": [_painted(browser, f"window.moqd.selectSolution({50 * cell + 7})") for cell in cells],
                "a preference": [
                    _painted(browser, f"window.moqd.setPreference([{i / CLICKS}, {1 - i / CLICKS}])")
                    for i in range(CLICKS)
                ],
            }
        return Measured(path.stat().st_size / 1e6, CELLS * FRONT, writing, ready, clicks)


def _painted(browser: Browser, action: str) -> float:
    """Milliseconds until all is drawn and painted, by the browser's own clock."""
    return float(
        browser.run(
            f"(async () => {{ window.moqd.pause(); const start = performance.now(); {action};"
            "await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));"
            "return performance.now() - start; })()"
        )
    )


def summary(values: list[float]) -> tuple[float, float]:
    """The median, and the largest."""
    return statistics.median(values), max(values)
