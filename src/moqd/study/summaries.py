"""What the runs of a study have given so far: all that its report is made of, in memory and on disk.

The folder of a run holds genotypes and checkpoints. Its record, a file of some ten kilobytes, has what reports need,
and counts where the folder is not there. So a study can be kept, sent and continued elsewhere by its records alone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from moqd.core.archive import Archive
from moqd.io.errors import InputError
from moqd.io.files import check_regular, read_tensors, whole, write_tensors
from moqd.runs.config import RunConfig
from moqd.runs.folder import COLUMNS, TIMING
from moqd.runs.packing import packed, unpacked
from moqd.study.plan import PlannedRun, Study
from moqd.tasks import Task

RECORDS = "records"
"""The folder of all records, beside that of all runs."""
_CHECKED: dict[Path, tuple[int, int]] = {}
"""The time and the size of records that were found to be whole."""


class Result(NamedTuple):
    """A run that is finished."""

    task: str
    algorithm: str
    seed: int
    metrics: Mapping[str, Float[np.ndarray, "rows"]]
    """The columns of metrics.csv."""
    archive: Archive
    """With nothing but the fitness of its solutions: what the others of all runs take together may be too much."""
    reference_point: Float[np.ndarray, "objectives"]
    """In the units and the (maximised) direction of `archive.fitness`."""
    config: RunConfig
    path: Path
    """Of the run's folder, or of its record."""


class Unfinished(NamedTuple):
    """A planned run without a result yet."""

    task: str
    algorithm: str
    seed: int
    state: str
    reason: str
    """Why it failed, or how far it is; may be empty."""


@dataclass(frozen=True, eq=False)
class Results:
    """All of it."""

    study: Study
    results: tuple[Result, ...]
    unfinished: tuple[Unfinished, ...]
    tasks: Mapping[str, Task]
    timings: Mapping[tuple[str, str], Mapping[str, Any]]
    """By task and algorithm, what timing.json says, where there is one."""

    def of(self, task: str, algorithm: str) -> list[Result]:
        """The results of an algorithm on a task, seed by seed."""
        return [result for result in self.results if (result.task, result.algorithm) == (task, algorithm)]


def record_of(root: Path, run: PlannedRun) -> Path:
    """Where the record of a run is, in a folder of studies."""
    return root / RECORDS / f"{run.key}.safetensors"


def recorded_timing_of(root: Path, run: PlannedRun) -> Path:
    """Where a copy of the run's timing.json is."""
    return root / RECORDS / f"{run.key}.{TIMING}"


def without_genotypes(archive: Archive) -> Archive:
    """What reports need of an archive: neither genotypes nor what else each solution has besides its fitness."""
    nothing = jnp.zeros((*archive.valid.shape, 0), jnp.float32)
    return archive._replace(genotype=(), feature=nothing, preference=nothing, constraint=None)


def write_record(path: Path, result: Result) -> None:
    about = json.dumps({"config": result.config.to_json(), "columns": list(result.metrics)}).encode()
    metrics = np.column_stack([*result.metrics.values()])
    tensors = {"about": whole(np.frombuffer(about, np.uint8)), "metrics": whole(metrics)}
    write_tensors(path, tensors | packed(without_genotypes(result.archive)))


def read_record(path: Path, run: PlannedRun, task: Task) -> Result:
    """The result that was written; raises where the file holds no such run, or not to its end."""
    config, metrics, arrays = _content(path, run)
    point = config.reference_point or ()
    if len(point) != task.num_objectives:
        raise InputError(f"{str(path)!r} is damaged: its reference point has {len(point)} numbers.")
    archive = unpacked(_template(arrays["valid"].shape, task), arrays, jnp.asarray, repr(str(path)))
    reference_point = np.asarray(point, float) * task.direction
    return Result(run.task, run.algorithm, run.seed, metrics, archive, reference_point, config, path)


def check_record(path: Path, run: PlannedRun) -> None:
    """Raises where the file is damaged or holds no such run, or not to its end; asked again, it costs nothing."""
    status = check_regular(path)
    now = status.st_mtime_ns, status.st_size
    if _CHECKED.get(path) != now:
        _content(path, run)
        _CHECKED[path] = now


def _content(path: Path, run: PlannedRun) -> tuple[RunConfig, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The config, the metrics and the arrays of the archive."""
    arrays = read_tensors(path)
    try:
        about = json.loads(arrays.pop("about").tobytes())
        content, columns, table = about["config"], about["columns"], arrays.pop("metrics")
        metrics = dict(zip(columns, table.T, strict=True))
        at_its_end = run.config.is_last(metrics["iteration"][-1])
        whole_run = at_its_end and metrics.keys() >= set(COLUMNS) and arrays["valid"].ndim == 2
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is damaged ({type(error).__name__}: {error}).") from error
    config = RunConfig.from_json(content, path)
    config.check_same(run.config, path)
    check_origin(config, path)
    if not whole_run or config.reference_point is None:
        raise InputError(f"{str(path)!r} is damaged: its metrics, archive or reference point are not whole.")
    return config, metrics, arrays


def check_origin(config: RunConfig, path: Path) -> None:
    """Raises where a config does not say with what and on what the run was made, which reports tell."""
    for name in ("versions", "machine"):
        if getattr(config.surroundings, name) is None:
            raise InputError(f"{str(path)!r} is damaged: it does not say the {name}.")


def _template(places: tuple[int, int], task: Task) -> Archive:
    """The shapes of such an archive."""
    nothing = jnp.zeros((*places, 0))
    return Archive(
        genotype=(),
        fitness=jnp.zeros((*places, task.num_objectives)),
        feature=nothing,
        preference=nothing,
        valid=jnp.zeros(places, bool),
        centroid=jnp.zeros((places[0], task.num_features)),
        feature_bounds=jnp.zeros((2, task.num_features)),
    )
