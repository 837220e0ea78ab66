"""Passive archives: what an algorithm without cells has found, seen as an archive with cells."""

from typing import Any, NamedTuple

from moqd.algorithms.algorithm import Algorithm, archive_for
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
        # Also what the algorithm itself only learns from: all are measured by what they have evaluated.
        archive, added = add(state.archive, offspring._replace(enters=None), evaluation)
        return PassiveState(active, archive), Info(added, info.source, info.metrics)

    return algorithm._replace(init=init, ask=ask, tell=tell)
