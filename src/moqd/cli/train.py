"""The command `moqd train`: a run of an algorithm on a task."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console

from moqd.algorithms import ALGORITHMS, make_algorithm
from moqd.cli.own import OwnOptions, named_algorithm, named_task
from moqd.cli.parser import Line
from moqd.cli.watch import devices_of, watch
from moqd.core.devices import use_devices
from moqd.io.errors import InputError, known_name
from moqd.io.options import overridden, restored
from moqd.runs.compilation import use_cache
from moqd.runs.folder import CONFIG, INITIAL, read_config
from moqd.runs.start import run
from moqd.study.plan import defaults_for
from moqd.tasks import TASKS, make_task


@dataclass(frozen=True)
class TrainOptions:
    """Runs an algorithm on a task and writes what it found; `moqd resume` continues a run, however it was stopped."""

    task: str | None = field(default=None, metadata={"positional": "TASK"})
    """The task to solve: one that `moqd tasks` lists, or one of your own, as --task FILE.py:NAME."""
    algorithm: str | None = None
    """The algorithm: one that `moqd algorithms` lists, or one of your own, as FILE.py:NAME. If not given: mome-p2c
    where solutions are policies (robots, environments), mome for other tasks. Its own options are listed below."""
    preset: Literal["quick", "small", "paper"] | None = None
    """Settings for all that is not given: the paper's own; small ones for minutes on a laptop (episodes of 250 steps,
    batches of 64, 9,600 evaluations); quick ones for a first look (the same with 3,200 evaluations). If not given:
    small where solutions are policies; for other tasks the algorithm's defaults and 1000 iterations."""
    seed: int = 0
    """Seed of all randomness: the same seed on the same machine gives the same archive, bit for bit."""
    iterations: int | None = None
    """How many batches to evaluate after the first, random one. If this and evaluations are not given: the preset's."""
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


SETTINGS = ("seed", "log_every", "checkpoint_minutes", "snapshot_every")
"""Options that are settings of `run` as they are."""


def main(arguments: Sequence[str], out: Console) -> int:
    plan = plan_of(arguments, out)
    options = plan.options
    use_devices(options.devices)
    use_cache()
    of_task = {"resamples": plan.resamples} | asdict(plan.task) | {"reference_point": options.reference_point}
    task = make_task(plan.task_name, **of_task)
    algorithm = make_algorithm(plan.algorithm_name, task, **asdict(plan.algorithm))
    folder = options.out or Path("runs") / f"{plan.task_name}-{plan.algorithm_name}-{options.seed}"
    given = {name: getattr(options, name) for name in ("iterations", "evaluations")}
    budget = plan.budget if set(given.values()) == {None} else given
    settings = {name: getattr(options, name) for name in SETTINGS} | budget
    start = partial(run, algorithm, task, out=folder, init_from=plan.init_from, **settings)
    return watch(out, folder, options.tensorboard, start)


class Plan(NamedTuple):
    """What `moqd train` was asked for, with all that was not said filled in."""

    options: TrainOptions
    task_name: str
    task: Any
    algorithm_name: str
    algorithm: Any
    budget: dict[str, int]
    """Where neither iterations nor evaluations are given."""
    init_from: Any = None
    resamples: int | None = None
    """Of the run to repeat, where they are not an option of the task's own."""


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
    algorithm = given.get("algorithm") or ("mome-p2c" if TASKS[task].policies else "mome")
    default = defaults_for(task, algorithm, given.get("preset"), {})
    options = TrainOptions(task=task, algorithm=algorithm, log_every=default.log_every)
    return Plan(options, task, default.task, algorithm, default.algorithm, default.budget)


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
        algorithm_config = restored(of_algorithm.config, config.algorithm.options, f"algorithm {algorithm!r}")
    else:
        algorithm_config = of_algorithm.config_for(of_task.build(task_config))
    general = TrainOptions(
        task=name,
        algorithm=algorithm,
        reference_point=None if point is None else tuple(point),
        devices=devices_of(config),
        **{setting: getattr(config, setting) for setting in SETTINGS},
    )
    init_from = path.parent / INITIAL if config.initial_solutions else None
    budget = {"iterations": config.iterations}
    return Plan(general, name, task_config, algorithm, algorithm_config, budget, init_from, resamples)
