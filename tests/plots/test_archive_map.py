from itertools import combinations

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import moqd
from moqd.core.metrics import cell_hypervolumes
from moqd.core.tessellation import grid_centroids
from moqd.plots.archive_map import archive_map, archive_map_figure, cell_polygons, feature_pairs
from moqd.plots.style import EMPTY
from tests.plots.made import NUM_CELLS, NUM_EMPTY, made_run


def drawn(num_features, *, empty=False):
    """The run, its hypervolumes, which cells are occupied, and the axes with the map."""
    run = made_run(num_features, empty=empty)
    volume = cell_hypervolumes(run.archive, run.reference_point)
    ax = Figure().subplots()
    archive_map(ax, run.archive, volume, run.task)
    return run, volume, np.asarray(run.archive.valid).any(axis=1), ax


def test_one_feature_is_bars_over_the_occupied_cells():
    run, volume, occupied, ax = drawn(1)
    centroid = np.asarray(run.archive.centroid)[:, 0]
    (bars,) = ax.containers
    assert len(bars) == occupied.sum() == NUM_CELLS - NUM_EMPTY
    order = np.argsort(centroid)
    there = order[occupied[order]]
    assert [bar.get_height() for bar in bars] == volume[there].tolist()
    for bar, cell in zip(bars, there, strict=True):
        assert bar.get_x() <= centroid[cell] <= bar.get_x() + bar.get_width()
    grey = [patch for patch in ax.patches if patch.get_facecolor() == to_rgba(EMPTY)]
    assert len(grey) == NUM_EMPTY
    # Bars and grey together fill the space of the feature.
    assert sum(patch.get_width() for patch in [*bars, *grey]) == pytest.approx(5)
    assert ax.get_xlabel() == "feature 0 (degrees)"
    assert ax.get_ylabel() == "hypervolume (grey: empty cell)"


def test_two_features_are_a_mosaic():
    run, volume, occupied, ax = drawn(2)
    grey, filled = (collection for collection in ax.collections if isinstance(collection, PolyCollection))
    assert len(grey.get_paths()) == NUM_EMPTY
    assert len(filled.get_paths()) == occupied.sum()
    assert np.array_equal(filled.get_array(), volume[occupied])
    assert filled.get_clim() == (volume[occupied].min(), volume[occupied].max())
    centroid = np.asarray(run.archive.centroid)[occupied]
    assert all(path.contains_point(point) for path, point in zip(filled.get_paths(), centroid, strict=True))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0 (degrees)", "feature 1")
    assert [other.get_ylabel() for other in ax.figure.axes] == ["feature 1", "hypervolume (grey: empty cell)"]


def test_polygons_tile_the_bounds():
    lower, upper = np.array([0.0, -5.0]), np.array([1.0, 5.0])
    for num_cells in (1, 2, 40):
        centroid = np.random.default_rng(0).uniform(lower, upper, (num_cells, 2))
        x_y = [polygon.T for polygon in cell_polygons(centroid, lower, upper)]
        area = [abs(np.sum(x * np.roll(y, 1) - y * np.roll(x, 1))) / 2 for x, y in x_y]
        assert sum(area) == pytest.approx(10)


@pytest.mark.parametrize("shape", [(10, 10), (3, 7), (1, 5), (40, 30)])
def test_polygons_of_a_grid_are_its_rectangles(shape):
    bounds = np.array([(-1.0, 1.0), (10.0, 250.0)])
    lower, upper = bounds.T
    side = (upper - lower) / shape
    polygons = cell_polygons(grid_centroids(shape, [tuple(pair) for pair in bounds]).astype(float), lower, upper)
    for (i, j), polygon in zip(np.ndindex(shape), polygons, strict=True):
        first = lower + side * (i, j)
        corners = [first, first + side * (0, 1), first + side * (1, 0), first + side]
        assert polygon.shape == (4, 2)
        np.testing.assert_allclose(sorted(polygon.tolist()), corners, atol=1e-5 * side.max())


@pytest.mark.parametrize("num_features", [3, 4, 5])
def test_more_features_are_parallel_axes(num_features):
    run, volume, occupied, ax = drawn(num_features)
    (lines,) = (collection for collection in ax.collections if isinstance(collection, LineCollection))
    value = lines.get_array()
    assert np.array_equal(value, np.sort(volume[occupied]))
    centroid = np.asarray(run.archive.centroid)[occupied][np.argsort(volume[occupied])]
    heights = np.array([path.vertices[:, 1] for path in lines.get_paths()])
    np.testing.assert_allclose(heights, (centroid + 2) / 5, atol=1e-6)
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels[0] == "feature 0\n(degrees)\n-2 to 3"
    assert labels[1:] == [f"feature {i}\n-2 to 3" for i in range(1, num_features)]


@pytest.mark.parametrize("num_features", [3, 4])
def test_every_pair_of_features(num_features):
    run = made_run(num_features)
    volume = cell_hypervolumes(run.archive, run.reference_point)
    occupied = np.asarray(run.archive.valid).any(axis=1)
    pairs = list(combinations(range(num_features), 2))
    axes = Figure().subplots(1, len(pairs))
    feature_pairs(axes, run.archive, volume, run.task)
    centroid = np.asarray(run.archive.centroid)
    for ax, (i, j) in zip(axes, pairs, strict=True):
        grey, filled = (collection for collection in ax.collections if isinstance(collection, PathCollection))
        assert len(grey.get_offsets()) == NUM_EMPTY
        best_last = np.argsort(volume[occupied])
        assert np.array_equal(filled.get_offsets(), centroid[occupied][best_last][:, [i, j]])
        assert np.array_equal(filled.get_array(), volume[occupied][best_last])
        assert ax.get_xlabel() == run.task.label(f"feature {i}")
        assert ax.get_ylabel() == run.task.label(f"feature {j}")


@pytest.mark.parametrize(("num_features", "num_axes"), [(1, 1), (2, 2), (3, 5), (4, 8), (5, 2)])
def test_the_figure_has_a_map_and_pairs_where_they_can_be_seen(num_features, num_axes):
    """A map, a scale of colours but for bars, and every pair of three or four features."""
    run = made_run(num_features)
    figure = archive_map_figure(run)
    assert len(figure.axes) == num_axes


@pytest.mark.parametrize("num_features", [1, 2, 3, 5])
def test_an_empty_archive(num_features):
    run = made_run(num_features, empty=True)
    figure = archive_map_figure(run, np.zeros(NUM_CELLS))
    figure.canvas.draw()
    assert not any(len(ax.containers) and len(ax.containers[0]) for ax in figure.axes)
    assert all(label not in ax.get_ylabel() for ax in figure.axes[1:] for label in ("hypervolume",))


def test_without_features_there_is_no_map():
    run = made_run(0)
    with pytest.raises(moqd.InputError, match="has no features, so its archive is one cell"):
        archive_map(Figure().subplots(), run.archive, np.zeros(1), run.task)
