"""How things are timed: the median of several calls, the contenders in turns, so that all meet the same machine."""

import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import jax


class Measured(NamedTuple):
    """A row of the table: what, by whom, in seconds."""

    what: str
    ours: float
    peer: str
    theirs: float

    @property
    def ratio(self) -> float:
        """How many times as fast as the peer."""
        return self.theirs / self.ours


def seconds(call: Callable[[], object]) -> float:
    """One call, until its result is there."""
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def peak_bytes() -> int:
    """Of this process so far. (On Linux ru_maxrss is at least that of the process which started it.)"""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_turns(
    *calls: Callable[[], object], rounds: int = 15, of: Callable[[Sequence[float]], float] = median
) -> list[float]:
    """The median seconds (or least, ...) of each call, taken in turns after one call of each that is not counted."""
    for call in calls:
        seconds(call)
    taken = [[seconds(call) for call in calls] for _ in range(rounds)]
    return [of(column) for column in zip(*taken, strict=True)]
