"""SPEA2: Zitzler, Laumanns & Thiele, "SPEA2: Improving the Strength Pareto Evolutionary Algorithm" (2001).

    repeat
        strength S(i): how many i dominates; raw fitness R(i): the strengths of all that dominate i, added up
        density D(i) = 1 / (distance to the k-th nearest + 2), k the root of the number of points; F = R + D
        the next archive: all with F < 1 (the non-dominated); too few: the best of the others by F; too many: truncation
        select parents from it by binary tournaments on F; vary; evaluate

Deviations: Iso+LineDD is the variation, as in the paper; failed evaluations stand behind all others,
infeasible solutions behind the feasible, by their violation.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moqd.algorithms.algorithm import Algorithm
from moqd.algorithms.population import PopulationConfig, Ranked, population_algorithm
from moqd.tasks.task import Task


def spea2(name: str, config: PopulationConfig, task: Task) -> Algorithm:
    return population_algorithm(name, config, task, ranked)


def ranked(fitness: Float[Array, "both objectives"], feasible: Bool[Array, "both"], number: int) -> Ranked:
    """SPEA2's environmental selection."""
    distance = squared_distances(fitness, feasible)
    score = spea2_fitness(fitness, feasible, distance)
    non_dominated = feasible & (score < 1)
    kept = jax.lax.cond(
        jnp.sum(non_dominated) > number,
        lambda: truncate(fitness, distance, non_dominated, number),
        lambda: non_dominated,
    )
    # The kept non-dominated first; then, where these are too few, the others by their fitness.
    return Ranked((score, ~kept & non_dominated), -score[:, None])


def squared_distances(fitness: Float[Array, "n objectives"], valid: Bool[Array, "n"]) -> Float[Array, "n n"]:
    """Between all pairs in objective space; infinite to itself and to what is not valid."""
    distance = jnp.zeros((fitness.shape[0],) * 2)
    for value in fitness.T:
        distance += (value[:, None] - value[None, :]) ** 2
    pair = valid[:, None] & valid[None, :] & ~jnp.eye(fitness.shape[0], dtype=bool)
    return jnp.where(pair, distance, jnp.inf)


def spea2_fitness(
    fitness: Float[Array, "n objectives"], valid: Bool[Array, "n"], distance: Float[Array, "n n"]
) -> Float[Array, "n"]:
    """Raw fitness plus density, to be minimised; below 1 for exactly the non-dominated."""
    num_points = fitness.shape[0]
    pair = valid[:, None] & valid[None, :]
    as_good, better = pair, jnp.zeros_like(pair)
    for value in fitness.T:
        as_good &= value[:, None] >= value[None, :]
        better |= value[:, None] > value[None, :]
    beats = as_good & better
    strength = jnp.sum(beats, axis=1)
    raw = jnp.sum(jnp.where(beats, strength[:, None], 0), axis=0)
    k = max(int(num_points**0.5), 1)
    return raw.astype(distance.dtype) + 1 / (jnp.sqrt(kth_least(distance, k)) + 2)


def kth_least(values: Float[Array, "rows columns"], k: int) -> Float[Array, "rows"]:
    """The k-th least of each row of non-negative values, by bisection.

    Non-negative floats are ordered as the integers of the same bits, so 31 halvings find it exactly; on a CPU that is
    ten times as fast as sorting or `top_k`.
    """
    bits = jax.lax.bitcast_convert_type(values, jnp.int32)
    lowest = jnp.zeros(values.shape[0], jnp.int32)
    highest = jnp.full_like(lowest, np.float32(np.inf).view(np.int32))

    def halve(_: Int[Array, ""], interval: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = interval
        middle = low + (high - low) // 2
        enough = jnp.sum(bits <= middle[:, None], axis=1) >= k
        return jnp.where(enough, low, middle + 1), jnp.where(enough, middle, high)

    return jax.lax.bitcast_convert_type(jax.lax.fori_loop(0, 31, halve, (lowest, highest))[0], jnp.float32)


def truncate(
    fitness: Float[Array, "n objectives"], distance: Float[Array, "n n"], members: Bool[Array, "n"], number: int
) -> Bool[Array, "n"]:
    """Which members stay when the one nearest to another goes until `number` are left.

    Ties, and two that are each other's nearest always tie, go by the distance to the second nearest, and so on: the
    lexicographic order of the ascending distances. Nothing is sorted for that. Each member's nearest distance is kept
    up to date, and the few that tie for the least are compared value by value. Equal vectors have equal distances, so
    the first of them speaks for all, and the last of them goes.
    """
    num_points = fitness.shape[0]
    index = jnp.arange(num_points)
    # By their values: the squared distance of two that hardly differ is 0 too.
    equals = members[:, None] & members[None, :]
    for value in fitness.T:
        equals &= value[:, None] == value[None, :]
    speaker = jnp.argmax(equals | (index[:, None] == index[None, :]), axis=1)

    def alive_distances(i: Int[Array, ""], alive: Bool[Array, "n"]) -> Float[Array, "n"]:
        return jnp.where(alive, distance[i], jnp.inf)

    def is_nearer(i: Int[Array, ""], j: Int[Array, ""], alive: Bool[Array, "n"]) -> Bool[Array, ""]:
        """Whether the ascending distances of i are lexicographically less than those of j."""
        to_i, to_j = alive_distances(i, alive), alive_distances(j, alive)

        def next_values(bound: Float[Array, ""]) -> tuple[Array, Array, Array, Array]:
            least_i = jnp.min(to_i, where=to_i > bound, initial=jnp.inf)
            least_j = jnp.min(to_j, where=to_j > bound, initial=jnp.inf)
            return least_i, least_j, jnp.sum(to_i == least_i), jnp.sum(to_j == least_j)

        def same(values: tuple[Array, Array, Array, Array]) -> Bool[Array, ""]:
            return (values[0] == values[1]) & (values[2] == values[3]) & jnp.isfinite(values[0])

        start = next_values(jnp.full((), -1.0))
        least_i, least_j, count_i, count_j = jax.lax.while_loop(same, lambda values: next_values(values[0]), start)
        # With the same value, the one that has it more often is nearer.
        return (least_i < least_j) | ((least_i == least_j) & (count_i > count_j) & jnp.isfinite(least_i))

    def remove_one(state: tuple[Bool[Array, "n"], Float[Array, "n"]]) -> tuple[Bool[Array, "n"], Float[Array, "n"]]:
        alive, nearest = state
        least = jnp.min(nearest, where=alive, initial=jnp.inf)
        ties = alive & (nearest == least) & (speaker == index)

        def next_tie(after: Int[Array, ""]) -> Int[Array, ""]:
            return jnp.min(index, where=ties & (index > after), initial=num_points)

        def compare(pair: tuple[Int[Array, ""], Int[Array, ""]]) -> tuple[Int[Array, ""], Int[Array, ""]]:
            best, rival = pair
            return jnp.where(is_nearer(rival, best, alive), rival, best), next_tie(rival)

        first = next_tie(jnp.full((), -1, index.dtype))
        best, _ = jax.lax.while_loop(lambda pair: pair[1] < num_points, compare, (first, next_tie(first)))
        gone = jnp.max(index, where=alive & (speaker == best), initial=0)
        alive = alive.at[gone].set(False)

        # Only those whose nearest was the one that went need to look for another; while an equal of it is left,
        # only that equal, and while two are, nobody.
        equal = alive & (speaker == best)
        lost = alive & (distance[gone] == nearest)
        lost &= jnp.where(jnp.any(equal), equal & (jnp.sum(equal) == 1), lost)

        def find_nearest(state: tuple[Bool[Array, "n"], Array]) -> tuple[Bool[Array, "n"], Array]:
            lost, nearest = state
            i = jnp.argmax(lost)
            return lost.at[i].set(False), nearest.at[i].set(jnp.min(alive_distances(i, alive)))

        _, nearest = jax.lax.while_loop(lambda state: jnp.any(state[0]), find_nearest, (lost, nearest))
        return alive, nearest

    nearest = jnp.min(jnp.where(members[None, :], distance, jnp.inf), axis=1)
    alive, _ = jax.lax.while_loop(lambda state: jnp.sum(state[0]) > number, remove_one, (members, nearest))
    return alive
