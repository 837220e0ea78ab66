"""How much of an archive survives fresh evaluation: where evaluations vary, an archive collects what was lucky."""

import hashlib
import json
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from moqd.core.archive import Archive, add, emptied
from moqd.core.metrics import OVER_TIME, archive_metrics
from moqd.core.tessellation import nearest_cell
from moqd.core.types import Evaluation, Offspring, Source
from moqd.io.errors import InputError, MissingFileError
from moqd.io.files import FORMAT, read_json, write_json
from moqd.io.options import checked_seed, is_count
from moqd.runs.folder import Run
from moqd.runs.table import Solutions
from moqd.tasks.evaluate import Evaluator, evaluate_first
from moqd.tasks.task import Task

REEVALUATION = "reevaluation.json"
AT_ONCE = 256
MEASURED = (*OVER_TIME, "num_solutions")


class Reevaluation(NamedTuple):
    """An archive as it was found, and made again of fresh evaluations of its solutions."""

    resamples: int
    """Over how many fresh evaluations each solution was averaged."""
    before: dict[str, float]
    """Metrics of the archive as it was found..."""
    after: dict[str, float]
    """...and of one made of the same solutions, each where it now belongs."""
    moved: float
    """The share of solutions that are in another cell now."""
    failed: int
    archive: Archive | None = None
    """The one made of fresh evaluations."""

    @property
    def survival(self) -> float:
        """The share of the moqd_score that is left."""
        return self.after["moqd_score"] / self.before["moqd_score"] if self.before["moqd_score"] else float("nan")


def reevaluate(run: Run, *, resamples: int | None = None, seed: int = 0) -> Reevaluation:
    """Evaluates every solution of a run's archive anew, and adds them to an empty archive.

    Each is averaged over `resamples` fresh evaluations; if not given, over as many as in the run. What it finds is
    written to the folder of the run, if it has one, and its report then says it.
    """
    often = _resamples_of(run.task) if resamples is None else resamples
    if not is_count(often):
        raise InputError(f"resamples is {resamples!r}; give a whole number of at least 1.")
    solutions, task = run.solutions(), run.task if resamples is None else run.task.resampled(often)
    if _resamples_of(task) != often:
        raise InputError(
            f"resamples is {often}, but task {task.name!r} evaluates a solution once; give its class a field "
            "`resamples`, or leave resamples out."
        )
    number, root = len(solutions.cell), jax.random.key(checked_seed(seed))
    evaluate = Evaluator(task, checked=True)
    archive = emptied(run.archive, front_length=run.archive.valid.shape[1])
    add_some, failed, stayed = jax.jit(add, donate_argnums=0), 0, 0
    for batch, start in enumerate(range(0, number, AT_ONCE)):
        rows = np.minimum(np.arange(start, start + AT_ONCE), number - 1)
        there = np.arange(start, start + AT_ONCE) < number
        genotype = jax.tree.map(lambda leaf, rows=rows: jnp.asarray(leaf[rows]), solutions.genotype)
        evaluate_some = partial(evaluate, jax.random.fold_in(root, batch))
        evaluation = evaluate_first(task, evaluate_some, genotype, min(AT_ONCE, number - start))
        failed += int(np.sum(there & ~np.asarray(evaluation.valid)))
        evaluation = evaluation._replace(valid=evaluation.valid & jnp.asarray(there))
        offspring = Offspring(
            genotype, jnp.asarray(solutions.preference[rows]), jnp.full(AT_ONCE, Source.RANDOM, jnp.int32)
        )
        stayed += int(np.sum(np.asarray(_cells(archive, evaluation)) == np.where(there, solutions.cell[rows], -2)))
        archive, _ = add_some(archive, offspring, evaluation)
    reference = run.reference_point
    best = np.max(np.asarray(run.archive.fitness)[np.asarray(run.archive.valid)], axis=0, initial=-np.inf)
    before, after = (
        {name: value for name, value in archive_metrics(one, reference, best).items() if name in MEASURED}
        for one in (run.archive, archive)
    )
    found = Reevaluation(often, before, after, 1 - stayed / number if number else 0.0, failed, archive)
    if run.path is not None:
        content = found._replace(archive=None)._asdict()
        write_json(run.path / REEVALUATION, {"format": FORMAT, "of": _digest(solutions), **content})
    return found


def read_reevaluation(run: Run) -> Reevaluation | None:
    """What `reevaluate` wrote into the folder of a run; None if it did not, or of another archive than the run has."""
    if run.path is None:
        return None
    path = run.path / REEVALUATION
    try:
        content = read_json(path, "a re-evaluation")
    except MissingFileError:
        return None
    if content.get("of") != _digest(run.solutions()):
        return None
    parts: dict[str, Any] = {name: content.get(name) for name in Reevaluation._fields if name != "archive"}
    sound = all(isinstance(parts[name], (int, float)) for name in ("resamples", "moved", "failed")) and all(
        isinstance(parts[name], dict) and all(isinstance(parts[name].get(metric), (int, float)) for metric in MEASURED)
        for name in ("before", "after")
    )
    if not sound:
        raise InputError(f"{str(path)!r} is damaged; remove it. It holds {json.dumps(parts)[:200]}.")
    return Reevaluation(**parts)


def _digest(solutions: Solutions) -> str:
    """What tells an archive from all others."""
    sha = hashlib.sha256()
    for leaf in jax.tree.leaves(solutions._replace(constraints=None)):  # which earlier versions did not keep
        sha.update(np.asarray(leaf).tobytes())
    return sha.hexdigest()


def _resamples_of(task: Task) -> int:
    return task.num_resamples or 1


def _cells(archive: Archive, evaluation: Evaluation) -> Any:
    """The cell of each solution by its fresh feature; -1 of those that failed."""
    cell = nearest_cell(evaluation.feature, archive.centroid, archive.feature_bounds)
    return jnp.where(evaluation.valid, cell, -1)
