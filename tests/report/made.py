"""The results of a study made by hand: no run is needed, and every number follows from the arguments."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import moqd
from moqd.core.archive import empty_archive
from moqd.core.metrics import archive_metrics
from moqd.runs.config import AlgorithmConfig, RunConfig, Surroundings, TaskConfig
from moqd.study.plan import PlannedRun, Study
from moqd.study.summaries import Result, Results, Unfinished

BATCH, ITERATIONS = 64, 150


def made_results(
    tasks: Mapping[str, tuple[int, int]],
    algorithms: Sequence[str],
    seeds: Sequence[int],
    *,
    name: str = "made",
    unfinished: Collection[tuple[str, str, int]] = (),
    timed: Collection[str] = (),
    num_cells: int = 12,
    front_length: int = 4,
    num_rows: int = 4,
) -> Results:
    """Tasks have numbers of features and of objectives; each algorithm is a bit worse than the one before it."""
    planned = [
        PlannedRun(algorithm, _config(task, algorithm, seed))
        for seed in seeds
        for task in tasks
        for algorithm in algorithms
    ]
    study = Study(name, tuple(tasks), tuple(algorithms), tuple(seeds), algorithms[0], tuple(planned))
    made = {task: _task(task, *sizes) for task, sizes in tasks.items()}
    done = [run for run in planned if (run.task, run.algorithm, run.seed) not in unfinished]
    results = [_result(run, made[run.task], study, num_cells, front_length, num_rows) for run in done]
    states = {run: _standing(i) for i, run in enumerate(unfinished)}
    return Results(
        study,
        tuple(results),
        tuple(Unfinished(*run, *state) for run, state in states.items()),
        made,
        {(task, one): _timing(one, study, i) for i, task in enumerate(tasks) for one in algorithms if one in timed},
    )


def _standing(place: int) -> tuple[str, str]:
    standings = [
        ("failed", "DivergenceError: the loss of the critic is not finite at iteration 40"),
        ("running", "iteration 90 of 150"),
        ("stopped", "iteration 30 of 150"),
        ("waiting", ""),
    ]
    return standings[place % len(standings)]


def _config(task: str, algorithm: str, seed: int) -> RunConfig:
    batches = (
        {"population": 400} if algorithm in ("nsga2", "spea2") else {"ga_batch": BATCH // 2, "pg_batch": BATCH // 2}
    )
    batch = sum(batches.values())
    return RunConfig(
        TaskConfig(task, {"name": task, "episode_length": 250}),
        AlgorithmConfig(algorithm, {**batches, "num_cells": 128, "front_length": 50}),
        seed,
        BATCH * ITERATIONS // batch,
        log_every=640 // batch or 1,
    )


def made_with(config: RunConfig, **surroundings: Any) -> RunConfig:
    return replace(config, surroundings=replace(config.surroundings, **surroundings))


def with_cells(algorithm: AlgorithmConfig, cells: Any) -> AlgorithmConfig:
    return replace(algorithm, options={**algorithm.options, "num_cells": cells})


def _task(name: str, num_features: int, num_objectives: int) -> moqd.FunctionTask:
    """The last objective is minimised."""
    objectives = ["forward velocity", "jumping height", "energy"] + [f"objective {i}" for i in range(num_objectives)]
    chosen = [*objectives[: num_objectives - 1], objectives[2]] if num_objectives < 4 else objectives[:num_objectives]
    return moqd.FunctionTask(
        lambda x: x,
        name=name,
        bounds=[(0, 1)] * 2,
        objective_names=chosen,
        minimised=chosen[-1:],
        feature_names=[f"foot {i}" for i in range(num_features)],
        feature_bounds=[(0.0, 1.0)] * num_features,
        reference_point=[-50.0] * (num_objectives - 1) + [20.0],
        units={chosen[0]: "m/s"},
    )


def _result(
    run: PlannedRun, task: moqd.FunctionTask, study: Study, num_cells: int, front_length: int, num_rows: int
) -> Result:
    place = study.algorithms.index(run.algorithm)
    rng = np.random.default_rng([study.tasks.index(run.task), place, run.seed])
    cells = np.random.default_rng(1).uniform(size=(num_cells, task.num_features)).astype(np.float32)
    if not task.num_features:
        cells = cells[:1]
    bounds = jnp.asarray(np.reshape(task.feature_bounds, (-1, 2)).T, jnp.float32)
    shape = {"num_objectives": task.num_objectives, "front_length": front_length}
    archive = empty_archive(jnp.zeros((1, 1)), jnp.asarray(cells), bounds, **shape)._replace(genotype=())
    quality = 0.9**place * rng.uniform(0.93, 1.07)
    valid = np.arange(front_length) < rng.integers(1, front_length + 1, (len(cells), 1))
    valid[int(np.ceil(len(cells) * quality)) :] = False
    sphere = np.abs(rng.normal(size=(len(cells), front_length, task.num_objectives)))
    sphere *= quality * rng.uniform(0.8, 1, (len(cells), 1, 1)) / np.linalg.norm(sphere, axis=-1, keepdims=True)
    reference = np.asarray(task.reference_point) * task.direction
    extent = np.array([800.0] * (task.num_objectives - 1) + [18.0])
    archive = archive._replace(
        fitness=jnp.asarray(reference + sphere * extent, jnp.float32),
        feature=jnp.broadcast_to(jnp.asarray(cells)[:, None], archive.feature.shape),
        valid=jnp.asarray(valid),
    )
    measured = archive_metrics(archive, reference, reference + extent)
    progress = np.linspace(0, 1, num_rows)
    shape_of_curve = (1 - np.exp(-4 * (progress + 0.02))) / (1 - np.exp(-4 * 1.02))
    rows = {metric: value * shape_of_curve for metric, value in measured.items()}
    options = run.config.algorithm.options
    total = run.config.iterations * sum(options.get(b, 0) for b in ("ga_batch", "pg_batch", "population"))
    counted = {
        "iteration": np.round(run.config.iterations * progress),
        "evaluations": BATCH + np.round(total * progress),
        "seconds": 1 + (900 - 80 * place) * progress,
        "hypervolume_exact": np.ones(num_rows),
        "failed_evaluations": np.zeros(num_rows),
        "added_ga": np.arange(num_rows) * (100.0 - place),
    }
    surroundings = Surroundings(
        versions={"python": "3.13.1", "jax": "0.10.1"},
        devices=("cpu", "cpu"),
        machine={"processor": "Made by hand", "cores": 2},
    )
    config = replace(run.config, surroundings=surroundings)
    return Result(run.task, run.algorithm, run.seed, rows | counted, archive, reference, config, Path("runs") / run.key)


def _timing(algorithm: str, study: Study, place: int) -> dict:
    size = 1 + place + 2 * study.algorithms.index(algorithm)
    seconds = {"iteration": 3.0, "rollout": 1.0, "policy_gradient_variation": 0.8, "training": 0.6, "addition": 0.05}
    return {
        "format": 1,
        "iterations": 5,
        "devices": ["cpu", "cpu"],
        "cores": 2,
        "processor": "Made by hand",
        "seconds": {part: [size * value * (1 + 0.01 * i) for i in range(5)] for part, value in seconds.items()},
        "parameters": {"policy": 5126, "actors": 5200 * size, "critics": 146_000 * size},
    }
