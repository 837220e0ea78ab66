"""One process's part of a run: from its start or from a checkpoint to its end, or until it is stopped.

It measures at every log point, and writes so that nothing is lost.
"""

import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moqd.algorithms.effort import ALIKE
from moqd.core.archive import Archive
from moqd.core.metrics import archive_metrics
from moqd.core.types import Source
from moqd.io.errors import DivergenceError, EvaluationError, InputError, StoppedError, StorageError, to_resume
from moqd.io.files import write_text
from moqd.runs.checkpoint import Checkpoint, newest_checkpoint, oldest_iteration, write_checkpoint
from moqd.runs.config import RunConfig, Surroundings
from moqd.runs.control import Control
from moqd.runs.folder import (
    ARCHIVE,
    CONFIG,
    INITIAL,
    METRICS_CSV,
    Run,
    append_row,
    columns_of,
    rows_of,
    table_of,
    write_archive,
    write_config,
    write_snapshot,
)
from moqd.runs.journal import cautions
from moqd.runs.ledger import EVALUATIONS, INHERITED, read_evaluations, write_evaluations
from moqd.runs.lock import RunLock
from moqd.runs.loop import Loop
from moqd.runs.packing import on_host
from moqd.tasks import Task


class Callback:
    """Something to do while a run goes on; override what you need.

    If `on_log` or `on_progress` returns True, the run stops there: it is saved, and `run` returns what it has found.
    """

    def on_start(self, config: RunConfig) -> None:
        """Before the first batch."""

    def on_log(self, row: Mapping[str, float]) -> bool | None:
        """At every log point, with the row of metrics.csv."""

    def on_progress(self, iteration: int) -> bool | None:
        """After every chunk of iterations, and once when a run is resumed; nothing is measured for it."""

    def on_checkpoint(self, path: Path) -> None:
        """When a checkpoint is on disk, with its folder."""

    def on_end(self, run: Run) -> None:
        """After the last iteration, or where a callback stopped the run."""


class Session:
    """The part of a run that this process does; it is written to the folder of `lock`, if there is one."""

    def __init__(
        self,
        loop: Loop,
        task: Task,
        config: RunConfig,
        callbacks: Sequence[Callback],
        control: Control | None,
        lock: RunLock | None,
    ) -> None:
        self._loop, self._task, self._config, self._callbacks = loop, task, config, callbacks
        self._control, self._lock = control or Control(), lock
        self.rows: list[dict[str, float]] = []
        """Those of metrics.csv so far."""
        self._saved: int | None = None
        """The iteration of the newest checkpoint."""
        self._is_asked_to_stop = False
        """By a callback."""
        self._ended = ""
        """Why it ended before its last iteration."""
        self._pace, self._steps_of_iteration = math.inf, math.inf
        """Seconds of an iteration of the last chunk, of a run whose time is limited."""
        self._begin = self._last_save = time.perf_counter()
        if lock is not None:
            loop.write_to(lock.run_folder)

    def go(self, start: Archive | None, *, resuming: bool = False) -> Run:
        """A new run, which may start with the solutions of an archive, or one that is resumed."""
        if not resuming and (folder := self._folder()) is not None:
            self._clear(folder, start)
        self._begin = time.perf_counter()
        try:
            for callback in self._callbacks:
                callback.on_start(self._config)
            self._loop.prepare()
            folder = self._folder() if resuming else None
            checkpoint = None if folder is None else self._rewind(folder)
            if folder is None or checkpoint is None:
                self._start(start)
            else:
                self._restore(folder, checkpoint)
            self._control.under_way.set()
            self._last_save = time.perf_counter()
            self._iterate()
            self._save()
        except DivergenceError as error:
            self._write_archive()  # but no checkpoint: there is nothing to go on from
            error.run = self._run() if self.rows else None
            raise
        except StorageError as error:
            if self._lock is None:
                raise
            kept = "its start" if self._saved is None else f"the checkpoint of iteration {self._saved}, which is whole"
            raise StorageError(
                f"{error} The run stopped; make room there and continue from {kept}, with: "
                f"{to_resume(self._lock.run_folder)}"
            ) from error
        except StoppedError as error:
            error.run = self._run()
            raise
        except BaseException as error:
            if self._rescue():
                vars(error)["run"] = self._run()
                error.add_note("What the run had found is in `run` of this error.")
            elif isinstance(error, InputError | EvaluationError) and not (resuming or self.rows or self._lock is None):
                # Nothing was found; so that it can be started again when it is fixed, unless another process has the
                # folder now.
                (self._lock.check() / CONFIG).unlink(missing_ok=True)
            raise
        finally:
            self._control.under_way.clear()
            if self._loop.journal is not None:
                self._loop.journal.close()
        result = self._run()
        del self._loop.carry  # what was learned and learned from: not needed any more, and large
        for callback in self._callbacks:
            callback.on_end(result)
        for fact in cautions(result):
            warnings.warn(f"{fact}.", stacklevel=3)
        return result

    def _folder(self) -> Path | None:
        """Where to write, after making sure that it is still ours; None for a run that is not written."""
        return None if self._lock is None else self._lock.check()

    def _clear(self, folder: Path, start: Archive | None) -> None:
        """For a new run: what another has left in the folder counts no more."""
        if start is not None:
            write_archive(folder / INITIAL, start)
        if self._loop.journal is not None:
            self._loop.journal.begin()
        (folder / EVALUATIONS).unlink(missing_ok=True)
        self._write_evaluations()
        self._configure()

    def _start(self, start: Archive | None) -> None:
        loop, cost = self._loop, self._config.learning_cost
        if cost is None and self._config.minutes is None:
            cost = ALIKE
        loop.start(start, cost)
        row = self._row()
        self._settle((loop.reference_point * self._task.direction).tolist(), columns=row)
        self._log(row)
        loop.stop_if_diverged()

    def _rewind(self, folder: Path) -> Checkpoint | None:
        """The newest checkpoint, if there is one, and journal and ledger as they were at its end."""
        loop, wanted = self._loop, self._config.iterations
        checkpoint = newest_checkpoint(folder, loop.carry_shapes(), loop.place, self._config.identity)
        reached = INHERITED if checkpoint is None else checkpoint.facts["iteration"]
        if wanted < reached:
            raise InputError(
                f"iterations is {wanted}, but the run in {str(folder)!r} is at iteration {reached} already; give at "
                "least that."
            )
        if checkpoint is not None and wanted > reached:
            before, now = checkpoint.facts["made_with"], Surroundings.here().to_json()
            if changed := [name for name, value in now.items() if value != before.get(name)]:
                warnings.warn(
                    f"the run goes on with other {' and '.join(changed)} than before, so its bits may differ from "
                    "those of a run that was never interrupted.",
                    stacklevel=4,
                )
        if loop.journal is not None:
            loop.journal.rewind(reached)
        if loop.ledger is not None and (known := read_evaluations(folder, loop.ledger.task)) is not None:
            loop.ledger.restore(known, reached)
        return checkpoint

    def _restore(self, folder: Path, checkpoint: Checkpoint) -> None:
        facts, rows = checkpoint.facts, rows_of(checkpoint.table, folder / METRICS_CSV)
        if len(facts["reference_point"]) != self._task.num_objectives:
            raise InputError(f"the checkpoint of {str(folder)!r} is of a task with other objectives.")
        if not rows:
            raise InputError(f"the checkpoint of {str(folder)!r} holds no row of metrics, so it is not one of a run.")
        reference_point = np.asarray(facts["reference_point"], float) * self._task.direction
        metrics = {name: jnp.float32(value) for name, value in facts["metrics"].items()}
        self._loop.learning_cost = self._config.learning_cost
        self._loop.restore(checkpoint.state, metrics, facts["iteration"], facts["env_steps"], reference_point)
        self.rows, self._begin = rows, time.perf_counter() - facts["seconds"]
        self._settle(facts["reference_point"], columns=rows[0])
        self._saved = facts["iteration"]
        self._tell_progress()

    def _tell_progress(self) -> None:
        for callback in self._callbacks:
            self._heed(callback.on_progress(self._loop.iteration))

    def _heed(self, answer: Any) -> None:
        """What a callback returned; of all that may be, only True means something."""
        self._is_asked_to_stop |= isinstance(answer, bool | np.bool_) and bool(answer)

    def _iterate(self) -> None:
        loop, config = self._loop, self._config
        snapshot_every = config.snapshot_every
        while True:
            over, logged = self._why_over(), int(self.rows[-1]["iteration"])
            if logged < loop.iteration and (over is not None or loop.iteration >= config.next_log_point(logged)):
                self._log(self._row())
                over = self._why_over() if over is None else over
            snapshot_due = snapshot_every is not None and (over is not None or loop.iteration % snapshot_every == 0)
            if snapshot_due and (folder := self._folder()) is not None:
                write_snapshot(folder, loop.iteration, loop.archive)
            if over is not None:
                self._ended = over
                if over:  # by its time, steps or patience: a run of as many iterations, and finished
                    self._configure(iterations=loop.iteration)
                return
            stopping = self._control.stopping or self._is_asked_to_stop
            if self._is_save_due(stopping):
                self._save()
            if stopping:
                where = f"stopped at iteration {loop.iteration}{config.of_iterations}"
                if not self._is_asked_to_stop:
                    raise StoppedError(f"{where}.", on_host(loop.archive))
                self._ended = f"{where}, as a callback asked."
                return
            stop = min(config.iterations, config.next_log_point(loop.iteration))
            if snapshot_every is not None:
                stop = min(stop, (loop.iteration // snapshot_every + 1) * snapshot_every)
            self._advance(stop)
            if loop.learning_cost != self._config.learning_cost:
                self._configure(learning_cost=loop.learning_cost)
            self._tell_progress()

    def _why_over(self) -> str | None:
        """Why the run ends here, if it does: empty at its last iteration, else a sentence."""
        config, iteration = self._config, self._loop.iteration
        if iteration >= config.iterations:
            return ""
        if config.minutes is not None and self._seconds() >= 60 * config.minutes:
            return f"ended at iteration {iteration}, because its time ({config.minutes:g} min) is over."
        if config.env_steps is not None and not self._loop.total_steps:  # of a task on the host, only now it is known
            raise InputError(
                f"env_steps is {config.env_steps}, but task {config.task.name!r} counted no steps; give evaluations "
                "instead, or have its evaluate return num_steps."
            )
        if config.env_steps is not None and self._loop.total_steps >= config.env_steps:
            return f"ended at iteration {iteration}, because its {config.env_steps:,} environment steps are made."
        if config.patience is not None:
            best = max(self.rows, key=lambda row: row["moqd_score"])["iteration"]  # the first of them
            if self.rows[-1]["iteration"] - best >= config.patience:
                return f"ended at iteration {iteration}, because its MOQD score is that of iteration {best:.0f} still."
        return None

    def _advance(self, stop: int) -> None:
        """A chunk; where time or steps are limited, at most half of what is left, so that the end is met in steps."""
        loop, config, begin, before = self._loop, self._config, time.perf_counter(), self._loop.iteration
        if config.has_fixed_length:
            loop.advance(stop)
            return
        fitting = []
        if config.minutes is not None:
            fitting.append((60 * config.minutes - self._seconds()) / self._pace)
        steps_before = loop.total_steps
        if config.env_steps is not None:
            fitting.append((config.env_steps - steps_before) / self._steps_of_iteration)
        loop.advance(min(stop, before + max(1, int(min(fitting) / 2))))
        jax.block_until_ready(loop.carry)
        self._pace = max(1e-9, (time.perf_counter() - begin) / (loop.iteration - before))
        self._steps_of_iteration = max(1.0, (loop.total_steps - steps_before) / (loop.iteration - before))

    def _is_save_due(self, stopping: bool) -> bool:
        asked = self._control.wants_checkpoint() or stopping
        minutes = (time.perf_counter() - self._last_save) / 60
        return self._saved != self._loop.iteration and (asked or minutes >= self._config.checkpoint_minutes)

    def _save(self) -> None:
        """The archive, and a checkpoint of the iteration that the loop is at, unless there is one."""
        self._write_archive()
        loop, folder = self._loop, self._folder()
        if folder is None or self._saved == loop.iteration:
            return
        facts = {
            "iteration": loop.iteration,
            "env_steps": loop.env_steps,
            "seconds": self._seconds(),
            "reference_point": list(self._config.reference_point or ()),
            "metrics": {name: float(value) for name, value in loop.metrics.items()},
            "made_with": Surroundings.here().to_json(),
        }
        checkpoint = Checkpoint(facts, loop.carry, table_of(self.rows[0], self.rows))
        path = write_checkpoint(folder, checkpoint, self._config.identity, self._folder)
        self._saved, self._last_save = loop.iteration, time.perf_counter()
        if loop.journal is not None:
            loop.journal.forget(oldest_iteration(folder))
        for callback in self._callbacks:
            callback.on_checkpoint(path)

    def _write_archive(self) -> None:
        """And what was evaluated, so that it is there before a checkpoint is that counts on it."""
        self._write_evaluations()
        if (folder := self._folder()) is not None:
            write_archive(folder / ARCHIVE, self._loop.archive, self._loop.iteration)

    def _write_evaluations(self) -> None:
        if self._loop.ledger is not None and (folder := self._folder()) is not None:
            write_evaluations(folder, self._loop.ledger.evaluations)

    def _settle(self, reference_point: Sequence[float], columns: Iterable[str]) -> None:
        """When it is known where hypervolume is measured from, the config says it and metrics.csv begins."""
        self._configure(reference_point=tuple(reference_point))
        if (folder := self._folder()) is not None:
            write_text(folder / METRICS_CSV, table_of(columns, self.rows))

    def _configure(self, **changes: Any) -> None:
        self._config = replace(self._config, **changes)
        if (folder := self._folder()) is not None:
            write_config(folder, self._config)

    def _rescue(self) -> bool:
        """After an error or a KeyboardInterrupt: saves what was found, if the last chunk is whole; whether it is."""
        carry = getattr(self._loop, "carry", None)
        if not self.rows or carry is None or any(leaf.is_deleted() for leaf in jax.tree.leaves(carry)):
            return False
        try:
            self._save()
        except (StorageError, InputError) as error:
            warnings.warn(str(error), stacklevel=3)  # the first error is the one to raise
        return True

    def _log(self, row: dict[str, float]) -> None:
        if self.rows:  # which may be of a task that counted more
            row = dict.fromkeys(self.rows[0], float("nan")) | row
        self.rows.append(row)
        if (folder := self._folder()) is not None:
            append_row(folder, self.rows[0], row)
        self._loop.count_anew()
        for callback in self._callbacks:
            self._heed(callback.on_log(row))

    def _row(self) -> dict[str, float]:
        """The columns of metrics.csv, in their order."""
        loop = self._loop
        progress = loop.carry.progress
        measured = archive_metrics(loop.archive, loop.reference_point, progress.best)
        below, exact = measured.pop("below_reference"), measured.pop("hypervolume_exact")
        evaluations = float((loop.iteration + 1) * loop.batch + self._config.initial_solutions)
        return {
            "iteration": float(loop.iteration),
            "evaluations": evaluations,
            "seconds": self._seconds(),
            **measured,
            "failed_evaluations": float(progress.failed),
            "below_reference": below,
            **{f"added_{source.name.lower()}": float(progress.added[source]) for source in Source},
            "infeasible_evaluations": evaluations - float(progress.failed) - float(progress.feasible),
            "hypervolume_exact": exact,
            **({} if loop.ledger is None else {"reused_evaluations": evaluations - loop.ledger.num_calls}),
            **({"env_steps": float(loop.total_steps)} if loop.total_steps else {}),
            **{name: float(value) for name, value in loop.metrics.items()},
        }

    def _seconds(self) -> float:
        return time.perf_counter() - self._begin

    def _run(self) -> Run:
        """Up to here."""
        folder = None if self._lock is None else self._lock.run_folder
        known = None if self._loop.ledger is None or folder is not None else self._loop.ledger.evaluations
        archive, metrics = on_host(self._loop.archive), columns_of(self.rows)
        return Run(self._task, self._config, archive, metrics, folder, ended=self._ended, _evaluations=known)
