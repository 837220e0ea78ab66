"""The command `moqd train`: a run of an algorithm on a task."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console

from moqd.algorithms import ALGORITHMS, FOR_FUNCTIONS, FOR_POLICIES, batch_fields
from moqd.cli.own import OwnOptions, named_algorithm, named_task
from moqd.cli.parser import Line
from moqd.cli.watch import devices_of, watch
from moqd.core.devices import use_devices
from moqd.io.errors import InputError, known_name
from moqd.io.options import overridden, restored
from moqd.runs.compilation import use_cache
from moqd.runs.config import LIMITS, TaskConfig, usual_log_every
from moqd.runs.folder import CONFIG, INITIAL, read_config
from moqd.runs.presets import iterations_for
from moqd.runs.start import run
from moqd.study.plan import defaults_for
from moqd.tasks import TASKS, make_task


@dataclass(frozen=True)
class TrainOptions:
    """Runs an algorithm on a task and writes what it found; `moqd resume` continues a run, however it was stopped."""

    task: str | None = field(default=None, metadata={"positional": "TASK"})
    """The task to solve: one that `moqd tasks` lists, or one of your own, as --task FILE.py:NAME."""
    algorithm: str | None = None
    """The algorithm: one that `moqd algorithms` lists, or one of your own, as FILE.py:NAME. If not given:
    mome-p2c-plus where solutions are policies (robots, environments), mome for other tasks. Its own options are listed
    below."""
    preset: Literal["quick", "small", "paper"] | None = None
    """Settings for all that is not given: the paper's own; small ones for minutes on a laptop (episodes of 250 steps,
    batches of 64, 9,600 evaluations); quick ones for a first look (the same with 3,200 evaluations). If not given:
    small where solutions are policies; for other tasks the algorithm's defaults and 1000 iterations."""
    seed: int | tuple[int, ...] = 0
    """Seed of all randomness: the same seed on the same machine gives the same archive, bit for bit. With several,
    there is a run for each, one after the other."""
    iterations: int | None = None
    """How many batches to evaluate after the first, random one. The run ends at the first limit that it reaches; if
    none of iterations, evaluations, minutes, env_steps and patience is given: the preset's."""
    evaluations: int | None = None
    """The budget in evaluations instead, in whole batches; the first, random one comes on top."""
    minutes: float | None = None
    """The time that the run may take, compiling included: it ends with the iteration in which the time is over."""
    env_steps: int | None = None
    """Steps of the environment, those of the first batch included: the run ends with the iteration that makes them."""
    patience: int | None = None
    """Ends the run when the MOQD score has not improved for so many iterations; it is looked at in every row of
    metrics."""
    out: Path | None = None
    """The folder to write to, which must be new; with several seeds, that of their folders seed-0 and so on. If not
    given: runs/TASK-ALGORITHM-SEED."""
    config: Path | None = None
    """The config.json of a run to repeat: its settings are the defaults for all that is not given."""
    init_from: Path | None = None
    """A run whose archive this one begins with: its solutions are evaluated before the first, random batch."""
    start: Path | None = None
    """A CSV file with designs to evaluate first, one in a row, below a header with the names of the parameters."""
    log_every: int | None = None
    """Iterations between two rows of metrics. If not given: the preset's, or 10; a tenth of the run if that is less;
    more and more where only minutes, steps or patience limit the run."""
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


BUDGETS = ("evaluations", *LIMITS)
SETTINGS = ("log_every", "checkpoint_minutes", "snapshot_every")
"""Options that are settings of `run` as they are."""


def main(arguments: Sequence[str], out: Console) -> int:
    plan = plan_of(arguments, out)
    options = plan.options
    use_devices(options.devices)
    use_cache()
    of_task = {"resamples": plan.resamples} | asdict(plan.task) | {"reference_point": options.reference_point}
    task = make_task(plan.task_name, **of_task)
    task = task if plan.again is None else plan.again.with_bounds(task)
    settings = {name: getattr(options, name) for name in SETTINGS} | asdict(plan.algorithm)
    settings |= _limits(plan) | {"start": options.start, "init_from": plan.init_from}
    seeds = options.seed if isinstance(options.seed, tuple) else (options.seed,)
    for seed in seeds:
        folder = options.out or Path("runs") / f"{plan.task_name}-{plan.algorithm_name}-{seed}"
        folder = folder / f"seed-{seed}" if options.out and len(seeds) > 1 else folder
        start = partial(run, plan.algorithm_name, task, out=folder, seed=seed, seeds=None, **settings)
        if failed := watch(out, folder, options.tensorboard, start):
            return failed
        task = read_config(folder).task.with_bounds(task)  # if they were learned, they are for all seeds
    return 0


def _limits(plan: "Plan") -> dict[str, Any]:
    """When the run ends, and how often it logs: a short one that was asked for more often than its preset says."""
    given = {name: getattr(plan.options, name) for name in BUDGETS}
    if set(given.values()) == {None}:
        return plan.budget | ({} if plan.options.log_every is not None else {"log_every": plan.log_every})
    iterations, batch = given["iterations"], sum(getattr(plan.algorithm, name) for name in batch_fields(plan.algorithm))
    if given["evaluations"] is not None:
        iterations = iterations_for(given["evaluations"], max(1, batch))
    if plan.options.log_every is None and iterations is not None:
        given["log_every"] = usual_log_every(iterations, plan.log_every or 10)
    return given


class Plan(NamedTuple):
    """What `moqd train` was asked for, with all that was not said filled in."""

    options: TrainOptions
    task_name: str
    task: Any
    algorithm_name: str
    algorithm: Any
    budget: dict[str, Any]
    """Where no limit is given."""
    log_every: int | None = None
    """By the preset."""
    init_from: Any = None
    resamples: int | None = None
    """Of the run to repeat, where they are not an option of the task's own."""
    again: TaskConfig | None = None
    """The task of the run to repeat, whose feature bounds it may have learned."""


def plan_of(arguments: Sequence[str], out: Console) -> Plan:
    """The options of the command, of the task and of the algorithm, with their defaults filled in."""
    line = Line("moqd train", arguments)
    algorithm_name = named_algorithm(line)
    line.match(TrainOptions, OwnOptions, others={**TASKS, **ALGORITHMS})
    given = line.values(TrainOptions) | {"algorithm": algorithm_name}
    named = named_task(line, given.get("task"))
    if given.get("config") is not None:
        defaults = _defaults_again(given["config"], given, named)
    elif named is None and given.get("preset") != "quick" and not line.help:
        raise InputError("moqd train needs a TASK; moqd tasks lists them: moqd train hopper-2.")
    else:
        defaults = _defaults(given, named or "hopper-2")
    options, _, task, algorithm = line.build(out, defaults.options, OwnOptions, defaults.task, defaults.algorithm)
    init_from = options.init_from if options.init_from is not None else defaults.init_from
    return defaults._replace(options=options, task=task, algorithm=algorithm, init_from=init_from)


def _defaults(given: Mapping[str, Any], task: str) -> Plan:
    """By the preset."""
    algorithm = given.get("algorithm") or (FOR_POLICIES if TASKS[task].policies else FOR_FUNCTIONS)
    default = defaults_for(task, algorithm, given.get("preset"), {})
    options = TrainOptions(task=task, algorithm=algorithm)
    return Plan(options, task, default.task, algorithm, default.algorithm, default.budget, default.log_every)


def _defaults_again(path: Path, given: Mapping[str, Any], named: str | None) -> Plan:
    """By the config.json of another run."""
    path = path / CONFIG if path.is_dir() else path
    if path.name != CONFIG:
        raise InputError(f"--config is {str(path)!r}; give the path of a run's {CONFIG}.")
    if given.get("preset") is not None:
        raise InputError("--config and --preset are mutually exclusive; give one of the two.")
    config = read_config(path.parent)
    options = dict(config.task.options or {})
    name = options.pop("name", None)
    if name not in TASKS:
        raise InputError(f"{str(path)!r} is of your own task {config.task.name!r}; repeat it in Python, with moqd.run.")
    if named not in (None, name):
        raise InputError(f"--config is of the task {name!r}; leave the TASK out, or name that one.")
    algorithm = known_name("algorithm", given.get("algorithm") or config.algorithm.name, ALGORITHMS, of=str(path))
    of_task, of_algorithm = TASKS[name], ALGORITHMS[algorithm]
    point = options.pop("reference_point", None)
    resamples = None if hasattr(of_task.config, "resamples") else options.pop("resamples", None)
    task_config = overridden(of_task.config, options, f"task {name!r}")
    if algorithm == config.algorithm.name:
        measured = {} if config.learning_cost is None else {"learning_cost": config.learning_cost}
        owner = f"algorithm {algorithm!r}"
        algorithm_config = restored(of_algorithm.config, {**config.algorithm.options, **measured}, owner)
    else:
        algorithm_config = of_algorithm.config_for(of_task.build(task_config))
    general = TrainOptions(
        task=name,
        algorithm=algorithm,
        reference_point=None if point is None else tuple(point),
        devices=devices_of(config),
        **{setting: getattr(config, setting) for setting in ("seed", *SETTINGS)},
    )
    init_from = path.parent / INITIAL if config.initial_solutions else None
    budget: dict[str, Any] = {"iterations": config.iterations}
    if not config.of_iterations:  # it has not ended
        budget = {name: getattr(config, name) for name in ("minutes", "env_steps", "patience")}
    return Plan(
        general, name, task_config, algorithm, algorithm_config, budget, None, init_from, resamples, config.task
    )
