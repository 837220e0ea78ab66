"""Tasks from environments of Gymnasium and MO-Gymnasium (the extra `gym`), with neural policies.

A genotype is a neural network that acts in the environment. Its objectives are sums over an episode: of the rewards of
an environment that gives a vector of them, or of numbers in the info of every step. Whole episodes run in worker
processes, see `moqd.tasks.episode`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from moqd.core.networks import MLP, Policy, apply_policy
from moqd.core.types import Evaluation, Key
from moqd.io.errors import EvaluationError, InputError
from moqd.io.extras import need
from moqd.tasks import episode as episode_module
from moqd.tasks import features as features_module
from moqd.tasks.checks import explained, require, require_count, require_counts
from moqd.tasks.episode import Episodes, quiet
from moqd.tasks.features import Feature, Field
from moqd.tasks.policies import Noise, PolicyTask, control_rate, joint_names, transitions_of
from moqd.tasks.pool import Call, ProcessPool, check_pool
from moqd.tasks.task import UNKNOWN, Replay, averaged, validated

Noises = tuple[np.ndarray, Sequence[int]]
"""Of each episode, the standard deviations of the noise on its actions and the seed of that noise."""
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
    require_count("episode_length", episode_length, optional=True)
    require_count("resamples", resamples, optional=True)
    require_count("seed", seed, 0)
    require_counts("hidden_sizes", hidden_sizes)
    check_pool("processes", workers=workers)
    title = str(name or (env_id if isinstance(env_id, str) else getattr(env_id, "__name__", "environment")))
    options = dict(env_options or {})
    if isinstance(env_id, str) and episode_length is not None:
        options = {"max_episode_steps": episode_length, **options}
    functions = None
    if isinstance(objectives, Mapping):
        functions = [Field(value) if isinstance(value, str) else value for value in objectives.values()]
    with quiet():
        policy, limit, reward_shape, is_robot = _look_at(
            Episodes(env_id, options, functions, {}, 1), features, seed, title
        )
    length = episode_length or limit or USUAL_LENGTH
    sent = {key: (feature.measure, feature.observe) for key, feature in features.items()}
    own_units = {key: feature.unit for key, feature in features.items() if feature.unit}
    return (RobotTask if is_robot else GymnasiumTask)(
        Episodes(_sendable(env_id), options, functions, sent, length),
        policy._replace(hidden_sizes=tuple(hidden_sizes)),
        name=title,
        objective_names=_names(objectives, reward_shape, title),
        minimised=minimised,
        feature_names=tuple(features),
        feature_bounds=tuple(feature.bounds or UNKNOWN for feature in features.values()),
        reference_point=reference_point,
        units={**own_units, **(units or {})},
        episode_length=length,
        resamples=resamples,
        workers=workers,
        seed=seed,
    )


@dataclass(frozen=True, eq=False, repr=False)
class GymnasiumTask(PolicyTask):
    """Policies in an environment; made by `gymnasium_task`. An episode that fails is a failed evaluation.

    The `action` of a transition is the policy's output in [-1, 1]. In a continuous space it is scaled to the bounds of
    each action; in a discrete one there is an output for each action, and the largest is taken.
    """

    episodes: Episodes = field(repr=False)
    controller: Policy = field(repr=False)
    _: KW_ONLY
    episode_length: int
    resamples: int | None
    workers: int | None
    seed: int
    traceable: bool = False
    failures: deque[str] = field(default_factory=lambda: deque(maxlen=8), init=False, repr=False)
    """What went wrong last, newest at the end."""

    @property
    def policy(self) -> Policy:
        return self.controller

    def _evaluate(self, key: Key, genotype: MLP, noise: Noise | None = None, *, record: bool) -> Evaluation:
        batch, resamples = genotype[0].bias.shape[0], self.resamples
        noises: Noises | None = None
        if noise is not None:
            key, key_noise = jax.random.split(key)
            each = np.repeat(np.asarray(noise), resamples or 1, axis=0)
            noises = each, np.asarray(jax.random.bits(key_noise, (len(each),), jnp.uint32)).tolist()
        if resamples is None:
            return validated(self, self._episodes(genotype, np.full(batch, self.seed), record, noises))
        repeated = jax.tree.map(lambda leaf: np.repeat(leaf, resamples, axis=0), jax.device_get(genotype))
        seeds = np.asarray(jax.random.bits(key, (batch * resamples,), jnp.uint32)).astype(np.int64)
        return validated(self, averaged(self._episodes(repeated, seeds, record, noises), resamples))

    def _episodes(
        self, genotype: MLP, seeds: Int[np.ndarray, "batch"], record: bool, noises: Noises | None
    ) -> Evaluation:
        """One episode of each policy."""
        results = self._results(genotype, seeds, "steps" if record else "", noises)
        nothing = (np.zeros(self.num_objectives), np.zeros(self.num_features), 0, False)
        names = ("return", "feature", "length", "terminated")
        rows = [nothing if result is None else tuple(result[name] for name in names) for result in results]
        returned, feature, length, terminated = map(np.array, zip(*rows, strict=True))
        num_steps, transitions = jnp.asarray(length, jnp.int32), None
        if record:
            columns = [np.zeros((len(results), self.episode_length, size), np.float32) for size in self.step_sizes]
            for row, result in enumerate(results):
                if result is None:
                    continue
                obs, action, reward = result["steps"]
                for column, steps in zip(columns, (obs[:-1], action, reward * self.direction, obs[1:]), strict=True):
                    column[row, : len(steps)] = steps
            transitions = transitions_of(list(map(jnp.asarray, columns)), num_steps, jnp.asarray(terminated))
        return Evaluation(
            fitness=jnp.asarray(returned * self.direction, jnp.float32),
            feature=jnp.asarray(feature, jnp.float32),
            valid=jnp.asarray([result is not None for result in results]),
            transitions=transitions,
            num_steps=num_steps,
        )

    def _results(
        self, genotype: MLP, seeds: Int[np.ndarray, "batch"], record: str, noises: Noises | None = None
    ) -> list[dict[str, Any] | None]:
        """What the workers say of each policy's episode; None, and a note in `failures`, where it failed."""
        layers = jax.device_get(genotype)
        of = lambda row: [(kernel[row], bias[row]) for kernel, bias in layers]  # noqa: E731
        extra = [()] * len(seeds) if noises is None else [(one,) for one in zip(*noises, strict=True)]
        calls: list[Call] = [((of(row), int(seed), record, *extra[row]), {}) for row, seed in enumerate(seeds)]
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

    replay = GymnasiumTask.replay_one

    def replays(self, genotype: MLP) -> Iterator[Replay]:
        for result in self._results(genotype, np.full(genotype[0].bias.shape[0], self.seed), "poses"):
            if result is None:
                raise EvaluationError(f"an episode of task {self.name!r} cannot be replayed: {self.failures[-1]}.")
            yield Replay(**result["replay"])


def _look_at(
    episodes: Episodes, features: Mapping[str, Feature], seed: int, title: str
) -> tuple[Policy, int | None, tuple[int, ...], bool]:
    """Makes the environment in this process and takes one step in it: the policy without its hidden layers, the limit
    of an episode's steps, the shape of the reward, and whether it is a robot of MuJoCo."""
    try:
        env = _opened(episodes, title)
        num_obs, num_actions, bounds = _sizes(env, title)
        advice = "reset and step must work, and every objective be a number from a step's info."
        with explained(f"the environment of task {title!r} cannot take its first step", advice):
            episodes.start(seed)
            reward = episodes.advance(np.zeros(num_actions, np.float32))[1]
        for name, feature in features.items():
            if feature.observe is not None:
                with explained(f"feature {name!r} cannot be observed", "observe takes the environment."):
                    feature.observe(env)
        robot = env.unwrapped
        is_robot = hasattr(getattr(robot, "data", None), "xquat") and hasattr(robot, "dt")
        layout = _layout(robot, num_obs, num_actions) if is_robot else ((), ())
        policy = Policy(num_obs, num_actions, (), apply_policy, *layout, control_rate(robot), bounds)
        return policy, None if env.spec is None else env.spec.max_episode_steps, reward.shape, is_robot
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
    gymnasium = need("gymnasium", "gym", "gymnasium_task")
    what = f"the environment of task {title!r}"
    with explained(f"{what} cannot be made", "look at env_options, and at what it needs to have installed."):
        try:
            env = episodes.open()
        except gymnasium.error.UnregisteredEnv as error:
            near = get_close_matches(str(episodes.env_id), gymnasium.registry, n=3, cutoff=0.6)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "gymnasium.pprint_registry() lists all."
            raise InputError(f"unknown environment {episodes.env_id!r}; {hint}") from error
    if not isinstance(env, gymnasium.Env):
        raise InputError(f"{what} is {env!r}; its function must return a gymnasium.Env.")
    return env


def _sizes(env: Any, title: str) -> tuple[int, int, tuple[tuple[float, float], ...] | None]:
    """Of observations and of a policy's actions; and the bounds of the environment's, None if they are discrete."""
    from gymnasium.spaces import Box, Discrete, flatdim

    seen, space = env.observation_space, env.action_space
    if not seen.is_np_flattenable:
        raise InputError(f"the observations of task {title!r} are of {seen}; use a wrapper that makes vectors.")
    if isinstance(space, Discrete):
        return flatdim(seen), int(space.n), None
    if isinstance(space, Box) and space.is_bounded() and np.issubdtype(space.dtype, np.floating):
        bounds = zip(space.low.flatten().tolist(), space.high.flatten().tolist(), strict=True)
        return flatdim(seen), int(np.prod(space.shape)), tuple(bounds)
    advice = "use a wrapper that makes a Discrete space, or a Box of floats with finite bounds"
    raise InputError(f"the actions of task {title!r} are of {space}; {advice}.")


def _layout(robot: Any, num_obs: int, num_actions: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What each observation is and which joint each action moves, of Gymnasium's robots; nothing for others."""
    structure = getattr(robot, "observation_structure", None)
    if not isinstance(structure, Mapping):
        return (), ()
    position, velocity, moved = joint_names(robot.model)
    parts = {"qpos": position[int(structure.get("skipped_qpos", 0)) :], "qvel": velocity, "skipped_qpos": []}
    seen: list[str] = []
    for part, number in structure.items():
        seen += parts.get(part, [f"{part} {i}" for i in range(int(number))])
    return tuple(seen) if len(seen) == num_obs else (), tuple(moved) if len(moved) == num_actions else ()


def _names(objectives: Objectives | None, reward_shape: tuple[int, ...], title: str) -> tuple[str, ...]:
    if isinstance(objectives, Mapping):
        if reward_shape != (len(objectives),):
            raise InputError(f"an objective of task {title!r} is not one number; its function must return one.")
        return tuple(objectives)
    if len(reward_shape) != 1:
        advice = f"give objectives by name, each a field of a step's info or a function of it, such as {EXAMPLE}"
        raise InputError(f"the reward of task {title!r} is one number; {advice}.")
    (number,) = reward_shape
    if objectives is None:
        return tuple(f"reward {i}" for i in range(number))
    if len(objectives) != number:
        said = f"objectives is {list(objectives)}, but task {title!r} has {number} rewards"
        raise InputError(f"{said}; give {number} names.")
    return tuple(objectives)


def _check_world(env_id: Any, features: Any, objectives: Any, env_options: Any) -> None:
    sound = isinstance(env_id, str) or callable(env_id)
    require(sound, "env_id", env_id, "an id such as 'mo-hopper-v5', or a function that makes one")
    wanted = "a Feature for each name, such as those of moqd.features"
    require(isinstance(features, Mapping), "features", features, wanted)
    for name, feature in features.items():
        wanted = "one of moqd.features, or your own: moqd.features.Feature(lambda trajectory: ..., bounds=(0, 1))"
        sound = isinstance(feature, Feature) and callable(feature.measure)
        sound = sound and (feature.observe is None or callable(feature.observe))
        require(sound, f"features[{name!r}]", feature, wanted)
    if isinstance(objectives, Mapping):
        for name, value in objectives.items():
            sound = isinstance(value, str) or callable(value)
            require(sound, f"objectives[{name!r}]", value, "a field of info or a function of info")
    else:
        sound = objectives is None or (isinstance(objectives, Sequence) and not isinstance(objectives, str))
        require(sound, "objectives", objectives, f"a list of names, or functions of info: {EXAMPLE}")
    sound = env_options is None or isinstance(env_options, Mapping)
    require(sound, "env_options", env_options, "options of the environment by name")
