"""MOME: Pierrot, Richard, Beguir & Cully, "Multi-Objective Quality Diversity Optimization" (2022).

    repeat
        select cells uniformly, and in each a member of its front uniformly
        vary them by Iso+LineDD
        evaluate
        add to each cell's front what is not dominated there; from a front over its length random members go

Deviations: a batch is added as a set (the authors insert one by one, so that order matters).
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from moqd.algorithms.algorithm import (
    Algorithm,
    ArchiveConfig,
    add_by_crowding,
    archive_for,
    chance,
    hypervolume_added,
    random_offspring,
    select_or_random,
)
from moqd.algorithms.guide import Guide, initial_guide, renew_guide, select_guided
from moqd.core.archive import Archive, Parents, Worth, add_uniform, select_crowding, select_uniform
from moqd.core.tessellation import nearest_cell
from moqd.core.types import Evaluation, Info, Key, Offspring
from moqd.core.volume import EXACT_OBJECTIVES
from moqd.io.errors import known_name
from moqd.tasks.task import Task
from moqd.variation.mixture import Credit, VariationConfig

CellSelection = Literal["uniform", "gain"]
MEMORY = 0.95
"""How much of what a cell has gained still counts one iteration later."""
FOCUS = 2.0
"""The power of the expected gain that cells are selected in proportion to."""


@dataclass(frozen=True)
class MomeConfig(VariationConfig, ArchiveConfig):
    """Hyper-parameters of MOME, with the paper's values for policies."""

    ga_batch: int = 256
    """Offspring per iteration."""
    crowding: bool = field(default=False, metadata={"before": False})
    """Whether selection within a front and removal from one that is too long go by crowding distance, or uniformly."""
    guided: bool = field(default=False, metadata={"before": False})
    """Whether a small population, kept as in NSGA-II, leads the way to the best front and to feasible solutions."""
    cell_selection: CellSelection = field(default="uniform", metadata={"before": "uniform"})
    """How cells are selected: uniformly, or by gain, where nine of ten are drawn in proportion to the square of the
    hypervolume that an offspring has lately added to them on average."""


class CellGains(NamedTuple):
    """What cells have gained lately, the newest offspring counting most."""

    added: Float[Array, "cells"]
    """Hypervolume, by each offspring alone; beyond 3 objectives, how many of them entered."""
    tried: Float[Array, "cells"]
    """Offspring that fell into the cell."""

    @property
    def expected(self) -> Worth:
        """Per offspring; a cell of which little is known counts as the average one."""
        mean = jnp.sum(self.added) / jnp.maximum(jnp.sum(self.tried), 1)
        return (self.added + mean) / (self.tried + 1)


def with_batch(
    gains: CellGains, archive: Archive, task: Task, evaluation: Evaluation, added: Bool[Array, "batch"]
) -> CellGains:
    """The gains after a batch, with the archive as it was before it.

    Where hypervolume could only be estimated, which takes longer than all else, every solution that was added counts 1.
    """
    cell = nearest_cell(evaluation.feature, archive.centroid, archive.feature_bounds)
    gained = added.astype(jnp.float32)
    if task.num_objectives <= EXACT_OBJECTIVES:
        gained = hypervolume_added(archive, task, evaluation, bounded=True)
    now = gained, evaluation.valid.astype(jnp.float32)
    total = (jax.ops.segment_sum(one, cell, gains.tried.shape[0]) for one in now)
    return CellGains(*(MEMORY * before + new for before, new in zip(gains, total, strict=True)))


class MomeState(NamedTuple):
    archive: Archive
    credit: Credit | None = None
    """Of the operators, where their shares adapt."""
    guide: Guide | None = None
    gains: CellGains | None = None
    """Where cells are selected by them."""


def mome(name: str, config: MomeConfig, task: Task) -> Algorithm:
    batch, by_chance = config.ga_batch, chance(config, task)
    num_parents = by_chance.num_parents
    known_name("cell_selection", config.cell_selection, get_args(CellSelection))
    select = select_crowding if config.crowding else select_uniform
    add = add_by_crowding if config.crowding else add_uniform

    def init(key: Key) -> tuple[MomeState, Offspring]:
        offspring = random_offspring(key, task, batch)
        archive = archive_for(task, offspring.genotype, num_cells=config.num_cells, front_length=config.front_length)
        guide = None
        if config.guided:
            guide = initial_guide(offspring, archive.valid.shape[0], constrained=bool(task.constraint_names))
        gains = None
        if config.cell_selection == "gain":
            gains = CellGains(*(jnp.zeros(archive.valid.shape[0]) for _ in CellGains._fields))
        return MomeState(archive, by_chance.initial_credit(), guide, gains), offspring

    def ask(key: Key, state: MomeState) -> Offspring:
        key_select, key_vary = jax.random.split(key)
        archive, guide = state.archive, state.guide
        known = jnp.any(archive.valid if guide is None else guide.population.valid)

        def select_parents(key: Key) -> Parents:
            select_members = partial(select, worth=state.gains and state.gains.expected**FOCUS)
            if guide is None:
                return select_members(key, archive, num_parents * batch)
            return select_guided(key, archive, guide, task, batch, num_parents, select_members)

        parents = select_or_random(key_select, task, num_parents * batch, known, select_parents)
        return by_chance.vary(key_vary, parents, state.credit)

    def tell(key: Key, state: MomeState, offspring: Offspring, evaluation: Evaluation) -> tuple[MomeState, Info]:
        archive, added = add(key, state.archive, offspring, evaluation)
        gains = state.gains and with_batch(state.gains, state.archive, task, evaluation, added)
        credit = by_chance.credited(state.credit, added, offspring)
        guide = None if state.guide is None else renew_guide(state.guide, archive, task, offspring, evaluation)
        return MomeState(archive, credit, guide, gains), Info(added, offspring.source, {})

    return Algorithm(name, config, init, ask, tell)
