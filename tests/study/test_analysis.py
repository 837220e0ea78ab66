"""From results to numbers, against SciPy, statsmodels, and values worked out on paper; all runs are made up."""

import gc
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean
from statsmodels.stats.multitest import multipletests

from moqd.core.archive import Archive
from moqd.core.metrics import METRICS, OVER_TIME
from moqd.study import analysis
from moqd.study.analysis import (
    Table,
    additions_table,
    comparisons_table,
    curve,
    curves_table,
    efficiency_table,
    final_metrics,
    one_hot_table,
    parameters_table,
    representative,
    runs_table,
    summary_table,
    tally_table,
    unfinished_table,
    wall_clock_table,
)
from moqd.study.plan import Study
from moqd.study.summaries import Result, Results, Unfinished

NAN = float("nan")


def archive_of(fronts: list[list[tuple[float, float]]], length: int = 4) -> Archive:
    """Two objectives, one feature; empty places hold what would be noticed."""
    places = (len(fronts), length)
    fitness, valid = np.full((*places, 2), 9999.0, np.float32), np.zeros(places, bool)
    for cell, front in enumerate(fronts):
        for place, vector in enumerate(front):
            fitness[cell, place], valid[cell, place] = vector, True
    feature = np.zeros((*places, 1), np.float32)
    return Archive((), fitness, feature, fitness, valid, feature[:, 0], np.array([[0.0], [1.0]], np.float32))


def made(
    algorithm: str,
    seed: int,
    values: float | list[float] = 1.0,
    *,
    task: str = "hill",
    fronts: list[list[tuple[float, float]]] | None = None,
    every: int = 100,
    pace: float = 1.0,
    **columns: list[float],
) -> Result:
    """A run whose metrics over time are all `values`, logged every so many evaluations, but for those in `columns`."""
    over_time = np.atleast_1d(np.asarray(values, float))
    evaluations = every * np.arange(1.0, len(over_time) + 1)
    metrics = dict.fromkeys((*METRICS, "num_solutions"), over_time)
    metrics |= {"evaluations": evaluations, "seconds": pace * evaluations}
    metrics |= {name: np.asarray(column, float) for name, column in columns.items()}
    archive = archive_of(fronts or [[(0.0, 1.0)]])
    return Result(task, algorithm, seed, metrics, archive, np.zeros(2), {}, Path("nowhere"))


def seeds_of(algorithm: str, values: Iterable[float], **others: Any) -> list[Result]:
    return [made(algorithm, seed, value, **others) for seed, value in enumerate(values)]


def results_of(
    results: list[Result],
    algorithms: tuple[str, ...],
    *,
    tasks: tuple[str, ...] = ("hill",),
    unfinished: tuple[Unfinished, ...] = (),
    timings: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
) -> Results:
    study = Study("made", tasks, algorithms, (0, 1, 2), algorithms[0], ())
    return Results(study, tuple(results), unfinished, {}, timings or {})


def rows_of(table: Table, **wanted: Any) -> list[dict[str, Any]]:
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def row_of(table: Table, **wanted: Any) -> dict[str, Any]:
    (row,) = rows_of(table, **wanted)
    return row


def test_final_values_are_the_last_ones():
    run = made("a", 7, [1.0, 2.0, 3.0], coverage=[0.1, 0.2, 0.3], num_solutions=[1, 5, 9])
    (final,) = final_metrics(results_of([run], ("a", "b")))
    assert (final["task"], final["algorithm"], final["seed"]) == ("hill", "a", 7)
    assert (final["evaluations"], final["seconds"], final["num_solutions"]) == (300, 300.0, 9)
    assert (final["moqd_score"], final["max_sum_scores"], final["coverage"]) == (3.0, 3.0, 0.3)


def test_sparsity_is_scaled_by_the_ranges_of_the_whole_study():
    results = results_of(
        [
            made("a", 0, 77.0, fronts=[[(0, 4), (1, 2)], [(2, -6)]]),
            made("b", 0, 77.0, fronts=[[(8, 3), (5, 4)], []]),
            made("a", 0, 77.0, task="flat", fronts=[[(3, 1), (1, 1)]]),
        ],
        ("a", "b"),
        tasks=("hill", "flat"),
    )
    a, b, flat = final_metrics(results)
    # On the hill the first objective is from 0 to 8, the second from -6 to 4; of a and b together.
    assert a["moqd_sparsity_occupied"] == pytest.approx((1 / 8) ** 2 + (2 / 10) ** 2)
    assert b["moqd_sparsity_occupied"] == pytest.approx((3 / 8) ** 2 + (1 / 10) ** 2)
    for final in (a, b):  # one of two cells has more than one solution
        assert final["moqd_sparsity_score"] == pytest.approx(final["moqd_sparsity_occupied"] / 2)
    # The front of all that a has: (0, 4), (1, 2), (2, -6).
    assert a["global_sparsity"] == pytest.approx(((1 + 1) / 64 + (4 + 64) / 100) / 2)
    # Elsewhere it is from 1 to 3; the second objective has no range, and stays as it is. (1, 1) is dominated.
    assert flat["moqd_sparsity_score"] == 1
    assert flat["global_sparsity"] == 0


def test_archives_are_measured_once(monkeypatch):
    gc.collect()  # what other tests have left
    measured = []
    original = analysis.sparsity_metrics
    monkeypatch.setattr(analysis, "sparsity_metrics", lambda *given: measured.append(1) or original(*given))
    results = results_of([made("a", 0), made("a", 1), made("b", 0)], ("a", "b"))
    for table in (runs_table, summary_table, comparisons_table, one_hot_table, efficiency_table, runs_table):
        table(results)
    assert len(measured) == 3
    final_metrics(results)[0]["moqd_score"] = 99.0  # a copy
    assert final_metrics(results)[0]["moqd_score"] == 1.0
    others = results_of([made("a", 0, 5.0)], ("a", "b"))
    assert final_metrics(others)[0]["moqd_score"] == 5.0
    assert len(measured) == 4
    kept = len(analysis._MEASURED)
    del results, others
    gc.collect()
    assert len(analysis._MEASURED) == kept - 2


def test_summary():
    values = [1, 2, 3, 4, 5, 60]
    results = results_of(seeds_of("a", values) + seeds_of("b", [7.0]), ("a", "b", "c"))
    row = row_of(summary_table(results), metric="coverage", algorithm="a")
    assert (row["seeds"], row["median"], row["q1"], row["q3"]) == (6, 3.5, 2.25, 4.75)
    assert row["iqm"] == trim_mean(values, 0.25) == 3.5
    assert 1 <= row["iqm_low"] < 3.5 < row["iqm_high"] <= 60
    one = row_of(summary_table(results), metric="coverage", algorithm="b")
    assert (one["seeds"], one["median"], one["q1"], one["q3"], one["iqm"]) == (1, 7, 7, 7, 7)
    assert np.isnan([one["iqm_low"], one["iqm_high"]]).all()
    none = row_of(summary_table(results), metric="coverage", algorithm="c")
    assert none["seeds"] == 0
    assert np.isnan([none["median"], none["iqm"], none["iqm_low"]]).all()


def test_comparisons_agree_with_scipy_and_statsmodels(rng):
    ours = rng.normal(2.0, 1, 9)
    samples = {
        "ours": ours,
        "near": ours + 0.01,
        "far": rng.normal(-1.0, 1, 6),
        "above": rng.normal(5.0, 1, 12),
        "few": rng.normal(0.0, 1, 3),
    }
    results = results_of([run for name, values in samples.items() for run in seeds_of(name, values)], tuple(samples))
    rows = rows_of(comparisons_table(results), metric="moqd_score")
    assert [row["algorithm"] for row in rows] == list(samples)[1:]
    tests = [mannwhitneyu(samples["ours"], samples[row["algorithm"]], alternative="two-sided") for row in rows]
    reject, adjusted, *_ = multipletests([test.pvalue for test in tests], method="holm")
    for row, test, p_adjusted, significant in zip(rows, tests, adjusted, reject, strict=True):
        number = len(samples[row["algorithm"]])
        assert (row["seeds_reference"], row["seeds"], row["reference"]) == (9, number, "ours")
        assert row["effect"] == pytest.approx(test.statistic / (9 * number))
        assert (row["p"], row["p_adjusted"]) == pytest.approx((test.pvalue, p_adjusted))
        assert (row["outcome"] == "tie") == (not significant)
    assert [row["outcome"] for row in rows] == ["tie", "win", "loss", "win"]
    # 3 of 12 can be chosen in 220 ways; the other tests, of more seeds, can be smaller, so this is the last of them.
    assert rows[3]["smallest_p"] == pytest.approx(2 / 220)
    assert all(row["p_adjusted"] >= row["smallest_p"] for row in rows)


@pytest.mark.parametrize(("number", "outcome", "smallest"), [(5, "tie", 2 / 252 * 7), (6, "win", 2 / 924 * 7)])
def test_five_seeds_are_too_few_for_eight_algorithms(number, outcome, smallest):
    algorithms = tuple("abcdefgh")
    runs = [
        run for i, one in enumerate(algorithms) for run in seeds_of(one, np.linspace(0, 1, number) - 2 * i)
    ]  # a is above all others
    for row in rows_of(comparisons_table(results_of(runs, algorithms)), metric="coverage"):
        assert (row["effect"], row["outcome"]) == (1, outcome)
        assert row["p_adjusted"] == pytest.approx(smallest)
        assert row["smallest_p"] == pytest.approx(smallest)


def test_less_sparsity_is_better():
    """Fronts of two solutions, the gaps of the first algorithm are the narrower ones."""
    narrow = [made("a", i, fronts=[[(0, gap), (gap, 0)]]) for i, gap in enumerate([1.0, 1.1, 1.2, 1.3, 1.4, 1.5])]
    wide = [made("b", i, fronts=[[(0, gap), (gap, 0)]]) for i, gap in enumerate([2.0, 2.1, 2.2, 2.3, 2.4, 2.5])]
    sparsity = [name for name, metric in METRICS.items() if metric.less_is_better]
    assert sparsity == ["moqd_sparsity_score", "global_sparsity", "moqd_sparsity_occupied"]
    for metric in sparsity:
        row = row_of(comparisons_table(results_of(narrow + wide, ("a", "b"))), metric=metric)
        assert (row["effect"], row["outcome"], row["p"]) == (1, "win", pytest.approx(2 / 924))
        row = row_of(comparisons_table(results_of(narrow + wide, ("b", "a"))), metric=metric)
        assert (row["effect"], row["outcome"], row["p"]) == (0, "loss", pytest.approx(2 / 924))


def test_all_equal_is_a_tie():
    row = row_of(
        comparisons_table(results_of(seeds_of("a", [1, 1, 1]) + seeds_of("b", [1, 1]), ("a", "b"))), metric="coverage"
    )
    assert (row["effect"], row["p"], row["p_adjusted"], row["outcome"]) == (0.5, 1, 1, "tie")


def test_algorithms_without_results_are_not_tested_and_not_in_the_family():
    runs = seeds_of("a", range(10, 16)) + seeds_of("c", range(6))
    table = comparisons_table(results_of(runs, ("a", "b", "c", "d")))
    missing, there, _ = rows_of(table, metric="moqd_score")
    assert (missing["algorithm"], missing["seeds_reference"], missing["seeds"]) == ("b", 6, 0)
    assert missing["outcome"] == "not tested"
    assert np.isnan([missing[name] for name in ("effect", "p", "p_adjusted", "smallest_p")]).all()
    assert (there["algorithm"], there["outcome"]) == ("c", "win")
    assert there["p_adjusted"] == there["p"] == there["smallest_p"] == pytest.approx(2 / 924)


def test_without_the_reference_nothing_is_tested():
    results = results_of(seeds_of("b", range(3)) + seeds_of("c", range(3)), ("a", "b", "c"))
    rows = comparisons_table(results).rows
    assert len(rows) == 2 * len(METRICS)
    assert {row[-1] for row in rows} == {"not tested"}
    assert all(np.isnan(row["evaluations"]) for row in rows_of(efficiency_table(results)))


def test_seeds_without_a_value_are_left_out_of_that_metric():
    runs = seeds_of("a", [4.0, 5.0, 6.0]) + seeds_of("b", [1.0, 2.0, 3.0])
    runs.append(made("b", 3, 0.0, max_sum_scores=[NAN]))
    runs.append(made("c", 0, 0.0, max_sum_scores=[NAN]))
    results = results_of(runs, ("a", "b", "c"))
    with_gap, none = rows_of(comparisons_table(results), metric="max_sum_scores")
    # c is not in the family, and of b 3 values are left: 2 of 20 ways.
    assert (with_gap["seeds"], with_gap["p_adjusted"]) == (3, pytest.approx(0.1))
    assert (none["seeds"], none["outcome"]) == (0, "not tested")
    assert row_of(comparisons_table(results), metric="moqd_score", algorithm="b")["seeds"] == 4
    assert row_of(summary_table(results), metric="max_sum_scores", algorithm="b")["median"] == 2


def test_one_hot_is_a_family_of_its_own():
    algorithms = ("mome-p2c", "mome-pgx", "mome", "mome-p2c-one-hot")
    runs = [run for i, one in enumerate(algorithms) for run in seeds_of(one, i + np.linspace(0, 0.5, 5))]
    row = row_of(one_hot_table(results_of(runs, algorithms)), metric="coverage")
    assert (row["reference"], row["algorithm"]) == ("mome-p2c-one-hot", "mome-pgx")
    assert row["p"] == row["p_adjusted"] == row["smallest_p"] == pytest.approx(2 / 252)
    assert (row["effect"], row["outcome"]) == (1, "win")
    for part in (algorithms[:3], algorithms[2:]):
        assert one_hot_table(results_of(runs, part)).rows == []


def test_tally():
    outcomes = ["win", "win", "tie", "loss", "not tested"]
    rows = [
        (f"task {i}", metric, "a", label, 6, 6, 0.5, 0.1, 0.1, 0.1, outcome if label == "b" else "not tested")
        for i, outcome in enumerate(outcomes)
        for metric in ("coverage", "moqd_score")
        for label in ("b", "c")
    ]
    tally = tally_table(Table("comparisons", analysis.COMPARISON, rows))
    assert tally.columns == ("algorithm", "metric", "wins", "ties", "losses")
    assert tally.rows == [
        ("b", "coverage", 2, 1, 1),
        ("b", "moqd_score", 2, 1, 1),
        ("c", "coverage", 0, 0, 0),
        ("c", "moqd_score", 0, 0, 0),
    ]


def test_efficiency_worked_out_on_paper():
    ours = [made("a", i, values, pace=2) for i, values in enumerate([[0, 3, 6, 9], [1, 5, 6, 7], [2, 4, 8, 9]])]
    theirs = [made("b", i, [0, value], every=250, pace=1 + i) for i, value in enumerate([3.0, 5.0, 4.0])]
    best = [made("c", 0, [10.0], every=400)]
    table = efficiency_table(results_of(ours + theirs + best, ("a", "b", "c", "d")))
    assert {row["metric"] for row in rows_of(table)} == set(OVER_TIME)
    # Medians of a: 1, 4, 6, 9 after 100, 200, 300, 400; b ends at the median of 3, 5, 4 after 500, in 500 to 1500 s.
    assert row_of(table, metric="moqd_score", algorithm="b") == {
        **{"task": "hill", "metric": "moqd_score", "algorithm": "b", "target": 4, "algorithm_evaluations": 500},
        **{"evaluations": 200, "share": 0.4, "seconds": 400, "algorithm_seconds": 1000},
    }
    never = row_of(table, metric="moqd_score", algorithm="c")
    assert (never["target"], never["algorithm_evaluations"], never["algorithm_seconds"]) == (10, 400, 400)
    assert np.isnan([never[name] for name in ("evaluations", "share", "seconds")]).all()
    missing = row_of(table, metric="moqd_score", algorithm="d")
    assert np.isnan([value for name, value in missing.items() if name not in ("task", "metric", "algorithm")]).all()


def test_curves_take_the_evaluations_that_all_seeds_have():
    runs = [made("a", 0, [1, 2, 3, 4]), made("a", 1, [3, 6]), made("a", 2, [10, 20], every=200)]
    drawn = curve(runs[:2], "moqd_score")
    assert drawn.evaluations.tolist() == [100, 200]
    assert drawn.median.tolist() == [2, 4]
    assert drawn.lower.tolist() == [1.5, 3]
    assert drawn.upper.tolist() == [2.5, 5]
    assert curve(runs, "moqd_score").evaluations.tolist() == [200]
    assert curve(runs, "moqd_score").median.tolist() == [6]  # of 2, 6 and 10
    assert curve([], "moqd_score").median.shape == (0,)


def test_curves_over_time_hold_the_last_value_that_was_logged():
    """One seed logs at 100, 200, 300 and 400 s, the other at 150 and 300 s; both are known from 150 to 300 s."""
    runs = [made("a", 0, [1, 2, 3, 4]), made("a", 1, [10, 20], pace=1.5)]
    drawn = curve(runs, "moqd_score", over="seconds")
    assert drawn.evaluations.tolist() == [150, 200, 300]
    assert drawn.median.tolist() == [(1 + 10) / 2, (2 + 10) / 2, (3 + 20) / 2]
    assert curve([], "moqd_score", over="seconds").median.shape == (0,)
    apart = [made("a", 0, [1, 2]), made("a", 1, [1, 2], pace=9)]
    assert curve(apart, "moqd_score", over="seconds").median.shape == (0,)


def test_curves_leave_out_what_is_missing():
    runs = [made("a", 0, [NAN, 2, 3]), made("a", 1, [NAN, NAN, 5])]
    drawn = curve(runs, "max_sum_scores")
    assert np.isnan(drawn.median[0])
    assert drawn.median[1:].tolist() == [2, 4]
    rows = rows_of(curves_table(results_of(runs, ("a", "b"))), metric="max_sum_scores")
    assert [(row["evaluations"], row["seeds"]) for row in rows] == [(100, 0), (200, 1), (300, 2)]
    assert all(isinstance(row["evaluations"], int) for row in rows)  # a CSV says 100, not 100.0
    assert [rows[2][name] for name in ("median", "q1", "q3")] == [4, 3.5, 4.5]


@pytest.mark.parametrize(("scores", "expected"), [([5, 1, 3], 2), ([4, 1, 3, 2], 3), ([7, 9], 0), ([6], 0)])
def test_the_representative_run_is_the_median_one(scores, expected):
    runs = [made("a", i, [99 - score, score]) for i, score in enumerate(scores)]
    assert representative(runs).seed == expected


def test_additions_by_half_of_the_iterations():
    added, nothing = [[0, 4, 5, 40], [3, 0, 0, 60], [1, 1, 2, 50]], [0] * 4
    columns = {"iteration": [0, 5, 10, 20], "added_pg": nothing}
    counted = [made("a", seed, nothing, added_ga=column, **columns) for seed, column in enumerate(added)]
    results = results_of([*counted, made("b", 0)], ("a", "b", "c"))
    # of the first half 9, 3 and 4, of the second 40, 60 and 50
    assert additions_table(results).rows == [("hill", "a", "ga", 3, 4, 50)]


def test_wall_clock_and_parameters():
    timing = {
        "seconds": {"iteration": [1.0, 2.0, 3.0, 4.0, 50.0], "rollout": [0.5] * 5},
        "parameters": {"policy": 10, "actors": 0, "critics": 7},
    }
    results = results_of([], ("a", "b"), timings={("hill", "b"): timing})
    assert wall_clock_table(results).rows == [
        ("hill", "b", "iteration", 3, 2, 4),
        ("hill", "b", "rollout", 0.5, 0.5, 0.5),
    ]
    assert parameters_table(results).rows == [("hill", "b", 10, 0, 7)]


def test_unfinished_runs_are_listed():
    failed = Unfinished("hill", "b", 3, "failed", "no space left")
    assert unfinished_table(results_of([], ("a", "b"), unfinished=(failed,))).rows == [tuple(failed)]


@pytest.mark.parametrize("runs", [[], [made("a", 0, fronts=[[], []])], [made("b", 0), made("a", 0, [1, 2])]])
def test_every_table_is_of_plain_values_whatever_is_there(runs):
    results = results_of(runs, ("a", "b"))
    comparisons = comparisons_table(results)
    tables = [
        *(runs_table(results), summary_table(results), comparisons, one_hot_table(results), tally_table(comparisons)),
        *(efficiency_table(results), curves_table(results), wall_clock_table(results), parameters_table(results)),
        *(additions_table(results), unfinished_table(results)),
    ]
    assert len({table.name for table in tables}) == len(tables)
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert {type(value) for row in table.rows for value in row} <= {str, int, float}
        json.dumps(table.rows)


def test_ties_cannot_make_few_seeds_significant():
    """All of 3 against all of 3: 1 of 20 divisions on either side, so 0.1; the normal approximation says 0.047."""
    ((label, *_, effect, p, adjusted, smallest, outcome),) = analysis._family(np.full(3, 2.0), {"x": np.full(3, 1.0)})
    assert (label, effect, outcome) == ("x", 1.0, "tie")
    assert p == adjusted == smallest == pytest.approx(0.1)
