"""A run on disk: config.json, metrics.csv and archive.safetensors, written so that a crash never leaves half a file."""

import csv
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from moqd.archive import Archive
from moqd.errors import InputError
from moqd.tasks import Task, make_task
from moqd.types import Genotype

FORMAT = 1
"""Version of the files; a newer one is refused."""


class Solutions(NamedTuple):
    """All solutions of an archive, a row each, with objectives in the user's units and direction."""

    cell: Int[np.ndarray, "solutions"]
    objectives: Float[np.ndarray, "solutions objectives"]
    features: Float[np.ndarray, "solutions features"]
    genotype: Genotype


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
        return Solutions(cell, objectives, np.asarray(self.archive.feature)[cell, place], genotype)


class Genotyped(NamedTuple):
    """Gives the leaves of a genotype the names that they have in an archive."""

    genotype: Genotype


class MetricsFile:
    """metrics.csv: a row is on disk as soon as it is written."""

    def __init__(self, path: Path, columns: list[str]) -> None:
        self._columns = columns
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file)
        self._writer.writerow(columns)

    def append(self, row: Mapping[str, float]) -> None:
        self._writer.writerow([_number(row[column]) for column in self._columns])
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    content = json.dumps(config, indent=2) + "\n"
    _write(folder / "config.json", lambda beside: beside.write_text(content, encoding="utf-8"))


def write_archive(folder: Path, archive: Archive) -> None:
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in _named_leaves(archive).items()}
    _write(folder / "archive.safetensors", lambda beside: save_file(arrays, beside, metadata={"format": str(FORMAT)}))


def load_run(path: str | os.PathLike[str], *, task: Task | None = None) -> Run:
    """A run from its folder. For a task of the user's own, give the task: files never hold code."""
    folder = Path(path)
    if not (folder / "config.json").is_file():
        raise InputError(f"{str(folder)!r} is not a run: it holds no config.json; give the folder of a run.")
    config = _read_config(folder / "config.json")
    if task is None:
        options = config["task"].get("options")
        if options is None:
            raise InputError(
                f"the run in {str(folder)!r} is of the task {config['task']['name']!r}, which is not one of moqd's; "
                "pass it as load_run(path, task=...)."
            )
        task = make_task(**options)
    elif [*task.objective_names, *task.feature_names] != [*config["task"]["objectives"], *config["task"]["features"]]:
        raise InputError(
            f"the run in {str(folder)!r} is of a task with objectives {config['task']['objectives']} and features "
            f"{config['task']['features']}, but the task {task.name!r} has {list(task.objective_names)} and "
            f"{list(task.feature_names)}; give the task that was run."
        )
    template = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    return Run(task, config, _read_archive(folder / "archive.safetensors", template), read_metrics(folder), folder)


def read_metrics(folder: Path) -> dict[str, Float[np.ndarray, "rows"]]:
    """The columns of a run's metrics.csv; a last row that is cut off is left out."""
    with (folder / "metrics.csv").open(newline="", encoding="utf-8") as file:
        columns, *rows = list(csv.reader(file)) or [[]]
    whole = [row for row in rows if len(row) == len(columns)]
    return {name: np.array([float(row[i]) for row in whole]) for i, name in enumerate(columns)}


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        version = config["format"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{str(path)!r} is not a config of a moqd run ({type(error).__name__}).") from error
    if version > FORMAT:
        raise InputError(
            f"{str(path)!r} has format {version}, but this moqd reads up to {FORMAT}; upgrade moqd to load the run."
        )
    return dict(config)


def _read_archive(path: Path, genotype: Any) -> Archive:
    try:
        arrays = load_file(path)
    except FileNotFoundError as error:
        raise InputError(f"{str(path)!r} is missing: the run has not written an archive yet.") from error
    except (SafetensorError, OSError) as error:
        raise InputError(f"{str(path)!r} is damaged ({error}).") from error
    template: Any = Archive(genotype, *[0] * (len(Archive._fields) - 1))  # type: ignore[arg-type]
    missing = set(_named_leaves(template)) - set(arrays)
    if missing:
        raise InputError(f"{str(path)!r} does not fit the task: it holds no {', '.join(sorted(missing))}.")
    for name, leaf in _named_leaves(Genotyped(genotype)).items():
        if arrays[name].shape[2:] != leaf.shape[1:]:
            raise InputError(
                f"{str(path)!r} does not fit the task: {name} has shape {arrays[name].shape[2:]} in the archive, but "
                f"{leaf.shape[1:]} in the task; give the task that was run."
            )
    leaves = [jnp.asarray(arrays[name]) for name in _named_leaves(template)]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _named_leaves(tree: Any) -> dict[str, Any]:
    named, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in named}


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """All or nothing: written beside, on disk, then renamed."""
    beside = path.with_name(path.name + ".tmp")
    write(beside)
    with beside.open("rb+") as file:
        os.fsync(file.fileno())
    beside.replace(path)


def _number(value: float) -> str:
    """Whole numbers without a point, others in full."""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)
