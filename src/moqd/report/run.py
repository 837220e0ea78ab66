"""The report of one run: report.md and its figures."""

import json
import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from moqd.algorithms import ALGORITHMS
from moqd.choose.pick import ends_of_front
from moqd.core.metrics import METRICS, OF_THE_PAPER, cell_hypervolumes
from moqd.io.errors import AGAIN, InputError, to_resume
from moqd.io.files import own_folder, users_folder, write_text
from moqd.plots.archive_map import archive_map_figure
from moqd.plots.fronts import fronts_figure
from moqd.plots.learning_curves import learning_curves_figure
from moqd.plots.overview import overview_figure
from moqd.report.document import Block, Grid, Heading, Items, Notice, Paragraph, Picture, code, number_grid
from moqd.report.figures import save
from moqd.report.markdown import markdown
from moqd.report.numbers import duration, number
from moqd.runs.config import RunConfig
from moqd.runs.folder import Run
from moqd.runs.journal import cautions, lost_evaluations
from moqd.runs.reevaluate import Reevaluation, read_reevaluation, reevaluate

CAPTIONS = {
    "overview": "The archive at a glance: the hypervolume of every cell's front, and the fronts.",
    "learning_curves": "The six metrics of the paper over evaluations.",
    "archive_map": "Where in feature space solutions were found, and the hypervolume of every cell's front.",
    "fronts": "The front of every cell, and the global front of what nothing in the archive dominates.",
}


def write_report(run: Run, folder: Path | None = None, say: Callable[[str], None] = lambda text: None) -> Path:
    """Writes report.md and its figures (PNG and PDF) into the folder, by default that of the run, and returns its path.

    `say` is called with what is being done.
    """
    if run.path is None:
        raise InputError("the run has no folder; give it one with moqd.run(..., out=folder).")
    folder = run.path if folder is None else users_folder(folder)
    number = int(np.sum(np.asarray(run.archive.valid)))
    again = read_reevaluation(run)
    if run.task.is_uncertain and number and again is None:
        say(f"re-evaluating {number:,} solutions")
        again = reevaluate(run if os.access(run.path, os.W_OK) else replace(run, path=None))
    say("drawing the report")
    volume = cell_hypervolumes(run.archive, run.reference_point)
    figures = {"overview": overview_figure(run, volume), "learning_curves": learning_curves_figure(run)}
    if run.task.num_features:
        figures["archive_map"] = archive_map_figure(run, volume)
    figures["fronts"] = fronts_figure(run)
    for name, figure in figures.items():
        save(figure, own_folder(folder / "figures"), name)
    write_text(folder / "report.md", markdown(list(_blocks(run, figures, again))))
    return folder / "report.md"


def _blocks(run: Run, figures: Iterable[str], again: Reevaluation | None) -> Iterable[Block]:
    yield Heading(1, f"{run.config.algorithm.name} on {run.task.name}, seed {run.config.seed}")
    done = run.metrics["iteration"][-1] if _has_rows(run) else 0
    if done < run.config.iterations:
        yield Notice(
            f"Stopped at iteration {done:.0f}{run.config.of_iterations}", ("; continue with: ", code(_resume(run)))
        )
    yield from _summary(run)
    yield from _ends(run)
    if again is not None:
        yield from _survival(again)
    yield Heading(2, "Figures")
    yield from (Picture(figure, CAPTIONS[figure]) for figure in figures)
    if not run.task.num_features:
        yield Paragraph("There is no map of the archive: the task has no features, so the archive is one cell.")
    yield from _settings(run.config)
    yield from _how_to_go_on(run)


def _summary(run: Run) -> Iterable[Block]:
    yield Heading(2, "Summary")
    if not _has_rows(run):
        yield Paragraph("There is no row of metrics yet.")
        return
    first, last = ({name: column[place] for name, column in run.metrics.items()} for place in (0, -1))
    meaning = {name: METRICS[name].meaning + "; less is better" * METRICS[name].less_is_better for name in METRICS}
    rows = [(code(name), number(first[name]), number(last[name]), meaning[name]) for name in OF_THE_PAPER]
    yield Grid(("metric", "first", "last", "meaning"), rows, right=(1, 2))
    facts = [
        f"{last['num_solutions']:,.0f} solutions after {last['evaluations']:,.0f} evaluations",
        f"wall time: {duration(last['seconds'])}",
        "hypervolume is exact" if last["hypervolume_exact"] else "hypervolume is an estimate: the fronts are too large",
        *lost_evaluations(run),
        *cautions(run),
    ]
    if below := last["below_reference"]:
        facts.append(f"{below:,.0f} solutions are below the reference point in some objective: they add no hypervolume")
    yield Items(facts)


def _ends(run: Run) -> Iterable[Block]:
    """For each objective, the best solution of the global front."""
    yield Heading(2, "Ends of the global front")
    task, solutions = run.task, run.solutions()
    if not len(solutions.cell):
        yield Paragraph("The archive is empty.")
        return
    rows = []
    for name, best in ends_of_front(task, solutions).items():
        values = [*solutions.objectives[best].tolist(), *solutions.features[best].tolist()]
        rows.append((name, *map(number, values), str(solutions.cell[best])))
    objectives = [task.label(name) + ", less is better" * (name in task.minimised) for name in task.objective_names]
    yield number_grid(("best in", *objectives, *map(task.label, task.feature_names), "cell"), rows)


def _survival(again: Reevaluation) -> Iterable[Block]:
    """How much of the score survives re-evaluation."""
    yield Heading(2, "Re-evaluation")
    over = "once" if again.resamples == 1 else f"over {again.resamples} evaluations"
    scored = again.before["moqd_score"] != 0
    left = f"{again.survival:.1%} of the moqd_score survives" if scored else "there was no moqd_score to survive"
    yield Paragraph(
        f"Every solution was evaluated again ({over}) and added to an empty archive: {left}. {again.moved:.1%} of the "
        f"solutions moved to another cell, and {again.failed} failed."
    )
    rows = [(code(name), number(again.before[name]), number(again.after[name])) for name in again.before]
    yield number_grid(("metric", "archive as found", "re-evaluated"), rows)


def _settings(config: RunConfig) -> Iterable[Block]:
    """All that config.json holds."""
    yield Heading(2, "Settings")
    grouped = ("format", "task", "algorithm", "versions")
    groups = {
        "task": {"name": config.task.name, **config.task.description, **(config.task.options or {})},
        "algorithm": config.algorithm.to_json(),
        "run": {name: value for name, value in config.to_json().items() if name not in grouped},
        "versions": config.surroundings.versions or {},
    }
    rows = [
        (group, name, value if isinstance(value, str) else json.dumps(value))
        for group, settings in groups.items()
        for name, value in settings.items()
    ]
    yield Grid(("of the", "setting", "value"), rows)


def _how_to_go_on(run: Run) -> Iterable[Block]:
    yield Heading(2, "How to go on")
    yield Paragraph(("To continue the run, if it was stopped or with more iterations: ", code(_resume(run))))
    yield Paragraph(("In Python: ", code(f"run = moqd.load_run({', '.join([repr(str(run.path)), *_needed(run)])})")))
    if not _needed(run) or run.config.task.is_of_a_file:
        again = (AGAIN or ["--task FILE.py:NAME"]) if _needed(run) else []
        export = " ".join(["moqd export", shlex.quote(str(run.path)), "--csv", *again])
        yield Paragraph(("To export the archive as a table: ", code(export)))


def _resume(run: Run) -> str:
    assert run.path is not None
    algorithm, task = run.config.algorithm, run.config.task
    own = [] if algorithm.name in ALGORITHMS or algorithm.is_of_a_file else ["algorithm=algorithm"]
    needed = ["task=task"] * (task.options is None) + own
    if needed:
        return f"moqd.resume({str(run.path)!r}, {', '.join(needed)})"
    of_files = {"task": task.is_of_a_file, "algorithm": algorithm.is_of_a_file}
    missing = [f" --{kind} FILE.py:NAME" for kind, of_file in of_files.items() if of_file and not AGAIN]
    return to_resume(run.path) + "".join(missing)


def _needed(run: Run) -> list[str]:
    """What must be given to load it: a task of the user's own, unless config.json says enough of it."""
    task = run.config.task
    own = task.options is None or task.is_of_a_file
    return ["task=task"] * (own and not task.has_bounds)


def _has_rows(run: Run) -> bool:
    return len(run.metrics.get("iteration", ())) > 0
