import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import cKDTree

from moqd.core import tessellation
from moqd.core.tessellation import centroids, cvt_centroids, grid_centroids, nearest_cell, total_cells


@pytest.mark.parametrize("num_features", [1, 2, 4])
def test_cvt_is_repeatable_and_spreads_evenly(num_features, rng):
    bounds = ((0.0, 1.0),) * num_features
    found = cvt_centroids(32, bounds)
    assert found.shape == (32, num_features)
    tessellation._unit_cvt.cache_clear()
    assert np.array_equal(found, cvt_centroids(32, bounds))
    assert not np.array_equal(found, cvt_centroids(32, bounds, seed=1))
    share = np.bincount(cKDTree(found).query(rng.random((20_000, num_features)))[1], minlength=32) / 20_000
    assert share.min() > 0.4 / 32
    assert share.max() < 1.8 / 32


@pytest.mark.parametrize(
    "num_features", [pytest.param(n, marks=[pytest.mark.slow] * (n > 2)) for n in tessellation.SHIPPED_FEATURES]
)
def test_the_cells_that_are_shipped_are_those_that_would_be_computed(num_features):
    """If not, because scikit-learn has changed: runs stay comparable, as long as nobody calls `write_shipped`."""
    computed = tessellation._compute_cvt(tessellation.SHIPPED_CELLS, num_features, 0)
    found = cvt_centroids(tessellation.SHIPPED_CELLS, ((0.0, 1.0),) * num_features)
    np.testing.assert_allclose(found, computed, atol=1e-5)


def test_cells_are_kept_and_checked(tmp_path, monkeypatch):
    bounds = ((0.0, 1.0), (0.0, 1.0))
    plain = cvt_centroids(24, bounds)
    monkeypatch.setattr(tessellation, "_kept", tmp_path / "cells")

    def again():
        tessellation._unit_cvt.cache_clear()
        return cvt_centroids(24, bounds)

    assert np.array_equal(again(), plain)
    (path,) = (tmp_path / "cells").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(tessellation, "_compute_cvt", None)
        assert np.array_equal(again(), plain)
    good = path.read_bytes()
    for bad in (good[:-5], good[:40] + b"x" + good[41:], b"", b"\x80\x04."):
        path.write_bytes(bad)
        assert np.array_equal(again(), plain)
        assert path.read_bytes() == good
    monkeypatch.setattr(tessellation, "_kept", tmp_path / "cells" / path.name / "nowhere")
    assert np.array_equal(again(), plain)
    tessellation._unit_cvt.cache_clear()


def test_cvt_scales_with_the_bounds():
    unit = cvt_centroids(16, ((0.0, 1.0), (0.0, 1.0)))
    np.testing.assert_allclose(cvt_centroids(16, ((-5.0, 5.0), (100.0, 101.0))), unit * [10, 1] + [-5, 100], rtol=1e-5)


def test_grid_centroids_are_cell_middles():
    np.testing.assert_allclose(
        grid_centroids((2, 3), ((0.0, 1.0), (0.0, 3.0))),
        [[0.25, 0.5], [0.25, 1.5], [0.25, 2.5], [0.75, 0.5], [0.75, 1.5], [0.75, 2.5]],
    )


def test_the_cell_of_a_grid_is_the_bin_of_a_histogram(rng):
    shape, bounds = (7, 4), ((-2.0, 3.0), (100.0, 900.0))
    feature = rng.uniform(*np.array(bounds).T, (5000, 2)).astype(np.float32)
    edges = [np.linspace(low, high, number + 1) for number, (low, high) in zip(shape, bounds, strict=True)]
    # At an edge two centroids are as near, up to rounding.
    gap = np.stack([np.abs(feature[:, [i]] - edges[i]).min(axis=1) / np.ptp(edges[i]) for i in range(2)])
    feature = feature[gap.min(axis=0) > 1e-6]
    assert len(feature) > 4900
    cell = np.asarray(nearest_cell(jnp.asarray(feature), *grid(shape, bounds)))
    row, column = (np.digitize(feature[:, i], edges[i]) - 1 for i in range(2))
    assert np.array_equal(cell, np.ravel_multi_index((row, column), shape))
    counts = np.histogram2d(*feature.T, bins=edges)[0]
    assert np.array_equal(np.bincount(cell, minlength=28).reshape(shape), counts)


def grid(shape, bounds):
    return jnp.asarray(centroids(shape, bounds)), jnp.asarray(bounds, jnp.float32).T


@pytest.mark.parametrize("shape", [(9,), (1, 6), (20, 30), (3, 4, 5), (2, 1, 3, 4)])
def test_every_centroid_of_a_grid_lies_in_its_own_cell(shape, rng):
    bounds = tuple((low, low + extent) for low, extent in rng.uniform(0.5, 100, (len(shape), 2)).tolist())
    centroid, limits = grid(shape, bounds)
    assert centroid.shape == (total_cells(shape), len(shape))
    assert np.array_equal(nearest_cell(centroid, centroid, limits), np.arange(total_cells(shape)))
    # And what lies outside of the bounds is in a cell at the border.
    corners = jnp.stack([limits[0] - 1e3, limits[1] + 1e3])
    assert np.array_equal(nearest_cell(corners, centroid, limits), [0, total_cells(shape) - 1])


def test_a_number_is_a_tessellation_and_a_tuple_a_grid():
    bounds = ((0.0, 1.0), (0.0, 3.0))
    assert np.array_equal(centroids(6, bounds), cvt_centroids(6, bounds))
    assert np.array_equal(centroids((2, 3), bounds), grid_centroids((2, 3), bounds))
    assert (total_cells(6), total_cells((2, 3)), total_cells((5,))) == (6, 6, 5)


@pytest.mark.parametrize("num_features", [1, 2, 3, 4])
def test_nearest_cell_agrees_with_a_kd_tree_in_units_of_the_bounds(num_features, rng):
    lower, upper = -(10.0 ** np.arange(num_features)), 3 * 10.0 ** np.arange(num_features)
    unit, features = rng.random((64, num_features)), rng.random((500, num_features)) * 1.4 - 0.2
    cell = nearest_cell(
        jnp.asarray(lower + features * (upper - lower), jnp.float32),
        jnp.asarray(lower + unit * (upper - lower), jnp.float32),
        jnp.asarray([lower, upper], jnp.float32),
    )
    distance, _ = cKDTree(unit).query(np.clip(features, 0, 1))
    ours = np.linalg.norm(unit[np.asarray(cell)] - np.clip(features, 0, 1), axis=1)
    np.testing.assert_allclose(ours, distance, atol=1e-5)


def test_without_features_there_is_one_cell():
    assert cvt_centroids(128, ()).shape == (1, 0)
    assert np.array_equal(nearest_cell(jnp.zeros((3, 0)), jnp.zeros((1, 0)), jnp.zeros((2, 0))), [0, 0, 0])
