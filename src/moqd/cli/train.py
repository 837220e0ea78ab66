"""The command `moqd train`: a run of an algorithm on a task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console

from moqd.algorithms import ALGORITHMS, make_algorithm
from moqd.cli.own import OwnOptions, named_algorithm, named_task
from moqd.cli.parser import Line, values_of
from moqd.cli.watch import devices_of, watch
from moqd.core.devices import use_devices
from moqd.io.errors import InputError, unknown_name
from moqd.io.options import overridden, restored
from moqd.runs.compilation import use_cache
from moqd.runs.folder import CONFIG, INITIAL, read_config
from moqd.runs.presets import preset_for
from moqd.runs.start import run
from moqd.study.plan import DEFAULT_ITERATIONS
from moqd.tasks import TASKS, make_task


@dataclass(frozen=True)
class TrainOptions:
    """Runs an algorithm on a task and writes what it found, so that nothing is lost: `moqd resume` continues a run that
    was stopped, however that came about."""

    task: str | None = field(default=None, metadata={"positional": "TASK"})
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
    """Seed of all randomness: the same seed on the same machine gives the same archive, bit for bit."""
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


def main(arguments: Sequence[str], out: Console) -> int:
    plan = plan_of(arguments, out)
    options, algorithm_name = plan.options, plan.algorithm_name
    use_devices(options.devices)
    use_cache()
    of_task = {"resamples": plan.resamples} | values_of(plan.task) | {"reference_point": options.reference_point}
    task = make_task(plan.task_name, **of_task)
    algorithm = make_algorithm(algorithm_name, task, **values_of(plan.algorithm))
    folder = options.out or Path("runs") / f"{plan.task_name}-{algorithm_name}-{options.seed}"
    budget = {"iterations": options.iterations, "evaluations": options.evaluations}
    return watch(
        out,
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
    suited, usual = ("mome-p2c", "small") if TASKS[task].policies else ("mome", None)
    algorithm, preset = given.get("algorithm") or suited, given.get("preset") or usual
    entry = TASKS[task], ALGORITHMS[algorithm]
    if preset is None:
        plain = TrainOptions(task=task, algorithm=algorithm)
        budget = {"iterations": DEFAULT_ITERATIONS}
        suited_config = entry[1].config_for(entry[0].build(entry[0].config))
        return Plan(plain, task, entry[0].config, algorithm, suited_config, budget, None)
    chosen = preset_for(preset, task, algorithm)
    return Plan(
        TrainOptions(task=task, algorithm=algorithm, log_every=chosen.log_every),
        task,
        replace(entry[0].config, **chosen.task),
        algorithm,
        replace(entry[1].config, **chosen.algorithm),
        {"evaluations": chosen.evaluations},
        None,
    )


def _defaults_again(path: Path, given: Mapping[str, Any], named: str | None) -> Plan:
    """By the config.json of another run."""
    path = path / CONFIG if path.is_dir() else path
    if path.name != CONFIG:
        raise InputError(f"--config is {str(path)!r}; give the path of a run's {CONFIG}.")
    if given.get("preset") is not None:
        raise InputError("--config and --preset are mutually exclusive; give one of the two.")
    config = read_config(path.parent)
    of_task, of_algorithm = dict(config.task.options or {}), dict(config.algorithm.options)
    name = of_task.pop("name", None)
    if name not in TASKS:
        raise InputError(
            f"{str(path)!r} is of the task {config.task.name!r}, which is not one of moqd's; repeat it in "
            "Python, with moqd.run."
        )
    if named not in (None, name):
        raise InputError(f"--config is of the task {name!r}; leave the TASK out, or name that one.")
    recorded = config.algorithm.name
    algorithm = given.get("algorithm") or recorded
    if algorithm not in ALGORITHMS:
        raise unknown_name("algorithm", algorithm, ALGORITHMS, of=str(path))
    entry = TASKS[name], ALGORITHMS[algorithm]
    reference_point = of_task.pop("reference_point", None)
    resamples = None if hasattr(entry[0].config, "resamples") else of_task.pop("resamples", None)
    general = TrainOptions(
        task=name,
        algorithm=algorithm,
        seed=config.seed,
        log_every=config.log_every,
        checkpoint_minutes=config.checkpoint_minutes,
        snapshot_every=config.snapshot_every,
        reference_point=None if reference_point is None else tuple(reference_point),
        devices=devices_of(config),
    )
    return Plan(
        general,
        name,
        overridden(entry[0].config, of_task, f"task {name!r}"),
        algorithm,
        restored(entry[1].config, of_algorithm, f"algorithm {algorithm!r}")
        if algorithm == recorded
        else entry[1].config_for(entry[0].build(overridden(entry[0].config, of_task, f"task {name!r}"))),
        {"iterations": config.iterations},
        path.parent / INITIAL if config.initial_solutions else None,
        resamples,
    )
