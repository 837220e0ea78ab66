"""The settings of a run: read from JSON once, at the door, and an object everywhere after that.

config.json holds all of them. A study plans a run by those that its result depends on (`RunConfig.settings`), and knows
it by their hash. Files keep the names that they always had: `seeded` is the number of initial solutions.
"""

import hashlib
import json
import math
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from moqd.algorithms import ALGORITHMS, Algorithm, restore_algorithm
from moqd.core.devices import num_cores
from moqd.io.errors import InputError
from moqd.io.files import FORMAT
from moqd.io.options import MOST_SEED, is_count, recorded
from moqd.runs.user_code import OWN
from moqd.tasks import TASKS, FunctionTask, Task, make_task
from moqd.tasks.parameters import Bound, Categorical, Integer, Real

PACKAGES = ("moqd", "jax", "jaxlib", "numpy", "scikit-learn", "optax", "brax", "mujoco")
"""Those whose version may change the bits of a result."""
DESCRIBED = {
    "objectives": "objective_names",
    "minimised": "minimised",
    "features": "feature_names",
    "feature_bounds": "feature_bounds",
    "bounds": "bounds",
    "parameters": "parameter_names",
    "constraints": "constraint_names",
    "units": "units",
}
"""What config.json says of a task, and where the task has it. A given task must share all but the units."""
EPISODES = ("episode_length", "resamples", "seed")
"""The same of a task with an environment; returns of other episodes are not comparable."""


@dataclass(frozen=True)
class TaskConfig:
    """The task of a run."""

    name: str
    options: Mapping[str, Any] | None
    """The name and options of which `make_task` makes it; None for a task of the user's own."""
    description: Mapping[str, Any] = field(default_factory=dict)
    """Its objectives, features, bounds and units, as far as a file says them; empty in a plan."""

    @classmethod
    def of(cls, task: Task) -> "TaskConfig":
        bounds = getattr(task, "bounds", None)
        description = {name: getattr(task, place, ()) for name, place in DESCRIBED.items()}
        description["bounds"] = list(bounds.values()) if isinstance(bounds, Mapping) else bounds
        description["units"] = dict(task.units)
        description |= {key: getattr(task, key) for key in EPISODES if isinstance(getattr(task, key, ()), int | None)}
        return replace(cls.planned(task), description=_as_json(description, _described_bound))

    @classmethod
    def planned(cls, task: Task) -> "TaskConfig":
        """Without its description."""
        return cls(task.name, None if task.options is None else _as_json(dict(task.options)))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "options": self.options, **self.description}

    @property
    def is_registered(self) -> bool:
        """Whether it can be made by its name."""
        return self.options is not None and self.options["name"] in TASKS

    @property
    def is_of_a_file(self) -> bool:
        """Whether commands know it by --task FILE.py:NAME."""
        return "fingerprint" in (self.options or {})

    @property
    def has_bounds(self) -> bool:
        """Whether its solutions are plain parameters, so that they can be looked at without the task."""
        return bool(self.description.get("bounds"))

    def make(self) -> Task:
        """The task, made by its name."""
        options = self.options or {"name": self.name}
        with _keys_of("task.options", options):
            return make_task(**options)

    def make_or_check(self, folder: Path, given: Task | None) -> Task:
        """The task of the run in a folder: made again, or the user's own, if it fits."""
        if given is None and self.is_registered:
            return self.with_bounds(self.make())
        task = OWN.get(self.name) if given is None else given
        if task is None:
            why = "which is not one of moqd's; pass it as task=..., or on the command line as --task FILE.py:NAME."
            if OWN:
                why = f"but --task gives {', '.join(map(repr, OWN))}; give the task that was run."
            raise InputError(f"the run in {str(folder)!r} is of the task {self.name!r}, {why}")
        task = self.with_bounds(task)
        here = TaskConfig.of(task)
        if different := self.difference(here):
            raise InputError(
                f"the run in {str(folder)!r} is of a task with {different.replace('_', ' ')} "
                f"{self.to_json()[different]}, but the task {task.name!r} has {here.to_json().get(different)}; give "
                "the task that was run."
            )
        return task

    def with_bounds(self, task: Task) -> Task:
        """The task, with the feature bounds that a run has learned if it knows none itself."""
        learned = self.description.get("feature_bounds", ())
        fits = not task.has_feature_bounds and len(learned) == task.num_features
        return task.within(learned) if fits else task

    def difference(self, other: "TaskConfig") -> str | None:
        """The first thing of those that this one says in which the other is not the same."""
        here, there = self.to_json(), other.to_json()
        compared = [name for name in (*DESCRIBED, *EPISODES, "name") if name in here and name != "units"]
        return next((name for name in compared if here[name] != there.get(name)), None)

    def outline(self) -> Task | None:
        """A task of plain parameters that is not at hand, as config.json says it: enough to look at solutions."""
        if self.name in OWN or self.is_registered or not self.has_bounds:
            return None
        try:
            said = {DESCRIBED[name]: value for name, value in self.description.items() if name in DESCRIBED}
            said["bounds"] = [_bound(bound) for bound in said["bounds"]]
            said["feature_bounds"] = [tuple(pair) for pair in said["feature_bounds"]]
            return FunctionTask(None, name=self.name, **said)
        except (InputError, KeyError, TypeError, ValueError, AttributeError):
            return None


@dataclass(frozen=True)
class AlgorithmConfig:
    """The algorithm of a run."""

    name: str
    options: Mapping[str, Any]
    """As `moqd.io.options.recorded` gives them: those at the value that they had `before` they came are left out."""

    @classmethod
    def of(cls, name: str, config: Any) -> "AlgorithmConfig":
        return cls(name, _as_json(recorded(config)))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **self.options}

    @property
    def is_of_a_file(self) -> bool:
        """Whether commands know it by --algorithm FILE.py:NAME."""
        return "fingerprint" in self.options

    def make(self, task: Task) -> Algorithm:
        with _keys_of("algorithm", self.options):
            return restore_algorithm(self.to_json(), task)

    def make_or_check(self, folder: Path, task: Task, given: Algorithm | None) -> Algorithm:
        """The algorithm of the run in a folder: made again, or the user's own, if it is the same."""
        if given is None and self.name not in ALGORITHMS:
            raise InputError(
                f"the run in {str(folder)!r} is of the algorithm {self.name!r}, which is not one of moqd's; pass it, "
                "as in resume(path, algorithm=...), or on the command line with --algorithm FILE.py:NAME."
            )
        if given is None:
            return self.make(task)
        here, there = AlgorithmConfig.of(given.name, given.config).to_json(), self.to_json()
        for name in here | there:
            if here.get(name) != there.get(name):
                raise InputError(
                    f"the run in {str(folder)!r} is of an algorithm whose {name} is {there.get(name)!r}, but that of "
                    f"the one given is {here.get(name)!r}; give the algorithm that was run."
                )
        return given


def _versions() -> dict[str, str]:
    """Of those that are installed: a run without robots needs no Brax."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@dataclass(frozen=True)
class Surroundings:
    """What the bits of a result depend on besides the settings; None where a file does not say it."""

    versions: Mapping[str, str] | None = None
    xla_flags: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    machine: Mapping[str, Any] | None = None

    @classmethod
    def here(cls) -> "Surroundings":
        return cls(
            versions={"python": platform.python_version(), **_versions()},
            xla_flags=tuple(sorted(os.environ.get("XLA_FLAGS", "").split())),
            devices=tuple(device.device_kind for device in jax.local_devices()),
            machine={"processor": processor(), "cores": num_cores()},
        )

    def to_json(self) -> dict[str, Any]:
        return {name: _as_json(value) for name, value in self.__dict__.items() if value is not None}


MOST_ITERATIONS = 2**31 - 2
"""More than there can be, because they are counted in 32 bits: of a run that something else ends."""
PLANNED_LIMITS = ("iterations", "minutes", "env_steps")
"""What may end a run of a study..."""
LIMITS = (*PLANNED_LIMITS, "patience")
"""...and any run."""


def usual_log_every(iterations: int, most: int = 10) -> int | None:
    """A row of metrics for every ten iterations, more often in a short run; None: not known how many there are."""
    return None if iterations == MOST_ITERATIONS else max(1, min(most, iterations // 10))


@dataclass(frozen=True)
class RunConfig:
    """All that is needed to repeat a run."""

    task: TaskConfig
    algorithm: AlgorithmConfig
    seed: int
    iterations: int
    """Of a run that something else has ended, those that it has made."""
    log_every: int | None = 10
    """None: after every iteration up to 100, then after every tenth up to 1,000, and so on."""
    snapshot_every: int | None = None
    checkpoint_minutes: float = 5.0
    minutes: float | None = None
    """After which it ends, at the next iteration."""
    patience: int | None = None
    """Iterations without a better MOQD score after which it ends."""
    env_steps: int | None = None
    """Steps of the environment after which it ends, with the iteration in which they are made."""
    # What is known when the run begins:
    initial_solutions: int = 0
    """How many solutions of another archive it began with."""
    batch: int = 0
    """Offspring per iteration."""
    reference_point: tuple[float, ...] | None = None
    """Where hypervolume is measured from, in the user's units; settled by the first batch."""
    learning_cost: float | None = None
    """How many times as long a generation with learning takes, of an algorithm whose effort follows that; measured by
    the first generations."""
    surroundings: Surroundings = Surroundings()

    @classmethod
    def from_json(cls, content: Any, path: Path) -> "RunConfig":
        """What config.json of a run says; raises InputError with every mistake by its key."""
        _check(content, PLANNED | BEGUN, path)
        frozen: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
        }
        return cls(
            **_planned(content),
            checkpoint_minutes=float(content["checkpoint_minutes"]),
            patience=content.get("patience"),
            initial_solutions=content["seeded"],
            batch=content["batch"],
            reference_point=frozen.get("reference_point"),
            learning_cost=content.get("learning_cost"),
            surroundings=Surroundings(**{one.name: frozen.get(one.name) for one in fields(Surroundings)}),
        )

    def to_json(self) -> dict[str, Any]:
        """The content of config.json."""
        point = None if self.reference_point is None else list(self.reference_point)
        later = {name: getattr(self, name) for name in ("minutes", "patience", "env_steps", "learning_cost")}
        later |= {"reference_point": point}
        return {
            "format": FORMAT,
            "task": self.task.to_json(),
            "algorithm": self.algorithm.to_json(),
            "seed": self.seed,
            "iterations": self.iterations,
            "log_every": self.log_every,
            "checkpoint_minutes": self.checkpoint_minutes,
            "snapshot_every": self.snapshot_every,
            "seeded": self.initial_solutions,
            "batch": self.batch,
            **self.surroundings.to_json(),
            **{name: value for name, value in later.items() if value is not None},
        }

    @classmethod
    def from_settings(cls, settings: Any, path: Path) -> "RunConfig":
        """A run that is planned, as `settings` gave it; raises InputError with every mistake by its key."""
        options = settings.get("task") if isinstance(settings, dict) else None
        name = options.get("name") if isinstance(options, dict) else None
        content = {**settings, "task": {"name": name, "options": options}} if name else settings
        if isinstance(content, dict) and (content.get("minutes"), content.get("env_steps")) != (None, None):
            content = {"iterations": MOST_ITERATIONS, **content}
        _check(content, PLANNED, path)
        return cls(**_planned(content))

    def settings(self) -> dict[str, Any]:
        """All that the result depends on, by which studies know a run: its iterations, or its time or steps if these
        end it."""
        ends = {name: value for name in ("minutes", "env_steps") if (value := getattr(self, name)) is not None}
        return {
            "task": self.task.options,
            "algorithm": self.algorithm.to_json(),
            "seed": self.seed,
            **(ends or {"iterations": self.iterations}),
            "log_every": self.log_every,
            "snapshot_every": self.snapshot_every,
        }

    def check_same(self, planned: "RunConfig", path: Path) -> None:
        """Raises where this config, which was found there, is not that of a run that was planned."""
        here = self.settings()
        different = [name for name, value in planned.settings().items() if here.get(name) != value]
        if different:
            raise InputError(f"{str(path)!r} holds a run with another {' and '.join(different)}; move it away.")

    @property
    def of_iterations(self) -> str:
        """How a sentence on an iteration goes on."""
        return "" if self.iterations == MOST_ITERATIONS else f" of {self.iterations}"

    def is_last(self, iteration: float) -> bool:
        """Whether a run that was planned so and is done may have ended there."""
        return not self.has_fixed_length or bool(iteration == self.iterations)

    @property
    def has_fixed_length(self) -> bool:
        """Whether it was planned to end at its last iteration, and not by its time or its steps."""
        return self.minutes is None and self.env_steps is None

    def next_log_point(self, iteration: int) -> int:
        """The first one after an iteration."""
        every = self.log_every or 10 ** max(0, len(str(iteration)) - 2)
        return (iteration // every + 1) * every

    @property
    def digest(self) -> str:
        """What tells the run from all others that a study may plan."""
        canonical = json.dumps(self.settings(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    @property
    def identity(self) -> str:
        """What makes a run that has begun the run that it is, however long it goes on and wherever."""
        content = self.to_json()
        identity = {name: content[name] for name in ("task", "algorithm", "seed", "batch", "seeded")}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _planned(content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a run has from its plan on."""
    task, algorithm = dict(content["task"]), dict(content["algorithm"])
    return {
        "task": TaskConfig(task.pop("name"), task.pop("options", None), task),
        "algorithm": AlgorithmConfig(algorithm.pop("name"), algorithm),
        **{name: content[name] for name in ("seed", "iterations")},
        **{name: content.get(name) for name in ("log_every", "snapshot_every", "minutes", "env_steps")},
    }


Rule = tuple[Callable[[Any], bool], str]
"""Whether a value will do, and what would."""


def _count(least: int, most: float = math.inf) -> Rule:
    return (lambda value: is_count(value, least) and value <= most), f"a whole number of at least {least}"


def _or_none(rule: Rule) -> Rule:
    return (lambda value: value is None or rule[0](value)), f"{rule[1]}, or nothing"


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types) and not isinstance(value, bool)


def _list_of(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(_is(*types), value))


_NAME: Rule = _is(str), "a name"
_NUMBER: Rule = (lambda value: _is(int, float)(value) and value >= 0), "a number"
_NUMBERS: Rule = _list_of(int, float), "a list of numbers"
_TABLE: Rule = _is(dict), "a table"
PLANNED: dict[str, Rule] = {
    "task.name": _NAME,
    "task.options": _or_none((lambda value: _is(dict)(value) and _is(str)(value.get("name")), "options")),
    "task.options.reference_point": _or_none(_NUMBERS),
    "algorithm.name": _NAME,
    "seed": _count(0, MOST_SEED),
    "iterations": _count(0),
    "log_every": _or_none(_count(1)),
    "snapshot_every": _or_none(_count(1)),
    "minutes": _or_none(_NUMBER),
    "env_steps": _or_none(_count(1)),
}
"""What the settings of a run must say..."""
BEGUN: dict[str, Rule] = {
    "batch": _count(1),
    "seeded": _count(0),
    "checkpoint_minutes": _NUMBER,
    "patience": _or_none(_count(1)),
    "reference_point": _or_none(_NUMBERS),
    "learning_cost": _or_none(_NUMBER),
    "versions": _or_none(_TABLE),
    "machine": _or_none(_TABLE),
    **dict.fromkeys(("xla_flags", "devices"), _or_none((_list_of(str), "a list of names"))),
}
"""...and config.json too, for the run to be read or continued."""


def _check(content: Any, rules: Mapping[str, Rule], path: Path) -> None:
    wrong = []
    for name, (holds, expected) in rules.items():
        value: Any = content
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not holds(value):
            wrong.append(f"{name} is {str(value)[:50]!r}, not {expected}")
    if wrong:
        raise InputError(f"{str(path)!r} is damaged: {'; '.join(wrong)}.")


@contextmanager
def _keys_of(table: str, options: Mapping[str, Any]) -> Iterator[None]:
    """What is wrong with an option is said of its key in the file."""
    try:
        yield
    except InputError as error:
        if str(error).partition(" is ")[0] in options:
            raise InputError(f"{table}.{error}") from error
        raise


def _as_json(value: Any, default: Callable[[Any], Any] = repr) -> Any:
    """As a file would give it back, so that what was read and what was made are the same."""
    return json.loads(json.dumps(value, default=default))


BOUNDS: dict[str, Callable[..., Bound]] = {
    "integer": Integer,
    "categorical": Categorical,
    "log": partial(Real, log=True),
}
"""Those that are not pairs, by what config.json calls them."""


def _bound(said: Any) -> Any:
    if isinstance(said, dict):
        ((kind, values),) = said.items()
        return BOUNDS[kind](*values)
    return tuple(said)


def _described_bound(bound: Real | Integer | Categorical) -> dict[str, Any]:
    if isinstance(bound, Categorical):
        return {"categorical": [one if isinstance(one, (int, float)) else str(one) for one in bound.options]}
    return {"integer" if isinstance(bound, Integer) else "log": [bound.low, bound.high]}
