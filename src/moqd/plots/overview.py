"""One picture of a run: the map of its archive beside its fronts."""

from pathlib import Path

from matplotlib.figure import Figure

from moqd.experiment.store import Run
from moqd.metrics import cell_hypervolumes
from moqd.plots.archive_map import archive_map
from moqd.plots.fronts import fronts


def save_overview(run: Run, path: Path) -> None:
    """Writes the picture as a PNG."""
    mapped = run.task.num_features in (1, 2)
    figure = Figure(figsize=(11 if mapped else 6, 4.6), layout="constrained")
    axes = figure.subplots(1, 2 if mapped else 1, squeeze=False)[0]
    if mapped:
        volume = cell_hypervolumes(run.archive, run.reference_point)
        archive_map(axes[0], run.archive, volume, feature_names=tuple(run.task.feature_names))
        axes[0].set_title("hypervolume of every cell's front")
    fronts(axes[-1], run.archive, run.task)
    axes[-1].set_title("the fronts")
    algorithm = run.config["algorithm"]["name"]
    last = {name: column[-1] for name, column in run.metrics.items()}
    figure.suptitle(
        f"{run.task.name}, {algorithm}: {last['num_solutions']:.0f} solutions, coverage {last['coverage']:.0%}"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
