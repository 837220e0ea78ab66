"""MOME: Pierrot, Richard, Beguir & Cully, "Multi-Objective Quality Diversity Optimization" (2022).

    repeat
        select cells uniformly, and in each a member of its front uniformly
        vary them by Iso+LineDD
        evaluate
        add to each cell's front what is not dominated there; from a front over its length random members go

Deviations: a batch is added as a set (the authors insert one by one, so that order matters).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from moqd.algorithms.algorithm import Algorithm, archive_for, random_offspring, select_or_random, vary_by_line
from moqd.archive import Archive, add_uniform, select_uniform
from moqd.tasks.task import Task
from moqd.types import Evaluation, Info, Key, Offspring


@dataclass(frozen=True)
class MomeConfig:
    """Hyper-parameters of MOME, with the paper's values."""

    ga_batch: int = 256
    """Iso+LineDD offspring per iteration."""
    num_cells: int | tuple[int, ...] = 128
    """Cells of the archive (a centroidal Voronoi tessellation of the feature space)."""
    front_length: int = 50
    """Most solutions in the front of one cell."""
    iso_sigma: float = 0.005
    """Iso+LineDD: scale of the isotropic noise."""
    line_sigma: float = 0.05
    """Iso+LineDD: scale of the step along the line to another parent."""


class MomeState(NamedTuple):
    archive: Archive


def mome(name: str, config: MomeConfig, task: Task) -> Algorithm:
    def init(key: Key) -> tuple[MomeState, Offspring]:
        offspring = random_offspring(key, task, config.ga_batch)
        archive = archive_for(task, offspring.genotype, num_cells=config.num_cells, front_length=config.front_length)
        return MomeState(archive), offspring

    def ask(key: Key, state: MomeState) -> Offspring:
        key_select, key_line = jax.random.split(key)
        parents = select_or_random(
            key_select,
            task,
            2 * config.ga_batch,
            jnp.any(state.archive.valid),
            lambda key: select_uniform(key, state.archive, 2 * config.ga_batch),
        )
        return vary_by_line(key_line, task, parents, iso_sigma=config.iso_sigma, line_sigma=config.line_sigma)

    def tell(key: Key, state: MomeState, offspring: Offspring, evaluation: Evaluation) -> tuple[MomeState, Info]:
        archive, added = add_uniform(key, state.archive, offspring, evaluation)
        return MomeState(archive), Info(added, offspring.source, {})

    return Algorithm(name, config, False, init, ask, tell, add=add_uniform)
