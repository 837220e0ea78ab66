"""What a report consists of, whatever it is written as: headings, paragraphs, tables and figures.

All texts are as their authors wrote them; `markdown.py` and `page.py` make sure that they stay text.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """A piece of text."""

    text: str
    style: str = ""
    """strong, code, quiet (next to something more important), win or loss."""
    address: str = ""
    """The target of the link, if it is one."""


Piece = str | Span
Text = Piece | tuple[Piece, ...]


def spans(text: Text) -> Iterator[Span]:
    """The pieces of a text."""
    for piece in (text,) if isinstance(text, str | Span) else text:
        yield Span(piece) if isinstance(piece, str) else piece


def words(text: Text) -> str:
    """The text without its formatting."""
    return "".join(span.text for span in spans(text))


def strong(text: str) -> Span:
    return Span(text, "strong")


def code(text: str) -> Span:
    return Span(text, "code")


def link(text: str, address: str) -> Span:
    return Span(text, address=address)


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: Text


@dataclass(frozen=True)
class Notice:
    """Something that the reader must not miss."""

    text: Text
    kind: str = "note"
    """note or warning."""


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[Text, ...]


@dataclass(frozen=True)
class Grid:
    """A table; it is numbered if it has a caption."""

    head: tuple[Text, ...]
    rows: tuple[tuple[Text, ...], ...]
    caption: Text = ""
    right: Collection[int] = ()
    """The columns that hold numbers."""


@dataclass(frozen=True)
class Picture:
    """A figure, stored in the folder `figures` as PNG and PDF."""

    name: str
    caption: str
    svg: bytes = field(default=b"", repr=False)
    """For the HTML page, which embeds its figures."""

    def path(self, suffix: str) -> str:
        return f"figures/{self.name}.{suffix}"


Block = Heading | Paragraph | Notice | Items | Grid | Picture


def numbered(blocks: Iterable[Block]) -> Iterator[tuple[Block, str]]:
    """Every block with its name: "Table 2", "Figure 1" or nothing."""
    num_tables = num_figures = 0
    for block in blocks:
        name = ""
        if isinstance(block, Grid) and block.caption:
            num_tables += 1
            name = f"Table {num_tables}"
        elif isinstance(block, Picture):
            num_figures += 1
            name = f"Figure {num_figures}"
        yield block, name
