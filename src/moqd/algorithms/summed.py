"""What algorithms of a single objective are here: they maximise the sum of a task's, in an archive of elites."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp

from moqd.algorithms.algorithm import Algorithm
from moqd.core.tessellation import NumCells, total_cells
from moqd.core.types import Evaluation, Info, Key, Offspring
from moqd.io.errors import InputError
from moqd.io.options import is_count
from moqd.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class SummedConfig:
    """The archive of elites."""

    elite_cells: int | None = None
    """Cells of its own archive (always a Voronoi tessellation), one elite each. If not given: as many as the passive
    archive has places, the number of its cells x front_length."""


def num_elites(config: SummedConfig, num_cells: NumCells, front_length: int) -> int:
    if config.elite_cells is not None and not is_count(config.elite_cells):
        raise InputError(f"elite_cells is {config.elite_cells!r}; give a whole number of at least 1, or None.")
    return config.elite_cells or total_cells(num_cells) * front_length


def on_the_sum(build: Callable[[Task], Algorithm], config: Any, task: Task) -> Algorithm:
    """The algorithm that `build` makes for the task with one objective, the sum; `config` is what is recorded."""
    single = build(replace(task, objective_names=("sum",), minimised=(), reference_point=None, units={}))

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
