"""Tasks from environments of Gymnasium and MO-Gymnasium (the extra `gym`), with neural policies.

A genotype is a neural network that acts in the environment. Its objectives are sums over an episode: of the rewards of
an environment that gives a vector of them, or of numbers in the info of every step. Whole episodes run in worker
processes, see `moqd.tasks.episode`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int

from moqd.core.networks import MLP, Policy, apply_policy
from moqd.core.types import Evaluation, Key, Transition
from moqd.io.errors import EvaluationError, InputError
from moqd.io.options import is_count
from moqd.tasks import episode as episode_module
from moqd.tasks import features as features_module
from moqd.tasks.episode import Episodes, quiet
from moqd.tasks.features import Feature, Field
from moqd.tasks.policies import PolicyTask
from moqd.tasks.pool import Call, ProcessPool, check_pool
from moqd.tasks.task import Replay, averaged, validated

Objectives = Sequence[str] | Mapping[str, str | Callable[[Mapping[str, Any]], float]]
USUAL_LENGTH = 1000
"""Of an episode in an environment that sets no limit."""
EXAMPLE = '{"speed": "x_velocity", "effort": lambda info: ...}'


def gymnasium_task(
    env_id: str | Callable[..., Any],
    *,
    features: Mapping[str, Feature],
    objectives: Objectives | None = None,
    name: str | None = None,
    env_options: Mapping[str, Any] | None = None,
    episode_length: int | None = None,
    hidden_sizes: Sequence[int] = (64, 64),
    resamples: int | None = None,
    reference_point: Sequence[float] | None = None,
    units: Mapping[str, str] | None = None,
    minimised: Sequence[str] = (),
    workers: int | None = None,
    seed: int = 0,
) -> "GymnasiumTask":
    """A task in an environment of Gymnasium or MO-Gymnasium, by its id or a function that makes it.

    `objectives` are names of an environment's vector of rewards, or functions of a step's info by name; a string stands
    for a field of info, and `info["reward"]` is the scalar reward. `env_options` are passed on to what makes the
    environment. `episode_length` is its own limit if it is not given. Every episode starts from `env.reset(seed=seed)`;
    with `resamples`, every policy is averaged over so many episodes with random seeds. The episodes run in `workers`
    processes, one per core if not given.
    """
    _check_world(env_id, features, objectives, env_options)
    _check_numbers(episode_length, hidden_sizes, resamples, seed)
    check_pool("processes", workers=workers, timeout=None)
    title = str(name or (env_id if isinstance(env_id, str) else getattr(env_id, "__name__", "environment")))
    options = dict(env_options or {})
    if isinstance(env_id, str) and episode_length is not None:
        options = {"max_episode_steps": episode_length, **options}
    functions = None
    if isinstance(objectives, Mapping):
        functions = [Field(value) if isinstance(value, str) else value for value in objectives.values()]
    with quiet():
        world = _look_at(Episodes(env_id, options, functions, {}, 1), features, seed, title)
    length = episode_length or world.limit or USUAL_LENGTH
    sent = {key: (feature.measure, feature.observe) for key, feature in features.items()}
    own_units = {key: feature.unit for key, feature in features.items() if feature.unit}
    return (RobotTask if world.is_robot else GymnasiumTask)(
        Episodes(_sendable(env_id), options, functions, sent, length),
        world.policy._replace(hidden_sizes=tuple(hidden_sizes)),
        name=title,
        objective_names=_names(objectives, world.reward_shape, title),
        minimised=minimised,
        feature_names=tuple(features),
        feature_bounds=tuple(feature.bounds for feature in features.values()),
        reference_point=reference_point,
        units={**own_units, **(units or {})},
        episode_length=length,
        resamples=resamples,
        workers=workers,
        seed=seed,
    )


@dataclass(frozen=True, eq=False)
class GymnasiumTask(PolicyTask):
    """Policies in an environment; made by `gymnasium_task`. An episode that fails is a failed evaluation.

    The `action` of a transition is the policy's output in [-1, 1]. In a continuous space it is scaled to the bounds of
    each action; in a discrete one there is an output for each action, and the largest is taken.
    """

    episodes: Episodes = field(repr=False)
    controller: Policy = field(repr=False)
    episode_length: int = field(kw_only=True)
    resamples: int | None = field(kw_only=True)
    workers: int | None = field(kw_only=True)
    seed: int = field(kw_only=True)
    traceable: bool = field(default=False, kw_only=True)
    failures: deque[str] = field(default_factory=lambda: deque(maxlen=8), init=False, repr=False)
    """What went wrong last, newest at the end."""

    @property
    def policy(self) -> Policy:
        return self.controller

    def evaluate(self, key: Key, genotype: MLP) -> Evaluation:
        """Every policy's episode, with transitions."""
        return self._evaluate(key, genotype, record=True)

    def evaluate_fitness(self, key: Key, genotype: MLP) -> Evaluation:
        return self._evaluate(key, genotype, record=False)

    def _evaluate(self, key: Key, genotype: MLP, *, record: bool) -> Evaluation:
        batch, resamples = genotype[0].bias.shape[0], self.resamples
        if resamples is None:
            return validated(self, self._episodes(genotype, np.full(batch, self.seed), record))
        repeated = jax.tree.map(lambda leaf: np.repeat(leaf, resamples, axis=0), jax.device_get(genotype))
        seeds = np.asarray(jax.random.bits(key, (batch * resamples,), jnp.uint32)).astype(np.int64)
        return validated(self, averaged(self._episodes(repeated, seeds, record), resamples))

    def _episodes(self, genotype: MLP, seeds: Int[np.ndarray, "batch"], record: bool) -> Evaluation:
        """One episode of each policy."""
        results = self._results(genotype, seeds, "steps" if record else "")
        batch = len(results)
        fitness = np.zeros((batch, self.num_objectives), np.float32)
        feature = np.zeros((batch, self.num_features), np.float32)
        length, fell = np.zeros(batch, np.int32), np.zeros(batch, bool)
        for row, result in enumerate(results):
            if result is not None:
                fitness[row], feature[row] = result["return"] * self.direction, result["feature"]
                length[row], fell[row] = result["length"], result["terminated"]
        return Evaluation(
            fitness=jnp.asarray(fitness),
            feature=jnp.asarray(feature),
            valid=jnp.asarray([result is not None for result in results]),
            transitions=self._transitions(results, length, fell) if record else None,
            num_steps=jnp.asarray(length),
        )

    def _transitions(
        self,
        results: Sequence[dict[str, Any] | None],
        length: Int[np.ndarray, "batch"],
        fell: Bool[np.ndarray, "batch"],
    ) -> Transition:
        sizes = (self.policy.num_obs, self.policy.num_actions, self.num_objectives, self.policy.num_obs)
        columns = tuple(np.zeros((len(results), self.episode_length, size), np.float32) for size in sizes)
        for row, result in enumerate(results):
            if result is not None:
                obs, action, reward = result["steps"]
                steps = (obs[:-1], action, reward * self.direction, obs[1:])
                for column, rows in zip(columns, steps, strict=True):
                    column[row, : len(rows)] = rows
        time = np.arange(self.episode_length)[None, :]
        terminated = (time == length[:, None] - 1) & fell[:, None]
        return Transition(*(jnp.asarray(column) for column in (*columns, terminated, time < length[:, None])))

    def _results(self, genotype: MLP, seeds: Int[np.ndarray, "batch"], record: str) -> list[dict[str, Any] | None]:
        """What the workers say of each policy's episode; None, and a note in `failures`, where it failed."""
        layers = jax.device_get(genotype)
        of = lambda row: [(kernel[row], bias[row]) for kernel, bias in layers]  # noqa: E731
        calls: list[Call] = [((of(row), int(seed), record), {}) for row, seed in enumerate(seeds)]
        results: list[dict[str, Any] | None] = [None] * len(calls)
        reasons = {}
        for row, result in self._pool.calls(calls):
            if result.failure is not None:
                reasons[row] = result.failure.reason
            elif result.value["return"].shape != (self.num_objectives,):
                reasons[row] = f"its rewards are not {self.num_objectives} numbers, one for each objective,"
            else:
                results[row] = result.value
        self.failures.extend(f"{reasons[row]} in an episode with seed {seeds[row]}" for row in sorted(reasons))
        return results

    @cached_property
    def _pool(self) -> ProcessPool:
        modules = (features_module, episode_module)
        for module in modules:
            cloudpickle.register_pickle_by_value(module)
        try:
            return ProcessPool(self.episodes, self.workers)
        finally:
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)


class RobotTask(GymnasiumTask):
    """One whose environment is a robot of MuJoCo, which can be replayed."""

    def replay(self, genotype: MLP) -> Replay:
        """The episode of one policy from the initial state of the task's seed."""
        return self.replay_one(genotype)

    def replays(self, genotype: MLP) -> Iterator[Replay]:
        for result in self._results(genotype, np.full(genotype[0].bias.shape[0], self.seed), "poses"):
            if result is None:
                raise EvaluationError(f"an episode of task {self.name!r} cannot be replayed: {self.failures[-1]}.")
            robot = result["robot"]
            yield Replay(
                time=np.arange(result["length"] + 1) * robot["seconds"],
                position=result["position"],
                rotation=result["rotation"],
                body_names=robot["body_names"],
                shape_body=robot["shape_body"],
                shape_start=robot["shape_start"],
                shape_end=robot["shape_end"],
                shape_radius=robot["shape_radius"],
                reward=result["reward"],
                contact=result["contact"],
            )


class _World(NamedTuple):
    """What an environment is like."""

    policy: Policy
    """Without its hidden layers."""
    limit: int | None
    """Of an episode's steps."""
    reward_shape: tuple[int, ...]
    is_robot: bool


def _look_at(episodes: Episodes, features: Mapping[str, Feature], seed: int, title: str) -> _World:
    """Makes the environment in this process, takes one step in it, and closes it."""
    try:
        env = _opened(episodes, title)
        num_obs, num_actions = _num_obs(env, title), _num_actions(env, title)
        reward = _first_reward(episodes, num_actions, seed, title)
        for name, feature in features.items():
            if feature.observe is not None:
                _check_observe(name, feature.observe, env)
        return _World(
            Policy(num_obs, num_actions, (), apply_policy, *_layout(env, num_obs, num_actions), _control_rate(env)),
            limit=None if env.spec is None else env.spec.max_episode_steps,
            reward_shape=reward.shape,
            is_robot=_is_robot(env),
        )
    finally:
        episodes.close()


def _sendable(env_id: str | Callable[..., Any]) -> Any:
    """What makes the environment in other processes, which know only what Gymnasium and MO-Gymnasium register."""
    import gymnasium
    from gymnasium.envs.registration import load_env_creator

    spec = gymnasium.registry.get(env_id) if isinstance(env_id, str) else None
    if spec is None:
        return env_id
    spec = copy(spec)
    if isinstance(spec.entry_point, str) and spec.entry_point.startswith("__main__:"):
        spec.entry_point = load_env_creator(spec.entry_point)  # type: ignore[assignment]
    return spec


def _opened(episodes: Episodes, title: str) -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise InputError("gymnasium_task needs Gymnasium; install it with: pip install 'moqd[gym]'") from error
    env_id = episodes.env_id
    try:
        env = episodes.open()
    except gymnasium.error.UnregisteredEnv as error:
        near = get_close_matches(str(env_id), gymnasium.registry, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "gymnasium.pprint_registry() lists all."
        raise InputError(f"unknown environment {env_id!r}; {hint}") from error
    except Exception as error:
        raise InputError(
            f"the environment of task {title!r} cannot be made ({_said(error)}); look at env_options, and at what it "
            "needs to have installed."
        ) from error
    if not isinstance(env, gymnasium.Env):
        raise InputError(f"the environment of task {title!r} is {env!r}; its function must return a gymnasium.Env.")
    return env


def _num_obs(env: Any, title: str) -> int:
    from gymnasium.spaces import flatdim

    space = env.observation_space
    if not space.is_np_flattenable:
        raise InputError(
            f"the observations of task {title!r} are of {space}, not always as many numbers; use a wrapper that makes "
            "vectors of them."
        )
    return flatdim(space)


def _num_actions(env: Any, title: str) -> int:
    from gymnasium.spaces import Box, Discrete

    space = env.action_space
    if isinstance(space, Discrete):
        return int(space.n)
    if isinstance(space, Box) and space.is_bounded() and np.issubdtype(space.dtype, np.floating):
        return int(np.prod(space.shape))
    raise InputError(
        f"the actions of task {title!r} are of {space}, but policies act in a Discrete space or a Box of floats with "
        "finite bounds; use a wrapper that makes one."
    )


def _first_reward(episodes: Episodes, num_actions: int, seed: int, title: str) -> np.ndarray:
    try:
        episodes.start(seed)
        return episodes.advance(np.zeros(num_actions, np.float32))[1]
    except Exception as error:
        raise InputError(
            f"the environment of task {title!r} cannot take its first step ({_said(error)}); reset and step must work, "
            "and every objective be a number from a step's info."
        ) from error


def _check_observe(name: str, observe: Callable[[Any], Any], env: Any) -> None:
    try:
        observe(env)
    except Exception as error:
        raise InputError(
            f"feature {name!r} cannot be observed ({_said(error)}); observe must be a function of the environment."
        ) from error


def _is_robot(env: Any) -> bool:
    return hasattr(getattr(env.unwrapped, "data", None), "xquat") and hasattr(env.unwrapped, "dt")


def _control_rate(env: Any) -> float | None:
    seconds = getattr(env.unwrapped, "dt", None)
    return round(1 / float(seconds), 3) if isinstance(seconds, (int, float)) and seconds > 0 else None


def _layout(env: Any, num_obs: int, num_actions: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What each observation is and which joint each action moves, of Gymnasium's robots; nothing for others."""
    structure = getattr(env.unwrapped, "observation_structure", None)
    if not _is_robot(env) or not isinstance(structure, Mapping):
        return (), ()
    model = env.unwrapped.model
    position, velocity = [], []
    for i in range(model.njnt):
        name = model.joint(i).name or f"joint {i}"
        if len(model.joint(i).qpos0) == 7:  # it moves freely
            position += [f"{name} {part}" for part in ("x", "y", "z", *(f"quaternion {axis}" for axis in "wxyz"))]
            velocity += [f"{name} {part} velocity" for part in ("x", "y", "z", "roll", "pitch", "yaw")]
        else:
            position.append(name)
            velocity.append(f"{name} velocity")
    parts = {"qpos": position[int(structure.get("skipped_qpos", 0)) :], "qvel": velocity, "skipped_qpos": []}
    seen = [
        name
        for part, number in structure.items()
        for name in parts.get(part, [f"{part} {i}" for i in range(int(number))])
    ]
    moved = [model.joint(int(model.actuator_trnid[i, 0])).name or f"actuator {i}" for i in range(model.nu)]
    return tuple(seen) if len(seen) == num_obs else (), tuple(moved) if len(moved) == num_actions else ()


def _names(objectives: Objectives | None, reward_shape: tuple[int, ...], title: str) -> tuple[str, ...]:
    if isinstance(objectives, Mapping):
        if reward_shape != (len(objectives),):
            raise InputError(f"an objective of task {title!r} is not one number; its function must return one.")
        return tuple(objectives)
    if len(reward_shape) != 1:
        raise InputError(
            f"the reward of task {title!r} is one number; give objectives by name, each a field of a step's info or a "
            f"function of it, such as {EXAMPLE}."
        )
    (number,) = reward_shape
    if objectives is None:
        return tuple(f"reward {i}" for i in range(number))
    if len(objectives) != number:
        raise InputError(
            f"objectives is {list(objectives)}, but task {title!r} has {number} rewards; give {number} names."
        )
    return tuple(objectives)


def _check_world(env_id: Any, features: Any, objectives: Any, env_options: Any) -> None:
    if not isinstance(env_id, str) and not callable(env_id):
        raise InputError(f"env_id is {env_id!r}; give an id such as 'mo-hopper-v5', or a function that makes one.")
    if not isinstance(features, Mapping):
        raise InputError(f"features is {features!r}; give a Feature for each name, such as those of moqd.features.")
    for name, feature in features.items():
        if not isinstance(feature, Feature):
            raise InputError(
                f"features[{name!r}] is {feature!r}; give one of moqd.features, or your own: "
                "moqd.features.Feature(lambda trajectory: ..., bounds=(0, 1))."
            )
        if not callable(feature.measure) or not (feature.observe is None or callable(feature.observe)):
            raise InputError(f"features[{name!r}] is {feature!r}; its measure and observe must be functions.")
    if isinstance(objectives, Mapping):
        for name, value in objectives.items():
            if not isinstance(value, str) and not callable(value):
                raise InputError(f"objectives[{name!r}] is {value!r}; give a field of info or a function of info.")
    elif objectives is not None and (isinstance(objectives, str) or not isinstance(objectives, Sequence)):
        raise InputError(f"objectives is {objectives!r}; give a list of names, or functions of info: {EXAMPLE}.")
    if env_options is not None and not isinstance(env_options, Mapping):
        raise InputError(f"env_options is {env_options!r}; give options of the environment by name.")


def _check_numbers(episode_length: Any, hidden_sizes: Any, resamples: Any, seed: Any) -> None:
    for name, value in (("episode_length", episode_length), ("resamples", resamples)):
        if value is not None and not is_count(value):
            raise InputError(f"{name} is {value!r}; give a whole number of at least 1, or None.")
    if isinstance(hidden_sizes, str) or not isinstance(hidden_sizes, Sequence) or not all(map(is_count, hidden_sizes)):
        raise InputError(f"hidden_sizes is {hidden_sizes!r}; give a list of whole numbers of at least 1.")
    if not is_count(seed, 0):
        raise InputError(f"seed is {seed!r}; give a whole number of at least 0.")


def _said(error: Exception) -> str:
    """Its name and the first line of its message."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), 'no message')}"
