"""What all figures share. Colours are safe for colour-blind readers (Okabe & Ito; viridis for quantities)."""

import textwrap

from matplotlib.axes import Axes

from moqd.tasks import Task

FRONT = "#d55e00"
CONTEXT = "#56b4e9"
EMPTY = "#eeeeee"
QUANTITY = "viridis"


def objective_label(task: Task, name: str, *, width: int = 34) -> str:
    """An objective with its unit, and whether less of it is better."""
    return _label(task, name, ", less is better" if name in task.minimised else "", width)


def feature_label(task: Task, name: str, *, width: int = 34) -> str:
    """A feature with its unit."""
    return _label(task, name, "", width)


def plain(text: str) -> str:
    """The text for a figure, where a dollar would start a formula."""
    return text.replace("$", r"\$")


def note(ax: Axes, text: str) -> None:
    """Says in the middle of an axes why there is nothing in it."""
    ax.annotate(text, (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color="dimgrey")


def _label(task: Task, name: str, hint: str, width: int) -> str:
    """In lines that fit; where one is not enough, the unit starts another."""
    unit = task.label(name).removeprefix(name).strip()
    whole = f"{name}{hint} {unit}".strip()
    lines = [whole] if len(whole) <= width else [*textwrap.wrap(name + hint, width), *textwrap.wrap(unit, width)]
    return plain("\n".join(lines))
