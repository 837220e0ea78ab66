import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection

from moqd.algorithms import ALGORITHMS
from moqd.core.metrics import cell_hypervolumes
from moqd.plots.archives import archives_figure
from moqd.study.plan import BASELINES, PAPER_TASKS
from tests.plots.made import NUM_CELLS, NUM_EMPTY, assert_readable, made_results, notes

THREE = ("mome-p2c", "mome", "nsga2")
SHAPES = dict(zip(PAPER_TASKS, [(4, 2), (4, 3), (2, 2), (1, 2), (1, 3), (2, 2)], strict=True))


def median_run(results, task, label):
    """The one with as many runs above as below."""
    runs = results.of(task, label)
    return sorted(runs, key=lambda run: run.metrics["moqd_score"][-1])[len(runs) // 2]


def drawn(num_features):
    """The axes of the algorithms, those beside, and the hypervolumes of the occupied cells by algorithm."""
    results = made_results({"one": (num_features, 2)}, THREE)
    figure = archives_figure(results, THREE)
    volumes = []
    for label in THREE:
        run = median_run(results, "one", label)
        occupied = np.asarray(run.archive.valid).any(axis=1)
        volumes.append(cell_hypervolumes(run.archive, run.reference_point)[occupied])
    *panels, beside = figure.axes
    return panels, beside, volumes


@pytest.mark.parametrize(("num_features", "kind"), [(2, PolyCollection), (3, LineCollection), (4, LineCollection)])
def test_all_archives_of_a_task_have_one_scale_of_colours(num_features, kind):
    panels, beside, volumes = drawn(num_features)
    whole = np.concatenate(volumes)
    for ax, volume in zip(panels, volumes, strict=True):
        shown = [one for one in ax.collections if isinstance(one, kind)][-1]
        assert sorted(shown.get_array()) == sorted(volume)
        assert shown.get_clim() == (whole.min(), whole.max())
    assert beside.get_ylabel() == "hypervolume"
    assert beside.get_ylim() == (whole.min(), whole.max())


def test_bars_of_a_task_have_one_height():
    panels, beside, volumes = drawn(1)
    for ax, volume in zip(panels, volumes, strict=True):
        (bars,) = ax.containers
        assert sorted(bar.get_height() for bar in bars) == sorted(volume)
        assert len(bars) == NUM_CELLS - NUM_EMPTY
        assert ax.get_xlim() == (-2, 3)
    assert len({ax.get_ylim() for ax in panels}) == 1
    assert panels[0].get_ylim()[0] == 0
    assert panels[0].get_ylim()[1] > np.concatenate(volumes).max()
    assert not beside.axison  # there are no colours


def test_without_features_the_hypervolume_is_said():
    panels, beside, volumes = drawn(0)
    assert [float(text.get_text()) for ax in panels for text in ax.texts] == pytest.approx(
        [v[0] for v in volumes], rel=1e-3
    )
    assert not beside.axison


def test_columns_are_algorithms_and_rows_say_what_is_seen():
    results = made_results({"a$b_c": (2, 2), "ant-2": (4, 2), "hopper-2": (1, 2), "none": (0, 2)}, THREE)
    figure = archives_figure(results, THREE)
    assert [text.get_text() for text in figure.texts[:3]] == ["MOME-P2C", "MOME", "NSGA-II"]
    bold = [text.get_text() for text in figure.texts if text.get_weight() == "bold"]
    assert bold == ["Ant-2", "Hopper-2", r"a\$b_c", "none"]
    said = " ".join(text.get_text() for text in figure.texts)
    assert "feature 0 (degrees); feature 1; feature 2; feature 3, each \N{MINUS SIGN}2 to 3" in said
    assert "hypervolume of every cell over feature 0 (degrees)" in said
    assert "across: feature 0 (degrees), up: feature 1; grey: empty cell" in said
    assert not figure.legends
    assert_readable(figure)


def test_what_is_not_there_says_so():
    for num_features in (1, 2, 4):
        missing, empty = {("one", "mome-p2c")}, {("one", "nsga2")}
        results = made_results({"one": (num_features, 2)}, THREE, missing=missing, empty=empty)
        figure = archives_figure(results, THREE)
        assert notes(figure) == ["no\nfinished run", "the archive\nis empty"]
        assert_readable(figure)
        first, second, *_ = figure.axes
        assert second.collections or second.containers
        # The numbers of a row are at its first panel, also if that is empty.
        numbered = [ax.yaxis.get_tick_params().get("labelleft", True) for ax in figure.axes[:3]]
        assert num_features == 4 or numbered == [True, False, False]
        assert first.get_xlim() == second.get_xlim() or num_features == 4


def test_a_task_without_results_has_no_scale():
    results = made_results({"one": (2, 2)}, THREE, missing=[("one", label) for label in THREE])
    figure = archives_figure(results, THREE)
    assert notes(figure) == ["no\nfinished run"] * 3
    assert not figure.axes[3].axison
    assert_readable(figure)


def test_all_hypervolumes_the_same(monkeypatch):
    monkeypatch.setattr("moqd.plots.archives.cell_hypervolumes", lambda archive, _: np.zeros(len(archive.valid)))
    for num_features in (1, 2, 4):
        assert_readable(archives_figure(made_results({"one": (num_features, 2)}, THREE), THREE))


@pytest.mark.parametrize(
    ("tasks", "algorithms"), [(PAPER_TASKS, BASELINES[:2]), (("ant-3", "hopper-2", "walker-2"), tuple(ALGORITHMS))]
)
def test_all_panels_are_squares_of_one_size(tasks, algorithms):
    results = made_results({task: SHAPES[task] for task in tasks}, algorithms, num_seeds=1)
    figure = archives_figure(results, algorithms)
    assert_readable(figure)
    panels = [ax for ax in figure.axes if ax.get_ylabel() != "hypervolume" and ax.axison]
    assert len(panels) == len(tasks) * len(algorithms)
    sizes = np.array([ax.get_window_extent().size for ax in panels])
    np.testing.assert_allclose(sizes, sizes[0, 0])
    left = np.array([ax.get_window_extent().x0 for ax in panels]).reshape(len(tasks), -1)
    np.testing.assert_allclose(left, np.broadcast_to(left[0], left.shape))
