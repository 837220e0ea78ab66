"""The metrics against pymoo, inclusion-exclusion, and values worked out on paper."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pymoo.indicators.hv import HV

import moqd
from moqd.core.archive import Archive
from moqd.core.metrics import EXACT_POINTS, archive_metrics, cell_hypervolumes, global_front, sparsity_metrics


def inclusion_exclusion(points: np.ndarray, reference: np.ndarray) -> float:
    """The volume of a union of boxes, from the volumes of all their intersections."""
    boxes = np.clip(points - reference, 0, None)
    total = 0.0
    for size in range(1, len(boxes) + 1):
        for chosen in combinations(boxes, size):
            total += (-1) ** (size + 1) * np.prod(np.min(chosen, axis=0))
    return total


@pytest.mark.parametrize("num_objectives", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("num_points", [1, 2, 10, 50, 200])
def test_hypervolume_agrees_with_pymoo(num_points, num_objectives, rng):
    points = rng.standard_normal((num_points, num_objectives))
    if num_points > 50 and num_objectives > 4:  # pymoo's takes minutes for a front of 200; most of these are dominated
        points = np.sort(points, axis=0) + 0.05 * rng.standard_normal(points.shape)
    reference = np.full(num_objectives, -1.5)
    above = points[(points > reference).all(axis=1)]
    expected = HV(ref_point=-reference)(-above) if len(above) else 0.0
    assert moqd.hypervolume(points, reference) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("num_objectives", [1, 2, 3, 4, 5, 6, 7])
def test_hypervolume_agrees_with_inclusion_exclusion(num_objectives, rng):
    for num_points in (1, 2, 5, 9):
        points = rng.standard_normal((num_points, num_objectives))
        reference = rng.standard_normal(num_objectives) - 1
        expected = inclusion_exclusion(points, reference)
        assert moqd.hypervolume(points, reference) == pytest.approx(expected, rel=1e-6, abs=1e-12)
        rounded = moqd.hypervolume(jnp.asarray(points, jnp.float32), reference)
        assert rounded == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_large_fronts_of_many_objectives_are_estimated(rng):
    points = np.abs(rng.standard_normal((EXACT_POINTS[8] + 200, 8)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    exact = moqd.hypervolume(points[: EXACT_POINTS[8]], np.zeros(8))
    estimate = moqd.hypervolume(points, np.zeros(8))
    assert exact < estimate < 3 * exact
    units = 10.0 ** np.arange(8)
    assert moqd.hypervolume(points * units + units, units) == pytest.approx(estimate * np.prod(units), rel=0.05)


def test_sparsity_worked_out_on_paper():
    # Gaps 1 and 2 in the first objective, 4 and 1 in the second: (1 + 4 + 16 + 1) / 2.
    assert moqd.sparsity([[0, 5], [1, 1], [3, 0]]) == 11
    assert moqd.sparsity([[3, 0], [0, 5], [1, 1]]) == 11
    assert moqd.sparsity([[1, 2]]) == 0
    assert moqd.sparsity(np.zeros((0, 2))) == 0


def test_pareto_functions_take_numpy_and_jax():
    points = [[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    expected = [True, True, False, True]
    assert moqd.non_dominated(points).tolist() == expected
    assert jax.jit(moqd.non_dominated)(jnp.asarray(points)).tolist() == expected
    # Float64 is not rounded: these differ by less than a float32 can tell.
    assert moqd.non_dominated(np.array([[1.0, 1.0], [1.0 + 1e-12, 1.0]])).tolist() == [False, True]
    assert moqd.crowding_distance(np.array([[0, 10], [1, 8], [4, 5], [5, 0]])).tolist() == [np.inf, 0.65, 0.8, np.inf]
    assert moqd.non_dominated(np.zeros((0, 3))).shape == moqd.crowding_distance(np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: moqd.hypervolume([[1, 2]], [0]), r"reference_point has shape \(1,\).*2 objectives"),
        (lambda: moqd.hypervolume([1, 2], [0, 0]), r"points has shape \(2,\)"),
        (lambda: moqd.hypervolume([[1, np.nan]], [0, 0]), "not finite"),
        (lambda: moqd.sparsity([[np.inf, 1]]), "not finite"),
        (lambda: moqd.non_dominated(np.zeros((2, 0))), r"points has shape \(2, 0\)"),
    ],
)
def test_bad_points_get_one_sentence(call, message):
    with pytest.raises(moqd.InputError, match=message):
        call()


def archive_of(fronts: list[list[list[float]]], length: int = 4) -> Archive:
    cells, objectives = len(fronts), 2
    fitness, valid = np.full((cells, length, objectives), 99.0, np.float32), np.zeros((cells, length), bool)
    for cell, front in enumerate(fronts):
        for place, vector in enumerate(front):
            fitness[cell, place], valid[cell, place] = vector, True
    zeros = np.zeros((cells, length, 1), np.float32)
    return Archive(zeros, fitness, zeros, fitness, valid, zeros[:, 0], np.array([[0.0], [1.0]], np.float32))


def test_archive_metrics_worked_out_on_paper():
    archive = archive_of([[[1, 3], [2, 1]], [], [[3, 2]], [[0, 4], [-1, 5]]])
    # Boxes from (0, 0): 1x3 + 1x1 = 4; 3x2 = 6; (0, 4) and (-1, 5) are at or below the reference.
    assert cell_hypervolumes(archive, [0, 0]).tolist() == [4, 0, 6, 0]
    metrics = archive_metrics(archive, [0, 0], best=[3, 5])
    assert metrics["moqd_score"] == 10
    # (2, 1) is dominated by (3, 2). Sorted by the first objective: -1, 0, 1, 3 and 5, 4, 3, 2.
    assert sorted(global_front(archive).tolist()) == [[-1, 5], [0, 4], [1, 3], [3, 2]]
    assert metrics["global_hypervolume"] == 1 * 3 + 2 * 2
    gaps = (1 + 1 + 4) / 9 + (1 + 1 + 1) / 25
    assert metrics["global_sparsity"] == pytest.approx(gaps / 3)
    first, last = 1 / 9 + 4 / 25, 1 / 9 + 1 / 25
    assert metrics["moqd_sparsity_score"] == pytest.approx((first + last) / 4)
    assert metrics["moqd_sparsity_occupied"] == pytest.approx((first + last) / 2)
    assert metrics["max_sum_scores"] == 5
    assert metrics["coverage"] == 0.75
    assert metrics["num_solutions"] == 5
    assert metrics["below_reference"] == 2
    assert metrics["hypervolume_exact"] == 1


def test_sparsity_metrics_worked_out_on_paper():
    archive = archive_of([[[1, 3], [2, 1]], [], [[3, 2]], [[0, 4], [-1, 5]]])
    found = sparsity_metrics(archive, [2, 10])
    first, last = 1 / 4 + 4 / 100, 1 / 4 + 1 / 100
    assert found["moqd_sparsity_score"] == pytest.approx((first + last) / 4)
    assert found["moqd_sparsity_occupied"] == pytest.approx((first + last) / 2)
    # The global front, sorted by each objective: -1, 0, 1, 3 and 5, 4, 3, 2.
    assert found["global_sparsity"] == pytest.approx(((1 + 1 + 4) / 4 + (1 + 1 + 1) / 100) / 3)
    # A run scales by (best - reference point).
    metrics = archive_metrics(archive, [1, -5], best=[3, 5])
    assert found == {name: metrics[name] for name in found}
    assert set(sparsity_metrics(archive_of([[], []]), [1, 1]).values()) == {0.0}


@pytest.mark.parametrize("num_objectives", [2, 3])
def test_metrics_of_an_archive_are_those_of_its_fronts(num_objectives, rng):
    fitness = np.round(rng.standard_normal((40, 12, num_objectives)), 1).astype(np.float32)  # so that some are equal
    valid = rng.random((40, 12)) < rng.random((40, 1))
    fitness[~valid] = 1e30  # what is in an empty place counts nowhere
    zeros = np.zeros((40, 12, 1), np.float32)
    archive = Archive(zeros, fitness, zeros, fitness, valid, zeros[:, 0], np.array([[0.0], [1.0]], np.float32))
    reference, fronts = (
        np.full(num_objectives, -0.5),
        [front[there] for front, there in zip(fitness, valid, strict=True)],
    )
    assert {len(front) for front in fronts} > {0, 1, 2}
    expected = [moqd.hypervolume(front, reference) for front in fronts]  # by moocore
    np.testing.assert_allclose(cell_hypervolumes(archive, reference), expected, rtol=1e-12)
    metrics, scale = archive_metrics(archive, reference, np.full(num_objectives, 1.5)), 2.0
    gaps = [moqd.sparsity(np.asarray(front, float) / scale) for front in fronts]
    assert metrics["moqd_score"] == pytest.approx(sum(expected))
    assert metrics["moqd_sparsity_score"] == pytest.approx(np.mean(gaps))
    assert metrics["moqd_sparsity_occupied"] == pytest.approx(sum(gaps) / sum(len(front) > 1 for front in fronts))
    assert metrics["coverage"] == sum(len(front) > 0 for front in fronts) / 40
    every = np.asarray(fitness[valid], float)
    front = global_front(archive)
    np.testing.assert_array_equal(front, np.unique(every[moqd.non_dominated(every)], axis=0))
    assert metrics["global_hypervolume"] == pytest.approx(
        HV(ref_point=-reference)(-every[(every > reference).all(axis=1)])
    )


def test_an_empty_archive_has_metrics():
    metrics = archive_metrics(archive_of([[], []]), [0, 0], best=[-np.inf, -np.inf])
    assert metrics["moqd_score"] == metrics["coverage"] == metrics["global_sparsity"] == 0
    assert np.isnan(metrics["max_sum_scores"])
