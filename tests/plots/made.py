"""Small runs made by hand, so that what should be seen in a figure is known without running anything."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

import moqd
from moqd.archive import empty_archive
from moqd.metrics import archive_metrics

NUM_CELLS, FRONT_LENGTH, NUM_EMPTY = 12, 5, 3


def made_task(num_features: int, num_objectives: int) -> moqd.FunctionTask:
    """The last objective is minimised; the first objective and the first feature have a unit."""
    objectives = [f"objective {i}" for i in range(num_objectives)]
    features = [f"feature {i}" for i in range(num_features)]
    return moqd.FunctionTask(
        lambda x: x,
        name=f"made-{num_features}-{num_objectives}",
        bounds=[(0, 1)] * 2,
        objective_names=objectives,
        minimised=objectives[-1:],
        feature_names=features,
        feature_bounds=[(-2.0, 3.0)] * num_features,
        reference_point=[-1.0] * (num_objectives - 1) + [1.0],
        units={objectives[0]: "m/s"} | dict.fromkeys(features[:1], "degrees"),
    )


def made_run(
    num_features: int = 2, num_objectives: int = 2, *, path: Path | None = None, empty: bool = False
) -> moqd.Run:
    """Twelve cells, three of them empty, with fronts of one to five solutions on spheres about the reference point."""
    task = made_task(num_features, num_objectives)
    rng = np.random.default_rng(num_features + 10 * num_objectives)
    num_cells = NUM_CELLS if num_features else 1
    centroid = rng.uniform(-2, 3, (num_cells, num_features)).astype(np.float32)
    bounds = jnp.asarray(np.reshape(task.feature_bounds, (num_features, 2)).T, jnp.float32)
    archive = empty_archive(
        jnp.zeros((1, 2)), jnp.asarray(centroid), bounds, num_objectives=num_objectives, front_length=FRONT_LENGTH
    )
    valid = np.arange(FRONT_LENGTH) < rng.integers(1, FRONT_LENGTH + 1, (num_cells, 1))
    valid[num_cells - NUM_EMPTY :] &= num_cells == 1
    sphere = np.abs(rng.normal(size=(num_cells, FRONT_LENGTH, num_objectives)))
    radius = 1 + rng.uniform(size=(num_cells, 1, 1))
    sphere *= radius / np.linalg.norm(sphere, axis=-1, keepdims=True)
    archive = archive._replace(
        fitness=jnp.asarray(sphere - 1, jnp.float32),
        feature=jnp.broadcast_to(jnp.asarray(centroid)[:, None], archive.feature.shape),
        valid=jnp.asarray(valid & (not empty)),
    )
    config = {
        "format": 1,
        "task": {"name": task.name, "options": None, "objectives": [], "features": []},
        "algorithm": {"name": "by hand", "num_cells": num_cells},
        "seed": 3,
        "iterations": 3,
        "versions": {"moqd": moqd.__version__},
        "devices": ["cpu"],
        "reference_point": list(task.reference_point),
    }
    measured = archive_metrics(archive, task.direction * np.array(task.reference_point), np.ones(num_objectives))
    rows = {name: np.linspace(value / 2, value, 4) for name, value in measured.items()}
    counted = {"iteration": np.arange(4.0), "evaluations": 16 * np.arange(1.0, 5), "seconds": np.arange(4.0) + 0.5}
    exact = {"hypervolume_exact": np.ones(4), "failed_evaluations": np.zeros(4), "below_reference": np.zeros(4)}
    return moqd.Run(task, config, archive, rows | counted | exact, path)
