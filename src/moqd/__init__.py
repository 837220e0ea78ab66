"""Multi-objective quality-diversity: many different good solutions, each in many trade-offs."""

from importlib.metadata import version

from moqd.algorithms import make_algorithm
from moqd.archive import merge
from moqd.choice import Solution, pick
from moqd.devices import use_devices
from moqd.errors import DivergenceError, EvaluationError, InputError, StoppedError, StorageError
from moqd.experiment.control import Control
from moqd.experiment.run import Callback, resume, run
from moqd.experiment.store import Run, load_run
from moqd.metrics import crowding_distance, hypervolume, non_dominated, sparsity
from moqd.policy_file import export_policy, load_policy
from moqd.tasks import Frames, FunctionTask, Replay, Task, make_task, replay

__version__ = version("moqd")
__all__ = [
    "Callback",
    "Control",
    "DivergenceError",
    "EvaluationError",
    "Frames",
    "FunctionTask",
    "InputError",
    "Replay",
    "Run",
    "Solution",
    "StoppedError",
    "StorageError",
    "Task",
    "crowding_distance",
    "export_policy",
    "hypervolume",
    "load_policy",
    "load_run",
    "make_algorithm",
    "make_task",
    "merge",
    "non_dominated",
    "pick",
    "replay",
    "resume",
    "run",
    "sparsity",
    "use_devices",
]
