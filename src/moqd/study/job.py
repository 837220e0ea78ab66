"""One run of a study, in a process of its own: python -m moqd.study.job.

The process reads what to do from the first line of its standard input. A further line `stop` has it save and stop; when
the input ends, whoever started the process is gone, and so it goes at once: another will take the run over from its
last checkpoint. What came of it is in outcome.json, in the folder of the run.
"""

import json
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, TextIO

from moqd.core.devices import use_devices
from moqd.io.errors import (
    BusyError,
    DivergenceError,
    EvaluationError,
    InputError,
    MissingFileError,
    StoppedError,
    StorageError,
)
from moqd.io.files import FORMAT, own_folder, read_json, read_tensors, write_json
from moqd.runs.compilation import use_cache
from moqd.runs.config import PLANNED_LIMITS, RunConfig
from moqd.runs.control import Control
from moqd.runs.folder import ARCHIVE, CONFIG, OUTCOME, TIMING, last_row, read_config, saved_iteration
from moqd.runs.lock import is_held
from moqd.runs.session import Callback
from moqd.runs.start import resume, run
from moqd.runs.timing import time_parts, write_timing
from moqd.runs.user_code import load


class Ending(IntEnum):
    """How a job ended, as the exit code of its process; any other code: it died."""

    DONE = 0
    FAILED = 3
    STOPPED = 4
    BUSY = 5


@dataclass(frozen=True)
class Job:
    """What a process is to do; it is sent to other processes and machines as JSON."""

    folder: str
    config: RunConfig
    cores: int
    """How many of the CPU's cores it may use."""
    checkpoint_minutes: float = 5.0
    timing: bool = False
    """Whether to time the parts of the algorithm, instead of running it."""
    own_code: Sequence[str] = ()
    """Tasks and algorithms of the user's own that whoever started the study named..."""
    accept_changes: bool = False
    """...and whether they also stand for what they were before their files changed."""

    def to_json(self) -> str:
        return json.dumps({**self.__dict__, "config": self.config.settings()})

    @classmethod
    def from_json(cls, text: str) -> "Job":
        content = json.loads(text)
        return cls(**content | {"config": RunConfig.from_settings(content["config"], Path(content["folder"]))})


class Log(Callback):
    """Says where and when a process works on a run, and from where it goes on; and ends the process with the run's last
    checkpoint: to copy the archive once more for nobody, and to take JAX down, would take a second."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._logged = False

    def on_checkpoint(self, path: Path) -> None:
        if int(path.name) == self._job.config.iterations:
            os._exit(_done(Path(self._job.folder)))

    def on_start(self, config: RunConfig) -> None:
        say(f"process {os.getpid()} begins, with {len(config.surroundings.devices or ())} devices")

    def on_log(self, row: Mapping[str, float]) -> None:
        self._logged = True

    def on_progress(self, iteration: int) -> None:
        if not self._logged:
            say(f"goes on from iteration {iteration}")
            self._logged = True


def say(text: str) -> None:
    """A line of log.txt, to which the output of the process goes."""
    print(stamped(text), flush=True)


def stamped(text: str) -> str:
    """With when and where it was said."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S')} {socket.gethostname()}: {text}"


def main(lines: TextIO) -> Ending:
    """Does the job in the first line."""
    job, control = Job.from_json(lines.readline()), Control()
    threading.Thread(target=_obey, args=(lines, job, control), daemon=True, name="moqd-orders").start()
    try:
        return _do(job, Path(job.folder), control)
    except (BusyError, StoppedError) as error:
        say(str(error))
        return Ending.BUSY if isinstance(error, BusyError) else Ending.STOPPED
    except (InputError, EvaluationError, DivergenceError, StorageError) as error:
        reason = str(error)
    except Exception as error:
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
    say(reason)
    note_failure(job, reason)
    return Ending.FAILED


def _obey(lines: TextIO, job: Job, control: Control) -> None:
    for line in lines:
        if line.strip() == "stop":
            control.stop()
            if job.timing:  # there is nothing to save
                break
    os._exit(Ending.STOPPED)


def _do(job: Job, folder: Path, control: Control) -> Ending:
    config = job.config
    told: dict[str, Any] = {"callbacks": [Log(job)], "control": control}
    if not job.timing and _is_there(folder, config):
        return Ending.DONE  # another study has made it in the meantime
    use_devices(job.cores)
    use_cache()
    for spec in job.own_code:
        load(spec, accept_changes=job.accept_changes)
    task = config.task.make()
    algorithm = config.algorithm.make(task)
    if job.timing:
        write_timing(folder / TIMING, time_parts(algorithm, task, seed=config.seed))
        return Ending.DONE

    if (folder / CONFIG).exists():
        read_config(folder).check_same(config, folder)
        resume(folder, **told)
    else:
        names = (*PLANNED_LIMITS, "seed", "log_every", "snapshot_every")
        planned = {name: getattr(config, name) for name in names}
        try:
            run(algorithm, task, out=folder, checkpoint_minutes=job.checkpoint_minutes, **planned, **told)
        except InputError as error:
            if isinstance(error, BusyError) or not is_held(folder):
                raise
            raise BusyError(str(error)) from error  # another process began it at the same time
    return _done(folder)


def _done(folder: Path) -> Ending:
    write_outcome(folder, "done", "")
    say("done")
    return Ending.DONE


def is_done(folder: Path, config: RunConfig) -> bool:
    """Whether its files say that the run was made to its end, by a study or by anything else."""
    if not ((folder / ARCHIVE).is_file() and (folder / CONFIG).is_file()):
        return False
    # How many iterations fitted into its time or its steps, its own config says as soon as that is over.
    iterations = config.iterations if config.has_fixed_length else read_config(folder).iterations
    state = outcome_of(folder).get("state")
    at_its_end = last_row(folder)[0] == iterations
    return at_its_end and (state == "done" or (state is None and saved_iteration(folder) == iterations))


def _is_there(folder: Path, config: RunConfig) -> bool:
    """Whether the run is done and its archive can be read; one that is damaged is made from the last checkpoint."""
    with suppress(InputError):
        if is_done(folder, config) and not is_held(folder):
            read_tensors(folder / ARCHIVE)
            return True
    return False


def write_outcome(folder: Path, state: str, reason: str) -> None:
    """What came of a run: `done`, or `failed` with the reason."""
    write_json(own_folder(folder) / OUTCOME, {"format": FORMAT, "state": state, "reason": reason})


def note_failure(job: Job, reason: str) -> None:
    """Says in the run's folder why it failed, if that can be written; one that is done stays done."""
    if job.timing or outcome_of(Path(job.folder)).get("state") == "done":
        return
    with suppress(StorageError, InputError, OSError):
        write_outcome(Path(job.folder), "failed", reason)


def outcome_of(folder: Path) -> Mapping[str, Any]:
    """What `write_outcome` wrote; empty if there is nothing."""
    try:
        return read_json(folder / OUTCOME, "the outcome of a run")
    except InputError as error:
        return {} if isinstance(error, MissingFileError) else {"state": "failed", "reason": str(error)}


if __name__ == "__main__":
    sys.exit(main(sys.stdin))
