"""How the time and the memory of an iteration grow, one setting at a time; every point in a process of its own.

MOME, on a function that costs nothing and whose solutions are all on one front, so that every front of the archive is
full from the start: what grows is the algorithm. MOME-P2C, on hopper-2, with 20 steps of training and variation in an
iteration and episodes of 50 steps. Memory is the peak of the process, less that of one with an archive of one cell.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROUNDS = 5
MOME = {"batch": 256, "cells": 128, "front": 50, "objectives": 2, "parameters": 5123}
P2C = {"batch": 64, "cells": 128, "front": 50, "hidden": 64, "devices": 0}


class Sweep(NamedTuple):
    """What is changed, and how much else is."""

    algorithm: str
    setting: str
    values: tuple[int, ...]
    others: Mapping[str, int]
    label: str


SWEEPS = {
    "batch": Sweep("MOME", "batch", (64, 256, 1024, 4096), {}, "solutions in a batch"),
    "cells": Sweep("MOME", "cells", (128, 512, 2048, 8192, 16384), {"parameters": 10}, "cells (10 parameters)"),
    "front": Sweep("MOME", "front", (10, 25, 50, 100, 200), {"parameters": 10}, "front length (10 parameters)"),
    "objectives": Sweep("MOME", "objectives", (2, 3, 4, 6, 8), {"parameters": 10}, "objectives (10 parameters)"),
    "parameters": Sweep(
        "MOME",
        "parameters",
        (5_000, 20_000, 100_000, 500_000),
        {"batch": 64, "cells": 32, "front": 20},
        "parameters (64 in a batch, 32 cells x 20)",
    ),
    "p2c-batch": Sweep("MOME-P2C", "batch", (64, 256, 1024, 4096), {}, "solutions in a batch"),
    "p2c-parameters": Sweep(
        "MOME-P2C",
        "hidden",
        (64, 128, 304, 696),
        {"cells": 32, "front": 20},
        "parameters of a policy (32 cells x 20)",
    ),
    "p2c-devices": Sweep("MOME-P2C", "devices", (1, 2), {"batch": 256}, "devices (256 in a batch)"),
}


class Point(NamedTuple):
    """What an iteration takes at one value."""

    value: int
    """For policies with so many hidden units: how many parameters these have."""
    seconds: float
    gigabytes: float
    metrics: float
    """Seconds of one row of metrics."""


def measure() -> Iterator[tuple[str, list[Point]]]:
    for name, sweep in SWEEPS.items():
        nothing = _point(sweep, sweep.values[0], {"cells": 1, "front": 1, "batch": 16, "parameters": 10, "hidden": 8})
        points = [_point(sweep, value, {**sweep.others, sweep.setting: value}) for value in sweep.values]
        yield name, [point._replace(gigabytes=point.gigabytes - nothing.gigabytes) for point in points]


def exponent(points: list[Point]) -> float:
    """Of the power of the setting by which the time grew at the last step: 1 is in proportion."""
    last, end = points[-2:]
    return log(end.seconds / last.seconds) / log(end.value / last.value)


def _point(sweep: Sweep, value: int, settings: Mapping[str, int]) -> Point:
    usual = MOME if sweep.algorithm == "MOME" else P2C
    given = {**usual, **{name: number for name, number in settings.items() if name in usual}}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.growth", sweep.algorithm, json.dumps(given)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    parameters = found.pop("parameters", value)
    return Point(parameters if sweep.setting == "hidden" else value, **found)


def mome(*, batch: int, cells: int, front: int, objectives: int, parameters: int) -> dict[str, float]:
    import jax
    import jax.numpy as jnp

    import moqd
    from moqd.core import tessellation

    # Where the centres of the cells are does not matter here, and the k-means of 16,384 takes minutes.
    tessellation._compute_cvt = lambda cells, features, seed: np.random.default_rng(seed).random((cells, features))

    def on_a_sphere(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        direction = jnp.abs(x[2 : 2 + objectives]) + 1e-6
        return direction / jnp.linalg.norm(direction), x[:2]

    task = moqd.FunctionTask(
        on_a_sphere,
        name="sphere",
        init=lambda key: jax.random.uniform(key, (max(parameters, 2 + objectives),)),
        traceable=True,
        objective_names=[f"f{i}" for i in range(objectives)],
        feature_names=["a", "b"],
        feature_bounds=[(0.0, 1.0), (0.0, 1.0)],
        reference_point=[0.0] * objectives,
    )
    algorithm = moqd.make_algorithm("mome", task, ga_batch=batch, num_cells=cells, front_length=front)

    def fill(archive: Any) -> Any:
        """Every front, with solutions that are as good as each other."""
        key = jax.random.key(1)
        direction = jnp.abs(jax.random.normal(key, archive.fitness.shape))
        feature = jnp.broadcast_to(archive.centroid[:, None], archive.feature.shape)
        genotype = archive.genotype.at[..., :2].set(feature).at[..., 2 : 2 + objectives].set(direction)
        return archive._replace(
            genotype=genotype,
            fitness=direction / jnp.linalg.norm(direction, axis=-1, keepdims=True),
            feature=feature,
            valid=jnp.ones_like(archive.valid),
        )

    return _timed(algorithm, task, jax.jit(fill, donate_argnums=0))


def mome_p2c(*, batch: int, cells: int, front: int, hidden: int, devices: int) -> dict[str, float]:
    import moqd

    moqd.use_devices(devices or None)
    from moqd.core.networks import num_parameters

    task = moqd.make_task("hopper-2", episode_length=50, hidden_sizes=(hidden, hidden))
    algorithm = moqd.make_algorithm(
        "mome-p2c",
        task,
        ga_batch=batch // 2,
        pg_batch=batch // 4,
        actor_batch=batch // 4,
        num_cells=cells,
        front_length=front,
        pg_steps=20,
        critic_steps=20,
        buffer_size=100_000,
    )
    import jax

    policy = jax.eval_shape(lambda key: task.init_genotype(key, 1), jax.random.key(0))
    return {**_timed(algorithm, task, lambda archive: archive), "parameters": num_parameters(policy)}


def _timed(algorithm: Any, task: Any, fill: Callable[[Any], Any]) -> dict[str, float]:
    from benchmarks.timing import in_turns, peak_bytes
    from moqd.core.metrics import archive_metrics
    from moqd.runs.loop import Loop

    loop = Loop(algorithm, task, seed=0)
    loop.prepare()
    loop.start()
    state = loop.carry.state
    loop.carry = loop.carry._replace(state=state._replace(archive=fill(state.archive)))

    def iterate() -> object:
        loop.advance(loop.iteration + 1)
        return loop.carry

    seconds = in_turns(iterate, rounds=ROUNDS)[0]
    peak, best = peak_bytes(), loop.carry.progress.best
    metrics = in_turns(lambda: archive_metrics(loop.archive, loop.reference_point, best), rounds=3)[0]
    return {"seconds": seconds, "gigabytes": peak / 1e9, "metrics": metrics}


def draw(name: str, points: list[Point], path: Path) -> None:
    """Time and memory over the setting, with what growth in proportion (over devices, a perfect division) would be."""
    from matplotlib.figure import Figure

    sweep, values = SWEEPS[name], [point.value for point in points]
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    seconds, metrics, gigabytes = (
        [getattr(point, column) for point in points] for column in ("seconds", "metrics", "gigabytes")
    )
    left, right = figure.subplots(1, 2)
    left.plot(values, seconds, "o-", label="an iteration")
    left.plot(values, metrics, "s--", color="tab:gray", label="a row of metrics")
    if sweep.setting == "devices":
        ideal, what = [seconds[0] * values[0] / value for value in values], "in inverse proportion"
    else:
        ideal, what = [seconds[-1] * value / values[-1] for value in values], "in proportion"
    left.plot(values, ideal, ":", color="black", label=what)
    right.plot(values, gigabytes, "o-")
    for axes, label in ((left, "seconds"), (right, "GB, beside an empty run")):
        axes.set(xscale="log", xlabel=sweep.label, ylabel=label, xticks=values, xticklabels=[f"{v:,}" for v in values])
        axes.minorticks_off()
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(alpha=0.3)
    left.set_yscale("log")
    right.set_ylim(0, 1.1 * max(gigabytes))
    left.legend()
    figure.suptitle(sweep.algorithm)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    kind, given = sys.argv[1:]
    print(json.dumps((mome if kind == "MOME" else mome_p2c)(**json.loads(given))))
