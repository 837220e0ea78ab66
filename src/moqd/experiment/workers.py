"""Where the runs of a study are made: in processes of this machine, or on a Ray cluster.

Both do the same: every run is a process (`job.py`) with its share of the cores. One that dies (killed, out of memory)
is started again and goes on from its last checkpoint; one that fails for a reason of its own is not.
"""

import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from moqd.errors import InputError
from moqd.experiment.job import Ending, Job, stamped, write_outcome
from moqd.experiment.run import LOG
from moqd.files import own_folder

ATTEMPTS = 3
"""How often a process that dies is started in all."""
RETRIES = 10
"""How often Ray starts a run again whose worker or machine is gone."""
LOOK = 0.2
"""Seconds between two looks at a process."""


@runtime_checkable
class Workers(Protocol):
    """Those who do jobs, several at once."""

    def submit(self, name: str, job: Job) -> None:
        """Has a job done as soon as there is room."""

    def ended(self, seconds: float) -> list[tuple[str, Ending]]:
        """The jobs that have ended since the last call; waits for the first of them, but not longer than this."""

    def stop(self) -> None:
        """Has all that goes on save and stop, and starts nothing any more."""

    def kill(self) -> None:
        """Ends everything at once; must not wait."""


def carry_out(job: Job, should_stop: Callable[[], bool], environment: Mapping[str, str]) -> Ending:
    """Does a job in a process, and in another one if that dies."""
    folder = Path(job.folder)
    for attempt in range(1, ATTEMPTS + 1):
        code = _process(job, should_stop, environment)
        with suppress(ValueError):
            return Ending(code)
        if should_stop():
            return Ending.STOPPED
        _note(folder, f"the process ended with {_in_words(code)} (attempt {attempt} of {ATTEMPTS})")
    if not job.timing:
        write_outcome(folder, "failed", f"its process died {ATTEMPTS} times, the last time with {_in_words(code)}")
    return Ending.FAILED


def _process(job: Job, should_stop: Callable[[], bool], environment: Mapping[str, str]) -> int:
    folder = Path(job.folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    threads = {name: str(job.cores) for name in ("PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    with (own_folder(folder) / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moqd.experiment.job"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
            env={**os.environ, **environment, **threads},
            start_new_session=True,  # so that Ctrl-C reaches only the study, which tells its processes
        )
    assert process.stdin is not None
    told = False
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(job.to_json() + "\n")
            process.stdin.flush()
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK)
            if should_stop() and not told:
                told = True
                with suppress(BrokenPipeError):
                    process.stdin.write("stop\n")
                    process.stdin.flush()
    finally:
        process.kill()
        process.wait()
        with suppress(BrokenPipeError):
            process.stdin.close()


def _note(folder: Path, text: str) -> None:
    with (folder / LOG).open("a") as log:
        log.write(stamped(text) + "\n")


def _in_words(code: int) -> str:
    if code == -signal.SIGKILL:
        return "signal SIGKILL (perhaps out of memory)"
    with suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


class LocalWorkers:
    """Processes of this machine, so many at once."""

    def __init__(self, jobs: int) -> None:
        self._stop = threading.Event()
        self._ended: queue.SimpleQueue[tuple[str, Ending]] = queue.SimpleQueue()
        self._places: queue.SimpleQueue[Mapping[str, str]] = queue.SimpleQueue()
        for environment in places(jobs, gpus_here()):
            self._places.put(environment)
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="moqd-worker")

    def submit(self, name: str, job: Job) -> None:
        self._pool.submit(self._do, name, job)

    def _do(self, name: str, job: Job) -> None:
        ending, place = Ending.STOPPED, None
        try:
            place = self._places.get()
            if not self._stop.is_set():
                ending = carry_out(job, self._stop.is_set, place)
        except Exception as error:  # such as a full disk: the others go on
            ending = Ending.FAILED
            with suppress(Exception):
                write_outcome(Path(job.folder), "failed", str(error))
        finally:
            if place is not None:
                self._places.put(place)
            self._ended.put((name, ending))

    def ended(self, seconds: float) -> list[tuple[str, Ending]]:
        found = []
        with suppress(queue.Empty):
            found.append(self._ended.get(timeout=seconds))
            while True:
                found.append(self._ended.get_nowait())
        return found

    def stop(self) -> None:
        self._stop.set()

    def kill(self) -> None:
        """Nothing to do: the processes end with this one, whose pipes they read."""


def gpus_here() -> list[str]:
    """The names by which CUDA knows the GPUs of this machine."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name for name in given.split(",") if name not in ("", "-1")]
    return sorted(path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*"))


def places(jobs: int, gpus: list[str]) -> list[dict[str, str]]:
    """The environment of each of so many processes at once: the GPUs in turns, shared if there are fewer."""
    if not gpus:
        return [{} for _ in range(jobs)]
    share = min(1.0, len(gpus) / jobs)
    return [
        {
            "CUDA_VISIBLE_DEVICES": gpus[i % len(gpus)],
            **({} if share == 1 else {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.9 * share:.2f}"}),
        }
        for i in range(jobs)
    ]


class RayWorkers:
    """Tasks of a Ray cluster: each run with its CPUs and GPUs, on whatever machine has them."""

    def __init__(self, address: str, cores: int, gpus: float, marker: Path) -> None:
        self._ray = _connect(address)
        self._marker = str(marker)
        self._names: dict[Any, str] = {}
        self._do = self._ray.remote(num_cpus=cores, num_gpus=gpus, max_retries=RETRIES)(_on_a_node)
        self._jobs: dict[str, Job] = {}

    def submit(self, name: str, job: Job) -> None:
        self._names[self._do.remote(job.__dict__, self._marker)] = name
        self._jobs[name] = job

    def ended(self, seconds: float) -> list[tuple[str, Ending]]:
        if not self._names:
            return []
        ready, _ = self._ray.wait(list(self._names), num_returns=1, timeout=seconds)
        return [self._ending(reference) for reference in ready]

    def _ending(self, reference: Any) -> tuple[str, Ending]:
        name = self._names.pop(reference)
        try:
            return name, Ending(self._ray.get(reference))
        except self._ray.exceptions.TaskCancelledError:
            return name, Ending.STOPPED
        except self._ray.exceptions.RayError as error:
            reason = f"Ray gave up: {str(error).strip().splitlines()[0]}"
            write_outcome(Path(self._jobs[name].folder), "failed", reason)
            return name, Ending.FAILED

    def stop(self) -> None:
        for reference in self._names:
            self._ray.cancel(reference)

    def kill(self) -> None:
        """Nothing to do: when the driver is gone, Ray ends its tasks."""


def _on_a_node(job: dict[str, Any], marker: str) -> int:
    """What a Ray task does. Cancelling it raises KeyboardInterrupt, wherever it is."""
    if not Path(marker).exists():
        raise FileNotFoundError(
            f"{marker!r} is not there on {socket.gethostname()}; put the study on storage that all nodes share (--out)."
        )
    stop = threading.Event()
    result: queue.SimpleQueue[Ending] = queue.SimpleQueue()
    worker = threading.Thread(target=lambda: result.put(carry_out(Job(**job), stop.is_set, {})), daemon=True)
    worker.start()
    while worker.is_alive():
        try:
            worker.join(LOOK)
        except KeyboardInterrupt:
            stop.set()
    return int(result.get(timeout=1))


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError("--ray needs Ray, which is not installed; install it with: pip install 'moqd[ray]'") from error
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if ray.is_initialized():
        return ray
    local = address == "local"
    try:
        ray.init(
            address=address,
            include_dashboard=False if local else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(
            f"there is no Ray cluster at {address!r} ({str(error).splitlines()[0]}); start one with ray start --head, "
            "or give --ray local."
        ) from error
    return ray
