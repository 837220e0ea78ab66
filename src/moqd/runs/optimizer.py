"""Ask and tell by hand, for evaluations that no function can make: a lab bench, a queue, a colleague.

An optimizer is a run whose evaluations come from outside. All else is as in `moqd.run`: it is written to a folder,
every result is there as soon as it is told, and it goes on where it was after the program has ended, however that came
about.
"""

import os
import queue
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moqd.algorithms import Algorithm, make_algorithm
from moqd.core.archive import Archive
from moqd.io.errors import InputError, MissingFileError, StoppedError
from moqd.runs.control import Control
from moqd.runs.folder import CONFIG, Run, load_run, read_config
from moqd.runs.initial import Start
from moqd.runs.session import Callback
from moqd.runs.start import resume, run
from moqd.tasks.function import FunctionTask, Journal
from moqd.tasks.pool import Call, Failure, Result

ITERATIONS = 1000


class Candidate(NamedTuple):
    """A solution that is to be evaluated."""

    iteration: int
    """Of which batch it is..."""
    row: int
    """...and its place there."""
    parameters: Mapping[str, Any]
    """In the user's units, by name."""


class Optimizer:
    """`ask` for candidates, evaluate them in any way and order, and `tell` what came of each.

    When all candidates of a batch have been told, the algorithm goes on to the next one; no design is asked for twice,
    unless the task is noisy or has resamples. With `out`, an optimizer is kept in that folder, and made again with the
    same arguments it goes on from there; without, it ends with the program. Use it in a `with` statement, or `close`
    it.
    """

    def __init__(
        self,
        task: FunctionTask,
        algorithm: str | Algorithm = "mome",
        *,
        seed: int = 0,
        out: str | os.PathLike[str] | None = None,
        iterations: int = ITERATIONS,
        start: Start | None = None,
        **options: Any,
    ) -> None:
        """`options` are those of the algorithm, such as ga_batch=8: how many candidates there are at a time.

        The designs of `start` are asked for first.
        """
        if not isinstance(task, FunctionTask) or task.traceable or task.batched or task.space is None:
            raise InputError(
                "an Optimizer takes a task of plain parameters: moqd.FunctionTask(None, bounds=..., ...), neither "
                "traceable nor batched."
            )
        if isinstance(algorithm, Algorithm) and options:
            raise InputError(f"{', '.join(options)}: the algorithm is made already; give options to make_algorithm.")
        self._desk = _Desk()
        given = {one.name: getattr(task, one.name) for one in fields(FunctionTask) if one.init}
        self._task = _ByHand(
            desk=self._desk,
            **given | {"function": None, "evaluator": "here", "workers": None, "timeout": None, "retries": 0},
        )
        self._algorithm = make_algorithm(algorithm, self._task, **options) if isinstance(algorithm, str) else algorithm
        self._temporary = tempfile.TemporaryDirectory(prefix="moqd-") if out is None else None
        self._folder = Path(self._temporary.name) / "run" if self._temporary is not None else Path(str(out))
        self._control, self._seed, self._iterations, self._start = Control(), seed, iterations, start
        self._thread = threading.Thread(target=self._go, daemon=True, name="moqd-optimizer")
        self._thread.start()
        try:
            self._desk.wait_for_batch()  # so that what is wrong is said now
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"Optimizer({self._algorithm.name} on {self._task.name} in {str(self._folder)!r})"

    @property
    def batch(self) -> int:
        """How many candidates there are at a time."""
        return len(self._desk.wait_for_batch().arguments)

    def ask(self) -> list[Candidate]:
        """The candidates of this batch that have not been told yet; of the next one, if all have."""
        assert self._task.space is not None
        batch, candidates = self._desk.wait_for_batch(), []
        for place in sorted(batch.open):
            arguments, named = batch.arguments[place]
            parameters = self._task.space.values(arguments[0]) if arguments else named
            candidates.append(Candidate(batch.iteration, batch.rows[place], parameters))
        return candidates

    def tell(
        self,
        candidate: Candidate,
        objectives: Sequence[float],
        features: Sequence[float] = (),
        constraints: Sequence[float] = (),
    ) -> None:
        """What came of a candidate, in the user's units; when this returns, it is saved."""
        parts = {"objectives": objectives, "features": features, "constraints": constraints}
        expected = (self._task.objective_names, self._task.feature_names, self._task.constraint_names)
        for (kind, values), names in zip(parts.items(), expected, strict=True):
            if np.shape(values) != (len(names),):
                raise InputError(f"{kind} is {values!r}; give {len(names)} numbers: {', '.join(names) or 'none'}.")
            if not np.all(np.abs(np.asarray(values, float)) <= np.finfo(np.float32).max):
                raise InputError(f"{kind} is {values!r}, in 32 bits not finite; say fail if there is no result.")
        given = [np.asarray(values, float) for values, names in zip(parts.values(), expected, strict=True) if names]
        self._answer(candidate, Result(given[0] if len(given) == 1 else tuple(given)))

    def fail(self, candidate: Candidate, reason: str = "it was told to have failed") -> None:
        """An evaluation that gave nothing: counted, written to failures.jsonl, and never archived."""
        self._answer(candidate, Result(failure=Failure("told", reason)))

    def _answer(self, candidate: Candidate, result: Result) -> None:
        if not isinstance(candidate, Candidate):
            raise InputError(f"candidate is {candidate!r}; give one that ask gave.")
        batch = self._desk.wait_for_batch()
        place = next((place for place in batch.open if batch.rows[place] == candidate.row), None)
        if place is None or candidate.iteration != batch.iteration:
            raise InputError(
                f"candidate {candidate.row} of iteration {candidate.iteration} is not one that is waited for; tell "
                "those that ask gives, each once."
            )
        self._desk.answer(place, result)

    @property
    def run(self) -> Run:
        """What was found in the batches that are complete: for `moqd.pick`, the explorer and the report."""
        ended = self._desk.wait()
        try:
            return load_run(self._folder, task=self._task)
        except (MissingFileError, InputError) as error:
            nothing = InputError("there is nothing yet: tell what came of all candidates of the first batch.")
            raise ended or nothing from error

    @property
    def archive(self) -> Archive:
        return self.run.archive

    def close(self) -> None:
        """Saves and ends it. What was told stays told."""
        self._desk.close()
        self._control.stop()
        self._thread.join()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> "Optimizer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _go(self) -> None:
        completion = _Completion(self._task, self._control)
        task, algorithm, folder, iterations = self._task, self._algorithm, self._folder, self._iterations
        watched: dict[str, Any] = {"callbacks": [completion], "control": self._control}
        ended = "all of its iterations are done; make an Optimizer with more, in the same folder."
        try:
            if (folder / CONFIG).exists():
                iterations = max(read_config(folder).iterations, iterations)
                resume(folder, task=task, algorithm=algorithm, iterations=iterations, **watched)
            else:
                watched |= {"log_every": 1, "checkpoint_minutes": 0}
                run(algorithm, task, iterations=iterations, seed=self._seed, start=self._start, out=folder, **watched)
        except (StoppedError, _ClosedError):
            ended = "the optimizer is closed; make a new one, with the same folder."
        except BaseException as error:
            self._desk.end(error)
            return
        self._desk.end(InputError(_ALL_TOLD if completion.is_reached else ended))


_ALL_TOLD = "every design that there is has been evaluated; moqd.load_run of the optimizer's folder gives the result."


class _Completion(Callback):
    """Stops a run in which there is nothing left to ask for."""

    def __init__(self, task: FunctionTask, control: Control) -> None:
        self._num_designs = None if task.space is None else task.space.num_designs
        self._control, self.is_reached = control, False

    def on_log(self, row: Mapping[str, float]) -> None:
        reused = row.get("reused_evaluations")  # None: designs may be asked for again
        if reused is not None and row["evaluations"] - reused == self._num_designs:
            self.is_reached = True
            self._control.stop()


class _ClosedError(Exception):
    """Nobody waits for further results."""


@dataclass
class _Batch:
    """Candidates, and which of them are still open, by their place in the batch."""

    iteration: int
    rows: Sequence[int]
    arguments: Sequence[Call]
    open: set[int]


class _Desk:
    """Where the run, in its thread, lays candidates down and waits for what comes of them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._batch: _Batch | None = None
        self._ended: BaseException | None = None
        self._results: queue.SimpleQueue[tuple[int, Result] | None] = queue.SimpleQueue()

    def results(self, batch: _Batch) -> Iterator[tuple[int, Result]]:
        """For the run: what came of the candidates, as it is told."""
        if batch.open:
            with self._changed:
                self._batch = batch
                self._changed.notify_all()
        while batch.open:
            one = self._results.get()
            if one is None:
                raise _ClosedError
            yield one
            with self._changed:  # by now it is written down
                batch.open.discard(one[0])
                if not batch.open:
                    self._batch = None
                self._changed.notify_all()

    def close(self) -> None:
        self._results.put(None)

    def answer(self, place: int, result: Result) -> None:
        """For the user: hands a result in, and returns when the run has written it down."""
        with self._changed:
            batch = self._batch
            self._results.put((place, result))
            self._changed.wait_for(lambda: self._ended is not None or batch is None or place not in batch.open)
            if self._ended is not None:
                raise self._ended

    def wait(self) -> BaseException | None:
        """Until there is a batch, or the end and why it came."""
        with self._changed:
            self._changed.wait_for(lambda: self._batch is not None or self._ended is not None)
            return self._ended

    def wait_for_batch(self) -> _Batch:
        with self._changed:
            self.wait()
            if self._batch is None:
                assert self._ended is not None
                raise self._ended
            return self._batch

    def end(self, error: BaseException) -> None:
        with self._changed:
            self._ended, self._batch = error, None
            self._changed.notify_all()


@dataclass(frozen=True, eq=False, repr=False)
class _ByHand(FunctionTask):
    """The task of an optimizer."""

    desk: _Desk = field(kw_only=True, repr=False)

    def _calls(
        self, calls: Sequence[Call], rows: Sequence[int], journal: Journal | None
    ) -> Iterator[tuple[int, Result]]:
        if journal is None:  # somebody wants fresh evaluations
            return super()._calls(calls, rows, journal)
        return self.desk.results(_Batch(journal.iteration, rows, calls, set(range(len(rows)))))
