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
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import cloudpickle

from moqd.devices import num_cores
from moqd.errors import InputError, unknown_name
from moqd.tasks import worker

EVALUATORS = ("here", "processes", "ray")
Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments of a call, and those with names."""


class Failure(NamedTuple):
    """Why a call gave nothing."""

    kind: str
    """raised, timeout, died, or not finite."""
    reason: str
    traceback: str = ""


class Result(NamedTuple):
    """What came of a call: a value, or a failure."""

    value: Any = None
    failure: Failure | None = None
    attempts: int = 1


@runtime_checkable
class Pool(Protocol):
    """Calls a function with many arguments."""

    def calls(self, arguments: Sequence[Call]) -> Iterator[tuple[int, Result]]:
        """The result of each call with its index, as they end."""

    def close(self) -> None:
        """Ends its processes."""


def make_pool(
    evaluator: str,
    function: Callable[..., Any],
    *,
    workers: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
) -> Pool:
    """The pool that `evaluator` names."""
    check_pool(evaluator, workers=workers, timeout=timeout, retries=retries)
    if evaluator == "processes":
        return ProcessPool(function, workers, timeout, retries)
    if evaluator == "ray":
        return RayPool(function, workers, timeout, retries)
    return HerePool(function, retries)


def check_pool(evaluator: str, *, workers: int | None, timeout: float | None, retries: int) -> None:
    if evaluator not in EVALUATORS:
        raise unknown_name("evaluator", evaluator, EVALUATORS)
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise InputError(f"workers is {workers!r}; give a whole number of at least 1, or None for one per core.")
    if timeout is not None and not (isinstance(timeout, (int, float)) and 0 < timeout < math.inf):
        raise InputError(f"timeout is {timeout!r}; give seconds, more than 0, or None for no limit.")
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise InputError(f"retries is {retries!r}; give a whole number of at least 0.")
    if evaluator == "here" and (timeout is not None or workers is not None):
        given = "timeout" if timeout is not None else "workers"
        raise InputError(f'{given} is given, but the function is called in this process; pass evaluator="processes".')


class HerePool:
    """Calls in this process, one after the other."""

    def __init__(self, function: Callable[..., Any], retries: int = 0) -> None:
        self._function, self._retries = function, retries

    def calls(self, arguments: Sequence[Call]) -> Iterator[tuple[int, Result]]:
        for index, given in enumerate(arguments):
            yield index, repeated(partial(self._call, given), self._retries)

    def _call(self, given: Call) -> Result:
        return _result(*worker.answer(self._function, given))

    def close(self) -> None:
        """There is nothing to end."""


def repeated(call: Callable[[], Result], retries: int) -> Result:
    """The first success of so many attempts, or the last failure."""
    for attempt in range(1, retries + 2):
        result = call()._replace(attempts=attempt)
        if result.failure is None:
            break
    return result


def _result(succeeded: bool, value: Any) -> Result:
    if succeeded:
        return Result(value)
    name, message, trace = value
    first = next(iter(message.splitlines()), "no message")
    return Result(failure=Failure("raised", f"it raised {name} ({first})", trace))


class ProcessPool:
    """Calls in processes of this machine."""

    def __init__(
        self, function: Callable[..., Any], workers: int | None = None, timeout: float | None = None, retries: int = 0
    ) -> None:
        self._workers = [_Worker(_packed(function), timeout) for _ in range(workers or num_cores())]
        self._retries = retries
        self._end = weakref.finalize(self, _stop_all, self._workers)

    def calls(self, arguments: Sequence[Call]) -> Iterator[tuple[int, Result]]:
        waiting: queue.SimpleQueue[tuple[int, Call]] = queue.SimpleQueue()
        finished: queue.SimpleQueue[tuple[int, Result] | BaseException] = queue.SimpleQueue()
        for index, given in enumerate(arguments):
            waiting.put((index, given))

        def serve(own: _Worker) -> None:
            try:
                while True:
                    index, given = waiting.get_nowait()
                    finished.put((index, repeated(partial(own.call, given), self._retries)))
            except queue.Empty:
                return
            except BaseException as error:
                finished.put(error)

        threads = [
            threading.Thread(target=serve, args=(own,), daemon=True)
            for own in self._workers[: min(len(self._workers), len(arguments))]
        ]
        for thread in threads:
            thread.start()
        left = len(arguments)
        try:
            while left:
                one = finished.get()
                if isinstance(one, BaseException):
                    raise one
                left -= 1
                yield one
        finally:
            if left:  # interrupted: what is under way is of no use any more
                while not waiting.empty():
                    waiting.get()
                _stop_all(self._workers)
            for thread in threads:
                thread.join()

    def close(self) -> None:
        self._end()


def _packed(function: Callable[..., Any]) -> bytes:
    try:
        return cloudpickle.dumps(function)
    except Exception as error:
        raise InputError(
            f"the function cannot be sent to another process ({type(error).__name__}: {error}); make what it refers to "
            "inside the function, or in a module that it imports."
        ) from error


def _stop_all(workers: Sequence["_Worker"]) -> None:
    for one in workers:
        one.stop()


class _Worker:
    """One process; started when it is first needed, and again after it was lost."""

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
                self._ready = worker.receive(process.stdout) is not None
            worker.send(process.stdin, cloudpickle.dumps(arguments))
            if not select.select([process.stdout], [], [], self._timeout)[0]:
                self.stop()
                limit = f"{self._timeout:g} s"
                return Result(failure=Failure("timeout", f"it took more than the {limit} that it may take"))
            message = worker.receive(process.stdout)
        except (BrokenPipeError, OSError, ValueError):
            message = None
        if message is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            self.stop()
            return Result(failure=Failure("died", f"its process died ({_cause(process.returncode)})"))
        return _result(*pickle.loads(message))

    def _start(self) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, str(Path(worker.__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the run, which ends its workers
        )
        assert process.stdin is not None
        worker.send(process.stdin, pickle.dumps((sys.path, self._function)))
        self._process, self._ready = process, False
        return process

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()


def _cause(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


class RayPool:
    """Calls as tasks of a Ray cluster: that of an earlier `ray.init` or of RAY_ADDRESS, or one of this machine."""

    def __init__(
        self, function: Callable[..., Any], workers: int | None = None, timeout: float | None = None, retries: int = 0
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise InputError("evaluator='ray' needs Ray; install it with: pip install 'moqd[ray]'") from error
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
        self._ray, self._timeout, self._retries = ray, timeout, retries
        self._slots = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._function = ray.put(_packed(function))
        self._remote = ray.remote(max_retries=0, num_cpus=1)(_remote_answer)

    def calls(self, arguments: Sequence[Call]) -> Iterator[tuple[int, Result]]:
        waiting = [(index, 1) for index in reversed(range(len(arguments)))]
        running: dict[Any, tuple[int, int, float]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._slots:
                    index, attempt = waiting.pop()
                    task = self._remote.remote(self._function, cloudpickle.dumps(arguments[index]))
                    running[task] = (index, attempt, time.monotonic())
                done, _ = self._ray.wait(list(running), num_returns=1, timeout=self._patience(running))
                late = [] if self._timeout is None else self._late(running, done)
                for task in (*done, *late):
                    index, attempt, _ = running.pop(task)
                    result = self._get(task) if task in done else self._given_up(task)
                    if result.failure is not None and attempt <= self._retries:
                        waiting.append((index, attempt + 1))
                    else:
                        yield index, result._replace(attempts=attempt)
        finally:
            for task in running:
                self._ray.cancel(task, force=True)

    def _patience(self, running: dict[Any, tuple[int, int, float]]) -> float | None:
        if self._timeout is None:
            return None
        return max(0.0, min(start for *_, start in running.values()) + self._timeout - time.monotonic())

    def _late(self, running: dict[Any, tuple[int, int, float]], done: Sequence[Any]) -> list[Any]:
        assert self._timeout is not None
        now = time.monotonic()
        return [task for task, (*_, start) in running.items() if task not in done and now - start >= self._timeout]

    def _given_up(self, task: Any) -> Result:
        self._ray.cancel(task, force=True)
        return Result(failure=Failure("timeout", f"it took more than the {self._timeout:g} s that it may take"))

    def _get(self, task: Any) -> Result:
        try:
            return _result(*pickle.loads(self._ray.get(task)))
        except self._ray.exceptions.RayError as error:
            reason = f"its process died ({type(error).__name__})"
            return Result(failure=Failure("died", reason, traceback.format_exc()))

    def close(self) -> None:
        """The cluster stays."""


def _remote_answer(function: bytes, arguments: bytes) -> bytes:
    from moqd.tasks import worker

    return cloudpickle.dumps(worker.answer(pickle.loads(function), pickle.loads(arguments)))
