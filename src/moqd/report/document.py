"""What a report consists of, whatever it is written as: headings, paragraphs, tables and figures.

All texts are as their authors wrote them; `markdown.py` and `page.py` make sure that they stay text.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
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


strong, code = partial(Span, style="strong"), partial(Span, style="code")


class Heading(NamedTuple):
    level: int
    text: str


class Paragraph(NamedTuple):
    text: Text


class Notice(NamedTuple):
    """Something that the reader must not miss: a bold title, and what follows it."""

    title: str
    text: Text
    kind: str = "warning"
    """note or warning."""

    @property
    def whole(self) -> Text:
        return (strong(self.title), *spans(self.text))


class Items(NamedTuple):
    """A list."""

    items: Sequence[Text]


class Grid(NamedTuple):
    """A table; it is numbered if it has a caption."""

    head: Sequence[Text]
    rows: Sequence[Sequence[Text]]
    caption: str = ""
    right: Collection[int] = ()
    """The columns that hold numbers."""


class Picture(NamedTuple):
    """A figure, stored in the folder `figures` as PNG and PDF."""

    name: str
    caption: str
    svg: bytes = b""
    """For the HTML page, which embeds its figures."""

    def path(self, suffix: str) -> str:
        return f"figures/{self.name}.{suffix}"


Block = Heading | Paragraph | Notice | Items | Grid | Picture


def number_grid(head: Sequence[Text], rows: Sequence[Sequence[Text]], caption: str = "", *, texts: int = 1) -> Grid:
    """A table of numbers, after so many columns of text."""
    return Grid(head, rows, caption, right=range(texts, len(head)))


def numbered(blocks: Iterable[Block]) -> Iterator[tuple[Block, str]]:
    """Every block with its name: "Table 2", "Figure 1" or nothing."""
    counts: Counter[str] = Counter()
    for block in blocks:
        kind = "Figure" if isinstance(block, Picture) else "Table" if isinstance(block, Grid) and block.caption else ""
        counts[kind] += 1
        yield block, f"{kind} {counts[kind]}" if kind else ""
