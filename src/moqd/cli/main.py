"""The command line: `moqd train TASK`, `moqd resume RUN` and the other commands that `moqd --help` lists."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
import numpy as np
import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from moqd.algorithms import ALGORITHMS, make_algorithm
from moqd.choose.export import export_csv
from moqd.cli.explore import explore
from moqd.cli.flags import parse
from moqd.cli.pick import pick
from moqd.cli.study import is_study, study, write_report_of
from moqd.core.devices import use_devices
from moqd.core.metrics import OF_THE_PAPER, formatted, global_front
from moqd.core.networks import num_parameters
from moqd.io.errors import (
    DivergenceError,
    EvaluationError,
    InputError,
    StoppedError,
    StorageError,
    to_resume,
    unknown_name,
)
from moqd.io.options import checked_seed, overridden, restored
from moqd.runs.compilation import use_cache
from moqd.runs.control import Control, signals
from moqd.runs.display import Display
from moqd.runs.folder import CONFIG, Run, load_run, read_config
from moqd.runs.journal import lost_evaluations
from moqd.runs.presets import preset_for
from moqd.runs.session import SEEDS, Callback, resume, run
from moqd.runs.tensorboard import TensorBoard
from moqd.runs.user_code import OWN, is_own, load_algorithm, load_task
from moqd.tasks import TASKS, Task, make_task
from moqd.tasks.evaluate import Evaluator

out, err = Console(), Console(stderr=True)


@dataclass(frozen=True)
class TrainOptions:
    """Runs an algorithm on a task and writes what it found, so that nothing is lost: `moqd resume` continues a run that
    was stopped, however that came about."""

    task: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")] = None
    """The task to solve: one that `moqd tasks` lists, or one of your own, as --task FILE.py:NAME."""
    algorithm: str | None = None
    """The algorithm: one that `moqd algorithms` lists, or one of your own, as FILE.py:NAME. If not given: mome-p2c
    where solutions are policies (robots, environments), mome for other tasks. Its own options are listed below, with
    its defaults."""
    preset: Literal["quick", "small", "paper"] | None = None
    """Settings for all that is not given: the paper's own; small ones for minutes on a laptop (episodes of 250 steps,
    batches of 64, 9,600 evaluations); quick ones for a first look (the same with 3,200 evaluations). If not given:
    small where solutions are policies; for other tasks the algorithm's defaults and 1000 iterations."""
    seed: int = 0
    """Seed of all randomness: the same seed on the same machine gives the same archive, bit by bit."""
    iterations: int | None = None
    """How many batches to evaluate after the first, random one. If neither this nor evaluations is given, the preset
    says."""
    evaluations: int | None = None
    """The budget in evaluations instead, in whole batches; the first, random one comes on top."""
    out: Path | None = None
    """The folder to write to, which must be new. If not given: runs/TASK-ALGORITHM-SEED."""
    config: Path | None = None
    """The config.json of a run to repeat: its settings are the defaults for all that is not given."""
    init_from: Path | None = None
    """A run whose archive this one begins with: its solutions are evaluated before the first, random batch."""
    log_every: int = 10
    """Iterations between two rows of metrics."""
    checkpoint_minutes: float = 5.0
    """Minutes between two checkpoints; 0 writes one after every chunk of iterations. SIGUSR1 asks for one at once."""
    snapshot_every: int | None = None
    """Iterations between two records of the archive's objectives and features. If not given: none."""
    tensorboard: bool = False
    """Whether to write metrics for TensorBoard too, into the folder tensorboard of the run."""
    reference_point: tuple[float, ...] | None = None
    """Where hypervolume is measured from, one number per objective. If not given: the task's own."""
    devices: int | None = None
    """How many local devices the population is spread over. If not given: every CPU core, or every GPU."""


DEFAULT_ITERATIONS = 1000


def train(arguments: Sequence[str]) -> int:
    """Run an algorithm on a task."""
    plan = _plan(arguments)
    options, algorithm_name = plan.options, plan.algorithm_name
    use_devices(options.devices)
    use_cache()
    task = make_task(plan.task_name, **{"resamples": plan.resamples} | _task_options(options, plan.task))
    algorithm = make_algorithm(algorithm_name, task, **_values(plan.algorithm))
    folder = options.out or Path("runs") / f"{plan.task_name}-{algorithm_name}-{options.seed}"
    budget = {"iterations": options.iterations, "evaluations": options.evaluations}
    return _watch(
        folder,
        options.tensorboard,
        lambda callbacks, control: run(
            algorithm,
            task,
            **(plan.budget if budget == {"iterations": None, "evaluations": None} else budget),
            seed=options.seed,
            out=folder,
            callbacks=callbacks,
            log_every=options.log_every,
            checkpoint_minutes=options.checkpoint_minutes,
            snapshot_every=options.snapshot_every,
            init_from=plan.init_from,
            control=control,
        ),
    )


@dataclass(frozen=True)
class ResumeOptions:
    """Continues a run from its newest checkpoint that is whole, and ends as if it had never been interrupted."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder of the run."""
    iterations: int | None = None
    """A new total of iterations, which extends a run that is finished. If not given: as it was started."""
    tensorboard: bool = False
    """Whether to write metrics for TensorBoard too, into the folder tensorboard of the run."""
    devices: int | None = None
    """How many local devices the population is spread over. If not given: as many as before; with others the bits of
    the result may differ."""


def resume_run(arguments: Sequence[str]) -> int:
    """Continue a run."""
    options = _parse_one("moqd resume", ResumeOptions, arguments)
    recorded = _devices_of(read_config(options.run))
    use_devices(recorded if options.devices is None else options.devices)
    use_cache()
    return _watch(
        options.run,
        options.tensorboard,
        lambda callbacks, control: resume(
            options.run, iterations=options.iterations, callbacks=callbacks, control=control
        ),
    )


def _watch(folder: Path, tensorboard: bool, start: Callable[[list[Callback], Control], Run]) -> int:
    """A run with its display, that can be stopped; then its report."""
    control, display = Control(), Display(out)
    callbacks: list[Callback] = [display, *([TensorBoard(folder / "tensorboard")] if tensorboard else [])]
    how = f"continue with: [bold]{escape(to_resume(folder))}[/]"

    def told() -> None:
        out.print("[yellow]stopping[/] when this chunk is done and saved; once more stops at once", highlight=False)

    def at_once() -> None:
        display.stop()
        saved = (folder / CONFIG).exists()
        err.print(f"[yellow]stopped at once[/]{f'; {how}' if saved else ''}", highlight=False, soft_wrap=True)

    with signals(control, told, at_once) as exit_code:
        try:
            with display:
                result = start(callbacks, control)
        except StoppedError as stopped:
            out.print(f"{stopped} Everything is saved; {how}", highlight=False, soft_wrap=True)
            return exit_code()
    _show(result)
    report = _report(result)
    picture = folder / "figures" / "overview.png"
    out.print(
        f"written to [bold]{escape(str(report))}[/]; to see it at a glance, open [bold]{escape(str(picture))}[/]",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def _report(result: Run, folder: Path | None = None) -> Path:
    from moqd.report import write_report  # here, because matplotlib takes its time, and a run should start soon

    with out.status("") as status:
        return write_report(result, folder, status.update)


@dataclass(frozen=True)
class ReportOptions:
    """Writes the report of a run (report.md, figures) or of a study (report.html, report.md, tables as CSV, figures),
    from what it has saved so far."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN|STUDY")]
    """The folder of the run, or of the study."""
    out: Path | None = None
    """Another folder to write to. If not given: that of the run, or of the study."""


def report(arguments: Sequence[str]) -> int:
    """Draw a run, or a study."""
    options = _parse_one("moqd report", ReportOptions, arguments)
    if is_study(options.run):
        write_report_of(options.run, out, options.out)
        return 0
    path = _report(load_run(options.run), options.out)
    out.print(f"written to [bold]{escape(str(path))}[/]", highlight=False, soft_wrap=True)
    return 0


@dataclass(frozen=True)
class ExportOptions:
    """Writes the archive of a run for other programs."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder of the run."""
    csv: bool = False
    """As a table with a row for each solution: its cell, features, objectives (in their own units) and preference."""
    out: Path | None = None
    """The file to write to. If not given: solutions.csv in the folder of the run."""


def export(arguments: Sequence[str]) -> int:
    """Write an archive for other programs."""
    options = _parse_one("moqd export", ExportOptions, arguments)
    if not options.csv:
        raise InputError("moqd export needs a format; give --csv.")
    result = load_run(options.run)
    path = options.out or options.run / "solutions.csv"
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"--out is {str(path)!r}; give a file in a folder that is there.")
    export_csv(result, path)
    number = len(result.solutions().cell)
    out.print(f"{number} solutions written to [bold]{escape(str(path))}[/]", highlight=False, soft_wrap=True)
    return 0


def _parse_one(program: str, options: type, arguments: Sequence[str]) -> Any:
    return parse(program, options.__doc__ or "", {"general": options}, arguments)["general"]


def _task_options(options: Any, config: Any) -> dict[str, Any]:
    """What `make_task` is given: the task's own options, and another reference point where one is wanted."""
    return _values(config) | {"reference_point": options.reference_point}


def _values(config: Any) -> dict[str, Any]:
    return {field.name: getattr(config, field.name) for field in fields(config)}


class Plan(NamedTuple):
    """What `moqd train` was asked for, with all that was not said filled in."""

    options: TrainOptions
    task_name: str
    task: Any
    algorithm_name: str
    algorithm: Any
    budget: dict[str, int]
    """Where neither iterations nor evaluations are given."""
    init_from: Any
    resamples: int | None = None
    """Of the run to repeat, where they are not an option of the task's own."""


def _plan(arguments: Sequence[str]) -> Plan:
    """The options, with those of the task and the algorithm that they name as flags beside them."""
    again = _value_of("--config", arguments)
    defaults = _defaults(arguments) if again is None else _defaults_again(Path(again), arguments)
    options, task, algorithm = _parse_with_task(
        "moqd train",
        defaults.options,
        arguments,
        task=defaults.task,
        algorithm=defaults.algorithm,
    )
    init_from = options.init_from if options.init_from is not None else defaults.init_from
    if options.task not in (None, defaults.task_name) or options.algorithm != defaults.algorithm_name:
        raise InputError(
            "moqd train cannot tell the TASK from the value of an option here; write it first: moqd train "
            f"{options.task} ..."
        )
    return defaults._replace(options=options, task=task, algorithm=algorithm, init_from=init_from)


def _defaults(arguments: Sequence[str]) -> Plan:
    """By the preset."""
    preset, named = _value_of("--preset", arguments), _task_of(arguments)
    if named is None and preset != "quick" and not {"-h", "--help"} & set(arguments):
        raise InputError("moqd train needs a TASK; moqd tasks lists them: moqd train hopper-2.")
    task = named or "hopper-2"
    suited, usual = ("mome-p2c", "small") if TASKS[task].policies else ("mome", None)
    algorithm = _algorithm_in(arguments) or suited
    entry = TASKS[task], ALGORITHMS[algorithm]
    wanted = preset or usual
    if wanted is None:
        plain = TrainOptions(task=named, algorithm=algorithm)
        budget = {"iterations": DEFAULT_ITERATIONS}
        suited_config = entry[1].config_for(entry[0].build(entry[0].config))
        return Plan(plain, task, entry[0].config, algorithm, suited_config, budget, None)
    chosen = preset_for(wanted, task, algorithm)
    return Plan(
        TrainOptions(task=named, algorithm=algorithm, log_every=chosen.log_every),
        task,
        replace(entry[0].config, **chosen.task),
        algorithm,
        replace(entry[1].config, **chosen.algorithm),
        {"evaluations": chosen.evaluations},
        None,
    )


def _defaults_again(path: Path, arguments: Sequence[str]) -> Plan:
    """By the config.json of another run."""
    path = path / CONFIG if path.is_dir() else path
    if path.name != CONFIG:
        raise InputError(f"--config is {str(path)!r}; give the path of a run's {CONFIG}.")
    if _value_of("--preset", arguments) is not None:
        raise InputError("--config and --preset both say all settings; give one of the two and not the other.")
    config = read_config(path.parent)
    of_task, of_algorithm = dict(config["task"].get("options") or {}), dict(config["algorithm"])
    name = of_task.pop("name", None)
    if name not in TASKS:
        raise InputError(
            f"{str(path)!r} is of the task {config['task'].get('name')!r}, which is not one of moqd's; repeat it in "
            "Python, with moqd.run."
        )
    if _task_of(arguments) not in (None, name):
        raise InputError(f"--config is of the task {name!r}; leave the TASK out, or name that one.")
    recorded = of_algorithm.pop("name", None)
    algorithm = _algorithm_in(arguments) or recorded
    if algorithm not in ALGORITHMS:
        raise unknown_name("algorithm", algorithm, ALGORITHMS, of=str(path))
    entry = TASKS[name], ALGORITHMS[algorithm]
    reference_point = of_task.pop("reference_point", None)
    resamples = None if hasattr(entry[0].config, "resamples") else of_task.pop("resamples", None)
    general = TrainOptions(
        task=name,
        algorithm=algorithm,
        seed=config["seed"],
        log_every=config["log_every"],
        checkpoint_minutes=float(config["checkpoint_minutes"]),
        snapshot_every=config["snapshot_every"],
        reference_point=None if reference_point is None else tuple(reference_point),
        devices=_devices_of(config),
    )
    return Plan(
        general,
        name,
        overridden(entry[0].config, of_task, f"task {name!r}"),
        algorithm,
        restored(entry[1].config, of_algorithm, f"algorithm {algorithm!r}")
        if algorithm == recorded
        else entry[1].config_for(entry[0].build(overridden(entry[0].config, of_task, f"task {name!r}"))),
        {"iterations": config["iterations"]},
        path.parent / SEEDS if config["seeded"] else None,
        resamples,
    )


def _devices_of(config: Mapping[str, Any]) -> int | None:
    """As many CPU devices as a run had; None for others, of which there are as many as there are."""
    devices = config.get("devices")
    return len(devices) if isinstance(devices, list) and devices and set(devices) == {"cpu"} else None


def _algorithm_in(arguments: Sequence[str]) -> str | None:
    algorithm = _value_of("--algorithm", arguments)
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise unknown_name("algorithm", algorithm, ALGORITHMS)
    return algorithm


def _task_of(arguments: Sequence[str]) -> str | None:
    """The task that is named; what stands in its place and is none is a mistake."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in TASKS:
        raise unknown_name("task", arguments[0], TASKS)
    return next((argument for argument in arguments if argument in TASKS), None)


def _parse_with_task(program: str, options: Any, arguments: Sequence[str], **parts: Any) -> Any:
    """The options, those of the task that they name, and the other parts, all as flags beside each other."""
    description = (options if isinstance(options, type) else type(options)).__doc__ or ""
    parsed = parse(program, description, {"general": options, **parts}, arguments, _elsewhere())
    if parsed["general"].task is not None and parsed["general"].task not in TASKS:
        raise unknown_name("task", parsed["general"].task, TASKS)
    return tuple(parsed.values())


def _elsewhere() -> dict[str, str]:
    """Where the options of tasks and algorithms belong, for those who look for them in others."""
    owners: dict[str, list[str]] = {}
    for name, entry in (TASKS | ALGORITHMS).items():
        for field in fields(entry.config):
            owners.setdefault(f"--{field.name.replace('_', '-')}", []).append(name)
    return {flag: ", ".join(names) for flag, names in owners.items()}


def _value_of(flag: str, arguments: Sequence[str]) -> str | None:
    """The last one that is given, as it counts."""
    found = None
    for argument, following in zip_longest(arguments, arguments[1:]):
        if argument.startswith(f"{flag}="):
            found = argument.removeprefix(f"{flag}=")
        elif argument == flag:
            found = following
    return found


def _show(result: Run) -> None:
    """The last metrics, and the ends of the global front."""
    last = {name: column[-1] for name, column in result.metrics.items()}
    out.print(f"\n{last['evaluations']:,.0f} evaluations in {last['seconds']:.1f} s", highlight=False)
    table = Table(box=SIMPLE_HEAD)
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name in (*OF_THE_PAPER, "num_solutions"):
        table.add_row(name, formatted(name, last[name]))
    out.print(table)

    best = global_front(result.archive)
    if not len(best):
        out.print(f"the archive is empty: {_why_empty(last)}", highlight=False, soft_wrap=True)
        return
    out.print(f"the global front has {len(best)} solutions; its ends:", highlight=False)
    table = Table(box=SIMPLE_HEAD)
    table.add_column("best in")
    for name in result.task.objective_names:
        table.add_column(Text(name), justify="right")
    for i, name in enumerate(result.task.objective_names):
        solution = best[np.argmax(best[:, i])] * result.task.direction
        table.add_row(Text(name), *(f"{value:.4g}" for value in solution))
    out.print(table)
    for fact in lost_evaluations(result):
        out.print(escape(fact), highlight=False, soft_wrap=True)


def _why_empty(last: Mapping[str, float]) -> str:
    if not last.get("infeasible_evaluations"):
        return "every evaluation failed."
    return (
        f"none of {last['evaluations']:.0f} evaluations kept to all constraints; nsga2-small and spea2-small find "
        "their way towards what is feasible, or loosen the constraints."
    )


@dataclass(frozen=True)
class TasksOptions:
    """Lists the tasks, or looks at one of them."""

    task: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[TASK]")] = None
    """The task to look at. If not given: all of them."""
    sample: int | None = None
    """Evaluate so many random solutions of the task, and say what they reach and how many fall below its reference
    point."""
    seed: int = 0
    """Seed of the random solutions."""
    reference_point: tuple[float, ...] | None = None
    """Another reference point, one number per objective."""


def tasks(arguments: Sequence[str]) -> int:
    """List the tasks, or look at one."""
    name = _task_of(arguments)
    options, *configs = _parse_with_task(
        "moqd tasks", TasksOptions, arguments, **({} if name is None else {"task": TASKS[name].config})
    )
    use_devices()
    if options.task is None:
        if options.sample is not None:
            raise InputError("--sample needs a task: moqd tasks hopper-2 --sample 256.")
        for name in TASKS:
            _describe_task(name, make_task(name))
    else:
        task = make_task(options.task, **_task_options(options, configs[0]))
        _describe_task(options.task, task)
        if options.sample is not None:
            _sample(task, options.sample, options.seed)
    return 0


def _describe_task(name: str, task: Task) -> None:
    better = [f"{objective} {'↓' if objective in task.minimised else '↑'}" for objective in task.objective_names]
    bounds = zip(task.feature_names, task.feature_bounds, strict=True)
    genotype = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    policy = task.policy
    layers = "" if policy is None else "-".join(map(str, (policy.num_obs, *policy.hidden_sizes, policy.num_actions)))
    _describe(
        name,
        TASKS[name].summary,
        objectives=", ".join(better),
        features=", ".join(f"{feature} {low:g} to {high:g}" for feature, (low, high) in bounds),
        reference=", ".join(f"{value:g}" for value in task.reference_point or ()),
        solutions=f"{f'networks {layers}, ' if layers else ''}{num_parameters(genotype):,} parameters",
        options=_options(TASKS[name].config),
    )


def _sample(task: Task, number: int, seed: int) -> None:
    """What random solutions reach, and where the reference point lies among them."""
    if number < 1:
        raise InputError(f"--sample is {number}; give a whole number of at least 1.")
    key_init, key_evaluate = jax.random.split(jax.random.key(checked_seed(seed)))
    with out.status(f"evaluating {number} random solutions"):
        genotype = jax.jit(task.init_genotype, static_argnums=1)(key_init, number)
        evaluation = Evaluator(task, checked=True)(key_evaluate, genotype)
    valid = np.asarray(evaluation.valid)
    fitness = np.asarray(evaluation.fitness)[valid]
    if not len(fitness):
        raise EvaluationError(f"all of the {number} evaluations failed.")
    table = Table(box=SIMPLE_HEAD)
    for column in ("objective", "worst", "median", "best", "reference", "below it"):
        table.add_column(column, justify="left" if column == "objective" else "right")
    for i, name in enumerate(task.objective_names):
        sign = task.direction[i]
        numbers = [f"{sign * value:.4g}" for value in np.quantile(fitness[:, i], [0, 0.5, 1])]
        reference = task.reference_point[i] if task.reference_point is not None else None
        below = "" if reference is None else f"{np.mean(fitness[:, i] <= sign * reference):.1%}"
        table.add_row(Text(name), *numbers, "" if reference is None else f"{reference:g}", below)
    out.print(f"{len(fitness)} random solutions, seed {seed} ({number - len(fitness)} more failed)", highlight=False)
    out.print(table)
    if task.reference_point is not None:
        reference_point = np.asarray(task.reference_point) * task.direction
        anywhere = np.mean(np.any(fitness <= reference_point, axis=1))
        out.print(
            f"{anywhere:.1%} are below the reference point in some objective: they add no hypervolume.", highlight=False
        )


@dataclass(frozen=True)
class AlgorithmsOptions:
    """Lists the algorithms with their options."""


def algorithms(arguments: Sequence[str]) -> int:
    """List the algorithms."""
    _parse_one("moqd algorithms", AlgorithmsOptions, arguments)
    for name, entry in ALGORITHMS.items():
        _describe(name, entry.summary, options=_options(entry.config))
    return 0


def _options(config: Any) -> str:
    return ", ".join(f"{field.name}={getattr(config, field.name)}" for field in fields(config))


def _describe(name: str, summary: str, **details: str) -> None:
    out.print(f"[bold]{escape(name)}[/]  {escape(summary)}", highlight=False)
    table = Table.grid(padding=(0, 2))
    for label, text in details.items():
        table.add_row("", f"[dim]{label}[/]", Text(text))
    out.print(table, highlight=False)
    out.print()


class Command(NamedTuple):
    call: Callable[[Sequence[str]], int]
    summary: str


COMMANDS = {
    "train": Command(train, "run an algorithm on a task: moqd train arm-2"),
    "resume": Command(resume_run, "continue a run that was stopped, or extend it: moqd resume runs/arm-2-mome-0"),
    "study": Command(
        lambda arguments: study(arguments, out), "make all runs of a study: moqd study small-main --seeds 3"
    ),
    "explore": Command(
        lambda arguments: explore(arguments, out), "look at a run in a browser: moqd explore runs/arm-2-mome-0"
    ),
    "pick": Command(
        lambda arguments: pick(arguments, out),
        "choose a policy of a run: moqd pick runs/hopper-2-mome-p2c-0 --preference 0.7,0.3",
    ),
    "report": Command(report, "write the report of a run or a study: moqd report runs/arm-2-mome-0"),
    "export": Command(export, "write an archive for other programs: moqd export runs/arm-2-mome-0 --csv"),
    "tasks": Command(tasks, "list the tasks, or look at one: moqd tasks hopper-2 --sample 256"),
    "algorithms": Command(algorithms, "list the algorithms"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; what the user can mend is said in one sentence, with exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    warnings.showwarning = lambda message, *_: err.print(f"[yellow]note:[/] {escape(str(message))}", soft_wrap=True)
    try:
        if not arguments or arguments[0] in ("-h", "--help"):
            _overview()
        elif arguments[0] == "--version":
            out.print(f"moqd {version('moqd')}", highlight=False)
        elif arguments[0] not in COMMANDS:
            raise unknown_name("command", arguments[0], COMMANDS)
        else:
            return COMMANDS[arguments[0]].call(_with_own_code(arguments[0], arguments[1:]))
    except (InputError, EvaluationError, DivergenceError) as error:
        err.print(f"[red]moqd:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return 2
    except (StorageError, OSError) as error:
        err.print(f"[red]moqd:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        err.print("[yellow]stopped.[/]")
        return 130
    return 0


def _with_own_code(command: str, arguments: Sequence[str]) -> list[str]:
    """The arguments without the FILE.py:NAME of --task and --algorithm, which are loaded.

    `moqd train` runs that task if no other is named, and that algorithm.
    """
    rest: list[str] = []
    specs: list[str] = []
    accept_changes, words = "--accept-changes" in arguments, iter(arguments)
    own = False
    for word in words:
        flag, equals, value = word.partition("=")
        if flag == "--task":
            specs.append(value if equals else next(words, ""))
        elif flag == "--algorithm" and is_own(value if equals else (value := next(words, ""))):
            name, own = load_algorithm(value, accept_changes=accept_changes), True
            rest += ["--algorithm", name] if command == "train" else []
        elif flag == "--algorithm":
            rest += [word] if equals else [word, value] if value else [word]
        elif is_own(word) and command in ("train", "tasks"):
            specs.append(word)
        else:
            rest.append(word)
    if accept_changes and not specs and not own:
        raise InputError(
            "--accept-changes is about code of your own; give it with --task FILE.py:NAME or --algorithm FILE.py:NAME."
        )
    if specs and command == "train" and (also := next((word for word in rest if word in TASKS), None)):
        raise InputError(f"{also!r} and --task {specs[0]} are two tasks; give one of the two.")
    for spec in specs:
        load_task(spec, accept_changes=accept_changes)
    names = list(OWN)[:1] if specs and command in ("train", "tasks") and "--config" not in " ".join(rest) else []
    if command != "study":  # which hands it on to its processes
        rest = [word for word in rest if word != "--accept-changes"]
    return [*names, *rest]


def _overview() -> None:
    out.print("[bold]moqd[/]: many different good solutions, each in many trade-offs\n")
    for name, command in COMMANDS.items():
        out.print(f"  [bold]moqd {name:<12}[/]{command.summary}")
    out.print("\n[bold]moqd COMMAND --help[/] explains a command.")
    out.print("Every command knows what is yours: --task FILE.py:NAME, --algorithm FILE.py:NAME.")
