"""Multi-objective quality-diversity: many different good solutions, each in many trade-offs."""

from importlib.metadata import version

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
    Replay,
    Task,
    gymnasium_task,
    jax_env_task,
    make_task,
    replay,
)

__version__ = version("moqd")
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
    "Reevaluation",
    "Replay",
    "Run",
    "Solution",
    "StoppedError",
    "StorageError",
    "Task",
    "crowding_distance",
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
