"""Tasks by name, and the classes for one's own."""

from typing import TYPE_CHECKING

from moqd.io.lazy import lazy
from moqd.tasks.catalogue import TASKS, Entry

if TYPE_CHECKING:
    from moqd.tasks.function import FunctionTask
    from moqd.tasks.gymnasium import gymnasium_task
    from moqd.tasks.jax_env import jax_env_task
    from moqd.tasks.parameters import Categorical, Integer, Real
    from moqd.tasks.registry import make_task, replay
    from moqd.tasks.task import Frames, Rendering, Replay, Task
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = [
    "TASKS",
    "Categorical",
    "Entry",
    "Frames",
    "FunctionTask",
    "Integer",
    "Real",
    "Rendering",
    "Replay",
    "Task",
    "gymnasium_task",
    "jax_env_task",
    "make_task",
    "replay",
]
