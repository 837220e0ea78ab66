"""A process that calls a function for `ProcessPool`. It is started as a script, so that neither moqd nor JAX is loaded.

It reads messages from what was its standard input and answers on what was its standard output; what the function prints
goes to the error output instead, and what it reads, or a program that it starts, is at its end.
"""

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from typing import IO, Any

HEADER = 8
"""Bytes of a message's length."""


def send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(HEADER, "little") + message)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """The next message; None at the end, which may be in the middle of one."""
    header = pipe.read(HEADER)
    if len(header) < HEADER:
        return None
    length = int.from_bytes(header, "little")
    message = pipe.read(length)
    return message if len(message) == length else None


def answer(function: Any, call: Any) -> tuple[bool, Any]:
    """(True, what the function returned) or (False, what it raised: its name, message and traceback)."""
    arguments, named = call
    try:
        return True, function(*arguments, **named)
    except Exception as error:
        return False, (type(error).__name__, str(error), traceback.format_exc())


class Sent:
    """A function as it was sent, and its answers as they are sent back."""

    def __init__(self, function: bytes) -> None:
        self._loaded, self._function = answer(pickle.loads, ((function,), {}))

    def call(self, arguments: bytes) -> bytes:
        result = answer(self._function, pickle.loads(arguments)) if self._loaded else (False, self._function)
        packed, message = answer(pickle.dumps, ((result,), {"protocol": 5}))
        return message if packed else pickle.dumps((False, message))


def _watch_parent(parent: int) -> None:
    """Ends the process and what it has started, whatever they are doing, when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    first = receive(source)
    if first is None:
        return
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()
    path, function = pickle.loads(first)
    sys.path[:] = path
    sent = Sent(function)
    send(target, b"ready")  # what it takes to load the function is not the time of a call
    while (message := receive(source)) is not None:
        send(target, sent.call(message))


if __name__ == "__main__":
    main()
