"""A guide for archives of plain parameters: what finds the best front, and the first feasible solutions, for the cells.

Uniform selection over cells spreads effort over the whole feature space, and reaches neither the best front nor a small
feasible region in the evaluations that a function is worth. A guide is a small population, kept as NSGA-II keeps its
own. Its members are parents of as many offspring as its progress deserves; the others have a parent from a cell, and in
half of them the mate is of the guide, which brings what it has found into the cells. As soon as some cells add
hypervolume, most of these parents are from such. Cells without a feasible solution lend the least infeasible one that
fell into them.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from moqd.algorithms.nsga2 import ranked
from moqd.algorithms.population import Population, empty_population, renew, tournament
from moqd.core.archive import Archive, Parents
from moqd.core.pareto import dominates
from moqd.core.tessellation import nearest_cell
from moqd.core.types import Evaluation, Genotype, Key, Offspring, Source
from moqd.tasks.task import Task

SIZE = 64
"""Of the population."""
LEAST, MOST = 0.2, 0.95
"""Shares of the offspring that the guide may have."""
GAIN = 3.0
"""Its share for each offspring in which it advances."""
START = 0.1
"""Its progress before any is known: little, or it takes the first thousand evaluations from the cells."""
MEMORY = 0.9
"""How much of the progress before counts in the next iteration."""
MATES = 0.5
"""How many of the offspring of cells have a mate of the guide."""
WORTH = 0.95
"""How many of the offspring of cells are of those that add hypervolume."""


class Strays(NamedTuple):
    """The least infeasible solution of every cell."""

    genotype: Genotype
    violation: Float[Array, "cells"]
    """Infinite for a cell without one."""


class Guide(NamedTuple):
    population: Population
    progress: Float[Array, ""]
    """The share of its offspring that dominate a member of its first front, the newest counting most."""
    strays: Strays | None
    """None where the task has no constraints."""


def initial_guide(offspring: Offspring, num_cells: int, *, constrained: bool) -> Guide:
    strays = Strays(
        jax.tree.map(lambda leaf: jnp.zeros((num_cells, *leaf.shape[1:]), leaf.dtype), offspring.genotype),
        jnp.full(num_cells, jnp.inf),
    )
    return Guide(empty_population(offspring, SIZE, ranked), jnp.float32(START), strays if constrained else None)


def share_of(guide: Guide, task: Task) -> Float[Array, ""]:
    """Of the offspring: the larger, the more the guide advances, and the less of it counts.

    What is infeasible, or not better than the reference point in every objective, adds no hypervolume, wherever it is.
    """
    population = guide.population
    counts = population.valid & (population.violation <= 0)
    if task.reference_point is not None:
        counts &= _is_above_reference(population.fitness, task)
    earned = jnp.clip(GAIN * guide.progress, LEAST, MOST)
    return jnp.maximum(earned, MOST * (1 - jnp.mean(counts, dtype=jnp.float32)))


def _is_above_reference(fitness: Float[Array, "*rows objectives"], task: Task) -> Bool[Array, "*rows"]:
    """Which are better than the task's reference point in every objective."""
    reference = jnp.asarray(np.asarray(task.reference_point, np.float32) * task.direction)
    return jnp.all(fitness > jnp.expand_dims(reference, range(fitness.ndim - 1)), axis=-1)


def is_led(share: Float[Array, ""] | float, batch: int, spacing: float = 0.6180339887) -> Bool[Array, "batch"]:
    """Which of a batch: a share of it, spread evenly (by the golden ratio) and the same whenever it is asked."""
    return jnp.asarray(_spread(batch, spacing)) < share


def _spread(batch: int, spacing: float) -> Float[np.ndarray, "batch"]:
    """A number in [0, 1) for each of a batch, evenly spread over any part of it."""
    return ((np.arange(batch) + 0.5) * spacing % 1).astype(np.float32)


def select_guided(
    key: Key, archive: Archive, guide: Guide, task: Task, batch: int, num_parents: int, select: Callable[..., Parents]
) -> Parents:
    """`num_parents` blocks of parents, for offspring that the guide leads and for those of cells."""
    key_cells, key_guide = jax.random.split(key)
    number = batch * num_parents
    lent = archive if guide.strays is None else with_strays(archive, guide.strays)
    of_guide = tournament(key_guide, guide.population, number, blocks=num_parents)

    def from_cells(key: Key) -> Parents:
        if task.reference_point is None:
            return select(key, lent, number)
        worthy = np.tile(np.asarray(_spread(batch, 0.5698402910) < WORTH), num_parents)
        counts = jnp.any(lent.valid & _is_above_reference(lent.fitness, task), axis=1, keepdims=True)
        of_worth = lent._replace(valid=lent.valid & (counts | ~jnp.any(counts)))
        key_worth, key_any = jax.random.split(key)
        found = select(key_worth, of_worth, int(worthy.sum())), select(key_any, lent, int((~worthy).sum()))
        row = np.argsort(np.argsort(~worthy, kind="stable"))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[row], *found)

    of_cells = jax.lax.cond(jnp.any(lent.valid), from_cells, lambda key: of_guide, key_cells)
    led = is_led(share_of(guide, task), batch)
    mated = led | is_led(MATES, batch, spacing=0.7548776662)
    which = jnp.concatenate([led, mated, *[led] * num_parents][:num_parents])

    def choose(one: Array, other: Array) -> Array:
        return jnp.where(which.reshape(-1, *(1,) * (one.ndim - 1)), one, other)

    return jax.tree.map(choose, of_guide, of_cells)


def renew_guide(guide: Guide, archive: Archive, task: Task, offspring: Offspring, evaluation: Evaluation) -> Guide:
    """After a batch that was evaluated."""
    members, batch = guide.population, offspring.source.shape[0]
    first = members.valid & (members.violation <= 0) & (members.merit[:, 1] == 0)
    shape = (batch, *members.fitness.shape)
    pairs = [jnp.broadcast_to(one, shape) for one in (evaluation.fitness[:, None], members.fitness[None])]
    advances = evaluation.feasible & jnp.any(dominates(*pairs) & first[None, :], axis=1)
    counts = is_led(share_of(guide, task), batch) & (offspring.source == Source.GA)
    number = jnp.sum(counts, dtype=jnp.float32)
    now = jnp.sum(advances & counts, dtype=jnp.float32) / jnp.maximum(number, 1)
    progress = jnp.where((number > 0) & jnp.any(first), MEMORY * guide.progress + (1 - MEMORY) * now, guide.progress)
    strays = None if guide.strays is None else _caught(guide.strays, archive, offspring, evaluation)
    return Guide(renew(members, offspring, evaluation, ranked)[0], progress, strays)


def with_strays(archive: Archive, strays: Strays) -> Archive:
    """The archive as parents are selected from it: cells that are empty hold their stray."""
    lends = ~jnp.any(archive.valid, axis=1) & jnp.isfinite(strays.violation)

    def lend(leaf: Array, stray: Array) -> Array:
        alone = lends.reshape(-1, *(1,) * (stray.ndim - 1))
        return leaf.at[:, 0].set(jnp.where(alone, stray, leaf[:, 0]))

    return archive._replace(
        genotype=jax.tree.map(lend, archive.genotype, strays.genotype),
        valid=archive.valid.at[:, 0].set(archive.valid[:, 0] | lends),
    )


def _caught(strays: Strays, archive: Archive, offspring: Offspring, evaluation: Evaluation) -> Strays:
    """With what of a batch is less infeasible than the stray of its cell."""
    violation, num_cells = evaluation.violation, strays.violation.shape[0]
    assert violation is not None
    cell = nearest_cell(evaluation.feature, archive.centroid, archive.feature_bounds)
    cell = jnp.where(evaluation.valid & (violation > 0), cell, num_cells)
    least = jax.ops.segment_min(violation, cell, num_cells + 1)[cell]
    better = (violation == least) & (violation < strays.violation.at[cell].get(mode="fill", fill_value=-jnp.inf))
    index = jnp.arange(cell.shape[0])
    first = jax.ops.segment_min(jnp.where(better, index, index.size), cell, num_cells + 1)[cell] == index
    at = jnp.where(better & first, cell, num_cells)
    return Strays(
        jax.tree.map(lambda leaf, new: leaf.at[at].set(new, mode="drop"), strays.genotype, offspring.genotype),
        strays.violation.at[at].set(violation, mode="drop"),
    )
