"""What README and docs say of speed and cost, from what `make bench` has measured."""

import json
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.tables import RESULTS, TWO, line

ROBOTS = ("hopper", "walker", "halfcheetah", "ant")
FULLNESS = ("sparse", "half full", "full")
SPEEDS: dict[str, tuple[str, ...]] = {
    "adding 256 solutions of 5,123 parameters to 128 cells x 50 (sparse, half full, full)": tuple(
        f"archive addition, 128 cells, {fullness}" for fullness in FULLNESS
    ),
    "a MOME iteration on rastrigin-2, 10 parameters": ("MOME iteration, rastrigin-2, 10 parameters",),
    "the same with 5,123 parameters": ("MOME iteration, rastrigin-2, 5,123 parameters",),
    "a generation of NSGA-II on the same NumPy function, population 100 and 1,600": tuple(
        f"NSGA-II generation, population {population}" for population in ("100", "1,600")
    ),
    "a generation of SPEA2 on the same, population 100 and 400": tuple(
        f"SPEA2 generation, population {population}" for population in ("100", "400")
    ),
    "a generation of NSGA-II, compiled, population 128 and 1,024": tuple(
        f"NSGA-II generation, population {population}" for population in ("128", "1,024")
    ),
    "256 episodes of at most 250 steps into a replay buffer of a million: hopper, ant": tuple(
        f"256 episodes of {robot}-2 into the buffer" for robot in ("hopper", "ant")
    ),
    f"environment steps per second, whole episodes: {', '.join(ROBOTS)}": tuple(
        f"{robot}-2, whole episodes" for robot in ROBOTS
    ),
    "policy-gradient variation of 64 policies by 100 steps, as in the paper: hopper, ant": tuple(
        f"{robot}-2:   policy-gradient variation" for robot in ("hopper", "ant")
    ),
}
"""What README says of speed, and the rows of the benchmarks that say so."""


def speeds() -> Iterator[str]:
    """The ratios to others that README shows, of those that were measured."""
    yield line(("", "moqd", "beside", "times as fast"))
    yield line([":--", "--:", "--:", "--:"])
    found = {row["what"]: row for row in measured() if "times as fast" in row}
    for what, names in SPEEDS.items():
        rows = [found[name] for name in names if name in found]
        if not rows:
            continue
        if "ms" in rows[0]:
            ours, theirs, unit, peer = "ms", "its ms", " ms", rows[0]["beside"]
        else:
            ours, theirs, unit, peer = "steps/s", "plain Brax", "", "plain Brax"
        own, other, times = (_few(row[column] for row in rows) for column in (ours, theirs, "times as fast"))
        yield line((what, f"{own}{unit}", f"{peer} {other}{unit}", times))


def costs(tasks: Sequence[str] = TWO) -> Iterator[str]:
    """What a run with the paper's settings takes, where it was measured."""
    yield line(("with the paper's settings", *tasks))
    yield line([":--", *["--:"] * len(tasks)])
    least = {row["task"]: row["s"] for row in measured("profile") if row["part"] == "iteration"}
    usual = {row["what"]: row["s"] for row in measured("learning")}
    memory = {row["what"]: row["GB"] for row in measured("memory")}
    saving = {row["what"]: row["of a run"] for row in measured("checkpoints")}
    for what, found, name in (
        ("an iteration of MOME-P2C, the least of seven times, s", least, "{}"),
        ("an iteration of MOME-P2C, the median, s", usual, "{}: MOME-P2C iteration"),
        ("an iteration of MOME-PGX, the median, s", usual, "{}: MOME-PGX iteration"),
        ("peak memory of three iterations of MOME-P2C, GB", memory, "mome-p2c on {}, 3 iterations"),
        ("peak memory of three iterations of MOME-PGX, GB", memory, "mome-pgx on {}, 3 iterations"),
        ("share of the time to save the complete state every five minutes", saving, "{}"),
    ):
        yield line((what, *(found.get(name.format(task), "-") for task in tasks)))


def rollouts() -> Iterator[str]:
    """Environment steps per second, of each robot."""
    yield line(("", "moqd, steps/s", "plain Brax", "times as fast"))
    yield line([":--", "--:", "--:", "--:"])
    for row in measured("rollout"):
        yield line((row["what"], row["steps/s"], row["plain Brax"], row["times as fast"]))


def starts() -> Iterator[str]:
    """Seconds from the command to the first row of metrics."""
    found = measured("starts")
    yield line(("seconds to the first metrics", *(row["what"] for row in found)))
    yield line([":--", *["--:"] * len(found)])
    for label, column in (("nothing in the cache", "cold"), ("again", "warm"), ("peak memory, GB", "GB, cold")):
        yield line((label, *(row[column] for row in found)))


def checkpoints() -> Iterator[str]:
    """What saving takes."""
    columns = {
        "write s": "to write archive and checkpoint, s",
        "MB": "a checkpoint's size, MB",
        "read s": "to read it, s",
        "iteration s": "an iteration, s",
        "after one s": "an iteration after a checkpoint, s",
        "of a run": "share of a run, with a checkpoint every five minutes",
    }
    found = measured("checkpoints")
    yield line(("", *(row["what"] for row in found)))
    yield line([":--", *["--:"] * len(found)])
    for column, label in columns.items():
        yield line((label, *(row[column] for row in found)))


def measured(name: str = "") -> list[dict[str, str]]:
    """The rows of the tables (or of one) that `make bench` has written."""
    parts = json.loads((RESULTS / "bench" / "tables.json").read_text()).values()
    tables = [table for part in parts for table in part["tables"] if name in ("", table["name"])]
    return [dict(zip(table["columns"], row, strict=True)) for table in tables for row in table["rows"]]


def _few(values: Iterable[str]) -> str:
    """Two digits of each: that is as far as such numbers can be had again."""
    numbers = (float(value.replace(",", "")) for value in values)
    return ", ".join(f"{float(f'{number:.2g}'):,g}" for number in numbers)
