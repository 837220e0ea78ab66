"""A study: tasks x algorithms x seeds under one preset. Here is what it consists of; `conduct.py` carries it out.

A run is known by a hash of its settings, so that studies which need the same run share it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from moqd.algorithms import ABLATIONS, ALGORITHMS, batch_fields
from moqd.io.errors import InputError, unknown_name
from moqd.io.options import MOST_SEED, is_count, overridden, recorded
from moqd.runs.presets import iterations_for, preset_for
from moqd.tasks import TASKS, make_task

DEFAULT_ITERATIONS = 1000
"""Where no preset says."""
MOST_RUNS = 10_000
"""Of a study; the file that lists them must stay one that can be read."""
REFERENCE = "mome-p2c"
"""The algorithm that all others are compared with, if it is in the study."""

PAPER_TASKS = ("ant-2", "ant-3", "halfcheetah-2", "hopper-2", "hopper-3", "walker-2")
BASELINES = (REFERENCE, "mome-pgx", "mome", "pga-me", "nsga2", "nsga2-small", "spea2", "spea2-small")
PAPER_ABLATIONS = (REFERENCE, "mome-pgx", *(f"{REFERENCE}-{name.lower()}" for name in ABLATIONS))
ARCHIVE_SIZES = (REFERENCE, "pga-me", "pga-me-128")
GROUPS = {"baselines": BASELINES, "ablations": PAPER_ABLATIONS, "pga": ARCHIVE_SIZES}
"""Algorithms that the paper shows in one figure."""
_EVERYTHING = tuple(dict.fromkeys([*BASELINES, *PAPER_ABLATIONS, *ARCHIVE_SIZES]))
_PARTS = {"-main": BASELINES, "-ablations": PAPER_ABLATIONS, "-pga": ARCHIVE_SIZES, "": _EVERYTHING}
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

    task: str
    algorithm: str
    """Its label in the study: the name of an algorithm, or of a variant of one."""
    seed: int
    settings: Mapping[str, Any]
    """All that the result depends on: task and algorithm with all of their options, seed, iterations..."""

    @property
    def key(self) -> str:
        """The name of its folder, which says what it is and tells it from all others."""
        canonical = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(canonical.encode()).hexdigest()[:12]
        return f"{self.task}-{self.settings['algorithm']['name']}-{self.seed}-{digest}"


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

    def seeds_of(self, task: str) -> tuple[int, ...]:
        found = {run.seed for run in self.runs if run.task == task}
        return tuple(seed for seed in self.seeds if seed in found)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The algorithms that share a figure: as in the paper where they are its own, all in one otherwise."""
        found = {tuple(one for one in self.algorithms if one in GROUPS[name]): name for name in reversed(GROUPS)}
        shown = {name: group for group, name in reversed(found.items()) if len(group) > 1}
        whole = {
            name: group for name, group in shown.items() if not any(set(group) < set(other) for other in shown.values())
        }
        covered = {one for group in whole.values() for one in group}
        return whole if covered == set(self.algorithms) else {"algorithms": self.algorithms}


@dataclass(frozen=True)
class Variant:
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
    log_every: int | None = None,
    snapshot_every: int | None = None,
    reference: str | None = None,
) -> Study:
    """The study of tasks (with their options) x algorithms (by label) x seeds; raises for the first mistake.

    `seeds_of` has the tasks with other seeds than `seeds`.
    `log_every` is in iterations of MOME-P2C: with a preset, other algorithms log after as many evaluations.
    If neither `iterations` nor `evaluations` is given, the preset says; without a preset, the robots are run as `small`
    and other tasks with their defaults.
    """
    for what, given in (("tasks", tasks), ("algorithms", algorithms), ("seeds", seeds)):
        if not given:
            raise InputError(f"study {name!r} has no {what}; give at least one.")
    for task, own in (seeds_of or {}).items():
        if task not in tasks:
            raise unknown_name("task", task, tasks, of="seeds_of")
        if not own:
            raise InputError(f"study {name!r} has no seeds for {task!r}; give at least one.")
    of_task = {task: unique("seed", (seeds_of or {}).get(task, seeds)) for task in tasks}
    _check_size(name, len(algorithms) * sum(map(len, of_task.values())))
    every_seed = tuple(dict.fromkeys(seed for own in of_task.values() for seed in own))
    for seed in every_seed:
        if not is_count(seed, 0) or seed > MOST_SEED:
            raise InputError(f"seed {seed!r} is none; give whole numbers from 0 to {MOST_SEED}.")
    if reference is not None and reference not in algorithms:
        raise unknown_name("reference", reference, algorithms)
    if iterations is not None and evaluations is not None:
        raise InputError("iterations and evaluations are both given; give one of the two and not the other.")
    for what, count in (("iterations", iterations), ("evaluations", evaluations)):
        if count is not None and not is_count(count, 0):
            raise InputError(f"{what} is {count!r}; give a whole number of at least 0.")
    for what, count in (("log_every", log_every), ("snapshot_every", snapshot_every)):
        if count is not None and not is_count(count):
            raise InputError(f"{what} is {count!r}; give a whole number of at least 1.")
    runs = [
        _planned(task, options, label, variant, seed, preset, (iterations, evaluations), log_every, snapshot_every)
        for seed in every_seed
        for task, options in tasks.items()
        if seed in of_task[task]
        for label, variant in algorithms.items()
    ]
    seen: dict[str, PlannedRun] = {}
    for run in runs:
        if run.key in seen:
            other = seen[run.key]
            raise InputError(
                f"{run.algorithm!r} on {run.task!r} with seed {run.seed} is the same run as {other.algorithm!r} with "
                f"seed {other.seed}; leave one of the two out."
            )
        seen[run.key] = run
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
    if name not in STUDIES:
        raise unknown_name("study", name, STUDIES)
    preset, usual, number = STUDIES[name]
    return make_study(
        name,
        tasks={task: {} for task in unique("task", tasks or PAPER_TASKS)},
        algorithms={label: Variant(label, {}) for label in unique("algorithm", algorithms or usual)},
        seeds=unique("seed", range(number) if seeds is None else seeds),
        **{"preset": preset, **others},
    )


def with_seeds(study: Study, seeds: Sequence[int]) -> Study:
    """The same study with other seeds, the same for all tasks."""
    _check_size(study.name, len(study.tasks) * len(study.algorithms) * len(seeds))
    example = {(run.task, run.algorithm): run for run in study.runs}
    runs = tuple(
        replace(example[of], seed=seed, settings={**example[of].settings, "seed": seed})
        for seed in seeds
        for of in product(study.tasks, study.algorithms)
    )
    return replace(study, seeds=tuple(seeds), runs=runs)


def _check_size(name: str, number: int) -> None:
    if number > MOST_RUNS:
        raise InputError(f"study {name!r} has {number} runs; give fewer seeds, for at most {MOST_RUNS} runs.")


def unique(what: str, values: Sequence[Any]) -> list[Any]:
    """The values, of which none may be given twice."""
    for i, value in enumerate(values):
        if value in values[:i]:
            raise InputError(f"{what} {value!r} is given twice, which would be the same runs; give it once.")
    return list(values)


def _planned(
    task: str,
    task_options: Mapping[str, Any],
    label: str,
    variant: Variant,
    seed: int,
    preset: str | None,
    budget: tuple[int | None, int | None],
    log_every: int | None,
    snapshot_every: int | None,
) -> PlannedRun:
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    if variant.base not in ALGORITHMS:
        raise unknown_name("algorithm", variant.base, ALGORITHMS)
    preset = preset or ("small" if TASKS[task].policies else None)
    of_task = dict(TASKS[task].config.__dict__)
    iterations, evaluations = budget
    usual = every = 10
    entry = ALGORITHMS[variant.base]
    if preset is None:
        of_algorithm = entry.config_for(make_task(task, **of_task | dict(task_options)))
    else:
        chosen = preset_for(preset, task, variant.base)
        of_task |= chosen.task
        of_algorithm = replace(entry.config, **chosen.algorithm)
        every = chosen.log_every
        if iterations is None and evaluations is None:
            evaluations = chosen.evaluations
    of_task |= task_options
    algorithm = overridden(of_algorithm, variant.options, f"algorithm {label!r}")
    batch = sum(getattr(algorithm, name) for name in batch_fields(algorithm))
    if iterations is None:
        iterations = DEFAULT_ITERATIONS if evaluations is None else iterations_for(evaluations, max(1, batch))
    settings = {
        "task": make_task(task, **of_task).options,
        "algorithm": {"name": variant.base, **recorded(algorithm)},
        "seed": int(seed),
        "iterations": iterations,
        "log_every": every if log_every is None else max(1, round(log_every * every / usual)),
        "snapshot_every": snapshot_every,
    }
    return PlannedRun(task, label, int(seed), json.loads(json.dumps(settings)))
