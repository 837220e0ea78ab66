"""What NSGA-II and SPEA2 share: a population, binary tournaments, and survival of the best of old and new."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moqd.algorithms.algorithm import Algorithm, random_offspring, select_or_random, vary_by_line
from moqd.archive import Parents
from moqd.pareto import sort_key
from moqd.tasks.task import Task
from moqd.types import Evaluation, Genotype, Info, Key, Offspring


@dataclass(frozen=True)
class PopulationConfig:
    """Hyper-parameters of NSGA-II and SPEA2, with the paper's values."""

    population: int = 1600
    """Solutions that survive a generation, and offspring per generation."""
    iso_sigma: float = 0.005
    """Iso+LineDD: scale of the isotropic noise."""
    line_sigma: float = 0.05
    """Iso+LineDD: scale of the step along the line to another parent."""
    num_cells: int | tuple[int, ...] = 128
    """Cells of the passive archive, from which metrics are computed."""
    front_length: int = 50
    """Most solutions in the front of one cell of the passive archive."""


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


def population_algorithm(name: str, config: PopulationConfig, task: Task, rank: Rank) -> Algorithm:
    """Tournament selection and Iso+LineDD, then the best of parents and offspring survive."""
    size = config.population

    def init(key: Key) -> tuple[Population, Offspring]:
        offspring = random_offspring(key, task, size)
        valid, violation = _nobody(size)
        merit = jax.eval_shape(
            lambda: survive(rank, jnp.zeros((2 * size, task.num_objectives)), *_nobody(2 * size), size)[1]
        )
        nobody = Population(
            genotype=jax.tree.map(jnp.zeros_like, offspring.genotype),
            preference=jnp.zeros_like(offspring.preference),
            fitness=jnp.zeros((size, task.num_objectives)),
            valid=valid,
            violation=violation,
            merit=jnp.zeros(merit.shape, merit.dtype),
        )
        return nobody, offspring

    def ask(key: Key, state: Population) -> Offspring:
        key_select, key_line = jax.random.split(key)
        parents = select_or_random(
            key_select, task, 2 * size, jnp.any(state.valid), lambda key: tournament(key, state, 2 * size)
        )
        return vary_by_line(key_line, task, parents, iso_sigma=config.iso_sigma, line_sigma=config.line_sigma)

    def tell(key: Key, state: Population, offspring: Offspring, evaluation: Evaluation) -> tuple[Population, Info]:
        violation = evaluation.violation
        new = Population(
            genotype=offspring.genotype,
            preference=offspring.preference,
            fitness=evaluation.fitness,
            valid=evaluation.valid,
            violation=jnp.zeros(size) if violation is None else violation,
            merit=state.merit,
        )
        both = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), state, new)
        survivor, merit = survive(rank, both.fitness, both.valid, both.violation, size)
        chosen = jax.tree.map(lambda leaf: leaf[survivor], both)._replace(merit=merit)
        added = jnp.zeros(2 * size, bool).at[survivor].set(chosen.valid)[size:]
        return chosen, Info(added, offspring.source, {})

    return Algorithm(name, config, False, init, ask, tell)


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


def tournament(key: Key, population: Population, num_parents: int) -> Parents:
    """The better of two valid members for each parent; all take part equally often, and of equals the first wins."""
    size = population.valid.shape[0]
    shuffled = _shuffled(key, -(-2 * num_parents // size), population.valid)
    num_valid = jnp.maximum(jnp.sum(population.valid), 1)
    first, second = shuffled[:, jnp.arange(size) % num_valid].reshape(-1)[: 2 * num_parents].reshape(2, num_parents)
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
