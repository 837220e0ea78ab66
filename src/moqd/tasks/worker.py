"""A process that calls a function for `ProcessPool`. It is started as a script, so that neither moqd nor JAX is loaded.

It reads messages from its standard input and answers on what was its standard output; what the function prints goes to
the error output instead.
"""

import os
import pickle
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
    """The next message; None at the end."""
    header = pipe.read(HEADER)
    if len(header) < HEADER:
        return None
    return pipe.read(int.from_bytes(header, "little"))


def answer(function: Any, call: Any) -> tuple[bool, Any]:
    """(True, what the function returned) or (False, what it raised: its name, message and traceback)."""
    arguments, named = call
    try:
        return True, function(*arguments, **named)
    except Exception as error:
        return False, (type(error).__name__, str(error), traceback.format_exc())


def _watch_parent(parent: int) -> None:
    """Ends the process, whatever it is doing, when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    first = receive(source)
    if first is None:
        return
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()
    path, function = pickle.loads(first)
    sys.path[:] = path
    loaded, function = answer(pickle.loads, ((function,), {}))
    send(target, b"ready")  # what it takes to load the function is not the time of a call
    while (message := receive(source)) is not None:
        result = answer(function, pickle.loads(message)) if loaded else (False, function)
        try:
            packed = pickle.dumps(result, protocol=5)
        except Exception as error:
            packed = pickle.dumps((False, (type(error).__name__, str(error), traceback.format_exc())))
        send(target, packed)


if __name__ == "__main__":
    main()
