"""What commands print: sentences, lists with a line for each name, and one name in full."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from moqd.cli.parser import print_options


def print_list(out: Console, columns: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    """A name and what is listed of it; all but the last column, which is text, are short."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1))
    for column in ("name", *columns[:-1]):
        table.add_column(column, no_wrap=True, justify="left" if column == "name" else "right")
    table.add_column(columns[-1])
    for name, row in rows.items():
        table.add_row(Text(name, "bold"), *map(Text, row))
    out.print(table, highlight=False)


def describe(out: Console, name: str, summary: str, config: Any, details: Mapping[str, str]) -> None:
    """What a name stands for, and its options."""
    out.print(f"[bold]{escape(name)}[/]  {escape(summary)}", highlight=False)
    table = Table.grid(padding=(0, 2))
    for label, text in details.items():
        table.add_row("", f"[dim]{label}[/]", Text(text))
    out.print(table, highlight=False)
    out.print("options", style="dim")
    print_options(out, config)
    out.print()


def say(out: Console, text: str) -> None:
    """A sentence, with markup; the terminal wraps it, so that paths and commands can be copied."""
    out.print(text, highlight=False, soft_wrap=True)
