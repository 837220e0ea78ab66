"""Where the runs of a study are made: in processes of this machine, or on a Ray cluster.

Both do the same: every run is a process (`job.py`) with its share of the cores. One that dies (killed, out of memory)
is started again and goes on from its last checkpoint; one that fails for a reason of its own is not.
"""

import logging
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol, runtime_checkable

from moqd.io.errors import InputError, one_line
from moqd.io.extras import need
from moqd.io.files import check_regular, own_folder
from moqd.runs.folder import LOG
from moqd.study.job import Ending, Job, note_failure, stamped

ATTEMPTS = 3
"""How often a process that dies is started in all."""
RETRIES = 10
"""How often Ray starts a run again whose worker or machine is gone."""
LOOK = 0.2
"""Seconds between two looks at a process."""


@runtime_checkable
class Workers(Protocol):
    """Those who do jobs, several at once. They end with this process, even if it is killed."""

    def submit(self, name: str, job: Job) -> None:
        """Has a job done as soon as there is room."""

    def ended(self, seconds: float) -> list[tuple[str, Ending]]:
        """The jobs that have ended since the last call; waits for the first of them, but not longer than this."""

    def stop(self) -> None:
        """Has all that goes on save and stop, and starts nothing any more."""


def carry_out(job: Job, should_stop: Callable[[], bool], environment: Mapping[str, str]) -> Ending:
    """Does a job in a process, and in another one if that dies."""
    for attempt in range(1, ATTEMPTS + 1):
        code = _process(job, should_stop, environment)
        with suppress(ValueError):
            return Ending(code)
        if should_stop():
            return Ending.STOPPED
        with _log(Path(job.folder)) as log:
            note = stamped(f"the process ended with {_in_words(code)} (attempt {attempt} of {ATTEMPTS})")
            log.write(f"{note}\n".encode())
    note_failure(job, f"its process died {ATTEMPTS} times, the last time with {_in_words(code)}")
    return Ending.FAILED


def _process(job: Job, should_stop: Callable[[], bool], environment: Mapping[str, str]) -> int:
    folder = Path(job.folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    threads = {name: str(job.cores) for name in ("PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    with _log(own_folder(folder)) as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moqd.study.job"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
            env={**os.environ, **environment, **threads},
            start_new_session=True,  # so that Ctrl-C reaches only the study, which tells its processes
        )
    assert process.stdin is not None
    orders = process.stdin

    def tell(line: str) -> None:
        with suppress(BrokenPipeError):
            print(line, file=orders, flush=True)

    told = False
    try:
        tell(job.to_json())
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK)
            if should_stop() and not told:
                told = True
                tell("stop")
    finally:
        process.kill()
        process.wait()
        with suppress(BrokenPipeError):
            orders.close()


def _log(folder: Path) -> IO[bytes]:
    """To be written at its end, and only if it is a plain file: nothing is written through a link."""
    path = folder / LOG
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    check_regular(path)
    return os.fdopen(handle, "ab")


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
        ending, place = Ending.STOPPED, self._places.get()
        try:
            if not self._stop.is_set():
                ending = carry_out(job, self._stop.is_set, place)
        except Exception as error:  # such as a full disk: the others go on
            ending = Ending.FAILED
            note_failure(job, str(error))
        finally:
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


def gpus_here() -> list[str]:
    """The names by which CUDA knows the GPUs of this machine."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name for name in given.split(",") if name not in ("", "-1")]
    return sorted(path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*"))


def places(jobs: int, gpus: list[str]) -> list[dict[str, str]]:
    """The environment of each of so many processes at once: the GPUs in turns, shared if there are fewer."""
    shared = _share_of_memory(min(1.0, len(gpus) / jobs))
    return [{"CUDA_VISIBLE_DEVICES": gpus[i % len(gpus)], **shared} if gpus else {} for i in range(jobs)]


def _share_of_memory(gpus: float) -> dict[str, str]:
    """The setting by which a process leaves room on its GPU for others."""
    return {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.9 * gpus:.2f}"} if 0 < gpus < 1 else {}


class RayWorkers:
    """Tasks of a Ray cluster: each run with its CPUs and GPUs, on whatever machine has them."""

    def __init__(self, address: str, cores: int, gpus: float, marker: Path) -> None:
        self._ray = _connect(address)
        self._warn_if_too_large(cores, gpus)
        self._marker = str(marker)
        self._environment = _share_of_memory(gpus)
        self._under_way: dict[Any, tuple[str, Job]] = {}
        """Names and jobs by Ray's references."""
        self._do = self._ray.remote(num_cpus=cores, num_gpus=gpus, max_retries=RETRIES)(_on_a_node)

    def _warn_if_too_large(self, cores: int, gpus: float) -> None:
        resources = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        for what, wanted in (("CPU", cores), ("GPU", gpus)):
            most = max((float(one.get(what, 0)) for one in resources), default=0.0)
            if most < wanted:
                warnings.warn(
                    f"no machine of the cluster has {wanted:g} {what}s, as each run wants (the largest has {most:g}); "
                    "runs wait until there is one.",
                    stacklevel=3,
                )

    def submit(self, name: str, job: Job) -> None:
        self._under_way[self._do.remote(job.to_json(), self._marker, self._environment)] = name, job

    def ended(self, seconds: float) -> list[tuple[str, Ending]]:
        if not self._under_way:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=seconds)
        return [self._ending(reference) for reference in ready]

    def _ending(self, reference: Any) -> tuple[str, Ending]:
        name, job = self._under_way.pop(reference)
        try:
            ending, reason = self._ray.get(reference)
        except self._ray.exceptions.TaskCancelledError:
            return name, Ending.STOPPED
        except self._ray.exceptions.RayError as error:
            ending, reason = Ending.FAILED, f"Ray gave up: {' '.join(str(error).split())}"
        if reason:
            note_failure(job, reason)
        return name, Ending(ending)

    def stop(self) -> None:
        for reference in self._under_way:
            self._ray.cancel(reference)


def _on_a_node(job: str, marker: str, environment: dict[str, str]) -> tuple[int, str]:
    """What a Ray task does: how the job ended, and why it could not even begin, if so.

    Ray cancels a task as Ctrl-C would end a program; here that has the run save and stop, for which the task waits.
    """
    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        if Path(marker).exists():
            return int(carry_out(Job.from_json(job), stop.is_set, environment)), ""
        where, shared = socket.gethostname(), "put the study on storage that all machines of the cluster share (--out)"
        return int(Ending.FAILED), f"{marker!r} is not there on {where}; {shared}."
    except Exception as error:
        return int(Ending.FAILED), str(error) or type(error).__name__
    finally:
        signal.signal(signal.SIGINT, before)


def _connect(address: str) -> Any:
    ray = need("ray", "ray", "--ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if ray.is_initialized():
        return ray
    dashboard = False if address == "local" else None
    try:
        if re.fullmatch(r"[^/:]+:\d+", address):  # Ray itself would try for minutes
            host, _, port = address.partition(":")
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address=address, include_dashboard=dashboard, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        why = one_line(next(iter(str(error).splitlines()), type(error).__name__))
        raise InputError(
            f"there is no Ray cluster at {address!r} ({why}); start one with ray start --head, or give --ray local."
        ) from error
    return ray
