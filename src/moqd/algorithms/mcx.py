"""MCX: Gaier, Stoddart, Villaggi & Bentley, "T-DominO: Exploring Multiple Criteria with Quality-Diversity and the
Tournament Dominance Objective" (PPSN 2022).

    every cell has one elite, and a memory of the objectives of its latest elites
    repeat
        select cells uniformly; vary their elites; evaluate
        for each solution, in order
            anchors: what the occupied cells around its cell, and its cell, remember; and the solution itself
            T-DominO of a vector: the product, over objectives, of the number of anchors that it matches or beats
            if its cell is empty, or its T-DominO is higher than that of the elite, on the same anchors
                it becomes the elite, and the memory of the cell has its objectives in place of the oldest

A solution that is far ahead in one objective and behind in another multiplies a large number by a small one, so that a
balanced one wins. Whoever dominates the elite wins, because the solution itself is an anchor that the elite does not
match.

Deviations:
- A Voronoi tessellation has no rows and columns. "Within so many cells" is then in widths of a regular grid with as
  many cells, in each feature from centroid to centroid; on a grid this is the paper's square.
- Variation is that of the other algorithms here.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moqd.algorithms.algorithm import Algorithm
from moqd.algorithms.elites import Challenge, ElitesConfig, Standing, elites_algorithm
from moqd.core.tessellation import NumCells, centroids, nearest_cell
from moqd.core.types import Evaluation
from moqd.tasks.task import Task


@dataclass(frozen=True)
class McxConfig(ElitesConfig):
    """Hyper-parameters of MCX; reach and memory are those of its authors' code."""

    reach: int = 4
    """How many cells away, in every feature, the solutions may be that a solution is compared with."""
    memory: int = 10
    """How many of its latest elites a cell remembers, for these comparisons."""


class Memory(NamedTuple):
    """Of the objectives of each cell's latest elites: a ring."""

    fitness: Float[Array, "cells memory objectives"]
    """Infinity where nothing has been written yet: nobody matches that."""
    num_written: Int[Array, "cells"]


def mcx(name: str, config: McxConfig, task: Task) -> Algorithm:
    centre, bounds = centroids(config.num_cells, task.feature_bounds), _bounds(task)
    around = (config.reach + 0.5) * _cell_width(config.num_cells, task)

    def empty_memory() -> Memory:
        shape = (len(centre), config.memory, task.num_objectives)
        return Memory(jnp.full(shape, jnp.inf, jnp.float32), jnp.zeros(len(centre), jnp.int32))

    def contest(evaluation: Evaluation) -> Challenge:
        centroid = jnp.asarray(centre)
        cells = nearest_cell(evaluation.feature, centroid, jnp.asarray(bounds))

        def challenge(i: Int[Array, ""], standing: Standing) -> tuple[Bool[Array, "cells"], Memory]:
            solution, cell, memory = evaluation.fitness[i], cells[i], standing.memory
            near = jnp.all(jnp.abs(centroid - centroid[cell][None, :]) <= jnp.asarray(around)[None, :], axis=1)
            anchors = jnp.where(near[:, None, None], memory.fitness, jnp.inf)
            anchors = jnp.concatenate([anchors.reshape(-1, solution.size), solution[None, :]])
            better = is_ahead(solution, standing.fitness[cell], anchors)
            enters = better | ~standing.valid[cell]
            place = jnp.where(enters, memory.num_written[cell] % config.memory, config.memory)  # which is dropped
            return enters & (jnp.arange(len(centre)) == cell), Memory(
                memory.fitness.at[cell, place].set(solution, mode="drop"),
                memory.num_written.at[cell].add(enters.astype(jnp.int32)),
            )

        return challenge

    return elites_algorithm(name, config, task, len(centre), empty_memory, contest)


def t_domino(
    fitness: Float[Array, "objectives"], anchors: Float[Array, "anchors objectives"]
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """The tournament dominance of a vector: how many anchors it matches or beats, multiplied over the objectives.

    As an exponent of 2 and a mantissa, because products of many counts are beyond what a float holds.
    """
    mantissa, exponent = jnp.frexp(jnp.sum(fitness[None, :] >= anchors, axis=0, dtype=jnp.float32))
    product, carried = jnp.frexp(jnp.prod(mantissa))
    return jnp.where(product > 0, jnp.sum(exponent) + carried, jnp.iinfo(jnp.int32).min), product


def is_ahead(
    one: Float[Array, "objectives"], other: Float[Array, "objectives"], anchors: Float[Array, "anchors objectives"]
) -> Bool[Array, ""]:
    """Whether the tournament dominance of one is higher than that of the other."""
    (exponent, mantissa), (their_exponent, theirs) = t_domino(one, anchors), t_domino(other, anchors)
    return (exponent > their_exponent) | ((exponent == their_exponent) & (mantissa > theirs))


def _bounds(task: Task) -> Float[np.ndarray, "2 features"]:
    return np.asarray(task.feature_bounds, np.float32).reshape(-1, 2).T


def _cell_width(num_cells: NumCells, task: Task) -> Float[np.ndarray, "features"]:
    """Of each feature: of a regular grid, or of one with as many cells as the tessellation."""
    lower, upper = _bounds(task)
    across = num_cells if isinstance(num_cells, tuple) else num_cells ** (1 / max(task.num_features, 1))
    return (upper - lower) / np.asarray(across, np.float32)
