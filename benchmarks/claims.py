"""What the MOME-P2C paper claims of MOME-P2C beside others, on the tasks of the studies in results/, and what is seen.

Every comparison is a two-sided test of a report (`moqd report`), adjusted over the rivals of a metric on a task.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.tables import ABLATIONS, ALL, MAIN, TWO, line, rows_of, short
from moqd.core.metrics import METRICS
from moqd.plots.style import display_name
from moqd.study.analysis import SIGNIFICANCE

MOEAS = ("nsga2-small", "spea2-small")
OTHERS = ("mome-pgx", "mome", "pga-me")
BASELINES = (*OTHERS, *MOEAS)
BETTER, NO_WORSE, LEANS, WORSE = "better", "no worse", "better, not significantly", "worse"
SCORE, VOLUME, SUM, COVERAGE = "moqd_score", "global_hypervolume", "max_sum_scores", "coverage"
IN_CELLS, GLOBAL = "moqd_sparsity_score", "global_sparsity"
SHOWN = (SCORE, VOLUME, SUM)
"""The metrics of the paper's figures, which it means where it names none."""


class Claim(NamedTuple):
    """What the paper says of MOME-P2C beside others."""

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
    Claim("matches MOME-PGX, outperforms or matches all", NO_WORSE, (SCORE,), ("hopper-2", "walker-2"), BASELINES),
    Claim("higher than what aims for it", BETTER, (VOLUME,), ALL, MOEAS),
    Claim("outperforms or matches", NO_WORSE, (VOLUME,), ALL, OTHERS),
    Claim("better than PGA-ME (p < 1e-5)", BETTER, (SUM,), ("ant-2", "hopper-3"), ("pga-me",)),
    Claim("better than PGA-ME, not significantly", LEANS, (SUM,), ("hopper-2", "walker-2"), ("pga-me",)),
    Claim("outperforms or matches all", NO_WORSE, (SUM,), ALL, ("mome-pgx", "mome", *MOEAS)),
    Claim("less, where the score only matches", BETTER, (IN_CELLS,), ("hopper-2", "walker-2"), ("mome-pgx",)),
    Claim(
        "less, where the volume only matches", BETTER, (GLOBAL,), ("hopper-2", "hopper-3", "walker-2"), ("mome-pgx",)
    ),
    Claim("less on the whole (introduction)", BETTER, (IN_CELLS,), ("ant-2", "hopper-3"), ("mome-pgx",)),
    Claim("less on the whole (introduction)", BETTER, (GLOBAL,), ("ant-2",), ("mome-pgx",)),
    Claim("higher than MOEAs", BETTER, (COVERAGE,), ALL, MOEAS),
    Claim("broader (picture of archives)", BETTER, (COVERAGE,), ("walker-2",), OTHERS),
    Claim("matches or outperforms", NO_WORSE, SHOWN, TWO, ("mome-p2c-keep-pref",), ABLATIONS),
    Claim(
        "no difference, or better, in all metrics",
        *(NO_WORSE, (*SHOWN, COVERAGE, IN_CELLS, GLOBAL), TWO, ("mome-p2c-one-hot",), ABLATIONS),
    ),
    Claim("better (p < 1e-4)", BETTER, SHOWN, TWO, ("mome-p2c-no-crowding",), ABLATIONS),
    Claim("better", BETTER, (*SHOWN, COVERAGE), ("hopper-2",), ("mome-p2c-no-ga",), ABLATIONS),
    Claim("worse", WORSE, (VOLUME, SUM), ("ant-2",), ("mome-p2c-no-ga",), ABLATIONS),
    Claim("better (p < 1e-4)", BETTER, SHOWN, ("ant-2",), ("mome-p2c-no-actor",), ABLATIONS),
    Claim("matches or outperforms", NO_WORSE, (*SHOWN, COVERAGE), ("hopper-2",), ("mome-p2c-no-actor",), ABLATIONS),
    Claim(
        "One-Hot outperforms or matches it in all metrics",
        *(NO_WORSE, (*SHOWN, COVERAGE, IN_CELLS, GLOBAL), TWO, ("mome-pgx",), ABLATIONS, "one_hot"),
    ),
)

AHEAD, BEHIND, LEVEL, FEW, MISSING = "ahead", "behind", "no significant difference", "too few seeds", "not run yet"


class Comparison(NamedTuple):
    """One test of a claim."""

    claim: Claim
    task: str
    metric: str
    other: str
    seen: str
    effect: float
    """The share of pairs of runs in which the reference is better."""
    p: float
    """Adjusted."""

    @property
    def text(self) -> str:
        """Pairs won and p, bold where that is significant."""
        if self.seen == MISSING:
            return "-"
        text = f"{self.effect:.0%}, {short(self.p)}"
        return f"**{text}**" if self.seen in (AHEAD, BEHIND) else text


def comparisons(study: str) -> Iterator[Comparison]:
    """All that the claims about a study need, also those for which there are no runs yet."""
    for claim in CLAIMS:
        if claim.study != study:
            continue
        rows = {(row["task"], row["metric"], row["algorithm"]): row for row in rows_of(study, claim.table)}
        for task in claim.tasks:
            for metric in claim.metrics:
                for other in claim.others:
                    row = rows.get((task, metric, other), {})
                    yield Comparison(claim, task, metric, other, *_seen(row))


def _seen(row: Mapping[str, str]) -> tuple[str, float, float]:
    if not row.get("effect"):
        return MISSING, float("nan"), float("nan")
    effect, p, smallest = (float(row[name]) for name in ("effect", "p_adjusted", "smallest_p"))
    if p < SIGNIFICANCE:
        return AHEAD if effect > 0.5 else BEHIND, effect, p
    return FEW if smallest >= SIGNIFICANCE else LEVEL, effect, p


def verdict(expected: str, found: Mapping[str, Comparison]) -> str:
    """What the comparisons of a row, by the names of their columns, say of its claim."""
    there = {name: one for name, one in found.items() if one.seen != MISSING}
    held, broken = (BEHIND, AHEAD) if expected == WORSE else (AHEAD, BEHIND)
    against = [name for name, one in there.items() if one.seen == broken]
    others = [one for one in there.values() if one.seen != held]
    if not there:
        return MISSING
    if against:
        text = f"**no**: the other way round for {' and '.join(against)}"
    elif not others:
        text = "shown"
    elif expected == NO_WORSE:
        text = "not contradicted" if any(one.seen == LEVEL for one in others) else f"{FEW} to contradict it"
    elif expected == LEANS and all(one.effect > 0.5 for one in others):
        text = "the same here"
    elif len(others) < len(there):
        text = f"shown for {len(there) - len(others)} of {len(there)}, else {_direction(others, expected)}"
    else:
        text = f"{FEW if all(one.seen == FEW for one in others) else 'not shown'}; {_direction(others, expected)}"
    return text + (f"; {len(found) - len(there)} {MISSING}" if len(there) < len(found) else "")


def _direction(found: Sequence[Comparison], expected: str) -> str:
    """Whether it is as expected in more than half of the pairs of runs."""
    shares = [1 - one.effect if expected == WORSE else one.effect for one in found]
    towards = sum(share > 0.5 for share in shares)
    if towards in (0, len(found)):
        return "in direction" if towards else "level" if all(share == 0.5 for share in shares) else "not in direction"
    return f"{towards} of {len(found)} in direction"


def claims(study: str) -> Iterator[str]:
    """A row for each claim, task and metric with a column for each rival; of ablations the other way round."""
    found = list(comparisons(study))
    rival, metric = (lambda one: display_name(one.other)), (lambda one: METRICS[one.metric].label)
    of_row, of_column = (rival, metric) if study == ABLATIONS else (metric, rival)
    columns = list(dict.fromkeys(of_column(one) for one in found))
    yield line(("paper", "beside" if study == ABLATIONS else "metric", "task", *columns, "seen here"))
    yield line([":--"] * 3 + ["--:"] * len(columns) + [":--"])
    for of in dict.fromkeys((one.claim, of_row(one), one.task) for one in found):
        row = {of_column(one): one for one in found if (one.claim, of_row(one), one.task) == of}
        cells = (row[column].text if column in row else "" for column in columns)
        yield line((of[0].says, *of[1:], *cells, verdict(of[0].expected, row)))


def counts() -> Iterator[str]:
    """How many of the comparisons that claims are about came out how."""
    kinds = (AHEAD, LEVEL, BEHIND, FEW, MISSING)
    yield line(("the paper says of MOME-P2C", *(f"here: {kind}" for kind in kinds)))
    yield line([":--", *["--:"] * len(kinds)])
    found = [one for study in (MAIN, ABLATIONS) for one in comparisons(study)]
    for expected, says in ((BETTER, "better"), (LEANS, LEANS), (NO_WORSE, "better, or no difference"), (WORSE, WORSE)):
        seen = [one.seen for one in found if one.claim.expected == expected]
        yield line((says, *(str(seen.count(kind)) for kind in kinds)))


def losses(study: str = MAIN) -> Iterator[str]:
    """Where the reference is significantly worse than another, whatever the paper says of it."""
    yield line(("metric", "task", "significantly better than MOME-P2C (adjusted p)"))
    yield line([":--", ":--", ":--"])
    lost = [row for row in rows_of(study, "comparisons") if row["outcome"] == "loss"]
    for metric in METRICS:
        for task in dict.fromkeys(row["task"] for row in lost):
            rows = [row for row in lost if (row["metric"], row["task"]) == (metric, task)]
            if rows:
                better = ", ".join(f"{display_name(row['algorithm'])} ({short(row['p_adjusted'])})" for row in rows)
                yield line((METRICS[metric].label, task, better))
