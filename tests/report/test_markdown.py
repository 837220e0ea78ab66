"""Whatever a name holds, Markdown shows it as it is: markdown-it, which Rich reads Markdown with, is the judge."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from moqd.report.document import Grid, Heading, Items, Notice, Paragraph, Picture, Span, code, strong
from moqd.report.markdown import markdown

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NASTY = st.text(st.sampled_from("\\|<>*_`[]()!$~&#:/-+=.1a \n;\"'"), min_size=1)
TEXTS = st.one_of(NASTY, st.text(st.characters(exclude_categories=["C"]), min_size=1)).filter(lambda text: text.strip())


def shown(text):
    """As HTML, with its white space as a browser shows it."""
    return escaped(" ".join(text.split()))


def escaped(text):
    """As markdown-it does it, which leaves apostrophes."""
    return html.escape(text, quote=False).replace('"', "&quot;")


@given(TEXTS)
def test_a_paragraph_and_a_heading_and_an_item_stay_text(text):
    assert READER.render(markdown([Paragraph(text)])) == f"<p>{shown(text)}</p>\n"
    assert READER.render(markdown([Heading(2, text)])) == f"<h2>{shown(text)}</h2>\n"
    assert READER.render(markdown([Items((text,))])) == f"<ul>\n<li>{shown(text)}</li>\n</ul>\n"


@given(TEXTS, TEXTS)
def test_a_cell_stays_text_and_a_cell(first, second):
    rendered = READER.render(markdown([Grid(("a", "b"), ((first, second),))]))
    assert f"<tr>\n<td>{shown(first)}</td>\n<td>{shown(second)}</td>\n</tr>" in rendered


@given(st.text(st.sampled_from("\\|<>*_`[]a b"), min_size=1).filter(lambda text: text == text.strip()))
def test_code_is_as_it_was_written(text):
    assert READER.render(markdown([Paragraph(("see ", code(text)))])) == f"<p>see <code>{escaped(text)}</code></p>\n"
    cell = READER.render(markdown([Grid(("a", "b"), ((code(text), "b"),))]))
    if "\\" not in text:  # before a bar, a backslash in a table is lost
        assert f"<td><code>{escaped(text)}</code></td>\n<td>b</td>" in cell


def test_what_texts_look_like():
    pieces = ("plain, ", strong("bold"), " and ", Span("a_b", address="tables/a.csv"), Span("1 to 2", "quiet"))
    assert markdown([Paragraph(pieces)]) == "plain, **bold** and [a_b](tables/a.csv) (1 to 2)\n"
    assert markdown([Notice("Mind", " the gap")]) == "> [!WARNING]\n> **Mind** the gap\n"
    grid = Grid(("name", "number"), (("a", "1"), ("b", "2")), "Two of them.", right=[1])
    table = "| name | number |\n| --- | ---: |\n| a | 1 |\n| b | 2 |"
    assert markdown([grid, Picture("x", "An x."), grid]) == (
        f"**Table 1.** Two of them.\n\n{table}\n\n"
        "![An x.](figures/x.png)\n\n**Figure 1.** An x. ([PDF](figures/x.pdf))\n\n"
        f"**Table 2.** Two of them.\n\n{table}\n"
    )


@pytest.mark.parametrize("start", ["- a", "+ a", "1. a", "12) a", "---", "===", "# a", "> a", "    a", "~~~", "[a]: b"])
def test_a_line_begins_nothing_but_itself(start):
    assert READER.render(markdown([Paragraph(start)])) == f"<p>{shown(start)}</p>\n"
