"""PGA-ME: Nilsson & Cully, "Policy gradient assisted MAP-Elites" (2021).

    the sum of the objectives is fitness and reward
    repeat
        select parents: a cell uniformly, in it its only member
        policy-gradient variation of b_p - 1 parents, and the actor itself
        Iso+LineDD variation of b_g parents
        evaluate; store transitions in the replay buffer; train actor and critics
        each cell keeps its best

This is MOME-PGX with one objective, the sum, and one place in every cell; so it is made of it.
Deviations: see docs/deviations.md.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp

from moqd.algorithms.algorithm import Algorithm
from moqd.algorithms.mome_pgx import MomePgxConfig, mome_pgx
from moqd.core.tessellation import total_cells
from moqd.core.types import Evaluation, Info, Key, Offspring
from moqd.io.errors import InputError
from moqd.io.options import is_count
from moqd.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class PgaMeConfig(MomePgxConfig):
    """Hyper-parameters of PGA-ME: those of the MOME-P2C paper except for `center_rewards` and `standardise_obs`."""

    elite_cells: int | None = None
    """Cells of its own archive (always a Voronoi tessellation), one elite each. If not given: as many as the passive
    archive has places, the number of its cells x front_length."""


def pga_me(name: str, config: PgaMeConfig, task: Task) -> Algorithm:
    if config.elite_cells is not None and not is_count(config.elite_cells):
        raise InputError(f"elite_cells is {config.elite_cells!r}; give a whole number of at least 1, or None.")
    cells = config.elite_cells or total_cells(config.num_cells) * config.front_length
    summed = replace(task, objective_names=("sum",), minimised=(), reference_point=None, units={})
    single = mome_pgx(name, replace(config, num_cells=cells, front_length=1), summed)

    def init(key: Key) -> tuple[Any, Offspring]:
        state, offspring = single.init(key)
        return state, towards_the_sum(offspring)

    def ask(key: Key, state: Any) -> Offspring:
        return towards_the_sum(single.ask(key, state))

    def tell(key: Key, state: Any, offspring: Offspring, evaluation: Evaluation) -> tuple[Any, Info]:
        transitions = evaluation.transitions
        assert transitions is not None
        of_the_sum = evaluation._replace(
            fitness=jnp.sum(evaluation.fitness, axis=-1, keepdims=True),
            transitions=transitions._replace(reward=jnp.sum(transitions.reward, axis=-1, keepdims=True)),
        )
        return single.tell(key, state, with_preference(offspring, 1), of_the_sum)

    def towards_the_sum(offspring: Offspring) -> Offspring:
        return with_preference(offspring, task.num_objectives)

    return single._replace(config=config, init=init, ask=ask, tell=tell)


def with_preference(offspring: Offspring, num_objectives: int) -> Offspring:
    """The same for a number of objectives of which all count the same."""
    return offspring._replace(preference=jnp.full((offspring.source.shape[0], num_objectives), 1 / num_objectives))
