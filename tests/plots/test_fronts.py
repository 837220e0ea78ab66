from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from moqd.core.metrics import cell_fronts, global_front
from moqd.plots.fronts import fronts, fronts_figure, projection
from moqd.plots.style import CONTEXT, FRONT, objective_label
from tests.plots.made import NUM_CELLS, NUM_EMPTY, made_run


def drawn(num_objectives):
    """The axes, every cell's front and the global one, in the user's direction."""
    run = made_run(2, num_objectives)
    ax = Figure().add_subplot(projection=projection(run.task))
    fronts(ax, run.archive, run.task)
    cells = [front * run.task.direction for front in cell_fronts(run.archive) if len(front)]
    return ax, cells, global_front(run.archive) * run.task.direction


def rows_of(points):
    return sorted(map(tuple, np.asarray(points, float).tolist()))


def test_two_objectives_are_a_plane():
    ax, cells, best = drawn(2)
    *context, front = ax.lines
    assert len(context) == len(cells) == NUM_CELLS - NUM_EMPTY
    for line, cell in zip(context, cells, strict=True):
        assert rows_of(line.get_xydata()) == rows_of(cell)
        assert line.get_color() == CONTEXT
    assert rows_of(front.get_xydata()) == rows_of(best)
    assert front.get_color() == FRONT
    assert ax.get_xlabel() == "objective 0 (m/s)"
    assert ax.get_ylabel() == "objective 1, less is better"


def test_three_objectives_are_a_space():
    ax, cells, best = drawn(3)
    assert ax.name == "3d"
    everything, front = ax.collections
    assert rows_of(np.transpose(everything._offsets3d)) == rows_of(np.concatenate(cells))
    assert rows_of(np.transpose(front._offsets3d)) == rows_of(best)
    assert to_rgba(FRONT) == tuple(front.get_facecolor()[0])
    (stems,) = ax.lines
    assert len(stems.get_data_3d()[0]) == 3 * len(best)
    assert np.nanmin(stems.get_data_3d()[2]) == ax.get_zlim()[0]
    labels = ax.get_xlabel(), ax.get_ylabel(), ax.get_zlabel()
    assert labels == ("objective 0 (m/s)", "objective 1", "objective 2, less is better")


def test_more_objectives_are_parallel_axes():
    ax, cells, best = drawn(5)
    everything = np.concatenate(cells)
    low, high = everything.min(axis=0), everything.max(axis=0)
    for lines, points in zip(ax.collections, (everything, best), strict=True):
        heights = [path.vertices[:, 1] for path in lines.get_paths()]
        np.testing.assert_allclose(heights, (points - low) / (high - low), atol=1e-12)
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels[0].startswith("objective 0 (m/s)\n")
    assert labels[-1].startswith("objective 4, less\nis better\n")


def test_one_objective_is_a_ranking():
    ax, cells, best = drawn(1)
    everything, front = ax.lines
    assert np.array_equal(everything.get_ydata(), np.sort(np.concatenate(cells)[:, 0]))  # less is better
    assert front.get_ydata() == best[0]
    assert ax.get_ylabel() == "objective 0, less is better (m/s)"


@pytest.mark.parametrize("num_objectives", [1, 2, 3, 5])
def test_an_empty_archive_says_so(num_objectives):
    run = made_run(2, num_objectives, empty=True)
    figure = fronts_figure(run)
    figure.canvas.draw()
    assert [text.get_text() for text in figure.axes[0].texts] == ["the archive is empty"]


def test_long_labels_are_broken_before_the_unit_and_hold_no_formula():
    task = made_run(2, 2).task
    assert objective_label(task, "objective 0", width=12) == "objective 0\n(m/s)"
    assert objective_label(task, "objective 1", width=12) == "objective 1,\nless is\nbetter"
    priced = replace(task, units={"objective 0": "$ a $"})
    assert objective_label(priced, "objective 0") == r"objective 0 (\$ a \$)"
