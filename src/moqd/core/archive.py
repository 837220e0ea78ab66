"""The one archive: a front of mutually non-dominated solutions in every cell of the feature space.

MAP-Elites (Mouret & Clune, 2015) is the same archive with front length 1 and one objective; MOME (Pierrot et al., 2022)
is front length 50; a plain Pareto archive is one cell. Addition and selection follow MOME-PGX (Janmohamed et al., 2023)
where crowding is on. All functions are pure; inside `jit` with a donated archive, addition happens in place.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moqd.core.pareto import crowding_distance, truncate
from moqd.core.parts import part
from moqd.core.tessellation import nearest_cell
from moqd.core.types import Evaluation, Feature, Genotype, Key, Offspring, Preference, Source
from moqd.io.errors import InputError
from moqd.io.lazy import later

AT_ONCE = 512
"""How many solutions `merge` adds at a time, and how many newcomers' fronts are shortened at a time."""
SMALL, NARROW, WIDER = 128, 16, 16
"""The fronts that a small batch makes too long are shortened by one program. With larger batches those of cells with up
to 16 newcomers have a program of their own, then those with up to 16 times as many, and so on: each takes a second to
compile, and what is kept does not depend on it."""
BY_WORTH = 0.9
"""How many cells are selected by their worth where it is known; the others are drawn uniformly."""
FINENESS = 2.0**20
"""To what fraction of the whole a cell's weight is rounded up."""

Worth: TypeAlias = Float[Array, "cells"]
"""What an offspring may be expected to add to each cell."""


class Archive(NamedTuple):
    """`cells x front` places. The contents of an empty place (`valid` False) have no meaning."""

    genotype: Genotype
    fitness: Float[Array, "cells front objectives"]
    feature: Float[Array, "cells front features"]
    preference: Float[Array, "cells front objectives"]
    valid: Bool[Array, "cells front"]
    centroid: Float[Array, "cells features"]
    feature_bounds: Float[Array, "2 features"]
    """Lowest and highest value of each feature; they make distances in different units comparable."""
    constraint: Float[Array, "cells front constraints"] | None = None
    """The values of the constraints, NaN where they are not known; None where a task has none."""

    def __repr__(self) -> str:
        known, (cells, front) = "", jnp.shape(self.valid)
        if not isinstance(self.valid, jax.core.Tracer | jax.ShapeDtypeStruct):
            filled = np.asarray(self.valid)
            known = f"{_counted(int(filled.sum()), 'solution')} in {filled.any(axis=1).sum()} of "
        kinds = {"objective": self.fitness, "feature": self.feature, "constraint": self.constraint}
        sizes = [_counted(jnp.shape(part)[-1], kind) for kind, part in kinds.items() if part is not None]
        return f"Archive({known}{cells} cells of up to {front}; {', '.join(sizes)})"

    def _repr_html_(self) -> str:
        return later("moqd.plots.notebook", "archive_html")(self)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


class Parents(NamedTuple):
    """Members selected from an archive."""

    genotype: Genotype
    preference: Preference
    feature: Feature | None = None
    """Where it is asked for."""


def empty_archive(
    genotype: Genotype,
    centroid: Float[Array, "cells features"],
    feature_bounds: Float[Array, "2 features"],
    *,
    num_objectives: int,
    front_length: int,
    num_constraints: int = 0,
) -> Archive:
    """An archive with no members, for genotypes shaped like those in the batch `genotype`."""
    places = (centroid.shape[0], front_length)
    return Archive(
        genotype=jax.tree.map(lambda leaf: jnp.zeros((*places, *leaf.shape[1:]), leaf.dtype), genotype),
        fitness=jnp.zeros((*places, num_objectives)),
        feature=jnp.zeros((*places, centroid.shape[1])),
        preference=jnp.zeros((*places, num_objectives)),
        valid=jnp.zeros(places, bool),
        # Copies, because a donated archive must own everything in it.
        centroid=jnp.array(centroid),
        feature_bounds=jnp.array(feature_bounds),
        constraint=jnp.zeros((*places, num_constraints)) if num_constraints else None,
    )


@part("addition")
def add(archive: Archive, offspring: Offspring, evaluation: Evaluation) -> tuple[Archive, Bool[Array, "batch"]]:
    """The archive with a whole batch added as a set, and which solutions of the batch entered.

    Every cell keeps the non-dominated set of its members and the feasible newcomers. An objective vector does not enter
    a cell twice. While a front exceeds its length, the member with the smallest crowding distance is removed.
    """
    return _add(archive, offspring, evaluation, lambda cell, points, valid, length: truncate(points, valid, length))


@part("addition")
def add_uniform(
    key: Key, archive: Archive, offspring: Offspring, evaluation: Evaluation
) -> tuple[Archive, Bool[Array, "batch"]]:
    """Like `add`, but without crowding: a front over its length loses uniformly random members, old or new."""

    def keep_random(cell: Int[Array, ""], points: Array, valid: Bool[Array, "pool"], length: int) -> Array:
        lot = jax.random.uniform(jax.random.fold_in(key, cell), valid.shape)
        index = jnp.arange(valid.size)
        luckier = (lot[None, :] > lot[:, None]) | ((lot[None, :] == lot[:, None]) & (index[None, :] < index[:, None]))
        return valid & (jnp.sum(valid[None, :] & luckier, axis=1) < length)

    return _add(archive, offspring, evaluation, keep_random)


def merge(archives: Sequence[Archive]) -> Archive:
    """One archive with the best of several: over the cells of the first, with fronts as long as the longest of them.

    Solutions are added in the order of the archives, some at a time; a front that becomes too long loses its most
    crowded members, as in a run.
    """
    if not archives:
        raise InputError("archives is empty; give at least one archive.")
    first = archives[0]
    for archive in archives:
        if _kind(archive) != _kind(first):
            raise InputError(
                f"the archives are of different problems: one holds {_kind(first)}, another {_kind(archive)} (shapes "
                "of genotypes, objectives, features); merge archives of one task."
            )
    return added(emptied(first, front_length=max(archive.valid.shape[1] for archive in archives)), archives)


def emptied(archive: Archive, *, front_length: int) -> Archive:
    """An archive like this one, over the same cells, with no members."""
    return empty_archive(
        jax.tree.map(lambda leaf: leaf[0], archive.genotype),
        jnp.asarray(archive.centroid),
        jnp.asarray(archive.feature_bounds),
        num_objectives=archive.fitness.shape[2],
        front_length=front_length,
        num_constraints=0 if archive.constraint is None else archive.constraint.shape[2],
    )


def added(merged: Archive, archives: Sequence[Archive]) -> Archive:
    """An archive, which is donated, with all solutions of others added, in their order and some at a time."""
    add_some = jax.jit(add, donate_argnums=0)
    for archive in archives:
        cell, place = np.nonzero(np.asarray(archive.valid))
        for start in range(0, len(cell), AT_ONCE):
            there = np.arange(start, start + AT_ONCE) < len(cell)
            row = np.minimum(np.arange(start, start + AT_ONCE), len(cell) - 1)
            genotype, fitness, feature, preference, constraint = jax.tree.map(
                lambda leaf, where=(cell[row], place[row]): jnp.asarray(leaf[where]),
                (archive.genotype, archive.fitness, archive.feature, archive.preference, archive.constraint),
            )
            offspring = Offspring(genotype, preference, jnp.full(AT_ONCE, Source.RANDOM, jnp.int32))
            evaluation = Evaluation(fitness, feature, jnp.asarray(there), constraint=constraint)
            merged, _ = add_some(merged, offspring, evaluation)
    return merged


def _kind(archive: Archive) -> tuple[object, ...]:
    genotype = [leaf.shape[2:] for leaf in jax.tree.leaves(archive.genotype)]
    return genotype, archive.fitness.shape[2], archive.feature.shape[2]


def select_uniform(
    key: Key, archive: Archive, num_parents: int, worth: Worth | None = None, *, features: bool = False
) -> Parents:
    """A uniformly random occupied cell, then a uniformly random member of its front, for each parent.

    Where the worth of cells is known, nine of ten are drawn in proportion to it instead.
    """
    key_cell, key_member = jax.random.split(key)
    cell = _select_cells(key_cell, archive, num_parents, worth)
    return _members(archive, cell, _draw(key_member, archive.valid[cell].astype(jnp.float32)), features)


def select_crowding(
    key: Key, archive: Archive, num_parents: int, worth: Worth | None = None, *, features: bool = False
) -> Parents:
    """A uniformly random occupied cell, then a member with probability proportional to its crowding distance.

    An extreme counts the gap to its only neighbour twice. A front with one or two members, or with all distances zero,
    is sampled uniformly. Where the worth of cells is known, nine of ten are drawn in proportion to it.
    """
    key_cell, key_member = jax.random.split(key)
    cell = _select_cells(key_cell, archive, num_parents, worth)
    valid = archive.valid[cell]
    distance = jax.vmap(lambda points, valid: crowding_distance(points, valid, extremes="doubled"))(
        archive.fitness[cell], valid
    )
    uniform = (jnp.sum(valid, axis=1) <= 2) | (jnp.max(distance, axis=1) <= 0)
    weight = jnp.where(uniform[:, None], valid.astype(distance.dtype), distance)
    return _members(archive, cell, _draw(key_member, weight), features)


def _select_cells(key: Key, archive: Archive, num_parents: int, worth: Worth | None) -> Int[Array, "batch"]:
    occupied = jnp.any(archive.valid, axis=1)
    so_far = jnp.cumsum(occupied if worth is None else _weight(occupied, worth))
    drawn = jax.random.uniform(key, (num_parents,)) * so_far[-1].astype(jnp.float32)
    return jnp.searchsorted(so_far, jnp.minimum(drawn.astype(so_far.dtype), so_far[-1] - 1), side="right")


def _weight(occupied: Bool[Array, "cells"], worth: Worth) -> Int[Array, "cells"]:
    """Of each cell in the selection: an integer, so that sums are exact and no rounding selects an empty cell."""
    worth = jnp.where(occupied & jnp.isfinite(worth), worth, 0)
    total = jnp.sum(worth)
    uniform = occupied.astype(worth.dtype) / jnp.maximum(jnp.sum(occupied, dtype=worth.dtype), 1)
    by_worth = jnp.where(total > 0, worth / jnp.where(total > 0, total, 1), uniform)
    share = (1 - BY_WORTH) * uniform + BY_WORTH * by_worth
    return jnp.where(occupied, jnp.ceil(FINENESS * share), 0).astype(jnp.int32)


def _draw(key: Key, weight: Float[Array, "batch front"]) -> Int[Array, "batch"]:
    """A column of each row, with probability proportional to its weight."""
    so_far = _running_sum(weight)
    total = so_far[:, -1:]
    # Rounding must not lift a draw to the total, which no sum exceeds.
    drawn = jnp.minimum(jax.random.uniform(key, total.shape) * total, jnp.nextafter(total, jnp.zeros_like(total)))
    return jnp.sum(so_far <= drawn, axis=1)


def _running_sum(rows: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
    """A cumulative sum along short rows as a matrix product, which is several times faster on a CPU."""
    return jnp.matmul(rows, jnp.triu(jnp.ones((rows.shape[1],) * 2)), precision="highest")


def _members(archive: Archive, cell: Int[Array, "batch"], place: Int[Array, "batch"], features: bool) -> Parents:
    return Parents(
        genotype=jax.tree.map(lambda leaf: leaf[cell, place], archive.genotype),
        preference=archive.preference[cell, place],
        feature=archive.feature[cell, place] if features else None,
    )


Kept = tuple[Bool[Array, "groups front"], Bool[Array, "batch"]]
"""Which incumbents stay and which newcomers enter."""
Shorten = Callable[[Int[Array, ""], Float[Array, "pool objectives"], Bool[Array, "pool"], int], Bool[Array, "pool"]]
"""(cell, points, valid, length) -> which of the valid points stay in a front of that length."""


class _Groups(NamedTuple):
    """The newcomers, grouped by the cell that they want to enter."""

    newcomer: Int[Array, "batch"]
    """Indices into the batch, grouped by cell."""
    cell: Int[Array, "groups"]
    start: Int[Array, "groups"]
    size: Int[Array, "groups"]
    of: Int[Array, "batch"]
    """The group of each solution in the batch; the number of groups for those that enter nowhere."""


def _add(
    archive: Archive, offspring: Offspring, evaluation: Evaluation, shorten: Shorten
) -> tuple[Archive, Bool[Array, "batch"]]:
    num_cells = archive.valid.shape[0]
    new = evaluation.fitness
    finite = jnp.all(jnp.isfinite(new), axis=1) & jnp.all(jnp.isfinite(evaluation.feature), axis=1)
    # A solution that may not enter gets index `num_cells`, which every write drops.
    cell = jnp.where(
        offspring.may_enter(evaluation) & finite,
        nearest_cell(evaluation.feature, archive.centroid, archive.feature_bounds),
        num_cells,
    )

    # Who is not dominated, neither by the cell's front nor within the batch; equals: the incumbent, then the first.
    old = archive.fitness.at[cell].get(mode="fill", fill_value=0)
    old_valid = archive.valid.at[cell].get(mode="fill", fill_value=False)
    refused = jnp.any(old_valid & _weakly_dominates(old, new[:, None]), axis=1)
    index = jnp.arange(new.shape[0])
    rival = (cell[:, None] == cell[None, :]) & _weakly_dominates(new[:, None], new[None, :])  # [k, i]: k beats i
    rival &= (index[:, None] < index[None, :]) | ~_weakly_dominates(new[None, :], new[:, None])
    enters = (cell < num_cells) & ~refused & ~jnp.any(rival, axis=0)
    groups = _group(cell, enters, min(num_cells, new.shape[0]), num_cells)
    dominated = enters[:, None] & _weakly_dominates(new[:, None], old)

    # What every touched cell keeps of its front, and who of the newcomers stays once fronts are within their length.
    stays = archive.valid.at[groups.cell].get(mode="fill", fill_value=False)
    stays &= ~jnp.zeros(stays.shape, bool).at[groups.of].max(dominated, mode="drop")
    stays, enters = _shorten_fronts(archive, new, groups, stays, enters, shorten)

    # Each newcomer takes a free place: the n-th of a cell that enters the n-th free place of the cell.
    entering = enters[groups.newcomer].astype(jnp.float32)
    so_far = jnp.cumsum(entering)
    start = groups.start.at[groups.of[groups.newcomer]].get(mode="clip")
    nth = jnp.zeros_like(so_far).at[groups.newcomer].set(so_far - so_far[start] + entering[start])
    free = _running_sum((~stays.at[groups.of].get(mode="clip")).astype(jnp.float32))
    place = jnp.sum(free < nth[:, None], axis=1)
    kept = archive.constraint
    unknown = None if kept is None else jnp.full((new.shape[0], kept.shape[2]), jnp.nan)
    fits = unknown is not None and getattr(evaluation.constraint, "shape", None) == unknown.shape
    constraint = evaluation.constraint if fits else unknown
    genotype, fitness, feature, preference, valid, constraint = _write(
        (
            archive.genotype,
            archive.fitness,
            archive.feature,
            archive.preference,
            archive.valid.at[groups.cell].set(stays, mode="drop"),
            archive.constraint,
        ),
        (offspring.genotype, new, evaluation.feature, offspring.preference, jnp.ones(enters.shape, bool), constraint),
        cell,
        place,
        enters,
    )
    cells = archive.centroid, archive.feature_bounds
    return Archive(genotype, fitness, feature, preference, valid, *cells, constraint), enters


def _weakly_dominates(a: Float[Array, "*#a objectives"], b: Float[Array, "*#b objectives"]) -> Bool[Array, "..."]:
    """At least as good in every objective."""
    better = [a[..., j] >= b[..., j] for j in range(a.shape[-1])]
    return reduce(jnp.logical_and, better)


def _group(cell: Int[Array, "batch"], enters: Bool[Array, "batch"], num_groups: int, num_cells: int) -> _Groups:
    batch = cell.shape[0]
    key = jnp.where(enters, cell, num_cells)
    newcomer = jnp.argsort(key, stable=True)
    ordered = key[newcomer]
    first = (ordered < num_cells) & jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
    start = jnp.nonzero(first, size=num_groups, fill_value=batch)[0]
    group = jnp.where(ordered < num_cells, jnp.cumsum(first) - 1, num_groups)
    return _Groups(
        newcomer=newcomer,
        cell=ordered.at[start].get(mode="fill", fill_value=num_cells),
        start=start,
        size=jnp.zeros(num_groups, start.dtype).at[group].add(1, mode="drop"),
        of=jnp.zeros_like(group).at[newcomer].set(group),
    )


def _shorten_fronts(
    archive: Archive,
    new: Float[Array, "batch objectives"],
    groups: _Groups,
    stays: Bool[Array, "groups front"],
    enters: Bool[Array, "batch"],
    shorten: Shorten,
) -> Kept:
    """Which incumbents and newcomers stay, every front within its length."""
    num_groups, front_length = stays.shape
    batch = new.shape[0]
    over = jnp.sum(stays, axis=1) + groups.size > front_length

    def shorten_one(
        group: Int[Array, ""], stays: Bool[Array, "front"], width: int
    ) -> tuple[Bool[Array, "front"], Int[Array, "width"], Bool[Array, "width"]]:
        offset = jnp.arange(width)
        newcomer = groups.newcomer.at[groups.start[group] + offset].get(mode="clip")
        points = jnp.concatenate([archive.fitness[groups.cell[group]], new[newcomer]])
        valid = jnp.concatenate([stays, offset < groups.size[group]])
        kept = shorten(groups.cell[group], points, valid, front_length)
        newcomer = jnp.where(offset < groups.size[group], newcomer, batch)
        return kept[:front_length], newcomer, kept[front_length:]

    def shorten_some(groups_: Int[Array, "some"], kept: Kept, width: int) -> Kept:
        stays, enters = kept
        front, newcomer, kept_newcomer = jax.vmap(lambda group: shorten_one(group, stays[group], width))(groups_)
        return (
            stays.at[groups_].set(front, mode="drop"),
            enters.at[jnp.where(groups_[:, None] < num_groups, newcomer, batch)].set(kept_newcomer, mode="drop"),
        )

    def shorten_all(which: Bool[Array, "groups"], kept: Kept, *, width: int, at_once: int) -> Kept:
        """In portions, so that only fronts over their length cost time."""
        todo = jnp.nonzero(which, size=num_groups + at_once, fill_value=num_groups)[0]
        portion = lambda i: jax.lax.dynamic_slice(todo, (i * at_once,), (at_once,))  # noqa: E731
        num_portions = (jnp.sum(which) + at_once - 1) // at_once
        return jax.lax.fori_loop(0, num_portions, lambda i, kept: shorten_some(portion(i), kept, width), kept)

    kept, least, width = (stays, enters), 0, batch if batch <= SMALL else NARROW
    while least < batch:
        which = over & (groups.size > least) & (groups.size <= width)
        kept = shorten_all(which, kept, width=width, at_once=max(1, min(num_groups, AT_ONCE // width)))
        least, width = width, min(WIDER * width, batch)
    return kept


Tree = TypeVar("Tree")


def _write(
    stored: Tree,
    batch: Tree,
    cell: Int[Array, "batch"],
    place: Int[Array, "batch"],
    enters: Bool[Array, "batch"],
) -> Tree:
    """Writes only the solutions that enter, one after the other, so that the archive is never copied."""
    order = jnp.nonzero(enters, size=enters.size, fill_value=0)[0]

    def write_one(i: Int[Array, ""], stored: Tree) -> Tree:
        at = (cell[order[i]], place[order[i]])
        return jax.tree.map(lambda leaf, new: leaf.at[at].set(new[order[i]]), stored, batch)

    return jax.lax.fori_loop(0, jnp.sum(enters), write_one, stored)
