"""Multi-objective quality-diversity: many different good solutions, each in many trade-offs."""

from collections.abc import Sequence
from importlib.metadata import version
from os import PathLike
from pathlib import Path

from moqd import features
from moqd.algorithms import make_algorithm
from moqd.archive import merge
from moqd.choice import Solution, pick
from moqd.devices import use_devices
from moqd.errors import DivergenceError, EvaluationError, InputError, StoppedError, StorageError
from moqd.experiment.control import Control
from moqd.experiment.optimizer import Candidate, Optimizer
from moqd.experiment.reevaluation import Reevaluation, reevaluate
from moqd.experiment.run import Callback, resume, run
from moqd.experiment.store import Run, load_run
from moqd.metrics import crowding_distance, hypervolume, non_dominated, sparsity
from moqd.policy_file import export_policy, load_policy
from moqd.tasks import (
    Categorical,
    Frames,
    FunctionTask,
    Integer,
    Real,
    Replay,
    Task,
    gymnasium_task,
    jax_env_task,
    make_task,
    replay,
)

__version__ = version("moqd")


def explore(
    runs: Run | Sequence[Run],
    path: str | PathLike[str] | None = None,
    *,
    gaits: str = "some",
    budget: float = 25.0,
) -> Path:
    """Writes the page on which to look at a run, or at several of one task: explorer.html in its folder, or `path`.

    `gaits` is "some" (of the solutions that one looks at first, within the budget in megabytes), "all" or "none".
    """
    from moqd.explorer import write_explorer  # here, because it takes its time to load

    return write_explorer(runs, path, gaits=gaits, budget=budget)


__all__ = [
    "Callback",
    "Candidate",
    "Categorical",
    "Control",
    "DivergenceError",
    "EvaluationError",
    "Frames",
    "FunctionTask",
    "InputError",
    "Integer",
    "Optimizer",
    "Real",
    "Reevaluation",
    "Replay",
    "Run",
    "Solution",
    "StoppedError",
    "StorageError",
    "Task",
    "crowding_distance",
    "explore",
    "export_policy",
    "features",
    "gymnasium_task",
    "hypervolume",
    "jax_env_task",
    "load_policy",
    "load_run",
    "make_algorithm",
    "make_task",
    "merge",
    "non_dominated",
    "pick",
    "reevaluate",
    "replay",
    "resume",
    "run",
    "sparsity",
    "use_devices",
]
