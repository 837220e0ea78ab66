"""PG-MORL: Xu, Tian, Ma, Rus, Sueda & Matusik, "Prediction-Guided Multi-Objective Reinforcement Learning for Continuous
Robot Control" (ICML 2020).

    warm-up: one policy for each weight of an even grid, all trained by PPO with vector values
    repeat (a generation)
        population: the policies farthest from the origin in each direction of objective space (performance buffers)
        prediction: a hyperbolic model of what training for a weight changes, fitted to what it has changed
        task selection: the pairs of a policy and a weight that add most to hypervolume minus sparsity, as predicted
        improvement: each pair is trained by PPO for a few iterations; every iterate is offered to the Pareto archive

An iteration evaluates every policy in training as it is, and rolls its other episodes with noise for PPO to learn from.
Objective space is that of fitness from the reference point, in units of the range from there to the best seen.
Deviations: see docs/deviations.md.
"""

from dataclasses import dataclass, field
from itertools import combinations
from math import comb, pi
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moqd.algorithms.algorithm import Algorithm, ArchiveConfig, Draw, init_key, random_offspring
from moqd.algorithms.prediction import History, no_history, predict, recorded
from moqd.core.networks import apply_policy
from moqd.core.pareto import dominates, non_dominated, truncate
from moqd.core.parts import part
from moqd.core.types import Evaluation, Info, Key, Offspring, Source, Transition
from moqd.core.volume import improvement
from moqd.io.errors import InputError
from moqd.rl.ppo import Learner, Losses, PPOConfig, init_learner, policy_of, seen, train
from moqd.tasks.task import Task

SAME = 1e-3
"""Weights that differ less than this are the same."""
NOBODY = -1


@dataclass(frozen=True, kw_only=True)
class PgMorlConfig(PPOConfig, ArchiveConfig):
    """Hyper-parameters of PG-MORL. PPO's are its paper's; generations are shorter, for smaller budgets."""

    episode_batch: int = 256
    """Episodes per iteration: one of each policy in training as it is, the others with noise, in equal shares."""
    warm_up: int = 60
    """Iterations until tasks are selected for the first time; a multiple of `generation`."""
    generation: int = 10
    """Iterations for which the selected tasks are trained."""
    grid_parts: int = field(default=0, metadata={"least": 0})
    """Parts into which warm-up divides each weight, which says how many tasks there are. 0: as in the paper, 5 for two
    objectives (6 tasks) and 4 for three (15 tasks); 2 for more."""
    num_candidates: int = 7
    """Weights that are considered for each policy."""
    sparsity_weight: float = 1.0
    """How much the sparsity of the predicted front counts against its hypervolume."""
    buffers: int = field(default=0, metadata={"least": 0})
    """Directions of objective space for which the best policies are kept. 0: as in the paper, 100 for two objectives;
    for more, a grid with 19 parts of each side or the finest one with at most 210 directions."""
    buffer_length: int = 2
    """Policies that are kept for each direction."""
    front_size: int = 200
    """Maximum number of solutions in the external Pareto archive, which prediction starts from."""


class Population(NamedTuple):
    """The best policies by direction: `buffer_length` places for each, one direction after the other."""

    learner: Learner
    fitness: Float[Array, "places objectives"]
    weight: Float[Array, "places objectives"]
    """What each was trained for last."""
    number: Int[Array, "places"]
    """By which it is known; NOBODY where the place is empty."""


class Front(NamedTuple):
    """The external Pareto archive. The policies themselves are in the passive archive."""

    fitness: Float[Array, "places objectives"]
    valid: Bool[Array, "places"]


class Tasks(NamedTuple):
    """The policies in training, and what for."""

    learner: Learner
    weight: Float[Array, "tasks objectives"]
    parent: Int[Array, "tasks"]
    """The number of what each was when the generation began; NOBODY if that was not evaluated."""
    before: Float[Array, "tasks objectives"]
    """...and the fitness of that."""
    episodes: Int[Array, "tasks"]
    """Whose episodes of this iteration are its own; NOBODY: none, because it was selected from earlier ones."""


class PgMorlState(NamedTuple):
    tasks: Tasks
    population: Population
    history: History
    front: Front
    reference: Float[Array, "objectives"]
    best: Float[Array, "objectives"]
    iteration: Int[Array, ""]
    """How many batches of its own were evaluated."""


def pg_morl(name: str, config: PgMorlConfig, task: Task) -> Algorithm:
    policy, num_objectives = task.policy, task.num_objectives
    if policy is None or policy.apply is not apply_policy:
        raise InputError(
            f"algorithm {name!r} trains networks with relu and tanh, but the solutions of task {task.name!r} are not "
            "such policies; use 'mome' for it, or a task such as 'hopper-2'."
        )
    grid = simplex_grid(num_objectives, config.grid_parts or {2: 5, 3: 4}.get(num_objectives, 2))
    direction, num_tasks = directions(num_objectives, config.buffers), len(grid)
    _check(config, num_tasks)
    # One episode of each task as it is, then those with noise, in turn.
    row_task = np.concatenate([np.arange(num_tasks), np.arange(config.episode_batch - num_tasks) % num_tasks])
    given = task.reference_point

    def init(key: Key) -> tuple[PgMorlState, Offspring]:
        offspring = random_offspring(key, task, config.episode_batch)
        keys = jax.random.split(init_key(key, Draw.AGENT), num_tasks)
        learner = jax.vmap(lambda key: init_learner(key, policy, num_objectives, config))(keys)
        nobody, worst = jnp.full(num_tasks, NOBODY, jnp.int32), jnp.full(num_objectives, -jnp.inf, jnp.float32)
        return PgMorlState(
            tasks=Tasks(learner, jnp.asarray(grid), nobody, jnp.zeros_like(jnp.asarray(grid)), jnp.array(nobody)),
            population=empty_population(learner, len(direction) * config.buffer_length, num_objectives),
            history=no_history(num_objectives),
            front=Front(jnp.zeros((config.front_size, num_objectives)), jnp.zeros(config.front_size, bool)),
            reference=worst if given is None else jnp.asarray(np.asarray(given) * task.direction, jnp.float32),
            best=jnp.array(worst),
            iteration=jnp.zeros((), jnp.int32),
        ), offspring._replace(noise=jnp.zeros((config.episode_batch, policy.num_actions)))

    def ask(key: Key, state: PgMorlState) -> Offspring:
        genotype, noise = jax.vmap(policy_of)(state.tasks.learner), state.tasks.learner.noise
        return Offspring(
            genotype=jax.tree.map(lambda leaf: leaf[row_task], genotype),
            preference=state.tasks.weight[row_task],
            source=jnp.full(config.episode_batch, int(Source.PG), jnp.int32),
            noise=jnp.where(np.arange(config.episode_batch)[:, None] < num_tasks, 0, noise[row_task]),
        )

    def select(key: Key, state: PgMorlState, fitness: Array, valid: Array) -> tuple[Tasks, Population, History]:
        """The end of a generation: what was trained is recorded, enters the population, and new tasks are selected."""
        tasks, unit = state.tasks, unit_of(state)
        history = recorded(
            state.history,
            tasks.before,
            tasks.weight,
            fitness - tasks.before,
            tasks.parent,
            valid & (tasks.parent != NOBODY),
        )
        number = state.iteration * num_tasks + jnp.arange(num_tasks, dtype=jnp.int32)
        newcomers = Population(tasks.learner, fitness, tasks.weight, jnp.where(valid, number, NOBODY))
        population = renewed(state.population, newcomers, direction, state.reference, unit, config.buffer_length)
        same = Tasks(tasks.learner, tasks.weight, newcomers.number, fitness, jnp.arange(num_tasks, dtype=jnp.int32))
        weight, counts = candidates(key, population, history, config)
        predicted = predict(history, population.fitness, population.number >= 0, weight, state.reference, unit)
        front = state.front._replace(fitness=(state.front.fitness - state.reference[None]) / unit[None])
        member, which, found = best_tasks(predicted, counts, front, num_tasks, config.sparsity_weight)
        chosen = jax.tree.map(lambda leaf: leaf[member], population)
        of_newcomer = chosen.number[:, None] == number[None, :]
        selected = Tasks(
            learner=chosen.learner,
            weight=weight[member, which],
            parent=chosen.number,
            before=chosen.fitness,
            episodes=jnp.where(jnp.any(of_newcomer, axis=1), jnp.argmax(of_newcomer, axis=1), NOBODY).astype(jnp.int32),
        )
        found &= state.iteration >= config.warm_up
        choose = lambda new, old: jnp.where(found.reshape(-1, *[1] * (new.ndim - 1)), new, old)  # noqa: E731
        return jax.tree.map(choose, selected, same), population, history

    @part("training")
    def learn(key: Key, tasks: Tasks, transitions: Transition, unit: Array) -> tuple[Learner, Losses]:
        episodes = jax.tree.map(lambda leaf: leaf[jnp.maximum(tasks.episodes, 0)], transitions)
        own = (tasks.episodes != NOBODY)[:, None, None]
        return train(
            key, tasks.learner, episodes._replace(valid=episodes.valid & own), tasks.weight / unit[None], config
        )

    def tell(key: Key, state: PgMorlState, offspring: Offspring, evaluation: Evaluation) -> tuple[PgMorlState, Info]:
        key_select, key_train = jax.random.split(key)
        is_own = offspring.source[0] == int(Source.PG)  # other batches are random, or from another run
        feasible = offspring.may_enter(evaluation)
        front, added = extended(state.front, evaluation.fitness, feasible)
        highest = jnp.max(evaluation.fitness, axis=0, where=feasible[:, None], initial=-jnp.inf)
        lowest = jnp.min(evaluation.fitness, axis=0, where=feasible[:, None], initial=jnp.inf)
        best = jnp.maximum(state.best, highest)
        unknown = jnp.isinf(state.reference) & jnp.isfinite(lowest)
        reference = jnp.where(unknown, lowest - 0.1 * (highest - lowest), state.reference)
        state = state._replace(front=front, reference=reference, best=best)

        transitions = by_task(evaluation, row_task, num_tasks)
        fitness, valid = evaluation.fitness[:num_tasks], feasible[:num_tasks] & is_own
        fresh = state.tasks.learner
        tasks = state.tasks._replace(
            learner=jax.lax.cond(is_own, lambda: fresh, lambda: with_obs(fresh, evaluation)),
            episodes=jnp.where(is_own, jnp.arange(num_tasks, dtype=jnp.int32), NOBODY),
        )
        state = state._replace(tasks=tasks)
        is_end = is_own & (state.iteration % config.generation == 0)
        tasks, population, history = jax.lax.cond(
            is_end,
            lambda: select(key_select, state, fitness, valid),
            lambda: (tasks, state.population, state.history),
        )
        learner, losses = learn(key_train, tasks, transitions, unit_of(state))
        metrics = {
            "policy_loss": losses.policy,
            "value_loss": losses.value,
            "noise": jnp.mean(learner.noise),
            "front_size": jnp.sum(front.valid).astype(jnp.float32),
            "population": jnp.sum(population.number >= 0).astype(jnp.float32),
        }
        iteration = state.iteration + is_own.astype(jnp.int32)
        tasks = tasks._replace(learner=learner)
        state = PgMorlState(tasks, population, history, front, reference, best, iteration)
        return state, Info(added, offspring.source, metrics)

    return Algorithm(name, config, init, ask, tell, needs_transitions=True)


# Performance buffers


def empty_population(learner: Learner, places: int, num_objectives: int) -> Population:
    return Population(
        learner=jax.tree.map(lambda leaf: jnp.zeros((places, *leaf.shape[1:]), leaf.dtype), learner),
        fitness=jnp.zeros((places, num_objectives)),
        weight=jnp.zeros((places, num_objectives)),
        number=jnp.full(places, NOBODY, jnp.int32),
    )


def renewed(
    population: Population,
    newcomers: Population,
    direction: Float[np.ndarray, "directions objectives"],
    reference: Float[Array, "objectives"],
    unit: Float[Array, "objectives"],
    buffer_length: int,
) -> Population:
    """Old and new, of which each direction keeps those that are farthest from the reference point."""
    both = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), population, newcomers)
    point = (both.fitness - reference[None]) / unit[None]
    counts = (both.number != NOBODY) & (jnp.min(point, axis=1) > 0)
    distance = jnp.linalg.norm(point, axis=1)
    nearest = jnp.where(counts, jnp.argmax(point @ direction.T, axis=1), len(direction))
    index = jnp.arange(len(counts))
    ties = (distance[None] == distance[:, None]) & (index[None] < index[:, None])
    farther = (distance[None] > distance[:, None]) | ties
    rank = jnp.sum((nearest[None] == nearest[:, None]) & counts[None] & farther, axis=1)
    places = len(direction) * buffer_length
    place = jnp.where(counts & (rank < buffer_length), nearest * buffer_length + rank, places)
    source = jnp.full(places, NOBODY).at[place].set(index, mode="drop")
    moved = jax.tree.map(lambda leaf: leaf[jnp.maximum(source, 0)], both)
    return moved._replace(number=jnp.where(source == NOBODY, NOBODY, moved.number))


def directions(num_objectives: int, number: int) -> Float[np.ndarray, "directions objectives"]:
    """Unit vectors of the first orthant: the middles of equal angles, or those of a grid."""
    if num_objectives == 2:
        angle = (np.arange(number or 100) + 0.5) * pi / 2 / (number or 100)
        return np.stack([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)
    parts = 1
    while parts < 19 and comb(parts + num_objectives, num_objectives - 1) <= (number or 210):
        parts += 1
    grid = simplex_grid(num_objectives, parts)
    return grid / np.linalg.norm(grid, axis=1, keepdims=True)


def simplex_grid(num_objectives: int, parts: int) -> Float[np.ndarray, "weights objectives"]:
    """All weights that are multiples of 1 / parts."""
    bars = np.array(list(combinations(range(parts + num_objectives - 1), num_objectives - 1)), int)
    ends = np.full((len(bars), 1), parts + num_objectives - 1)
    edges = np.hstack([np.full((len(bars), 1), -1), bars.reshape(len(bars), num_objectives - 1), ends])
    return ((np.diff(edges, axis=1) - 1) / parts).astype(np.float32)


# Task selection


def candidates(
    key: Key, population: Population, history: History, config: PgMorlConfig
) -> tuple[Float[Array, "places candidates objectives"], Bool[Array, "places candidates"]]:
    """Weights within 45 degrees of what each policy was trained for last, and which of them it was not trained for yet.

    For two objectives they are even angles; for more, its own weight and others of a grid at random.
    """
    weight, number = population.weight, config.num_candidates
    num_objectives = weight.shape[1]
    if num_objectives == 2:
        angle = jnp.arctan2(weight[:, 1], weight[:, 0])[:, None] + jnp.linspace(-pi / 4, pi / 4, number)[None]
        found = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)
        allowed = jnp.min(found, axis=-1) >= -1e-6
        found = jnp.maximum(found, 0)
    else:
        grid = jnp.asarray(simplex_grid(num_objectives, 8))
        cosine = weight @ grid.T / jnp.linalg.norm(grid, axis=1)[None]
        cosine /= jnp.maximum(jnp.linalg.norm(weight, axis=1), 1e-20)[:, None]
        other = jnp.max(jnp.abs(weight[:, None] - grid[None]), axis=-1) > SAME
        lot = jax.random.uniform(key, cosine.shape) + jnp.where((cosine >= np.cos(pi / 4)) & other, 0, 2)
        chosen = jnp.argsort(lot, axis=1)[:, : number - 1]
        found = jnp.concatenate([weight[:, None], grid[chosen]], axis=1)
        near = jnp.take_along_axis(lot, chosen, axis=1) < 1
        allowed = jnp.concatenate([jnp.ones((len(weight), 1), bool), near], axis=1)
    found /= jnp.maximum(jnp.sum(found, axis=-1, keepdims=True), 1e-20)

    def tried(number: Int[Array, ""], weights: Float[Array, "candidates objectives"]) -> Bool[Array, "candidates"]:
        same = jnp.max(jnp.abs(weights[:, None] - history.weight[None]), axis=-1) < SAME
        return jnp.any(same & (history.parent == number)[None], axis=1)

    allowed &= (population.number != NOBODY)[:, None] & ~jax.vmap(tried)(population.number, found)
    return found, allowed


def best_tasks(
    predicted: Float[Array, "places candidates objectives"],
    allowed: Bool[Array, "places candidates"],
    front: Front,
    number: int,
    sparsity_weight: float,
) -> tuple[Int[Array, "tasks"], Int[Array, "tasks"], Bool[Array, "tasks"]]:
    """The places and candidates of the tasks that raise hypervolume - weight x sparsity most, one after the other.

    The reference point is the origin. The last of what is returned says which tasks were found: there may be fewer.
    """
    point, num_candidates = predicted.reshape(-1, predicted.shape[-1]), predicted.shape[1]

    def add_best(i: Int[Array, ""], state: tuple[Front, Array, Array, Array]) -> tuple[Front, Array, Array, Array]:
        virtual, allowed, chosen, found = state
        volume = jax.vmap(lambda point: improvement(point, virtual.fitness, virtual.valid))(point)
        gaps = jax.vmap(lambda point: sparsity_with(point, virtual))(point)
        best = jnp.argmax(jnp.where(allowed, volume - sparsity_weight * gaps, -jnp.inf))
        exists, last = allowed[best], virtual.valid.shape[0] - number + i
        virtual = Front(virtual.fitness.at[last].set(point[best]), virtual.valid.at[last].set(exists))
        virtual = virtual._replace(valid=non_dominated(virtual.fitness, virtual.valid))
        return virtual, allowed.at[best].set(False), chosen.at[i].set(best), found.at[i].set(exists)

    room = Front(jnp.zeros((number, point.shape[1])), jnp.zeros(number, bool))
    virtual = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), front, room)
    start = (virtual, allowed.reshape(-1), jnp.zeros(number, jnp.int32), jnp.zeros(number, bool))
    _, _, chosen, found = jax.lax.fori_loop(0, number, add_best, start)
    return chosen // num_candidates, chosen % num_candidates, found


def sparsity_with(point: Float[Array, "objectives"], front: Front) -> Float[Array, ""]:
    """The sparsity of a front after a point is offered to it: mean squared gaps, summed over objectives."""
    beaten = jnp.any(front.valid & jnp.all(front.fitness >= point[None], axis=1))
    stays = front.valid & ~dominates(jnp.broadcast_to(point, front.fitness.shape), front.fitness)
    points = jnp.concatenate([front.fitness, point[None]])
    valid = jnp.append(jnp.where(beaten, front.valid, stays), ~beaten)
    ordered = jnp.sort(jnp.where(valid[:, None], points, jnp.inf), axis=0)
    gap = jnp.where(jnp.isfinite(ordered[1:]), ordered[1:] - jnp.where(jnp.isfinite(ordered[1:]), ordered[:-1], 0), 0)
    return jnp.sum(gap**2) / jnp.maximum(jnp.sum(valid) - 1, 1).astype(jnp.float32)


# The rest


def extended(
    front: Front, fitness: Float[Array, "batch objectives"], feasible: Bool[Array, "batch"]
) -> tuple[Front, Bool[Array, "batch"]]:
    """The front with a batch offered to it, and who of the batch is in it."""
    size = front.valid.shape[0]
    points, valid = jnp.concatenate([front.fitness, fitness]), jnp.concatenate([front.valid, feasible])
    first = jnp.argmax(jnp.all(points[:, None] == points[None], axis=-1) & valid[None], axis=1)
    valid &= first == jnp.arange(len(valid))  # of equals
    valid = truncate(points, non_dominated(points, valid), size)
    kept = jnp.argsort(~valid, stable=True)[:size]
    return Front(points[kept], valid[kept]), valid[size:]


def by_task(evaluation: Evaluation, row_task: Int[np.ndarray, "batch"], num_tasks: int) -> Transition:
    """The episodes with noise, (tasks, episodes, time, ...); a task that has one less gets an empty one."""
    transitions = sound_steps(evaluation)
    each = transitions.valid.shape[0] // evaluation.valid.shape[0]
    rows = -(-len(row_task) // num_tasks) * num_tasks
    place = np.arange(num_tasks, rows).reshape(-1, num_tasks).T
    there = np.repeat(place < len(row_task), each, axis=1)
    index = (np.minimum(place, len(row_task) - 1)[..., None] * each + np.arange(each)).reshape(num_tasks, -1)
    found = jax.tree.map(lambda leaf: leaf[index], transitions)
    return found._replace(valid=found.valid & there[..., None])


def with_obs(learner: Learner, evaluation: Evaluation) -> Learner:
    """Learners that know the observations of a batch that is not theirs."""
    stats = jax.vmap(seen, in_axes=(0, None))(learner.obs_stats, sound_steps(evaluation))
    return learner._replace(obs_stats=stats)


def sound_steps(evaluation: Evaluation) -> Transition:
    """The transitions without those of failed evaluations."""
    transitions = evaluation.transitions
    assert transitions is not None
    each = transitions.valid.shape[0] // evaluation.valid.shape[0]  # of one policy: over resamples
    return transitions._replace(valid=transitions.valid & jnp.repeat(evaluation.valid, each)[:, None])


def unit_of(state: PgMorlState) -> Float[Array, "objectives"]:
    """The range of each objective from the reference point to the best seen."""
    extent = state.best - state.reference
    return jnp.where(jnp.isfinite(extent) & (extent > 0), extent, 1)


def _check(config: PgMorlConfig, num_tasks: int) -> None:
    if config.episode_batch < 2 * num_tasks:
        raise InputError(
            f"episode_batch is {config.episode_batch}, but each of the {num_tasks} policies in training needs an "
            f"episode as it is and one with noise; give at least {2 * num_tasks}, or a smaller grid_parts."
        )
    if config.warm_up % config.generation:
        raise InputError(
            f"warm_up is {config.warm_up}, but tasks are selected every {config.generation} iterations; give a "
            "multiple of generation."
        )
    if config.initial_noise == 0:
        raise InputError("initial_noise is 0, so that there would be nothing to learn from; give a number above 0.")
    if config.discount >= 1:
        raise InputError(f"discount is {config.discount}; give a number below 1, or values would not stay finite.")
