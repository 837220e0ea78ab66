"""One process's part of a run: from its start or from a checkpoint to its end, or until it is stopped.

It measures at every log point, and writes so that nothing is lost.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from moqd.core.archive import Archive
from moqd.core.metrics import archive_metrics
from moqd.core.types import Source
from moqd.io.errors import DivergenceError, InputError, StoppedError, StorageError, to_resume
from moqd.runs.checkpoint import Checkpoint, newest_checkpoint, oldest_iteration, write_checkpoint
from moqd.runs.config import RunConfig, Surroundings
from moqd.runs.control import Control
from moqd.runs.folder import (
    ARCHIVE,
    METRICS_CSV,
    MetricsFile,
    Run,
    columns_of,
    rows_of,
    table_of,
    write_archive,
    write_config,
    write_snapshot,
)
from moqd.runs.ledger import EVALUATIONS, INHERITED, read_evaluations, write_evaluations
from moqd.runs.lock import RunLock
from moqd.runs.loop import InitialSolutions, Loop
from moqd.runs.packing import on_host
from moqd.tasks import FunctionTask, Task


class Callback:
    """Something to do while a run goes on; override what you need."""

    def on_start(self, config: RunConfig) -> None:
        """Before the first batch."""

    def on_log(self, row: Mapping[str, float]) -> None:
        """At every log point, with the row of metrics.csv."""

    def on_progress(self, iteration: int) -> None:
        """After every chunk of iterations, and once when a run is resumed; nothing is measured for it."""

    def on_checkpoint(self, path: Path) -> None:
        """When a checkpoint is on disk, with its folder."""

    def on_end(self, run: Run) -> None:
        """After the last iteration."""


class Session:
    """One process's part of a run, from its start or from a checkpoint to the end or until it is stopped."""

    def __init__(
        self,
        loop: Loop,
        task: Task,
        config: RunConfig,
        callbacks: Sequence[Callback],
        control: Control | None,
    ) -> None:
        self._loop, self._task, self._config, self._callbacks = loop, task, config, callbacks
        self._control = control or Control()
        self._folder: Path | None = None
        self._lock: RunLock | None = None
        self._file: MetricsFile | None = None
        self._rows: list[dict[str, float]] = []
        self._saved: int | None = None
        """The iteration of the newest checkpoint."""
        self._begin = self._last_save = time.perf_counter()

    @property
    def has_rows(self) -> bool:
        return bool(self._rows)

    def write_to(self, folder: Path, lock: RunLock) -> None:
        self._folder, self._lock = folder, lock
        self._loop.write_to(folder)

    def begin(self) -> None:
        """A new run: what another has left in the folder counts no more."""
        assert self._folder is not None
        if self._loop.journal is not None:
            self._loop.journal.begin()
        (self._folder / EVALUATIONS).unlink(missing_ok=True)
        self._write_evaluations()

    def go(self, start: Archive | None, *, resuming: bool = False) -> Run:
        self._begin = time.perf_counter()
        try:
            for callback in self._callbacks:
                callback.on_start(self._config)
            self._loop.prepare()
            checkpoint = self._find_checkpoint() if resuming else None
            if resuming:
                self._rewind(INHERITED if checkpoint is None else checkpoint.facts["iteration"])
            if checkpoint is None:
                self._start(start)
            else:
                self._restore(checkpoint)
            self._control.under_way.set()
            self._last_save = time.perf_counter()
            self._iterate()
            self._write_archive()
            self._write_checkpoint()
        except DivergenceError:
            self._write_archive()  # but no checkpoint: there is nothing to go on from
            raise
        except StorageError as error:
            if self._folder is None:
                raise
            raise StorageError(f"{error} {self._how_to_go_on(self._folder)}") from error
        except StoppedError:
            raise
        except BaseException:
            self._rescue()
            raise
        finally:
            self._control.under_way.clear()
            if self._loop.journal is not None:
                self._loop.journal.close()
            if self._file is not None:
                self._file.close()
        return self._result()

    def _start(self, start: Archive | None) -> None:
        loop = self._loop
        loop.start(None if start is None else _initial_solutions(start))
        self._settle((loop.reference_point * self._task.direction).tolist())
        row = self._row()
        self._open_table(list(row))
        self._log(row)
        loop.stop_if_diverged()

    def _find_checkpoint(self) -> Checkpoint | None:
        assert self._folder is not None
        loop, wanted = self._loop, self._config.iterations
        checkpoint = newest_checkpoint(self._folder, loop.carry_shapes(), loop.place, self._config.identity)
        if checkpoint is None:
            return None
        reached, made_with = checkpoint.facts["iteration"], checkpoint.facts["made_with"]
        if wanted < reached:
            raise InputError(
                f"iterations is {wanted}, but the run in {str(self._folder)!r} is at iteration {reached} already; give "
                "at least that."
            )
        changed = [name for name, value in Surroundings.here().to_json().items() if value != made_with.get(name)]
        if changed and wanted > reached:
            warnings.warn(
                f"the run goes on with other {' and '.join(changed)} than before, so its bits may differ from those of "
                "a run that was never interrupted.",
                stacklevel=4,
            )
        return checkpoint

    def _rewind(self, iteration: int) -> None:
        """Journal and ledger as they were at the end of this iteration."""
        assert self._folder is not None
        if self._loop.journal is not None:
            self._loop.journal.rewind(iteration)
        if self._loop.ledger is not None and isinstance(self._task, FunctionTask):
            known = read_evaluations(self._folder, self._task)
            if known is not None:
                self._loop.ledger.restore(known, iteration)

    def _restore(self, checkpoint: Checkpoint) -> None:
        assert self._folder is not None
        facts = checkpoint.facts
        if len(facts["reference_point"]) != self._task.num_objectives:
            raise InputError(f"the checkpoint of {str(self._folder)!r} is of a task with other objectives.")
        reference_point = np.asarray(facts["reference_point"], float) * self._task.direction
        metrics = {name: jnp.float32(value) for name, value in facts["metrics"].items()}
        self._loop.restore(checkpoint.state, metrics, facts["iteration"], facts["env_steps"], reference_point)
        self._begin = time.perf_counter() - facts["seconds"]
        self._rows = rows_of(checkpoint.table, self._folder / METRICS_CSV)
        if not self._rows:
            raise InputError(
                f"the checkpoint of {str(self._folder)!r} holds no row of metrics, so it is not one of a run."
            )
        self._settle(facts["reference_point"])
        self._open_table(list(self._rows[0]))
        self._saved = facts["iteration"]
        for callback in self._callbacks:
            callback.on_progress(self._loop.iteration)

    def _iterate(self) -> None:
        loop, iterations = self._loop, self._config.iterations
        log_every, snapshot_every = self._config.log_every, self._config.snapshot_every or 0
        while True:
            done = loop.iteration >= iterations
            if self._rows[-1]["iteration"] < loop.iteration and (done or loop.iteration % log_every == 0):
                self._log(self._row())
            if snapshot_every and (done or loop.iteration % snapshot_every == 0):
                self._snapshot()
            if done:
                return
            stopping = self._control.stopping
            if self._is_save_due(stopping):
                self._write_archive()
                self._write_checkpoint()
            if stopping:
                raise StoppedError(f"stopped at iteration {loop.iteration} of {iterations}.", on_host(loop.archive))
            ends = [_next(loop.iteration, log_every), iterations]
            loop.advance(min(ends + [_next(loop.iteration, snapshot_every)] * bool(snapshot_every)))
            for callback in self._callbacks:
                callback.on_progress(loop.iteration)

    def _is_save_due(self, stopping: bool) -> bool:
        asked = self._control.wants_checkpoint() or stopping
        minutes = (time.perf_counter() - self._last_save) / 60
        return self._saved != self._loop.iteration and (asked or minutes >= self._config.checkpoint_minutes)

    def _write_checkpoint(self) -> None:
        """Of the iteration that the loop is at, unless there is one."""
        loop = self._loop
        if self._folder is None or self._saved == loop.iteration:
            return
        facts = {
            "iteration": loop.iteration,
            "env_steps": loop.env_steps,
            "seconds": self._seconds(),
            "reference_point": list(self._config.reference_point or ()),
            "metrics": {name: float(value) for name, value in loop.metrics.items()},
            "made_with": Surroundings.here().to_json(),
        }
        checkpoint = Checkpoint(facts, loop.carry, table_of(list(self._rows[0]), self._rows))
        path = write_checkpoint(self._folder, checkpoint, self._config.identity, self._check_lock)
        self._saved, self._last_save = loop.iteration, time.perf_counter()
        if loop.journal is not None:
            loop.journal.forget(oldest_iteration(self._folder))
        for callback in self._callbacks:
            callback.on_checkpoint(path)

    def _write_archive(self) -> None:
        """And what was evaluated, so that it is there before a checkpoint is that counts on it."""
        self._write_evaluations()
        if self._folder is not None:
            self._check_lock()
            write_archive(self._folder / ARCHIVE, self._loop.archive, self._loop.iteration)

    def _write_evaluations(self) -> None:
        if self._folder is not None and self._loop.ledger is not None:
            self._check_lock()
            write_evaluations(self._folder, self._loop.ledger.evaluations)

    def _settle(self, reference_point: Sequence[float]) -> None:
        """Where hypervolume is measured from is part of the config as soon as it is known."""
        self._config = replace(self._config, reference_point=tuple(reference_point))
        if self._folder is not None:
            self._check_lock()
            write_config(self._folder, self._config)

    def _snapshot(self) -> None:
        if self._folder is not None:
            self._check_lock()
            write_snapshot(self._folder, self._loop.iteration, self._loop.archive)

    def _rescue(self) -> None:
        """After an error or a KeyboardInterrupt: what was found, if the last chunk is whole."""
        carry = getattr(self._loop, "carry", None)
        if not self._rows or any(leaf.is_deleted() for leaf in jax.tree.leaves(carry)):
            return
        try:
            self._write_archive()
            self._write_checkpoint()
        except (StorageError, InputError) as error:
            warnings.warn(str(error), stacklevel=3)  # the first error is the one to raise

    def _open_table(self, columns: list[str]) -> None:
        if self._folder is not None:
            self._check_lock()
            self._file = MetricsFile(self._folder / METRICS_CSV, columns, self._rows)

    def _log(self, row: dict[str, float]) -> None:
        if self._rows:  # which may be of a task that counted more
            row = dict.fromkeys(self._rows[0], float("nan")) | row
        self._rows.append(row)
        if self._file is not None:
            self._check_lock()
            self._file.append(row)
        self._loop.count_anew()
        for callback in self._callbacks:
            callback.on_log(row)

    def _row(self) -> dict[str, float]:
        """The columns of metrics.csv, in their order."""
        loop = self._loop
        progress = loop.carry.progress
        measured = archive_metrics(loop.archive, loop.reference_point, progress.best)
        below, exact = measured.pop("below_reference"), measured.pop("hypervolume_exact")
        return {
            "iteration": float(loop.iteration),
            "evaluations": self._num_evaluations(),
            "seconds": self._seconds(),
            **measured,
            "failed_evaluations": float(progress.failed),
            "below_reference": below,
            **{f"added_{source.name.lower()}": float(progress.added[source]) for source in Source},
            "infeasible_evaluations": self._num_evaluations() - float(progress.failed) - float(progress.feasible),
            "hypervolume_exact": exact,
            **({} if loop.ledger is None else {"reused_evaluations": self._num_evaluations() - loop.ledger.num_calls}),
            **({"env_steps": float(loop.total_steps)} if loop.total_steps else {}),
            **{name: float(value) for name, value in loop.metrics.items()},
        }

    def _num_evaluations(self) -> float:
        return float((self._loop.iteration + 1) * self._loop.batch + self._config.initial_solutions)

    def _seconds(self) -> float:
        return time.perf_counter() - self._begin

    def _check_lock(self) -> None:
        if self._lock is not None:
            self._lock.check()

    def _how_to_go_on(self, folder: Path) -> str:
        kept = "from its start" if self._saved is None else f"the checkpoint of iteration {self._saved}, which is whole"
        return f"The run stopped; make room there and continue from {kept}, with: {to_resume(folder)}"

    def _result(self) -> Run:
        archive = self._loop.archive
        del self._loop.carry  # what was learned and learned from: not needed any more, and large
        archive = on_host(archive)
        ledger = self._loop.ledger if self._folder is None else None
        known = None if ledger is None else ledger.evaluations
        result = Run(self._task, self._config, archive, columns_of(self._rows), self._folder, _evaluations=known)
        for callback in self._callbacks:
            callback.on_end(result)
        return result


def _next(iteration: int, every: int) -> int:
    return (iteration // every + 1) * every if every else iteration


def _initial_solutions(archive: Archive) -> InitialSolutions:
    cell, place = np.nonzero(np.asarray(archive.valid))
    rows = jax.tree.map(lambda leaf: np.asarray(leaf)[cell, place], (archive.genotype, archive.preference))
    return InitialSolutions(*rows)
