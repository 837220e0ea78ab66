"""Episodes in a Gymnasium environment, as the worker processes of `moqd.tasks.gymnasium` run them.

This module is sent to them as it is, with `moqd.features`, so that they load neither moqd nor JAX: it imports NumPy,
and Gymnasium when it needs it. What is sent is marked `no_type_check`, see `moqd.features`.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, no_type_check

import numpy as np

from moqd.tasks.features import Trajectory

SPHERE, CAPSULE = 2, 3
"""Of MuJoCo's types of shapes."""


@no_type_check
class Episodes:
    """Runs episodes in one environment, which it makes when first called and then keeps open."""

    def __init__(
        self,
        env_id: Any,
        env_options: Mapping[str, Any],
        objectives: Sequence[Callable[[Mapping[str, Any]], Any]] | None,
        features: Mapping[str, tuple[Callable[[Trajectory], float], Callable[[Any], Any] | None]],
        episode_length: int,
    ) -> None:
        self.env_id, self._env_options = env_id, env_options
        """An id, what Gymnasium has registered by one, or a function."""
        self._objectives = objectives
        """Functions of a step's info; None: the reward is a vector of them."""
        self._features = features
        """Measure and observe of each."""
        self._episode_length = episode_length
        self._env: Any = None

    def __call__(
        self,
        layers: Sequence[tuple[np.ndarray, np.ndarray]],
        seed: int,
        record: str = "",
        noise: tuple[np.ndarray, int] | None = None,
    ) -> dict[str, Any]:
        """An episode of a policy: its return in the user's direction, its features, and its "steps" or "poses".

        With `noise`, Gaussian noise of these standard deviations and this seed is added to its actions.
        """
        try:
            with quiet():
                if self._env is None:
                    self.open()
                return self._run(layers, seed, record, noise)
        except BaseException:
            self.close()  # what it was left in is not known
            raise

    def open(self) -> Any:
        """Makes the environment."""
        if callable(self.env_id):
            self._env = self.env_id(**self._env_options)
        else:
            import gymnasium

            with suppress(ImportError):
                import mo_gymnasium  # noqa: F401  registers its environments
            # Its check of an environment, which allows no vector of rewards, is what mo_gymnasium.make leaves out.
            self._env = gymnasium.make(self.env_id, **{"disable_env_checker": True, **self._env_options})
        return self._env

    def close(self) -> None:
        env, self._env = self._env, None
        if env is not None:
            with suppress(Exception):
                env.close()

    def start(self, seed: int) -> np.ndarray:
        """The first observation."""
        from gymnasium.spaces import Discrete, flatten

        space, self._flatten = self._env.action_space, flatten
        self._discrete = isinstance(space, Discrete)
        if not self._discrete:
            low, high = space.low.astype(np.float64), space.high.astype(np.float64)
            self._middle, self._half = (low + high) / 2, (high - low) / 2
        return self._flat(self._env.reset(seed=seed)[0])

    def advance(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any, dict[str, Any], bool, bool]:
        """A step: observation, the objectives' rewards, the environment's action, info, terminated and truncated."""
        native = self._native(action)
        obs, reward, terminated, truncated, info = self._env.step(native)
        info = {"reward": reward, **info}
        rewards = reward if self._objectives is None else [objective(info) for objective in self._objectives]
        return self._flat(obs), np.array(rewards, np.float64), native, info, bool(terminated), bool(truncated)

    def _flat(self, obs: Any) -> np.ndarray:
        return np.asarray(self._flatten(self._env.observation_space, obs), np.float32)

    def _native(self, action: np.ndarray) -> Any:
        """The environment's action for one of the policy, which is in [-1, 1]."""
        space = self._env.action_space
        if self._discrete:
            return space.start + np.argmax(action)
        scaled = self._middle + self._half * action.astype(np.float64).reshape(space.shape)
        return np.clip(scaled.astype(space.dtype), space.low, space.high)

    def _run(self, layers: Any, seed: int, record: str, noise: tuple[np.ndarray, int] | None) -> dict[str, Any]:
        obs = first = self.start(seed)
        steps, poses = [], [self._pose()] if record == "poses" else []
        random = None if noise is None else np.random.default_rng(noise[1])
        for step in range(self._episode_length):
            action = act(layers, obs)
            _check_finite("action", action, step)
            if noise is not None and random is not None:
                action = action + noise[0] * random.standard_normal(action.shape, np.float32)
            obs, reward, native, info, terminated, truncated = self.advance(action)
            _check_finite("observation", obs, step)
            _check_finite("reward", reward, step)
            values = [None if observe is None else observe(self._env) for _, observe in self._features.values()]
            steps.append((obs, action, reward, native, info, values))
            if poses:
                poses.append(self._pose())
            if terminated or truncated:
                break
        *columns, natives, infos, seen = zip(*steps, strict=True)
        after, actions, rewards = map(np.stack, columns)
        all_obs, observed = np.concatenate([first[None], after]), list(zip(*seen, strict=True))
        result: dict[str, Any] = {
            "return": rewards.sum(axis=0),
            "feature": self._measured(Trajectory(all_obs, np.array(natives), rewards, infos, ()), observed),
            "length": len(steps),
            "terminated": terminated,
        }
        if record == "steps":
            result["steps"] = all_obs, actions, rewards
        if poses:
            result["replay"] = self._replay(poses, rewards, observed)
        return result

    def _replay(self, poses: Sequence[Any], rewards: np.ndarray, observed: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The fields of a `moqd.Replay`."""
        robot, num_steps = self._env.unwrapped, len(rewards)
        position, rotation = (np.stack(column) for column in zip(*poses, strict=True))
        # A foot is a feature of which True or False is observed.
        contact = [seen if isinstance(seen[0], bool) else [False] * num_steps for seen in observed]
        return {
            "time": np.arange(num_steps + 1) * float(robot.dt),
            "position": position,
            "rotation": rotation,
            "body_names": tuple(robot.model.body(i).name or f"body {i}" for i in range(1, robot.model.nbody)),
            **shapes_of(robot.model),
            "reward": rewards,
            "contact": np.array(contact, bool).reshape(-1, num_steps).T,
        }

    def _measured(self, trajectory: Trajectory, observed: Sequence[Sequence[Any]]) -> list[float]:
        values = []
        for (name, (measure, _)), seen in zip(self._features.items(), observed, strict=True):
            value = float(measure(trajectory._replace(observed=seen)))
            if not math.isfinite(value):
                raise FloatingPointError(f"feature {name!r} is {value}")
            values.append(value)
        return values

    def _pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every body but the world."""
        data = self._env.unwrapped.data
        return data.xpos[1:].copy(), data.xquat[1:].copy()


@no_type_check
def shapes_of(model: Any) -> dict[str, np.ndarray]:
    """The spheres and capsules of a MuJoCo robot as a `moqd.Replay` has them; other shapes are left out."""
    shapes = np.flatnonzero((model.geom_bodyid > 0) & np.isin(model.geom_type, (SPHERE, CAPSULE)))
    half = np.where(model.geom_type[shapes] == CAPSULE, model.geom_size[shapes, 1], 0.0)
    w, x, y, z = model.geom_quat[shapes].T
    along = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=1) * half[:, None]
    middle = model.geom_pos[shapes]
    return {
        "shape_body": model.geom_bodyid[shapes] - 1,
        "shape_start": middle - along,
        "shape_end": middle + along,
        "shape_radius": model.geom_size[shapes, 0].copy(),
    }


@contextmanager
@no_type_check
def quiet() -> Iterator[None]:
    """Where an environment's code runs: its warnings stay away, and those of MuJoCo's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), ExitStack() as restored:
        warnings.simplefilter("ignore")
        with suppress(ImportError):
            import mujoco

            restored.callback(mujoco.set_mju_user_warning, mujoco.get_mju_user_warning())
            mujoco.set_mju_user_warning(lambda message: None)  # by default: MUJOCO_LOG.TXT in the current folder
        yield


@no_type_check
def act(layers: Sequence[tuple[np.ndarray, np.ndarray]], obs: np.ndarray) -> np.ndarray:
    """`moqd.core.networks.apply_policy` in NumPy."""
    *hidden, (kernel, bias) = layers
    for weights, offset in hidden:
        obs = np.maximum(obs @ weights + offset, np.float32(0))
    return np.tanh(obs @ kernel + bias)


@no_type_check
def _check_finite(what: str, values: np.ndarray, step: int) -> None:
    if not math.isfinite(values.sum()):
        raise FloatingPointError(f"the {what} of step {step} is not finite")
