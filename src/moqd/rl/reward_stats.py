"""Running mean and variance of each objective's reward, so that preferences weigh objectives of equal scale.

Batches are merged as by Chan, Golub & LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances" (1979), in shares instead of sums, which stay small however many steps are seen.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class RewardStats(NamedTuple):
    """Of all steps that ever happened."""

    number: Float[Array, ""]
    mean: Float[Array, "objectives"]
    variance: Float[Array, "objectives"]


def no_rewards(num_objectives: int) -> RewardStats:
    return RewardStats(jnp.zeros((), jnp.float32), jnp.zeros(num_objectives), jnp.zeros(num_objectives))


def update(
    stats: RewardStats, reward: Float[Array, "batch time objectives"], valid: Bool[Array, "batch time"]
) -> RewardStats:
    """With the rewards of the steps that happened."""
    happened = valid[..., None]
    new = jnp.sum(valid, dtype=jnp.float32)
    mean = jnp.sum(reward, axis=(0, 1), where=happened) / jnp.maximum(new, 1)
    variance = jnp.sum((reward - mean[None, None]) ** 2, axis=(0, 1), where=happened) / jnp.maximum(new, 1)
    number = stats.number + new
    share = new / jnp.maximum(number, 1)
    shift = mean - stats.mean
    return RewardStats(
        number=number,
        mean=stats.mean + share * shift,
        variance=(1 - share) * stats.variance + share * variance + share * (1 - share) * shift**2,
    )


def standardise(
    stats: RewardStats, reward: Float[Array, "*rows objectives"], *, center: bool = True
) -> Float[Array, "*rows objectives"]:
    """Rewards of variance 1, and of mean 0 if they are centred; an objective that never varied keeps its scale."""
    scale = jnp.where(stats.variance > 0, jnp.sqrt(stats.variance), 1)
    shift = stats.mean if center else jnp.zeros_like(stats.mean)
    return (reward - jnp.broadcast_to(shift, reward.shape)) / jnp.broadcast_to(scale, reward.shape)
