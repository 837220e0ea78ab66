"""Reading what the studies in results/ have come to, and writing tables of it in Markdown."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
MAIN, ABLATIONS, WALKER, CROWDING = "small-main", "small-ablations", "small-walker", "small-crowding"
PLUS = "small-plus"
ALL = ("hopper-2", "ant-2", "walker-2", "hopper-3")
TWO = ("hopper-2", "ant-2")


def rows_of(study: str, table: str) -> list[dict[str, str]]:
    """Of a CSV table of the study's report."""
    path = RESULTS / study / "tables" / f"{table}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def short(value: Any) -> str:
    """Four digits, and thousands apart; a dash for nothing."""
    if value == "":
        return "-"
    number = float(value)
    if number == 0 or 1e-3 <= abs(number) < 1e4:
        return f"{number:.4g}"
    return f"{float(f'{number:.4g}'):,.0f}" if abs(number) < 1e9 and abs(number) >= 1 else f"{number:.2e}"
