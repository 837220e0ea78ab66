"""A run on disk: config.json, metrics.csv, archive.safetensors and snapshots, and what can be read from them."""

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from moqd.archive import Archive
from moqd.errors import InputError, StorageError
from moqd.experiment.files import own_folder, read_json, read_tensors, read_text, whole, write_tensors, write_text
from moqd.experiment.packing import packed, unpacked
from moqd.tasks import Task, make_task
from moqd.types import Genotype

CONFIG, METRICS, ARCHIVE, SNAPSHOTS = "config.json", "metrics.csv", "archive.safetensors", "snapshots"
Row = Mapping[str, float]


class Solutions(NamedTuple):
    """All solutions of an archive, a row each, with objectives in the user's units and direction."""

    cell: Int[np.ndarray, "solutions"]
    objectives: Float[np.ndarray, "solutions objectives"]
    features: Float[np.ndarray, "solutions features"]
    genotype: Genotype
    preference: Float[np.ndarray, "solutions objectives"]
    """The trade-off that each was made for."""


class Snapshot(NamedTuple):
    """What an archive held at an iteration, without genotypes; objectives in the user's units and direction."""

    iteration: int
    cell: Int[np.ndarray, "solutions"]
    objectives: Float[np.ndarray, "solutions objectives"]
    features: Float[np.ndarray, "solutions features"]


@dataclass(frozen=True)
class Run:
    """A run that was made or loaded."""

    task: Task
    config: Mapping[str, Any]
    """Everything needed to repeat the run, as in config.json."""
    archive: Archive
    metrics: Mapping[str, Float[np.ndarray, "rows"]]
    """The columns of metrics.csv."""
    path: Path | None = None

    @property
    def reference_point(self) -> Float[np.ndarray, "objectives"]:
        """Where hypervolume was measured from, in the units and the (maximised) direction of `archive.fitness`."""
        return np.asarray(self.config["reference_point"], float) * self.task.direction

    def solutions(self) -> Solutions:
        """The archive as a table: what is in it, without its empty places."""
        cell, place = np.nonzero(np.asarray(self.archive.valid))
        genotype = jax.tree.map(lambda leaf: np.asarray(leaf)[cell, place], self.archive.genotype)
        objectives = np.asarray(self.archive.fitness)[cell, place] * self.task.direction
        feature, preference = (
            np.asarray(leaf)[cell, place] for leaf in (self.archive.feature, self.archive.preference)
        )
        return Solutions(cell, objectives, feature, genotype, preference)

    def snapshots(self) -> list[Snapshot]:
        """What `snapshot_every` recorded, the oldest first."""
        folder = None if self.path is None else self.path / SNAPSHOTS
        if folder is None or not folder.is_dir():
            return []
        paths = sorted(path for path in folder.glob("*.safetensors") if path.stem.isdigit())
        return [_read_snapshot(path, self.task) for path in paths]


class MetricsFile:
    """metrics.csv: a row is with the system as soon as it is written. It begins with the rows of a table, if any."""

    def __init__(self, path: Path, columns: Sequence[str], rows: Sequence[Row] = ()) -> None:
        self._columns = columns
        self._path = path
        write_text(path, table_of(columns, rows))
        self._file = path.open("a", newline="", encoding="utf-8")

    def append(self, row: Row) -> None:
        try:
            self._file.write(_line(row[column] for column in self._columns))
            self._file.flush()
        except OSError as error:
            raise StorageError(f"{str(self._path)!r} could not be written ({error.strerror}).") from error

    def close(self) -> None:
        with suppress(OSError):  # what could not be written was told by `append`
            self._file.close()


def table_of(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Rows as the text of metrics.csv."""
    text = io.StringIO()
    csv.writer(text).writerow(columns)
    for row in rows:
        text.write(_line(row[column] for column in columns))
    return text.getvalue()


def rows_of(table: str, path: Path) -> list[dict[str, float]]:
    """The rows in the text of metrics.csv; a last row that is cut off is left out."""
    lines = list(csv.reader(io.StringIO(table if table.endswith("\n") else table[: table.rfind("\n") + 1])))
    columns = lines[0] if lines else []
    try:
        return [dict(zip(columns, map(float, line), strict=True)) for line in lines[1:]]
    except ValueError as error:
        raise InputError(f"{str(path)!r} is damaged ({error}).") from error


def columns_of(rows: Sequence[Row]) -> dict[str, Float[np.ndarray, "rows"]]:
    return {name: np.array([row[name] for row in rows], float) for name in (rows[0] if rows else {})}


def write_archive(path: Path, archive: Archive) -> None:
    write_tensors(path, packed(archive))


def write_snapshot(folder: Path, iteration: int, archive: Archive) -> None:
    fitness, feature, valid = (np.asarray(leaf) for leaf in (archive.fitness, archive.feature, archive.valid))
    cell, place = np.nonzero(valid)
    content = {"cell": cell.astype(np.int32), "fitness": fitness[cell, place], "feature": feature[cell, place]}
    path = own_folder(folder / SNAPSHOTS) / f"{iteration:08d}.safetensors"
    write_tensors(path, {name: whole(array) for name, array in content.items()})


def _read_snapshot(path: Path, task: Task) -> Snapshot:
    arrays = read_tensors(path)
    return Snapshot(int(path.stem), arrays["cell"], arrays["fitness"] * task.direction, arrays["feature"])


def load_run(path: str | os.PathLike[str], *, task: Task | None = None) -> Run:
    """A run from its folder. For a task of the user's own, give the task: files never hold code."""
    folder = Path(path)
    config = read_config(folder)
    task = task_of(config, folder, task)
    try:
        archive = read_archive(folder / ARCHIVE, task)
        table = read_text(folder / METRICS, most=2**30)
    except FileNotFoundError as error:
        raise InputError(
            f"{str(error.filename)!r} is missing: the run has not written it yet; continue with: moqd resume {folder}"
        ) from error
    return Run(task, config, archive, columns_of(rows_of(table, folder / METRICS)), folder)


def read_config(folder: Path) -> dict[str, Any]:
    """What config.json of a run says."""
    try:
        config = read_json(folder / CONFIG, "a config of a moqd run")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{str(folder)!r} is not a run: it holds no {CONFIG}; give the folder of a run.") from error
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be read ({error.strerror}).") from error
    for name, kind in (("task", dict), ("algorithm", dict), ("seed", int), ("iterations", int), ("log_every", int)):
        if not isinstance(config.get(name), kind):
            raise InputError(f"{str(folder / CONFIG)!r} is not a config of a moqd run: it has no {name}.")
    return config


def task_of(config: Mapping[str, Any], folder: Path, task: Task | None) -> Task:
    """The task of a run: made again, or the user's own, if it fits."""
    there = config["task"]
    if task is None:
        options = there.get("options")
        if not isinstance(options, dict):
            raise InputError(
                f"the run in {str(folder)!r} is of the task {there.get('name')!r}, which is not one of moqd's; pass it "
                "as load_run(path, task=...) or resume(path, task=...)."
            )
        return make_task(**options)
    if [*task.objective_names, *task.feature_names] != [*there.get("objectives", ()), *there.get("features", ())]:
        raise InputError(
            f"the run in {str(folder)!r} is of a task with objectives {there.get('objectives')} and features "
            f"{there.get('features')}, but the task {task.name!r} has {list(task.objective_names)} and "
            f"{list(task.feature_names)}; give the task that was run."
        )
    return task


def read_archive(path: Path, task: Task) -> Archive:
    arrays = read_tensors(path)
    valid = arrays.get("valid")
    if valid is None or valid.ndim != 2:
        raise InputError(f"{str(path)!r} is not an archive: it holds no table of which places are taken.")
    cells, front = valid.shape

    def shape(*sizes: int, dtype: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct(sizes, dtype)

    genotype = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    template: Any = Archive(
        genotype=jax.tree.map(lambda leaf: shape(cells, front, *leaf.shape[1:], dtype=leaf.dtype), genotype),
        fitness=shape(cells, front, task.num_objectives),
        feature=shape(cells, front, task.num_features),
        preference=shape(cells, front, task.num_objectives),
        valid=shape(cells, front, dtype=jnp.bool_),
        centroid=shape(cells, task.num_features),
        feature_bounds=shape(2, task.num_features),
    )
    return unpacked(template, arrays, jnp.asarray, repr(str(path)))


def _line(values: Any) -> str:
    return ",".join(map(_number, values)) + "\r\n"


def _number(value: float) -> str:
    """Whole numbers without a point, others in full."""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)
