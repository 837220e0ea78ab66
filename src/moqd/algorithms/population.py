"""What NSGA-II and SPEA2 share: a population, binary tournaments, and survival of the best of old and new."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moqd.algorithms.algorithm import Algorithm, ArchiveConfig, chance, random_offspring, select_or_random
from moqd.core.archive import Parents
from moqd.core.pareto import sort_key
from moqd.core.types import Evaluation, Genotype, Info, Key, Offspring
from moqd.tasks.task import Task
from moqd.variation.mixture import Credit, VariationConfig


@dataclass(frozen=True)
class PopulationConfig(VariationConfig, ArchiveConfig):
    """Hyper-parameters of NSGA-II and SPEA2, with the paper's values."""

    population: int = 1600
    """Solutions that survive a generation, and offspring per generation."""


Merit = Float[Array, "population criteria"]
"""What tournaments compare: larger is better, the first criterion first."""


class Population(NamedTuple):
    genotype: Genotype
    preference: Float[Array, "population objectives"]
    fitness: Float[Array, "population objectives"]
    valid: Bool[Array, "population"]
    violation: Float[Array, "population"]
    """Of constraints; 0 is feasible."""
    merit: Merit


class Ranked(NamedTuple):
    """An order of old and new, the best first, and the merit of each."""

    key: tuple[Float[Array, "both"] | Int[Array, "both"] | Bool[Array, "both"], ...]
    """As `jnp.lexsort` takes it: the last one counts first, and less is better."""
    merit: Merit


Rank = Callable[[Float[Array, "both objectives"], Bool[Array, "both"], int], Ranked]
"""(fitness, feasible, number) of old and new -> their order if `number` of them survive."""


class PopulationState(NamedTuple):
    population: Population
    credit: Credit | None = None


def population_algorithm(name: str, config: PopulationConfig, task: Task, rank: Rank) -> Algorithm:
    """Tournament selection and variation, then the best of parents and offspring survive."""
    size, by_chance = config.population, chance(config, task)

    def init(key: Key) -> tuple[PopulationState, Offspring]:
        offspring = random_offspring(key, task, size)
        return PopulationState(empty_population(offspring, size, rank), by_chance.initial_credit()), offspring

    def ask(key: Key, state: PopulationState) -> Offspring:
        key_select, key_vary = jax.random.split(key)
        number = by_chance.num_parents * size
        parents = select_or_random(
            key_select,
            task,
            number,
            jnp.any(state.population.valid),
            lambda key: tournament(key, state.population, number),
        )
        return by_chance.vary(key_vary, parents, state.credit)

    def tell(
        key: Key, state: PopulationState, offspring: Offspring, evaluation: Evaluation
    ) -> tuple[PopulationState, Info]:
        population, added = renew(state.population, offspring, evaluation, rank)
        credit = by_chance.credited(state.credit, added, offspring)
        return PopulationState(population, credit), Info(added, offspring.source, {})

    return Algorithm(name, config, init, ask, tell)


def empty_population(offspring: Offspring, size: int, rank: Rank) -> Population:
    """A population with no members, for genotypes and preferences shaped like those of the offspring."""
    num_objectives = offspring.preference.shape[1]
    valid, violation = _nobody(size)
    merit = _merit_of(rank, size, num_objectives)
    places = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape[1:]), leaf.dtype), offspring)
    return Population(
        genotype=places.genotype,
        preference=places.preference,
        fitness=jnp.zeros((size, num_objectives)),
        valid=valid,
        violation=violation,
        merit=jnp.zeros(merit.shape, merit.dtype),
    )


@cache  # a run asks thrice, and tracing takes long
def _merit_of(rank: Rank, size: int, num_objectives: int) -> jax.ShapeDtypeStruct:
    return jax.eval_shape(lambda: survive(rank, jnp.zeros((2 * size, num_objectives)), *_nobody(2 * size), size)[1])


def renew(
    population: Population, offspring: Offspring, evaluation: Evaluation, rank: Rank
) -> tuple[Population, Bool[Array, "batch"]]:
    """The best of old and new, as many as there were places, and which of the new are among them."""
    size, batch = population.valid.shape[0], offspring.source.shape[0]
    violation = evaluation.violation
    new = Population(
        genotype=offspring.genotype,
        preference=offspring.preference,
        fitness=evaluation.fitness,
        valid=evaluation.valid,
        violation=jnp.zeros(batch) if violation is None else violation,
        merit=jnp.zeros((batch, population.merit.shape[1]), population.merit.dtype),
    )
    both = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), population, new)
    survivor, merit = survive(rank, both.fitness, both.valid, both.violation, size)
    chosen = jax.tree.map(lambda leaf: leaf[survivor], both)._replace(merit=merit)
    added = jnp.zeros(size + batch, bool).at[survivor].set(chosen.valid)[size:]
    return chosen, added


def _nobody(size: int) -> tuple[Bool[Array, "size"], Float[Array, "size"]]:
    """`valid` and `violation` of places that are empty."""
    return jnp.zeros(size, bool), jnp.zeros(size)


def survive(
    rank: Rank,
    fitness: Float[Array, "both objectives"],
    valid: Bool[Array, "both"],
    violation: Float[Array, "both"],
    number: int,
) -> tuple[Int[Array, "population"], Merit]:
    """The survivors, the best first, and their merit.

    A feasible solution beats one that is not, and of two that are not the one with less violation; failed ones come
    last.
    """
    ranked = rank(fitness, valid & (violation <= 0), number)
    keys = (*ranked.key, jnp.where(valid, violation, jnp.inf))
    survivor = jnp.lexsort([sort_key(key) for key in keys])[:number]
    merit = jnp.concatenate([-violation[:, None], ranked.merit], axis=1)
    return survivor, merit[survivor]


def tournament(key: Key, population: Population, num_parents: int, blocks: int = 1) -> Parents:
    """The better of two valid members for each parent; all take part equally often, and of equals the first wins.

    Members are shuffled anew for each of the `blocks` of parents: those of one child are not the same over and over.
    """
    size, batch = population.valid.shape[0], num_parents // blocks
    times = -(-batch // size)
    shuffled = _shuffled(key, 2 * blocks * times, population.valid)
    num_valid = jnp.maximum(jnp.sum(population.valid), 1)
    drawn = shuffled[:, jnp.arange(size) % num_valid].reshape(2, blocks, times * size)
    first, second = drawn[:, :, :batch].reshape(2, num_parents)
    challenge = jnp.zeros(num_parents, bool)
    for criterion in population.merit.T[::-1]:
        tie = criterion[second] == criterion[first]
        challenge = (criterion[second] > criterion[first]) | (tie & challenge)
    winner = jnp.where(challenge, second, first)
    return Parents(
        genotype=jax.tree.map(lambda leaf: leaf[winner], population.genotype),
        preference=population.preference[winner],
    )


def _shuffled(key: Key, times: int, valid: Bool[Array, "population"]) -> Int[Array, "times population"]:
    """The members in random order, the valid ones first: lot and number in one integer, which XLA sorts much sooner."""
    size = valid.shape[0]
    place = max(size - 1, 1).bit_length()
    lots = 2.0 ** min(31 - place, 23)  # a random number has 23 bits
    lot = jnp.where(valid[None, :], jax.random.uniform(key, (times, size)) * lots, lots).astype(jnp.uint32)
    packed = jnp.sort((lot << place) | jnp.arange(size, dtype=jnp.uint32)[None, :], axis=1)
    return (packed & (2**place - 1)).astype(jnp.int32)
