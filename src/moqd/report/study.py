"""The report of a study: report.md and report.html, made of the same blocks, with tables as CSV and figures."""

import csv
import io
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from moqd.algorithms.algorithm import is_batch
from moqd.core.metrics import METRICS
from moqd.io.files import own_folder, users_folder, write_text
from moqd.plots.style import display_name, task_title, tasks_in_order
from moqd.report import tables as grids
from moqd.report.document import Block, Grid, Heading, Items, Notice, Paragraph, Span, number_grid, strong
from moqd.report.markdown import markdown
from moqd.report.numbers import NOTHING, count, counted, number, signed
from moqd.report.page import page
from moqd.report.pictures import draw_groups, draw_wall_clock
from moqd.runs.config import RunConfig
from moqd.runs.presets import changed_options
from moqd.study import analysis
from moqd.study.analysis import Table
from moqd.study.plan import PlannedRun, Study
from moqd.study.statistics import CONFIDENCE, RESAMPLES
from moqd.study.summaries import Result, Results

Tables = Mapping[str, Table]
CONTENTS = {
    "runs": "every finished run with its final metrics",
    "summary": "medians, quartiles, interquartile means and confidence intervals",
    "comparisons": "the tests: p values, adjusted p values, effect sizes and outcomes",
    "one_hot": "the tests of One-Hot against MOME-PGX",
    "tally": "wins, ties and losses over tasks",
    "data_efficiency": "evaluations and seconds to the final median of each other algorithm",
    "curves": "metrics over evaluations, as medians and quartiles",
    "additions": "solutions that entered the archive, by how they were made",
    "wall_clock": "seconds per iteration and of its parts",
    "parameters": "numbers of parameters",
    "unfinished": "runs that are not finished",
}
"""The contents of the CSV files, by the names of their tables."""
UNFINISHED = "Runs that are not finished"
MOST_AT_ONCE = 40
"""Up to this many unfinished runs are listed at the top; more of them come last."""
VERSION = "version of "
MACHINE = ("processor", "cores", "devices")


def write_study_report(results: Results, folder: Path) -> Path:
    """Writes the report, its tables and its figures into the folder, and returns the path of the page."""
    tables = {name: analysis.TABLES[name](results) for name in CONTENTS}
    for name, table in tables.items():
        write_text(own_folder(users_folder(folder) / "tables") / f"{name}.csv", csv_text(table))
    blocks = list(_blocks(results, tables, own_folder(folder / "figures")))
    write_text(folder / "report.md", markdown(blocks))
    write_text(folder / "report.html", page(f"Study {results.study.name}", blocks))
    return folder / "report.html"


def csv_text(table: Table) -> str:
    """The table as CSV (RFC 4180): numbers in full, missing ones left empty."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table.columns)
    writer.writerows([map(_field, row) for row in table.rows])
    return text.getvalue()


def _field(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if math.isnan(value) else repr(float(value))
    return str(value)


def _blocks(results: Results, tables: Tables, figures: Path) -> Iterator[Block]:
    yield Heading(1, f"Study {results.study.name}")
    yield from _introduction(results, tables["unfinished"])
    if results.results:
        yield from _findings(results, tables, figures)
    if tables["wall_clock"].rows:
        yield from _time_and_size(results, tables, figures)
    yield from _notes(results, tables)
    if len(tables["unfinished"].rows) > MOST_AT_ONCE:
        yield Heading(2, UNFINISHED)
        yield grids.unfinished_grid(tables["unfinished"])


def _introduction(results: Results, unfinished: Table) -> Iterator[Block]:
    study = results.study
    done, planned = len(results.results), len(results.results) + len(results.unfinished)
    names = [display_name(one) for one in study.algorithms]
    tasks = sorted(tasks_in_order(study), key=lambda task: (-len(study.seeds_of(task)), study.seeds_of(task)))
    groups = [(seeds, [task_title(task) for task in group]) for seeds, group in groupby(tasks, study.seeds_of)]
    parts = [
        f"on {counted(len(titles), 'task')} ({', '.join(titles)}), each with {counted(len(seeds), 'seed')} "
        f"({_listed(seeds)})"
        for seeds, titles in groups
    ]
    finished = f"All runs ({planned:,})" if done == planned else f"{done:,} of {planned:,} runs"
    compared = f" {display_name(study.reference)} is compared with each other algorithm." if len(names) > 1 else ""
    yield Paragraph(
        f"{counted(len(names), 'algorithm')} ({', '.join(names)}) {', and '.join(parts)}. {finished} are "
        f"finished.{compared}"
    )
    if unfinished.rows:
        yield from _unfinished(unfinished, done)
    surroundings = _surroundings(results.results)
    yield from _differences(surroundings)
    yield from _reference_points(results)
    yield from _budgets(study)
    yield from _differing_cells(study)
    yield _settings(study, surroundings)
    yield from _variants(study)


def _unfinished(unfinished: Table, done: int) -> Iterator[Block]:
    """A warning, and the runs themselves, which come last if they are many."""
    number = len(unfinished.rows)
    states = Counter(row["state"] for row in grids.rows_of(unfinished))
    shown = ", ".join(f"{times:,} {state}" for state, times in states.most_common())
    where = "below" if number <= MOST_AT_ONCE else f"under {UNFINISHED}"
    effect = "They are not part of any number or figure of this report, which may change once they are finished."
    yield Notice(
        f"{number:,} of {counted(number + done, 'run')} are not finished",
        f" ({shown}), listed {where}. {effect if done else 'There is nothing to report yet.'}",
    )
    if number <= MOST_AT_ONCE:
        yield grids.unfinished_grid(unfinished)


def _listed(seeds: Sequence[int]) -> str:
    consecutive = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]} to {seeds[-1]}" if consecutive else ", ".join(map(str, seeds))


def _surroundings(results: Sequence[Result]) -> dict[str, Counter[str]]:
    """The software and machines that the runs were made with, and how many runs with each."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        made = result.config.surroundings
        versions = {f"{VERSION}{name}": value for name, value in (made.versions or {}).items()}
        own = {**versions, **(made.machine or {}), "devices": made.devices, "xla flags": made.xla_flags}
        for name, value in own.items():
            if value is not None:
                found[name][", ".join(map(str, value)) if isinstance(value, tuple) else str(value)] += 1
    return found


def _differences(surroundings: Mapping[str, Counter[str]]) -> Iterator[Block]:
    """Runs that were not made with the same software or on the same kind of machine."""
    different = {name: values for name, values in surroundings.items() if len(values) > 1}
    if different:
        yield Notice(
            "Not all runs were made in the same environment",
            f" ({', '.join(different)}): see the table below. This can change results slightly, and wall times a lot.",
            "note",
        )
        rows = [
            (name, value, count(times)) for name, found in different.items() for value, times in found.most_common()
        ]
        yield number_grid(("what", "value", "runs"), rows, "What differs between the runs.", texts=2)


def _reference_points(results: Results) -> Iterator[Block]:
    """Hypervolumes from different points cannot be compared."""
    finished = {result.task for result in results.results}
    moved = [task for task in results.study.tasks if task in finished and _reference_point(results, task) is None]
    if moved:
        yield Notice(
            "Hypervolumes cannot be compared",
            f" on {', '.join(map(task_title, moved))}: the runs have different reference points. Give the task a "
            "reference point.",
        )


def _reference_point(results: Results, task: str) -> np.ndarray | None:
    """The reference point of all runs on a task, in the user's units; None if they differ."""
    points = [np.asarray(result.reference_point, float) for result in results.results if result.task == task]
    if not points or any(not np.array_equal(point, points[0]) for point in points):
        return None
    return points[0] * results.tasks[task].direction


def _settings(study: Study, surroundings: Mapping[str, Counter[str]]) -> Grid:
    """What is the same in all runs, or differs by algorithm or task only; and what they were made with."""
    values: dict[str, Callable[[RunConfig], Any]] = {
        "minutes": lambda config: config.minutes,
        "environment steps": lambda config: config.env_steps,
        "iterations": lambda config: config.iterations if config.has_fixed_length else None,
        "evaluations per iteration": _batch,
        "evaluations in all, after a first random batch": _evaluations,
        "episode length": lambda config: (config.task.options or {}).get("episode_length"),
        "cells of the archive": _cells,
        "solutions per cell": lambda config: config.algorithm.options.get("front_length"),
        "iterations between two measurements": lambda config: config.log_every,
    }
    shown = [(name, _shared(study.runs, value)) for name, value in values.items()]
    same = {name: next(iter(found)) for name, found in surroundings.items() if len(found) == 1}
    versions = [f"{name.removeprefix(VERSION)} {value}" for name, value in same.items() if name.startswith(VERSION)]
    if same.get("cores", "").isdecimal():
        same["cores"] = counted(int(same["cores"]), "core")
    machine = [value for name, value in same.items() if name in MACHINE]
    shown += [("versions", ", ".join(versions)), ("machine and devices", "; ".join(machine))]
    return Grid(("setting", "value"), [(name, text) for name, text in shown if text], "Settings of the runs.")


def _evaluations(config: RunConfig) -> int | None:
    """After the first batch; None for a run that its time or its steps end."""
    return config.iterations * _batch(config) if config.has_fixed_length else None


def _budgets(study: Study) -> Iterator[Block]:
    """A warning if numbers of evaluations differ from the reference's by more than rounding to iterations explains."""
    most = {(run.task, run.algorithm): _evaluations(run.config) or 0 for run in study.runs}
    if other := _unlike_reference(study, most, partial(math.isclose, rel_tol=0.05)):
        yield Notice(
            "Not all algorithms have the same budget:",
            f" {other} made more or fewer evaluations than "
            f"{display_name(study.reference)} (see the settings); set evaluations instead of iterations to "
            "compare them fairly.",
        )


def _differing_cells(study: Study) -> Iterator[Block]:
    """A warning if archives have different cells: the MOQD score is a sum over them, and coverage a share of them."""
    cells = {(run.task, run.algorithm): _cells(run.config) for run in study.runs}
    if other := _unlike_reference(study, cells, lambda own, reference: own is None or own == reference):
        yield Notice(
            "Not all archives have the same cells:",
            f" {other} and {display_name(study.reference)} have different cells "
            "(see the settings), so that their MOQD scores, sparsity scores and coverage cannot be compared; "
            "give all algorithms the same num_cells.",
        )


def _unlike_reference(study: Study, values: Mapping[tuple[str, str], Any], same: Callable[[Any, Any], bool]) -> str:
    """The algorithms whose value, by task and algorithm, is not the same as the reference's on some task."""
    return ", ".join(
        display_name(algorithm)
        for algorithm in study.algorithms
        if not all(same(values[task, algorithm], values[task, study.reference]) for task in study.tasks)
    )


def _variants(study: Study) -> Iterator[Block]:
    """The algorithms whose options differ from those of their name in moqd."""
    rows = []
    for label in study.algorithms:
        configs = [run.config.algorithm for run in study.runs if run.algorithm == label]
        base = configs[0].name
        changed = sorted({f"{name} = {value}" for one in configs for name, value in changed_options(one).items()})
        if changed or label != base:
            rows.append((display_name(label), display_name(base), ", ".join(changed) or "none"))
    if rows:
        yield Grid(("algorithm", "is", "with"), rows, "Algorithms whose options differ from their preset.")


def _batch(config: RunConfig) -> int:
    return sum(value for name, value in config.algorithm.options.items() if is_batch(name))


def _cells(config: RunConfig) -> int | tuple[int, ...] | None:
    """Which a file has as a list where they are a grid."""
    given = config.algorithm.options.get("num_cells")
    return tuple(given) if isinstance(given, list) else given


def _shared(runs: Sequence[PlannedRun], value: Callable[[RunConfig], Any]) -> str:
    """The value of all runs; the most frequent one last, after those of some algorithms or tasks."""
    found = [(run, value(run.config)) for run in runs]
    frequent = [one for one, _ in Counter(each for _, each in found if each is not None).most_common()]
    if len(frequent) < 2:
        return "".join(map(_setting, frequent))
    ways: list[Callable[[PlannedRun], str]] = [
        lambda run: display_name(run.algorithm),
        lambda run: task_title(run.task),
        lambda run: f"{display_name(run.algorithm)} on {task_title(run.task)}",
    ]
    for name_of in ways:
        names = {one: list(dict.fromkeys(name_of(run) for run, each in found if each == one)) for one in frequent}
        if sum(map(len, names.values())) == len({name_of(run) for run, each in found if each is not None}):
            break
    special = [f"{_setting(one)} ({', '.join(names[one])})" for one in frequent[1:]]
    return f"{'; '.join(special)}; else {_setting(frequent[0])}"


def _setting(value: int | tuple[int, ...]) -> str:
    if isinstance(value, tuple):
        return "a grid of " + " \N{MULTIPLICATION SIGN} ".join(map(count, value))
    return count(value)


def _findings(results: Results, tables: Tables, figures: Path) -> Iterator[Block]:
    study, tasks = results.study, tasks_in_order(results.study)
    yield Heading(2, "Results")
    yield from grids.results_blocks(tables["summary"], tasks, study.algorithms)
    yield from _comparisons(results, tables)
    reached = [task for task in tasks if results.of(task, study.reference)]
    if len(study.algorithms) > 1 and reached:
        yield Heading(2, "Data efficiency")
        yield from grids.efficiency_blocks(tables["data_efficiency"], reached, study.reference)
    if tables["additions"].rows:
        yield Heading(2, "What fills the archive")
        yield grids.additions_grid(tables["additions"])
    yield Heading(2, "Figures")
    yield from draw_groups(results, figures)


def _comparisons(results: Results, tables: Tables) -> Iterator[Block]:
    study, tasks = results.study, tasks_in_order(results.study)
    reference = display_name(study.reference)
    yield Heading(2, "Comparisons")
    if len(study.algorithms) == 1:
        yield Paragraph("The study has one algorithm, so there is nothing to compare.")
    elif not any(result.algorithm == study.reference for result in results.results):
        yield Paragraph(f"No run of {reference} is finished, so there is nothing to compare the others with yet.")
    else:
        fewer = " (fewer where an algorithm has no finished run)" if results.unfinished else ""
        yield Paragraph(
            f"{reference} is compared with each other algorithm by the two-sided Mann-Whitney U test on the final "
            "values of the runs. The p values are adjusted by the Holm-Bonferroni method within each task and metric, "
            f"over {counted(len(study.algorithms) - 1, 'comparison')}{fewer}. A win or a loss is significant at "
            f"{analysis.SIGNIFICANCE}; anything else is a tie."
        )
        yield from grids.too_few_seeds(tables["comparisons"])
        yield grids.tally_grid(tables["tally"], study.reference)
        yield from grids.comparison_grids(tables["comparisons"], tasks)
    if tables["one_hot"].rows:
        yield Heading(3, "One-Hot against MOME-PGX")
        yield Paragraph(
            "Both improve solutions for one objective at a time: One-Hot with networks that are conditioned on the "
            "objective, MOME-PGX with separate networks for each objective. This is a separate comparison, so its p "
            "values are not adjusted."
        )
        yield from grids.too_few_seeds(tables["one_hot"])
        yield grids.pair_grid(tables["one_hot"], tasks)


def _time_and_size(results: Results, tables: Tables, figures: Path) -> Iterator[Block]:
    yield Heading(2, "Wall-clock time and number of parameters")
    timings = results.timings.values()
    machines = sorted({(", ".join(timing["devices"]), timing["cores"], timing["processor"]) for timing in timings})
    if len(machines) > 1:
        yield Notice("These times cannot be compared:", " they were not measured on the same kind of machine.", "note")
    where = [f"{counted(cores, 'core')} of {processor} ({devices})" for devices, cores, processor in machines]
    batches: dict[str, set[int]] = defaultdict(set)
    for run in results.study.runs:
        if (run.task, run.algorithm) in results.timings:
            batches[run.algorithm].add(run.config.algorithm.options.get("pg_batch", 0))
    offspring = [f"{' or '.join(map(str, sorted(sizes)))} ({display_name(name)})" for name, sizes in batches.items()]
    yield Paragraph(
        f"Each part of an iteration was measured on its own, with {' or '.join(where)}. In an iteration, gradients "
        f"make {' and '.join(offspring)} offspring."
    )
    yield from draw_wall_clock(results, figures)
    yield grids.wall_clock_grid(tables["wall_clock"])
    yield grids.parameters_grid(tables["parameters"])


def _notes(results: Results, tables: Tables) -> Iterator[Block]:
    yield Heading(2, "How the numbers are made")
    if results.results:
        yield Items([(strong(what), f" {text}") for what, text in _explanations(results, tables["summary"]).items()])
        yield _ranges(results)
        yield _representatives(results)
    yield Paragraph("These files have all numbers in full, with algorithms and tasks by their names in moqd.")
    files = {name: f": {CONTENTS[name]} ({counted(len(table.rows), 'row')})" for name, table in tables.items()}
    yield Items([(Span(f"{name}.csv", address=f"tables/{name}.csv"), text) for name, text in files.items()])


def _explanations(results: Results, summary: Table) -> dict[str, str]:
    """What each number means, by what it is about."""
    inexact = sum(not np.all(result.metrics.get("hypervolume_exact", 1.0)) for result in results.results)
    estimates = f"; in {counted(inexact, 'run')} some are estimates, because the fronts are too large for exact ones"
    missing = _left_out(results, summary)
    notes = {
        "Medians and quartiles": "are over the seeds of an algorithm on a task, of the final values of the runs, by "
        "linear interpolation. Over time, they are taken where all of these runs were measured.",
        "Interquartile means": "leave out a quarter of the seeds, rounded down, at either end; for fewer than four "
        f"seeds they are the mean. Their {CONFIDENCE:.0%} confidence intervals are from a percentile bootstrap with "
        f"{RESAMPLES:,} resamples.",
        "Sparsity": "is computed on objectives scaled by their smallest and largest value in all final archives of the "
        "study on a task, given in the table below. The MOQD sparsity score is the mean over all cells, where cells "
        "with fewer than two solutions count as 0; that of occupied cells is the mean over cells with at least two.",
        "Hypervolume": f"is measured from the reference points below{estimates if inexact else ''}.",
        "Archives and global fronts": "are those of one run per algorithm and task: the one with the median final MOQD "
        "score, or the lower of two.",
        "Values that are not finite": f"are left out of their metric: {'; '.join(missing)}."
        if missing
        else "would be left out; there are none.",
        "Wall times": "are those measured by the runs. They include compilation, and depend on what else the machine "
        "was doing.",
    }
    failed = [float(result.metrics["failed_evaluations"][-1]) for result in results.results]
    if any(failed):
        runs = counted(sum(number > 0 for number in failed), "run")
        notes["Evaluations that failed"] = f"are in no archive: {count(sum(failed))} in {runs}."
    return notes


def _left_out(results: Results, summary: Table) -> list[str]:
    """The seeds that are missing in a metric."""
    missing = []
    for row in grids.rows_of(summary):
        number = len(results.of(row["task"], row["algorithm"])) - row["seeds"]
        if number:
            where = f"{display_name(row['algorithm'])} on {task_title(row['task'])}"
            missing.append(f"{METRICS[row['metric']].label} of {counted(number, 'run')} of {where}")
    return missing


def _ranges(results: Results) -> Grid:
    """The reference point, smallest and largest value of each objective."""
    rows = []
    for task in tasks_in_order(results.study):
        archives = [result.archive for result in results.results if result.task == task]
        if not archives:
            continue
        here, reference = results.tasks[task], _reference_point(results, task)
        fitness = np.concatenate([np.asarray(one.fitness, float)[np.asarray(one.valid)] for one in archives])
        for i, (name, values) in enumerate(zip(here.objective_names, (fitness * here.direction).T, strict=True)):
            ends = (values.min(), values.max()) if len(values) else (math.nan, math.nan)
            start = "differs" if reference is None else signed(number(reference[i]))
            label = here.label(name) + ", less is better" * (name in here.minimised)
            rows.append((task_title(task), label, start, *(signed(number(end)) for end in ends)))
    head = ("task", "objective", "reference point", "smallest", "largest")
    caption = "The reference points of the hypervolume, and the values by which objectives are scaled for sparsity."
    return number_grid(head, rows, caption, texts=2)


def _representatives(results: Results) -> Grid:
    """The seed whose archive is shown, by algorithm and task."""
    tasks, rows = tasks_in_order(results.study), []
    for label in results.study.algorithms:
        found = [results.of(task, label) for task in tasks]
        seeds = [str(analysis.representative(runs).seed) if runs else NOTHING for runs in found]
        rows.append((display_name(label), *seeds))
    caption = "Seeds of the runs whose archives and fronts are shown."
    return number_grid(("algorithm", *map(task_title, tasks)), rows, caption)
