"""Figures as files. They contain no date, so that the same numbers give the same bytes."""

import io
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from moqd.io.files import write_file


def save(figure: Figure, folder: Path, name: str) -> None:
    """Writes a figure as PNG and PDF. It is laid out only once for both."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    write_file(folder / f"{name}.png", lambda beside: figure.savefig(beside, format="png", dpi=150))
    without_date = {"CreationDate": None}
    write_file(
        folder / f"{name}.pdf", lambda beside: figure.savefig(beside, format="pdf", dpi=150, metadata=without_date)
    )


def svg(figure: Figure) -> bytes:
    """A figure as SVG for a page; letters are drawn as shapes, so that no font is needed."""
    file = io.BytesIO()
    # Without a salt of one's own, the names within would be random.
    with rc_context({"svg.hashsalt": "moqd", "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", dpi=150, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return file.getvalue()
