"""Figures as files. They contain no date, so that the same numbers give the same bytes."""

import io
from functools import partial
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from moqd.io.files import write_file


def save(figure: Figure, folder: Path, name: str) -> None:
    """Writes a figure as PNG and PDF. It is laid out only once for both."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for kind, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
        write_file(folder / f"{name}.{kind}", partial(figure.savefig, format=kind, dpi=150, metadata=metadata))


def svg(figure: Figure) -> bytes:
    """A figure as SVG for a page; letters are drawn as shapes, so that no font is needed."""
    file = io.BytesIO()
    # Without a salt of one's own, the names within would be random.
    with rc_context({"svg.hashsalt": "moqd", "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", dpi=150, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return file.getvalue()
