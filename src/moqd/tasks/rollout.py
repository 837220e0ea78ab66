"""Episodes of policies, compiled: the loop that Brax's robots and environments written in JAX share.

A batch of episodes goes step by step until the last of them has ended; what has ended goes on moving, but nothing of it
counts. The batch is spread over the local devices, and each of them may do its rows tile by tile.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from moqd.core.devices import compiled, is_traced, on_all, sharded
from moqd.core.networks import MLP, apply_policy
from moqd.core.types import Evaluation, Key
from moqd.tasks.policies import Noise, PolicyTask, transitions_of
from moqd.tasks.task import averaged

State: TypeAlias = Any
"""The environment's own, of a whole batch: a pytree."""


class Step(NamedTuple):
    """What one action of each policy leads to."""

    state: State
    obs: Float[Array, "batch obs"]
    reward: Float[Array, "batch objectives"]
    feature: Float[Array, "batch features"]
    done: Bool[Array, "batch"]
    finite: Bool[Array, "batch"]
    """Whether all of these numbers are."""


class Totals(NamedTuple):
    """What has come of a batch of episodes so far."""

    fitness: Float[Array, "batch objectives"]
    feature: Float[Array, "batch features"]
    """Sums over the steps, or the last values."""
    length: Int[Array, "batch"]
    terminated: Bool[Array, "batch"]
    failed: Bool[Array, "batch"]
    """The environment gave a number that is not finite."""


class Recorded(NamedTuple):
    """What is recorded of every step, of all tiles."""

    obs: Float[Array, "all time obs"]
    action: Float[Array, "all time act"]
    reward: Float[Array, "all time objectives"]
    next_obs: Float[Array, "all time obs"]


class Episodes(NamedTuple):
    """Where a tile of episodes has got to."""

    time: Int[Array, ""]
    state: State
    obs: Float[Array, "batch obs"]
    alive: Bool[Array, "batch"]
    totals: Totals
    recorded: Recorded | None
    """None where it is not wanted."""
    row: Int[Array, ""]
    """The tile's first row among those that are recorded."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RolloutTask(PolicyTask):
    """Its episodes are compiled, and spread over the local devices."""

    uses_devices: ClassVar[bool] = True

    @property
    @abstractmethod
    def horizon(self) -> int:
        """Steps after which an episode is cut off."""

    @abstractmethod
    def begin(self, batch: int, keys: Shaped[Array, "batch"] | None) -> tuple[State, Float[Array, "batch obs"]]:
        """The states in which episodes begin, the fixed one or random ones, and what is observed there."""

    @abstractmethod
    def step(self, state: State, action: Float[Array, "batch act"]) -> Step:
        """One step of a batch."""

    @property
    def of_last_state(self) -> Bool[Array, "1 features"]:
        """Which features are what is measured of the last state; the others are means over the steps."""
        return jnp.zeros((1, self.num_features), bool)

    def num_tiles(self, rows: int) -> int:
        """Into how many tiles the rows of a device are divided, which are done one after the other."""
        return 1

    def _evaluate(self, key: Key, genotype: MLP, noise: Noise | None = None, *, record: bool) -> Evaluation:
        if is_traced():
            return self._rollout(key, genotype, noise, record=record)
        return self._program[record](*on_all((key, genotype, noise)))

    @cached_property
    def _program(self) -> Mapping[bool, Callable[[Key, MLP, Noise | None], Evaluation]]:
        return {record: compiled(partial(self._rollout, record=record), fused=self.fused) for record in (False, True)}

    def _rollout(self, key: Key, genotype: MLP, noise: Noise | None, *, record: bool) -> Evaluation:
        episodes, resamples = sharded(partial(self.episodes, record=record)), self.num_resamples
        deviations = None
        if noise is not None:
            key, key_noise = jax.random.split(key)
            noise = jnp.repeat(noise, resamples or 1, axis=0)
            shape = (noise.shape[0], self.horizon, noise.shape[1])
            deviations = noise[:, None] * jax.random.normal(key_noise, shape)
        if resamples is None:
            return episodes(genotype, None, deviations)
        repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, resamples, axis=0), genotype)
        keys = jax.random.split(key, repeated[0].bias.shape[0])
        return averaged(episodes(repeated, keys, deviations), resamples)

    def episodes(
        self,
        genotype: MLP,
        keys: Shaped[Array, "batch"] | None = None,
        deviations: Float[Array, "batch time act"] | None = None,
        *,
        record: bool,
    ) -> Evaluation:
        """The episodes of a batch of policies, from the fixed initial state or from random ones, tile by tile.

        With `deviations`, these are added to the actions of each step.
        """
        batch = genotype[0].bias.shape[0]
        tile = batch // self.num_tiles(batch)

        def one_tile(recorded: Recorded | None, row: Int[Array, ""]) -> tuple[Recorded | None, Totals]:
            cut = partial(jax.lax.dynamic_slice_in_dim, start_index=row, slice_size=tile)
            some, their_keys, theirs = jax.tree.map(cut, (genotype, keys, deviations))
            last = jax.lax.while_loop(
                lambda episodes: (episodes.time < self.horizon) & jnp.any(episodes.alive),
                lambda episodes: self.advance(some, episodes, theirs),
                self.first(some, their_keys, recorded, row),
            )
            return last.recorded, last.totals

        rows = jnp.arange(0, batch, tile, dtype=jnp.int32)
        recorded, of_tiles = jax.lax.scan(one_tile, self.nothing_recorded(batch) if record else None, rows)
        totals = jax.tree.map(lambda leaf: leaf.reshape(batch, *leaf.shape[2:]), of_tiles)
        mean = totals.feature / jnp.maximum(totals.length[:, None], 1).astype(jnp.float32)
        transitions = None if recorded is None else transitions_of(recorded, totals.length, totals.terminated)
        return Evaluation(
            fitness=totals.fitness,
            feature=jnp.where(self.of_last_state, totals.feature, mean),
            valid=~totals.failed,
            transitions=transitions,
            num_steps=totals.length,
        )

    def nothing_recorded(self, batch: int) -> Recorded:
        """Where the steps of a batch will be recorded."""
        return Recorded(*(jnp.zeros((batch, self.horizon, size), jnp.float32) for size in self.step_sizes))

    def first(
        self, genotype: MLP, keys: Shaped[Array, "batch"] | None, recorded: Recorded | None, row: Int[Array, ""]
    ) -> Episodes:
        batch = genotype[0].bias.shape[0]
        state, obs = self.begin(batch, keys)
        finite = jnp.all(jnp.isfinite(obs), axis=1)
        return Episodes(
            time=jnp.int32(0),
            state=state,
            obs=obs,
            alive=finite,
            totals=Totals(
                fitness=jnp.zeros((batch, self.num_objectives), jnp.float32),
                feature=jnp.zeros((batch, self.num_features), jnp.float32),
                length=jnp.zeros(batch, jnp.int32),
                terminated=jnp.zeros(batch, bool),
                failed=~finite,
            ),
            recorded=recorded,
            row=row,
        )

    def advance(
        self, genotype: MLP, episodes: Episodes, deviations: Float[Array, "batch time act"] | None = None
    ) -> Episodes:
        """One step of all episodes; those that have ended go on, but nothing of it is recorded."""
        action = taken = jax.vmap(apply_policy)(genotype, episodes.obs)
        if deviations is not None:
            action += jax.lax.dynamic_index_in_dim(deviations, episodes.time, axis=1, keepdims=False)
            taken = jnp.clip(action, -1, 1)
        step = self.step(episodes.state, taken)
        happened = episodes.alive & step.finite
        only = lambda rows: jnp.where(happened[:, None], rows, 0)  # noqa: E731

        def record(steps: Float[Array, "all time _"], rows: Float[Array, "batch _"]) -> Float[Array, "all time _"]:
            return jax.lax.dynamic_update_slice(steps, only(rows)[:, None], (episodes.row, episodes.time, 0))

        so_far, rows = episodes.totals, (episodes.obs, action, step.reward, step.obs)
        feature = jnp.where(self.of_last_state, step.feature, so_far.feature + step.feature)
        return Episodes(
            time=episodes.time + 1,
            state=step.state,
            obs=step.obs,
            alive=happened & ~step.done,
            totals=Totals(
                fitness=so_far.fitness + only(step.reward),
                feature=jnp.where(happened[:, None], feature, so_far.feature),
                length=so_far.length + happened.astype(jnp.int32),
                terminated=so_far.terminated | (happened & step.done),
                failed=so_far.failed | (episodes.alive & ~step.finite),
            ),
            recorded=None if episodes.recorded is None else Recorded(*map(record, episodes.recorded, rows)),
            row=episodes.row,
        )
