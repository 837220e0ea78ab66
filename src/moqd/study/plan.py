"""A study: tasks x algorithms x seeds under one preset. Here is what it consists of; `execute.py` makes its runs.

A run is known by a hash of its settings, so that studies which need the same run share it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from moqd.algorithms import ABLATIONS, ALGORITHMS, batch_fields
from moqd.io.errors import InputError, known_name
from moqd.io.options import checked_seed, overridden, whole_number
from moqd.runs.config import (
    MOST_ITERATIONS,
    AlgorithmConfig,
    RunConfig,
    TaskConfig,
    usual_log_every,
)
from moqd.runs.presets import iterations_for, preset_for
from moqd.tasks import TASKS, make_task

DEFAULT_ITERATIONS, LOG_EVERY = 1000, 10
"""Where no preset says."""
MOST_RUNS = 10_000
"""Of a study; the file that lists them must stay one that can be read."""
REFERENCE = "mome-p2c"
"""The algorithm that all others are compared with, if it is in the study."""

COUNTS = {"iterations": 0, "evaluations": 0, "env_steps": 1, "log_every": 1, "snapshot_every": 1}
"""Settings that are whole numbers, and the least that each may be."""
BUDGETS = ("iterations", "evaluations", "minutes", "env_steps")

PAPER_TASKS = ("ant-2", "ant-3", "halfcheetah-2", "hopper-2", "hopper-3", "walker-2")
BASELINES = (REFERENCE, "mome-pgx", "mome", "pga-me", "nsga2", "nsga2-small", "spea2", "spea2-small")
PAPER_ABLATIONS = (REFERENCE, "mome-pgx", *(f"{REFERENCE}-{name}" for name in ABLATIONS))
ARCHIVE_SIZES = (REFERENCE, "pga-me", "pga-me-128")
GROUPS = {"baselines": BASELINES, "ablations": PAPER_ABLATIONS, "pga": ARCHIVE_SIZES}
"""Algorithms that the paper shows in one figure."""
BEYOND = ("mome-p2c-plus", "mome-dcrl", "dcrl-me", "dcg-me", "pg-morl", "mcx", "move")
"""Systems that the paper names without comparing with them, and moqd's own."""
_EVERYTHING = tuple(dict.fromkeys([*BASELINES, *PAPER_ABLATIONS, *ARCHIVE_SIZES]))
_PARTS = {
    "-main": BASELINES,
    "-ablations": PAPER_ABLATIONS,
    "-pga": ARCHIVE_SIZES,
    "": _EVERYTHING,
    "-extended": (*BASELINES, *BEYOND),
}
_SEEDS = {"paper": 20, "small": 6}
"""With 6 seeds a comparison of 8 algorithms can be significant, with 5 it cannot."""
STUDIES = {
    f"{preset}{part}": (preset, algorithms, seeds)
    for preset, seeds in _SEEDS.items()
    for part, algorithms in _PARTS.items()
}
"""Those with a name: preset, algorithms and number of seeds; all on the six tasks."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study."""

    algorithm: str
    """Its label in the study: the name of an algorithm, or of a variant of one."""
    config: RunConfig

    @property
    def task(self) -> str:
        return self.config.task.name

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def key(self) -> str:
        """The name of its folder, which says what it is and tells it from all others."""
        return f"{self.task}-{self.config.algorithm.name}-{self.seed}-{self.config.digest}"

    def __str__(self) -> str:
        return f"{self.algorithm} on {self.task}, seed {self.seed}"


@dataclass(frozen=True)
class Study:
    """What is to be run and compared."""

    name: str
    tasks: tuple[str, ...]
    algorithms: tuple[str, ...]
    """Their labels, in the order of tables and figures."""
    seeds: tuple[int, ...]
    """Of all tasks together; a task may have only some of them."""
    reference: str
    """The label of the algorithm that the others are compared with."""
    runs: tuple[PlannedRun, ...]
    """Seed by seed, so that a study that is stopped early has some of everything."""

    @property
    def others(self) -> tuple[str, ...]:
        """The algorithms that the reference is compared with."""
        return tuple(label for label in self.algorithms if label != self.reference)

    def seeds_of(self, task: str) -> tuple[int, ...]:
        found = {run.seed for run in self.runs if run.task == task}
        return tuple(seed for seed in self.seeds if seed in found)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The algorithms that share a figure: as in the paper where they are its own, all in one otherwise."""
        found = {tuple(one for one in self.algorithms if one in GROUPS[name]): name for name in reversed(GROUPS)}
        sets = [set(group) for group in found if len(group) > 1]
        whole = {
            name: group
            for group, name in reversed(found.items())
            if len(group) > 1 and not any(set(group) < other for other in sets)
        }
        return whole if set().union(*whole.values()) == set(self.algorithms) else {"algorithms": self.algorithms}


class Variant(NamedTuple):
    """An algorithm of a study: one of moqd's, with other options if any are given."""

    base: str
    options: Mapping[str, Any]


def make_study(
    name: str,
    *,
    tasks: Mapping[str, Mapping[str, Any]],
    algorithms: Mapping[str, Variant],
    seeds: Sequence[int],
    seeds_of: Mapping[str, Sequence[int]] | None = None,
    preset: str | None = None,
    iterations: int | None = None,
    evaluations: int | None = None,
    minutes: float | None = None,
    env_steps: int | None = None,
    log_every: int | None = None,
    snapshot_every: int | None = None,
    reference: str | None = None,
) -> Study:
    """The study of tasks (with their options) x algorithms (by label) x seeds; raises for the first mistake.

    `seeds_of` has the tasks with other seeds than `seeds`.
    `log_every` is in iterations of MOME-P2C: with a preset, other algorithms log after as many evaluations.
    If none of `iterations`, `evaluations`, `minutes` and `env_steps` is given, the preset says; without a preset, the
    robots are run as `small` and other tasks with their defaults. Runs that their time or their steps end log more and
    more rarely.
    """
    seeds_of = seeds_of or {}
    for what, listed in (("tasks", tasks), ("algorithms", algorithms), ("seeds", seeds)):
        check_some(what, listed)
    for task, own in seeds_of.items():
        known_name("task", task, tasks, of="seeds_of")
        check_some(f"seeds of {task}", own)
    of_task = {task: unique("seed", seeds_of.get(task, seeds)) for task in tasks}
    check_size(len(algorithms) * sum(map(len, of_task.values())))
    every_seed = tuple(dict.fromkeys(checked_seed(seed) for own in of_task.values() for seed in own))
    if reference is not None:
        known_name("reference", reference, algorithms)
    check_budget({"iterations": iterations, "evaluations": evaluations, "minutes": minutes, "env_steps": env_steps})
    given = dict(zip(COUNTS, (iterations, evaluations, env_steps, log_every, snapshot_every), strict=True))
    counts = {what: whole_number(what, count, least=COUNTS[what]) for what, count in given.items() if count is not None}
    budget = {unit: number for unit, number in counts.items() if unit in ("iterations", "evaluations")}

    def config_of(task: str, label: str) -> RunConfig:
        """Of an algorithm on a task, whatever the seed."""
        base, options = algorithms[label]
        default = defaults_for(task, known_name("algorithm", base, ALGORITHMS), preset, tasks[task])
        algorithm = overridden(default.algorithm, options, f"algorithm {label!r}")
        planned = TaskConfig.planned(make_task(task, **{**vars(default.task), **tasks[task]}))
        if minutes is not None or env_steps is not None:
            if env_steps is not None and not TASKS[task].policies:
                raise InputError(f"env_steps is {env_steps}, but task {task!r} counts no steps; give evaluations.")
            return RunConfig(
                planned,
                AlgorithmConfig.of(base, algorithm),
                seed=0,
                iterations=MOST_ITERATIONS,
                minutes=None if minutes is None else float(minutes),
                env_steps=counts.get("env_steps"),
                log_every=log_every,
                snapshot_every=snapshot_every,
            )
        batch = sum(getattr(algorithm, name) for name in batch_fields(algorithm))
        ((unit, number),) = (budget or default.budget).items()
        every = default.log_every
        length = number if unit == "iterations" else iterations_for(number, max(1, batch))
        if number and not length:
            raise InputError(f"evaluations is {number}, but {label!r} makes {batch} per iteration; give at least that.")
        # A preset's own runs are known by its log_every; those of another length are logged as such runs are.
        often = usual_log_every(length, every) if budget else every
        return RunConfig(
            planned,
            AlgorithmConfig.of(base, algorithm),
            seed=0,
            iterations=length,
            log_every=often if log_every is None else max(1, round(log_every * every / LOG_EVERY)),
            snapshot_every=snapshot_every,
        )

    configs = {(task, label): config_of(task, label) for task, label in product(tasks, algorithms)}
    seen: dict[str, str] = {}
    for (_, label), config in configs.items():
        check_different(label, config, seen)
    runs = [
        PlannedRun(label, replace(config, seed=seed))
        for seed in every_seed
        for (task, label), config in configs.items()
        if seed in of_task[task]
    ]
    first = REFERENCE if REFERENCE in algorithms else next(iter(algorithms))
    return Study(name, tuple(tasks), tuple(algorithms), every_seed, reference or first, tuple(runs))


def named_study(
    name: str,
    *,
    tasks: Sequence[str] | None = None,
    algorithms: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    **others: Any,
) -> Study:
    """One of the studies that have a name, or a part of it, or with other settings (those of `make_study`)."""
    preset, usual, number = STUDIES[known_name("study", name, STUDIES)]
    return make_study(
        name,
        tasks={task: {} for task in unique("task", tasks or PAPER_TASKS)},
        algorithms={label: Variant(label, {}) for label in unique("algorithm", algorithms or usual)},
        seeds=unique("seed", range(number) if seeds is None else seeds),
        **{"preset": preset, **others},
    )


def with_seeds(study: Study, seeds: Sequence[int]) -> Study:
    """The same study with other seeds, the same for all tasks."""
    check_size(len(study.tasks) * len(study.algorithms) * len(seeds))
    configs = {(run.task, run.algorithm): run.config for run in study.runs}
    grid = product(seeds, study.tasks, study.algorithms)
    runs = tuple(PlannedRun(label, replace(configs[task, label], seed=seed)) for seed, task, label in grid)
    return replace(study, seeds=tuple(seeds), runs=runs)


def check_some(what: str, given: Collection[Any]) -> None:
    if not given:
        raise InputError(f"there are no {what}; give at least one.")


def check_size(number: int) -> None:
    if number > MOST_RUNS:
        raise InputError(f"these are {number} runs; give fewer seeds, for at most {MOST_RUNS} runs.")


def check_budget(given: Mapping[str, Any]) -> None:
    """Of iterations, evaluations, minutes and environment steps, at most one may be given."""
    units = [unit for unit in BUDGETS if given.get(unit) is not None]
    if len(units) > 1:
        raise InputError(f"{units[0]} and {units[1]} are both given; give one of the two and not the other.")
    minutes = given.get("minutes")
    if minutes is not None and not (isinstance(minutes, int | float) and 0 < minutes < float("inf")):
        raise InputError(f"minutes is {minutes!r}; give a number above 0.")


def unique(what: str, values: Sequence[Any]) -> list[Any]:
    """The values, of which none may be given twice."""
    for i, value in enumerate(values):
        check_new(what, value, values[:i])
    return list(values)


def check_new(what: str, value: Any, others: Collection[Any]) -> None:
    if value in others:
        raise InputError(f"{what} {value!r} is given twice, which would be the same runs; give it once.")


def check_different(label: str, config: RunConfig, seen: dict[str, str]) -> None:
    """`seen` has the labels of the configs before, by what tells these apart."""
    other = seen.setdefault(config.digest, label)
    if other != label:
        raise InputError(
            f"algorithm {label!r} has the same settings as {other!r}, which would be the same runs; leave one out."
        )


class Defaults(NamedTuple):
    """Settings of an algorithm on a task where nothing else is given."""

    task: Any
    algorithm: Any
    budget: dict[str, int]
    """Of iterations or of evaluations."""
    log_every: int


def defaults_for(task: str, algorithm: str, preset: str | None, task_options: Mapping[str, Any]) -> Defaults:
    """By the preset; without one, the robots are run as `small` and other tasks with their defaults."""
    of_task, of_algorithm = TASKS[known_name("task", task, TASKS)], ALGORITHMS[algorithm]
    preset = preset or ("small" if of_task.policies else None)
    if preset is None:
        config = of_algorithm.config_for(make_task(task, **{**vars(of_task.config), **task_options}))
        return Defaults(of_task.config, config, {"iterations": DEFAULT_ITERATIONS}, LOG_EVERY)
    chosen = preset_for(preset, task, algorithm)
    task_config, config = replace(of_task.config, **chosen.task), replace(of_algorithm.config, **chosen.algorithm)
    return Defaults(task_config, config, {"evaluations": chosen.evaluations}, chosen.log_every)
