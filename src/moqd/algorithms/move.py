"""MOVE: Dean & Cheney, "Many-objective Optimization via Voting for Elites" (GECCO 2023 companion).

    every cell stands for a subset of the objectives, of odd size, and has one elite
    repeat
        select cells uniformly; vary their elites; evaluate
        for each child, in order
            every objective of a cell's subset votes for the child if it is better there than the cell's elite
            it replaces the elite of every cell where more than half vote for it
            (if the number of cells that a child may take is limited: those with most votes)

A child may become the elite of other cells than its parents'. So a solution that was found for some objectives becomes
a stepping stone for others.

Deviations:
- Subsets are drawn evenly, every objective about as often as any other, and none comes twice before all have come.
- With two or three objectives, subsets of one objective are the only odd ones that are not the whole. As there are
  fewer subsets than elites, several cells have the same one, and a child takes only one of them: otherwise they would
  all hold the same elite.
- Where the number of cells is limited, empty cells are taken first; of equal cells, the first one.
- Variation is that of the other algorithms here.
"""

import math
from collections import Counter
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from moqd.algorithms.algorithm import Algorithm
from moqd.algorithms.elites import Challenge, ElitesConfig, Standing, elites_algorithm
from moqd.core.types import Evaluation
from moqd.io.errors import InputError
from moqd.io.options import is_count
from moqd.tasks.task import Task


@dataclass(frozen=True)
class MoveConfig(ElitesConfig):
    """Hyper-parameters of MOVE. `num_cells` and `front_length` are those of the passive archive."""

    num_elites: int = 50
    """Number of elites, each of which stands for a subset of the objectives."""
    subset_size: int = 3
    """Number of objectives in a subset, which is odd; it is the largest odd number below the number of objectives where
    that is less."""
    elites_per_child: int | None = None
    """Maximum number of elites that one child may replace, those with most votes for the child first. If not given,
    there is no limit."""


def move(name: str, config: MoveConfig, task: Task) -> Algorithm:
    most = config.elites_per_child
    if config.subset_size % 2 == 0:
        raise InputError(f"subset_size is {config.subset_size}; give an odd number, so that there is a majority.")
    if most is not None and not is_count(most):
        raise InputError(f"elites_per_child is {most!r}; give a whole number of at least 1, or None.")
    members = subsets(task.num_objectives, config.num_elites, config.subset_size)
    size, index = int(members[0].sum()), np.arange(config.num_elites)
    kind = np.unique(members, axis=0, return_inverse=True)[1].reshape(-1)
    have_copies = len(set(kind.tolist())) < config.num_elites

    def contest(evaluation: Evaluation) -> Challenge:
        def challenge(i: Int[Array, ""], standing: Standing) -> tuple[Bool[Array, "cells"], None]:
            better = evaluation.fitness[i][None, :] > standing.fitness
            votes = jnp.where(standing.valid, jnp.sum(better & members, axis=1), size + 1)
            taken = 2 * votes > size
            # No two are equal: votes come first, then the first cell.
            priority = jnp.where(taken, (votes + 1) * config.num_elites - index, 0)
            if have_copies:
                taken &= priority == jax.ops.segment_max(priority, jnp.asarray(kind), config.num_elites)[kind]
            if most is not None and most < config.num_elites:
                priority = jnp.where(taken, priority, 0)
                taken &= priority >= jax.lax.top_k(priority, most)[0][-1]
            return taken, None

        return challenge

    return elites_algorithm(name, config, task, config.num_elites, lambda: None, contest)


def subsets(num_objectives: int, number: int, size: int) -> Bool[np.ndarray, "subsets objectives"]:
    """Subsets of the objectives, the same for the same arguments."""
    size = min(size, max(num_objectives - 1, 1))
    size -= size % 2 == 0
    rng, found = np.random.default_rng(0), Counter[tuple[int, ...]]()
    drawn, uses = np.zeros((number, num_objectives), bool), np.zeros(num_objectives, int)
    for i, row in enumerate(drawn):
        times = i // math.comb(num_objectives, size)  # that every subset has come
        rarest = np.lexsort((rng.random(num_objectives), uses))
        while found[subset := tuple(sorted(rarest[:size].tolist()))] > times:
            rarest = rng.permutation(num_objectives)
        found[subset] += 1
        row[list(subset)] = True
        uses += row
    return drawn
