"""The command `moqd study`: many runs, on this machine or on a Ray cluster, and the report of all of them."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape

from moqd.cli.output import say
from moqd.cli.own import parse
from moqd.cli.report import is_study, named, write_report_of
from moqd.core.devices import num_cores
from moqd.io.errors import AGAIN, InputError, unknown_name
from moqd.io.options import whole_number
from moqd.runs.control import Control, signals
from moqd.runs.user_code import OWN
from moqd.study.display import StudyDisplay, overview, show_status
from moqd.study.execute import STUDY, ExecutionOptions, execute, stored_study, write_study
from moqd.study.file import read_study
from moqd.study.plan import MOST_RUNS, STUDIES, Study, named_study, with_seeds
from moqd.study.status import RUNS, counts_of, standings_of
from moqd.study.summaries import RECORDS
from moqd.study.workers import LocalWorkers, RayWorkers, gpus_here

MEMORY_OF_A_RUN = 2e9
"""Bytes, with some room: runs with the paper's settings need up to 1.6 GB."""


@dataclass(frozen=True)
class StudyOptions:
    """Makes all runs of a study (tasks x algorithms x seeds), several at once, and its report. Started again, it goes
    on from what is saved and tries again what failed. Studies in one folder share their runs."""

    study: str = field(metadata={"positional": "STUDY"})
    """A study with a name: paper-main, paper-ablations, paper-pga or paper (all three), paper-extended (with systems
    that the paper only names), or small instead of paper; a TOML or JSON file (see docs/studies.md); or the folder of a
    study, to continue it as it was started."""
    tasks: tuple[str, ...] | None = None
    """Only these tasks of a study with a name."""
    algorithms: tuple[str, ...] | None = None
    """Only these algorithms of a study with a name."""
    seeds: int | None = None
    """How many seeds, from 0 on, for all tasks. If not given: 20 for the paper's studies, 6 for the small ones."""
    preset: Literal["quick", "small", "paper"] | None = None
    """Other settings than those that a study with a name has."""
    iterations: int | None = None
    """Another budget: iterations of every run."""
    evaluations: int | None = None
    """Another budget: evaluations of every run, in whole batches; the first, random one comes on top."""
    minutes: float | None = None
    """Another budget: minutes of every run, compiling included. Fair only on an otherwise idle machine, with as many
    cores for each run (--jobs, --cores)."""
    env_steps: int | None = None
    """Another budget: environment steps of every run, those of the first batch included."""
    log_every: int | None = None
    """Iterations of MOME-P2C between two rows of metrics; others log after as many evaluations."""
    out: Path = Path("studies")
    """The folder of studies, with a folder for each and one, runs, that they share. All machines of a cluster must see
    it."""
    jobs: int | None = None
    """How many runs to make at once on this machine. If not given: one per GPU, or as cores and memory allow."""
    cores: int | None = None
    """CPU cores of each run. If not given: an equal share of this machine's; on a cluster 1."""
    ray: str | None = None
    """Make the runs on a Ray cluster (extra ray): its address, auto or HOST:PORT, or local to start one here."""
    gpus: float = 0.0
    """GPUs of each run on the cluster; a fraction shares one."""
    checkpoint_minutes: float = 5.0
    """Minutes between two checkpoints of a run; 0 writes one after every chunk of iterations."""
    timing: bool = True
    """Whether to time the parts of MOME-P2C and MOME-PGX at the end, for the comparison of their wall-clock."""
    status: bool = False
    """Only show what is done, running and failed, and the time left."""


def main(arguments: Sequence[str], out: Console) -> int:
    options, own = parse("moqd study", StudyOptions, arguments, out)
    root, plan = _plan(options, out)
    if options.status:
        if not (root / plan.name / STUDY).exists():
            raise InputError(f"study {plan.name!r} was not started in {str(root)!r}; start it, or give its --out.")
        show_status(out, root, plan, standings_of(root, plan))
        return 0
    _check_reference_points(plan)
    jobs, cores = _shares(options)
    folder = write_study(root, plan)
    marker = (folder / STUDY).absolute()
    workers = LocalWorkers(jobs) if options.ray is None else RayWorkers(options.ray, cores, options.gpus, marker)
    control = Control()
    display = StudyDisplay(out, root, plan, jobs)
    command = escape(" ".join(["moqd study", shlex.quote(str(folder)), *AGAIN]))
    again = f"continue with: [bold]{command}[/]"

    def told() -> None:
        display.say("stopping when all runs have saved; once more stops at once", "yellow")

    def at_once() -> None:
        display.stop()
        say(out, f"[yellow]stopped at once[/]; {again}")

    control.under_way.set()
    with signals(control, told, at_once) as exit_code:
        with display:
            how = ExecutionOptions(cores, options.checkpoint_minutes, options.timing, own.accept_changes)
            whole = execute(plan, root, workers, how, display, lambda: control.stopping)
        if not whole:
            say(out, f"stopped. Everything is saved; {again}")
            return exit_code()
    write_report_of(folder, out)
    missing = len(plan.runs) - counts_of(standings_of(root, plan))["done"]
    if missing:
        why = f"{command} --status says why; start the study again to try them again."
        say(out, f"[red]{missing} of {len(plan.runs)} runs are not done[/]: {why}")
    return 1 if missing else 0


def _check_reference_points(plan: Study) -> None:
    """Of tasks of the user's own: without one, every run would measure hypervolume from a point of its own."""
    for name, task in {run.task: run.config.task for run in plan.runs}.items():
        if name in OWN and OWN[name].reference_point is None and (task.options or {}).get("reference_point") is None:
            worst = ", ".join(OWN[name].objective_names)
            raise InputError(
                f"task {name!r} has no reference point, so hypervolumes of its runs could not be compared; give it one "
                f"(reference_point=, the worst that counts of {worst}), or in the study's file, below [task.{name}]. "
                f"moqd tasks FILE.py:NAME --sample 256 shows what random solutions reach."
            )


def _plan(options: StudyOptions, out: Console) -> tuple[Path, Study]:
    """The folder of studies, and the study that is meant."""
    given = Path(options.study)
    names = ("tasks", "algorithms", "seeds", "preset", "iterations", "evaluations", "minutes", "env_steps", "log_every")
    selected: dict[str, Any] = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.seeds is not None:
        if not 1 <= options.seeds <= MOST_RUNS:
            raise InputError(f"--seeds is {options.seeds}; give how many, from 1 to {MOST_RUNS}.")
        selected["seeds"] = range(options.seeds)
    if options.study in STUDIES:
        stored = options.out / options.study
        if selected or not is_study(stored):
            return options.out, _noted(named_study(options.study, **selected), options, out)
        plan = stored_study(stored)
        if not options.status and plan.runs != named_study(options.study).runs:
            out.print(f"continuing it as it was started: {overview(plan)}")
        return options.out, plan
    is_folder = is_study(given)
    if not is_folder and given.suffix not in (".toml", ".json") and not given.exists():
        raise unknown_name("study", options.study, STUDIES)
    seeds = None if is_folder else selected.pop("seeds", None)
    if selected:
        flag = f"--{next(iter(selected)).replace('_', '-')}"
        what, fix = ("folder", "leave it out") if is_folder else ("file", "set it in the file")
        raise InputError(f"{flag} cannot be combined with the {what} of a study; {fix}.")
    if is_folder:
        given = named(given)
        return given.parent, stored_study(given)
    plan = read_study(given)
    if plan.name in (RUNS, RECORDS):
        raise InputError(f"a study cannot be named {plan.name!r}, as the folder of all {plan.name} is; rename it.")
    return options.out, _noted(plan if seeds is None else with_seeds(plan, seeds), options, out)


def _noted(plan: Study, options: StudyOptions, out: Console) -> Study:
    """Says where a study of this name was started with other runs; these are kept, but no longer part of it."""
    stored = options.out / plan.name
    if not options.status and is_study(stored) and (before := stored_study(stored)).runs != plan.runs:
        out.print(f"[yellow]note:[/] {escape(plan.name)} was {overview(before)} before; its report changes with it")
    return plan


def _shares(options: StudyOptions) -> tuple[int, int]:
    """How many runs at once, and cores of each."""
    for name, value in (("--jobs", options.jobs), ("--cores", options.cores)):
        if value is not None:
            whole_number(name, value, least=1)
    if options.checkpoint_minutes < 0 or options.gpus < 0:
        raise InputError("--checkpoint-minutes and --gpus are not negative.")
    if options.ray is not None:
        if options.jobs is not None:
            raise InputError("--jobs is for this machine; on a Ray cluster --cores and --gpus say how many runs fit.")
        return 0, options.cores or 1
    if options.gpus:
        raise InputError("--gpus is for a Ray cluster; on this machine runs share the GPUs that there are.")
    cores = num_cores()
    if options.jobs is None and options.cores is not None:
        return max(1, cores // options.cores), options.cores
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    jobs = options.jobs or len(gpus_here()) or max(1, min(cores, int(memory // MEMORY_OF_A_RUN)))
    return jobs, options.cores or max(1, cores // jobs)
