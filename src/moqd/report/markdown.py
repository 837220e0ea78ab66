"""A report as Markdown, in GitHub's dialect."""

import re
from collections.abc import Sequence

from moqd.report.document import Block, Grid, Heading, Items, Notice, Paragraph, Picture, Span, Text, numbered, spans

MARKS = re.compile(r"([\\|<>*`\[\]$~&#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//))")
"""Characters that Markdown, or GitHub's dialect of it, would interpret."""

LIST = re.compile(r"^(\d*)([-+=.)])")
"""What would turn a line into a list or a heading if the line began with it."""


def markdown(blocks: Sequence[Block]) -> str:
    return "\n\n".join(_block(block, name) for block, name in numbered(blocks)) + "\n"


def plain(text: str) -> str:
    """The text, escaped and on one line."""
    return MARKS.sub(r"\\\1", " ".join(text.split()))


def _block(block: Block, name: str) -> str:
    match block:
        case Heading(level, text):
            return "#" * level + f" {plain(text)}"
        case Paragraph(text):
            return _line(text)
        case Notice():
            return f"> [!{block.kind.upper()}]\n> {_line(block.whole)}"
        case Items(items):
            return "\n".join(f"- {_line(item)}" for item in items)
        case Picture(_, caption):
            image = f"![{plain(caption)}]({block.path('png')})"
            return f"{image}\n\n**{name}.** {plain(caption)} ([PDF]({block.path('pdf')}))"
        case Grid():
            return (f"**{name}.** {plain(block.caption)}\n\n" if name else "") + _table(block)


def _table(grid: Grid) -> str:
    rule = ["---:" if i in grid.right else "---" for i in range(len(grid.head))]
    lines = [[_text(cell, in_table=True) for cell in row] for row in (grid.head, *grid.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def _line(text: Text) -> str:
    """A text at the beginning of a line."""
    return LIST.sub(r"\1\\\2", _text(text))


def _text(text: Text, *, in_table: bool = False) -> str:
    return "".join(_span(span, in_table) for span in spans(text)).strip()


def _span(span: Span, in_table: bool) -> str:
    if span.style == "code":
        return _code(span.text, in_table)
    # The blanks around stay: those between a piece and the next.
    before, after = (" " if span.text[place:][:1].isspace() else "" for place in (0, -1))
    shown = plain(span.text)
    if not shown:
        return before
    if span.style == "strong":
        shown = f"**{shown}**"
    elif span.style == "quiet":
        shown = f" ({shown})"
    if span.address:
        shown = f"[{shown}]({span.address})"
    return f"{before}{shown}{after}"


def _code(text: str, in_table: bool) -> str:
    """In more backticks than the text has in a row; in a table, bars are escaped even in code."""
    fence = "`" * (1 + max((len(row) for row in re.findall("`+", text)), default=0))
    shown = text.replace("\n", " ")
    shown = shown.replace("|", r"\|") if in_table else shown
    return f"{fence} {shown} {fence}" if len(fence) > 1 else f"{fence}{shown}{fence}"
