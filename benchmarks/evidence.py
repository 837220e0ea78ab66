"""What the MOME-P2C paper claims, beside what the studies in results/ show: tables of docs/evidence.md and README.md.

python -m benchmarks.evidence

reads the CSV tables of the reports and what `make bench` has measured, and writes the tables anew, between the comments
that mark their places.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import moqd
from moqd.experiment.analysis import METRICS, SIGNIFICANCE
from moqd.experiment.conduct import stored_study
from moqd.experiment.record import record_of
from moqd.experiment.study import Study
from moqd.files import read_tensors
from moqd.plots.style import display_name
from moqd.report.tables import SOURCES

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
DOCUMENTS = (ROOT / "docs" / "evidence.md", ROOT / "README.md")
MAIN, ABLATIONS, WALKER = "small-main", "small-ablations", "small-walker"
ALL = ("hopper-2", "ant-2", "walker-2", "hopper-3")
TWO = ("hopper-2", "ant-2")
MOEAS = ("nsga2-small", "spea2-small")
BASELINES = ("mome-pgx", "mome", "pga-me", *MOEAS)
BETTER, NO_WORSE, WORSE = "better", "no worse", "worse"
SCORE, VOLUME, SUM = "moqd_score", "global_hypervolume", "max_sum_scores"
SPARSITIES = ("moqd_sparsity_score", "global_sparsity")


class Claim(NamedTuple):
    """What the paper says of MOME-P2C beside others, on tasks that were run here."""

    says: str
    expected: str
    metrics: tuple[str, ...]
    tasks: tuple[str, ...]
    others: tuple[str, ...]
    study: str = MAIN
    table: str = "comparisons"
    """Of the report. In that of One-Hot, it is One-Hot that is compared."""


CLAIMS = (
    Claim("higher than all (p < 0.02)", BETTER, (SCORE,), ("ant-2", "hopper-3"), BASELINES),
    Claim("outperforms or matches all", NO_WORSE, (SCORE,), ("hopper-2", "walker-2"), BASELINES),
    Claim("less sparse than MOME-PGX", BETTER, SPARSITIES, ALL, ("mome-pgx",)),
    Claim("higher than what aims for it", BETTER, (VOLUME,), ALL, MOEAS),
    Claim("outperforms or matches", NO_WORSE, (VOLUME,), ALL, ("mome-pgx", "mome", "pga-me")),
    Claim("better (p < 1e-5)", BETTER, (SUM,), ("ant-2", "hopper-3"), ("pga-me",)),
    Claim("better, not significantly", NO_WORSE, (SUM,), ("hopper-2", "walker-2"), ("pga-me",)),
    Claim("outperforms or matches", NO_WORSE, (SUM,), ALL, ("mome-pgx", "mome", *MOEAS)),
    Claim("higher than MOEAs", BETTER, ("coverage",), ALL, MOEAS),
    Claim("matches or outperforms", NO_WORSE, (SCORE,), TWO, ("mome-p2c-keep-pref",), ABLATIONS),
    Claim("no difference, or better", NO_WORSE, (SCORE, VOLUME, SUM), TWO, ("mome-p2c-one-hot",), ABLATIONS),
    Claim("better (p < 1e-4)", BETTER, (SCORE,), TWO, ("mome-p2c-no-crowding",), ABLATIONS),
    Claim("better", BETTER, (SCORE, VOLUME, SUM), ("hopper-2",), ("mome-p2c-no-ga",), ABLATIONS),
    Claim("worse", WORSE, (VOLUME, SUM), ("ant-2",), ("mome-p2c-no-ga",), ABLATIONS),
    Claim("better (p < 1e-4)", BETTER, (SCORE,), ("ant-2",), ("mome-p2c-no-actor",), ABLATIONS),
    Claim("matches or outperforms", NO_WORSE, (SCORE, VOLUME, SUM), ("hopper-2",), ("mome-p2c-no-actor",), ABLATIONS),
    Claim("One-Hot outperforms or matches", NO_WORSE, (SCORE, VOLUME, SUM), TWO, ("mome-pgx",), ABLATIONS, "one_hot"),
)


def rows_of(study: str, table: str) -> list[dict[str, str]]:
    path = RESULTS / study / "tables" / f"{table}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def claims(study: str) -> Iterator[str]:
    """A row for each task, metric and other algorithm of each claim that the study can tell about."""
    head = ("paper", "task", "metric", "beside", "medians", "pairs won", "p", "adjusted", "seen here")
    yield _line(head)
    yield _line([":--"] * 4 + ["--:"] * 4 + [":--"])
    medians = {(row["task"], row["metric"], row["algorithm"]): row["median"] for row in rows_of(study, "summary")}
    for claim in CLAIMS:
        if claim.study != study:
            continue
        for row in rows_of(study, claim.table):
            of = row["task"], row["metric"], row["algorithm"]
            wanted = of[0] in claim.tasks and of[1] in claim.metrics and of[2] in claim.others
            if not wanted or not row["effect"]:
                continue
            own, other = (medians[*of[:2], label] for label in (row["reference"], row["algorithm"]))
            yield _line(
                (
                    claim.says,
                    f"{of[0]} ({row['seeds_reference']}, {row['seeds']} seeds)",
                    METRICS[of[1]].label,
                    display_name(of[2]),
                    f"{_short(own)}, {_short(other)}",
                    f"{float(row['effect']):.0%}",
                    _short(row["p"]),
                    _short(row["p_adjusted"]),
                    verdict(claim.expected, *(float(row[name]) for name in ("effect", "p_adjusted", "smallest_p"))),
                )
            )


def verdict(expected: str, effect: float, p: float, smallest: float) -> str:
    """What the numbers say of a claim.

    `effect` is the share of pairs of runs in which the reference is better, `smallest` the least adjusted p value that
    the number of seeds allows.
    """
    better = effect > 0.5 if expected != WORSE else effect < 0.5
    if p < SIGNIFICANCE:
        return "yes" if better else "**no**"
    if smallest >= SIGNIFICANCE:
        return f"too few seeds; {'level' if effect == 0.5 else 'so far yes' if better else 'so far not'}"
    if expected == NO_WORSE:
        return "yes"
    return "in direction" if better else "not"


def medians(metrics: Sequence[str] = tuple(METRICS), study: str = MAIN) -> Iterator[str]:
    """Of every algorithm, with the best of a task in bold."""
    found = rows_of(study, "summary")
    algorithms = list(dict.fromkeys(row["algorithm"] for row in found))
    yield _line(("task", "metric", *(display_name(label) for label in algorithms)))
    yield _line([":--", ":--", *["--:"] * len(algorithms)])
    for task in dict.fromkeys(row["task"] for row in found):
        for metric in metrics:
            values = {row["algorithm"]: row for row in found if (row["task"], row["metric"]) == (task, metric)}
            there = {label: float(row["median"]) for label, row in values.items() if row["median"]}
            if not there:
                continue
            best = (min if METRICS[metric].less_is_better else max)(there.values())
            cells = [
                f"**{_short(there[label])}**" if there.get(label) == best else _short(there.get(label, ""))
                for label in algorithms
            ]
            yield _line((task, METRICS[metric].label, *cells))


def sizes() -> Iterator[str]:
    """Parameters that are trained beside the archive, and seconds of an iteration, where they were measured."""
    yield _line(("task", "algorithm", "actors", "critics", "s per iteration", "gradient variation", "training"))
    yield _line([":--", ":--", *["--:"] * 5])
    clock = {(row["task"], row["algorithm"], row["part"]): row["median"] for row in rows_of(MAIN, "wall_clock")}
    for row in rows_of(MAIN, "parameters"):
        of = row["task"], row["algorithm"]
        parts = ("iteration", "policy_gradient_variation", "training")
        times = [_short(clock.get((*of, part), "")) for part in parts]
        yield _line((of[0], display_name(of[1]), f"{int(row['actors']):,}", f"{int(row['critics']):,}", *times))


def additions() -> Iterator[str]:
    """Solutions that entered the archive in either half of the iterations, of algorithms that learn."""
    sources = {source: label for source, label in SOURCES.items() if source != "random"}
    yield _line(("task", "algorithm", *sources.values()))
    yield _line([":--", ":--", *["--:"] * len(sources)])
    found = {(row["task"], row["algorithm"], row["source"]): row for row in rows_of(MAIN, "additions")}
    for of in dict.fromkeys(key[:2] for key in found if key[2] == "pg"):
        rows = [found.get((*of, source)) for source in sources]
        cells = [f"{_short(row['first_half'])} / {_short(row['second_half'])}" if row else "-" for row in rows]
        yield _line((of[0], display_name(of[1]), *cells))


def fitness_of(study: Study, task: str, algorithm: str) -> list[np.ndarray]:
    """The objectives of all final solutions, seed by seed, of the runs that there are."""
    runs = [run for run in study.runs if (run.task, run.algorithm) == (task, algorithm)]
    paths = [path for run in runs if (path := record_of(RESULTS, run)).exists()]
    return [read_tensors(path)["fitness"] for path in paths]


def fastest(task: str = "ant-2") -> Iterator[str]:
    """The most of the first objective (forward velocity) that each run on a task has in its archive."""
    study = stored_study(RESULTS / MAIN)
    yield _line(("algorithm", f"most forward velocity on {task}, seed by seed"))
    yield _line([":--", ":--"])
    for algorithm in study.algorithms:
        most = [fitness[:, 0].max() for fitness in fitness_of(study, task, algorithm)]
        yield _line((display_name(algorithm), ", ".join(f"{value:.0f}" for value in most)))


def front_sizes() -> Iterator[str]:
    """How many solutions are on the global front: medians over seeds."""
    study = stored_study(RESULTS / MAIN)
    yield _line(("algorithm", *study.tasks))
    yield _line([":--", *["--:"] * len(study.tasks)])
    for algorithm in study.algorithms:
        fronts = [[moqd.non_dominated(one).sum() for one in fitness_of(study, task, algorithm)] for task in study.tasks]
        yield _line((display_name(algorithm), *(_short(median(sizes)) if sizes else "-" for sizes in fronts)))


ROBOTS = ("hopper", "walker", "halfcheetah", "ant")
FULLNESS = ("sparse", "half full", "full")
SPEEDS: dict[str, tuple[str, ...]] = {
    "adding 256 solutions of 5,123 parameters to 128 cells x 50 (sparse, half full, full)": tuple(
        f"archive addition, 128 cells, {fullness}" for fullness in FULLNESS
    ),
    "a MOME iteration on rastrigin-2, 10 parameters": ("MOME iteration, rastrigin-2, 10 parameters",),
    "the same with 5,123 parameters (most of it the task's cosines, the same for both)": (
        "MOME iteration, rastrigin-2, 5,123 parameters",
    ),
    "a generation of NSGA-II on the same NumPy function, population 100 and 1,600": tuple(
        f"NSGA-II generation, population {population}" for population in ("100", "1,600")
    ),
    "a generation of SPEA2 on the same, population 100 and 400": tuple(
        f"SPEA2 generation, population {population}" for population in ("100", "400")
    ),
    "a generation of NSGA-II, compiled, population 128 and 1,024": tuple(
        f"NSGA-II generation, population {population}" for population in ("128", "1,024")
    ),
    "64,000 steps into a replay buffer of a million: hopper, ant": tuple(
        f"64,000 steps of {robot}-2 into the buffer" for robot in ("hopper", "ant")
    ),
    f"environment steps per second, whole episodes: {', '.join(ROBOTS)}": tuple(
        f"{robot}-2, whole episodes" for robot in ROBOTS
    ),
    "policy-gradient variation of 64 policies by 100 steps, as in the paper: hopper, ant": tuple(
        f"{robot}-2:   policy-gradient variation" for robot in ("hopper", "ant")
    ),
}
"""What README says of speed, and the rows of the benchmarks that say so."""


def speeds() -> Iterator[str]:
    """The ratios to others that README shows, of those that were measured."""
    yield _line(("", "moqd", "beside", "times as fast"))
    yield _line([":--", "--:", "--:", "--:"])
    found = {row["what"]: row for row in measured() if "times as fast" in row}
    for what, names in SPEEDS.items():
        rows = [found[name] for name in names if name in found]
        if not rows:
            continue
        if "ms" in rows[0]:
            ours, theirs, unit, peer = "ms", "its ms", " ms", rows[0]["beside"]
        else:
            ours, theirs, unit, peer = "steps/s", "plain Brax", "", "plain Brax"
        own, other, times = (_few(row[column] for row in rows) for column in (ours, theirs, "times as fast"))
        yield _line((what, f"{own}{unit}", f"{peer} {other}{unit}", times))


def costs(tasks: Sequence[str] = TWO) -> Iterator[str]:
    """What a run with the paper's settings takes, where it was measured."""
    yield _line(("with the paper's settings", *tasks))
    yield _line([":--", *["--:"] * len(tasks)])
    least = {row["task"]: row["s"] for row in measured("profile") if row["part"] == "iteration"}
    usual = {row["what"]: row["s"] for row in measured("learning")}
    memory = {row["what"]: row["GB"] for row in measured("memory")}
    starts = {row["what"]: f"{row['cold']}, {row['warm']}" for row in measured("starts")}
    saving = {row["what"]: row["of a run"] for row in measured("checkpoints")}
    for what, found, name in (
        ("an iteration of MOME-P2C, the fastest of seven, s", least, "{}"),
        ("an iteration of MOME-P2C, the median, s", usual, "{}: MOME-P2C iteration"),
        ("an iteration of MOME-PGX, the median, s", usual, "{}: MOME-PGX iteration"),
        ("peak memory of three iterations of MOME-P2C, GB", memory, "mome-p2c on {}, 3 iterations"),
        ("peak memory of three iterations of MOME-PGX, GB", memory, "mome-pgx on {}, 3 iterations"),
        ("seconds to the first metrics: the first time, and once all is compiled", starts, "{}"),
        ("share of the time to save the complete state every five minutes", saving, "{}"),
    ):
        yield _line((what, *(found.get(name.format(task), "-") for task in tasks)))


def measured(name: str = "") -> list[dict[str, str]]:
    """The rows of the tables (or of one) that `make bench` has written."""
    parts = json.loads((RESULTS / "bench" / "tables.json").read_text()).values()
    tables = [table for part in parts for table in part["tables"] if name in ("", table["name"])]
    return [dict(zip(table["columns"], row, strict=True)) for table in tables for row in table["rows"]]


def _few(values: Iterable[str]) -> str:
    """Two digits of each: that is as far as such numbers can be had again."""
    numbers = (float(value.replace(",", "")) for value in values)
    return ", ".join(f"{float(f'{number:.2g}'):,g}" for number in numbers)


TABLES = {
    "speeds": speeds,
    "costs": costs,
    "medians": medians,
    "main table": lambda: medians((SCORE, VOLUME)),
    "claims of the main comparison": lambda: claims(MAIN),
    "claims of the ablations": lambda: claims(ABLATIONS),
    "ablation medians": lambda: medians((SCORE, VOLUME, SUM), ABLATIONS),
    "walker medians": lambda: medians((SCORE, VOLUME, SUM, "coverage"), WALKER),
    "additions": additions,
    "fastest": fastest,
    "front sizes": front_sizes,
    "sizes and times": sizes,
}


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _short(value: Any) -> str:
    """Four digits, and thousands apart."""
    if value == "":
        return "-"
    number = float(value)
    if number == 0 or 1e-3 <= abs(number) < 1e4:
        return f"{number:.4g}"
    return f"{float(f'{number:.4g}'):,.0f}" if abs(number) < 1e9 and abs(number) >= 1 else f"{number:.2e}"


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
