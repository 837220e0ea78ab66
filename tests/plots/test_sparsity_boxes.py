import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from moqd.core.metrics import cell_fronts, global_front
from moqd.plots.sparsity_boxes import boxes, sparsity_boxes_figure
from moqd.plots.style import algorithm_styles
from moqd.study.plan import BASELINES, PAPER_TASKS, Study
from tests.plots.made import assert_readable, made_results, notes

THREE = ("mome-p2c", "mome", "nsga2-small")
STYLES = algorithm_styles(Study("made", ("one",), THREE, (0,), THREE[0], ()))


def drawn(values):
    ax = Figure().subplots()
    boxes(ax, values, STYLES)
    return ax


def areas(ax):
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


def test_a_box_is_the_quartiles_and_its_whiskers_are_the_extremes():
    # Of 1, 2, 3, 4, 10 the quartiles are 2, 3 and 4.
    ax = drawn({"mome-p2c": np.array([1.0, 10, 3, 2, 4]), "mome": np.array([5.0, 6, 7])})
    box = areas(ax)[0].get_path().vertices
    assert (box[:, 1].min(), box[:, 1].max()) == (2, 4)
    assert (box[:, 0].min() + box[:, 0].max()) / 2 == 0
    lower, upper, median, points = ax.lines[:4]
    assert sorted(lower.get_ydata()) == [1, 2]
    assert sorted(upper.get_ydata()) == [4, 10]
    assert set(median.get_ydata()) == {3}
    assert points.get_xydata().tolist() == [[0, 1], [0, 10], [0, 3], [0, 2], [0, 4]]
    assert [to_hex(area.get_facecolor()) for area in areas(ax)] == [STYLES[label].colour for label in THREE[:2]]


def test_what_is_missing_leaves_its_place_empty():
    nothing = np.zeros(0)
    ax = drawn({"mome-p2c": nothing, "mome": np.array([np.nan, 1, 2]), "nsga2-small": np.array([np.nan])})
    (box,) = areas(ax)
    assert (box.get_path().vertices[:, 0].min() + box.get_path().vertices[:, 0].max()) / 2 == 1
    assert ax.get_xlim()[0] < 0
    assert ax.get_xlim()[1] > 2
    ax = drawn(dict.fromkeys(THREE, nothing))
    assert not areas(ax)
    assert [text.get_text() for text in ax.texts] == ["no finished run"]


def test_one_seed_is_a_marker_in_its_colour():
    ax = drawn({label: np.array([float(i + 1)]) for i, label in enumerate(THREE)})
    assert not areas(ax)
    assert [line.get_xydata().tolist() for line in ax.lines] == [[[0, 1]], [[1, 2]], [[2, 3]]]
    assert [line.get_markeredgecolor() for line in ax.lines] == [STYLES[label].colour for label in THREE]


@pytest.mark.parametrize(
    ("low", "high", "scale"), [(1, 39, "linear"), (1, 41, "log"), (0, 41, "linear"), (0, 0, "linear")]
)
def test_the_axis_is_logarithmic_only_where_it_must_and_can_be(low, high, scale):
    ax = drawn({"mome": np.array([low, high], float)})
    assert ax.get_yscale() == scale
    bottom, top = ax.get_ylim()
    assert bottom < top
    assert bottom <= low <= high < top
    if scale == "linear":
        assert bottom == 0


def sparsity(front):
    """The mean squared gap, in plain Python."""
    gaps = [(b - a) ** 2 for column in front.T for a, b in zip(sorted(column), sorted(column)[1:], strict=False)]
    return sum(gaps) / (len(front) - 1) if len(front) > 1 else 0.0


def test_three_metrics_by_tasks():
    """On one scale for all runs of a task."""
    results = made_results({"one": (2, 2), "two": (1, 3)}, THREE, num_seeds=3)
    figure = sparsity_boxes_figure(results, THREE[:2])
    assert len(figure.axes) == 6
    for ax, task in zip(figure.axes[4:], ("one", "two"), strict=True):
        everything = np.concatenate(
            [front for r in results.results if r.task == task for front in cell_fronts(r.archive)]
        )
        scale = np.ptp(everything, axis=0)
        expected = [
            sorted(sparsity(global_front(result.archive) / scale) for result in results.of(task, label))
            for label in THREE[:2]
        ]
        points = [sorted(ax.lines[i].get_ydata().tolist()) for i in (3, 7)]
        np.testing.assert_allclose(points, expected)
    labels = [ax.get_ylabel().replace("\n", " ") for ax in figure.axes]
    ending = "(less is better)"
    assert labels == [
        *(f"MOQD sparsity score {ending}", ""),
        *(f"MOQD sparsity of occupied cells {ending}", ""),
        *(f"global sparsity {ending}", ""),
    ]
    assert [ax.get_title() for ax in figure.axes] == ["one", "two", "", "", "", ""]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["MOME-P2C", "MOME"]


def test_six_tasks_and_eight_algorithms_are_readable_and_as_large():
    missing = [("hopper-2", label) for label in BASELINES]
    results = made_results(dict.fromkeys(PAPER_TASKS, (2, 2)), BASELINES, num_seeds=2, missing=missing)
    figure = sparsity_boxes_figure(results, BASELINES)
    assert_readable(figure)
    assert notes(figure) == ["no finished run"] * 3
    sizes = np.array([ax.get_window_extent().size for ax in figure.axes])
    assert np.ptp(sizes, axis=0).max() < 1  # pixel
