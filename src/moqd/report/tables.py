"""The tables of a study as its report shows them: medians, comparisons, data efficiency, time and size."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from moqd.core.metrics import METRICS, OVER_TIME
from moqd.plots.style import display_name, task_title
from moqd.report.document import Block, Grid, Heading, Notice, Paragraph, Span, Text, number_grid, strong
from moqd.report.numbers import NOTHING, Scale, count, counted, duration_of, probability, scale_of, seeds_in
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
        columns = {metric: [found[task, metric, label] for label in algorithms] for metric in METRICS}
        counts = {row["seeds"] for column in columns.values() for row in column} - {0}
        if not counts:
            yield Paragraph("No run on this task is finished.")
            continue
        medians = (
            f"{title}: final metrics, as the median (first {DASH} third quartile) over {seeds_in(counts)}. The best "
            f"median of a metric is bold; {LESS}: less is better."
        )
        means = (
            f"{title}: interquartile means over {seeds_in(counts)}, with {CONFIDENCE:.0%} confidence intervals of a "
            "bootstrap."
        )
        yield _metrics_grid(columns, algorithms, SPREAD[:3], medians, bold=True)
        yield _metrics_grid(columns, algorithms, SPREAD[3:], means)


def _metrics_grid(
    columns: Mapping[str, Sequence[Row]],
    algorithms: Sequence[str],
    fields: Sequence[str],
    caption: str,
    *,
    bold: bool = False,
) -> Grid:
    """Algorithms x metrics, each as a number with its interval; the best numbers are bold if asked for."""
    shown: list[list[Text]] = [["algorithm", *map(display_name, algorithms)]]
    for metric, rows in columns.items():
        scale = scale_of(row[field] for row in rows for field in SPREAD)
        choose: Callable[..., float] = min if METRICS[metric].less_is_better else max
        best = choose((row[fields[0]] for row in rows if row[fields[0]] == row[fields[0]]), default=float("nan"))
        cells: list[Text] = [_metric_head(metric, scale.unit)]
        for row in rows:
            middle, low, high = (row[field] for field in fields)
            number = strong(scale.show(middle)) if bold and middle == best else scale.show(middle)
            cells.append((number, *_between(scale, low, high)) if row["seeds"] > 1 else number)
        shown.append(cells)
    head, *body = zip(*shown, strict=True)
    return number_grid(head, body, caption)


def _metric_head(metric: str, unit: str = "") -> Text:
    label = METRICS[metric].label + (f"\N{NO-BREAK SPACE}{LESS}" if METRICS[metric].less_is_better else "")
    return (label, Span(unit, "quiet")) if unit else label


def _between(scale: Scale, low: float, high: float) -> Iterator[Span]:
    """The ends of an interval, if there is one."""
    if low == low and high == high:
        yield Span(f"{scale.show(low)} {DASH} {scale.show(high)}", "quiet")


def tally_grid(tally: Table, reference: str) -> Grid:
    """Wins, ties and losses of the reference."""
    found, name = by(tally, "algorithm", "metric"), display_name(reference)
    rows = []
    for label in dict.fromkeys(label for label, _ in found):
        cells = [found[label, metric] for metric in METRICS]
        rows.append((display_name(label), *(f"{row['wins']} / {row['ties']} / {row['losses']}" for row in cells)))
    caption = (
        f"Number of tasks on which {name} is significantly better than / not significantly different from / "
        "significantly worse than each other algorithm."
    )
    return number_grid((f"{name} against", *map(_metric_head, METRICS)), rows, caption)


def comparison_grids(comparisons: Table, tasks: Sequence[str]) -> Iterator[Grid]:
    """Per task: adjusted p, effect size and outcome of every comparison."""
    found = by(comparisons, "task", "algorithm", "metric")
    reference = display_name(rows_of(comparisons)[0]["reference"])
    for task in tasks:
        others = dict.fromkeys(label for _, label, _ in found)
        rows = [(display_name(one), [found[task, one, metric] for metric in METRICS]) for one in others]
        if any(cell["outcome"] != NOT_TESTED for _, cells in rows for cell in cells):
            yield _outcomes_grid(f"{reference} against", rows, task_title(task), reference, "adjusted p value")


def pair_grid(comparisons: Table, tasks: Sequence[str]) -> Grid:
    """The same for a single comparison: task by task."""
    found, first = by(comparisons, "task", "metric"), rows_of(comparisons)[0]
    reference, other = display_name(first["reference"]), display_name(first["algorithm"])
    rows = [(task_title(task), [found[task, metric] for metric in METRICS]) for task in tasks]
    return _outcomes_grid("task", rows, f"{reference} against {other}", reference, "p value")


def _outcomes_grid(first: str, rows: Sequence[tuple[str, Sequence[Row]]], about: str, reference: str, p: str) -> Grid:
    caption = (
        f"{about}: the outcome for {reference} and the {p}, with the effect size, which is the share of pairs of runs "
        f"in which {reference} is better."
    )
    body = [(name, *map(_outcome, cells)) for name, cells in rows]
    return number_grid((first, *map(_metric_head, METRICS)), body, caption)


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
    families = Counter((row["task"], row["metric"]) for row in tested)
    size = max(families[row["task"], row["metric"]] for row in hopeless)
    tasks = dict.fromkeys(task_title(row["task"]) for row in hopeless)
    where = "all" if len(hopeless) == len(tested) else f"{len(hopeless)} of {len(tested)}"
    reference, smallest = display_name(hopeless[0]["reference"]), min(row["smallest_p"] for row in hopeless)
    yield Notice(
        "Too few seeds.",
        f" In {where} comparisons of {reference} (on {', '.join(tasks)}), the smallest adjusted p value that the "
        f"number of seeds allows is {probability(smallest)} or more, so that algorithms count as tied even where "
        f"all runs of one are better than all of the other. With {counted(size, 'comparison')} per task and metric, "
        f"{seeds_needed(size)} seeds of every algorithm would be enough.",
    )


def seeds_needed(num_tests: int) -> int:
    """The smallest number of seeds with which completely separated samples differ significantly."""
    seeds = 1
    while smallest_adjusted_p(seeds, seeds, num_tests) >= SIGNIFICANCE:
        seeds += 1
    return seeds


def efficiency_blocks(efficiency: Table, tasks: Sequence[str], reference: str) -> Iterator[Block]:
    """Per metric: other algorithms x tasks."""
    found, own = by(efficiency, "metric", "algorithm", "task"), display_name(reference)
    others = dict.fromkeys(label for _, label, _ in found)
    yield Paragraph(
        f"The tables say after how many evaluations the median of {own} has reached the final median of each other "
        "algorithm, what share that is of the evaluations that the other took, and the median wall time: of "
        f"{own} until then, and of the other in all."
    )
    for metric in OVER_TIME:
        body = [(display_name(one), *(_effort(found[metric, one, task]) for task in tasks)) for one in others]
        label = METRICS[metric].label
        caption = f"{label[:1].upper()}{label[1:]}: evaluations that {own} takes to the final median of the others."
        yield number_grid(("to reach", *map(task_title, tasks)), body, caption)


def _effort(row: Row) -> Text:
    if row["target"] != row["target"]:
        return NOTHING
    if row["evaluations"] != row["evaluations"]:
        return "never"
    times = duration_of(row["seconds"], row["algorithm_seconds"])
    return (count(row["evaluations"]), Span(f"{row['share']:.0%}; {times}", "quiet"))


def additions_grid(additions: Table) -> Grid:
    """Solutions that entered the archive: (task, algorithm) x sources."""

    def halves(row: Row) -> Text:
        return f"{count(row['first_half'])} / {count(row['second_half'])}"

    caption = (
        "Solutions that entered the archive in the first / in the second half of the iterations, by how they were "
        "made; medians over seeds."
    )
    return _pivot(additions, "source", SOURCES, halves, caption)


def wall_clock_grid(wall_clock: Table) -> Grid:
    """Seconds per iteration: (task, algorithm) x parts."""

    def seconds(row: Row) -> Text:
        scale = Scale(0, 3)
        return (scale.show(row["median"]), *_between(scale, row["q1"], row["q3"]))

    caption = f"Seconds per iteration and of its parts, each measured on its own: median (first {DASH} third quartile)."
    return _pivot(wall_clock, "part", PARTS, seconds, caption)


def _pivot(table: Table, column: str, titles: Mapping[str, str], show: Callable[[Row], Text], caption: str) -> Grid:
    """A row for each task and algorithm, a column for each of the titles whose key occurs in `column`."""
    found = by(table, "task", "algorithm", column)
    keys = [key for key in titles if any(key == of[2] for of in found)]
    body: list[list[Text]] = []
    for task, label in dict.fromkeys(of[:2] for of in found):
        cells = [show(found[task, label, key]) if (task, label, key) in found else NOTHING for key in keys]
        body.append([task_title(task), display_name(label), *cells])
    return number_grid(("task", "algorithm", *(titles[key] for key in keys)), body, caption, texts=2)


def parameters_grid(parameters: Table) -> Grid:
    """Sizes: (task, algorithm) x networks."""
    body = [(task_title(task), display_name(label), *map(count, sizes)) for task, label, *sizes in parameters.rows]
    caption = "Numbers of parameters: of one policy, and of all actor and all critic networks that are trained."
    return number_grid(parameters.columns, body, caption, texts=2)


def unfinished_grid(unfinished: Table) -> Grid:
    """Every missing run."""
    rows = [(task_title(task), display_name(label), str(seed), *why) for task, label, seed, *why in unfinished.rows]
    return Grid(unfinished.columns, rows, "Runs that are not finished.", right=(2,))
