"""From the results of a study to the numbers of its report: tables, curves, and who is better than whom.

Final values are those of the last row of metrics.csv, except sparsity: a run scales that by the best it has seen, so
that runs cannot be compared. Here it is measured in the final archives, with each objective divided by its range over
all finished archives of the study on the task. Values that are not finite (an empty archive has no best sum of scores)
are left out of their metric, and `seeds` says how many are in. Nothing to say is nan.
"""

import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from moqd.core.archive import Archive
from moqd.core.metrics import METRICS, OVER_TIME, sparsity_metrics
from moqd.core.types import Source
from moqd.study import statistics
from moqd.study.statistics import Sample, quartiles
from moqd.study.summaries import Result, Results

SIGNIFICANCE = 0.05
ONE_HOT, ONE_HOT_RIVAL = "mome-p2c-one-hot", "mome-pgx"
"""Both aim for one objective at a time; the paper compares them on their own."""
NAN = float("nan")
Row = tuple[Any, ...]


class Table(NamedTuple):
    """Rows of text and numbers."""

    name: str
    """Of its CSV file, without suffix."""
    columns: tuple[str, ...]
    rows: list[Row]


class Curve(NamedTuple):
    """A metric over evaluations, or over seconds: its quartiles over seeds."""

    evaluations: Float[np.ndarray, "rows"]
    """Or seconds."""
    median: Float[np.ndarray, "rows"]
    lower: Float[np.ndarray, "rows"]
    upper: Float[np.ndarray, "rows"]


FINAL = ("task", "algorithm", "seed", "evaluations", "seconds", *METRICS, "num_solutions", "run")
"""What is known of a run at its end."""
_MEASURED = weakref.WeakKeyDictionary[Results, list[dict[str, Any]]]()


def final_metrics(results: Results) -> list[dict[str, Any]]:
    """What each finished run has come to, by task and algorithm; measured once for the same `results`."""
    if results not in _MEASURED:
        _MEASURED[results] = list(_measure(results))
    return [dict(final) for final in _MEASURED[results]]


def _measure(results: Results) -> Iterator[dict[str, Any]]:
    for task in results.study.tasks:
        archives = [result.archive for result in results.results if result.task == task]
        scale = _ranges(archives) if archives else np.ones(0)
        for result in (one for algorithm in results.study.algorithms for one in results.of(task, algorithm)):
            last: dict[str, Any] = {name: float(column[-1]) for name, column in result.metrics.items()}
            last |= sparsity_metrics(result.archive, scale)
            last |= {name: int(last[name]) for name in ("evaluations", "num_solutions")}
            where = result.path.name.removesuffix(".safetensors")  # the folder, or its record
            last |= {"task": task, "algorithm": result.algorithm, "seed": result.seed, "run": where}
            yield {name: last[name] for name in FINAL}


def _ranges(archives: Sequence[Archive]) -> Float[np.ndarray, "objectives"]:
    """From the least to the greatest value of each objective in all of the archives; 1 where these are the same."""
    fitness = np.concatenate([np.asarray(one.fitness, float)[np.asarray(one.valid)] for one in archives])
    extent = np.ptp(fitness, axis=0) if len(fitness) else np.zeros(fitness.shape[1])
    return np.where(extent > 0, extent, 1.0)


def runs_table(results: Results) -> Table:
    """A row per finished run, with its final metrics."""
    return Table("runs", FINAL, [tuple(final.values()) for final in final_metrics(results)])


def summary_table(results: Results) -> Table:
    """How each final metric of each algorithm is spread over seeds."""
    columns = ("task", "metric", "algorithm", "seeds", "median", "q1", "q3", "iqm", "iqm_low", "iqm_high")
    finals, study, rows = _finals(results), results.study, []
    for task, metric, algorithm in product(study.tasks, METRICS, study.algorithms):
        sample = _sample(finals[task, algorithm], metric)
        lower, median, upper = quartiles(sample)
        means = (statistics.interquartile_mean(sample), *statistics.interquartile_mean_interval(sample))
        rows.append((task, metric, algorithm, len(sample), median, lower, upper, *means))
    return Table("summary", columns, rows)


COMPARISON = (
    *("task", "metric", "reference", "algorithm", "seeds_reference", "seeds"),
    *("effect", "p", "p_adjusted", "smallest_p", "outcome"),
)
NOT_TESTED = (NAN, NAN, NAN, NAN, "not tested")


def comparisons_table(results: Results) -> Table:
    """The study's reference against each other algorithm.

    `effect` is the share of pairs of runs in which the reference is better, whichever direction that is. The tests of
    a metric on a task are one family, of as many as there are algorithms with results.
    """
    return Table("comparisons", COMPARISON, _compare(results, results.study.reference, results.study.others))


def one_hot_table(results: Results) -> Table:
    """The ablation that aims for one objective at a time against MOME-PGX, which does so too; each test on its own."""
    both = {ONE_HOT, ONE_HOT_RIVAL} <= set(results.study.algorithms)
    return Table("one_hot", COMPARISON, _compare(results, ONE_HOT, [ONE_HOT_RIVAL] if both else []))


def _compare(results: Results, reference: str, others: Sequence[str]) -> list[Row]:
    finals, rows = _finals(results), []
    for task, (name, metric) in product(results.study.tasks, METRICS.items()):
        goodness = -1 if metric.less_is_better else 1
        own, *samples = (goodness * _sample(finals[task, label], name) for label in (reference, *others))
        rows += [(task, name, reference, *row) for row in _family(own, dict(zip(others, samples, strict=True)))]
    return rows


def _family(own: Sample, others: Mapping[str, Sample]) -> Iterator[Row]:
    """The tests of one family, for values of which more is better.

    No p value is below that of two samples of these sizes which are fully apart: with ties, the normal approximation
    would find a significance that so few seeds cannot have.
    """
    tested = [label for label, sample in others.items() if len(own) and len(sample)]
    least = np.array([statistics.smallest_adjusted_p(len(own), len(others[label]), 1) for label in tested])
    p_values = np.maximum(least, [statistics.mann_whitney(own, others[label]) for label in tested])
    columns = (p_values, statistics.holm_bonferroni(p_values), statistics.holm_bonferroni(least))
    found = dict(zip(tested, zip(*(column.tolist() for column in columns), strict=True), strict=True))
    for label, sample in others.items():
        row = NOT_TESTED
        if label in found:
            effect, (p, p_adjusted, smallest) = statistics.effect_size(own, sample), found[label]
            outcome = "tie" if p_adjusted >= SIGNIFICANCE else "win" if effect > 0.5 else "loss"
            row = (effect, p, p_adjusted, smallest, outcome)
        yield label, len(own), len(sample), *row


def tally_table(comparisons: Table) -> Table:
    """On how many tasks the reference wins, ties and loses; those where nothing was tested are none of these."""
    outcomes = defaultdict[tuple[str, str], list[str]](list)
    for values in comparisons.rows:
        row = dict(zip(comparisons.columns, values, strict=True))
        outcomes[row["algorithm"], row["metric"]].append(row["outcome"])
    algorithms = [algorithm for algorithm, _ in outcomes]
    rows = [
        (*of, *(outcomes[of].count(outcome) for outcome in ("win", "tie", "loss")))
        for of in sorted(outcomes, key=lambda of: algorithms.index(of[0]))
    ]
    return Table("tally", ("algorithm", "metric", "wins", "ties", "losses"), rows)


def efficiency_table(results: Results) -> Table:
    """After how many evaluations the reference's median curve has reached another algorithm's median final value.

    `share` is of the evaluations that the other one took; `seconds` are the reference's median at that row.
    """
    numbers = ("target", "algorithm_evaluations", "evaluations", "share", "seconds", "algorithm_seconds")
    finals, study, rows = _finals(results), results.study, []
    for task, metric in product(study.tasks, OVER_TIME):
        own = results.of(task, study.reference)
        metric_curve, seconds_curve = curve(own, metric), curve(own, "seconds")
        for label in study.others:
            samples = (_sample(finals[task, label], name) for name in (metric, "evaluations", "seconds"))
            target, whole, whole_seconds = (median for _, median, _ in map(quartiles, samples))
            evaluations, seconds = NAN, NAN
            for row in np.flatnonzero(metric_curve.median >= target)[:1]:
                evaluations, seconds = float(metric_curve.evaluations[row]), float(seconds_curve.median[row])
            used = (_whole(whole), _whole(evaluations), evaluations / whole)
            rows.append((task, metric, label, target, *used, seconds, whole_seconds))
    return Table("data_efficiency", ("task", "metric", "algorithm", *numbers), rows)


def curves_table(results: Results) -> Table:
    """The metrics over evaluations, without sparsity (as runs log it, it cannot be compared)."""
    columns = ("task", "algorithm", "metric", "evaluations", "seeds", "median", "q1", "q3")
    study, rows = results.study, []
    for task, algorithm, metric in product(study.tasks, study.algorithms, OVER_TIME):
        evaluations, table = _aligned(results.of(task, algorithm), metric)
        lower, median, upper = statistics.column_quartiles(table)
        seeds = np.sum(np.isfinite(table), axis=0)
        numbers = (evaluations.astype(int), seeds, median, lower, upper)
        rows += [(task, algorithm, metric, *row) for row in zip(*(column.tolist() for column in numbers), strict=True)]
    return Table("curves", columns, rows)


def additions_table(results: Results) -> Table:
    """How many solutions of each source entered the archive: medians over seeds, of either half of the iterations."""
    rows = []
    for task, algorithm, source in product(results.study.tasks, results.study.algorithms, Source):
        column = f"added_{source.name.lower()}"
        halves = [_halves(one.metrics, column) for one in results.of(task, algorithm) if column in one.metrics]
        if np.any(halves):
            rows.append((task, algorithm, source.name.lower(), len(halves), *np.median(halves, axis=0).tolist()))
    return Table("additions", ("task", "algorithm", "source", "seeds", "first_half", "second_half"), rows)


def _halves(metrics: Mapping[str, Float[np.ndarray, "rows"]], column: str) -> tuple[float, float]:
    """The sums of a column up to the middle of the iterations, and from there on."""
    early = metrics["iteration"] <= metrics["iteration"][-1] / 2
    return float(np.sum(metrics[column], where=early)), float(np.sum(metrics[column], where=~early))


def wall_clock_table(results: Results) -> Table:
    """Seconds per iteration and of its parts, where they were measured."""
    rows = [
        (*of, part, median, lower, upper)
        for of, timing in _timed(results)
        for part, seconds in timing["seconds"].items()
        for lower, median, upper in [quartiles(np.asarray(seconds, float))]
    ]
    return Table("wall_clock", ("task", "algorithm", "part", "median", "q1", "q3"), rows)


def parameters_table(results: Results) -> Table:
    """How many parameters a policy has, and those that are trained beside the archive."""
    kinds = ("policy", "actors", "critics")
    rows = [(*of, *(timing["parameters"][kind] for kind in kinds)) for of, timing in _timed(results)]
    return Table("parameters", ("task", "algorithm", *kinds), rows)


def metrics_table(results: Results) -> Table:
    """The rows of metrics.csv of all finished runs; nan where a run has no such column."""
    names = tuple(dict.fromkeys(name for result in results.results for name in result.metrics))
    rows: list[Row] = []
    for task, algorithm in product(results.study.tasks, results.study.algorithms):
        for result in results.of(task, algorithm):
            missing = np.full(len(result.metrics["evaluations"]), NAN)
            columns = (np.asarray(result.metrics.get(name, missing)).tolist() for name in names)
            rows += [(task, algorithm, result.seed, *values) for values in zip(*columns, strict=True)]
    return Table("metrics", ("task", "algorithm", "seed", *names), rows)


def unfinished_table(results: Results) -> Table:
    """The planned runs of which there is no result, and why."""
    return Table("unfinished", ("task", "algorithm", "seed", "state", "reason"), [tuple(r) for r in results.unfinished])


def curve(results: Sequence[Result], metric: str, over: str = "evaluations") -> Curve:
    """A column of metrics.csv over evaluations or seconds, of runs that differ in their seeds only; empty if there are
    none."""
    at, table = (_aligned if over == "evaluations" else _over_time)(results, metric)
    lower, median, upper = statistics.column_quartiles(table)
    return Curve(at, median, lower, upper)


def representative(results: Sequence[Result]) -> Result:
    """The run with the median final MOQD score; the lower of two."""
    ordered = sorted(results, key=lambda result: float(result.metrics["moqd_score"][-1]))
    return ordered[(len(ordered) - 1) // 2]


def _aligned(
    results: Sequence[Result], metric: str
) -> tuple[Float[np.ndarray, "rows"], Float[np.ndarray, "seeds rows"]]:
    """The evaluations at which all of the runs have a row, and the values of each run there."""
    if not results:
        return np.empty(0), np.empty((0, 0))
    logged = [np.asarray(result.metrics["evaluations"], float) for result in results]
    common = reduce(np.intersect1d, logged)
    values = [
        np.asarray(result.metrics[metric], float)[np.searchsorted(evaluations, common)]
        for result, evaluations in zip(results, logged, strict=True)
    ]
    return common, np.stack(values)


def _over_time(
    results: Sequence[Result], metric: str
) -> tuple[Float[np.ndarray, "rows"], Float[np.ndarray, "seeds rows"]]:
    """Seconds that all of the runs have been through, and what each had reached by then: the last value logged."""
    if not results:
        return np.empty(0), np.empty((0, 0))
    logged = [np.asarray(result.metrics["seconds"], float) for result in results]
    start, stop = max(seconds[0] for seconds in logged), min(seconds[-1] for seconds in logged)
    at = np.unique([second for seconds in logged for second in seconds if start <= second <= stop])
    if len(at) == 0:
        return np.empty(0), np.empty((len(results), 0))
    values = [
        np.asarray(result.metrics[metric], float)[np.searchsorted(seconds, at, side="right") - 1]
        for result, seconds in zip(results, logged, strict=True)
    ]
    return at, np.stack(values)


def _finals(results: Results) -> defaultdict[tuple[str, str], list[dict[str, Any]]]:
    """The final metrics by task and algorithm."""
    found = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
    for final in final_metrics(results):
        found[final["task"], final["algorithm"]].append(final)
    return found


def _sample(finals: Sequence[Mapping[str, Any]], metric: str) -> Sample:
    """The finite values of a metric."""
    values = np.array([final[metric] for final in finals], float)
    return values[np.isfinite(values)]


def _timed(results: Results) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    """What was timed, in the order of the study."""
    for of in product(results.study.tasks, results.study.algorithms):
        if of in results.timings:
            yield of, results.timings[of]


def _whole(number: float) -> float:
    """As an integer where it is one, for tables."""
    return int(number) if np.isfinite(number) and number == int(number) else number


TABLES: Mapping[str, Callable[[Results], Table]] = {
    "runs": runs_table,
    "summary": summary_table,
    "comparisons": comparisons_table,
    "one_hot": one_hot_table,
    "tally": lambda results: tally_table(comparisons_table(results)),
    "data_efficiency": efficiency_table,
    "curves": curves_table,
    "metrics": metrics_table,
    "additions": additions_table,
    "wall_clock": wall_clock_table,
    "parameters": parameters_table,
    "unfinished": unfinished_table,
}
"""All tables, by their names."""
