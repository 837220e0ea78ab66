"""What all figures share. Colours are safe for colour-blind readers (Okabe & Ito; viridis for quantities)."""

import io
import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moqd.algorithms import ALGORITHMS
from moqd.study.plan import PAPER_TASKS, Study
from moqd.tasks import Task


class InlineFigure(Figure):
    """A figure that a notebook shows as the value of a cell, whether or not pyplot is there."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=90)
        return file.getvalue()


FRONT = "#d55e00"
CONTEXT = "#56b4e9"
EMPTY = "#eeeeee"
QUANTITY = "viridis"

BLACK = "#000000"
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", BLACK)
LINES = ("-", "--", "-.", ":")
MARKERS = {"-": "os^Dv*X", "--": "os^Dv*X", "-.": "8p<d>hP", ":": "1234+x|"}
"""By line, one for each colour."""
HATCHES = {"-": "", "--": "/////", "-.": "...", ":": "xxxx"}


class AlgorithmStyle(NamedTuple):
    """How an algorithm looks in all figures of a study."""

    colour: str
    line: str
    marker: str
    stands_out: bool
    """Whether it is the one that the others are compared with."""

    @property
    def of_line(self) -> dict[str, Any]:
        """For `plot`; the reference is thick and on top."""
        width, order = (1.9, 4) if self.stands_out else (1.1, 3)
        return {"color": self.colour, "linestyle": self.line, "linewidth": width, "zorder": order}

    @property
    def of_marker(self) -> dict[str, Any]:
        """For `plot`; markers are hollow if the line is broken."""
        face = self.colour if self.line == "-" else "white"
        return {"marker": self.marker, "markerfacecolor": face, "markeredgecolor": self.colour, "markeredgewidth": 0.7}

    @property
    def of_area(self) -> dict[str, Any]:
        """For bars and boxes, with a different hatch for every kind of line."""
        edge = "white" if self.colour == BLACK else "black"
        return {"facecolor": self.colour, "edgecolor": edge, "linewidth": 0.6, "hatch": HATCHES[self.line]}


Styles = Mapping[str, AlgorithmStyle]


def algorithm_styles(study: Study) -> Styles:
    """By label: those of the paper look the same in all studies, others get what is left, in the order of the study."""
    looks = {label: ALGORITHMS[label].look for label in study.algorithms if label in ALGORITHMS}
    chosen = {label: look for label, look in looks.items() if look is not None}
    free = [(i, line) for line in LINES for i in range(len(COLOURS)) if (i, line) not in chosen.values()]
    others = [label for label in study.algorithms if label not in chosen]
    others.sort(key=lambda label: label != study.reference)  # so that it has the first colour, if no other has
    chosen |= {label: free[i % len(free)] for i, label in enumerate(others)}
    return {
        label: AlgorithmStyle(COLOURS[colour], line, MARKERS[line][colour], label == study.reference)
        for label, (colour, line) in chosen.items()
    }


def display_name(label: str) -> str:
    """The algorithm as the paper calls it; the label itself if it is not one of moqd's."""
    return ALGORITHMS[label].label if label in ALGORITHMS else label


def task_title(name: str) -> str:
    """The paper's name of the task, or the name itself if the paper does not have it."""
    return name.title().replace("cheetah", "Cheetah") if name in PAPER_TASKS else name


def tasks_in_order(study: Study) -> list[str]:
    """The tasks of the paper in its order, then the others."""
    return [task for task in dict.fromkeys((*PAPER_TASKS, *study.tasks)) if task in study.tasks]


def objective_label(task: Task, name: str, *, width: int = 34) -> str:
    """An objective with its unit, and whether less of it is better."""
    return feature_label(task, name, width=width, hint=", less is better" if name in task.minimised else "")


def feature_label(task: Task, name: str, *, width: int = 34, hint: str = "") -> str:
    """A feature with its unit, in lines that fit; if one is not enough, the unit starts a new one."""
    unit = task.label(name).removeprefix(name).strip()
    whole = f"{name}{hint} {unit}".strip()
    lines = [whole] if len(whole) <= width else [*textwrap.wrap(name + hint, width), *textwrap.wrap(unit, width)]
    return plain("\n".join(lines))


def plain(text: str) -> str:
    """The text escaped for a figure, where a dollar sign would start a formula."""
    return text.replace("$", r"\$")


def note(ax: Axes, text: str) -> None:
    """Writes in the middle of an axes why it is empty."""
    ax.annotate(text, (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color="dimgrey")
