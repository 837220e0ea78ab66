"""What is measured of a sequence of evaluations: the same for every method."""

from hashlib import sha256
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import moqd
from benchmarks.design.problems import Problem, task
from moqd.algorithms.algorithm import archive_for
from moqd.core.archive import Archive, add
from moqd.core.metrics import archive_metrics
from moqd.core.types import Evaluation, Offspring, Source

BUDGETS = (1_000, 5_000, 20_000)
"""Evaluations after which is measured."""
NUM_CELLS, FRONT_LENGTH = 128, 50
AT_ONCE = 250
"""Evaluations that enter the archive together; divides all budgets."""
TOLERANCE = 1e-6
"""A constraint value up to this is feasible: methods that compute with 32 bits cannot tell it from 0."""

METRICS = ("hypervolume", "moqd_score", "coverage")


def measure(problem: Problem, x: np.ndarray) -> dict[int, dict[str, float]]:
    """Metrics by budget, of the parameters of all evaluations in their order.

    The hypervolume is that of all feasible evaluations so far; the MOQD score that of an archive to which they were
    all added.
    """
    objectives, features, constraints = problem.evaluate(np.asarray(x, float), np)
    feasible = np.all(constraints <= TOLERANCE, axis=1)
    fitness, reference = -objectives, -np.array(problem.reference_point)
    archive, found = empty(problem), {}
    for start in range(0, max(BUDGETS), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        archive = put(archive, *(np.asarray(part[rows], np.float32) for part in (fitness, features)), feasible[rows])
        if rows.stop in BUDGETS:
            made = fitness[: rows.stop][feasible[: rows.stop]]
            metrics = archive_metrics(archive, reference, fitness.max(axis=0))
            found[rows.stop] = {
                "hypervolume": moqd.hypervolume(made[moqd.non_dominated(made)], reference) if len(made) else 0.0,
                "moqd_score": metrics["moqd_score"],
                "coverage": metrics["coverage"],
            }
    return found


def empty(problem: Problem) -> Archive:
    return archive_for(task(problem), jnp.zeros((AT_ONCE, 1)), num_cells=NUM_CELLS, front_length=FRONT_LENGTH)


@jax.jit
def put(archive: Archive, fitness: Any, features: Any, feasible: Any) -> Archive:
    """Genotypes do not matter here."""
    offspring = Offspring(jnp.zeros((AT_ONCE, 1)), jnp.zeros_like(fitness), jnp.full(AT_ONCE, Source.RANDOM, jnp.int32))
    return add(archive, offspring, Evaluation(fitness, features, feasible))[0]


def fingerprint(problem: Problem) -> str:
    """Changes when the problem does, so that what was measured of another is not taken for this."""
    x = problem.space.vector(np.random.default_rng(0).random((50, len(problem.bounds))))
    numbers = [f"{value:.6g}" for part in problem.evaluate(x, np) for value in part.ravel()]
    settings = (problem.bounds, problem.features, problem.reference_point, BUDGETS, NUM_CELLS, FRONT_LENGTH)
    return sha256(repr((numbers, settings)).encode()).hexdigest()[:12]
