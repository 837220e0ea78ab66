"""What the MOME-P2C paper claims, beside what the studies in results/ show: tables of docs/evidence.md and README.md.

python -m benchmarks.evidence

reads the CSV tables of the two reports and writes the tables anew, between the comments that mark their places.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
DOCUMENTS = (ROOT / "docs" / "evidence.md", ROOT / "README.md")
MAIN, ABLATIONS = "small-main", "small-ablations"
SIGNIFICANCE = 0.05
BASELINES = ("mome-pgx", "mome", "pga-me", "nsga2-small", "spea2-small")
NAMES = {
    "mome-p2c": "MOME-P2C",
    "mome-pgx": "MOME-PGX",
    "mome": "MOME",
    "pga-me": "PGA-ME",
    "nsga2-small": "NSGA-II (small)",
    "spea2-small": "SPEA2 (small)",
    "mome-p2c-keep-pref": "Keep-Pref",
    "mome-p2c-one-hot": "One-Hot",
    "mome-p2c-no-actor": "No-Actor",
    "mome-p2c-no-ga": "No-GA",
    "mome-p2c-no-crowding": "No-Crowding",
}
METRICS = {
    "moqd_score": "MOQD score",
    "global_hypervolume": "global hypervolume",
    "max_sum_scores": "max sum of scores",
    "coverage": "coverage",
    "moqd_sparsity_score": "MOQD sparsity score",
    "global_sparsity": "global sparsity",
    "moqd_sparsity_occupied": "sparsity of occupied cells",
}
BETTER, NO_WORSE, WORSE = "better", "no worse", "worse"


class Claim(NamedTuple):
    """What the paper says of MOME-P2C (or of `of`) beside others, on tasks that were run here."""

    says: str
    expected: str
    metrics: tuple[str, ...]
    tasks: tuple[str, ...]
    others: tuple[str, ...]
    study: str = MAIN
    table: str = "comparisons"


MOEAS = ("nsga2-small", "spea2-small")
TWO = ("hopper-2", "ant-2")
CLAIMS = (
    Claim("higher MOQD score than all (p < 0.02)", BETTER, ("moqd_score",), ("ant-2", "hopper-3"), BASELINES),
    Claim("higher MOQD score than these", BETTER, ("moqd_score",), ("hopper-2", "walker-2"), BASELINES[1:]),
    Claim("matches MOME-PGX", NO_WORSE, ("moqd_score",), ("hopper-2", "walker-2"), ("mome-pgx",)),
    Claim("lower MOQD sparsity score", BETTER, ("moqd_sparsity_score",), ("hopper-2", "walker-2"), ("mome-pgx",)),
    Claim(
        "higher global hypervolume than what aims for it",
        BETTER,
        ("global_hypervolume",),
        ("hopper-2", "ant-2", "walker-2", "hopper-3"),
        MOEAS,
    ),
    Claim(
        "global hypervolume outperforms or matches",
        NO_WORSE,
        ("global_hypervolume",),
        ("hopper-2", "ant-2", "walker-2", "hopper-3"),
        ("mome-pgx", "mome", "pga-me"),
    ),
    Claim("lower global sparsity", BETTER, ("global_sparsity",), ("hopper-2", "walker-2", "hopper-3"), ("mome-pgx",)),
    Claim("better max sum of scores (p < 1e-5)", BETTER, ("max_sum_scores",), ("ant-2", "hopper-3"), ("pga-me",)),
    Claim("better max sum, not significantly", NO_WORSE, ("max_sum_scores",), ("hopper-2", "walker-2"), ("pga-me",)),
    Claim("higher coverage than MOEAs", BETTER, ("coverage",), ("hopper-2", "ant-2", "walker-2", "hopper-3"), MOEAS),
    Claim("matches or outperforms", NO_WORSE, ("moqd_score",), TWO, ("mome-p2c-keep-pref",), ABLATIONS),
    Claim("no difference, or better", NO_WORSE, ("moqd_score",), TWO, ("mome-p2c-one-hot",), ABLATIONS),
    Claim("clearly better (p < 1e-4)", BETTER, ("moqd_score",), TWO, ("mome-p2c-no-crowding",), ABLATIONS),
    Claim("better", BETTER, ("moqd_score",), TWO, ("mome-p2c-no-ga",), ABLATIONS),
    Claim(
        "worse on Ant-2",
        WORSE,
        ("global_hypervolume", "max_sum_scores"),
        ("ant-2",),
        ("mome-p2c-no-ga",),
        ABLATIONS,
    ),
    Claim("better (p < 1e-4)", BETTER, ("moqd_score",), ("ant-2",), ("mome-p2c-no-actor",), ABLATIONS),
    Claim("no worse", NO_WORSE, ("moqd_score",), ("hopper-2",), ("mome-p2c-no-actor",), ABLATIONS),
    Claim(
        "One-Hot outperforms or matches MOME-PGX",
        NO_WORSE,
        ("moqd_score", "global_hypervolume"),
        TWO,
        ("mome-pgx",),
        ABLATIONS,
        "one_hot",
    ),
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
                    METRICS[of[1]],
                    NAMES[of[2]],
                    f"{_short(own)}, {_short(other)}",
                    f"{float(row['effect']):.0%}",
                    _short(row["p"]),
                    _short(row["p_adjusted"]),
                    verdict(claim.expected, float(row["effect"]), float(row["p_adjusted"])),
                )
            )


def verdict(expected: str, effect: float, p: float) -> str:
    """What the numbers say of a claim; `effect` is the share of pairs of runs in which the reference is better."""
    significant = p < SIGNIFICANCE
    if expected == NO_WORSE:
        return "**no**" if significant and effect < 0.5 else "yes"
    ahead = effect > 0.5 if expected == BETTER else effect < 0.5
    if ahead:
        return "yes" if significant else "in direction"
    return "**no**" if significant else "not"


def medians(metrics: Sequence[str] = tuple(METRICS), study: str = MAIN) -> Iterator[str]:
    """Of every algorithm, with the best of a task in bold."""
    found = rows_of(study, "summary")
    algorithms = list(dict.fromkeys(row["algorithm"] for row in found))
    yield _line(("task", "metric", *(NAMES[label] for label in algorithms)))
    yield _line([":--", ":--", *["--:"] * len(algorithms)])
    for task in dict.fromkeys(row["task"] for row in found):
        for metric in metrics:
            values = {row["algorithm"]: row for row in found if (row["task"], row["metric"]) == (task, metric)}
            there = {label: float(row["median"]) for label, row in values.items() if row["median"]}
            if not there:
                continue
            best = (min if "sparsity" in metric else max)(there.values())
            cells = [
                f"**{_short(there[label])}**" if there.get(label) == best else _short(there.get(label, ""))
                for label in algorithms
            ]
            yield _line((task, METRICS[metric], *cells))


def sizes() -> Iterator[str]:
    """Parameters that are trained beside the archive, and seconds of an iteration, where they were measured."""
    yield _line(("task", "algorithm", "actors", "critics", "s per iteration", "gradient variation", "training"))
    yield _line([":--", ":--", *["--:"] * 5])
    clock = {(row["task"], row["algorithm"], row["part"]): row["median"] for row in rows_of(MAIN, "wall_clock")}
    for row in rows_of(MAIN, "parameters"):
        of = row["task"], row["algorithm"]
        parts = ("iteration", "policy_gradient_variation", "training")
        times = [_short(clock.get((*of, part), "")) for part in parts]
        yield _line((of[0], NAMES[of[1]], f"{int(row['actors']):,}", f"{int(row['critics']):,}", *times))


TABLES = {
    "medians": medians,
    "main table": lambda: medians(("moqd_score", "global_hypervolume")),
    "claims of the main comparison": lambda: claims(MAIN),
    "claims of the ablations": lambda: claims(ABLATIONS),
    "ablation medians": lambda: medians(("moqd_score", "global_hypervolume", "max_sum_scores"), ABLATIONS),
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
