"""Other cells for the same solutions: against the rules of an archive in plain Python."""

import numpy as np
import pytest

import moqd
from moqd.core.metrics import archive_metrics, non_dominated
from moqd.core.tessellation import centroids
from tests.plots.made import made_run
from tests.runs.test_table import spring_run  # noqa: F401


def by_brute_force(run, num_cells):
    """The rows of `run.solutions()` in each cell; fronts are shorter than their length."""
    solutions, bounds = run.solutions(), np.asarray(run.task.feature_bounds, float)
    unit = lambda x: (np.clip(x, *bounds.T) - bounds[:, 0]) / np.ptp(bounds, axis=1)  # noqa: E731
    distance = np.linalg.norm(
        unit(solutions.features)[:, None] - unit(centroids(num_cells, run.task.feature_bounds)), axis=2
    )
    cells = {}
    for cell in np.unique(np.argmin(distance, axis=1)):
        rows = np.flatnonzero(np.argmin(distance, axis=1) == cell)
        front = rows[non_dominated(solutions.objectives[rows].astype(float) * run.task.direction)]
        cells[int(cell)] = {tuple(solutions.objectives[row].tolist()) for row in front}
    return cells


@pytest.mark.parametrize("num_cells", [pytest.param(40, marks=pytest.mark.slow), (3, 2)])
def test_against_brute_force(spring_run, num_cells, tmp_path):  # noqa: F811
    expected = by_brute_force(spring_run, num_cells)
    assert max(map(len, expected.values())) <= spring_run.archive.valid.shape[1]
    run = moqd.regrid(spring_run, num_cells, out=tmp_path / "new")
    solutions = run.solutions()
    found = {
        int(cell): {tuple(row.tolist()) for row in solutions.objectives[solutions.cell == cell]}
        for cell in np.unique(solutions.cell)
    }
    assert found == expected
    before = {tuple(row) for row in spring_run.to_pandas()[["mass", "wire", "length"]].to_numpy()}
    assert {tuple(row) for row in run.to_pandas()[["mass", "wire", "length"]].to_numpy()} <= before
    valid = np.asarray(spring_run.archive.valid)
    measured = archive_metrics(
        run.archive, run.reference_point, np.asarray(spring_run.archive.fitness)[valid].max(axis=0)
    )
    assert {name: run.metrics[name].tolist() for name in measured} == {
        name: [value] for name, value in measured.items()
    }
    assert run.metrics["added_ga"] == spring_run.metrics["added_ga"].sum()
    loaded = moqd.load_run(tmp_path / "new")
    np.testing.assert_array_equal(loaded.archive.fitness, run.archive.fitness)
    assert loaded.config.algorithm.options["num_cells"] == (list(num_cells) if num_cells != 40 else 40)
    with pytest.raises(moqd.InputError, match="is finished and has no checkpoint"):
        moqd.resume(tmp_path / "new", task=spring_run.task)


@pytest.mark.parametrize(
    ("num_cells", "says"), [(0, "at least 1"), ((2, 2, 2), "a grid over 3 features"), ((), "one for each feature")]
)
def test_cells_that_cannot_be(num_cells, says):
    with pytest.raises(moqd.InputError, match=says):
        moqd.regrid(made_run(), num_cells)
