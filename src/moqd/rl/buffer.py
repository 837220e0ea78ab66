"""The replay buffer: a ring of the newest transitions.

Its arrays are written in place if the buffer is donated, and only steps that happened are written.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moqd.core.types import Key, Transition


class Steps(NamedTuple):
    """Steps of an environment, one row each, in no particular order."""

    obs: Float[Array, "*rows obs"]
    action: Float[Array, "*rows act"]
    reward: Float[Array, "*rows objectives"]
    next_obs: Float[Array, "*rows obs"]
    terminated: Bool[Array, "*rows"]
    aim: Float[Array, "*rows features"] | None = None
    """The feature that the policy of the step was made for..."""
    achieved: Float[Array, "*rows features"] | None = None
    """...and the one that it had; None where nothing is conditioned on features."""


class Buffer(NamedTuple):
    """The newest steps, with raw rewards. Rows from `size` on have no meaning."""

    steps: Steps
    position: Int[Array, ""]
    """Where the next step goes."""
    size: Int[Array, ""]


def empty_buffer(
    capacity: int, *, num_obs: int, num_actions: int, num_objectives: int, num_features: int = 0
) -> Buffer:
    """With `num_features`, steps know the feature that their policy was made for, and the one that it had."""

    def column(width: int) -> Float[Array, "capacity width"]:
        return jnp.zeros((capacity, width), jnp.float32)

    return Buffer(
        steps=Steps(
            obs=column(num_obs),
            action=column(num_actions),
            reward=column(num_objectives),
            next_obs=column(num_obs),
            terminated=jnp.zeros(capacity, bool),
            aim=column(num_features) if num_features else None,
            achieved=column(num_features) if num_features else None,
        ),
        position=jnp.zeros((), jnp.int32),
        size=jnp.zeros((), jnp.int32),
    )


def capacity_of(buffer: Buffer) -> int:
    return buffer.steps.terminated.shape[0]


def insert(
    buffer: Buffer,
    transitions: Transition,
    aim: Float[Array, "batch features"] | None = None,
    achieved: Float[Array, "batch features"] | None = None,
) -> Buffer:
    """The buffer with the steps that happened added; if there are more than it holds, the last ones."""
    capacity = capacity_of(buffer)
    valid = transitions.valid.reshape(-1)
    number = jnp.cumsum(valid, dtype=jnp.int32)
    total = number[-1]
    kept = valid & (number > total - capacity)
    # Writes to index `capacity` are dropped.
    place = jnp.where(kept, (buffer.position + number - 1) % capacity, capacity)

    def write(column: Array, new: Array) -> Array:
        return column.at[place].set(new.reshape(-1, *column.shape[1:]), mode="drop", unique_indices=True)

    length = transitions.valid.shape[1]
    of_policies = (None if one is None else jnp.repeat(one[:, None], length, axis=1) for one in (aim, achieved))
    new = Steps(*transitions[:-1], *of_policies)
    return Buffer(
        steps=jax.tree.map(write, buffer.steps, new),
        position=(buffer.position + total) % capacity,
        size=jnp.minimum(buffer.size + total, capacity),
    )


def sample(key: Key, buffer: Buffer, shape: tuple[int, ...]) -> Steps:
    """Uniformly random steps, with replacement."""
    row = _random_rows(key, buffer, shape)
    return jax.tree.map(lambda column: column[row], buffer.steps)


def sample_obs(key: Key, buffer: Buffer, shape: tuple[int, ...]) -> Float[Array, "*rows obs"]:
    """Observations at uniformly random steps, with replacement."""
    return buffer.steps.obs[_random_rows(key, buffer, shape)]


def _random_rows(key: Key, buffer: Buffer, shape: tuple[int, ...]) -> Int[Array, "*rows"]:
    return jax.random.randint(key, shape, 0, jnp.maximum(buffer.size, 1))
