from dataclasses import replace

import numpy as np
from matplotlib.colors import to_hex

from moqd.plots.comparison import comparison_figure
from moqd.plots.style import algorithm_styles
from moqd.study.plan import BASELINES, PAPER_TASKS
from tests.plots.made import assert_readable, made_results, notes

METRICS = ["moqd_score", "global_hypervolume", "max_sum_scores", "coverage"]
TWO = ("mome-p2c", "mome")


def band(collection):
    """Evaluations, lower and upper end of a band, read off its outline."""
    corners = collection.get_paths()[0].vertices
    x = np.unique(corners[:, 0])
    return x, *(np.array([end(corners[corners[:, 0] == one, 1]) for one in x]) for end in (min, max))


def test_medians_and_quartiles_over_seeds():
    results = made_results({"hopper-3": (1, 3), "ant-2": (2, 2)}, TWO, num_seeds=4)
    figure = comparison_figure(results, TWO)
    axes = np.reshape(figure.axes, (4, 2))
    styles = algorithm_styles(results.study)
    for row, metric in zip(axes, METRICS, strict=True):
        for ax, task in zip(row, ("ant-2", "hopper-3"), strict=True):
            for line, area, label in zip(ax.lines, ax.collections, TWO, strict=True):
                runs = np.stack([result.metrics[metric] for result in results.of(task, label)])
                assert runs.shape == (4, 4)
                np.testing.assert_allclose(line.get_ydata(), np.median(runs, axis=0))
                evaluations, lower, upper = band(area)
                assert evaluations.tolist() == line.get_xdata().tolist() == [16, 32, 48, 64]
                np.testing.assert_allclose(lower, np.percentile(runs, 25, axis=0))
                np.testing.assert_allclose(upper, np.percentile(runs, 75, axis=0))
                assert line.get_color() == to_hex(area.get_facecolor()[0]) == styles[label].colour


def test_what_is_said_is_said_once():
    results = made_results({"hopper-3": (1, 3), "ant-2": (2, 2), "a$b_c": (0, 2)}, TWO)
    figure = comparison_figure(results, TWO)
    axes = np.reshape(figure.axes, (4, 3))
    titles = [[ax.get_title() for ax in row] for row in axes]
    assert titles == [["Ant-2", "Hopper-3", r"a\$b_c"], *[[""] * 3] * 3]
    labels = [[ax.get_ylabel().replace("\n", " ") for ax in row] for row in axes]
    names = ["MOQD score", "global hypervolume", "max sum of scores", "coverage"]
    assert labels == [[name, "", ""] for name in names]
    assert [[ax.get_xlabel() for ax in row] for row in axes] == [*[[""] * 3] * 3, ["evaluations"] * 3]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["MOME-P2C", "MOME"]
    assert not any(ax.get_legend() for ax in figure.axes)


def test_what_is_not_finished_is_left_out():
    missing = {("one", "mome-p2c"), ("two", "mome-p2c"), ("two", "mome")}
    results = made_results({"one": (2, 2), "two": (2, 2)}, TWO, missing=missing)
    figure = comparison_figure(results, TWO)
    colour = algorithm_styles(results.study)["mome"].colour
    for one, two in np.reshape(figure.axes, (4, 2)):
        assert [line.get_color() for line in one.lines] == [colour]
        assert not two.lines
    assert notes(figure) == ["no finished run"] * 4
    assert [ax.get_xlabel() for ax in figure.axes[-2:]] == ["evaluations", ""]
    assert_readable(figure)


def test_one_seed_is_a_line_without_a_band():
    results = made_results({"one": (2, 2)}, ("mome",), num_seeds=1)
    figure = comparison_figure(results, ("mome",))
    _, lower, upper = band(figure.axes[0].collections[0])
    assert lower.tolist() == upper.tolist() == results.results[0].metrics["moqd_score"].tolist()
    assert all(ax.lines[0].get_marker() == "None" for ax in figure.axes)


def test_values_that_are_not_finite_are_left_out():
    results = made_results({"one": (2, 2)}, ("mome",), num_seeds=1)
    some = {"coverage": np.array([np.nan, np.nan, 0.5, np.nan]), "max_sum_scores": np.full(4, np.nan)}
    run = results.results[0]._replace(metrics=results.results[0].metrics | some)
    figure = comparison_figure(replace(results, results=(run,)), ("mome",))
    figure.draw_without_rendering()
    assert notes(figure) == ["no value"]
    assert figure.axes[2].texts
    first, *_, coverage = [ax.lines[0].get_marker() for ax in figure.axes]
    assert first == "None"
    assert coverage != "None"  # a single point makes no line


def test_the_reference_is_on_top():
    results = made_results({"one": (2, 2)}, ("mome", "mome-p2c", "nsga2"))
    ax = comparison_figure(results, ("mome", "mome-p2c", "nsga2")).axes[0]
    assert max(ax.lines, key=lambda line: line.get_zorder()) is ax.lines[1]


def test_six_tasks_and_eight_algorithms_are_readable_and_as_large():
    results = made_results(dict.fromkeys(PAPER_TASKS, (2, 2)), BASELINES, num_seeds=2)
    figure = comparison_figure(results, BASELINES)
    assert_readable(figure)
    sizes = np.array([ax.get_window_extent().size for ax in figure.axes])
    assert np.ptp(sizes, axis=0).max() < 1  # pixel
