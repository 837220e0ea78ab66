"""A run on disk: config.json, metrics.csv, archive.safetensors and snapshots, and what can be read from them."""

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from moqd.algorithms import ALGORITHMS
from moqd.core.archive import Archive, empty_archive
from moqd.core.metrics import OF_THE_PAPER
from moqd.core.types import Source
from moqd.io import files
from moqd.io.errors import InputError, MissingFileError, known_name, to_resume
from moqd.io.lazy import later
from moqd.runs.config import RunConfig
from moqd.runs.ledger import Evaluations
from moqd.runs.packing import packed, unpacked
from moqd.runs.table import Solutions, by_header, frame_of
from moqd.tasks import Task

CONFIG, METRICS_CSV, ARCHIVE, SNAPSHOTS = "config.json", "metrics.csv", "archive.safetensors", "snapshots"
INITIAL = "seeds.safetensors"
"""The archive of the initial solutions of a run."""
OUTCOME, LOG, TIMING = "outcome.json", "log.txt", "timing.json"
"""What a study keeps in the folder of a run: what came of it, what its processes said, and what its parts took."""
Row = Mapping[str, float]
COLUMNS = (
    *("iteration", "evaluations", "seconds", *OF_THE_PAPER),
    *("num_solutions", "failed_evaluations", "below_reference"),
)
"""Those that every metrics.csv has; there are more."""


class Snapshot(NamedTuple):
    """What an archive held at an iteration, without genotypes; objectives in the user's units and direction."""

    iteration: int
    cell: Int[np.ndarray, "solutions"]
    objectives: Float[np.ndarray, "solutions objectives"]
    features: Float[np.ndarray, "solutions features"]


@dataclass(frozen=True, repr=False)
class Run:
    """A run that was made or loaded."""

    task: Task
    config: RunConfig
    """Everything needed to repeat the run, as in config.json."""
    archive: Archive
    metrics: Mapping[str, Float[np.ndarray, "rows"]]
    """The columns of metrics.csv."""
    path: Path | None = None
    ended: str = field(default="", kw_only=True)
    """Why it ended before its last iteration, in a sentence; empty if it did not, or was loaded."""
    _evaluations: Evaluations | None = field(default=None, kw_only=True)
    """Those on the host, of a run that was not written anywhere."""

    def __repr__(self) -> str:
        where = "" if self.path is None else f" in {str(self.path)!r}"
        valid = np.asarray(self.archive.valid)
        found = f"{valid.sum()} solutions in {valid.any(axis=1).sum()} of {len(valid)} cells"
        return f"Run({self.config.algorithm.name} on {self.task.name}{where}: {found})"

    def _repr_html_(self) -> str:
        return later("moqd.plots.notebook", "run_html")(self)

    def plot(self, kind: str = "overview") -> Any:
        """A matplotlib Figure: "overview", "archive_map", "fronts" or "learning_curves"; see `moqd.plots`."""
        known_name("kind", kind, ("overview", "archive_map", "fronts", "learning_curves"), of="plot")
        return later("moqd.plots", f"{kind}_figure")(self)

    @property
    def reference_point(self) -> Float[np.ndarray, "objectives"]:
        """Where hypervolume was measured from, in the units and the (maximised) direction of `archive.fitness`."""
        return np.asarray(self.config.reference_point, float) * self.task.direction

    def solutions(self) -> Solutions:
        """What is in the archive, without its empty places, as arrays; `to_pandas` gives a table with names."""
        found = self.archive
        parts = found.fitness, found.feature, found.genotype, found.preference, found.constraint
        cell, (fitness, *rest) = members(found, parts)
        return Solutions(cell, fitness * self.task.direction, *rest)

    @property
    def has_preferences(self) -> bool:
        """Whether solutions were made for preferences: whether any from a policy gradient or an actor was archived.

        All others have a random one, or their parent's. If metrics.csv does not say where solutions came from, whether
        the algorithm is one that follows gradients.
        """
        names = (f"added_{source.name.lower()}" for source in (Source.PG, Source.ACTOR))
        counts = [self.metrics[name] for name in names if name in self.metrics]
        if counts:
            return any(bool(np.any(count > 0)) for count in counts)
        entry = ALGORITHMS.get(self.config.algorithm.name)
        return self.task.policy is not None if entry is None else entry.policies

    def columns(self) -> dict[str, np.ndarray]:
        """The archive as a table, a row for each solution: its cell, features, objectives, constraints and parameters
        by their names, in the user's units; the preference that it was made for, if solutions were made for any."""
        return by_header(self.task, self.solutions(), preferences=self.has_preferences)

    def to_pandas(self) -> Any:
        """The table of `columns` as a pandas.DataFrame."""
        return frame_of(self.columns())

    def metrics_frame(self) -> Any:
        """The rows of metrics.csv as a pandas.DataFrame."""
        return frame_of(self.metrics)

    def snapshots(self) -> list[Snapshot]:
        """What `snapshot_every` recorded, the oldest first."""
        paths = [] if self.path is None else sorted((self.path / SNAPSHOTS).glob("*.safetensors"))
        read = {int(path.stem): files.read_tensors(path) for path in paths if path.stem.isdigit()}
        return [
            Snapshot(iteration, arrays["cell"], arrays["fitness"] * self.task.direction, arrays["feature"])
            for iteration, arrays in read.items()
        ]


def table_of(columns: Iterable[str], rows: Sequence[Row]) -> str:
    """Rows as the text of metrics.csv."""
    text = io.StringIO()
    csv.writer(text).writerow(columns)
    text.writelines(_line(row[column] for column in columns) for row in rows)
    return text.getvalue()


def append_row(folder: Path, columns: Iterable[str], row: Row) -> None:
    """Adds a row to the metrics.csv of a run; it is with the system when this returns."""
    path = folder / METRICS_CSV
    with files.storing(path), path.open("a", newline="", encoding="utf-8") as file:
        file.write(_line(row[column] for column in columns))


def rows_of(table: str, path: Path) -> list[dict[str, float]]:
    """The rows in the text of metrics.csv; a last row that is cut off is left out."""
    try:
        lines = list(csv.reader(io.StringIO(table[: table.rfind("\n") + 1])))
        columns = lines[0] if lines else []
        return [dict(zip(columns, map(float, line), strict=True)) for line in lines[1:]]
    except (ValueError, csv.Error) as error:
        raise InputError(f"{str(path)!r} is damaged ({error}).") from error


class Reached(NamedTuple):
    """How far a run is."""

    iteration: int = 0
    seconds: float = 0.0
    env_steps: int = 0


def last_row(folder: Path) -> Reached:
    """What the last whole row of a run's metrics.csv says; cheap however long it is."""
    with suppress(InputError, OSError, ValueError, IndexError):
        path = folder / METRICS_CSV
        size = files.check_regular(path).st_size
        with path.open("rb") as file:
            file.seek(max(0, size - 4096))
            whole_lines = file.read().decode(errors="replace").splitlines(keepends=True)
        rows = [line for line in whole_lines if line.endswith("\n") and line[0].isdigit()]
        iteration, _, seconds = map(float, rows[-1].split(",")[:3])
        if math.isfinite(iteration) and math.isfinite(seconds):
            steps = 0.0
            with suppress(ValueError, IndexError), path.open(encoding="utf-8") as file:
                steps = float(rows[-1].split(",")[file.readline().strip().split(",").index("env_steps")])
            return Reached(int(iteration), seconds, int(steps))
    return Reached()


def columns_of(rows: Sequence[Row]) -> dict[str, Float[np.ndarray, "rows"]]:
    return {name: np.array([row[name] for row in rows], float) for name in (rows[0] if rows else {})}


def members(archive: Archive, parts: Any) -> tuple[Int[np.ndarray, "solutions"], Any]:
    """The cells of an archive's solutions, and these parts of it without its empty places: a row per solution."""
    cell, place = np.nonzero(np.asarray(archive.valid))
    return cell, jax.tree.map(lambda leaf: np.asarray(leaf)[cell, place], parts)


def write_archive(path: Path, archive: Archive, iteration: int | None = None) -> None:
    """With the iteration that it is of, where that means something."""
    known = {} if iteration is None else {"iteration": files.whole(np.int32(iteration))}
    files.write_tensors(path, packed(archive) | known)


def write_snapshot(folder: Path, iteration: int, archive: Archive) -> None:
    cell, content = members(archive, {"fitness": archive.fitness, "feature": archive.feature})
    content["cell"] = cell.astype(np.int32)
    path = files.own_folder(folder / SNAPSHOTS) / f"{iteration:08d}.safetensors"
    files.write_tensors(path, {name: files.whole(array) for name, array in content.items()})


def checked_run(run: Run) -> Run:
    """The run, which must be one, and not its folder."""
    if not isinstance(run, Run):
        raise InputError(f"run is {str(run)!r}; give a run, such as load_run('runs/mine').")
    return run


def load_run(path: str | os.PathLike[str], *, task: Task | None = None) -> Run:
    """A run from its folder.

    Files never hold code: of a task of the user's own, give the task. Without it, a run whose solutions are plain
    parameters can be looked at all the same, but not evaluated.
    """
    folder = Path(path)
    config = read_config(folder)
    task = config.task.make_or_check(folder, task if task is not None else config.task.outline())
    try:
        archive, iteration = read_archive(folder / ARCHIVE, task)
        rows = rows_of(files.read_text(folder / METRICS_CSV, most=2**30), folder / METRICS_CSV)
    except MissingFileError as error:
        raise InputError(
            f"{str(error).rstrip('.')}: the run has not written it yet; wait for its first checkpoint, or continue it "
            f"with: {to_resume(folder)}"
        ) from error
    missing = [name for name in COLUMNS if rows and name not in rows[0]]
    if missing:
        raise InputError(f"{str(folder / METRICS_CSV)!r} is damaged: it has no column {missing[0]}.")
    if iteration is not None:  # a run that goes on, or was killed, has logged more than it has saved
        rows = [row for row in rows if row["iteration"] <= iteration]
    if len(config.reference_point or ()) != task.num_objectives:
        raise InputError(
            f"{str(folder / CONFIG)!r} is damaged: reference_point is not of {task.num_objectives} numbers."
        )
    return Run(task, config, archive, columns_of(rows), folder)


def read_config(folder: Path) -> RunConfig:
    """What config.json of a run says."""
    path = folder / CONFIG
    try:
        content = files.read_json(path, "a config of a moqd run")
    except MissingFileError as error:
        raise InputError(f"{str(folder)!r} is not a run: it holds no {CONFIG}; give the folder of a run.") from error
    return RunConfig.from_json(content, path)


def write_config(folder: Path, config: RunConfig) -> None:
    files.write_json(folder / CONFIG, config.to_json())


def saved_iteration(folder: Path) -> int | None:
    """Which iteration a run's archive, which must be whole, is of; None if it is of a version that did not say."""
    return _iteration_in(files.read_tensors(folder / ARCHIVE))


def _iteration_in(arrays: Mapping[str, np.ndarray]) -> int | None:
    return int(arrays["iteration"]) if np.shape(arrays.get("iteration", [])) == () else None


def read_archive(path: Path, task: Task) -> tuple[Archive, int | None]:
    """An archive, and the iteration that it is of, if it says that."""
    arrays = files.read_tensors(path)
    iteration = _iteration_in(arrays)
    arrays.pop("iteration", None)
    valid = arrays.get("valid")
    if valid is None or valid.ndim != 2:
        raise InputError(f"{str(path)!r} is not an archive: it holds no table of which places are taken.")
    cells, front = valid.shape
    kept = arrays.get("constraint")  # an archive to begin with may be of a task with others
    num_constraints = kept.shape[1] if kept is not None and kept.ndim == 2 else len(task.constraint_names)
    template = jax.eval_shape(
        lambda: empty_archive(
            task.init_genotype(jax.random.key(0), 1),
            jnp.zeros((cells, task.num_features)),
            jnp.zeros((2, task.num_features)),
            num_objectives=task.num_objectives,
            front_length=front,
            num_constraints=num_constraints,
        )
    )
    return unpacked(template, arrays, jnp.asarray, repr(str(path))), iteration


def _line(values: Any) -> str:
    return ",".join(map(_number, values)) + "\r\n"


def _number(value: float) -> str:
    """Whole numbers without a point, others in full."""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)
