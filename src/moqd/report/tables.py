"""The tables of a study as its report shows them: medians, comparisons, data efficiency, time and size."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from moqd.core.metrics import METRICS, OVER_TIME
from moqd.plots.style import display_name, task_title
from moqd.report.document import Block, Grid, Heading, Notice, Paragraph, Span, Text, strong
from moqd.report.numbers import NOTHING, Scale, count, duration_of, probability, scale_of
from moqd.study.analysis import SIGNIFICANCE, Table
from moqd.study.statistics import CONFIDENCE, smallest_adjusted_p

Row = Mapping[str, Any]
LESS = "\N{DOWNWARDS ARROW}"
DASH = "\N{EN DASH}"
NOT_TESTED = "not tested"
SPREAD = ("median", "q1", "q3", "iqm", "iqm_low", "iqm_high")
PARTS = {
    "iteration": "iteration",
    "rollout": "rollout",
    "policy_gradient_variation": "policy-gradient variation",
    "training": "training",
    "addition": "addition",
}
"""The parts of an iteration, by their names in timing.json."""


SOURCES = {"random": "random", "ga": "variation", "pg": "policy gradient", "actor": "actor"}
"""The sources of solutions, by their names in metrics.csv."""


def rows_of(table: Table) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def by(table: Table, *columns: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows, indexed by some of their columns."""
    return {tuple(row[column] for column in columns): row for row in rows_of(table)}


def results_blocks(summary: Table, tasks: Sequence[str], algorithms: Sequence[str]) -> Iterator[Block]:
    """Per task: medians with quartiles, then interquartile means with confidence intervals."""
    found = by(summary, "task", "metric", "algorithm")
    for task in tasks:
        title = task_title(task)
        yield Heading(3, title)
        rows = {(metric, label): found[task, metric, label] for metric in METRICS for label in algorithms}
        if not any(row["seeds"] for row in rows.values()):
            yield Paragraph("No run on this task is finished.")
            continue
        seeds = _range(row["seeds"] for row in rows.values() if row["seeds"])
        yield _metrics_grid(
            rows,
            algorithms,
            SPREAD[:3],
            f"{title}: final metrics, as the median (first {DASH} third quartile) over {seeds}. The best median of a "
            f"metric is bold; {LESS}: less is better.",
            bold=True,
        )
        yield _metrics_grid(
            rows,
            algorithms,
            SPREAD[3:],
            f"{title}: interquartile means over {seeds}, with {CONFIDENCE:.0%} confidence intervals of a bootstrap.",
        )


def _metrics_grid(
    rows: Mapping[tuple[str, str], Row],
    algorithms: Sequence[str],
    fields: Sequence[str],
    caption: str,
    *,
    bold: bool = False,
) -> Grid:
    """Algorithms x metrics, each as a number with its interval."""
    scales = {
        metric: scale_of(rows[metric, one][field] for one in algorithms for field in SPREAD) for metric in METRICS
    }
    best = {metric: _best(metric, [rows[metric, label][fields[0]] for label in algorithms]) for metric in METRICS}
    head: list[Text] = ["algorithm", *(_metric_head(metric, scales[metric].unit) for metric in METRICS)]
    body: list[tuple[Text, ...]] = []
    for label in algorithms:
        cells: list[Text] = [display_name(label)]
        for metric in METRICS:
            row, scale = rows[metric, label], scales[metric]
            middle, low, high = (row[field] for field in fields)
            shown = strong(scale.show(middle)) if bold and middle == best[metric] else scale.show(middle)
            cells.append((shown, *_between(scale, low, high)) if row["seeds"] > 1 else shown)
        body.append(tuple(cells))
    return Grid(tuple(head), tuple(body), caption, right=range(1, len(head)))


def _metric_head(metric: str, unit: str = "") -> Text:
    label = METRICS[metric].label + (f"\N{NO-BREAK SPACE}{LESS}" if METRICS[metric].less_is_better else "")
    return (label, Span(unit, "quiet")) if unit else label


def _between(scale: Scale, low: float, high: float) -> Iterator[Span]:
    """The ends of an interval, if there is one."""
    if low == low and high == high:
        yield Span(f"{scale.show(low)} {DASH} {scale.show(high)}", "quiet")


def _best(metric: str, values: Sequence[float]) -> float:
    known = [value for value in values if value == value]
    choose: Callable[..., float] = min if METRICS[metric].less_is_better else max
    return choose(known, default=float("nan"))


def _range(seeds: Iterable[int]) -> str:
    """The number of seeds, if it is not the same everywhere."""
    counts = sorted(set(seeds))
    ends = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{ends} {'seed' if counts[-1] == 1 else 'seeds'}"


def tally_grid(tally: Table, reference: str) -> Grid:
    """Wins, ties and losses of the reference."""
    found = by(tally, "algorithm", "metric")
    others = list(dict.fromkeys(row["algorithm"] for row in rows_of(tally)))
    rows: list[tuple[Text, ...]] = []
    for label in others:
        cells = [found[label, metric] for metric in METRICS]
        rows.append((display_name(label), *(f"{row['wins']} / {row['ties']} / {row['losses']}" for row in cells)))
    head: tuple[Text, ...] = (f"{display_name(reference)} against", *map(_metric_head, METRICS))
    caption = (
        f"Number of tasks on which {display_name(reference)} is significantly better than / not significantly "
        "different from / significantly worse than each other algorithm."
    )
    return Grid(head, tuple(rows), caption, right=range(1, len(head)))


def comparison_grids(comparisons: Table, tasks: Sequence[str]) -> Iterator[Grid]:
    """Per task: adjusted p, effect size and outcome of every comparison."""
    found = by(comparisons, "task", "algorithm", "metric")
    others = list(dict.fromkeys(row["algorithm"] for row in rows_of(comparisons)))
    reference = display_name(rows_of(comparisons)[0]["reference"])
    for task in tasks:
        if all(found[task, one, metric]["outcome"] == NOT_TESTED for one in others for metric in METRICS):
            continue
        body = [(display_name(one), *(_outcome(found[task, one, metric]) for metric in METRICS)) for one in others]
        caption = (
            f"{task_title(task)}: the outcome for {reference} and the adjusted p value, with the effect size, which is "
            f"the share of pairs of runs in which {reference} is better."
        )
        yield _outcomes_grid(f"{reference} against", body, caption)


def pair_grid(comparisons: Table, tasks: Sequence[str]) -> Grid:
    """The same for a single comparison: task by task."""
    found = by(comparisons, "task", "metric")
    first = rows_of(comparisons)[0]
    reference, other = display_name(first["reference"]), display_name(first["algorithm"])
    body = [(task_title(task), *(_outcome(found[task, metric]) for metric in METRICS)) for task in tasks]
    caption = (
        f"{reference} against {other}: the outcome for {reference} and the p value, with the effect size, which is the "
        f"share of pairs of runs in which {reference} is better."
    )
    return _outcomes_grid("task", body, caption)


def _outcomes_grid(first: str, body: Sequence[tuple[Text, ...]], caption: str) -> Grid:
    return Grid((first, *map(_metric_head, METRICS)), tuple(body), caption, right=range(1, 1 + len(METRICS)))


def _outcome(row: Row) -> Text:
    if row["outcome"] == NOT_TESTED:
        return NOT_TESTED
    style = row["outcome"] if row["outcome"] in ("win", "loss") else ""
    return (Span(row["outcome"], style), f" {probability(row['p_adjusted'])}", Span(f"{row['effect']:.2f}", "quiet"))


def too_few_seeds(comparisons: Table) -> Iterator[Block]:
    """A warning if no result could have been significant, with the number of seeds that would be enough."""
    tested = [row for row in rows_of(comparisons) if row["outcome"] != NOT_TESTED]
    hopeless = [row for row in tested if row["smallest_p"] >= SIGNIFICANCE]
    if not hopeless:
        return
    families: dict[tuple[str, str], int] = {}
    for row in tested:
        families[row["task"], row["metric"]] = families.get((row["task"], row["metric"]), 0) + 1
    size = max(families[row["task"], row["metric"]] for row in hopeless)
    tasks = list(dict.fromkeys(task_title(row["task"]) for row in hopeless))
    where = "all" if len(hopeless) == len(tested) else f"{len(hopeless)} of {len(tested)}"
    reference, smallest = display_name(hopeless[0]["reference"]), min(row["smallest_p"] for row in hopeless)
    yield Notice(
        (
            strong("Too few seeds."),
            f" In {where} comparisons of {reference} (on {', '.join(tasks)}), the smallest adjusted p value that the "
            f"number of seeds allows is {probability(smallest)} or more, so that algorithms count as tied even where "
            "all runs of one are better than all of the other. With "
            f"{size} comparison{'s' * (size > 1)} per task and metric, {seeds_needed(size)} seeds of every algorithm "
            "would be enough.",
        ),
        "warning",
    )


def seeds_needed(num_tests: int) -> int:
    """The smallest number of seeds with which completely separated samples differ significantly."""
    seeds = 1
    while smallest_adjusted_p(seeds, seeds, num_tests) >= SIGNIFICANCE:
        seeds += 1
    return seeds


def efficiency_blocks(efficiency: Table, tasks: Sequence[str], reference: str) -> Iterator[Block]:
    """Per metric: other algorithms x tasks."""
    found = by(efficiency, "metric", "algorithm", "task")
    others = list(dict.fromkeys(row["algorithm"] for row in rows_of(efficiency)))
    own = display_name(reference)
    yield Paragraph(
        f"The tables say after how many evaluations the median of {own} has reached the final median of each other "
        "algorithm, what share that is of the evaluations that the other took, and the median wall time: of "
        f"{own} until then, and of the other in all."
    )
    for metric in OVER_TIME:
        body = [(display_name(one), *(_effort(found[metric, one, task]) for task in tasks)) for one in others]
        label = METRICS[metric].label
        caption = f"{label[:1].upper()}{label[1:]}: evaluations that {own} takes to the final median of the others."
        yield Grid(("to reach", *map(task_title, tasks)), tuple(body), caption, right=range(1, 1 + len(tasks)))


def _effort(row: Row) -> Text:
    if row["target"] != row["target"]:
        return NOTHING
    if row["evaluations"] != row["evaluations"]:
        return "never"
    times = duration_of(row["seconds"], row["algorithm_seconds"])
    return (count(row["evaluations"]), Span(f"{row['share']:.0%}; {times}", "quiet"))


def additions_grid(additions: Table) -> Grid:
    """Solutions that entered the archive: (task, algorithm) x sources."""
    found = by(additions, "task", "algorithm", "source")
    sources = [source for source in SOURCES if any(source == row["source"] for row in rows_of(additions))]
    body: list[tuple[Text, ...]] = []
    for task, algorithm in dict.fromkeys(key[:2] for key in found):
        rows = [found.get((task, algorithm, source)) for source in sources]
        cells = [f"{count(row['first_half'])} / {count(row['second_half'])}" if row else NOTHING for row in rows]
        body.append((task_title(task), display_name(algorithm), *cells))
    return Grid(
        ("task", "algorithm", *(SOURCES[source] for source in sources)),
        tuple(body),
        "Solutions that entered the archive in the first / in the second half of the iterations, by how they were "
        "made; medians over seeds.",
        right=range(2, 2 + len(sources)),
    )


def wall_clock_grid(wall_clock: Table) -> Grid:
    """Seconds per iteration: (task, algorithm) x parts."""
    found = by(wall_clock, "task", "algorithm", "part")
    parts = [part for part in PARTS if any(part == row["part"] for row in rows_of(wall_clock))]
    scale = Scale(0, 3)
    body: list[tuple[Text, ...]] = []
    for task, algorithm in dict.fromkeys(key[:2] for key in found):
        cells: list[Text] = []
        for part in parts:
            row = found.get((task, algorithm, part))
            cells.append((scale.show(row["median"]), *_between(scale, row["q1"], row["q3"])) if row else NOTHING)
        body.append((task_title(task), display_name(algorithm), *cells))
    return Grid(
        ("task", "algorithm", *(PARTS[part] for part in parts)),
        tuple(body),
        f"Seconds per iteration and of its parts, each measured on its own: median (first {DASH} third quartile).",
        right=range(2, 2 + len(parts)),
    )


def parameters_grid(parameters: Table) -> Grid:
    """Sizes: (task, algorithm) x networks."""
    body = [
        (task_title(row["task"]), display_name(row["algorithm"]), *(count(row[kind]) for kind in kinds_of(parameters)))
        for row in rows_of(parameters)
    ]
    kinds = kinds_of(parameters)
    return Grid(
        ("task", "algorithm", *kinds),
        tuple(body),
        "Numbers of parameters: of one policy, and of all actor and all critic networks that are trained.",
        right=range(2, 2 + len(kinds)),
    )


def kinds_of(parameters: Table) -> tuple[str, ...]:
    return parameters.columns[2:]


def unfinished_grid(unfinished: Table) -> Grid:
    """Every missing run."""
    body = [
        (task_title(row["task"]), display_name(row["algorithm"]), str(row["seed"]), row["state"], row["reason"])
        for row in rows_of(unfinished)
    ]
    return Grid(
        ("task", "algorithm", "seed", "state", "reason"), tuple(body), "Runs that are not finished.", right=(2,)
    )
