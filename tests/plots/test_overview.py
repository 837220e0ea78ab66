import pytest

from moqd.plots.overview import overview_figure, save_overview
from tests.plots.made import made_run


@pytest.mark.parametrize(
    ("num_features", "num_objectives", "titles"),
    [
        (0, 2, ["the fronts"]),
        (1, 5, ["hypervolume of every cell's front", "the fronts"]),
        (2, 3, ["hypervolume of every cell's front", "the fronts"]),
        (5, 2, ["hypervolume of every cell's front", "the fronts"]),
    ],
)
def test_the_map_stands_beside_the_fronts(num_features, num_objectives, titles):
    run = made_run(num_features, num_objectives)
    figure = overview_figure(run)
    assert [ax.get_title() for ax in figure.axes if ax.get_title()] == titles
    num_solutions = int(run.archive.valid.sum())
    coverage = "100%" if num_features == 0 else "75%"
    assert figure.get_suptitle() == f"{run.task.name}, by hand: {num_solutions} solutions, coverage {coverage}"


def test_it_can_be_saved_on_its_own(tmp_path):
    save_overview(made_run(), tmp_path / "new" / "overview.png")
    assert (tmp_path / "new" / "overview.png").read_bytes().startswith(b"\x89PNG")
