"""The command line: `moqd train TASK`, `moqd tasks [TASK]`, `moqd algorithms`."""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import numpy as np
import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from moqd.algorithms import ALGORITHMS, make_algorithm
from moqd.devices import compiled, use_devices
from moqd.errors import DivergenceError, EvaluationError, InputError, unknown_name
from moqd.experiment.display import Display
from moqd.experiment.run import run
from moqd.experiment.store import Run
from moqd.metrics import global_front
from moqd.networks import num_parameters
from moqd.plots.overview import save_overview
from moqd.tasks import TASKS, Task, make_task
from moqd.tasks.task import validated

out, err = Console(), Console(stderr=True)


@dataclass(frozen=True)
class TrainOptions:
    """Runs an algorithm on a task and writes what it found."""

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """The task to solve: one that `moqd tasks` lists."""
    algorithm: str | None = None
    """The algorithm: one that `moqd algorithms` lists. If not given: mome-p2c for the robots, mome for other tasks. Its
    own options are listed below, with its defaults."""
    seed: int = 0
    """Seed of all randomness: the same seed on the same machine gives the same archive."""
    iterations: int | None = None
    """How many batches to evaluate after the first, random one. If neither this nor evaluations is given: 1000."""
    evaluations: int | None = None
    """The budget in evaluations instead, rounded up to whole iterations."""
    out: Path | None = None
    """The folder to write to, which must be new. If not given: runs/TASK-ALGORITHM-SEED."""
    log_every: int = 10
    """Iterations between two rows of metrics."""
    reference_point: tuple[float, ...] | None = None
    """Where hypervolume is measured from, one number per objective. If not given: the task's own."""
    devices: int | None = None
    """How many local devices the population is spread over. If not given: every CPU core, or every GPU."""


def train(arguments: Sequence[str]) -> None:
    """Run an algorithm on a task."""
    options, task_options, algorithm_options = _parse_train(arguments)
    use_devices(options.devices)
    task = make_task(options.task, **_task_options(options, task_options))
    algorithm = make_algorithm(options.algorithm, task, **asdict(algorithm_options))
    folder = options.out or Path("runs") / f"{options.task}-{options.algorithm}-{options.seed}"
    unlimited = options.iterations is None and options.evaluations is None
    with Display(out) as display:
        result = run(
            algorithm,
            task,
            iterations=1000 if unlimited else options.iterations,
            evaluations=options.evaluations,
            seed=options.seed,
            out=folder,
            callbacks=[display],
            log_every=options.log_every,
        )
    picture = folder / "figures" / "overview.png"
    save_overview(result, picture)
    _show(result)
    out.print(f"written to [bold]{folder}[/]; to see it, open [bold]{picture}[/]")


def _task_options(options: Any, config: Any) -> dict[str, Any]:
    """What `make_task` is given: the task's own options, and another reference point where one is wanted."""
    reference = {} if options.reference_point is None else {"reference_point": options.reference_point}
    return asdict(config) | reference


def _parse_train(arguments: Sequence[str]) -> Any:
    """The options, with those of the task and the algorithm that they name as flags beside them."""
    task = _task_of(arguments)
    suited = "mome-p2c" if task is not None and TASKS[task].policies else "mome"
    algorithm = _value_of("--algorithm", arguments) or suited
    if algorithm not in ALGORITHMS:
        raise unknown_name("algorithm", algorithm, ALGORITHMS)
    options, *configs = _parse_with_task("moqd train", TrainOptions, arguments, algorithm=ALGORITHMS[algorithm].config)
    return replace(options, algorithm=algorithm), *configs


def _task_of(arguments: Sequence[str]) -> str | None:
    return next((argument for argument in arguments if argument in TASKS), None)


def _parse_with_task(program: str, options: type, arguments: Sequence[str], **parts: Any) -> Any:
    """The options, those of the task that they name, and the other parts, all as flags beside each other."""
    task = _task_of(arguments)
    parts = ({"task": TASKS[task].config} if task else {}) | parts
    fields: list[Any] = [("general", options), *((name, type(config), config) for name, config in parts.items())]
    parsed: Any = tyro.cli(
        make_dataclass("Options", fields, frozen=True),
        prog=program,
        description=options.__doc__,
        args=list(arguments),
        config=(tyro.conf.OmitArgPrefixes,),
    )
    if parsed.general.task is not None and parsed.general.task not in TASKS:
        raise unknown_name("task", parsed.general.task, TASKS)
    return parsed.general, *(getattr(parsed, name, None) for name in {"task": None, **parts})


def _value_of(flag: str, arguments: Sequence[str]) -> str | None:
    for i, argument in enumerate(arguments):
        if argument.startswith(f"{flag}="):
            return argument.removeprefix(f"{flag}=")
        if argument == flag and i + 1 < len(arguments):
            return arguments[i + 1]
    return None


def _show(result: Run) -> None:
    """The last metrics, and the ends of the global front."""
    last = {name: column[-1] for name, column in result.metrics.items()}
    out.print(f"\n{last['evaluations']:.0f} evaluations in {last['seconds']:.1f} s", highlight=False)
    table = Table(box=SIMPLE_HEAD)
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name in ("moqd_score", "global_hypervolume", "coverage", "num_solutions", "max_sum_scores"):
        table.add_row(name, f"{last[name]:.5g}")
    out.print(table)

    best = global_front(result.archive)
    out.print(f"the global front has {len(best)} solutions; its ends:", highlight=False)
    table = Table(box=SIMPLE_HEAD)
    table.add_column("best in")
    for name in result.task.objective_names:
        table.add_column(name, justify="right")
    for i, name in enumerate(result.task.objective_names):
        solution = best[np.argmax(best[:, i])] * result.task.direction
        table.add_row(name, *(f"{value:.4g}" for value in solution))
    out.print(table)
    if last["failed_evaluations"]:
        out.print(f"{last['failed_evaluations']:.0f} evaluations failed and are not in the archive")


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


def tasks(arguments: Sequence[str]) -> None:
    """List the tasks, or look at one."""
    options, config = _parse_with_task("moqd tasks", TasksOptions, arguments)
    use_devices()
    if options.task is None:
        if options.sample is not None:
            raise InputError("--sample needs a task: moqd tasks hopper-2 --sample 256.")
        for name in TASKS:
            _describe_task(name, make_task(name))
    else:
        task = make_task(options.task, **_task_options(options, config))
        _describe_task(options.task, task)
        if options.sample is not None:
            _sample(task, options.sample, options.seed)


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
    key_init, key_evaluate = jax.random.split(jax.random.key(seed))
    with out.status(f"evaluating {number} random solutions"):
        genotype = jax.jit(task.init_genotype, static_argnums=1)(key_init, number)
        evaluate = lambda key, genotype: validated(task, task.evaluate_fitness(key, genotype))  # noqa: E731
        evaluation = (compiled(evaluate, fused=task.fused) if task.traceable else evaluate)(key_evaluate, genotype)
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
        table.add_row(name, *numbers, "" if reference is None else f"{reference:g}", below)
    out.print(f"{len(fitness)} random solutions, seed {seed} ({number - len(fitness)} more failed)", highlight=False)
    out.print(table)
    if task.reference_point is not None:
        reference_point = np.asarray(task.reference_point) * task.direction
        anywhere = np.mean(np.any(fitness <= reference_point, axis=1))
        out.print(
            f"{anywhere:.1%} are below the reference point in some objective: they add no hypervolume.", highlight=False
        )


def algorithms(arguments: Sequence[str]) -> None:
    """List the algorithms."""
    _no_arguments("algorithms", arguments)
    for name, entry in ALGORITHMS.items():
        _describe(name, entry.summary, options=_options(entry.config))


def _options(config: Any) -> str:
    return ", ".join(f"{field.name}={getattr(config, field.name)}" for field in fields(config))


def _describe(name: str, summary: str, **details: str) -> None:
    out.print(f"[bold]{name}[/]  {summary}", highlight=False)
    table = Table.grid(padding=(0, 2))
    for label, text in details.items():
        table.add_row("", f"[dim]{label}[/]", text)
    out.print(table, highlight=False)
    out.print()


class Command(NamedTuple):
    call: Callable[[Sequence[str]], None]
    summary: str


COMMANDS = {
    "train": Command(train, "run an algorithm on a task: moqd train arm-2"),
    "tasks": Command(tasks, "list the tasks, or look at one: moqd tasks hopper-2 --sample 256"),
    "algorithms": Command(algorithms, "list the algorithms"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; what the user can mend is said in one sentence, with exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    warnings.showwarning = lambda message, *_: err.print(f"[yellow]note:[/] {message}")
    try:
        if not arguments or arguments[0] in ("-h", "--help"):
            _overview()
        elif arguments[0] not in COMMANDS:
            raise unknown_name("command", arguments[0], COMMANDS)
        else:
            COMMANDS[arguments[0]].call(arguments[1:])
    except (InputError, EvaluationError, DivergenceError) as error:
        err.print(f"[red]moqd:[/] {error}", highlight=False)
        return 2
    except KeyboardInterrupt:
        err.print("[yellow]stopped.[/] What was found so far is in the folder of the run.")
        return 130
    return 0


def _overview() -> None:
    out.print("[bold]moqd[/]: many different good solutions, each in many trade-offs\n")
    for name, command in COMMANDS.items():
        out.print(f"  [bold]moqd {name:<12}[/]{command.summary}")
    out.print("\n[bold]moqd COMMAND --help[/] explains a command.")


def _no_arguments(command: str, arguments: Sequence[str]) -> None:
    if arguments and arguments[0] in ("-h", "--help"):
        out.print(f"moqd {command}: {COMMANDS[command].summary}")
        raise SystemExit(0)
    if arguments:
        raise InputError(f"moqd {command} takes no arguments, but got {' '.join(arguments)!r}.")
