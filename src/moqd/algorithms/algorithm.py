"""The Algorithm contract, and the parts that every algorithm needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from moqd.core import preferences
from moqd.core.archive import Archive, Parents, add, empty_archive
from moqd.core.tessellation import NumCells, centroids, nearest_cell
from moqd.core.types import Evaluation, Genes, Genotype, Info, Key, Offspring, Preference, Source
from moqd.core.volume import improvement
from moqd.io.errors import InputError
from moqd.tasks.task import Task
from moqd.variation.mixture import (
    Credit,
    Mixture,
    VariationConfig,
    credited,
    initial_credit,
    mixture_of,
    vary,
)


@dataclass(frozen=True)
class ArchiveConfig:
    """What every algorithm's archive is like; that of an algorithm without cells is passive, for its metrics."""

    num_cells: int | tuple[int, ...] = 128
    """Number of cells of the archive, a centroidal Voronoi tessellation of the feature space; for a regular grid, one
    number per feature."""
    front_length: int = 50
    """Maximum number of solutions per cell."""


class State(Protocol):
    """A NamedTuple of arrays; `archive` is what metrics, figures and the explorer read."""

    @property
    def archive(self) -> Archive: ...


def add_by_crowding(
    key: Key, archive: Archive, offspring: Offspring, evaluation: Evaluation
) -> tuple[Archive, Bool[Array, "batch"]]:
    """`add`, which needs no key, where one that does could be."""
    return add(archive, offspring, evaluation)


def hypervolume_added(
    archive: Archive,
    task: Task,
    evaluation: Evaluation,
    reference_point: Sequence[float] | None = None,
    *,
    bounded: bool = False,
) -> Float[Array, "batch"]:
    """By how much each solution alone would raise the hypervolume of its cell, before it is added.

    In units of the ranges from the reference point, in the user's units, to the best of the archive; with `bounded`, of
    archive and batch, so that no solution adds more than 1. If no reference point is given, it is that of the task, or
    else the worst member.
    """
    point = task.reference_point if reference_point is None else reference_point
    worst = jnp.min(archive.fitness, axis=(0, 1), where=archive.valid[..., None], initial=jnp.inf)
    best = jnp.max(archive.fitness, axis=(0, 1), where=archive.valid[..., None], initial=-jnp.inf)
    known = jnp.any(archive.valid)
    if bounded:
        counts = evaluation.feasible[:, None]
        worst = jnp.minimum(worst, jnp.min(evaluation.fitness, axis=0, where=counts, initial=jnp.inf))
        best = jnp.maximum(best, jnp.max(evaluation.fitness, axis=0, where=counts, initial=-jnp.inf))
        known = known | jnp.any(counts)
    if point is not None:
        worst = jnp.asarray(np.asarray(point) * task.direction, jnp.float32)
    unit = jnp.where(known & (best > worst), best - worst, 1)
    worst = jnp.where(known, worst, 0)
    cell = nearest_cell(evaluation.feature, archive.centroid, archive.feature_bounds)
    scaled = lambda fitness: (fitness - worst[(None,) * (fitness.ndim - 1)]) / unit[(None,) * (fitness.ndim - 1)]  # noqa: E731
    added = jax.vmap(improvement)(scaled(evaluation.fitness), scaled(archive.fitness[cell]), archive.valid[cell])
    return jnp.where(evaluation.feasible, added, 0)


class Pace(NamedTuple):
    """Of an algorithm with two kinds of generation, whose shares follow what they gain in the time that they take."""

    learns: Callable[[Any], Bool[Array, ""]]
    """Whether the generation that comes after a state learns; they take turns until the cost is known."""
    with_cost: Callable[[Any, float], Any]
    """The state, told how many times as long a generation with learning takes as one without."""


class Algorithm(NamedTuple):
    """An algorithm is three pure functions; randomness comes in as the key."""

    name: str
    config: Any
    """A frozen dataclass: what config.json records."""
    init: Callable[[Key], tuple[Any, Offspring]]
    """The first state, and the first, random batch."""
    ask: Callable[[Key, Any], Offspring]
    """Selection and variation: what to evaluate next."""
    tell: Callable[[Key, Any, Offspring, Evaluation], tuple[Any, Info]]
    """Learning and addition: what the evaluation changes."""
    needs_transitions: bool = False
    """Whether `tell` reads `evaluation.transitions`, which are made only then."""
    uses_devices: bool = False
    """Whether `ask` spreads its work over the local devices; then it compiles its parts itself."""
    pace: Pace | None = None
    """If it wants to know what its generations cost, which is measured once and recorded with the run."""


def is_batch(option: str) -> bool:
    """Whether an option says how many offspring there are in an iteration; its name tells: `ga_batch`, `population`."""
    return option.endswith("_batch") or option == "population"


def batch_fields(config: Any) -> list[str]:
    return [field.name for field in fields(config) if is_batch(field.name)]


def check_cells(num_cells: NumCells, task: Task) -> None:
    """Raises where a grid is not over as many features as the task has."""
    if isinstance(num_cells, tuple) and len(num_cells) != task.num_features:
        over = "1 feature" if len(num_cells) == 1 else f"{len(num_cells)} features"
        there = f"{task.num_features} ({', '.join(task.feature_names)})" if task.num_features else "none"
        fix = "one number for each feature, or a single whole number" if task.num_features else "a single whole number"
        raise InputError(
            f"num_cells is {num_cells}, a grid over {over}, but task {task.name!r} has {there}; give {fix}."
        )


def check_feature_bounds(task: Task) -> None:
    if not task.has_feature_bounds:
        raise InputError(
            f"the feature bounds of task {task.name!r} are not known; give feature_bounds, or have them learned by "
            "moqd.run('mome', task, ...), with the algorithm by its name."
        )


def archive_for(task: Task, genotype: Genotype, *, num_cells: NumCells, front_length: int) -> Archive:
    """An empty archive over the task's feature space, with the same cells in every run."""
    check_cells(num_cells, task)
    bounds = np.asarray(task.feature_bounds, np.float32).reshape(-1, 2).T
    return empty_archive(
        genotype,
        jnp.asarray(centroids(num_cells, task.feature_bounds)),
        jnp.asarray(bounds),
        num_objectives=task.num_objectives,
        front_length=front_length,
        num_constraints=len(task.constraint_names),
    )


def offspring_of(source: Source, genotype: Genotype, preference: Preference) -> Offspring:
    """A batch that all came from one source."""
    return Offspring(
        genotype, preference, jnp.full(preference.shape[0], int(source), jnp.int32)
    )  # an enum would be weakly typed


@jax.jit
def concatenate(*groups: Offspring) -> Offspring:
    """One batch of several."""
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *groups)


class Draw(IntEnum):
    """What `init` draws: the first batch is the same for every algorithm, whatever else it draws."""

    GENOTYPE = 0
    AGENT = 1
    PREFERENCE = 2


def init_key(key: Key, draw: Draw) -> Key:
    return jax.random.fold_in(key, int(draw))


def random_offspring(key: Key, task: Task, batch: int) -> Offspring:
    """Random genotypes, with uniformly random preferences."""
    genotype = task.init_genotype(init_key(key, Draw.GENOTYPE), batch)
    preference = preferences.uniform(init_key(key, Draw.PREFERENCE), batch, task.num_objectives)
    return offspring_of(Source.RANDOM, genotype, preference)


def select_or_random(
    key: Key,
    task: Task,
    num_parents: int,
    any_valid: Bool[Array, ""],
    select: Callable[[Key], Parents],
    *,
    features: bool = False,
) -> Parents:
    """What `select` selects; random genotypes while there is nothing to select from (every evaluation failed).

    With `features`, parents have theirs; for random genotypes it is the middle of the bounds.
    """

    def fresh(key: Key) -> Parents:
        offspring = random_offspring(key, task, num_parents)
        if not features:
            return Parents(offspring.genotype, offspring.preference)
        middle = np.mean(np.asarray(task.feature_bounds, np.float32), axis=1)
        return Parents(offspring.genotype, offspring.preference, jnp.tile(middle, (num_parents, 1)))

    return jax.lax.cond(any_valid, select, fresh, key)


class Chance(NamedTuple):
    """Variation by chance, as the config's `variation` says: what a config and a task make of it."""

    mixture: Mixture
    genes: Genes | None
    config: VariationConfig

    @property
    def num_parents(self) -> int:
        """That must be selected for each offspring."""
        return self.mixture.num_parents

    def initial_credit(self) -> Credit | None:
        return initial_credit(self.mixture)

    def vary(self, key: Key, parents: Parents, credit: Credit | None = None) -> Offspring:
        """An offspring for each of the first parents, which has the preference of that one.

        The parents are `num_parents` blocks of a batch: the first ones, the second ones, and so on.
        """
        batch = parents.preference.shape[0] // self.num_parents
        blocks = [
            jax.tree.map(lambda leaf, i=i: leaf[i * batch : (i + 1) * batch], parents) for i in range(self.num_parents)
        ]
        child = vary(key, self.mixture, credit, [block.genotype for block in blocks], self.genes, self.config)
        return offspring_of(Source.GA, child, blocks[0].preference)

    def credited(self, credit: Credit | None, added: Bool[Array, "batch"], offspring: Offspring) -> Credit | None:
        """After a batch of such offspring; random ones, which stand in for some of them, count for nobody."""
        return credited(self.mixture, credit, added, offspring.source == Source.GA)


def chance(config: VariationConfig, task: Task) -> Chance:
    return Chance(mixture_of(config.variation, bounded=task.genes is not None), task.genes, config)
