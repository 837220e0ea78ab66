"""Multi-objective quality-diversity: many different good solutions, each in many trade-offs."""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING

from moqd.io.lazy import lazy as _lazy

if TYPE_CHECKING:
    from moqd import plots
    from moqd.algorithms import Algorithm, make_algorithm, with_passive_archive
    from moqd.choose.ask import Answer, ask_actor
    from moqd.choose.pick import Solution, pick
    from moqd.choose.policy_file import export_policy, load_policy
    from moqd.core.archive import Archive, merge
    from moqd.core.devices import use_devices
    from moqd.core.metrics import crowding_distance, hypervolume, non_dominated, sparsity
    from moqd.core.types import Evaluation, Info, Key, Offspring, Source, Transition
    from moqd.explorer.write import write_explorer as explore
    from moqd.io.errors import DivergenceError, EvaluationError, InputError, StoppedError, StorageError
    from moqd.runs.config import RunConfig
    from moqd.runs.control import Control
    from moqd.runs.diagnose import Diagnosis, diagnose
    from moqd.runs.folder import Run, load_run
    from moqd.runs.optimizer import Candidate, Optimizer
    from moqd.runs.reevaluate import Reevaluation, reevaluate
    from moqd.runs.regrid import regrid
    from moqd.runs.session import Callback
    from moqd.runs.start import resume, run
    from moqd.study.load import load_study
    from moqd.tasks import (
        Categorical,
        Frames,
        FunctionTask,
        Integer,
        Real,
        Replay,
        Task,
        features,
        gymnasium_task,
        jax_env_task,
        make_task,
        replay,
    )
    from moqd.tasks.problem import problem
else:
    __getattr__, __dir__ = _lazy(__name__, __file__)

__version__ = _version("moqd")

__all__ = [
    "Algorithm",
    "Answer",
    "Archive",
    "Callback",
    "Candidate",
    "Categorical",
    "Control",
    "Diagnosis",
    "DivergenceError",
    "Evaluation",
    "EvaluationError",
    "Frames",
    "FunctionTask",
    "Info",
    "InputError",
    "Integer",
    "Key",
    "Offspring",
    "Optimizer",
    "Real",
    "Reevaluation",
    "Replay",
    "Run",
    "RunConfig",
    "Solution",
    "Source",
    "StoppedError",
    "StorageError",
    "Task",
    "Transition",
    "ask_actor",
    "crowding_distance",
    "diagnose",
    "explore",
    "export_policy",
    "features",
    "gymnasium_task",
    "hypervolume",
    "jax_env_task",
    "load_policy",
    "load_run",
    "load_study",
    "make_algorithm",
    "make_task",
    "merge",
    "non_dominated",
    "pick",
    "plots",
    "problem",
    "reevaluate",
    "regrid",
    "replay",
    "resume",
    "run",
    "sparsity",
    "use_devices",
    "with_passive_archive",
]
