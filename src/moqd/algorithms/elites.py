"""What MCX and MOVE share: one elite in every cell, for which solutions compete one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moqd.algorithms.algorithm import Algorithm, ArchiveConfig, chance, random_offspring, select_or_random
from moqd.core.archive import Parents
from moqd.core.types import Evaluation, Genotype, Info, Key, Offspring
from moqd.tasks.task import Task
from moqd.variation.mixture import Credit, VariationConfig


@dataclass(frozen=True)
class ElitesConfig(VariationConfig, ArchiveConfig):
    """Hyper-parameters of MCX and MOVE."""

    ga_batch: int = 256
    """Offspring per iteration."""


class Elites(NamedTuple):
    """What a cell that is not `valid` holds has no meaning."""

    genotype: Genotype
    preference: Float[Array, "cells objectives"]
    fitness: Float[Array, "cells objectives"]
    valid: Bool[Array, "cells"]


class Standing(NamedTuple):
    """What a newcomer meets: the elites of its predecessors in the batch, or of earlier iterations."""

    fitness: Float[Array, "cells objectives"]
    valid: Bool[Array, "cells"]
    newcomer: Int[Array, "cells"]
    """The solution of the batch that is the elite now; the size of the batch where it is still the old one."""
    memory: Any
    """Whatever else the competition goes by."""


Challenge = Callable[[Int[Array, ""], Standing], tuple[Bool[Array, "cells"], Any]]
"""(i, standing) -> the cells that solution i of the batch takes over, and the memory after it."""


class ElitesState(NamedTuple):
    elites: Elites
    memory: Any
    credit: Credit | None = None


def elites_algorithm(
    name: str,
    config: ElitesConfig,
    task: Task,
    num_cells: int,
    memory: Callable[[], Any],
    contest: Callable[[Evaluation], Challenge],
) -> Algorithm:
    """Uniform selection of cells and variation; then newcomers challenge the elites, in the order of the batch."""
    batch, by_chance = config.ga_batch, chance(config, task)
    num_parents = by_chance.num_parents * batch

    def init(key: Key) -> tuple[ElitesState, Offspring]:
        offspring = random_offspring(key, task, batch)
        return ElitesState(empty_elites(offspring, num_cells), memory(), by_chance.initial_credit()), offspring

    def ask(key: Key, state: ElitesState) -> Offspring:
        key_select, key_vary = jax.random.split(key)
        valid = state.elites.valid
        parents = select_or_random(
            key_select, task, num_parents, jnp.any(valid), lambda key: select_elites(key, state.elites, num_parents)
        )
        return by_chance.vary(key_vary, parents, state.credit)

    def tell(key: Key, state: ElitesState, offspring: Offspring, evaluation: Evaluation) -> tuple[ElitesState, Info]:
        elites, memory, added = renew_elites(state.elites, state.memory, offspring, evaluation, contest(evaluation))
        credit = by_chance.credited(state.credit, added, offspring)
        return ElitesState(elites, memory, credit), Info(added, offspring.source, {})

    return Algorithm(name, config, init, ask, tell)


def empty_elites(offspring: Offspring, num_cells: int) -> Elites:
    """Cells without elites, for genotypes and preferences shaped like those of the offspring."""
    places = jax.tree.map(lambda leaf: jnp.zeros((num_cells, *leaf.shape[1:]), leaf.dtype), offspring)
    valid = jnp.zeros(num_cells, bool)
    return Elites(places.genotype, places.preference, jnp.zeros((num_cells, offspring.preference.shape[1])), valid)


def select_elites(key: Key, elites: Elites, num_parents: int) -> Parents:
    """The elite of a uniformly random occupied cell, for each parent."""
    occupied = jnp.nonzero(elites.valid, size=elites.valid.size, fill_value=0)[0]
    drawn = occupied[jax.random.randint(key, (num_parents,), 0, jnp.maximum(jnp.sum(elites.valid), 1))]
    return Parents(jax.tree.map(lambda leaf: leaf[drawn], elites.genotype), elites.preference[drawn])


def renew_elites(
    elites: Elites, memory: Any, offspring: Offspring, evaluation: Evaluation, challenge: Challenge
) -> tuple[Elites, Any, Bool[Array, "batch"]]:
    """The elites after a batch, the memory, and which solutions became one, if only until the next took over.

    Only what may enter an archive competes. Fitness alone decides, so genotypes are moved once, at the end.
    """
    batch, competes = offspring.source.shape[0], offspring.may_enter(evaluation)
    order = jnp.nonzero(competes, size=batch, fill_value=0)[0]

    def next_one(
        i: Int[Array, ""], so_far: tuple[Standing, Bool[Array, "batch"]]
    ) -> tuple[Standing, Bool[Array, "batch"]]:
        standing, added = so_far
        one = order[i]
        taken, memory = challenge(one, standing)
        standing = Standing(
            fitness=jnp.where(taken[:, None], evaluation.fitness[one][None, :], standing.fitness),
            valid=standing.valid | taken,
            newcomer=jnp.where(taken, one, standing.newcomer),
            memory=memory,
        )
        return standing, added.at[one].set(jnp.any(taken))

    nobody = jnp.full_like(order, batch, shape=elites.valid.shape)
    first = Standing(elites.fitness, elites.valid, nobody, memory), jnp.zeros(batch, bool)
    standing, added = jax.lax.fori_loop(0, jnp.sum(competes), next_one, first)
    changed = standing.newcomer < batch
    cell = jnp.where(changed, jnp.arange(changed.size), changed.size)  # the last one is dropped
    genotype, preference = jax.tree.map(
        lambda old, new: old.at[cell].set(new[jnp.minimum(standing.newcomer, batch - 1)], mode="drop"),
        (elites.genotype, elites.preference),
        (offspring.genotype, offspring.preference),
    )
    return Elites(genotype, preference, standing.fitness, standing.valid), standing.memory, added
