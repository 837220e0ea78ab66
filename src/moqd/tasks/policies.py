"""Tasks whose solutions are policies: what those of robots and of other environments share."""

from abc import abstractmethod
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from moqd.core.networks import MLP, Policy, init_mlp
from moqd.core.types import Key
from moqd.io.errors import InputError
from moqd.tasks.task import Replay, Task


@dataclass(frozen=True, eq=False, kw_only=True)
class PolicyTask(Task):
    """A genotype is a neural network that acts in an environment."""

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """What a genotype is."""

    def init_genotype(self, key: Key, num_genotypes: int) -> MLP:
        sizes = (self.policy.num_obs, *self.policy.hidden_sizes, self.policy.num_actions)
        return jax.vmap(lambda key: init_mlp(key, sizes))(jax.random.split(key, num_genotypes))

    def replay_one(self, genotype: MLP) -> Replay:
        """By `replays`, for tasks that can; a genotype that is none of the task's gets a sentence."""
        expected = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf[0], self.init_genotype(jax.random.key(0), 1)))
        if jax.tree.map(jnp.shape, genotype) != jax.tree.map(lambda leaf: leaf.shape, expected):
            raise InputError(
                f"the genotype does not fit the policies of task {self.name!r}, whose layers have shapes "
                f"{[layer.kernel.shape for layer in expected]}; give one policy, not a batch."
            )
        (only,) = self.replays(jax.tree.map(lambda leaf: np.asarray(leaf)[None], genotype))
        return only
