"""Measures moqd beside its peers, in one run on one machine, and prints ratios.

python -m benchmarks [addition] [moeas] [rollout] [learning] [memory] [runs] [studies] [explorer] [pool] [stepping]
Without names: all of them.
"""

import sys
import warnings

warnings.filterwarnings("ignore")

from rich.box import SIMPLE_HEAD  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from benchmarks.timing import Measured  # noqa: E402


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in ("what", "beside") else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=110).print(table)


def show_seconds(title: str, rows: list[Measured]) -> None:
    cells = [
        [row.what, f"{1e3 * row.ours:.2f}", row.peer, f"{1e3 * row.theirs:.2f}", f"{row.ratio:.2f}"] for row in rows
    ]
    show(title, ["what", "ms", "beside", "ms", "times"], cells)


def addition() -> None:
    from benchmarks import addition, mome

    show_seconds(FASTER, [*addition.measure(), mome.measure(10), mome.measure(5123)])
    show_seconds("growth (1: no slower with eight times as many cells)", addition.growth())


def moeas() -> None:
    from benchmarks import moeas

    cases = [("NSGA-II", 100, 50), ("NSGA-II", 1600, 5), ("SPEA2", 100, 20), ("SPEA2", 400, 2)]
    show_seconds(FASTER, [moeas.measure(*case) for case in cases])


def rollout() -> None:
    from benchmarks import rollout

    rows = [
        [
            row.what,
            *(f"{row.steps / seconds:,.0f}" for seconds in (row.ours, row.theirs)),
            f"{row.ratio:.1f}",
            *(f"{seconds:.0f}" for seconds in (row.ours_first, row.theirs_first)),
        ]
        for row in rollout.measure()
    ]
    columns = ["what", "steps/s", "plain Brax", "times", "first call s", "plain"]
    show("environment steps per second, batch 256, beside Brax's step under vmap on one device", columns, rows)


def learning() -> None:
    import moqd

    moqd.use_devices()
    from benchmarks import learning

    for title, rows in (
        ("paper settings, beside the straightforward variation of 64 parents", learning.iterations()),
        ("growth with the buffer, beside the smallest", learning.training()),
    ):
        cells = [[row.what, f"{row.seconds:.2f}", f"{row.yardstick:.2f}", f"{row.share:.2f}"] for row in rows]
        show(title, ["what", "s", "beside s", "share"], cells)


def memory() -> None:
    from benchmarks import learning

    rows = [[what, f"{gigabytes:.2f}"] for what, gigabytes in learning.memory()]
    show("peak resident memory, paper settings", ["what", "GB"], rows)


def runs() -> None:
    import moqd

    moqd.use_devices()
    from benchmarks import runs

    starts = [[row.what, f"{row.cold:.1f}", f"{row.warm:.1f}", f"{row.warm / row.cold:.2f}"] for row in runs.starts()]
    show("moqd train: seconds to the first metrics", ["what", "cold", "warm", "share"], starts)
    rows = [
        [row.what, *(f"{value:.2f}" for value in row[2:]), f"{row.megabytes:.0f}", f"{row.share:.2%}"]
        for row in runs.saving()
    ]
    columns = ["what", "write s", "read s", "iteration s", "after one s", "MB", "of a run"]
    show("a checkpoint every 5 minutes, paper settings, archive and buffer full", columns, rows)


def studies() -> None:
    from benchmarks import studies

    one, many = studies.measure()
    rows = [
        [
            f"{row.workers} worker{'s' * (row.workers > 1)} of {row.cores} core{'s' * (row.cores > 1)}",
            f"{row.seconds:.1f}",
            f"{row.seconds / one.seconds:.2f}",
            f"{row.overhead:.2f}",
        ]
        for row in (one, many)
    ]
    columns = ["what", "s", "beside one worker", "overhead of a run s"]
    show("a study of 8 equal runs of MOME-P2C on hopper-2", columns, rows)


def explorer() -> None:
    from benchmarks import explorer

    found = explorer.measure()
    title = (
        f"the explorer's page of ant-2 with {found.solutions:,} solutions: {found.megabytes:.1f} MB, written in "
        f"{found.writing:.0f} s"
    )
    rows = [["ready after opening, s", *(f"{value:.2f}" for value in explorer.summary(found.ready))]]
    for what, values in found.clicks.items():
        rows.append([f"painted after {what}, ms", *(f"{value:.0f}" for value in explorer.summary(values))])
    show(title, ["what", "median", "most"], rows)


def pool() -> None:
    from benchmarks import pool

    rows = [
        [f"{1e3 * call:.0f} ms", f"{one:.1f}", f"{two:.1f}", f"{two / one:.3f}"] for call, one, two in pool.measure()
    ]
    show("runs of a function that only waits", ["what", "1 worker, s", "2 workers, s", "share"], rows)


def stepping() -> None:
    from benchmarks import stepping

    rows = [[row.what, f"{row.steps_per_second:,.0f}", f"{row.times:.2f}"] for row in stepping.measure()]
    show("mo-hopper-v5, 64 policies x 250 steps", ["what", "steps/s", "beside one worker"], rows)


FASTER = "how many times as fast as the peer"
PARTS = {
    "addition": addition,
    "moeas": moeas,
    "rollout": rollout,
    "learning": learning,
    "memory": memory,
    "runs": runs,
    "studies": studies,
    "explorer": explorer,
    "pool": pool,
    "stepping": stepping,
}
for part in sys.argv[1:] or PARTS:
    PARTS[part]()
