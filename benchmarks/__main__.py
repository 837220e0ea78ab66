"""Measures moqd beside its peers, in one run on one machine, and prints ratios: python -m benchmarks."""

import warnings

warnings.filterwarnings("ignore")

from rich.box import SIMPLE_HEAD  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from benchmarks import addition, moeas, mome  # noqa: E402
from benchmarks.timing import Measured  # noqa: E402


def show(title: str, rows: list[Measured]) -> None:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for column, justify in (("what", "left"), ("ms", "right"), ("beside", "left"), ("ms", "right"), ("times", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(row.what, f"{1e3 * row.ours:.2f}", row.peer, f"{1e3 * row.theirs:.2f}", f"{row.ratio:.2f}")
    Console(width=110).print(table)


FASTER = "how many times as fast as the peer"
show(FASTER, [*addition.measure(), mome.measure(10), mome.measure(5123)])
show(
    FASTER,
    [
        moeas.measure("NSGA-II", 100, 50),
        moeas.measure("NSGA-II", 1600, 5),
        moeas.measure("SPEA2", 100, 20),
        moeas.measure("SPEA2", 400, 2),
    ],
)
show("growth (1: no slower with eight times as many cells)", addition.growth())
