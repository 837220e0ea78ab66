"""The lock of a run: only one process writes to its folder, also on storage that several machines share.

Locks are numbered files, and the highest number counts. A lock is made by linking a whole file to the next number,
which only one process can; the highest is never removed, only marked as released. So of several processes that find a
stale lock one takes the run over, however slow the others are, and a process whose lock was taken over (because it was
suspended, and its heart did not beat) notices before it writes again.
"""

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from moqd.io.errors import BusyError, InputError, MissingFileError, StorageError
from moqd.io.files import FORMAT, own_folder, read_json, storing, write_json, write_new

LOCK = ".lock"
HEARTBEAT = 10.0
"""Seconds between two signs of life."""
STALE = 60.0
"""Seconds without one after which the lock of another machine counts for nothing."""
_HELD: set[str] = set()
"""The tokens of all locks that this process holds: one of its own that is not here could not be marked as released."""


class RunLock:
    """Held from `with` on; raises BusyError if another process is at it."""

    def __init__(self, run_folder: Path) -> None:
        self.run_folder = run_folder
        self._folder = own_folder(run_folder / LOCK)
        self._number = 0
        self._released = threading.Event()
        self._me = {"format": FORMAT, "released": False, "since": time.time(), **this_process()}
        self._me["token"] = secrets.token_hex(8)

    def __enter__(self) -> "RunLock":
        _HELD.add(self._me["token"])  # before others can see it
        try:
            self._number = self._acquire()
        except BaseException:
            _HELD.discard(self._me["token"])
            raise
        threading.Thread(target=self._beat, daemon=True, name="moqd-heartbeat").start()
        return self

    def check(self) -> Path:
        """To be called before anything is written: the folder of the run, if nobody has taken it over."""
        if self._highest() != self._number:
            raise BusyError(
                f"{str(self.run_folder)!r} was taken over by another process while this one was suspended; it stops, "
                "and the other goes on."
            )
        return self.run_folder

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """So that others need not find out that this process is gone."""
        self._released.set()
        _HELD.discard(self._me["token"])
        # A full disk must not hide what went wrong; for others, the end of this process releases it too.
        with suppress(OSError, StorageError):
            if self._highest() == self._number:
                write_json(self._path(self._number), self._me | {"released": True})

    def _acquire(self) -> int:
        number = self._highest()
        if number and (holder := self._holder(number)) is not None:
            raise holder
        taken = BusyError(f"{str(self.run_folder)!r} was just taken by another process; it is the one that goes on.")
        mine = self._folder / f".{os.getpid()}.{threading.get_ident()}.new"
        with storing(self.run_folder):
            try:
                with _passing(mine, json.dumps(self._me).encode()):
                    _make(self._path(number + 1), mine)
            except FileExistsError:
                raise taken from None
        if self._highest() != number + 1:  # we were so slow that others came and went
            self._path(number + 1).unlink(missing_ok=True)
            raise taken
        for old in self._numbers():
            if old <= number:
                self._path(old).unlink(missing_ok=True)
        return number + 1

    def _holder(self, number: int) -> BusyError | None:
        """Why the lock cannot be taken over; None if it can."""
        path = self._path(number)
        try:
            lock = read_json(path, "a lock of a moqd run")
        except MissingFileError:
            return None
        except InputError:
            lock = {}  # damaged: only its age says something
        if lock.get("released"):
            return None
        process = f"process {lock.get('pid', '?')} on {lock.get('host', 'an unknown host')}"
        writer = f"{str(self.run_folder)!r} is being written by {process}"
        if lock.get("machine") == self._me["machine"] and isinstance(lock.get("pid"), int):
            lives = lock.get("process_start") == process_start(lock["pid"])
            if not lives or (lock["pid"] == os.getpid() and str(lock.get("token")) not in _HELD):
                return None
            return BusyError(f"{writer}; wait until it is done, or stop it first.")
        age = self._age(path)
        if abs(age) > STALE:  # in the future: a clock was wrong
            return None
        return BusyError(
            f"{writer}, which gave a sign of life {age:.0f} s ago; if it is gone, try again in {STALE - age:.0f} s."
        )

    def _age(self, path: Path) -> float:
        """In the time of the storage: clocks of machines differ."""
        now = self._folder / f".{os.getpid()}.now"
        with storing(self.run_folder):
            try:
                with _passing(now):
                    return now.stat().st_mtime - path.stat().st_mtime
            except FileNotFoundError:
                return float("inf")

    def _beat(self) -> None:
        while not self._released.wait(HEARTBEAT):
            with suppress(OSError):  # the storage may be back at the next beat; `check` finds out if not
                os.utime(self._path(self._number))

    def _highest(self) -> int:
        return max(self._numbers(), default=0)

    def _numbers(self) -> list[int]:
        try:
            paths = list(self._folder.iterdir())
        except OSError as error:  # which says nothing about who holds the lock
            raise StorageError(f"{str(self._folder)!r} cannot be read ({error.strerror}).") from error
        return [int(path.stem) for path in paths if path.suffix == ".json" and path.stem.isdecimal()]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.json"


def is_held(run_folder: Path) -> bool:
    """Whether some process is writing to the folder of a run; only looks."""
    if not (run_folder / LOCK).is_dir():
        return False
    lock = RunLock(run_folder)
    number = lock._highest()
    try:
        return bool(number) and lock._holder(number) is not None
    except StorageError:  # we may only read, so this machine's clock must do
        return abs(time.time() - lock._path(number).stat().st_mtime) < STALE


@contextmanager
def _passing(path: Path, content: bytes = b"") -> Iterator[None]:
    """A file with that content, for a moment."""
    try:
        write_new(path, content)
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _make(path: Path, content: Path) -> None:
    """A file with that content, or FileExistsError; whole from its first moment on, where the storage has links."""
    try:
        os.link(content, path)
    except FileExistsError:
        raise
    except OSError:
        with path.open("xb") as file:
            file.write(content.read_bytes())


def this_process() -> dict[str, Any]:
    """What tells this process from all others."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "machine": _machine(), "pid": pid, "process_start": process_start(pid)}


def process_start(pid: int) -> str | None:
    """When a process of this machine started, in the units of its system; None if there is none."""
    if Path("/proc/self/stat").exists():
        try:
            after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return None if after_name[0] in "ZX" else after_name[19]
        except (OSError, IndexError):
            return None
    try:  # not Linux: that it lives must do
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return "alive"


def _machine() -> str:
    """This boot of this machine, and within it those processes that see the same process ids."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)
