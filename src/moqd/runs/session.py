"""`run` and `resume`: an algorithm on a task, measured at every log point and written so that nothing is lost."""

import hashlib
import json
import os
import platform
import shlex
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moqd.algorithms import ALGORITHMS, Algorithm, make_algorithm, restore_algorithm
from moqd.core.archive import Archive
from moqd.core.devices import num_cores
from moqd.io.errors import (
    DivergenceError,
    EvaluationError,
    InputError,
    MissingFileError,
    StoppedError,
    StorageError,
    to_resume,
)
from moqd.runs.checkpoint import Checkpoint, clean_up, newest_checkpoint, oldest_iteration, write_checkpoint
from moqd.runs.compilation import use_cache
from moqd.runs.control import Control
from moqd.runs.journal import FAILURES
from moqd.runs.journal import FOLDER as JOURNAL
from moqd.runs.ledger import EVALUATIONS, INHERITED, read_evaluations, write_evaluations
from moqd.runs.lock import FOLDER as LOCK
from moqd.runs.lock import RunLock
from moqd.runs.loop import Loop, Seeds
from moqd.runs.packing import on_host
from moqd.runs.presets import iterations_for
from moqd.runs.folder import (
    ARCHIVE,
    COMPARED,
    CONFIG,
    METRICS,
    MetricsFile,
    Run,
    columns_of,
    described,
    last_row,
    read_archive,
    read_config,
    rows_of,
    saved_iteration,
    table_of,
    task_of,
    write_archive,
    write_snapshot,
)
from moqd.io.files import FORMAT, write_json
from moqd.core.metrics import archive_metrics
from moqd.io.options import checked_seed, recorded, whole_number
from moqd.tasks import FunctionTask, Task
from moqd.core.types import Source

PACKAGES = ("moqd", "jax", "jaxlib", "numpy", "scikit-learn", "optax", "brax", "mujoco")
"""Those whose version may change the bits of a result."""
SEEDS = "seeds.safetensors"
"""The archive that a run was seeded with."""
OUTCOME, LOG, TIMING = "outcome.json", "log.txt", "timing.json"
"""What a study keeps in the folder of a run: what came of it, what its processes said, and what its parts took."""


class Callback:
    """Something to do while a run goes on; override what you need."""

    def on_start(self, config: Mapping[str, Any]) -> None:
        """Before the first batch."""

    def on_log(self, row: Mapping[str, float]) -> None:
        """At every log point, with the row of metrics.csv."""

    def on_progress(self, iteration: int) -> None:
        """After every chunk of iterations, and once when a run is resumed; nothing is measured for it."""

    def on_checkpoint(self, path: Path) -> None:
        """When a checkpoint is on disk, with its folder."""

    def on_end(self, run: Run) -> None:
        """After the last iteration."""


def run(
    algorithm: Algorithm | str,
    task: Task,
    *,
    iterations: int | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
    log_every: int = 10,
    checkpoint_minutes: float = 5.0,
    snapshot_every: int | None = None,
    init_from: Run | Archive | str | os.PathLike[str] | None = None,
    control: Control | None = None,
    progress: bool = False,
    **options: Any,
) -> Run:
    """Runs an algorithm on a task for a number of `iterations`, or of `evaluations` (in whole iterations).

    The algorithm is one that `make_algorithm` made, or a name, of which `options` may be given: ga_batch=64. A first
    batch of random solutions comes on top of either, and before it the solutions of the archive `init_from`, if there
    is one; of an `init_from` that is a run of the same function on the host, no design is evaluated that was evaluated
    there. With `out`, the run is written to that folder, with a checkpoint every `checkpoint_minutes` (0: after every
    chunk of iterations) from which `resume` continues it, and the archive's objectives and features every
    `snapshot_every` iterations. `control` stops it from another thread. `progress` shows how it goes.
    """
    use_cache()
    if isinstance(algorithm, str) and isinstance(task, Task):
        algorithm, options = make_algorithm(algorithm, task, **options), {}
    if not isinstance(algorithm, Algorithm) or not isinstance(task, Task):
        raise InputError("run takes an algorithm and then a task: run(make_algorithm('mome', task), task, ...).")
    if options:
        raise InputError(f"run knows no {', '.join(options)}; options of an algorithm are given to make_algorithm.")
    seed = checked_seed(seed)
    whole_number("log_every", log_every, least=1)
    if snapshot_every is not None:
        snapshot_every = whole_number("snapshot_every", snapshot_every, least=1)
    if not (isinstance(checkpoint_minutes, (int, float)) and checkpoint_minutes >= 0):
        raise InputError(f"checkpoint_minutes is {checkpoint_minutes!r}; give a number that is not negative.")
    start = None if init_from is None else _archive_from(init_from, task)
    loop = Loop(algorithm, task, seed)
    _inherit(loop, init_from, task)
    config = {
        "format": FORMAT,
        "task": described(task),
        "algorithm": {"name": algorithm.name, **recorded(algorithm.config)},
        "seed": seed,
        "iterations": _budget(iterations, evaluations, loop.batch),
        "log_every": int(log_every),
        "checkpoint_minutes": float(checkpoint_minutes),
        "snapshot_every": snapshot_every,
        "seeded": 0 if start is None else int(np.sum(np.asarray(start.valid))),
        "batch": loop.batch,
        **_surroundings(),
    }
    with _shown(progress) as display:
        session = _Session(loop, task, config, [*display, *callbacks], control)
        return session.go(start) if out is None else _go_in(_new_folder(Path(out)), session, config, start)


@contextmanager
def _shown(progress: bool) -> Iterator[list[Callback]]:
    """What shows a run on the screen, if that is wanted."""
    if not progress:
        yield []
        return
    from rich.console import Console

    from moqd.runs.display import Display  # which is made of callbacks

    with Display(Console()) as display:
        yield [display]


def _go_in(folder: Path, session: "_Session", config: Mapping[str, Any], start: Archive | None) -> Run:
    with RunLock(folder) as lock:
        _new_folder(folder)  # still: another process may have been faster
        if start is not None:
            write_archive(folder / SEEDS, start)
        session.write_to(folder, lock)
        session.begin()
        write_json(folder / CONFIG, config)
        try:
            return session.go(start)
        except (InputError, EvaluationError):
            if not session.has_rows:  # nothing was found; so that it can be started again when it is mended
                lock.check()  # or it is the config of who took the folder over
                (folder / CONFIG).unlink(missing_ok=True)
            raise


def resume(
    path: str | os.PathLike[str],
    *,
    task: Task | None = None,
    algorithm: Algorithm | None = None,
    iterations: int | None = None,
    callbacks: Sequence[Callback] = (),
    control: Control | None = None,
) -> Run:
    """Continues a run from its newest checkpoint that is whole, to the end that it would have had all along.

    `iterations` is a new total, which extends a run that is finished. A task or an algorithm of the user's own has to
    be given again: files never hold code.
    """
    use_cache()
    folder = Path(path)
    config = read_config(folder)
    task = task_of(config, folder, task)
    algorithm = _algorithm_of(config, folder, task, algorithm)
    if iterations is not None:
        whole_number("iterations", iterations, least=0)
    with RunLock(folder) as lock:
        clean_up(folder)
        if oldest_iteration(folder) < 0 and _is_finished(folder, config["iterations"]):
            raise InputError(
                f"the run in {str(folder)!r} is finished and has no checkpoint, so it cannot be continued; run it "
                f"again with: moqd train --config {shlex.quote(str(folder / CONFIG))} --out NEW_FOLDER"
            )
        (folder / OUTCOME).unlink(missing_ok=True)  # what came of it before counts no more
        config |= {} if iterations is None else {"iterations": iterations}
        start = read_archive(folder / SEEDS, task) if config.get("seeded") else None
        session = _Session(Loop(algorithm, task, config["seed"]), task, config, callbacks, control)
        session.write_to(folder, lock)
        return session.go(start, resuming=True)


def _is_finished(folder: Path, iterations: int) -> bool:
    """Whether the archive of the last iteration is there, and whole."""
    try:
        reached = saved_iteration(folder)
    except InputError:
        return False
    return (last_row(folder)[0] if reached is None else reached) >= iterations


class _Session:
    """One process's part of a run, from its start or from a checkpoint to the end or until it is stopped."""

    def __init__(
        self,
        loop: Loop,
        task: Task,
        config: dict[str, Any],
        callbacks: Sequence[Callback],
        control: Control | None,
    ) -> None:
        self._loop, self._task, self._config, self._callbacks = loop, task, config, callbacks
        self._control = control or Control()
        self._folder: Path | None = None
        self._lock: RunLock | None = None
        self._file: MetricsFile | None = None
        self._rows: list[dict[str, float]] = []
        self._saved: int | None = None
        """The iteration of the newest checkpoint."""
        self._begin = self._last_save = time.perf_counter()

    @property
    def has_rows(self) -> bool:
        return bool(self._rows)

    def write_to(self, folder: Path, lock: RunLock) -> None:
        self._folder, self._lock = folder, lock
        self._loop.write_to(folder)

    def begin(self) -> None:
        """A new run: what another has left in the folder counts no more."""
        assert self._folder is not None
        if self._loop.journal is not None:
            self._loop.journal.begin()
        (self._folder / EVALUATIONS).unlink(missing_ok=True)
        self._write_evaluations()

    def go(self, start: Archive | None, *, resuming: bool = False) -> Run:
        self._begin = time.perf_counter()
        try:
            for callback in self._callbacks:
                callback.on_start(self._config)
            self._loop.prepare()
            checkpoint = self._find_checkpoint() if resuming else None
            if resuming:
                self._rewind(INHERITED if checkpoint is None else checkpoint.facts["iteration"])
            if checkpoint is None:
                self._start(start)
            else:
                self._restore(checkpoint)
            self._control.under_way.set()
            self._last_save = time.perf_counter()
            self._iterate()
            self._write_archive()
            self._write_checkpoint()
        except DivergenceError:
            self._write_archive()  # but no checkpoint: there is nothing to go on from
            raise
        except StorageError as error:
            if self._folder is None:
                raise
            raise StorageError(f"{error} {self._how_to_go_on(self._folder)}") from error
        except StoppedError:
            raise
        except BaseException:
            self._rescue()
            raise
        finally:
            self._control.under_way.clear()
            if self._loop.journal is not None:
                self._loop.journal.close()
            if self._file is not None:
                self._file.close()
        return self._result()

    def _start(self, start: Archive | None) -> None:
        loop = self._loop
        loop.start(None if start is None else _seeds(start))
        self._config["reference_point"] = (loop.reference_point * self._task.direction).tolist()
        self._write_config()
        row = self._row()
        self._open_table(list(row))
        self._log(row)
        loop.stop_if_diverged()

    def _find_checkpoint(self) -> Checkpoint | None:
        assert self._folder is not None
        loop, wanted = self._loop, self._config["iterations"]
        checkpoint = newest_checkpoint(self._folder, loop.carry_shapes(), loop.place, _identity(self._config))
        if checkpoint is None:
            return None
        reached, made_with = checkpoint.facts["iteration"], checkpoint.facts["made_with"]
        if wanted < reached:
            raise InputError(
                f"iterations is {wanted}, but the run in {str(self._folder)!r} is at iteration {reached} already; give "
                "at least that."
            )
        changed = [name for name, value in _surroundings().items() if value != made_with.get(name)]
        if changed and wanted > reached:
            warnings.warn(
                f"the run goes on with other {' and '.join(changed)} than before, so its bits may differ from those of "
                "a run that was never interrupted.",
                stacklevel=4,
            )
        return checkpoint

    def _rewind(self, iteration: int) -> None:
        """Journal and ledger as they were at the end of this iteration."""
        assert self._folder is not None
        if self._loop.journal is not None:
            self._loop.journal.rewind(iteration)
        if self._loop.ledger is not None and isinstance(self._task, FunctionTask):
            known = read_evaluations(self._folder, self._task)
            if known is not None:
                self._loop.ledger.restore(known, iteration)

    def _restore(self, checkpoint: Checkpoint) -> None:
        assert self._folder is not None
        facts = checkpoint.facts
        if len(facts["reference_point"]) != self._task.num_objectives:
            raise InputError(f"the checkpoint of {str(self._folder)!r} is of a task with other objectives.")
        reference_point = np.asarray(facts["reference_point"], float) * self._task.direction
        metrics = {name: jnp.float32(value) for name, value in facts["metrics"].items()}
        self._loop.restore(checkpoint.state, metrics, facts["iteration"], facts["env_steps"], reference_point)
        self._begin = time.perf_counter() - facts["seconds"]
        self._rows = rows_of(checkpoint.table, self._folder / METRICS)
        if not self._rows:
            raise InputError(
                f"the checkpoint of {str(self._folder)!r} holds no row of metrics, so it is not one of a run."
            )
        self._config["reference_point"] = facts["reference_point"]
        self._write_config()
        self._open_table(list(self._rows[0]))
        self._saved = facts["iteration"]
        for callback in self._callbacks:
            callback.on_progress(self._loop.iteration)

    def _iterate(self) -> None:
        loop, iterations = self._loop, self._config["iterations"]
        log_every, snapshot_every = self._config["log_every"], self._config.get("snapshot_every") or 0
        while True:
            done = loop.iteration >= iterations
            if self._rows[-1]["iteration"] < loop.iteration and (done or loop.iteration % log_every == 0):
                self._log(self._row())
            if snapshot_every and (done or loop.iteration % snapshot_every == 0):
                self._snapshot()
            if done:
                return
            stopping = self._control.stopping
            if self._is_save_due(stopping):
                self._write_archive()
                self._write_checkpoint()
            if stopping:
                raise StoppedError(f"stopped at iteration {loop.iteration} of {iterations}.", on_host(loop.archive))
            ends = [_next(loop.iteration, log_every), iterations]
            loop.advance(min(ends + [_next(loop.iteration, snapshot_every)] * bool(snapshot_every)))
            for callback in self._callbacks:
                callback.on_progress(loop.iteration)

    def _is_save_due(self, stopping: bool) -> bool:
        asked = self._control.wants_checkpoint() or stopping
        minutes = (time.perf_counter() - self._last_save) / 60
        return self._saved != self._loop.iteration and (asked or minutes >= self._config["checkpoint_minutes"])

    def _write_checkpoint(self) -> None:
        """Of the iteration that the loop is at, unless there is one."""
        loop = self._loop
        if self._folder is None or self._saved == loop.iteration:
            return
        facts = {
            "iteration": loop.iteration,
            "env_steps": loop.env_steps,
            "seconds": self._seconds(),
            "reference_point": self._config["reference_point"],
            "metrics": {name: float(value) for name, value in loop.metrics.items()},
            "made_with": _surroundings(),
        }
        checkpoint = Checkpoint(facts, loop.carry, table_of(list(self._rows[0]), self._rows))
        path = write_checkpoint(self._folder, checkpoint, _identity(self._config), self._check_lock)
        self._saved, self._last_save = loop.iteration, time.perf_counter()
        if loop.journal is not None:
            loop.journal.forget(oldest_iteration(self._folder))
        for callback in self._callbacks:
            callback.on_checkpoint(path)

    def _write_archive(self) -> None:
        """And what was evaluated, so that it is there before a checkpoint is that counts on it."""
        self._write_evaluations()
        if self._folder is not None:
            self._check_lock()
            write_archive(self._folder / ARCHIVE, self._loop.archive, self._loop.iteration)

    def _write_evaluations(self) -> None:
        if self._folder is not None and self._loop.ledger is not None:
            self._check_lock()
            write_evaluations(self._folder, self._loop.ledger.evaluations)

    def _write_config(self) -> None:
        if self._folder is not None:
            self._check_lock()
            write_json(self._folder / CONFIG, self._config)

    def _snapshot(self) -> None:
        if self._folder is not None:
            self._check_lock()
            write_snapshot(self._folder, self._loop.iteration, self._loop.archive)

    def _rescue(self) -> None:
        """After an error or a KeyboardInterrupt: what was found, if the last chunk is whole."""
        carry = getattr(self._loop, "carry", None)
        if not self._rows or any(leaf.is_deleted() for leaf in jax.tree.leaves(carry)):
            return
        try:
            self._write_archive()
            self._write_checkpoint()
        except (StorageError, InputError) as error:
            warnings.warn(str(error), stacklevel=3)  # the first error is the one to raise

    def _open_table(self, columns: list[str]) -> None:
        if self._folder is not None:
            self._check_lock()
            self._file = MetricsFile(self._folder / METRICS, columns, self._rows)

    def _log(self, row: dict[str, float]) -> None:
        if self._rows:  # which may be of a task that counted more
            row = dict.fromkeys(self._rows[0], float("nan")) | row
        self._rows.append(row)
        if self._file is not None:
            self._check_lock()
            self._file.append(row)
        self._loop.count_anew()
        for callback in self._callbacks:
            callback.on_log(row)

    def _row(self) -> dict[str, float]:
        """The columns of metrics.csv, in their order."""
        loop = self._loop
        progress = loop.carry.progress
        measured = archive_metrics(loop.archive, loop.reference_point, progress.best)
        below, exact = measured.pop("below_reference"), measured.pop("hypervolume_exact")
        return {
            "iteration": float(loop.iteration),
            "evaluations": self._num_evaluations(),
            "seconds": self._seconds(),
            **measured,
            "failed_evaluations": float(progress.failed),
            "below_reference": below,
            **{f"added_{source.name.lower()}": float(progress.added[source]) for source in Source},
            "infeasible_evaluations": self._num_evaluations() - float(progress.failed) - float(progress.feasible),
            "hypervolume_exact": exact,
            **({} if loop.ledger is None else {"reused_evaluations": self._num_evaluations() - loop.ledger.num_calls}),
            **({"env_steps": float(loop.total_steps)} if loop.total_steps else {}),
            **{name: float(value) for name, value in loop.metrics.items()},
        }

    def _num_evaluations(self) -> float:
        return float((self._loop.iteration + 1) * self._loop.batch + self._config["seeded"])

    def _seconds(self) -> float:
        return time.perf_counter() - self._begin

    def _check_lock(self) -> None:
        if self._lock is not None:
            self._lock.check()

    def _how_to_go_on(self, folder: Path) -> str:
        kept = "from its start" if self._saved is None else f"the checkpoint of iteration {self._saved}, which is whole"
        return f"The run stopped; make room there and continue from {kept}, with: {to_resume(folder)}"

    def _result(self) -> Run:
        archive = self._loop.archive
        del self._loop.carry  # what was learned and learned from: not needed any more, and large
        archive = on_host(archive)
        ledger = self._loop.ledger if self._folder is None else None
        known = None if ledger is None else ledger.evaluations
        result = Run(self._task, self._config, archive, columns_of(self._rows), self._folder, _evaluations=known)
        for callback in self._callbacks:
            callback.on_end(result)
        return result


def _next(iteration: int, every: int) -> int:
    return (iteration // every + 1) * every if every else iteration


def _seeds(archive: Archive) -> Seeds:
    cell, place = np.nonzero(np.asarray(archive.valid))
    rows = jax.tree.map(lambda leaf: np.asarray(leaf)[cell, place], (archive.genotype, archive.preference))
    return Seeds(*rows)


def _archive_from(source: Run | Archive | str | os.PathLike[str], task: Task) -> Archive:
    """The archive to begin with, which must be one of such solutions as the task has."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            task_of(read_config(path), path, task)
            path = path / ARCHIVE
        try:
            archive = read_archive(path, task)
        except MissingFileError as error:
            raise InputError(f"init_from: {str(error).rstrip('.')}, so there is nothing yet to begin with.") from error
    else:
        archive = source.archive if isinstance(source, Run) else source
    expected = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    shapes = [leaf.shape[2:] for leaf in jax.tree.leaves(archive.genotype)]
    wanted = [leaf.shape[1:] for leaf in jax.tree.leaves(expected)]
    if shapes != wanted or archive.fitness.shape[2] != task.num_objectives:
        raise InputError(
            f"init_from holds solutions of shapes {shapes} with {archive.fitness.shape[2]} objectives, but task "
            f"{task.name!r} has {wanted} and {task.num_objectives}; give an archive of the same task."
        )
    if not np.any(np.asarray(archive.valid)):
        raise InputError("init_from is an archive without solutions; give one that has some.")
    return archive


def _inherit(loop: Loop, source: Run | Archive | str | os.PathLike[str] | None, task: Task) -> None:
    """Of a run of the same function all that it evaluated; an archive alone does not say what it was made by."""
    if loop.ledger is None or not isinstance(task, FunctionTask):
        return
    if isinstance(source, Run):
        config, folder, known = source.config, source.path, source._evaluations
    elif isinstance(source, str | os.PathLike) and not Path(source).is_file():
        config, folder, known = read_config(Path(source)), Path(source), None
    else:
        return
    here, there = described(task), config["task"]
    if any(here[name] != there.get(name) for name in COMPARED):
        return
    if known is None and folder is not None:
        known = read_evaluations(folder, task)
    if known is not None and known.function and known.function == loop.ledger.evaluations.function:
        loop.ledger.inherit(known)


def _algorithm_of(config: Mapping[str, Any], folder: Path, task: Task, algorithm: Algorithm | None) -> Algorithm:
    name = config["algorithm"].get("name")
    if algorithm is not None:
        if {"name": algorithm.name, **json.loads(json.dumps(recorded(algorithm.config)))} != config["algorithm"]:
            raise InputError(_what_differs(folder, config["algorithm"], algorithm))
        return algorithm
    if name not in ALGORITHMS:
        raise InputError(
            f"the run in {str(folder)!r} is of the algorithm {name!r}, which is not one of moqd's; pass it, as in "
            "resume(path, algorithm=...), or on the command line with --algorithm FILE.py:NAME."
        )
    return restore_algorithm(config["algorithm"], task)


def _what_differs(folder: Path, there: Mapping[str, Any], algorithm: Algorithm) -> str:
    here = {"name": algorithm.name, **json.loads(json.dumps(recorded(algorithm.config)))}
    name = next(name for name in here | dict(there) if here.get(name) != there.get(name))
    return (
        f"the run in {str(folder)!r} is of an algorithm whose {name} is {there.get(name)!r}, but that of the one "
        f"given is {here.get(name)!r}; give the algorithm that was run."
    )


def _identity(config: Mapping[str, Any]) -> str:
    """What makes a run the run that it is, however long it goes on and wherever."""
    identity = {name: config[name] for name in ("task", "algorithm", "seed", "batch", "seeded")}
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _surroundings() -> dict[str, Any]:
    """What the bits of a result depend on beside the settings."""
    return {
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "xla_flags": sorted(os.environ.get("XLA_FLAGS", "").split()),
        "devices": [device.device_kind for device in jax.local_devices()],
        "machine": {"processor": processor(), "cores": num_cores()},
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _budget(iterations: int | None, evaluations: int | None, batch: int) -> int:
    if (iterations is None) == (evaluations is None):
        raise InputError(
            f"iterations is {iterations} and evaluations is {evaluations}; give one of the two and not the other."
        )
    if iterations is not None:
        return whole_number("iterations", iterations, least=0)
    assert evaluations is not None
    needed = iterations_for(whole_number("evaluations", evaluations, least=0), batch)
    if needed * batch != evaluations:
        warnings.warn(
            f"evaluations={evaluations} is not a multiple of the batch of {batch}: {(needed + 1) * batch} will be "
            "made, the first, random batch included.",
            stacklevel=3,
        )
    return needed


def _new_folder(folder: Path) -> Path:
    try:
        taken = folder.exists() and (not folder.is_dir() or not all(map(_is_left_over, folder.iterdir())))
        if not taken:
            folder.mkdir(parents=True, exist_ok=True)
            return folder
    except OSError as error:
        raise InputError(
            f"out is {str(folder)!r}, which cannot be made ({error.strerror}); give a folder that you may write to."
        ) from error
    if (folder / CONFIG).exists():
        raise InputError(
            f"out is {str(folder)!r}, which holds a run already; continue that with: {to_resume(folder)}, or write to "
            f"another folder, such as --out {_free(folder)}"
        )
    raise InputError(f"out is {str(folder)!r}, which is there already; give the name of a new folder.")


def _is_left_over(path: Path) -> bool:
    """Whether it is of a study, or of a process that was killed before it had written its config."""
    return path.name in (LOCK, SEEDS, EVALUATIONS, OUTCOME, LOG, TIMING, FAILURES, JOURNAL) or (
        path.name.startswith(".") and path.name.endswith(".tmp")
    )


def _free(folder: Path) -> Path:
    folder = folder if folder.name else folder.resolve()
    return next(path for i in range(2, 10**6) if not (path := folder.with_name(f"{folder.name}-{i}")).exists())
