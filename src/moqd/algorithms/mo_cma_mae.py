"""MO-CMA-MAE: Zhao & Nikolaidis, "Multi-Objective Covariance Matrix Adaptation MAP-Annealing" (GECCO 2025).

    repeat
        every emitter, a CMA-ES, samples solutions
        evaluate; the value of a solution is its hypervolume improvement over the threshold front T of its cell
        add to each cell's front what is not dominated there; from a front over its length the most crowded go
        for each solution whose value is positive, in order
            T of its cell receives r + d (f - r), with d such that its improvement is alpha times that of f
        every emitter ranks its solutions by value, and updates mean, step and covariance
        an emitter of which nothing improved, or that has degenerated, restarts from a random member of the archive

Fronts T begin empty, so that new cells are worth most, and rise slowly, so that an emitter leaves a cell only when it
yields less than others. r is the task's reference point; without one, the first feasible batch settles it.

Deviations:
- While a cell holds nothing above r, all of its hypervolume improvements are 0 and nothing could be ranked. There
  CMA-MAE (Fontaine & Nikolaidis, 2023) is at work: the value is by how much f is nearer to r (its largest shortfall in
  an objective) than the cell's threshold, which is annealed by the same alpha. `approach=False` turns this off.
- 2 emitters instead of 5 and first steps of 0.2 instead of 0.5: ahead on most problems that we tried.
- An emitter that restarts in vain tries smaller steps next.
- What is evaluated has been brought to the bounds; emitters learn from what they had sampled, to a quarter of the cube
  beyond. Learning from what was evaluated, they shrink where the best solutions have parameters at their bounds;
  without a limit, they are lost where nothing changes any more.
- Feasible solutions come first, then infeasible ones by violation, then failed ones. While the archive is empty,
  emitters that degenerate restart from their own best.
- Beyond 100 parameters covariances are diagonal; beyond 3 objectives improvements are estimated (`moqd.core.volume`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from moqd.algorithms.algorithm import (
    Algorithm,
    ArchiveConfig,
    archive_for,
    offspring_of,
    random_offspring,
    select_or_random,
)
from moqd.core import preferences
from moqd.core.archive import Archive, add, select_uniform
from moqd.core.tessellation import nearest_cell
from moqd.core.thresholds import Thresholds, anneal_thresholds, empty_thresholds
from moqd.core.types import Evaluation, Info, Key, Offspring, Source
from moqd.core.volume import improvement, shortfall
from moqd.io.errors import InputError
from moqd.tasks.task import Task
from moqd.variation import cma_es

FULL_PARAMETERS = 100
"""Up to so many the covariance is a full matrix: its decomposition takes 0.5 ms for each emitter then."""
LEAST_STEP, MOST_STEP = 1e-6, 1e3
"""Beyond these an emitter restarts; in the unit cube, or in units of the spread of random genotypes."""

BEYOND = 0.25
"""How far beyond the bounds, which are those of the unit cube, an emitter may be."""
SMALLER = 16
"""By how much less than `sigma` the first step may be, where larger ones improve nothing."""


@dataclass(frozen=True)
class MoCmaMaeConfig(ArchiveConfig):
    """Hyper-parameters of MO-CMA-MAE; alpha and the length of threshold fronts are the paper's."""

    ga_batch: int = 80
    """Samples per iteration, of all emitters; a multiple of num_emitters."""
    num_emitters: int = 2
    """CMA-ES that search at the same time; the paper has 5."""
    alpha: float = 0.1
    """How fast thresholds rise: 0 keeps exploring new cells, 1 demands an improvement of what was found."""
    sigma: float = 0.2
    """First step size of an emitter, in the unit cube; of unbounded genotypes, in units of their random spread."""
    approach: bool = True
    """Whether cells with nothing above the reference point are searched for what is nearest to it."""
    threshold_length: int = 10
    """Maximum number of points in a threshold front."""


class Scale(NamedTuple):
    """How fitness is measured. Ratios of volumes do not depend on units; these keep them within 32 bits."""

    reference: Float[Array, "objectives"]
    unit: Float[Array, "objectives"]
    known: Bool[Array, ""]


class MoCmaMaeState(NamedTuple):
    archive: Archive
    threshold: Thresholds
    emitters: cma_es.Distributions
    sample: Float[Array, "batch parameters"]
    """What the emitters ask for next, before it is brought to the bounds."""
    scale: Scale
    spread: Float[Array, ""]
    """Of random genotypes; 1 where they are bounded."""
    started: Bool[Array, ""]
    """Whether an evaluation has succeeded yet; until then all genotypes are random."""


def mo_cma_mae(name: str, config: MoCmaMaeConfig, task: Task) -> Algorithm:
    number, bounds, num_objectives = config.num_emitters, task.genotype_bounds, task.num_objectives
    num_samples, rest = divmod(config.ga_batch, number)
    if rest or not 0 < config.alpha <= 1:
        raise InputError(
            f"ga_batch is {config.ga_batch}; give a multiple of num_emitters, which is {number}."
            if rest
            else f"alpha is {config.alpha}; give a number above 0 and at most 1."
        )
    one = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape[1:], leaf.dtype),
        jax.eval_shape(lambda key: task.init_genotype(key, 1), jax.random.key(0)),
    )
    num_parameters, unravel = ravel_pytree(one)[0].size, jax.vmap(ravel_pytree(one)[1])
    ravel = jax.vmap(lambda genotype: ravel_pytree(genotype)[0])
    separable = num_parameters > FULL_PARAMETERS
    constants = cma_es.constants(num_parameters, num_samples, separable=separable)

    def by_emitter(leaf: Array) -> Array:
        return leaf.reshape(number, num_samples, *leaf.shape[1:])

    def bounded(genotype: Float[Array, "batch parameters"], beyond: float = 0.0) -> Float[Array, "batch parameters"]:
        return genotype if bounds is None else jnp.clip(genotype, bounds[0] - beyond, bounds[1] + beyond)

    def init(key: Key) -> tuple[MoCmaMaeState, Offspring]:
        offspring = random_offspring(key, task, config.ga_batch)
        genotype = ravel(offspring.genotype)
        spread = jnp.ones(()) if bounds is not None else jnp.sqrt(jnp.mean(jnp.var(genotype, axis=0)) + 1e-12)
        archive = archive_for(task, offspring.genotype, num_cells=config.num_cells, front_length=config.front_length)
        state = MoCmaMaeState(
            archive=archive,
            threshold=empty_thresholds(archive.valid.shape[0], config.threshold_length, num_objectives),
            emitters=cma_es.start(genotype[:number], jnp.full(number, config.sigma) * spread, separable=separable),
            sample=genotype,
            scale=Scale(jnp.zeros(num_objectives), jnp.ones(num_objectives), jnp.zeros((), bool)),
            spread=spread,
            started=jnp.zeros((), bool),
        )
        return state, offspring

    def ask(key: Key, state: MoCmaMaeState) -> Offspring:
        key_genotype, key_preference = jax.random.split(key)

        def fresh(key: Key) -> Float[Array, "batch parameters"]:
            return ravel(task.init_genotype(key, config.ga_batch))

        genotype = unravel(jax.lax.cond(state.started, lambda key: bounded(state.sample), fresh, key_genotype))
        return offspring_of(Source.GA, genotype, preferences.uniform(key_preference, config.ga_batch, num_objectives))

    def tell(
        key: Key, state: MoCmaMaeState, offspring: Offspring, evaluation: Evaluation
    ) -> tuple[MoCmaMaeState, Info]:
        key_restart, key_sample = jax.random.split(key)
        scale = settled(task, state.scale, evaluation)
        point = evaluation.fitness / scale.unit[None, :] - (scale.reference / scale.unit)[None, :]
        most = 1e30 ** (1 / num_objectives)  # so that volumes are finite
        point, feasible = jnp.clip(point, -most, most), evaluation.feasible
        cell = nearest_cell(evaluation.feature, state.archive.centroid, state.archive.feature_bounds)
        front, valid, approached = (leaf[cell] for leaf in state.threshold)

        gain = jnp.where(feasible, jax.vmap(improvement)(point, front, valid), 0)
        below = jnp.min(point, axis=1)  # minus the shortfall, where it is negative
        nearer = jnp.where(
            below <= 0,
            below - jnp.where(jnp.any(valid, axis=1), 0, approached),
            -jnp.maximum(jax.vmap(shortfall)(point, front, valid), 0),
        )
        nearer = jnp.where(feasible & config.approach, nearer, 0)
        archive, added = add(state.archive, offspring, evaluation)
        threshold = anneal_thresholds(state.threshold, point, cell, feasible, gain, config.alpha)

        violation = jnp.zeros_like(gain) if evaluation.violation is None else evaluation.violation
        merit = (-nearer, -gain, violation, ~evaluation.valid)  # the last one counts first
        order = jax.vmap(lambda *keys: jnp.lexsort(keys))(*map(by_emitter, merit))
        evaluated = ravel(offspring.genotype)
        asked = jnp.all(bounded(state.sample) == evaluated, axis=1, keepdims=True)  # not replaced by the ledger
        learned = by_emitter(jnp.where(asked, bounded(state.sample, BEYOND), evaluated))
        ranked = jnp.take_along_axis(learned, order[:, :, None], axis=1)
        emitters = cma_es.update(state.emitters, ranked, constants)

        found = jnp.any(archive.valid)
        sampled = state.started & jnp.any(by_emitter(offspring.source) == Source.GA, axis=1)  # not the first batch
        improved = jnp.any(by_emitter((gain > 0) | (nearer > 0)), axis=1)
        over = ~sampled | (found & ~improved)
        over |= cma_es.degenerate(emitters, LEAST_STEP * state.spread, MOST_STEP * state.spread)
        elite = select_or_random(key_restart, task, number, found, lambda key: select_uniform(key, archive, number))
        own = ~found & jnp.any(by_emitter(evaluation.valid), axis=1)
        mean = jnp.where(own[:, None], ranked[:, 0], ravel(elite.genotype))
        # In vain: its first samples improved nothing. The next steps are half as large, after the least the largest.
        largest, half = config.sigma * state.spread, state.emitters.step / 2
        vain = sampled & (state.emitters.generation == 0) & (half >= largest / SMALLER)
        fresh = cma_es.start(mean, jnp.where(vain, half, largest), separable=separable)
        emitters = cma_es.restart(emitters, over, fresh)
        sample = cma_es.sample(key_sample, emitters, num_samples).reshape(config.ga_batch, num_parameters)
        metrics = {"restarts": jnp.mean(over, dtype=jnp.float32), "step_size": jnp.mean(emitters.step)}
        started = state.started | jnp.any(evaluation.valid)
        state = MoCmaMaeState(archive, threshold, emitters, sample, scale, state.spread, started)
        return state, Info(added, offspring.source, metrics)

    return Algorithm(name, config, init, ask, tell)


def settled(task: Task, scale: Scale, evaluation: Evaluation) -> Scale:
    """The scale, which the first batch with a feasible solution settles."""
    counts, largest = evaluation.feasible[:, None], jnp.finfo(jnp.float32).max / 4
    best = jnp.max(evaluation.fitness, axis=0, where=counts, initial=-largest)
    worst = jnp.min(evaluation.fitness, axis=0, where=counts, initial=largest)
    extent = jnp.clip(best - worst, 0, largest)
    if task.reference_point is None:
        reference = worst - 0.1 * jnp.where(extent > 0, extent, jnp.maximum(jnp.abs(worst), 1.0))
    else:
        reference = jnp.asarray(np.asarray(task.reference_point) * task.direction, jnp.float32)
    unit = jnp.clip(jnp.maximum(best - reference, extent), 0, largest)
    unit = jnp.where(unit > 0, unit, jnp.maximum(jnp.abs(reference), 1.0))
    fresh = Scale(reference, unit, jnp.any(counts))
    return jax.tree.map(lambda old, new: jnp.where(scale.known, old, new), scale, fresh)
