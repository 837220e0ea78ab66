"""Multi-objective quality-diversity: many different good solutions, each in many trade-offs."""

from importlib.metadata import version

from moqd.algorithms import make_algorithm
from moqd.archive import merge
from moqd.devices import use_devices
from moqd.errors import DivergenceError, EvaluationError, InputError, StoppedError, StorageError
from moqd.experiment.control import Control
from moqd.experiment.run import Callback, resume, run
from moqd.experiment.store import Run, load_run
from moqd.metrics import crowding_distance, hypervolume, non_dominated, sparsity
from moqd.tasks import FunctionTask, Replay, Task, make_task, replay

__version__ = version("moqd")
__all__ = [
    "Callback",
    "Control",
    "DivergenceError",
    "EvaluationError",
    "FunctionTask",
    "InputError",
    "Replay",
    "Run",
    "StoppedError",
    "StorageError",
    "Task",
    "crowding_distance",
    "hypervolume",
    "load_run",
    "make_algorithm",
    "make_task",
    "merge",
    "non_dominated",
    "replay",
    "resume",
    "run",
    "sparsity",
    "use_devices",
]
