"""A report as one HTML file that needs nothing else: no script, no font, nothing from any network."""

import re
from base64 import b64encode
from collections.abc import Collection, Iterator, Sequence
from html import escape

from moqd.report.document import (
    Block,
    Grid,
    Heading,
    Items,
    Notice,
    Paragraph,
    Picture,
    Span,
    Text,
    numbered,
    spans,
    words,
)

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What the browser allows the page: only to show itself."""
STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1e21; --quiet: #5f6670; --rule: #d9dce1; --link: #0b57a4;
  --tint: #f5f6f8; --win: #00694f; --loss: #a8430b; --warn: #b45f06; }
@media (prefers-color-scheme: dark) { :root { --paper: #15171a; --ink: #e4e6ea; --quiet: #9aa1ab; --rule: #363b42;
  --link: #82b8f2; --tint: #1e2126; --win: #56c9a4; --loss: #f0955c; --warn: #f0b45c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 2.5rem 1.5rem 5rem; background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.6 Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif; overflow-wrap: break-word; }
h1, h2, h3 { line-height: 1.25; font-weight: 600; text-wrap: balance; }
h1 { font-size: 2.1rem; margin: 0 0 1rem; }
h2 { font-size: 1.5rem; margin: 3.5rem 0 1rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p, ul, aside { max-width: 46rem; margin: .8rem 0; }
ul { padding-left: 1.3rem; }
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: .15em; }
code { font: .875em ui-monospace, Menlo, Consolas, monospace; }
nav, aside, figcaption, .table { font-family: system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
nav { font-size: .9rem; margin: 1.2rem 0; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; padding: 0; margin: 0; max-width: none; }
aside { font-size: .93rem; line-height: 1.5; padding: .7rem 1rem; background: var(--tint);
  border-left: 3px solid var(--rule); }
aside.warning { border-color: var(--warn); }
aside.warning strong { color: var(--warn); }
figure { margin: 1.8rem 0 2.4rem; }
figcaption { font-size: .88rem; line-height: 1.45; color: var(--quiet); max-width: 54rem; }
figcaption b { color: var(--ink); }
.table figcaption { margin-bottom: .5rem; }
.scroll { overflow-x: auto; }
.card { background: #fff; border: 1px solid var(--rule); border-radius: 4px; padding: .6rem; margin-bottom: .6rem;
  width: fit-content; max-width: 100%; }
.card img { display: block; margin: auto; max-width: 100%; min-width: min(100%, 44rem); height: auto; }
table { border-collapse: collapse; font-size: .84rem; line-height: 1.35; font-variant-numeric: tabular-nums lining-nums;
  border-top: 2px solid var(--ink); border-bottom: 2px solid var(--ink); }
th, td { padding: .38rem .8rem; text-align: left; vertical-align: baseline; }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; font-weight: 600; }
tbody th { font-weight: 400; white-space: nowrap; position: sticky; left: 0; background: var(--paper); }
tbody tr + tr > * { border-top: 1px solid var(--rule); }
.n { text-align: right; white-space: nowrap; }
thead .n { white-space: normal; max-width: 9.5rem; }
td small { display: block; color: var(--quiet); font-size: .9em; }
thead small { color: var(--quiet); font-weight: 400; white-space: nowrap; }
.win { color: var(--win); font-weight: 600; }
.loss { color: var(--loss); font-weight: 600; }
@media (max-width: 40rem) { body { padding: 1.5rem 1rem 3rem; font-size: 1rem; } h1 { font-size: 1.6rem; }
  .card img { max-width: none; width: 44rem; } th, td { padding: .35rem .55rem; }
  tbody th { white-space: normal; min-width: 7.5rem; } td:not(.n) { white-space: nowrap; }
  td:last-child:not(.n) { white-space: normal; min-width: 12rem; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --quiet: #444; --rule: #bbb; --link: #000;
    --tint: #f4f4f4; --win: #00694f; --loss: #a8430b; --warn: #8a4a05; }
  @page { size: A4; margin: 16mm 14mm; }
  html { font-size: 9pt; }
  body { max-width: none; padding: 0; line-height: 1.45; }
  p, ul, aside { max-width: none; }
  nav { display: none; }
  h2 { margin-top: 1.6rem; }
  h1, h2, h3, .table figcaption { break-after: avoid; }
  figure, tr, aside { break-inside: avoid; }
  .scroll { overflow: visible; }
  .card { border: 0; padding: 0; }
  .card img { min-width: 0; max-width: 100%; max-height: 225mm; width: auto; }
  figure { margin: 1.2rem 0; }
  table { font-size: 7pt; line-height: 1.2; }
  th, td { padding: .13rem .35rem; }
  tbody th { position: static; } }
"""


def page(title: str, blocks: Sequence[Block]) -> str:
    """The whole file. After the first block, its title, come the contents: the headings of the second level."""
    anchors = _anchors(blocks)
    body = [_block(block, name, anchors) for block, name in numbered(blocks)]
    body.insert(1, _contents(blocks, anchors))
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_plain(title)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            *body,
            "</body>",
            "</html>",
            "",
        ]
    )


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
        case Notice(text, kind):
            return f'<aside class="{kind}">{_text(text)}</aside>'
        case Items(items):
            return "<ul>" + "".join(f"<li>{_text(item)}</li>" for item in items) + "</ul>"
        case Picture(_, caption, svg):
            source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
            files = " \N{MIDDLE DOT} ".join(
                f'<a href="{block.path(kind)}">{kind.upper()}</a>' for kind in ("pdf", "png")
            )
            return (
                f'<figure><div class="card scroll"><img src="{source}" alt="{_plain(caption)}"></div>'
                f"<figcaption><b>{name}.</b> {_plain(caption)} {files}</figcaption></figure>"
            )
        case Grid():
            caption = f"<figcaption><b>{name}.</b> {_text(block.caption)}</figcaption>" if name else ""
            label = escape(f"{name}. {words(block.caption)}") if name else "table"
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
