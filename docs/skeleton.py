"""Half-random search: <authors>, "<title>" (<year>). A skeleton: copy it, and replace the parts that differ in yours.

    repeat
        draw a share of the offspring at random, as in the first batch
        select the parents of the others: an occupied cell uniformly, and in it a member of its front uniformly
        move each parent by Gaussian noise
        evaluate
        add non-dominated solutions to the front of their cell; a front over its length loses its most crowded members

Deviations: <where you differ from the paper, and what it leaves open>. docs/writing-an-algorithm.md has the rules for
the three functions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from moqd import Algorithm, Archive, Evaluation, Info, InputError, Key, Offspring, Source, Task
from moqd.algorithms.algorithm import archive_for, concatenate, offspring_of, random_offspring, select_or_random
from moqd.core.archive import add, select_uniform
from moqd.variation.iso_line import iso_line


@dataclass(frozen=True)
class HalfRandomConfig:
    """Hyper-parameters of half-random search."""

    ga_batch: int = 256
    """Offspring per iteration, random ones and mutated ones together."""
    random_share: float = 0.5
    """Share of the offspring that are random; the others are mutated."""
    sigma: float = 0.05
    """Scale of the Gaussian noise."""
    num_cells: int | tuple[int, ...] = 128
    """Number of cells of the archive, a centroidal Voronoi tessellation of the feature space; for a regular grid, one
    number per feature."""
    front_length: int = 50
    """Maximum number of solutions per cell."""


class HalfRandomState(NamedTuple):
    archive: Archive


def half_random(name: str, config: HalfRandomConfig, task: Task) -> Algorithm:
    """half of the offspring are random"""
    if config.random_share > 1:
        raise InputError(f"random_share is {config.random_share}; give a number from 0 to 1.")
    num_random = round(config.random_share * config.ga_batch)
    num_mutated = config.ga_batch - num_random

    def init(key: Key) -> tuple[HalfRandomState, Offspring]:
        offspring = random_offspring(key, task, config.ga_batch)
        archive = archive_for(task, offspring.genotype, num_cells=config.num_cells, front_length=config.front_length)
        return HalfRandomState(archive), offspring

    def ask(key: Key, state: HalfRandomState) -> Offspring:
        key_random, key_select, key_mutate = jax.random.split(key, 3)
        parents = select_or_random(
            key_select,
            task,
            num_mutated,
            jnp.any(state.archive.valid),
            lambda key: select_uniform(key, state.archive, num_mutated),
        )
        # Iso+LineDD of a parent with itself is Gaussian noise, within the task's bounds.
        genotype = iso_line(
            key_mutate,
            parents.genotype,
            parents.genotype,
            iso_sigma=config.sigma,
            line_sigma=0.0,
            bounds=task.genotype_bounds,
        )
        mutated = offspring_of(Source.GA, genotype, parents.preference)
        return concatenate(random_offspring(key_random, task, num_random), mutated)

    def tell(
        key: Key, state: HalfRandomState, offspring: Offspring, evaluation: Evaluation
    ) -> tuple[HalfRandomState, Info]:
        archive, added = add(state.archive, offspring, evaluation)
        return HalfRandomState(archive), Info(added, offspring.source, {})

    return Algorithm(name, config, init, ask, tell)


if __name__ == "__main__":
    import moqd

    arm = moqd.make_task("arm-2")
    for algorithm in (
        half_random("half-random", HalfRandomConfig(ga_batch=64, num_cells=64), arm),
        moqd.make_algorithm("mome", arm, ga_batch=64, num_cells=64),
    ):
        metrics = moqd.run(algorithm, arm, evaluations=64 * 50).metrics
        print(f"{algorithm.name:12} moqd_score {metrics['moqd_score'][-1]:.1f}, coverage {metrics['coverage'][-1]:.0%}")
