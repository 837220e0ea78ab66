"""What it costs that a run cannot be lost.

A checkpoint is timed with the paper's settings and with everything full, archive and replay buffer: it does not become
larger. It is written every five minutes.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from benchmarks.learning import of_the_paper
from moqd.runs.checkpoint import Checkpoint, newest_checkpoint, write_checkpoint
from moqd.runs.folder import write_archive
from moqd.runs.loop import Loop

MINUTES = 5.0
FACTS: dict[str, Any] = {
    "env_steps": 0,
    "seconds": 0.0,
    "reference_point": [0.0, 0.0],
    "metrics": {},
    "made_with": {},
}


class Saving(NamedTuple):
    what: str
    megabytes: float
    """Of a checkpoint."""
    write: float
    """Seconds, of archive and checkpoint."""
    read: float
    iteration: float
    """Seconds without a checkpoint, and right after one."""
    after: float

    @property
    def share(self) -> float:
        """Of the time of a run."""
        cost = self.write + max(0.0, self.after - self.iteration)
        return cost / (60 * MINUTES + cost)


def saving(rounds: int = 3) -> Iterator[Saving]:
    for task_name in ("hopper-2", "ant-2"):
        loop = Loop(*of_the_paper(task_name), seed=0)
        loop.prepare()
        loop.start()
        loop.advance(1)
        loop.carry = _filled(loop.carry)
        alone, after, write, read = [], [], [], []
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for i in range(rounds):
                alone.append(_seconds(_next, loop))
                loop.carry = _filled(loop.carry)
                write.append(_seconds(_save, loop, folder, i))
                after.append(_seconds(_next, loop))
                read.append(_seconds(newest_checkpoint, folder, loop.carry_shapes(), loop.place, "run"))
            written = sum(path.stat().st_size for path in (folder / "checkpoints").rglob("*") if path.is_file()) / 2
        yield Saving(task_name, written / 1e6, *map(median, (write, read, alone, after)))


def _filled(carry: Any) -> Any:
    """With no place left in the archive and the buffer."""
    state = carry.state
    buffer = state.experience.buffer
    full = buffer._replace(size=jnp.full_like(buffer.size, buffer.steps.terminated.shape[0]))
    return carry._replace(
        state=state._replace(
            archive=state.archive._replace(valid=jnp.ones_like(state.archive.valid)),
            experience=state.experience._replace(buffer=full),
        )
    )


def _next(loop: Loop) -> None:
    loop.advance(loop.iteration + 1)
    jax.block_until_ready(loop.carry)


def _save(loop: Loop, folder: Path, number: int) -> None:
    write_archive(folder / "archive.safetensors", loop.archive)
    write_checkpoint(folder, Checkpoint(FACTS | {"iteration": number}, loop.carry, ""), "run")


def _seconds(call: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start
