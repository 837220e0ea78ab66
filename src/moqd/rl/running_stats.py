"""Running mean and variance: of the rewards, so that preferences weigh objectives on one scale, and of observations.

Batches are merged as in Chan, Golub & LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances" (1979), but with shares instead of sums, which stay small however many steps are seen.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class RunningStats(NamedTuple):
    """Statistics over all steps so far."""

    number: Float[Array, ""]
    mean: Float[Array, "numbers"]
    variance: Float[Array, "numbers"]

    @property
    def scale(self) -> Float[Array, "numbers"]:
        """The standard deviation; 1 for numbers that never varied."""
        return jnp.where(self.variance > 0, jnp.sqrt(self.variance), 1)


def empty_stats(size: int) -> RunningStats:
    """The statistics before any step: standardising with them changes nothing."""
    return RunningStats(jnp.zeros((), jnp.float32), jnp.zeros(size), jnp.zeros(size))


def update(
    stats: RunningStats, values: Float[Array, "batch time numbers"], valid: Bool[Array, "batch time"]
) -> RunningStats:
    """The statistics with the steps that happened added."""
    new = jnp.sum(valid, dtype=jnp.float32)

    def mean_of(values: Float[Array, "batch time numbers"]) -> Float[Array, "numbers"]:
        return jnp.sum(values, axis=(0, 1), where=valid[..., None]) / jnp.maximum(new, 1)

    # Relative to one of the values, so that a number that never varies has variance 0 in spite of rounding.
    pivot = jnp.where(new > 0, values.reshape(-1, values.shape[-1])[jnp.argmax(valid)], stats.mean)
    beyond = values - pivot[None, None]
    mean_beyond = mean_of(beyond)
    mean, variance = pivot + mean_beyond, mean_of((beyond - mean_beyond[None, None]) ** 2)
    number = stats.number + new
    share = new / jnp.maximum(number, 1)
    shift = mean - stats.mean
    return RunningStats(
        number=number,
        mean=stats.mean + share * shift,
        variance=(1 - share) * stats.variance + share * variance + share * (1 - share) * shift**2,
    )


def standardise(
    stats: RunningStats, values: Float[Array, "*rows numbers"], *, center: bool = True
) -> Float[Array, "*rows numbers"]:
    """The values scaled to variance 1, and to mean 0 with `center`; numbers that never varied keep their scale."""
    shift = stats.mean if center else jnp.zeros_like(stats.mean)
    return (values - jnp.broadcast_to(shift, values.shape)) / jnp.broadcast_to(stats.scale, values.shape)
