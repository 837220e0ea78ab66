"""The six locomotion tasks of the MOME-P2C paper, on Brax's robots.

A genotype is a neural network that controls a robot. Its objectives are sums of rewards over an episode, its features
the shares of the episode in which each foot touches the ground. This is the only file that imports Brax.
"""

import contextlib
import importlib
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from moqd.core.devices import LANES, compiled, num_tiles, on_one
from moqd.core.networks import MLP, Policy, apply_policy
from moqd.io.errors import InputError, known_name
from moqd.io.extras import need
from moqd.tasks.checks import require_count
from moqd.tasks.episode import quiet, shapes_of
from moqd.tasks.policies import FREE, control_rate, joint_names
from moqd.tasks.rollout import Episodes, RolloutTask, Step
from moqd.tasks.task import Replay
from moqd.tasks.unrolled import computed, unrolled

Backend = Literal["spring", "positional", "generalized", "mjx"]
UNROLLED = ("spring", "positional")
"""The backends whose step is done with vectors over the batch; the others work on matrices: `jax.vmap` is theirs."""


@dataclass(frozen=True)
class LocomotionConfig:
    """Options of the locomotion tasks."""

    episode_length: int = 1000
    """Control steps after which an episode is cut off. Reference points scale with it."""
    hidden_sizes: Sequence[int] = (64, 64)
    """Hidden layers of the policies."""
    resamples: int | None = None
    """Random initial states over which each policy is averaged. If not given: once, from the fixed initial state."""
    backend: Backend = "spring"
    """Brax's physics: spring, positional, generalized or mjx."""


class Scene(NamedTuple):
    """A robot and what it is rewarded for."""

    robot: str
    feet: tuple[str, ...]
    """In the order of the robot's links."""
    rewards: Mapping[str, Callable[[Any], Float[Array, ""]]]
    """Of each objective, from Brax's state after a control step."""
    reference_point: tuple[float, ...]
    """For an episode of 1000 steps."""


def _metric(name: str) -> Callable[[Any], Float[Array, ""]]:
    return lambda state: state.metrics[name]


def _height(state: Any) -> Float[Array, ""]:
    return state.pipeline_state.x.pos[0, 2]


FORWARD = _metric("reward_forward")
ENERGY = _metric("reward_ctrl")  # minus a weight of the robot's times the sum of squared actions
UNITS = {
    "forward velocity": "m/s, summed over steps",
    "x velocity": "m/s, summed over steps",
    "y velocity": "m/s, summed over steps",
    "jumping height": "m, summed over steps",
    "energy": "minus control cost, summed",
}
CONTACT_UNIT = "share of steps on the ground"
ANT = ("front left foot", "front right foot", "back left foot", "back right foot")
RUN = {"forward velocity": FORWARD, "energy": ENERGY}
RUN_CHEETAH = {"forward velocity": _metric("reward_run"), "energy": ENERGY}
RUN_ANYWHERE = {"x velocity": _metric("x_velocity"), "y velocity": _metric("y_velocity"), "energy": ENERGY}
JUMP = {"forward velocity": FORWARD, "jumping height": _height, "energy": ENERGY}
SCENES = {
    "ant-2": Scene("ant", ANT, RUN, (-350, -4500)),
    "ant-3": Scene("ant", ANT, RUN_ANYWHERE, (-1200, -1200, -4500)),
    "halfcheetah-2": Scene("halfcheetah", ("back foot", "front foot"), RUN_CHEETAH, (-2000, -800)),
    "hopper-2": Scene("hopper", ("foot",), RUN, (-50, -2)),
    "hopper-3": Scene("hopper", ("foot",), JUMP, (-750, 0, -3)),
    "walker-2": Scene("walker2d", ("right foot", "left foot"), RUN, (-210, -15)),
}


def locomotion(name: str, config: LocomotionConfig) -> "LocomotionTask":
    """One of the six tasks."""
    scene = SCENES[name]
    contacts = tuple(f"{foot} contact" for foot in scene.feet)
    return LocomotionTask(
        scene,
        config,
        name=name,
        objective_names=tuple(scene.rewards),
        feature_names=contacts,
        feature_bounds=((0.0, 1.0),) * len(scene.feet),
        reference_point=tuple(value * config.episode_length / 1000 for value in scene.reference_point),
        units={reward: UNITS[reward] for reward in scene.rewards} | dict.fromkeys(contacts, CONTACT_UNIT),
    )


@dataclass(frozen=True, eq=False, repr=False)
class LocomotionTask(RolloutTask):
    """A robot that learns to move, in several objectives."""

    scene: Scene
    config: LocomotionConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("resamples", self.config.resamples, optional=True)
        known_name("backend", self.config.backend, get_args(Backend))

    @property
    def fused(self) -> bool:
        return self.config.backend in UNROLLED

    @property
    def num_resamples(self) -> int | None:
        return self.config.resamples

    def resampled(self, resamples: int) -> "LocomotionTask":
        return replace(self, config=replace(self.config, resamples=resamples))

    @cached_property
    def policy(self) -> Policy:
        position, velocity, moved = joint_names(self._robot.sys.mj_model)
        # Where a robot is, it does not observe: one number, or two where it does not move in a plane.
        unseen = 2 if self._robot.sys.mj_model.jnt_type[0] == FREE else 1
        return Policy(
            num_obs=len(position) + len(velocity) - unseen,
            num_actions=self._robot.action_size,
            hidden_sizes=tuple(self.config.hidden_sizes),
            apply=apply_policy,
            obs_names=(*position[unseen:], *velocity),
            action_names=tuple(moved),
            control_rate=control_rate(self._robot),
        )

    replay = RolloutTask.replay_one

    def replays(self, genotype: MLP) -> Iterator[Replay]:
        """Of a batch of policies, as smallest batches of it, so that they move as when they are evaluated."""
        number = genotype[0].bias.shape[0]
        for start in range(0, number, LANES):
            rows = np.minimum(np.arange(start, start + LANES), number - 1)
            some = jax.tree.map(lambda leaf, rows=rows: np.asarray(leaf)[rows], genotype)
            last, frames = jax.tree.map(np.asarray, self._record(on_one(some)))
            for lane in range(min(LANES, number - start)):
                yield self._replay(jax.tree.map(lambda leaf, lane=lane: leaf[..., lane], frames), last, lane)

    def _replay(self, frames: Any, last: Episodes, lane: int) -> Replay:
        num_steps = int(last.totals.length[lane])
        position, rotation, contact = (rows[:num_steps] for rows in frames)
        start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], _rest(self.scene.robot, self.config.backend)[0].x)
        assert last.recorded is not None
        return Replay(
            time=np.arange(num_steps + 1) * float(self._robot.dt),
            position=np.concatenate([start.pos, position]),
            rotation=np.concatenate([start.rot, rotation]),
            body_names=tuple(self._robot.sys.link_names),
            **shapes_of(self._robot.sys.mj_model),
            reward=np.asarray(last.recorded.reward)[lane, :num_steps],
            contact=contact > 0,
        )

    @cached_property
    def _record(self) -> Callable[[MLP], Any]:
        def record(policies: MLP) -> Any:
            def step(episodes: Episodes, _: None) -> Any:
                after = self.advance(policies, episodes)
                pose = after.state.x
                return after, (pose.pos, pose.rot, (after.totals.feature - episodes.totals.feature).T)

            first = self.first(policies, None, self.nothing_recorded(LANES), jnp.int32(0))
            return jax.lax.scan(step, first, length=self.horizon)

        return compiled(record, fused=self.fused)

    @property
    def horizon(self) -> int:
        return self.config.episode_length

    def num_tiles(self, rows: int) -> int:
        return num_tiles(rows)

    def begin(self, batch: int, keys: Shaped[Array, "batch"] | None) -> tuple[Any, Float[Array, "batch obs"]]:
        """In the state, the batch is the last axis."""
        if keys is None:
            state, obs = jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf[..., None], (*leaf.shape, batch)),
                _rest(self.scene.robot, self.config.backend),
            )
        else:
            with _brax():
                reset = jax.vmap(self._robot.reset, out_axes=-1)(jax.vmap(jax.random.key_data)(keys))
            state, obs = reset.pipeline_state, reset.obs
        return state, obs.T

    def step(self, state: Any, action: Float[Array, "batch act"]) -> Step:
        after, *numbers, fell = self._step(state, action.T)
        obs, reward, contact = (number.T for number in numbers)
        finite = jnp.isfinite(jnp.sum(obs, axis=1) + jnp.sum(reward, axis=1))
        return Step(after, obs, reward, contact, fell, finite)

    @cached_property
    def _step(self) -> Callable[..., Any]:
        """A control step of a batch, which is the last axis."""
        vectorise = unrolled if self.config.backend in UNROLLED else lambda f: jax.vmap(f, in_axes=-1, out_axes=-1)
        return _brax()(vectorise(self._control_step))

    def _control_step(self, state: Any, action: Float[Array, "act"]) -> tuple[Any, ...]:
        """State, observation, rewards, contacts and whether it fell, of one robot."""
        from brax.envs import State

        zero = jnp.zeros((), jnp.float32)
        after = self._robot.step(State(state, zero, zero, zero), action)
        reward = jnp.stack([reward(after) for reward in self.scene.rewards.values()])
        return after.pipeline_state, after.obs, reward, self._contact(after.pipeline_state.x), after.done > 0.5

    def _contact(self, pose: Any) -> Float[Array, "features"]:
        """1 for each foot that touches the floor."""
        from brax import contact

        found = contact.get(self._robot.sys, pose)
        first, second = found.link_idx
        touching = [
            jnp.any((found.dist <= 0) & ((first == -1) & (second == foot) | (first == foot) & (second == -1)))
            for foot in self._feet
        ]
        return jnp.stack(touching).astype(jnp.float32)

    @cached_property
    def _feet(self) -> list[int]:
        """The links that are feet: those that can touch the floor, and of these the ones so named where any are."""
        model, names = self._robot.sys.mj_model, self._robot.sys.link_names
        (floor, *_) = np.flatnonzero(model.geom_bodyid == 0)
        collides = (model.geom_contype & model.geom_conaffinity[floor]) | (
            model.geom_conaffinity & model.geom_contype[floor]
        )
        links = sorted({int(body) - 1 for body in model.geom_bodyid[collides != 0] if body > 0})
        feet = [link for link in links if "foot" in names[link]] or links
        if len(feet) != len(self.scene.feet):
            found = f"{len(feet)} links of the robot {self.scene.robot!r} can touch the floor as feet"
            raise InputError(f"{found}, but {len(self.scene.feet)} are expected; use the robot as Brax has it.")
        return feet

    @property
    def _robot(self) -> Any:
        return _robot(self.scene.robot, self.config.backend)


@cache
def _robot(name: str, backend: str) -> Any:
    with _brax(), jax.ensure_compile_time_eval():
        with _postponed("jaxopt"):  # for the generalized backend alone
            envs, mjcf = need("brax.envs", "robots", "a robot"), need("brax.io.mjcf", "robots", "a robot")

        # Brax copies every array of the model once more, for which JAX compiles a program for each shape.
        usual, mjcf.jp = mjcf.jp, SimpleNamespace(array=jnp.asarray)
        try:
            return envs.get_environment(name, backend=backend)
        finally:
            mjcf.jp = usual


@cache
def _rest(name: str, backend: str) -> tuple[Any, Float[Array | np.ndarray, "obs"]]:
    """The initial state without noise, and what is observed of it."""
    robot = _robot(name, backend)

    def reset() -> Any:
        state = robot.pipeline_init(robot.sys.init_q, jnp.zeros(robot.sys.qd_size()))
        return state, robot._get_obs(state)

    with _brax():
        if backend in UNROLLED:
            return computed(reset)
        with jax.ensure_compile_time_eval():
            return jax.jit(reset)()


class _Postponed(ModuleType):
    """Stands for a module while another one imports it; it is imported when something of it is used after that."""

    needed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name) if self.needed else Any


@contextlib.contextmanager
def _postponed(*names: str) -> Iterator[None]:
    """Where modules are imported that import these, which take their time and are not needed here."""
    modules = {name: _Postponed(name) for name in names if name not in sys.modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in modules.items():
            del sys.modules[name]
            module.needed = True


@contextlib.contextmanager
def _brax() -> Iterator[None]:
    """Where Brax's code runs: its notices and MuJoCo's log stay away, and JAX is as lenient as Brax needs it."""
    with _postponed("trimesh", "scipy.spatial"), contextlib.redirect_stdout(io.StringIO()):
        need("mujoco.mjx", "robots", "a robot")  # prints that it has no Warp; has meshes, these robots none
    with quiet(), jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
