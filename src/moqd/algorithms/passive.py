"""Passive archives: what an algorithm without cells has found, seen as an archive with cells."""

from collections.abc import Callable
from typing import Any, NamedTuple

from moqd.algorithms.algorithm import Algorithm, Learning, add_by_crowding, archive_for
from moqd.core.archive import Archive, add
from moqd.core.tessellation import NumCells
from moqd.core.types import Evaluation, Info, Key, Offspring
from moqd.tasks.task import Task


class PassiveState(NamedTuple):
    active: Any
    """The state of the algorithm itself."""
    archive: Archive


def with_passive_archive(algorithm: Algorithm, task: Task, *, num_cells: NumCells, front_length: int) -> Algorithm:
    """The same algorithm, with everything that it evaluates also added to an archive that it never reads."""

    def init(key: Key) -> tuple[PassiveState, Offspring]:
        active, offspring = algorithm.init(key)
        archive = archive_for(task, offspring.genotype, num_cells=num_cells, front_length=front_length)
        return PassiveState(active, archive), offspring

    def ask(key: Key, state: PassiveState) -> Offspring:
        return algorithm.ask(key, state.active)

    def tell(key: Key, state: PassiveState, offspring: Offspring, evaluation: Evaluation) -> tuple[PassiveState, Info]:
        active, info = algorithm.tell(key, state.active, offspring, evaluation)
        archive, added = add(state.archive, offspring, evaluation)
        return PassiveState(active, archive), Info(added, info.source, info.metrics)

    learning = algorithm.learning
    if learning is not None:
        learning = Learning(_of_active(learning.vary), _of_active(learning.train), _of_active(learning.agent))
    return algorithm._replace(init=init, ask=ask, tell=tell, add=add_by_crowding, learning=learning)


def _of_active(part: Callable[..., Any]) -> Callable[..., Any]:
    """The same part of the algorithm, for a state (its last argument) that has the algorithm's own in it."""
    return lambda *arguments: part(*arguments[:-1], arguments[-1].active)
