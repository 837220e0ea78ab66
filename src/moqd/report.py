"""The report of one run: report.md, to be read by people, and the figures that it shows."""

import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from moqd.errors import InputError
from moqd.experiment.store import Run
from moqd.files import own_folder, write_file, write_text
from moqd.metrics import cell_hypervolumes, non_dominated
from moqd.plots.archive_map import archive_map_figure
from moqd.plots.fronts import fronts_figure
from moqd.plots.learning_curves import learning_curves_figure
from moqd.plots.overview import overview_figure

CAPTIONS = {
    "overview": "The archive at a glance: the hypervolume of every cell's front, and the fronts.",
    "learning_curves": "The six metrics of the paper over evaluations.",
    "archive_map": "Where in feature space solutions were found, and the hypervolume of every cell's front.",
    "fronts": "The front of every cell, and the global front of what nothing in the archive dominates.",
}
MEANINGS = {
    "moqd_score": "hypervolume of the cells' fronts, summed",
    "moqd_sparsity_score": "mean sparsity of the cells' fronts; less is better",
    "global_hypervolume": "hypervolume of the global front",
    "global_sparsity": "sparsity of the global front; less is better",
    "max_sum_scores": "largest sum of objectives of a solution, minimised ones counted negatively",
    "coverage": "share of cells that hold a solution",
}


def write_report(run: Run) -> Path:
    """Writes report.md and its figures (PNG and PDF) into the folder of the run, and says where the report is."""
    if run.path is None:
        raise InputError("the run has no folder to write a report to; give one with moqd.run(..., out=folder).")
    folder = own_folder(run.path / "figures")
    figures = _figures(run)
    for name, figure in figures.items():
        _save(figure, folder, name)
    write_text(run.path / "report.md", _text(run, list(figures)))
    return run.path / "report.md"


def _figures(run: Run) -> dict[str, Figure]:
    """By name, in the order of the report; without features there is no map."""
    volume = cell_hypervolumes(run.archive, run.reference_point)
    figures = {"overview": overview_figure(run, volume), "learning_curves": learning_curves_figure(run.metrics)}
    if run.task.num_features:
        figures["archive_map"] = archive_map_figure(run.archive, volume, run.task)
    return figures | {"fronts": fronts_figure(run.archive, run.task)}


def _save(figure: Figure, folder: Path, name: str) -> None:
    """Without the date, so that the same run gives the same bytes."""
    write_file(folder / f"{name}.png", lambda beside: figure.savefig(beside, format="png", dpi=150))
    without_date = {"CreationDate": None}
    write_file(
        folder / f"{name}.pdf", lambda beside: figure.savefig(beside, format="pdf", dpi=150, metadata=without_date)
    )


def _text(run: Run, figures: Sequence[str]) -> str:
    name, seed = run.config["algorithm"]["name"], run.config["seed"]
    parts = [_plain(f"# {name} on {run.task.name}, seed {seed}"), *_stopped(run), *_summary(run), *_ends(run)]
    parts += ["## Figures", *(_embedded(figure) for figure in figures)]
    if not run.task.num_features:
        parts.append("There is no map of the archive: the task has no features, so the archive is one cell.")
    return "\n\n".join([*parts, *_settings(run.config), *_how_to_go_on(run)]) + "\n"


def _stopped(run: Run) -> Iterable[str]:
    """A run that did not get to its end says so first."""
    done, planned = (run.metrics["iteration"][-1] if _has_rows(run) else 0), run.config["iterations"]
    if done < planned:
        yield f"**Stopped at iteration {done:.0f} of {planned}**; continue with: `{_resume(run)}`"


def _summary(run: Run) -> Iterable[str]:
    yield "## Summary"
    if not _has_rows(run):
        yield "There is no row of metrics yet."
        return
    first, last = ({name: column[place] for name, column in run.metrics.items()} for place in (0, -1))
    rows = [(f"`{name}`", _number(first[name]), _number(last[name]), meaning) for name, meaning in MEANINGS.items()]
    yield _table(("metric", "first", "last", "meaning"), rows)
    facts = [
        f"{last['num_solutions']:,.0f} solutions after {last['evaluations']:,.0f} evaluations",
        f"wall time: {_duration(last['seconds'])}",
        "hypervolume is exact" if last["hypervolume_exact"] else "hypervolume is an estimate: the fronts are too large",
    ]
    if last["failed_evaluations"]:
        facts.append(f"{last['failed_evaluations']:,.0f} evaluations failed and are not in the archive")
    if last["below_reference"]:
        facts.append(
            f"{last['below_reference']:,.0f} solutions are below the reference point in some objective: they add no "
            "hypervolume"
        )
    yield "\n".join(f"- {fact}" for fact in facts)


def _ends(run: Run) -> Iterable[str]:
    """For each objective the solution of the global front that is best in it."""
    yield "## Ends of the global front"
    task, valid = run.task, np.asarray(run.archive.valid)
    if not valid.any():
        yield "The archive is empty."
        return
    fitness, feature = (np.asarray(leaf, float)[valid] for leaf in (run.archive.fitness, run.archive.feature))
    cell = np.nonzero(valid)[0]
    front = np.flatnonzero(non_dominated(fitness))
    rows = []
    for i, name in enumerate(task.objective_names):
        best = max(front, key=lambda row: (fitness[row, i], fitness[row].sum()))
        rows.append((name, *map(_number, (*(fitness[best] * task.direction), *feature[best])), str(cell[best])))
    objectives = [task.label(name) + ", less is better" * (name in task.minimised) for name in task.objective_names]
    yield _table(("best in", *objectives, *map(task.label, task.feature_names), "cell"), rows)


def _embedded(figure: str) -> str:
    return f"![{CAPTIONS[figure]}](figures/{figure}.png)\n\n*{CAPTIONS[figure]}* ([PDF](figures/{figure}.pdf))"


def _settings(config: Mapping[str, Any]) -> Iterable[str]:
    """All that config.json holds."""
    yield "## Settings"
    task = {**config["task"], **(config["task"].get("options") or {})}
    task.pop("options", None)
    alone = {name: value for name, value in config.items() if name not in ("task", "algorithm", "versions", "format")}
    groups = {"task": task, "algorithm": config["algorithm"], "run": alone, "versions": config.get("versions", {})}
    rows = [
        (group, name, value if isinstance(value, str) else json.dumps(value))
        for group, settings in groups.items()
        for name, value in settings.items()
    ]
    yield _table(("of the", "setting", "value"), rows)


def _how_to_go_on(run: Run) -> Iterable[str]:
    yield "## How to go on"
    yield f"To continue the run, if it was stopped or with more iterations: `{_resume(run)}`"
    if _is_own(run):
        yield f"In Python, with the task that was run: `run = moqd.load_run({str(run.path)!r}, task=task)`"
    else:
        yield f"In Python: `run = moqd.load_run({str(run.path)!r})`"
        yield f"To have the archive as a table: `moqd export {shlex.quote(str(run.path))} --csv`"


def _resume(run: Run) -> str:
    return f"moqd.resume({str(run.path)!r}, task=task)" if _is_own(run) else f"moqd resume {shlex.quote(str(run.path))}"


def _is_own(run: Run) -> bool:
    """Whether the task is the user's own, which no file holds and the command line cannot make."""
    return run.config["task"].get("options") is None


def _has_rows(run: Run) -> bool:
    return len(run.metrics.get("iteration", ())) > 0


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_plain, line)) + " |" for line in lines)


def _plain(text: str) -> str:
    """Text in which nothing is Markdown that would break a table or hide something."""
    return re.sub(r"([\\|<*])", r"\\\1", " ".join(text.split()))


def _number(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "none"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
