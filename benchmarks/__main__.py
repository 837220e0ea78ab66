"""Measures moqd beside its peers, in one run on one machine, and writes ratios, growth curves and the rest to a folder.

python -m benchmarks [PART ...] [--out FOLDER]

Without parts: all of them, in about an hour. Tables and figures go to README.md in the folder (results/bench), in which
parts that are not measured again stay as they were.
"""

import json
import platform
import subprocess
import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

warnings.filterwarnings("ignore")

from rich.box import SIMPLE_HEAD  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table as RichTable  # noqa: E402

import moqd  # noqa: E402
from benchmarks.timing import Measured  # noqa: E402

TEXT = {"what", "beside", "part", "task", "method"}
"""Columns of words, not of numbers."""


class Table(NamedTuple):
    """What a part found."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    figure: str = ""
    """The name of a file beside it."""


TIMES = "times as fast"
RATIO = ("what", "ms", "beside", "its ms", TIMES)


def ratios(name: str, title: str, rows: Iterator[Measured] | list[Measured]) -> Table:
    cells = [
        (row.what, f"{1e3 * row.ours:.2f}", row.peer, f"{1e3 * row.theirs:.2f}", f"{row.ratio:.2f}") for row in rows
    ]
    return Table(name, title, RATIO, cells)


def addition(folder: Path) -> Iterator[Table]:
    from benchmarks import addition, mome

    rows = [*addition.measure(), mome.measure(10), mome.measure(5123)]
    yield ratios("addition", "archive addition (256 solutions of 5,123 parameters) and MOME, beside QDax", rows)
    grown = [
        (row.what, f"{1e3 * row.ours:.2f}", f"{1e3 * row.theirs:.2f}", f"{row.ours / row.theirs:.2f}")
        for row in addition.growth()
    ]
    columns = ("what", "ms", "with 128 cells", "times as long")
    yield Table("addition-growth", "archive addition with eight times as many cells", columns, grown)


def moeas(folder: Path) -> Iterator[Table]:
    from benchmarks import moeas

    pymoo = [("NSGA-II", 100, 50), ("NSGA-II", 1600, 5), ("SPEA2", 100, 20), ("SPEA2", 400, 2)]
    qdax = [("NSGA-II", 128, 100), ("NSGA-II", 1024, 10), ("SPEA2", 128, 20), ("SPEA2", 1024, 2)]
    rows = [*(moeas.beside_pymoo(*case) for case in pymoo), *(moeas.beside_qdax(*case) for case in qdax)]
    title = "NSGA-II and SPEA2 on DTLZ2; QDax's SPEA2 has no truncation, so that its ratio says little"
    yield ratios("moeas", title, rows)


def insertion(folder: Path) -> Iterator[Table]:
    from benchmarks import insertion

    yield ratios("insertion", "256 episodes of 50 to 249 steps into a replay buffer of a million", insertion.measure())


def rollout(folder: Path) -> Iterator[Table]:
    from benchmarks import rollout

    rows = [
        (
            row.what,
            *(f"{row.steps / seconds:,.0f}" for seconds in (row.ours, row.theirs)),
            f"{row.ratio:.1f}",
            *(f"{seconds:.0f}" for seconds in (row.ours_first, row.theirs_first)),
        )
        for row in rollout.measure()
    ]
    columns = ("what", "steps/s", "plain Brax", TIMES, "first call s", "plain s")
    title = (
        "environment steps per second, batch 256 on all cores, beside Brax's step under vmap on one device; where "
        "policies may fall, the steps that nobody needs to make count too"
    )
    yield Table("rollout", title, columns, rows)


def learning(folder: Path) -> Iterator[Table]:
    moqd.use_devices()
    from benchmarks import learning

    whole = list(learning.iterations())
    variation = [row for row in whole if "variation" in row.what]
    yield ratios(
        "variation",
        "64 policies by 100 gradient steps on all cores, beside a scan under vmap on one device",
        [Measured(row.what, row.seconds, "vmap of scan", row.yardstick) for row in variation],
    )
    for name, title, rows in (
        ("learning", "paper settings, beside the straightforward variation of 64 parents", whole),
        ("training", "training over the size of the buffer, beside the smallest", list(learning.training())),
    ):
        cells = [(row.what, f"{row.seconds:.2f}", f"{row.yardstick:.2f}", f"{row.share:.2f}") for row in rows]
        yield Table(name, title, ("what", "s", "beside s", "share"), cells)


def profile(folder: Path) -> Iterator[Table]:
    moqd.use_devices()
    from benchmarks import profiling

    cells = []
    for row in profiling.measure():
        counted = ("", "", "", "")
        if row.operations:
            matrix, other = (1e-9 * number for number in row.operations)
            counted = (f"{matrix:.0f}", f"{other:.0f}", f"{matrix / row.seconds:.0f}", f"{row.of_peak:.0%}")
        cells.append((row.task, row.part, f"{row.seconds:.3f}", f"{row.share:.1%}" if row.share else "", *counted))
    columns = ("task", "part", "s", "of iteration", "GFLOP in products", "other GFLOP", "GFLOP/s", "of the peak")
    yield Table("profile", "an iteration of MOME-P2C, paper settings, by part", columns, cells)


def growth(folder: Path) -> Iterator[Table]:
    from benchmarks import growth

    for name, points in growth.measure():
        growth.draw(name, points, folder / f"growth-{name}.png")
        rows = [
            (f"{point.value:,}", f"{1e3 * point.seconds:.1f}", f"{point.gigabytes:.2f}", f"{1e3 * point.metrics:.1f}")
            for point in points
        ]
        sweep, last = growth.SWEEPS[name], growth.exponent(points)
        title = f"{sweep.algorithm} over {sweep.label}: time as the power {last:.2f} at the last step"
        columns = ("parameters" if sweep.setting == "hidden" else sweep.setting, "iteration ms", "GB", "metrics ms")
        yield Table(f"growth-{name}", title, columns, rows, f"growth-{name}.png")


def memory(folder: Path) -> Iterator[Table]:
    from benchmarks import learning

    rows = [(what, f"{gigabytes:.2f}") for what, gigabytes in learning.memory()]
    yield Table("memory", "peak resident memory, paper settings", ("what", "GB"), rows)


def starts(folder: Path) -> Iterator[Table]:
    from benchmarks import starts

    rows = [
        (row.what, f"{row.cold:.1f}", f"{row.warm:.1f}", f"{row.compiling:.1f}", f"{row.gigabytes:.2f}")
        for row in starts.starts()
    ]
    title = f"seconds to the first metrics (import moqd takes {starts.imports():.2f} s)"
    yield Table("starts", title, ("what", "cold", "warm", "compiling, cold", "GB, cold"), rows)


def runs(folder: Path) -> Iterator[Table]:
    moqd.use_devices()
    from benchmarks import runs

    rows = [
        (row.what, *(f"{value:.2f}" for value in row[2:]), f"{row.megabytes:.0f}", f"{row.share:.2%}")
        for row in runs.saving()
    ]
    columns = ("what", "write s", "read s", "iteration s", "after one s", "MB", "of a run")
    yield Table("checkpoints", "a checkpoint every 5 minutes, paper settings, archive and buffer full", columns, rows)


def studies(folder: Path) -> Iterator[Table]:
    from benchmarks import studies

    one, many = studies.measure()
    rows = [
        (
            f"{row.workers} worker{'s' * (row.workers > 1)} of {row.cores} core{'s' * (row.cores > 1)}",
            f"{row.seconds:.1f}",
            f"{row.seconds / one.seconds:.2f}",
            f"{row.overhead:.2f}",
        )
        for row in (one, many)
    ]
    columns = ("what", "s", "share", "overhead of a run s")
    yield Table("studies", "a study of 8 equal runs of MOME-P2C on hopper-2", columns, rows)


def explorer(folder: Path) -> Iterator[Table]:
    from benchmarks import explorer

    found = explorer.measure()
    title = (
        f"the explorer's page of ant-2 with {found.solutions:,} solutions: {found.megabytes:.1f} MB, written in "
        f"{found.writing:.0f} s"
    )
    rows = [("ready after opening, s", *(f"{value:.2f}" for value in explorer.summary(found.ready)))]
    for what, values in found.clicks.items():
        rows.append((f"painted after {what}, ms", *(f"{value:.0f}" for value in explorer.summary(values))))
    yield Table("explorer", title, ("what", "median", "most"), rows)


def pool(folder: Path) -> Iterator[Table]:
    from benchmarks import pool

    rows = [
        (f"{1e3 * call:.0f} ms", f"{one:.1f}", f"{two:.1f}", f"{two / one:.3f}") for call, one, two in pool.measure()
    ]
    yield Table("pool", "runs of a function that only waits", ("what", "1 worker, s", "2 workers, s", "share"), rows)


def stepping(folder: Path) -> Iterator[Table]:
    from benchmarks import stepping

    rows = [(row.what, f"{row.steps_per_second:,.0f}", f"{row.times:.2f}") for row in stepping.measure()]
    yield Table("stepping", "mo-hopper-v5, 64 policies x 250 steps", ("what", "steps/s", "beside one worker"), rows)


def design(folder: Path) -> Iterator[Table]:
    from benchmarks.design import comparison

    comparison.compare(folder / "design")
    found = [row for row in comparison.rows(folder / "design", comparison.SEEDS) if row.problem in comparison.SUITE]
    title = (
        "design problems, as ratios to pymoo's NSGA-II after so many evaluations: the geometric mean, and the number "
        "of problems on which the median is higher; all numbers are in design/README.md"
    )
    yield Table("design", title, comparison.SUMMARY, comparison.summary(found))


PARTS: dict[str, Callable[[Path], Iterator[Table]]] = {
    part.__name__: part
    for part in (
        *(addition, moeas, insertion, rollout, learning, profile, growth),
        *(memory, starts, runs, studies, explorer, pool, stepping, design),
    )
}


def show(table: Table) -> None:
    drawn = RichTable(title=table.title, box=SIMPLE_HEAD, title_justify="left")
    for column in table.columns:
        drawn.add_column(column, justify="left" if column in TEXT else "right")
    for row in table.rows:
        drawn.add_row(*row)
    Console(width=120).print(drawn)


class Measurement(NamedTuple):
    """Of one part."""

    where: str
    """When, and on what."""
    tables: list[Table]


def kept(folder: Path) -> dict[str, Measurement]:
    """What was measured last of each part."""
    path = folder / "tables.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return {
        part: Measurement(found[part]["where"], [Table(**table) for table in found[part]["tables"]])
        for part in PARTS
        if part in found
    }


def write(parts: dict[str, Measurement], folder: Path) -> None:
    parts = {part: parts[part] for part in PARTS if part in parts}
    content = {
        part: {"where": one.where, "tables": [table._asdict() for table in one.tables]} for part, one in parts.items()
    }
    (folder / "tables.json").write_text(json.dumps(content, indent=1) + "\n")
    compared = [
        (row[0], _at(table, row, "beside", "plain Brax"), _at(table, row, TIMES))
        for one in parts.values()
        for table in one.tables
        if TIMES in table.columns
        for row in table.rows
    ]
    overview = Table("ratios", "how many times as fast", ("what", "beside", TIMES), compared)
    sections = [
        "\n".join([f"## {part}\n\n    python -m benchmarks {part}\n\n{one.where}.\n", *map(markdown, one.tables)])
        for part, one in parts.items()
    ]
    (folder / "README.md").write_text("\n".join([HEAD, markdown(overview), *sections]))


HEAD = """# Speed, memory and growth

Made by `make bench`, or part by part by the commands below. Times are medians, in the profile the least of
several, and what is compared was called in turns; but starts, studies and the pool are measured once each, and the
points of growth one after the other, each in a process of its own. tables.json has the same numbers.
"""


def _at(table: Table, row: Sequence[str], column: str, otherwise: str = "") -> str:
    return row[table.columns.index(column)] if column in table.columns else otherwise


def markdown(table: Table) -> str:
    sides = [":--" if column in TEXT else "--:" for column in table.columns]
    lines = [f"| {' | '.join(row)} |" for row in (table.columns, sides, *table.rows)]
    picture = [f"![{table.title}]({table.figure})", ""] if table.figure else []
    return "\n".join([f"**{table.title[0].upper()}{table.title[1:]}**", "", *lines, "", *picture])


def _machine() -> str:
    from moqd.core.devices import num_cores
    from moqd.runs.config import processor

    there = [name for name in ("jax", "brax", "qdax", "pymoo", "ribs") if find_spec(name)]  # some parts need not all
    peers = ", ".join(f"{name} {version(name)}" for name in there)
    return f"{num_cores()} cores of {processor()}, Python {platform.python_version()}, {peers}"


def main() -> None:
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--out", type=Path, default=Path("results/bench"), help="if not given: results/bench")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"unknown part {part!r}; give some of {', '.join(PARTS)}.")
    options.out.mkdir(parents=True, exist_ok=True)
    if len(options.parts) == 1:
        measure(options.parts[0], options.out)
        return
    failed = []
    for part in options.parts or PARTS:  # each in a process of its own, since JAX can be set up only once
        if subprocess.run([sys.executable, "-m", "benchmarks", part, "--out", str(options.out)]).returncode:
            failed.append(part)
    if failed:
        sys.exit(f"not measured, for the reasons above: {', '.join(failed)}; try again: python -m benchmarks PART")


def measure(part: str, folder: Path) -> None:
    found: list[Table] = []
    for table in PARTS[part](folder):
        show(table)
        found.append(table)
        write({**kept(folder), part: Measurement(f"{date.today()}, {_machine()}", found)}, folder)


if __name__ == "__main__":
    sys.exit(main())
