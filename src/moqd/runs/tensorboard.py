"""A run's metrics for TensorBoard, with the writer of the package tensorboard: no other framework is needed."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moqd.io.errors import InputError
from moqd.io.extras import need
from moqd.io.files import storing
from moqd.runs.folder import Run
from moqd.runs.session import Callback


class TensorBoard(Callback):
    """Writes every column of metrics.csv as a scalar over the iterations; look with `tensorboard --logdir FOLDER`."""

    def __init__(self, folder: Path) -> None:
        need("tensorboard", "tensorboard", "--tensorboard")
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._folder = folder
        self._events, self._summaries, self._open = event_pb2, summary_pb2, EventFileWriter
        self._writer: Any = None

    def on_progress(self, iteration: int) -> None:
        if self._writer is None:  # resumed: what was logged after this iteration will be logged again
            self._start(iteration + 1)

    def on_log(self, row: Mapping[str, float]) -> None:
        step = int(row["iteration"])
        if self._writer is None:
            self._start(step)
        value = self._summaries.Summary.Value
        scalars = [value(tag=name, simple_value=number) for name, number in row.items() if name != "iteration"]
        self._write(step, summary=self._summaries.Summary(value=scalars))

    def on_end(self, run: Run) -> None:
        if self._writer is not None:
            self._writer.close()

    def _start(self, step: int) -> None:
        """Begins a new file, from which on nothing older of this step or a later one is shown.

        Every file begins so, that of a new run too: TensorBoard takes only the second such event for a restart.
        """
        self._write(step, session_log=self._events.SessionLog(status=self._events.SessionLog.START))

    def _write(self, step: int, **content: Any) -> None:
        with storing(self._folder):
            if self._writer is None:
                if self._folder.is_symlink():
                    raise InputError(f"{str(self._folder)!r} is a link, which is not followed; remove it.")
                self._writer = self._open(str(self._folder))
            self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, **content))
            self._writer.flush()
