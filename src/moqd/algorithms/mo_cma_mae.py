"""MO-CMA-MAE: Zhao & Nikolaidis, "Multi-Objective Covariance Matrix Adaptation MAP-Annealing" (2025)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from moqd import preferences
from moqd.algorithms.algorithm import Algorithm, archive_for, offspring_of, random_offspring, select_or_random
from moqd.archive import Archive, add, select_uniform, select_crowding
from moqd.errors import InputError
from moqd.pareto import dominates, truncate
from moqd.tasks.task import Task
from moqd.tessellation import nearest_cell
from moqd.types import Evaluation, Info, Key, Offspring, Source
from moqd.variation import cma_es
from moqd.volume import anneal, improvement, shortfall
from moqd.variation.iso_line import iso_line

FULL_PARAMETERS = 100
LEAST_STEP, MOST_STEP = 1e-6, 1e3
BIG = 1e3
TIER_WORST = 3.0
TIER_ALPHA = 0.1


@dataclass(frozen=True)
class MoCmaMaeConfig:
    ga_batch: int = 100
    num_emitters: int = 5
    alpha: float = 0.1
    sigma: float = 0.2
    threshold_length: int = 10
    num_cells: int = 128
    front_length: int = 50
    bounds_by: str = "clip"
    restart_from: str = "uniform"
    restart_sigma: float = 0.0
    patience: int = 1
    epsilon: bool = True
    line_batch: int = 0
    line_sigma: float = 0.05
    iso_sigma: float = 0.005
    spread_sigma: float = 0.0
    select_filter: bool = False
    op: str = "line"
    loose: float = 0.0
    tier: bool = False


class Thresholds(NamedTuple):
    point: Float[Array, "cells threshold objectives"]
    valid: Bool[Array, "cells threshold"]


class Frame(NamedTuple):
    origin: Float[Array, "objectives"]
    unit: Float[Array, "objectives"]
    known: Bool[Array, ""]


class MoCmaMaeState(NamedTuple):
    archive: Archive
    threshold: Thresholds
    emitters: cma_es.Distributions
    frame: Frame
    spread: Float[Array, ""]
    idle: Int[Array, "emitters"]
    reach: Float[Array, "cells"]


def mo_cma_mae(name: str, config: MoCmaMaeConfig, task: Task) -> Algorithm:
    num_emitters = config.num_emitters
    own_batch = config.ga_batch - config.line_batch
    num_samples, rest = divmod(own_batch, num_emitters)
    if rest:
        raise InputError("divisible")
    one = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:], leaf.dtype), jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1)))
    flat, unravel_one = ravel_pytree(one)
    ravel = jax.vmap(lambda genotype: ravel_pytree(genotype)[0])
    unravel = jax.vmap(unravel_one)
    num_parameters = flat.size
    separable = num_parameters > FULL_PARAMETERS
    constants = cma_es.constants(num_parameters, num_samples, separable=separable)
    bounds = task.genotype_bounds

    def init(key):
        offspring = random_offspring(key, task, config.ga_batch)
        archive = archive_for(task, offspring.genotype, num_cells=config.num_cells, front_length=config.front_length)
        vector = ravel(offspring.genotype)
        spread = jnp.ones(()) if bounds is not None else jnp.sqrt(jnp.mean(jnp.var(vector, axis=0)))
        m = task.num_objectives
        threshold = Thresholds(
            jnp.zeros((config.num_cells, config.threshold_length, m)), jnp.zeros((config.num_cells, config.threshold_length), bool)
        )
        emitters = cma_es.start(vector[:num_emitters], jnp.full(num_emitters, config.sigma) * spread, separable=separable)
        frame = Frame(jnp.zeros(m), jnp.ones(m), jnp.zeros((), bool))
        return MoCmaMaeState(archive, threshold, emitters, frame, spread, jnp.zeros(num_emitters, jnp.int32), jnp.full(config.num_cells, -jnp.inf)), offspring

    def ask(key, state):
        key_sample, key_pref, key_sel, key_line = jax.random.split(key, 4)
        x = cma_es.sample(key_sample, state.emitters, num_samples).reshape(own_batch, num_parameters)
        if bounds is not None:
            low, high = bounds
            if config.bounds_by == "mirror":
                w = high - low
                x = (x - low) % (2 * w)
                x = low + jnp.where(x > w, 2 * w - x, x)
            x = jnp.clip(x, low, high)
        preference = preferences.uniform(key_pref, config.ga_batch, task.num_objectives)
        genotype = unravel(x)
        if config.line_batch:
            sel = select_crowding if config.restart_from == "crowding" else select_uniform
            parents = select_or_random(key_sel, task, 2 * config.line_batch, jnp.any(state.archive.valid), lambda k: sel(k, state.archive, 2 * config.line_batch))
            p = jax.tree.map(lambda l: l[:config.line_batch], parents.genotype)
            q = jax.tree.map(lambda l: l[config.line_batch:], parents.genotype)
            if config.op == "line":
                child = iso_line(key_line, p, q, iso_sigma=config.iso_sigma, line_sigma=config.line_sigma, bounds=bounds)
            else:
                child = unravel(sbx_pm(key_line, ravel(p), ravel(q)))
            genotype = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), genotype, child)
        return offspring_of(Source.GA, genotype, preference)

    def tell(key, state, offspring, evaluation):
        key_elite, = jax.random.split(key, 1)
        frame = _frame(task, state.frame, evaluation, config.loose)
        point = evaluation.fitness / frame.unit[None, :] - (frame.origin / frame.unit)[None, :]
        feasible = evaluation.feasible & frame.known
        cell = nearest_cell(evaluation.feature, state.archive.centroid, state.archive.feature_bounds)
        value = jax.vmap(improvement)(point, state.threshold.point[cell], state.threshold.valid[cell])
        value = jnp.where(feasible, value, 0)
        improves = value > 0
        if config.epsilon:
            lacking = jax.vmap(shortfall)(point, state.threshold.point[cell], state.threshold.valid[cell])
            value = jnp.where(improves, value, -jnp.maximum(lacking, 0))
        reach = state.reach
        if config.tier:
            # beyond the reference: CMA-MAE on minus the shortfall
            beyond = -jnp.max(-point, axis=1)
            old = state.reach[cell]
            floor = jnp.where(jnp.isfinite(old), old, -TIER_WORST)
            gain = jnp.where(feasible & (beyond <= 0), jnp.minimum(beyond, 0) - floor, 0)
            value = jnp.where(improves, value + BIG, gain)
            improves_low = ~improves & (gain > 0) & feasible
            best = jnp.full(config.num_cells, -jnp.inf).at[cell].max(jnp.where(feasible, jnp.minimum(beyond, 0), -jnp.inf))
            base = jnp.where(jnp.isfinite(reach), reach, -TIER_WORST)
            reach = jnp.where(best > base, base + TIER_ALPHA * (best - base), reach)
        else:
            improves_low = improves
        archive, added = add(state.archive, offspring, evaluation)
        threshold = _updated(state.threshold, point, cell, improves, config.alpha)

        violation = jnp.zeros_like(value) if evaluation.violation is None else evaluation.violation
        stack = lambda leaf: leaf[:own_batch].reshape(num_emitters, num_samples, *leaf.shape[1:])
        order = jax.vmap(lambda *keys: jnp.lexsort(keys))(stack(-value), stack(violation), stack(~evaluation.valid))
        vector = stack(ravel(offspring.genotype))
        ranked = jnp.take_along_axis(vector, order[..., None], axis=1)
        emitters = cma_es.update(state.emitters, ranked, constants)
        sampled = jnp.all(stack(offspring.source) == Source.GA, axis=1)
        idle = jnp.where(jnp.any(stack(improves | improves_low), axis=1), 0, state.idle + 1)
        over = (idle >= config.patience) & jnp.any(archive.valid)
        over |= ~sampled | cma_es.degenerate(emitters, LEAST_STEP * state.spread, MOST_STEP * state.spread)
        sel = select_crowding if config.restart_from == "crowding" else select_uniform
        elite = select_or_random(key_elite, task, 2 * num_emitters, jnp.any(archive.valid), lambda key: sel(key, archive, 2 * num_emitters))
        own = ~jnp.any(archive.valid) & jnp.any(stack(evaluation.valid), axis=1)
        e = ravel(elite.genotype)
        mean = jnp.where(own[:, None], ranked[:, 0], e[:num_emitters])
        step = jnp.full(num_emitters, config.sigma) * state.spread
        if config.restart_sigma:
            step = jnp.where(sampled, config.restart_sigma * state.spread, step)
        if config.spread_sigma:
            dist = jnp.sqrt(jnp.mean((e[:num_emitters] - e[num_emitters:]) ** 2, axis=1))
            step = jnp.where(dist > 1e-4, config.spread_sigma * dist, step)
        fresh = cma_es.start(mean, step, separable=separable)
        emitters = cma_es.restart(emitters, over, fresh)
        idle = jnp.where(over, 0, idle)
        metrics = {"restarts": jnp.sum(over).astype(jnp.float32), "step": jnp.mean(emitters.step)}
        return MoCmaMaeState(archive, threshold, emitters, frame, state.spread, idle, reach), Info(added, offspring.source, metrics)

    return Algorithm(name, config, False, init, ask, tell)


def sbx_pm(key, p, q, eta_c=15.0, eta_m=20.0):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    n = p.shape[1]
    u = jax.random.uniform(k1, p.shape)
    beta = jnp.where(u <= 0.5, (2 * u) ** (1 / (eta_c + 1)), (1 / (2 * jnp.maximum(1 - u, 1e-7))) ** (1 / (eta_c + 1)))
    cross = jax.random.bernoulli(k2, 0.5, p.shape) & jax.random.bernoulli(k5, 0.9, (p.shape[0], 1))
    child = jnp.where(cross, 0.5 * ((1 + beta) * p + (1 - beta) * q), p)
    u = jax.random.uniform(k3, p.shape)
    child = jnp.clip(child, 0, 1)
    dlow, dhigh = child, 1 - child
    d = jnp.where(u < 0.5, (2 * u + (1 - 2 * u) * (1 - dlow) ** (eta_m + 1)) ** (1 / (eta_m + 1)) - 1,
                  1 - (2 * (1 - u) + 2 * (u - 0.5) * (1 - dhigh) ** (eta_m + 1)) ** (1 / (eta_m + 1)))
    mutate = jax.random.bernoulli(k4, 1 / n, p.shape)
    return jnp.clip(jnp.where(mutate, child + d, child), 0, 1)


def _frame(task, frame, evaluation, loose):
    counts = evaluation.feasible[:, None]
    fitness = evaluation.fitness
    best = jnp.max(fitness, axis=0, where=counts, initial=-jnp.inf)
    worst = jnp.min(fitness, axis=0, where=counts, initial=jnp.inf)
    best, worst = (jnp.where(jnp.isfinite(x), x, 0) for x in (best, worst))
    extent = best - worst
    if task.reference_point is not None:
        origin = jnp.asarray(np.asarray(task.reference_point) * task.direction, jnp.float32)
    else:
        origin = worst - 0.1 * jnp.where(extent > 0, extent, jnp.maximum(jnp.abs(worst), 1.0))
    if loose:
        origin = jnp.minimum(origin, worst - 0.1 * extent) * loose + (1 - loose) * origin
    unit = jnp.maximum(best - origin, extent)
    unit = jnp.where(unit > 0, unit, jnp.maximum(jnp.abs(origin), 1.0))
    new = Frame(origin, unit, jnp.any(evaluation.feasible))
    return jax.tree.map(lambda old, new: jnp.where(frame.known, old, new), frame, new)


def _updated(threshold, point, cell, improves, alpha):
    """candidate by candidate"""
    length = threshold.valid.shape[1]
    def insert(i, threshold):
        front, valid = threshold.point[cell[i]], threshold.valid[cell[i]]
        def enter(_):
            new = anneal(point[i], front, valid, alpha)
            all_points = jnp.concatenate([front, new[None]])
            kept = valid & ~jnp.all(new[None, :] >= front, axis=1)
            kept = jnp.concatenate([kept, jnp.ones(1, bool)])
            kept = truncate(all_points, kept, length)
            free = jnp.argmin(kept[:-1])
            place = jnp.where(kept[-1], free, length)
            return Thresholds(
                threshold.point.at[cell[i], place].set(new, mode="drop"),
                threshold.valid.at[cell[i]].set(kept[:-1]).at[cell[i], place].set(True, mode="drop"),
            )
        return jax.lax.cond(improvement(point[i], front, valid) > 0, enter, lambda _: threshold, None)

    order = jnp.nonzero(improves, size=improves.size, fill_value=0)[0]
    return jax.lax.fori_loop(0, jnp.sum(improves), lambda i, t: insert(order[i], t), threshold)
