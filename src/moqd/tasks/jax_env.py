"""Tasks from environments that are written in JAX, as those of Brax and MuJoCo Playground are.

A genotype is a neural network that acts in the environment. Rewards and features are functions of the environment's
state, in which `state.obs` is what the network sees and `state.done` whether the episode has ended.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped

from moqd.core.networks import Policy, apply_policy
from moqd.core.types import Key
from moqd.io.errors import InputError
from moqd.io.options import is_count
from moqd.tasks.checks import explained, require, require_count, require_counts
from moqd.tasks.policies import control_rate
from moqd.tasks.rollout import RolloutTask, Step
from moqd.tasks.task import UNKNOWN

State: TypeAlias = Any
"""The environment's own: a pytree with `obs` and `done`."""
Measure: TypeAlias = Callable[[State], Any]
"""A number from the state after a step."""
FEATURE = "(function of the state, (lowest, highest))"


class StateFeature(NamedTuple):
    """A feature of an episode; a plain tuple of the same entries will do."""

    measure: Measure
    bounds: tuple[float, float] | None
    """(lowest, highest); None: `moqd.run` learns it."""
    of: Literal["mean", "final"] = "mean"
    """Whether the feature is the mean over the steps, or what is measured of the last state."""


def jax_env_task(
    env: Any,
    *,
    name: str,
    objectives: Mapping[str, Measure],
    features: Mapping[str, StateFeature | tuple[Any, ...]],
    episode_length: int,
    hidden_sizes: Sequence[int] = (64, 64),
    resamples: int | None = None,
    reference_point: Sequence[float] | None = None,
    minimised: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    seed: int = 0,
    action_size: int | None = None,
    initial_state: State | None = None,
    observe: Callable[[State], Any] | None = None,
) -> "JaxEnvTask":
    """A task from an environment with `reset(key)` and `step(state, action)`, both of which give a state.

    An objective is a function of the state after a step: the reward of that step. Fitness is the sum over the episode,
    which ends where `state.done` is above 0.5, or after `episode_length` steps. A feature is such a function with its
    (lowest, highest), and its mean over the steps is taken; with "final" as a third entry, the value at the end.

    Actions are in [-1, 1]. All episodes start from `initial_state`, or else from a reset with `seed`; with `resamples`,
    every policy is averaged over so many random resets. `reset` is given a raw key (uint32), which all of `jax.random`
    takes. `action_size` is that of the environment, and `observe` gives its `obs`, unless they are given.
    """
    sound = isinstance(objectives, Mapping) and all(map(callable, objectives.values()))
    require(sound, "objectives", objectives, "a function of the state for each name")
    require(isinstance(features, Mapping), "features", features, f"for each name {FEATURE}")
    if resamples is not None and initial_state is not None:
        raise InputError("both resamples and initial_state are given; give one, as resamples start at random.")
    measured = {name: _state_feature(name, entry) for name, entry in features.items()}
    return JaxEnvTask(
        env,
        name=name,
        objective_names=tuple(objectives),
        minimised=minimised,
        feature_names=tuple(measured),
        feature_bounds=tuple(feature.bounds or UNKNOWN for feature in measured.values()),
        reference_point=reference_point,
        units={} if units is None else units,
        objectives=objectives,
        features=measured,
        episode_length=episode_length,
        hidden_sizes=hidden_sizes,
        resamples=resamples,
        seed=seed,
        action_size=getattr(env, "action_size", None) if action_size is None else action_size,
        initial_state=initial_state,
        observe=observe,
    )


def _state_feature(name: str, entry: Any) -> StateFeature:
    feature = StateFeature(*entry) if isinstance(entry, (tuple, list)) and len(entry) in (2, 3) else None
    if feature is None or not callable(feature.measure) or feature.of not in ("mean", "final"):
        raise InputError(f'the feature {name!r} is {entry!r}; give {FEATURE}, and "final" after it for the last value.')
    return feature


@dataclass(frozen=True, eq=False, repr=False)
class JaxEnvTask(RolloutTask):
    """Policies in an environment that is written in JAX; made by `jax_env_task`."""

    env: Any = field(repr=False)
    _: KW_ONLY
    objectives: Mapping[str, Measure] = field(repr=False)
    features: Mapping[str, StateFeature] = field(repr=False)
    episode_length: int
    hidden_sizes: Sequence[int]
    resamples: int | None
    seed: int
    action_size: Any
    initial_state: State | None = field(repr=False)
    """Where every episode starts that is not resampled."""
    observe: Callable[[State], Any] | None = field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        sound = callable(getattr(self.env, "reset", None)) and callable(getattr(self.env, "step", None))
        require(sound, "env", self.env, "an environment with reset(key) and step(state, action)")
        require_count("episode_length", self.episode_length)
        require_count("seed", self.seed, 0)
        require_counts("hidden_sizes", self.hidden_sizes)
        require_count("resamples", self.resamples, optional=True)
        size = int(self.action_size) if isinstance(self.action_size, np.integer) else self.action_size
        what = f"the action_size of the environment of task {self.name!r}"
        require(is_count(size), what, size, "action_size=, how many numbers an action has")
        object.__setattr__(self, "action_size", size)
        self._shapes  # noqa: B018  which checks the environment

    @cached_property
    def policy(self) -> Policy:
        return Policy(
            num_obs=jax.eval_shape(self._obs, self._shapes).shape[0],
            num_actions=self.action_size,
            hidden_sizes=tuple(self.hidden_sizes),
            apply=apply_policy,
            control_rate=control_rate(self.env),
        )

    @property
    def horizon(self) -> int:
        return self.episode_length

    def begin(self, batch: int, keys: Shaped[Array, "batch"] | None) -> tuple[State, Float[Array, "batch obs"]]:
        if keys is None:
            state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), self._start)
        else:
            state = jax.vmap(self._reset)(keys)
        return state, jax.vmap(self._obs)(state)

    def step(self, state: State, action: Float[Array, "batch act"]) -> Step:
        after, obs, reward, feature, done = jax.vmap(self._step)(state, action)
        finite = jnp.all(jnp.isfinite(jnp.concatenate([obs, reward, feature], axis=1)), axis=1)
        return Step(after, obs, reward, feature, done, finite)

    @property
    def of_last_state(self) -> Bool[Array, "1 features"]:
        return jnp.asarray([[feature.of == "final" for feature in self.features.values()]], bool)

    @cached_property
    def _start(self) -> State:
        """Where all episodes start that are not resampled."""
        with jax.ensure_compile_time_eval():
            if self.initial_state is not None:
                return _of_dtypes(self.initial_state, self._shapes)
            return jax.jit(self._reset)(jax.random.key(self.seed))

    def _reset(self, key: Key) -> State:
        return _of_dtypes(self.env.reset(jax.random.key_data(key)), self._shapes)

    def _obs(self, state: State) -> Float[Array, "obs"]:
        return jnp.asarray(self._observed(state), jnp.float32)

    def _observed(self, state: State) -> Any:
        return state.obs if self.observe is None else self.observe(state)

    def _step(self, state: State, action: Float[Array, "act"]) -> tuple[Any, ...]:
        """State, observation, rewards, features and whether it is done, of one episode."""
        after = self.env.step(state, action)
        return (
            _of_dtypes(after, self._shapes),
            self._obs(after),
            _vector([reward(after) for reward in self.objectives.values()]) * self.direction,
            _vector([feature.measure(after) for feature in self.features.values()]),
            jnp.asarray(after.done, jnp.float32) > 0.5,
        )

    @cached_property
    def _shapes(self) -> State:
        """Of the state, as JAX traces one step. What of the environment or the functions does not fit is said here."""
        key = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
        is_reset = self.initial_state is None or self.resamples is not None
        state = self._shape("reset", self.env.reset, key) if is_reset else self.initial_state
        action = jax.ShapeDtypeStruct((self.action_size,), jnp.float32)
        after = self._shape("step", self.env.step, state, action)
        self._check_same_form(state, after)
        obs = self._shape("obs", self._observed, after)
        shape = getattr(obs, "shape", None)  # a dictionary has none
        if shape is None or len(shape) != 1:
            what = f"of shape {shape}" if shape else "one number" if shape == () else f"a {type(obs).__name__}"
            advice = 'give observe=, a function that makes one, such as lambda state: state.obs["state"]'
            raise InputError(f"what is observed in task {self.name!r} is {what}, not a vector; {advice}.")
        self._check_number("done", lambda state: state.done, after)
        for name, reward in self.objectives.items():
            self._check_number(f"objective {name!r}", reward, after)
        for name, feature in self.features.items():
            self._check_number(f"feature {name!r}", feature.measure, after)
        return after

    def _shape(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        advice = "an environment and its functions are written with jax.numpy."
        with explained(f"{what} of task {self.name!r} cannot be traced by JAX", advice):
            return jax.eval_shape(function, *arguments)

    def _check_number(self, what: str, measure: Measure, state: State) -> None:
        found = self._shape(what, measure, state)
        if getattr(found, "shape", None) != ():
            is_of = f"of shape {found.shape}" if hasattr(found, "shape") else f"a {type(found).__name__}"
            raise InputError(f"{what} of task {self.name!r} is {is_of}; it must be one number for each state.")

    def _check_same_form(self, state: State, after: State) -> None:
        """Of the states before and after a step; other dtypes are mended."""
        (before, form), (then, other) = (jax.tree_util.tree_flatten_with_path(tree) for tree in (state, after))
        shapes = [{jax.tree_util.keystr(path): np.shape(leaf) for path, leaf in leaves} for leaves in (before, then)]
        where = [path for path in shapes[0] | shapes[1] if shapes[0].get(path) != shapes[1].get(path)]
        if where or form != other:  # type: ignore[operator]
            what = f"step of task {self.name!r} gives a state of another form{f', in {where[0]}' if where else ''}"
            raise InputError(f"{what}; reset and step must give the same arrays, of the same shapes.")


def _vector(values: Sequence[Any]) -> Float[Array, "values"]:
    return jnp.asarray([jnp.asarray(value, jnp.float32) for value in values], jnp.float32)


def _of_dtypes(state: State, shapes: State) -> State:
    """The state with each array of the dtype that `step` gives it, which in `reset` may have been another."""
    is_key = lambda like: jnp.issubdtype(like.dtype, jax.dtypes.prng_key)  # noqa: E731
    return jax.tree.map(lambda leaf, like: leaf if is_key(like) else jnp.asarray(leaf, like.dtype), state, shapes)
