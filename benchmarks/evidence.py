"""What the MOME-P2C paper claims, beside what the studies in results/ show: tables of README.md and docs/.

python -m benchmarks.evidence

reads the reports and records of the studies and what `make bench` has measured, and writes the tables anew, between the
comments that mark their places.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import median
from typing import NamedTuple

import numpy as np

import moqd
from benchmarks.claims import BASELINES, SCORE, SUM, VOLUME, claims, counts, losses
from benchmarks.speeds import checkpoints, costs, rollouts, speeds, starts
from benchmarks.tables import ABLATIONS, CROWDING, MAIN, PLUS, RESULTS, ROOT, WALKER, line, rows_of, short
from moqd.core.metrics import METRICS
from moqd.io.files import read_tensors
from moqd.plots.style import display_name
from moqd.report.tables import SOURCES
from moqd.study.execute import stored_study
from moqd.study.summaries import record_of

DOCUMENTS = (
    ROOT / "README.md",
    *(ROOT / "docs" / name for name in ("evidence.md", "locomotion.md", "mome-p2c-plus.md", "runs.md", "variation.md")),
)


def state(*studies: str) -> Iterator[str]:
    """How many runs there are, and which are not yet."""
    for name in studies:
        study, missing = stored_study(RESULTS / name), rows_of(name, "unfinished")
        if not missing:
            yield f"All {len(study.runs)} runs of {name} are done."
            continue
        kinds = dict.fromkeys((row["task"], row["algorithm"]) for row in missing)
        seeds = {of: ", ".join(row["seed"] for row in missing if (row["task"], row["algorithm"]) == of) for of in kinds}
        lacking = "; ".join(f"{display_name(of[1])} on {of[0]} seed {seeds[of]}" for of in kinds)
        yield f"{len(study.runs) - len(missing)} of the {len(study.runs)} runs of {name} are done (not yet: {lacking})."


def medians(metrics: Sequence[str] = tuple(METRICS), study: str = MAIN) -> Iterator[str]:
    """Of every algorithm, with the best of a task in bold, if all have as many seeds."""
    found = rows_of(study, "summary")
    algorithms = list(dict.fromkeys(row["algorithm"] for row in found))
    yield line(("task", "metric", *(display_name(label) for label in algorithms)))
    yield line([":--", ":--", *["--:"] * len(algorithms)])
    for task in dict.fromkeys(row["task"] for row in found):
        for metric in metrics:
            rows = {row["algorithm"]: row for row in found if (row["task"], row["metric"]) == (task, metric)}
            values = {label: row["median"] for label, row in rows.items() if row["median"]}
            fair = len({row["seeds"] for row in rows.values()}) == 1
            yield line((task, METRICS[metric].label, *_marked(algorithms, values, metric, fair)))


def _marked(algorithms: Sequence[str], values: dict[str, str], metric: str, fair: bool = True) -> Iterator[str]:
    """The values as cells, the best bold if they can be compared."""
    numbers = [float(value) for value in values.values()]
    best = (min if METRICS[metric].less_is_better else max)(numbers, default=0.0)
    for label in algorithms:
        cell = short(values.get(label, ""))
        yield f"**{cell}**" if fair and label in values and float(values[label]) == best else cell


def late_seeds(first: int = 3) -> Iterator[str]:
    """Medians of those seeds only on which no default of ours was chosen."""
    rows = [row for row in rows_of(MAIN, "runs") if int(row["seed"]) >= first]
    algorithms = list(dict.fromkeys(row["algorithm"] for row in rows))
    yield line(("task", "metric", *(display_name(label) for label in algorithms)))
    yield line([":--", ":--", *["--:"] * len(algorithms)])
    for task in dict.fromkeys(row["task"] for row in rows):
        for metric in (SCORE, VOLUME):
            found = {
                label: [float(row[metric]) for row in rows if (row["task"], row["algorithm"]) == (task, label)]
                for label in algorithms
            }
            values = {label: str(median(one)) for label, one in found.items() if one}
            fair = len({len(one) for one in found.values()}) == 1
            yield line((task, METRICS[metric].label, *_marked(algorithms, values, metric, fair)))


def efficiency() -> Iterator[str]:
    """After which share of the evaluations MOME-P2C has what others end with, and what such a run takes."""
    yield line(("task", "", *(display_name(label) for label in BASELINES)))
    yield line([":--", ":--", *["--:"] * len(BASELINES)])
    found = {(row["task"], row["metric"], row["algorithm"]): row for row in rows_of(MAIN, "data_efficiency")}
    for task in dict.fromkeys(of[0] for of in found):
        for metric in (SCORE, VOLUME):
            rows = [found[task, metric, label] for label in BASELINES]
            shares = [
                "-" if not row["target"] else f"{float(row['share']):.0%}" if row["share"] else "never" for row in rows
            ]
            yield line((task, f"evaluations to its {METRICS[metric].label}", *shares))
        times = [_times_as_long(task, label) for label in BASELINES]
        yield line((task, "a run of MOME-P2C takes", *times))


def _times_as_long(task: str, other: str) -> str:
    """The time of a run of MOME-P2C beside that of another, roughly: not all were made on the same machine."""
    seconds = {
        label: [
            float(row["seconds"]) for row in rows_of(MAIN, "runs") if (row["task"], row["algorithm"]) == (task, label)
        ]
        for label in ("mome-p2c", other)
    }
    if not all(seconds.values()):
        return "-"
    return f"{median(seconds['mome-p2c']) / median(seconds[other]):.2g} times as long"


def sizes() -> Iterator[str]:
    """Parameters that are trained beside the archive, and seconds of an iteration, where they were measured."""
    yield line(("task", "algorithm", "actors", "critics", "s per iteration", "gradient variation", "training"))
    yield line([":--", ":--", *["--:"] * 5])
    clock = {(row["task"], row["algorithm"], row["part"]): row["median"] for row in rows_of(MAIN, "wall_clock")}
    for row in rows_of(MAIN, "parameters"):
        of = row["task"], row["algorithm"]
        parts = ("iteration", "policy_gradient_variation", "training")
        times = [short(clock.get((*of, part), "")) for part in parts]
        yield line((of[0], display_name(of[1]), f"{int(row['actors']):,}", f"{int(row['critics']):,}", *times))


def additions() -> Iterator[str]:
    """Solutions that entered the archive in either half of the iterations, of algorithms that learn."""
    sources = {source: label for source, label in SOURCES.items() if source != "random"}
    yield line(("task", "algorithm", *sources.values()))
    yield line([":--", ":--", *["--:"] * len(sources)])
    found = {(row["task"], row["algorithm"], row["source"]): row for row in rows_of(MAIN, "additions")}
    for of in dict.fromkeys(key[:2] for key in found if key[2] == "pg"):
        rows = [found.get((*of, source)) for source in sources]
        cells = [f"{short(row['first_half'])} / {short(row['second_half'])}" if row else "-" for row in rows]
        yield line((of[0], display_name(of[1]), *cells))


class Final(NamedTuple):
    """What a run ends with."""

    cells: int
    cell: np.ndarray
    fitness: np.ndarray
    """Of each solution."""

    def front(self) -> np.ndarray:
        """Of all cells together."""
        return self.fitness[np.asarray(moqd.non_dominated(self.fitness))]

    def volumes(self, reference_point: np.ndarray) -> list[float]:
        """Of each occupied cell."""
        return [moqd.hypervolume(self.fitness[self.cell == one], reference_point) for one in np.unique(self.cell)]


@cache
def finals(study: str, task: str, algorithm: str) -> list[Final]:
    """Of the runs that there are, seed by seed."""
    runs = [run for run in stored_study(RESULTS / study).runs if (run.task, run.algorithm) == (task, algorithm)]
    records = [read_tensors(path) for run in runs if (path := record_of(RESULTS, run)).exists()]
    return [
        Final(len(record["valid"]), np.nonzero(record["valid"])[0], record["fitness"].astype(float))
        for record in records
    ]


def fastest(task: str, study: str = MAIN) -> Iterator[str]:
    """The most of the first objective (forward velocity) that each run on a task has in its archive."""
    yield line(("algorithm", f"most forward velocity on {task}, seed by seed"))
    yield line([":--", ":--"])
    for algorithm in stored_study(RESULTS / study).algorithms:
        most = [one.fitness[:, 0].max() for one in finals(study, task, algorithm)]
        if most:
            yield line((display_name(algorithm), ", ".join(f"{value:.0f}" for value in most)))


def front_sizes() -> Iterator[str]:
    """How many solutions are on the global front: medians over seeds."""
    study = stored_study(RESULTS / MAIN)
    yield line(("algorithm", *study.tasks))
    yield line([":--", *["--:"] * len(study.tasks)])
    for algorithm in study.algorithms:
        fronts = [[len(one.front()) for one in finals(MAIN, task, algorithm)] for task in study.tasks]
        yield line((display_name(algorithm), *(short(median(sizes)) if sizes else "-" for sizes in fronts)))


def _scores(task: str, algorithm: str, study: str = MAIN) -> list[float]:
    """The MOQD scores of the runs that there are, seed by seed."""
    return [float(row[SCORE]) for row in rows_of(study, "runs") if (row["task"], row["algorithm"]) == (task, algorithm)]


def scores(task: str, study: str) -> Iterator[str]:
    """The MOQD score of each run on a task, and what it is made of: how many cells, and the score of one."""
    yield line(("algorithm", "MOQD score, seed by seed", "occupied cells", "MOQD score for each"))
    yield line([":--", ":--", ":--", ":--"])
    for algorithm in stored_study(RESULTS / study).algorithms:
        cells = [len(np.unique(one.cell)) for one in finals(study, task, algorithm)]
        if cells:
            found = _scores(task, algorithm, study)
            each = [score / number for score, number in zip(found, cells, strict=True)]
            columns = (f"{value:,.0f}" for value in found), map(str, cells), (f"{value:.0f}" for value in each)
            yield line((display_name(algorithm), *("; ".join(column) for column in columns)))


def seed_by_seed(study: str) -> Iterator[str]:
    """The two scores of each run of a study that is done."""
    found = rows_of(study, "runs")
    yield line(("task", "algorithm", *(f"{METRICS[metric].label}, seed by seed" for metric in (SCORE, VOLUME))))
    yield line([":--"] * 4)
    for of in dict.fromkeys((row["task"], row["algorithm"]) for row in found):
        rows = [row for row in found if (row["task"], row["algorithm"]) == of]
        values = ("; ".join(short(row[metric]) for row in rows) for metric in (SCORE, VOLUME))
        yield line((of[0], display_name(of[1]), *values))


def other_measures() -> Iterator[str]:
    """Medians of what the paper does not measure: the score of a cell, and volumes above the nadir."""
    study = stored_study(RESULTS / MAIN)
    yield line(("task", "", *(display_name(label) for label in study.algorithms)))
    yield line([":--", ":--", *["--:"] * len(study.algorithms)])
    for task in study.tasks:
        found = {label: finals(MAIN, task, label) for label in study.algorithms}
        nadir = np.min([one.front().min(axis=0) for every in found.values() for one in every], axis=0)
        measures: dict[str, dict[str, list[float]]] = {
            "MOQD score for each occupied cell": {
                label: [
                    score / len(np.unique(one.cell)) for score, one in zip(_scores(task, label), every, strict=True)
                ]
                for label, every in found.items()
            },
            f"MOQD score above the nadir ({', '.join(f'{value:.3g}' for value in nadir)})": {
                label: [sum(one.volumes(nadir)) for one in every] for label, every in found.items()
            },
            "global hypervolume above the nadir": {
                label: [moqd.hypervolume(one.front(), nadir) for one in every] for label, every in found.items()
            },
        }
        for what, of in measures.items():
            values = {label: str(median(every)) for label, every in of.items() if every}
            fair = len({len(every) for every in of.values()}) == 1
            yield line((task, what, *_marked(study.algorithms, values, SCORE, fair)))


def extra_cells(other: str = "mome-pgx", own: str = "mome-p2c", more: float = 1 / 3) -> Iterator[str]:
    """What is in the cells that another algorithm fills with more of its seeds, by a third of them or more."""
    where = (
        f"{display_name(other)}, in them",
        f"{display_name(other)}, everywhere",
        f"{display_name(own)}, everywhere",
    )
    yield line(("task", "cells", *(f"{one}: forward, energy" for one in where)))
    yield line([":--", *["--:"] * 4])
    for task in stored_study(RESULTS / MAIN).tasks:
        theirs, ours = finals(MAIN, task, other), finals(MAIN, task, own)
        if theirs:
            cells = np.flatnonzero(_shares_of_seeds(theirs) - _shares_of_seeds(ours) >= more)
            there = [one.fitness[np.isin(one.cell, cells)] for one in theirs]
            groups = (there, *([one.fitness for one in every] for every in (theirs, ours)))
            middle = (np.median(np.concatenate(group), axis=0)[[0, -1]] for group in groups)
            yield line((task, str(len(cells)), *(", ".join(f"{value:.3g}" for value in one) for one in middle)))


def _shares_of_seeds(runs: Sequence[Final]) -> np.ndarray:
    """Of each cell: with which share of the seeds there is something in it."""
    return np.mean([np.isin(np.arange(one.cells), one.cell) for one in runs], axis=0)


def cell_fronts(name: str = MAIN) -> Iterator[str]:
    """Of fronts in cells: size, the longest of all seeds, extent, sparsity, and what it would be if evenly spread."""
    study = stored_study(RESULTS / name)
    yield line(("task", "algorithm", "solutions", "the most", "extent", "sparsity", "if evenly spread"))
    yield line([":--", ":--", *["--:"] * 5])
    for task in study.tasks:
        found = {label: finals(name, task, label) for label in study.algorithms}
        scale = np.ptp(np.concatenate([one.fitness for every in found.values() for one in every]), axis=0)
        for label, every in found.items():
            if every:
                measured = np.median([_mean_front(one, scale) for one in every], axis=0)
                size, sparsity, even, *extent = (short(value) for value in measured)
                most = max(np.bincount(one.cell).max() for one in every)
                yield line((task, display_name(label), size, str(most), ", ".join(extent), sparsity, even))


def _mean_front(final: Final, scale: np.ndarray) -> np.ndarray:
    """Over the cells with two solutions or more: number of solutions, sparsity, sparsity if even, and extents."""
    fronts = [final.fitness[final.cell == one] / scale for one in np.unique(final.cell)]
    rows = []
    for front in fronts:
        if len(front) > 1:
            extent = np.ptp(front, axis=0)
            even = np.sum((extent / (len(front) - 1)) ** 2)
            rows.append((len(front), moqd.sparsity(front), even, *extent))
    return np.mean(rows, axis=0)


def design() -> Iterator[str]:
    """Of the design problems, the ratios over all of them."""
    text = (RESULTS / "bench" / "design" / "README.md").read_text()
    section = text.partition("## All problems")[2].partition("\n## ")[0]
    yield from (row for row in section.splitlines() if row.startswith("|"))


TABLES = {
    "design": design,
    "speeds": speeds,
    "costs": costs,
    "rollouts": rollouts,
    "starts": starts,
    "checkpoints": checkpoints,
    "state": lambda: state(MAIN, ABLATIONS),
    "state of the main comparison": lambda: state(MAIN),
    "counts": counts,
    "medians": medians,
    "main table": lambda: medians((SCORE, VOLUME)),
    "late seeds": late_seeds,
    "claims of the main comparison": lambda: claims(MAIN),
    "losses": losses,
    "efficiency": efficiency,
    "other measures": other_measures,
    "claims of the ablations": lambda: claims(ABLATIONS),
    "ablation medians": lambda: medians((SCORE, VOLUME, SUM), ABLATIONS),
    "walker medians": lambda: medians((SCORE, VOLUME, SUM, "coverage"), WALKER),
    "walker scores": lambda: scores("walker-2", WALKER),
    "crowding medians": lambda: medians((SCORE, VOLUME, SUM, "coverage", "moqd_sparsity_score"), CROWDING),
    "crowding scores": lambda: scores("hopper-2", CROWDING),
    "crowding fronts": lambda: cell_fronts(CROWDING),
    "fastest walkers": lambda: fastest("walker-2", WALKER),
    "fastest ants": lambda: fastest("ant-2"),
    "additions": additions,
    "front sizes": front_sizes,
    "cell fronts": cell_fronts,
    "extra cells": extra_cells,
    "sizes and times": sizes,
    "plus seeds": lambda: seed_by_seed(PLUS),
    "state of plus": lambda: state(PLUS),
}


def filled(text: str) -> str:
    """The document with its tables made anew: <!-- NAME: made by ... --> up to <!-- end -->."""

    def table(match: re.Match[str]) -> str:
        return "\n".join([match[1], "", *TABLES[match[2]](), "", "<!-- end -->"])

    return re.sub(r"(<!-- ([a-z ]+): made by .*? -->)\n.*?<!-- end -->", table, text, flags=re.DOTALL)


def main() -> None:
    for path in DOCUMENTS:
        path.write_text(filled(path.read_text()))
        print(f"written to {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
