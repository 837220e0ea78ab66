"""The figures of a study, with their captions."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from moqd.plots.archives import archives_figure
from moqd.plots.comparison import comparison_figure
from moqd.plots.global_fronts import global_fronts_figure
from moqd.plots.sparsity_boxes import sparsity_boxes_figure
from moqd.plots.style import display_name
from moqd.plots.wall_clock import wall_clock_figure
from moqd.report.document import Block, Heading, Picture
from moqd.report.figures import save, svg
from moqd.report.numbers import seeds_in
from moqd.study.summaries import Results

TITLES = {"baselines": "Baselines", "ablations": "Ablations", "pga": "Size of the archive of PGA-ME"}
"""The titles of the groups that have one."""


KINDS: dict[str, tuple[Callable[[Results, Sequence[str]], Figure], str]] = {
    "learning_curves": (
        comparison_figure,
        "MOQD score, global hypervolume, max sum of scores and coverage of {those} over evaluations, on every task. "
        "The line is the median over {seeds}, the shaded area lies between the first and the third quartile.",
    ),
    "curves_over_time": (
        partial(comparison_figure, over="seconds"),
        "The same over seconds, compiling included, as far as all seeds of an algorithm went. Only runs that were made "
        "on the same machine, with as many cores, can be compared so.",
    ),
    "sparsity": (
        sparsity_boxes_figure,
        "Sparsity of the final archives of {those}: over the fronts of all cells, over those of two or more solutions, "
        "and of the global front; less is better. Each box is of {seeds}, from the first to the third quartile, with a "
        "line at the median.",
    ),
    "archives": (
        archives_figure,
        "Final archives of representative runs of {those}. Height or colour is the hypervolume of the front in a cell, "
        "on one scale per task.",
    ),
    "global_fronts": (
        global_fronts_figure,
        "Global fronts of the representative runs of {those}: solutions that nothing in the archive dominates.",
    ),
}
"""The figures that every group has, with their captions."""


def draw_groups(results: Results, folder: Path) -> Iterator[Block]:
    """All figures, by group of algorithms."""
    for group, algorithms in results.study.groups.items():
        counts = {len(results.of(task, one)) for task in results.study.tasks for one in algorithms} - {0}
        if not counts:
            continue
        if group in TITLES:
            yield Heading(3, TITLES[group])
        *most, last = map(display_name, algorithms)
        those = f"{', '.join(most)} and {last}" if most else last
        for name, (draw, caption) in KINDS.items():
            shown = caption.format(those=those, seeds=seeds_in(counts))
            yield _saved(draw(results, algorithms), folder, f"{group}_{name}", shown)


def draw_wall_clock(results: Results, folder: Path) -> Iterator[Block]:
    """The time of the parts that learn, if they were timed."""
    learning = {of for (_, of), timing in results.timings.items() if "training" in timing["seconds"]}
    algorithms = [label for label in results.study.algorithms if label in learning]
    if algorithms:
        caption = (
            "Wall-clock time of policy-gradient variation and of the training of actors and critics in one iteration, "
            "by task and algorithm, each measured on its own."
        )
        yield _saved(wall_clock_figure(results, algorithms), folder, "wall_clock", caption)


def _saved(figure: Figure, folder: Path, name: str, caption: str) -> Picture:
    save(figure, folder, name)
    return Picture(name, caption, svg(figure))
