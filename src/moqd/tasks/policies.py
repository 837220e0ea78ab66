"""Tasks whose solutions are policies: what those of robots and of other environments share."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from moqd.core.networks import MLP, Policy, init_mlp
from moqd.core.types import Evaluation, Key, Transition
from moqd.io.errors import InputError
from moqd.tasks.checks import numbers
from moqd.tasks.task import Replay, Task

Noise: TypeAlias = Float[Array, "batch act"]
"""Standard deviations of the noise on the actions of each policy."""
FREE = 0
"""Of MuJoCo's types of joints: one that moves freely."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PolicyTask(Task):
    """A genotype is a neural network that acts in an environment."""

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """What a genotype is."""

    @abstractmethod
    def _evaluate(self, key: Key, genotype: MLP, noise: Noise | None = None, *, record: bool) -> Evaluation:
        """Every policy's episode, with transitions if they are to be recorded, and with noise on its actions if any."""

    def evaluate(self, key: Key, genotype: MLP) -> Evaluation:
        return self._evaluate(key, genotype, record=True)

    def evaluate_fitness(self, key: Key, genotype: MLP) -> Evaluation:
        return self._evaluate(key, genotype, record=False)

    def explore(self, key: Key, genotype: MLP, noise: Noise) -> Evaluation:
        return self._evaluate(key, genotype, noise, record=True)

    def init_genotype(self, key: Key, num_genotypes: int) -> MLP:
        sizes = (self.policy.num_obs, *self.policy.hidden_sizes, self.policy.num_actions)
        return jax.vmap(lambda key: init_mlp(key, sizes))(jax.random.split(key, num_genotypes))

    @property
    def step_sizes(self) -> tuple[int, int, int, int]:
        """Of what is recorded of a step: observation, action, reward and next observation."""
        return self.policy.num_obs, self.policy.num_actions, self.num_objectives, self.policy.num_obs

    def replay_one(self, genotype: MLP) -> Replay:
        """By `replays`, for tasks that can: the episode of one policy from the fixed initial state."""
        expected = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf[0], self.init_genotype(jax.random.key(0), 1)))
        if jax.tree.map(jnp.shape, genotype) != jax.tree.map(lambda leaf: leaf.shape, expected):
            layers = [layer.kernel.shape for layer in expected]
            advice = f"give one policy, not a batch, with layers of shapes {layers}"
            raise InputError(f"the genotype does not fit the policies of task {self.name!r}; {advice}.")
        (only,) = self.replays(jax.tree.map(lambda leaf: np.asarray(leaf)[None], genotype))
        return only


def transitions_of(columns: Sequence[Any], length: Any, terminated: Any) -> Transition:
    """Of episodes with the recorded columns, of which only the first steps happened; the last of them may terminate."""
    time, ended = jnp.arange(columns[0].shape[1])[None, :], length[:, None]
    obs, action, reward, next_obs = columns
    return Transition(obs, action, reward, next_obs, (time == ended - 1) & terminated[:, None], time < ended)


def control_rate(env: Any) -> float | None:
    """Actions per second, if the environment says its `dt`."""
    with jax.ensure_compile_time_eval():
        seconds = numbers(getattr(env, "dt", None))
    return round(1 / float(seconds), 3) if seconds.ndim == 0 and seconds > 0 else None


def joint_names(model: Any) -> tuple[list[str], list[str], list[str]]:
    """Of a MuJoCo robot: what each number of `qpos` and of `qvel` is, and which joint each action moves."""
    joints = [model.joint(i).name or f"joint {i}" for i in range(model.njnt)]
    position, velocity = [], []
    for name, kind in zip(joints, model.jnt_type, strict=True):
        if kind == FREE:
            position += [f"{name} {part}" for part in ("x", "y", "z", *(f"quaternion {axis}" for axis in "wxyz"))]
            velocity += [f"{name} {part} velocity" for part in ("x", "y", "z", "roll", "pitch", "yaw")]
        else:
            position.append(name)
            velocity.append(f"{name} velocity")
    return position, velocity, [joints[i] for i in model.actuator_trnid[:, 0]]
