"""NSGA-II: Deb, Pratap, Agarwal & Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II" (2002).

    repeat
        select parents by binary tournaments on (rank, crowding distance)
        vary them; evaluate
        sort parents and offspring into fronts; fill the next population front by front,
        the last front that fits only in part by descending crowding distance

Deviations: Iso+LineDD is the variation, as in the paper; failed evaluations rank behind all others.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moqd.algorithms.algorithm import Algorithm
from moqd.algorithms.population import Merit, PopulationConfig, population_algorithm
from moqd.pareto import crowding_distance, non_dominated_ranks
from moqd.tasks.task import Task


def nsga2(name: str, config: PopulationConfig, task: Task) -> Algorithm:
    return population_algorithm(name, config, task, survive)


def survive(
    fitness: Float[Array, "both objectives"], valid: Bool[Array, "both"], number: int
) -> tuple[Int[Array, "population"], Merit]:
    """The best by rank, then by crowding distance within the rank."""
    rank = non_dominated_ranks(fitness, valid)
    crowding = crowding_distance(fitness, valid, front=rank)
    survivor = jnp.lexsort((-crowding, rank))[:number]
    return survivor, jnp.stack([-rank.astype(crowding.dtype), crowding], axis=1)[survivor]
