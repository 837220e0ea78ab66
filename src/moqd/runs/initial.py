"""What a run begins with: designs that the user knows, another run's archive, and what feature bounds are learned from.

All of these are solutions that are evaluated before the first, random batch.
"""

import csv
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from moqd.algorithms.algorithm import random_offspring
from moqd.core.archive import Archive, empty_archive
from moqd.core.types import Genotype, Offspring
from moqd.io.errors import EvaluationError, InputError, MissingFileError, one_line
from moqd.io.files import read_text
from moqd.runs.config import TaskConfig
from moqd.runs.folder import ARCHIVE, Run, members, read_archive, read_config
from moqd.runs.ledger import INHERITED, Evaluations, ledger_for, read_evaluations
from moqd.runs.loop import Purpose, key_for, reference_from
from moqd.tasks import Categorical, Task
from moqd.tasks.evaluate import Evaluator
from moqd.tasks.parameters import Bound, Space
from moqd.tasks.task import UNKNOWN

InitFrom = Run | Archive | str | os.PathLike[str]
"""What a run may begin from: another run, its archive, or the folder or file of one."""
Start = Sequence[Mapping[str, Any] | Sequence[Any] | np.ndarray] | np.ndarray | str | os.PathLike[str]
"""Designs that a run begins with: each its parameters by name, or in order; or a CSV file with a header of names."""
NUM_SAMPLES = 64
"""Random solutions that feature bounds are learned from."""


class Beginning(NamedTuple):
    """What there is before the first, random batch."""

    task: Task
    """With known feature bounds."""
    archive: Archive | None
    """Solutions to evaluate first."""
    known: Sequence[Evaluations]
    """What need not be evaluated again."""


def beginning(task: Task, start: Start | None, init_from: InitFrom | None, seed: int) -> Beginning:
    """The designs of `start`, then the solutions of `init_from`, then the sample from which bounds are learned."""
    designs = None if start is None else _designs(start, task)
    archives = [] if designs is None else [_archive_of(task, *designs)]
    known: list[Evaluations | None] = []
    if init_from is not None:
        source = _source(init_from, task)
        archives.append(_fitting(source.archive if isinstance(source, Run) else source, task))
        if isinstance(source, Run):
            task = source.config.task.with_bounds(task)
            known.append(_evaluations_of(source, task))
    if not task.has_feature_bounds:
        task, sample, measured = _with_learned_bounds(task, None if designs is None else designs[0], seed)
        archives.append(_archive_of(task, sample.genotype, sample.preference))
        known.append(measured)
    joined = archives[0] if archives else None
    if len(archives) > 1:
        rows = [members(archive, (archive.genotype, archive.preference))[1] for archive in archives]
        joined = _archive_of(task, *jax.tree.map(lambda *leaves: np.concatenate(leaves), *rows))
    return Beginning(task, joined, [one for one in known if one is not None])


def _with_learned_bounds(
    task: Task, designs: Float[np.ndarray, "solutions parameters"] | None, seed: int
) -> tuple[Task, Offspring, Evaluations | None]:
    """The task with bounds for the user's designs and for random solutions, these, and what the ledger has to know."""
    key = key_for(jax.random.key(seed), jnp.int32(0), Purpose.LEARN_BOUNDS)
    key_ask, key_evaluate = jax.random.split(key)
    offspring = random_offspring(key_ask, task, NUM_SAMPLES)
    genotype = offspring.genotype if designs is None else np.concatenate([designs, offspring.genotype])
    ledger = ledger_for(task)
    if ledger is None:
        evaluation = Evaluator(task, checked=True)(key_evaluate, genotype)
    else:
        evaluation = ledger.evaluate(key_evaluate, ledger.designs(genotype), INHERITED)
    valid = np.asarray(evaluation.valid)
    feature, num_random = np.asarray(evaluation.feature, float)[valid], int(np.sum(valid[-NUM_SAMPLES:]))
    if not num_random:
        failures = list(getattr(task, "failures", ())) or ["they returned numbers that are not finite"]
        raise EvaluationError(
            f"the feature bounds of task {task.name!r} cannot be learned, because all of {NUM_SAMPLES} evaluations "
            f"failed: {failures[-1]}; give feature_bounds."
        )
    task, before = task.within(_rounded(feature)), task.feature_bounds
    named = zip(task.feature_ranges.items(), before, strict=True)
    learned = ", ".join(f"{name} {extent}" for (name, extent), old in named if old == UNKNOWN)
    given = "" if designs is None else f" and {len(feature) - num_random} designs of start"
    warnings.warn(f"feature bounds learned from {num_random} random solutions{given}: {learned}.", stacklevel=4)
    return task, offspring, None if ledger is None else ledger.evaluations


def _rounded(feature: Float[np.ndarray, "solutions features"]) -> list[tuple[float, float]]:
    """The range of each feature with a tenth on either side, but not below 0 for what never is, to three digits."""
    low, high = feature.min(axis=0), feature.max(axis=0)
    bounds = np.stack([reference_from(low, high), -reference_from(-high, -low)])
    bounds[0] = np.where(low < 0, bounds[0], np.maximum(bounds[0], 0))
    digits = (2 - np.floor(np.log10(bounds[1] - bounds[0]))).astype(int).tolist()
    return [(round(a, to), round(b, to)) for (a, b), to in zip(bounds.T.tolist(), digits, strict=True)]


def _archive_of(task: Task, genotype: Genotype, preference: Float[Any, "solutions objectives"]) -> Archive:
    """Of solutions that are not evaluated yet, in one cell."""
    number, features = preference.shape[0], task.num_features
    cell, bounds = jnp.zeros((1, features)), jnp.zeros((2, features))
    empty = empty_archive(genotype, cell, bounds, num_objectives=task.num_objectives, front_length=number)
    genotype, preference = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], (genotype, preference))
    return empty._replace(genotype=genotype, preference=preference, valid=jnp.ones((1, number), bool))


def _designs(start: Start, task: Task) -> tuple[Float[np.ndarray, "solutions parameters"], Float[np.ndarray, "..."]]:
    """Their genotypes and preferences; a mistake is told with its row."""
    if (space := task.space) is None:
        raise InputError(f"start gives parameters, but solutions of task {task.name!r} have none; use init_from.")
    rows: Mapping[str, Any] = {}
    if isinstance(start, str | os.PathLike):
        rows = _rows(Path(start), space)
    elif isinstance(start, Sequence | np.ndarray):
        rows = {f"start[{i}]": design for i, design in enumerate(start)}
    if not rows:
        raise InputError(f"start is {start!r}; give a list of designs, or a CSV file with a row for each.")
    genotypes = []
    for row, design in rows.items():
        if not isinstance(design, Mapping | Sequence | np.ndarray) or isinstance(design, str):
            raise InputError(f"{row} is {design!r}; give its parameters by name, or a list of them.")
        try:
            genotypes.append(space.genotype(design.tolist() if isinstance(design, np.ndarray) else design))
        except InputError as error:
            raise InputError(f"{row}: {error}") from error
    return np.stack(genotypes), np.full((len(rows), task.num_objectives), 1 / task.num_objectives, np.float32)


def _rows(path: Path, space: Space) -> dict[str, dict[str, Any]]:
    """The designs of a CSV file, by what a message calls them; choices are written as they are printed."""
    lines = [line for line in csv.reader(read_text(path, most=2**30).splitlines()) if line]
    header = [name.strip() for name in lines[0]] if lines else []
    bounds = dict(zip(space.names, space.bounds, strict=True))
    if sorted(header) != sorted(space.names):
        raise InputError(f"the header of {str(path)!r} is {', '.join(header)!r}; give {', '.join(space.names)}.")
    rows = {}
    for number, line in enumerate(lines[1:], start=1):
        row = f"row {number} of {str(path)!r}"
        if len(line) != len(header):
            raise InputError(f"{row} has {len(line)} values; give {len(header)}: {', '.join(header)}.")
        rows[row] = {name: _value(bounds[name], text.strip()) for name, text in zip(header, line, strict=True)}
    return rows


def _value(bound: Bound, text: str) -> Any:
    """The option or number that a text stands for; the text itself where it stands for none."""
    if isinstance(bound, Categorical):
        return next((option for option in bound.options if str(option) == text), text)
    try:
        return float(text)
    except ValueError:
        return text


def _source(given: InitFrom, task: Task) -> Run | Archive:
    """What is meant; of the folder of a run, what is needed of it."""
    if isinstance(given, Run | Archive):
        return given
    if not isinstance(given, str | os.PathLike):
        raise InputError(
            f"init_from is {one_line(repr(given))}; give a run, its archive, or the folder or file of one (designs by "
            "their parameters are given as start)."
        )
    path = Path(given)
    config = None if path.is_file() else read_config(path)
    if config is not None:
        task = config.task.make_or_check(path, task)
    try:
        archive, _ = read_archive(path if config is None else path / ARCHIVE, task)
    except MissingFileError as error:
        raise InputError(f"init_from: {str(error).rstrip('.')}, so there is nothing yet to begin with.") from error
    return archive if config is None else Run(task, config, archive, {}, path)


def _fitting(archive: Archive, task: Task) -> Archive:
    """The archive, which must be one of such solutions as the task has."""
    expected = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    shapes = [leaf.shape[2:] for leaf in jax.tree.leaves(archive.genotype)]
    wanted = [leaf.shape[1:] for leaf in jax.tree.leaves(expected)]
    if shapes != wanted or archive.fitness.shape[2] != task.num_objectives:
        raise InputError(
            f"init_from holds solutions of shapes {shapes} with {archive.fitness.shape[2]} objectives, but task "
            f"{task.name!r} has {wanted} and {task.num_objectives}; give an archive of the same task."
        )
    if not np.any(np.asarray(archive.valid)):
        raise InputError("init_from is an archive without solutions; give one that has some.")
    return archive


def _evaluations_of(run: Run, task: Task) -> Evaluations | None:
    """All that a run evaluated, if it is one of the same function."""
    ledger = ledger_for(task)
    if ledger is None or TaskConfig.of(task).difference(run.config.task):
        return None
    known = run._evaluations
    if known is None and run.path is not None:
        known = read_evaluations(run.path, ledger.task)
    function = ledger.evaluations.function
    return known if known is not None and function and known.function == function else None
