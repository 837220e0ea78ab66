"""How far a study is, as its files say: so anyone who can read them can tell, on any machine."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from moqd.io.errors import InputError, StorageError
from moqd.io.files import own_folder
from moqd.runs.folder import CONFIG, METRICS_CSV, TIMING, last_row, load_run
from moqd.runs.lock import is_held
from moqd.runs.timing import read_timing, write_timing
from moqd.study import summaries
from moqd.study.job import is_done, outcome_of, write_outcome
from moqd.study.plan import PlannedRun, Study
from moqd.study.summaries import Result, Results, Unfinished, check_record, record_of, recorded_timing_of
from moqd.tasks import Task

STATES = ("done", "running", "stopped", "failed", "waiting")
RUNS = "runs"
"""The folder of all runs, beside those of the studies that share them."""


class Standing(NamedTuple):
    """Where a run stands."""

    run: PlannedRun
    state: str
    """One of STATES: a run that is stopped has begun, one that is waiting has not."""
    iteration: int = 0
    seconds: float = 0.0
    env_steps: int = 0
    reason: str = ""
    """Why it failed."""

    @property
    def work(self) -> tuple[float, float]:
        """How much is done and how much there is: iterations, or what else ends the run, in seconds or steps."""
        config = self.run.config
        done, all_of_it = float(self.iteration), float(max(1, config.iterations))
        if config.minutes is not None:
            done, all_of_it = self.seconds, max(1.0, 60 * config.minutes)
        elif config.env_steps is not None:
            done, all_of_it = float(self.env_steps), float(config.env_steps)
        return (all_of_it if self.state == "done" else min(done, all_of_it)), all_of_it

    @property
    def kinds(self) -> tuple[tuple[str, ...], ...]:
        """What it has in common with others: the task and the algorithm, the algorithm, or nothing."""
        return (self.run.task, self.run.algorithm), (self.run.algorithm,), ()


def folder_of(root: Path, run: PlannedRun) -> Path:
    """Of a run, in a folder of studies."""
    return root / RUNS / run.key


def standing_of(root: Path, run: PlannedRun) -> Standing:
    """As its files say; what cannot be read is a failure."""
    folder = folder_of(root, run)
    try:
        if _is_recorded(root, run):
            check_record(record_of(root, run), run)
            return Standing(run, "done", run.config.iterations)
        if not folder.is_dir():
            return Standing(run, "waiting")
        outcome, reached = outcome_of(folder), last_row(folder)
        if is_done(folder, run.config):
            return Standing(run, "done", *reached)
        if is_held(folder):
            return Standing(run, "running", *reached)
        if outcome.get("state") == "failed":
            return Standing(run, "failed", *reached, str(outcome.get("reason", "")))
        return Standing(run, "stopped" if (folder / CONFIG).exists() else "waiting", *reached)
    except (OSError, InputError, StorageError) as error:
        return Standing(run, "failed", reason=str(error))


def _is_recorded(root: Path, run: PlannedRun) -> bool:
    """Whether the run was not begun here, but a record says what it gave elsewhere."""
    return not (folder_of(root, run) / CONFIG).exists() and record_of(root, run).exists()


def standings_of(root: Path, study: Study) -> list[Standing]:
    return [standing_of(root, run) for run in study.runs]


def counts_of(standings: Iterable[Standing]) -> dict[str, int]:
    counts = Counter(standing.state for standing in standings)
    return {state: counts[state] for state in STATES}


def seconds_left(standings: Sequence[Standing], workers: int) -> float | None:
    """What is left to do, by the speed so far of the same algorithm on the same task (or else on others), divided by
    the number of workers; None while nothing is known."""
    speeds = defaultdict[tuple[str, ...], list[float]](list)
    for standing in standings:
        if standing.iteration and standing.seconds:
            for kind in standing.kinds:
                speeds[kind].append(standing.seconds / max(1.0, standing.work[0]))
    if not speeds:
        return None
    rest = [0.0]
    for standing in standings:
        if standing.state not in ("done", "failed"):
            done, all_of_it = standing.work
            known = next(speeds[kind] for kind in standing.kinds if kind in speeds)
            rest.append((all_of_it - done) * (fmean(known) if standing.run.config.minutes is None else 1))
    return max(sum(rest) / max(1, workers), max(rest))


def results_of(root: Path, study: Study, *, tick: Callable[[], None] = lambda: None) -> Results:
    """All that is finished, and what is not; `tick` is called after each run that was read."""
    results, unfinished, timings = [], [], {}
    tasks = {run.task: run.config.task.make() for run in study.runs}
    for run in study.runs:
        standing = standing_of(root, run)
        state, iteration, reason = standing.state, standing.iteration, standing.reason
        if state == "done":
            try:
                results.append(_result(root, run, tasks[run.task]))
            except InputError as error:
                state, reason = "failed", str(error)
        elif iteration and not reason:
            reason = f"at iteration {iteration}{run.config.of_iterations}"
        if state != "done":
            unfinished.append(Unfinished(run.task, run.algorithm, run.seed, state, reason))
        if (run.task, run.algorithm) not in timings and (timing := timing_of(root, run)) is not None:
            timings[run.task, run.algorithm] = timing
        tick()
    return Results(study, tuple(results), tuple(unfinished), tasks, timings)


def timing_of(root: Path, run: PlannedRun) -> dict[str, Any] | None:
    """What the parts of its algorithm took, if that was measured, here or elsewhere."""
    for path in (folder_of(root, run) / TIMING, recorded_timing_of(root, run)):
        with suppress(InputError):
            return read_timing(path)
    return None


def keep_records(root: Path, results: Results) -> None:
    """Writes the records of results that have none that is whole, and copies of what was timed."""
    own_folder(root / summaries.RECORDS)
    of_run = {(run.task, run.algorithm, run.seed): run for run in results.study.runs}
    for result in results.results:
        run = of_run[result.task, result.algorithm, result.seed]
        try:
            check_record(record_of(root, run), run)
        except InputError:
            summaries.write_record(record_of(root, run), result)
        timing = folder_of(root, run) / TIMING
        if timing.exists() and not recorded_timing_of(root, run).exists():
            with suppress(InputError):  # a damaged one is made anew
                write_timing(recorded_timing_of(root, run), read_timing(timing))


def _result(root: Path, run: PlannedRun, task: Task) -> Result:
    """What a run that is done has given; raises where its files do not hold this run, to its end."""
    if _is_recorded(root, run):
        try:
            return summaries.read_record(record_of(root, run), run, task)
        except InputError as error:
            raise InputError(f"{error} Remove it to have the run made again.") from error
    folder = folder_of(root, run)
    try:
        loaded = load_run(folder)
        loaded.config.check_same(run.config, folder)
        if not any(map(run.config.is_last, list(loaded.metrics.get("iteration", ()))[-1:])):
            raise InputError(f"{str(folder / METRICS_CSV)!r} is damaged: it does not reach the run's last iteration.")
        summaries.check_origin(loaded.config, folder / CONFIG)
    except InputError as error:
        with suppress(StorageError, InputError, OSError):  # it may be another user's
            write_outcome(folder, "failed", str(error))  # so that the study mends it when it is started again
        raise
    archive, point = summaries.without_genotypes(loaded.archive), loaded.reference_point
    return Result(run.task, run.algorithm, run.seed, loaded.metrics, archive, point, loaded.config, folder)
