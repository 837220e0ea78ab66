from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from moqd.algorithms import ALGORITHMS
from moqd.plots.global_fronts import global_fronts_figure
from moqd.plots.style import algorithm_styles
from moqd.study.plan import PAPER_TASKS
from tests.plots.made import assert_readable, made_results, notes
from tests.plots.test_archives import SHAPES, median_run

THREE = ("mome-p2c", "mome", "nsga2")


def best_of(points):
    """Those that no other dominates, pair by pair."""
    return [p for p in points if not any(np.all(q >= p) and np.any(q > p) for q in points)]


def fronts(results):
    """The global front of each algorithm's median run, maximised."""
    found = {}
    for label in THREE:
        archive = median_run(results, "one", label).archive
        points = np.asarray(archive.fitness, float)[np.asarray(archive.valid)]
        found[label] = np.array(best_of(points))
    return found


def rows_of(points):
    return sorted(map(tuple, np.asarray(points, float).tolist()))


def test_two_objectives_are_a_line_in_the_users_units():
    results = made_results({"one": (2, 2)}, THREE)
    figure = global_fronts_figure(results, THREE)
    (ax,) = figure.axes
    for i, (label, front) in enumerate(fronts(results).items()):
        points, line = ax.lines[2 * i : 2 * i + 2]
        # The second objective is minimised, so the user's values are minus what is maximised.
        assert rows_of(points.get_xydata()) == rows_of(line.get_xydata()) == rows_of(front * [1, -1])
        assert np.all(np.diff(line.get_xdata()) > 0)
        assert line.get_color() == points.get_color() == algorithm_styles(results.study)[label].colour
    assert ax.get_xlabel() == "objective 0 (m/s)"
    assert ax.get_ylabel() == "objective 1, less is better"
    assert ax.get_title() == "one"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["MOME-P2C", "MOME", "NSGA-II"]


def test_three_objectives_are_three_planes():
    results = made_results({"one": (2, 3)}, THREE)
    figure = global_fronts_figure(results, THREE)
    direction = np.array([1, 1, -1])
    for ax, pair in zip(figure.axes, combinations(range(3), 2), strict=True):
        pair = list(pair)
        for i, front in enumerate(fronts(results).values()):
            points, line = ax.lines[2 * i : 2 * i + 2]
            assert rows_of(points.get_xydata()) == rows_of((front * direction)[:, pair])
            edge = np.array(best_of(front[:, pair])) * direction[pair]
            assert rows_of(line.get_xydata()) == rows_of(edge)
    assert [ax.get_title() for ax in figure.axes] == ["", "one", ""]
    last = figure.axes[2]
    assert (last.get_xlabel(), last.get_ylabel()) == ("objective 1", "objective 2, less is better")


def test_more_objectives_are_parallel_axes():
    results = made_results({"one": (2, 5)}, THREE)
    (ax,) = global_fronts_figure(results, THREE).axes
    expected = {label: front * [1, 1, 1, 1, -1] for label, front in fronts(results).items()}
    everything = np.concatenate(list(expected.values()))
    low, high = everything.min(axis=0), everything.max(axis=0)
    assert len(ax.collections) == 3
    styles = algorithm_styles(results.study)
    by_colour = {to_hex(lines.get_color()[0]): lines for lines in ax.collections}
    for label, front in expected.items():
        heights = [path.vertices[:, 1] for path in by_colour[styles[label].colour].get_paths()]
        np.testing.assert_allclose(sorted(map(tuple, heights)), rows_of((front - low) / (high - low)), atol=1e-9)
    assert to_hex(ax.collections[-1].get_color()[0]) == styles["mome-p2c"].colour  # the reference is on top


def test_one_objective_is_its_best_value():
    results = made_results({"one": (2, 1)}, THREE)
    (ax,) = global_fronts_figure(results, THREE).axes
    least = [-front.max() for front in fronts(results).values()]
    assert [line.get_ydata()[0] for line in ax.lines] == pytest.approx(least)


def test_what_is_not_there_says_so():
    nothing = [("none", label) for label in THREE]
    for shape in ((2, 1), (2, 2), (2, 3), (2, 5)):
        num_panels = 3 if shape == (2, 3) else 1
        results = made_results({"some": shape, "none": shape}, THREE, missing=[*nothing, ("some", "mome")])
        figure = global_fronts_figure(results, THREE)
        assert notes(figure) == ["no finished run"] * num_panels
        assert_readable(figure)
        results = made_results({"none": shape}, THREE, empty=nothing)
        assert notes(global_fronts_figure(results, THREE)) == ["the archives are empty"] * num_panels


def test_six_tasks_are_readable_and_as_large():
    figure = global_fronts_figure(made_results(SHAPES, tuple(ALGORITHMS), num_seeds=1), tuple(ALGORITHMS))
    assert_readable(figure)
    # Four tasks with two objectives, and three panels for each of the two with three.
    assert len(figure.axes) == 4 + 2 * 3
    assert [ax.get_title() for ax in figure.axes[:4]] == ["Ant-2", "HalfCheetah-2", "Hopper-2", "Walker-2"]
    sizes = np.array([ax.get_window_extent().size for ax in figure.axes])
    assert np.ptp(sizes, axis=0).max() < 1  # pixel


def test_all_sorts_of_tasks_together():
    shapes = dict(zip((*PAPER_TASKS, "a$b_c"), [(2, 2), (2, 3), (2, 4), (2, 1), (0, 6), (1, 2), (0, 2)], strict=True))
    assert_readable(global_fronts_figure(made_results(shapes, THREE, num_seeds=1), THREE))
