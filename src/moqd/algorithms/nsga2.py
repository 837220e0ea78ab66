"""NSGA-II: Deb, Pratap, Agarwal & Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II" (2002).

    repeat
        select parents by binary tournaments on (rank, crowding distance)
        vary them; evaluate
        sort parents and offspring into fronts; fill the next population front by front,
        the last front that fits only in part by descending crowding distance

Deviations: Iso+LineDD is the variation, as in the paper; failed evaluations rank behind all others. Constraints
are handled as in the paper's section VI: feasible solutions first, then those with less violation.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from moqd.algorithms.algorithm import Algorithm
from moqd.algorithms.population import PopulationConfig, Ranked, population_algorithm
from moqd.core.pareto import crowding_distance, non_dominated_ranks
from moqd.tasks.task import Task


def nsga2(name: str, config: PopulationConfig, task: Task) -> Algorithm:
    return population_algorithm(name, config, task, ranked)


def ranked(fitness: Float[Array, "both objectives"], feasible: Bool[Array, "both"], number: int) -> Ranked:
    """By rank, then by crowding distance within the rank."""
    rank = non_dominated_ranks(fitness, feasible)
    crowding = crowding_distance(fitness, feasible, front=rank)
    return Ranked((-crowding, rank), jnp.stack([-rank.astype(crowding.dtype), crowding], axis=1))
