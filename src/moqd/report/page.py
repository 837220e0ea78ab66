"""A report as one HTML file that needs nothing else: no script, no font, nothing from any network."""

import re
from base64 import b64encode
from collections.abc import Collection, Iterator, Sequence
from html import escape
from importlib.resources import files

from moqd.report.document import Block, Grid, Heading, Items, Notice, Paragraph, Picture, Span, Text, numbered, spans

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What the browser allows the page: only to show itself."""
STYLE = (files("moqd.report") / "page.css").read_text(encoding="utf-8")


def page(title: str, blocks: Sequence[Block]) -> str:
    """The whole file. After the first block, its title, come the contents: the headings of the second level."""
    anchors = _anchors(blocks)
    first, *others = (_block(block, name, anchors) for block, name in numbered(blocks))
    body = "\n".join([first, _contents(blocks, anchors), *others])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_plain(title)}</title>
<style>
{STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _plain(text: str) -> str:
    return escape(" ".join(text.split()))


def _anchors(blocks: Sequence[Block]) -> dict[int, str]:
    """The anchor of each heading, by its identity; all are different."""
    anchors: dict[int, str] = {}
    for block in blocks:
        if isinstance(block, Heading):
            anchor = re.sub(r"[^a-z0-9]+", "-", block.text.lower()).strip("-") or "section"
            while anchor in anchors.values():
                anchor += "-again"
            anchors[id(block)] = anchor
    return anchors


def _contents(blocks: Sequence[Block], anchors: dict[int, str]) -> str:
    headings = [block for block in blocks if isinstance(block, Heading) and block.level == 2]
    items = [f'<li><a href="#{anchors[id(one)]}">{_plain(one.text)}</a></li>' for one in headings]
    return f'<nav aria-label="Contents"><ul>{"".join(items)}</ul></nav>' if items else ""


def _block(block: Block, name: str, anchors: dict[int, str]) -> str:
    match block:
        case Heading(level, text):
            return f'<h{level} id="{anchors[id(block)]}">{_plain(text)}</h{level}>'
        case Paragraph(text):
            return f"<p>{_text(text)}</p>"
        case Notice():
            return f'<aside class="{block.kind}">{_text(block.whole)}</aside>'
        case Items(items):
            return "<ul>" + "".join(f"<li>{_text(item)}</li>" for item in items) + "</ul>"
        case Picture(_, caption, svg):
            source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
            pdf, png = (f'<a href="{block.path(kind)}">{kind.upper()}</a>' for kind in ("pdf", "png"))
            return (
                f'<figure><div class="card scroll"><img src="{source}" alt="{_plain(caption)}"></div>'
                f"<figcaption><b>{name}.</b> {_plain(caption)} {pdf} \N{MIDDLE DOT} {png}</figcaption></figure>"
            )
        case Grid():
            caption = f"<figcaption><b>{name}.</b> {escape(block.caption)}</figcaption>" if name else ""
            label = escape(f"{name}. {block.caption}") if name else "table"
            # Reachable by keyboard, because it may have to be scrolled.
            scroll = f'<div class="scroll" tabindex="0" role="group" aria-label="{label}">'
            return f'<figure class="table">{caption}{scroll}{"".join(_table(block))}</div></figure>'


def _table(grid: Grid) -> Iterator[str]:
    yield "<table>\n<thead><tr>"
    for i, cell in enumerate(grid.head):
        yield f'<th scope="col"{_side(i, grid.right)}>{_text(cell)}</th>'
    yield "</tr></thead>\n<tbody>\n"
    for first, *others in grid.rows:
        yield f'<tr><th scope="row"{_side(0, grid.right)}>{_text(first)}</th>'
        yield from (f"<td{_side(i, grid.right)}>{_text(cell)}</td>" for i, cell in enumerate(others, 1))
        yield "</tr>\n"
    yield "</tbody></table>"


def _side(column: int, right: Collection[int]) -> str:
    return ' class="n"' if column in right else ""


def _text(text: Text) -> str:
    return "".join(map(_span, spans(text)))


def _span(span: Span) -> str:
    shown = escape(span.text)
    match span.style:
        case "strong" | "code":
            shown = f"<{span.style}>{shown}</{span.style}>"
        case "quiet":
            shown = f" <small>{shown}</small>"
        case "win" | "loss":
            shown = f'<span class="{span.style}">{shown}</span>'
    return f'<a href="{escape(span.address)}">{shown}</a>' if span.address else shown
