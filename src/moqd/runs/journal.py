"""Evaluations on the host, written down as they end, so that a run that is resumed makes only those that are missing.

`journal/` has a file for every batch since the older checkpoint; `failures.jsonl` has every evaluation that failed,
with its parameters and what happened.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from moqd.io.errors import InputError, MissingFileError
from moqd.io.files import own_folder, read_text, remove_folder, storing, sync, write_text
from moqd.runs.folder import Run
from moqd.tasks.function import FunctionTask, Measured, Outcome
from moqd.tasks.pool import Failure

JOURNAL, FAILURES = "journal", "failures.jsonl"
MOST_BYTES = 2**30


class RunJournal:
    """The journal of a run, in its folder: open at one batch, of which it says what is known."""

    iteration: int
    """Of the batch."""

    def __init__(self, folder: Path, task: FunctionTask) -> None:
        self._folder, self._task = folder, task
        self._file: TextIO | None = None
        # What is told by hand or comes from a pool is worth the milliseconds that it takes to survive a power cut; a
        # function that is called right here may take less.
        self._is_dear = task.function is None or task.evaluator != "here"

    def batch(self, iteration: int, name: str = "") -> "RunJournal":
        """Goes on to another batch."""
        self.close()
        self.iteration = iteration
        self._path = own_folder(self._folder / JOURNAL) / f"{name or f'{iteration:08d}'}.jsonl"
        entries = map(_object, _lines(self._path))
        self._entries = {entry["row"]: entry for entry in entries if isinstance(entry.get("row"), int)}
        return self

    def begin(self) -> None:
        """A new run: what another has left there counts no more."""
        if (self._folder / JOURNAL).exists():
            remove_folder(self._folder / JOURNAL)
        (self._folder / FAILURES).unlink(missing_ok=True)

    def rewind(self, iteration: int) -> None:
        """A run goes on from the end of this iteration: failures of later ones will be told again."""
        try:
            lines = read_text(self._folder / FAILURES, most=MOST_BYTES).splitlines()
        except MissingFileError:
            return
        kept = [line for line in lines if isinstance(at := _object(line).get("iteration"), int) and at <= iteration]
        write_text(self._folder / FAILURES, "".join(f"{line}\n" for line in kept))

    def forget(self, iteration: int) -> None:
        """Nobody will go on from before the end of this iteration."""
        for path in (self._folder / JOURNAL).glob("*.jsonl"):
            if not path.stem.isdigit() or int(path.stem) <= iteration:
                with suppress(OSError):
                    path.unlink()
        with suppress(OSError):  # unless something is left
            (self._folder / JOURNAL).rmdir()

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def known(self, row: int, parameters: Any) -> Outcome | None:
        entry = self._entries.get(row)
        if entry is None or entry.get("parameters") != parameters:
            return None
        outcome = _outcome(entry, self._task)
        if outcome is not None:
            self._tell_failure(row, parameters, outcome)
        return outcome

    def note(self, row: int, parameters: Any, outcome: Outcome) -> None:
        entry = {"row": row, "parameters": parameters, "attempts": outcome.attempts}
        if outcome.measured is not None:
            entry |= {name: np.asarray(part).tolist() for name, part in outcome.measured._asdict().items()}
        if outcome.failure is not None:
            entry["failure"] = outcome.failure._asdict()
        self._tell_failure(row, parameters, outcome)
        with storing(self._path):
            if self._file is None:
                self._file = _at_its_end(self._path)
                if self._is_dear:
                    sync(self._path.parent)
            self._file.write(f"{json.dumps(entry)}\n")
            self._file.flush()
            if self._is_dear:
                os.fsync(self._file.fileno())

    def _tell_failure(self, row: int, parameters: Any, outcome: Outcome) -> None:
        if outcome.failure is None:
            return
        told = {"iteration": self.iteration, "row": row, "parameters": parameters, "attempts": outcome.attempts}
        path = self._folder / FAILURES
        with storing(path), path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(told | outcome.failure._asdict())}\n")


def lost_evaluations(run: Run) -> list[str]:
    """Sentences on what was not evaluated, or is not in the archive."""
    last = {name: column[-1] for name, column in run.metrics.items() if len(column)}
    facts = []
    if (reused := last.get("reused_evaluations", 0)) > 0:
        facts.append(f"{reused:,.0f} evaluations took no call, because their designs were known already")
    if failed := int(last.get("failed_evaluations", 0)):
        failures = [] if run.path is None else map(_object, _lines(run.path / FAILURES))
        kinds = Counter(kind for failure in failures if isinstance(kind := failure.get("kind"), str))
        listed = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        details = f" ({listed}: see {FAILURES})" if listed else ""
        facts.append(f"{failed:,} evaluations failed{details} and are not in the archive")
    if broken := int(last.get("infeasible_evaluations", 0)):
        facts.append(f"{broken:,} evaluations broke a constraint and are not in the archive")
    return facts


def cautions(run: Run) -> list[str]:
    """Sentences on an archive that holds nothing, or solutions that are not where they should be."""
    solutions, facts = run.solutions(), list[str]()
    if not len(solutions.cell):
        return [f"the archive is empty: {_why_empty(run)}"]
    columns = solutions.features.T
    for name, (low, high), feature in zip(run.task.feature_names, run.task.feature_bounds, columns, strict=True):
        margin = 1e-6 * (high - low)
        if outside := int(np.sum((feature < low - margin) | (feature > high + margin))):
            facts.append(
                f"{outside:,} of {len(feature):,} solutions are outside of the bounds of {name!r} (it is from "
                f"{feature.min():.4g} to {feature.max():.4g}, its bounds are {low:g} and {high:g}): they are in the "
                "cells at the border"
            )
    return facts


CAUTIONS = "the archive is empty: |.* are outside of the bounds of "
"""How they begin, by which warnings of them are known."""


def _why_empty(run: Run) -> str:
    """A run of which every evaluation failed does not come to its end."""
    names = ("evaluations", "failed_evaluations", "infeasible_evaluations")
    evaluations, failed, infeasible = (int(run.metrics[name][-1]) if name in run.metrics else 0 for name in names)
    if feasible := evaluations - failed - infeasible:
        return f"the algorithm added none of {feasible:,} feasible solutions; check its tell"
    hint = "loosen the constraints, make more evaluations, or try nsga2-small, which approaches the feasible region"
    return f"none of {evaluations:,} evaluations satisfied all constraints; {hint}"


def _at_its_end(path: Path) -> TextIO:
    """The file, to be written at its end; a line that was cut off there is ended first."""
    before = path.read_bytes() if path.exists() else b""
    file = path.open("a", encoding="utf-8")
    if before and not before.endswith(b"\n"):
        file.write("\n")
    return file


def _lines(path: Path) -> list[str]:
    """The whole lines of a file, without one that was cut off; none if it cannot be read."""
    try:
        return read_text(path, most=MOST_BYTES).split("\n")[:-1]
    except InputError:
        return []


def _object(line: str) -> Mapping[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _outcome(entry: Mapping[str, Any], task: FunctionTask) -> Outcome | None:
    """None if the entry is not one of this task."""
    attempts, failure = entry.get("attempts"), entry.get("failure")
    if not isinstance(attempts, int):
        return None
    if isinstance(failure, dict):
        parts = [part for name in Failure._fields if isinstance(part := failure.get(name), str)]
        return Outcome(None, Failure(*parts), attempts) if len(parts) == len(Failure._fields) else None
    sizes = (task.num_objectives, task.num_features, len(task.constraint_names))
    columns = [entry.get(name) for name in Measured._fields]
    if not all(_are_numbers(column, size) for column, size in zip(columns, sizes, strict=True)):
        return None
    return Outcome(Measured(*(np.asarray(column, float) for column in columns)), None, attempts)


def _are_numbers(column: Any, size: int) -> bool:
    return (
        isinstance(column, list)
        and len(column) == size
        and all(isinstance(value, (int, float)) and math.isfinite(value) for value in column)
    )
