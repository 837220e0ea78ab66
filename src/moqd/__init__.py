"""Multi-objective quality-diversity: many different good solutions, each in many trade-offs."""

from importlib.metadata import version

from moqd.algorithms import make_algorithm
from moqd.devices import use_devices
from moqd.errors import DivergenceError, EvaluationError, InputError
from moqd.experiment.run import Callback, run
from moqd.experiment.store import Run, load_run
from moqd.metrics import crowding_distance, hypervolume, non_dominated, sparsity
from moqd.tasks import FunctionTask, Replay, Task, make_task, replay

__version__ = version("moqd")
__all__ = [
    "Callback",
    "DivergenceError",
    "EvaluationError",
    "FunctionTask",
    "InputError",
    "Replay",
    "Run",
    "Task",
    "crowding_distance",
    "hypervolume",
    "load_run",
    "make_algorithm",
    "make_task",
    "non_dominated",
    "replay",
    "run",
    "sparsity",
    "use_devices",
]
