"""The highest MOQD score that is possible on the pressure vessel and the disc brake, as a ratio to pymoo's NSGA-II.

python -m benchmarks.design.ceilings

On these two, the best of the other parameters follows from a place: on the pressure vessel, the cheapest walls from
radius and length; on the disc brake, the greatest force from the radii and the number of discs. So all places of a fine
grid give the front of every cell, and a score that nothing exceeds by more than the grid is coarse.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import moqd
from benchmarks.design.comparison import YARDSTICK, read
from benchmarks.design.measuring import BUDGETS, NUM_CELLS, TOLERANCE
from benchmarks.design.problems import PROBLEMS, Problem
from moqd.core.tessellation import cvt_centroids, nearest_cell

JUST_BELOW = 1 - 1e-12
"""Of a limit, so that rounding does not make the solution infeasible."""


def best_vessels(radius: np.ndarray, length: np.ndarray) -> np.ndarray:
    """With the thinnest walls that are feasible: thicker ones cost more and hold the same."""
    shell, head = (np.maximum(np.ceil(ratio * radius / 0.0625 - 1e-9), 1) for ratio in (0.0193, 0.00954))
    return np.stack([shell, head, radius, length], axis=1)


def best_brakes(inner: np.ndarray, outer: np.ndarray, discs: np.ndarray) -> np.ndarray:
    """With the greatest force that is feasible: less makes stopping longer, and the mass is the same."""
    ring, cubes = outer**2 - inner**2, outer**3 - inner**3
    force = np.minimum(0.4 * 3.14 * ring, ring**2 / (2.22e-3 * cubes)) * JUST_BELOW
    return np.stack([inner, outer, np.minimum(force, 3000.0), discs], axis=1)


def vessels(number: int) -> np.ndarray:
    """A grid of radii, with those at which a wall must become thicker, and lengths."""
    steps = np.concatenate([np.arange(1, 100) * 0.0625 / ratio for ratio in (0.0193, 0.00954)]) * JUST_BELOW
    radii = np.unique(np.concatenate([np.linspace(10, 200, number), steps[(steps >= 10) & (steps <= 200)]]))
    x = best_vessels(*grid(radii, np.linspace(10, 240, number)))
    return x[np.all(x[:, :2] <= 99, axis=1)]


def brakes(number: int) -> np.ndarray:
    fitting = np.arange(2.0, 12.0)  # more discs are too long
    inner, outer, discs = grid(np.linspace(55, 80, number), np.linspace(75, 110, number), fitting)
    wide = outer > inner
    x = best_brakes(inner[wide], outer[wide], discs[wide])
    return x[x[:, 2] >= 1000]


def grid(*values: np.ndarray) -> list[np.ndarray]:
    return [axis.ravel() for axis in np.meshgrid(*values, indexing="ij")]


def score(problem: Problem, x: np.ndarray) -> float:
    """The MOQD score of all of these, with fronts of any length."""
    objectives, features, constraints = problem.evaluate(x, np)
    reference = np.array(problem.reference_point)
    counts = np.all(constraints <= TOLERANCE, axis=1) & np.all(objectives < reference, axis=1)
    bounds = list(problem.features.values())
    single = (np.asarray(part, np.float32) for part in (features[counts], cvt_centroids(NUM_CELLS, bounds), bounds))
    place, centroids, limits = single
    cell, fitness = np.asarray(nearest_cell(place, centroids, limits.T)), -objectives[counts]
    return sum(moqd.hypervolume(fitness[cell == one], -reference) for one in np.unique(cell))


CEILINGS: dict[str, Callable[[int], np.ndarray]] = {"pressure-vessel": vessels, "disc-brake": brakes}


def main() -> None:
    for name, solutions in CEILINGS.items():
        found = read(Path("results/bench/design"), name, YARDSTICK).values()
        for number in (250, 500, 1000):
            reached = score(PROBLEMS[name], solutions(number))
            told = [
                f"{reached / median(one[str(budget)]['moqd_score'] for one in found):.4f} (at {budget:,})"
                for budget in BUDGETS
            ]
            print(f"{name}, {number} values of each parameter: {reached:,.0f}, or {', '.join(told)} times {YARDSTICK}")


if __name__ == "__main__":
    main()
