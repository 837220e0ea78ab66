"""What commands print: sentences, tables of numbers, lists with a line for each name, and one name in full."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from moqd.cli.parser import print_options


def number_table(first: str, *columns: str) -> Table:
    """To be filled: the first column is text, the others are numbers."""
    numbers = (Column(Text(column), justify="right", overflow="fold") for column in columns)
    return Table(Column(first, overflow="fold"), *numbers, box=SIMPLE_HEAD)


def print_list(out: Console, columns: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    """A name and what is listed of it; all but the last column, which is text, are short."""
    *short, text = columns
    numbers = [Column(column, no_wrap=True, justify="right") for column in short]
    table = Table(Column("name", no_wrap=True), *numbers, text, box=None, pad_edge=False, header_style="dim")
    for name, row in rows.items():
        table.add_row(Text(name, "bold"), *map(Text, row))
    out.print(table)


def describe(out: Console, name: str, summary: str, config: Any, details: Mapping[str, str]) -> None:
    """What a name stands for, and its options."""
    out.print(f"[bold]{escape(name)}[/]  {escape(summary)}")
    table = Table.grid(padding=(0, 2))
    for label, text in details.items():
        table.add_row("", f"[dim]{label}[/]", Text(text))
    out.print(table)
    out.print("options", style="dim")
    print_options(out, config)
    out.print()


def say(out: Console, text: str) -> None:
    """A sentence, with markup; the terminal wraps it, so that paths and commands can be copied."""
    out.print(text, soft_wrap=True)
