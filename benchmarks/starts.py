"""How long one waits for a run to start, and what it takes: from the command to the first row of metrics.

With nothing in the compilation cache, and then again. `compiling` is what the run itself says of the first start; the
rest is imports, loading the robot, tracing and evaluating the first batch.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
TRAIN = (["hopper-2"], ["ant-2"], ["hopper-2", "--algorithm", "mome"], ["arm-2"])


class Start(NamedTuple):
    what: str
    cold: float
    """Seconds."""
    warm: float
    compiling: float
    """Seconds of the cold start."""
    gigabytes: float
    """The most that the cold start held."""


def starts() -> Iterator[Start]:
    program = (ROOT / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    yield _start("the README's program", [sys.executable, "-c", program])
    for arguments in TRAIN:
        moqd = str(Path(sys.executable).parent / "moqd")
        yield _start(f"moqd train {' '.join(arguments)}", [moqd, "train", *arguments])


def imports() -> float:
    """Seconds that `import moqd` takes, in a process of its own."""
    return _seconds("import moqd") - _seconds("pass")


def _seconds(program: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - start


def _start(what: str, command: list[str]) -> Start:
    with tempfile.TemporaryDirectory() as name:
        (cold, compiling, gigabytes), (warm, *_) = (_first_row(command, Path(name), str(i)) for i in range(2))
    return Start(what, cold, warm, compiling, gigabytes)


def _first_row(command: list[str], folder: Path, number: str) -> tuple[float, float, float]:
    """Seconds, those of them that went into compiling, and gigabytes."""
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    there = folder / number
    there.mkdir()
    start, compiling = time.perf_counter(), 0.0
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=there
    )
    assert process.stdout is not None
    for line in process.stdout:
        if said := re.match(r"compiled in ([0-9.]+) s", line):
            compiling = float(said[1])
        if "iteration 0/" in line:
            break
    seconds = time.perf_counter() - start
    process.kill()
    process.stdout.close()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return seconds, compiling, used.ru_maxrss / 2**20
