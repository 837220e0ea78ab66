"""Asking a run from outside to stop or to write a checkpoint: from another thread, or by signals.

A run looks at its `Control` after every chunk. On the command line Ctrl-C and SIGTERM ask it to stop, which it does
when the chunk is done and saved; a second one ends the process at once. Signals are read by a thread of their own,
because Python's handlers would wait until the compiled chunk is done.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Control:
    """What a run is asked for."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._checkpoint = threading.Event()
        self.under_way = threading.Event()
        """Set by the run while there is something that a sudden end would lose."""

    def stop(self) -> None:
        """Finish the chunk, write a checkpoint, and raise StoppedError."""
        self._stop.set()

    def checkpoint(self) -> None:
        """Write a checkpoint after the chunk, and go on."""
        self._checkpoint.set()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def wants_checkpoint(self) -> bool:
        """Whether one was asked for since the last call."""
        wanted = self._checkpoint.is_set()
        self._checkpoint.clear()
        return wanted


STOPS = (signal.SIGINT, signal.SIGTERM)
CHECKPOINTS = (signal.SIGUSR1,) if hasattr(signal, "SIGUSR1") else ()
PATIENCE = 1.0
"""Seconds for last words: a terminal or a pipe may be blocked."""


def _aside(call: Callable[[], None]) -> threading.Thread:
    def quietly() -> None:
        with suppress(BaseException):
            call()

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    return thread


@contextmanager
def signals(control: Control, told: Callable[[], None], at_once: Callable[[], None]) -> Iterator[Callable[[], int]]:
    """Ctrl-C and SIGTERM stop the run, SIGUSR1 has it write a checkpoint; gives a function for the exit code.

    `told` is called, from another thread, when the run is asked to stop; `at_once` before the process ends at the
    second signal, or at the first one if there is nothing to lose.
    """
    first: list[int] = []

    def handle(number: int) -> None:
        """Must neither wait nor raise, or no signal would be heard any more."""
        if number in CHECKPOINTS:
            control.checkpoint()
        elif number in STOPS:
            if first or not control.under_way.is_set():
                _aside(at_once).join(PATIENCE)
                os._exit(128 + number)
            first.append(number)
            control.stop()
            _aside(told)

    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def watch() -> None:
        while data := reader.recv(64):
            for number in data:
                handle(number)

    before = {number: signal.signal(number, lambda *_: None) for number in (*STOPS, *CHECKPOINTS)}
    wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, daemon=True, name="moqd-signals")
    watcher.start()
    try:
        yield lambda: 128 + (first[0] if first else signal.SIGINT)
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        writer.close()
        watcher.join(timeout=1)
        reader.close()
