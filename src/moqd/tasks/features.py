"""Features of episodes: what a solution is like, measured of what it did in an environment.

Give them by name to `moqd.gymnasium_task`; one of your own is `Feature(lambda trajectory: ..., bounds=(0, 1))`. They
are computed in processes that do not load JAX, to which this module is sent as it is: it imports NumPy alone. Classes
with code that is sent are marked `no_type_check`, because what a checker of types makes of them cannot be sent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, no_type_check

import numpy as np


class Trajectory(NamedTuple):
    """One episode, step by step."""

    obs: np.ndarray
    """steps + 1 rows: the first is the initial state's."""
    action: np.ndarray
    """As the environment was given them."""
    reward: np.ndarray
    """steps x objectives, in the user's direction."""
    info: Sequence[Mapping[str, Any]]
    """Of each step."""
    observed: Sequence[Any]
    """What the feature's own `observe` gave after each step."""


class Feature(NamedTuple):
    """A number that says what an episode was like, and its range."""

    measure: Callable[[Trajectory], float]
    bounds: tuple[float, float] | None = None
    """(lowest, highest): the interval that the cells divide; None: `moqd.run` learns it."""
    observe: Callable[[Any], Any] | None = None
    """Something to record of the environment after every step."""
    unit: str = ""


@no_type_check
class Field:
    """The field of this name of a step's info."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, info: Mapping[str, Any]) -> Any:
        if self.name not in info:
            raise LookupError(f"info has no field {self.name!r}, only {', '.join(map(str, info)) or 'nothing'}")
        return info[self.name]


def mean_info(field: str, bounds: tuple[float, float] | None = None, unit: str = "") -> Feature:
    """The mean over the steps of a field of info."""
    get = Field(field)
    return Feature(lambda trajectory: float(np.mean([get(info) for info in trajectory.info])), bounds, unit=unit)


def final_info(field: str, bounds: tuple[float, float] | None = None, unit: str = "") -> Feature:
    """A field of info after the last step."""
    get = Field(field)
    return Feature(lambda trajectory: float(get(trajectory.info[-1])), bounds, unit=unit)


def mean_obs(index: int, bounds: tuple[float, float] | None = None, unit: str = "") -> Feature:
    """The mean over the steps of one number of the observations (flat), after each step."""
    return Feature(lambda trajectory: float(np.mean(trajectory.obs[1:, index])), bounds, unit=unit)


def final_position(axis: int, bounds: tuple[float, float] | None = None, unit: str = "m") -> Feature:
    """Where a MuJoCo robot is in the end: number `axis` of its `qpos`, which begins with the root's (x is 0)."""
    return Feature(
        lambda trajectory: float(trajectory.observed[-1]),
        bounds,
        observe=lambda env: float(env.unwrapped.data.qpos[axis]),
        unit=unit,
    )


def foot_contact(name: str) -> Feature:
    """The share of steps after which a MuJoCo robot's foot, a geom or body of this name, touches the ground."""
    return Feature(
        lambda trajectory: float(np.mean(trajectory.observed)),
        (0.0, 1.0),
        observe=TouchesGround(name),
        unit="share of steps on the ground",
    )


@no_type_check
class TouchesGround:
    """Whether a geom, or any geom of a body, is in a contact with one of the world that MuJoCo has a force for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._model: Any = None
        """Of which `_foot` and `_ground` say which geoms they are."""

    def __call__(self, env: Any) -> bool:
        model, data = env.unwrapped.model, env.unwrapped.data
        if model is not self._model:
            self._foot, self._ground = self._geoms(model), model.geom_bodyid == 0
            self._model = model
        if data.ncon == 0:
            return False
        contact = data.contact
        first, second = contact.geom[contact.exclude == 0].T
        return bool(np.any(self._foot[first] & self._ground[second] | self._ground[first] & self._foot[second]))

    def _geoms(self, model: Any) -> np.ndarray:
        geoms = [model.geom(i).name for i in range(model.ngeom)]
        bodies = [model.body(i).name for i in range(model.nbody)]
        if self.name in geoms:
            return np.arange(model.ngeom) == geoms.index(self.name)
        if self.name in bodies:
            return model.geom_bodyid == bodies.index(self.name)
        known = dict.fromkeys(name for name in (*geoms, *bodies[1:]) if name)
        raise LookupError(f"no geom or body is named {self.name!r}, only {', '.join(known)}")

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "_model": None}
