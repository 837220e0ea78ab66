"""Tasks whose solutions are policies: what those of robots and of other environments share."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped

from moqd.core.devices import compiled, is_traced, on_all, sharded
from moqd.core.networks import MLP, Policy, init_mlp
from moqd.core.types import Evaluation, Key
from moqd.io.errors import InputError
from moqd.tasks.task import Replay, Task, averaged


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


@dataclass(frozen=True, eq=False, kw_only=True)
class CompiledPolicyTask(PolicyTask):
    """Its episodes are compiled, and spread over the local devices."""

    uses_devices: ClassVar[bool] = True

    @abstractmethod
    def episodes(self, genotype: MLP, keys: Shaped[Array, "batch"] | None = None, *, record: bool) -> Evaluation:
        """The episodes of a batch of policies, from the fixed initial state or from random ones."""

    def evaluate(self, key: Key, genotype: MLP) -> Evaluation:
        """Every policy's episode, with transitions; compiled."""
        return self._evaluate(key, genotype, record=True)

    def evaluate_fitness(self, key: Key, genotype: MLP) -> Evaluation:
        return self._evaluate(key, genotype, record=False)

    def _evaluate(self, key: Key, genotype: MLP, *, record: bool) -> Evaluation:
        if is_traced():
            return self._rollout(key, genotype, record)
        return self._program[record](*on_all((key, genotype)))

    @cached_property
    def _program(self) -> Mapping[bool, Callable[[Key, MLP], Evaluation]]:
        return {record: compiled(partial(self._rollout, record=record), fused=self.fused) for record in (False, True)}

    def _rollout(self, key: Key, genotype: MLP, record: bool) -> Evaluation:
        episodes, resamples = sharded(partial(self.episodes, record=record)), self.num_resamples
        if resamples is None:
            return episodes(genotype)
        repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, resamples, axis=0), genotype)
        keys = jax.random.split(key, repeated[0].bias.shape[0])
        return averaged(episodes(repeated, keys), resamples)
