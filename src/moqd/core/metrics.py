"""The metrics of archives, what is to be known of each, and the host-side Pareto functions that they are made of.

Hypervolume is moocore's (Lopez-Ibanez et al.), exact up to 4 objectives and beyond while the front is small enough
to take under a second; larger fronts are estimated, and the metrics say so.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import moocore
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from moqd.core import pareto
from moqd.core.archive import Archive
from moqd.io.errors import InputError


class Metric(NamedTuple):
    """What a metric of an archive is called, what it means, which way is better, and how it is printed."""

    label: str
    """In figures and tables."""
    meaning: str
    less_is_better: bool = False
    share_of: str = ""
    """Of what it is a share; printed in percent."""

    @property
    def title(self) -> str:
        """The label, with what a reader must know to read a curve."""
        hint = "less is better" if self.less_is_better else f"share of {self.share_of}" if self.share_of else ""
        return f"{self.label} ({hint})" if hint else self.label


METRICS = {
    "moqd_score": Metric("MOQD score", "hypervolume of the cells' fronts, summed"),
    "moqd_sparsity_score": Metric("MOQD sparsity score", "mean sparsity of the cells' fronts", less_is_better=True),
    "global_hypervolume": Metric("global hypervolume", "hypervolume of the global front"),
    "global_sparsity": Metric("global sparsity", "sparsity of the global front", less_is_better=True),
    "max_sum_scores": Metric(
        "max sum of scores", "largest sum of objectives of a solution, minimised ones counted negatively"
    ),
    "coverage": Metric("coverage", "share of cells that hold a solution", share_of="cells"),
    "moqd_sparsity_occupied": Metric(
        "MOQD sparsity of occupied cells", "mean sparsity of the fronts of two or more", less_is_better=True
    ),
}
"""By their columns in metrics.csv: the six of the paper, and one more."""
OF_THE_PAPER = tuple(METRICS)[:6]
OVER_TIME = tuple(name for name, metric in METRICS.items() if not metric.less_is_better)
"""Those whose rows in metrics.csv can be compared between runs."""


def formatted(name: str, value: float, *, digits: int = 5) -> str:
    """A value, or a difference of values, of a metric."""
    if name in METRICS and METRICS[name].share_of:
        return f"{value:.1%}"
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e12 else f"{value:.{digits}g}"


EXACT_POINTS = {5: 6000, 6: 500, 7: 150, 8: 75, 9: 50, 10: 30}
"""The largest front by number of objectives whose exact hypervolume takes under a second; with more objectives 20."""


def hypervolume(points: ArrayLike, reference_point: ArrayLike) -> float:
    """The volume that maximised points enclose above a reference point; points at or below it add nothing."""
    return _hypervolume(_points(points), _reference(points, reference_point))[0]


def sparsity(points: ArrayLike) -> float:
    """The paper's sparsity of a front: the mean squared gap between neighbours, summed over objectives.

    Taken of the points as they are: filter them with `non_dominated` and bring the objectives to one scale first. Fewer
    than two points give 0.
    """
    front = _points(points)
    if len(front) < 2:
        return 0.0
    return float(np.sum(np.diff(np.sort(front, axis=0), axis=0) ** 2) / (len(front) - 1))


def non_dominated(points: ArrayLike) -> Bool[np.ndarray, "points"] | Bool[Array, "points"]:
    """Which maximised points no other dominates; equal points do not dominate each other.

    A JAX array is answered in JAX, also under `jit`; anything else in NumPy, compared in float64.
    """
    if isinstance(points, jax.Array):
        return pareto.non_dominated(points)
    front = _points(points)
    return moocore.is_nondominated(front, maximise=True, keep_weakly=True) if len(front) else np.zeros(0, bool)


def crowding_distance(points: ArrayLike) -> Float[np.ndarray, "points"] | Float[Array, "points"]:
    """NSGA-II's crowding distance of the points of one front, averaged over objectives; extremes are infinite.

    A JAX array is answered in JAX, also under `jit`; anything else in NumPy, computed in float64.
    """
    if isinstance(points, jax.Array):
        return pareto.crowding_distance(points)
    front = _points(points)
    padding = -len(front) % 64  # so that not every number of points is compiled anew
    with jax.enable_x64(True):
        padded = jnp.asarray(np.pad(front, ((0, padding), (0, 0))))
        distance = jax.jit(pareto.crowding_distance)(padded, jnp.arange(len(padded)) < len(front))
    return np.asarray(distance)[: len(front)]


def cell_hypervolumes(archive: Archive, reference_point: ArrayLike) -> Float[np.ndarray, "cells"]:
    """The hypervolume of every cell's front; 0 where a cell is empty."""
    return _cell_hypervolumes(archive, np.asarray(reference_point, float))[0]


def cell_fronts(archive: Archive) -> list[Float[np.ndarray, "_ objectives"]]:
    """The objective vectors of every cell's front."""
    fitness, valid = np.asarray(archive.fitness, float), np.asarray(archive.valid)
    return [front[there] for front, there in zip(fitness, valid, strict=True)]


def global_front(archive: Archive) -> Float[np.ndarray, "_ objectives"]:
    """The objective vectors that nothing in the whole archive dominates, each once and in lexicographic order."""
    solutions = np.asarray(archive.fitness, float)[np.asarray(archive.valid)]
    front = solutions[moocore.is_nondominated(solutions, maximise=True)] if len(solutions) else solutions
    return front[np.lexsort(front.T[::-1])]


def archive_metrics(archive: Archive, reference_point: ArrayLike, best: ArrayLike) -> dict[str, float]:
    """The paper's metrics of an archive, and counts.

    Sparsity is of objectives scaled by (best - reference point), `best` being the best seen so far of each objective.
    """
    reference, valid = np.asarray(reference_point, float), np.asarray(archive.valid)
    whole, solutions = global_front(archive), np.asarray(archive.fitness, float)[valid]
    extent = np.asarray(best, float) - reference
    scale = np.where(np.isfinite(extent) & (extent > 0), extent, 1.0)
    (volumes, exact), (volume, also_exact) = _cell_hypervolumes(archive, reference), _hypervolume(whole, reference)
    gaps = _sparsity_metrics(archive, whole, scale)
    return {
        "moqd_score": float(np.sum(volumes)),
        "moqd_sparsity_score": gaps["moqd_sparsity_score"],
        "global_hypervolume": volume,
        "global_sparsity": gaps["global_sparsity"],
        "max_sum_scores": float(np.max(solutions.sum(axis=1))) if len(solutions) else float("nan"),
        "coverage": float(np.mean(np.any(valid, axis=1))),
        "moqd_sparsity_occupied": gaps["moqd_sparsity_occupied"],
        "num_solutions": float(len(solutions)),
        "below_reference": float(np.sum(np.any(solutions <= reference, axis=1))),
        "hypervolume_exact": float(exact and also_exact),
    }


def sparsity_metrics(archive: Archive, scale: ArrayLike) -> dict[str, float]:
    """The three metrics of an archive that are made of sparsity, with each objective divided by its `scale`."""
    return _sparsity_metrics(archive, global_front(archive), np.asarray(scale, float))


def _sparsity_metrics(
    archive: Archive, whole: Float[np.ndarray, "_ objectives"], scale: Float[np.ndarray, "objectives"]
) -> dict[str, float]:
    fitness, valid = np.asarray(archive.fitness, float), np.asarray(archive.valid)
    gaps = np.diff(np.sort(np.where(valid[..., None], fitness / scale, np.nan), axis=1), axis=1)  # NaN comes last
    num_gaps = np.maximum(np.sum(valid, axis=1) - 1, 0)
    sparsities = np.nansum(gaps**2, axis=(1, 2)) / np.maximum(num_gaps, 1)
    return {
        "moqd_sparsity_score": float(np.mean(sparsities)),
        "moqd_sparsity_occupied": float(np.sum(sparsities) / max(np.sum(num_gaps > 0), 1)),
        "global_sparsity": sparsity(whole / scale),
    }


def _cell_hypervolumes(
    archive: Archive, reference: Float[np.ndarray, "objectives"]
) -> tuple[Float[np.ndarray, "cells"], bool]:
    """The hypervolume of every cell's front, and whether all are exact."""
    if len(reference) == 2:  # many small areas: a call for each would take many times as long
        return _areas(np.asarray(archive.fitness, float) - reference, np.asarray(archive.valid)), True
    volumes, exact = zip(*(_hypervolume(front, reference) for front in cell_fronts(archive)), strict=True)
    return np.array(volumes), all(exact)


def _areas(
    corner: Float[np.ndarray, "cells front 2"], valid: Bool[np.ndarray, "cells front"]
) -> Float[np.ndarray, "cells"]:
    """The area that the rectangles between the origin and the valid corners of each cell cover together."""
    corner = np.where((valid & np.all(corner > 0, axis=2))[..., None], corner, 0.0)
    widest_first = np.argsort(-corner[..., 0], axis=1)
    width, height = np.moveaxis(np.take_along_axis(corner, widest_first[..., None], axis=1), 2, 0)
    covered = np.maximum.accumulate(height, axis=1)
    return np.sum(width * np.diff(covered, axis=1, prepend=0.0), axis=1)


def _hypervolume(
    front: Float[np.ndarray, "points objectives"], reference: Float[np.ndarray, "objectives"]
) -> tuple[float, bool]:
    """The hypervolume, and whether it is exact."""
    above = front[np.all(front > reference, axis=1)]
    num_objectives = front.shape[1]
    exact = num_objectives <= 4 or len(above) <= EXACT_POINTS.get(num_objectives, 20)
    if len(above) == 0:
        return 0.0, True
    if exact:
        return float(moocore.hypervolume(above, ref=reference, maximise=True)), True
    # The estimate takes directions at random, which would miss nearly all of the volume where units differ.
    extent = np.max(above - reference, axis=0)
    estimate = moocore.hv_approx((above - reference) / extent, ref=0.0, maximise=True)
    return float(estimate * np.prod(extent)), False


def _points(points: ArrayLike) -> Float[np.ndarray, "points objectives"]:
    array = np.asarray(points, float)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"points has shape {array.shape}; give one row per point and one column per objective.")
    if not np.all(np.isfinite(array)):
        raise InputError("points holds values that are not finite; remove those rows first.")
    return array


def _reference(points: ArrayLike, reference_point: ArrayLike) -> Float[np.ndarray, "objectives"]:
    reference, num_objectives = np.asarray(reference_point, float), np.shape(points)[1]
    if reference.shape != (num_objectives,):
        raise InputError(
            f"reference_point has shape {reference.shape}, but the points have {num_objectives} objectives; "
            f"give {num_objectives} numbers."
        )
    return reference
