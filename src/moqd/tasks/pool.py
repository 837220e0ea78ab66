"""Calls of a slow function, several at once, in processes of their own or on a Ray cluster.

A call that raises, takes too long or kills its process is one failure among the results; the others go on. Processes
are started anew (never forked from one in which JAX runs) and kept from one batch to the next. The function is sent to
them with what it refers to, so it may stand in a script, in a notebook, or be a lambda.
"""

import logging
import math
import os
import pickle
import queue
import select
import signal
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import cloudpickle

from moqd.core.devices import num_cores
from moqd.io.errors import InputError, known_name
from moqd.io.extras import need
from moqd.tasks import worker
from moqd.tasks.checks import explained, first_line, require, require_count

EVALUATORS = ("here", "processes", "ray")
MOST_MILLISECONDS = 2**31 - 1
"""That `poll` can wait: 24 days."""
Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments of a call, and those with names."""


class Failure(NamedTuple):
    """Why a call gave nothing."""

    kind: str
    """raised, timeout, died, not finite, or wrong return."""
    reason: str
    traceback: str = ""


class Result(NamedTuple):
    """What came of a call: a value, or a failure."""

    value: Any = None
    failure: Failure | None = None


def make_pool(
    evaluator: str, function: Callable[..., Any], *, workers: int | None = None, timeout: float | None = None
) -> "HerePool | WorkerPool":
    """The pool that `evaluator` names."""
    if evaluator == "here":
        return HerePool(function)
    return (ProcessPool if evaluator == "processes" else RayPool)(function, workers, timeout)


def check_pool(evaluator: str, *, workers: int | None = None, timeout: float | None = None) -> None:
    known_name("evaluator", evaluator, EVALUATORS)
    require_count("workers", workers, optional=True)
    in_time = timeout is None or (isinstance(timeout, (int, float)) and 0 < timeout < math.inf)
    require(in_time, "timeout", timeout, "seconds, more than 0, or None for no limit")
    if evaluator == "here" and (timeout is not None or workers is not None):
        given = "timeout" if timeout is not None else "workers"
        raise InputError(f'{given} is given, but the function is called in this process; pass evaluator="processes".')


class HerePool:
    """Calls in this process, one after the other."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def calls(self, arguments: Sequence[Call]) -> Iterator[tuple[int, Result]]:
        for index, given in enumerate(arguments):
            yield index, _result(*worker.answer(self._function, given))


def _result(succeeded: bool, value: Any) -> Result:
    if succeeded:
        return Result(value)
    name, message, trace = value
    return Result(failure=Failure("raised", f"it raised {name} ({first_line(message)})", trace))


class WorkerPool:
    """Calls by several workers, each from a thread of its own. One that was lost or stopped is begun anew."""

    def __init__(self, workers: Sequence["_Process | _Actor"]) -> None:
        self._workers = workers
        self.close = weakref.finalize(self, _stop_all, workers)

    def calls(self, arguments: Sequence[Call]) -> Iterator[tuple[int, Result]]:
        waiting: queue.SimpleQueue[tuple[int, Call]] = queue.SimpleQueue()
        finished: queue.SimpleQueue[tuple[int, Result] | BaseException] = queue.SimpleQueue()
        for index, given in enumerate(arguments):
            waiting.put((index, given))

        def serve(own: "_Process | _Actor") -> None:
            try:
                while True:
                    index, given = waiting.get_nowait()
                    finished.put((index, own.call(given)))
            except queue.Empty:
                return
            except BaseException as error:
                finished.put(error)

        threads = [threading.Thread(target=serve, args=(own,), daemon=True) for own in self._workers[: len(arguments)]]
        left = len(arguments)
        try:
            for thread in threads:
                thread.start()
            while left:
                one = finished.get()
                if isinstance(one, BaseException):
                    raise one
                left -= 1
                yield one
        finally:
            if left:  # interrupted: what is waiting or under way is of no use any more
                with suppress(queue.Empty):
                    while True:
                        waiting.get_nowait()
            for thread in threads:
                while thread.is_alive():
                    if left:
                        _stop_all(self._workers)  # again and again: one may just have been about to begin
                    thread.join(0.1)


class ProcessPool(WorkerPool):
    """Calls in processes of this machine."""

    def __init__(self, function: Callable[..., Any], workers: int | None = None, timeout: float | None = None) -> None:
        packed = _packed(function)
        super().__init__([_Process(packed, timeout) for _ in range(workers or num_cores())])


class RayPool(WorkerPool):
    """Calls by actors of a Ray cluster: that of an earlier `ray.init` or of RAY_ADDRESS, or one of this machine."""

    def __init__(self, function: Callable[..., Any], workers: int | None = None, timeout: float | None = None) -> None:
        ray = need("ray", "ray", "evaluator='ray'")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
        packed, number = ray.put(_packed(function)), workers or int(ray.cluster_resources().get("CPU", 1))
        super().__init__([_Actor(ray, packed, timeout) for _ in range(max(1, number))])


def _packed(function: Callable[..., Any]) -> bytes:
    advice = "make what it refers to inside the function, or in a module that it imports."
    with explained("the function cannot be sent to another process", advice):
        return cloudpickle.dumps(function)


def _stop_all(workers: Sequence["_Process | _Actor"]) -> None:
    for one in workers:
        one.stop()


def _unpacked(message: bytes) -> Result:
    answered, value = worker.answer(pickle.loads, ((message,), {}))
    return _result(*value) if answered else _result(answered, value)


def _too_late(timeout: float | None) -> Result:
    return Result(failure=Failure("timeout", f"it took more than the {timeout:g} s that it may take"))


class _Process:
    """A process of this machine."""

    def __init__(self, function: bytes, timeout: float | None) -> None:
        self._function, self._timeout = function, timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False
        """Whether the process has loaded the function."""

    def call(self, arguments: Call) -> Result:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if not self._ready:
                worker.send(process.stdin, pickle.dumps((sys.path, self._function)))
                self._ready = worker.receive(process.stdout) is not None
            worker.send(process.stdin, cloudpickle.dumps(arguments))
            if not self._answers(process.stdout):
                self.stop()
                return _too_late(self._timeout)
            message = worker.receive(process.stdout)
        except (OSError, ValueError):
            message = None
        if message is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            self.stop()
            code = process.returncode
            cause = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            return Result(failure=Failure("died", f"its process died ({cause})"))
        return _unpacked(message)

    def _answers(self, pipe: IO[bytes]) -> bool:
        """In time; the end of the pipe is an answer too."""
        answers = select.poll()
        answers.register(pipe, select.POLLIN)
        return bool(answers.poll(None if self._timeout is None else min(1e3 * self._timeout, MOST_MILLISECONDS)))

    def _start(self) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, str(Path(worker.__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the run, which ends its workers
        )
        self._process, self._ready = process, False
        return process

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what the function has started, too
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()


class _Actor:
    """An actor of Ray. It reserves no CPU, so that pools do not wait for one another; Ray spreads them."""

    def __init__(self, ray: Any, function: Any, timeout: float | None) -> None:
        self._ray, self._function, self._timeout = ray, function, timeout
        self._actor: Any = None

    def call(self, arguments: Call) -> Result:
        ray = self._ray
        try:
            if self._actor is None:
                sent = ray.remote(max_restarts=0, scheduling_strategy="SPREAD")(worker.Sent)
                self._actor = sent.remote(self._function)
                ray.get(self._actor.__ray_ready__.remote())  # to find a place and to load it is not a call's time
            answer = self._actor.call.remote(cloudpickle.dumps(arguments))
            if not ray.wait([answer], timeout=self._timeout)[0]:
                self.stop()
                return _too_late(self._timeout)
            return _unpacked(ray.get(answer))
        except ray.exceptions.RayError as error:
            self.stop()
            return Result(failure=Failure("died", f"its process died ({type(error).__name__})", traceback.format_exc()))

    def stop(self) -> None:
        actor, self._actor = self._actor, None
        if actor is not None and self._ray.is_initialized():
            self._ray.kill(actor)
