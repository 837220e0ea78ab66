"""Moves of integers and choices, whose values are equal parts of the unit interval.

A gene stands for a level: part k of n. An operator proposes a real step as for any other gene; here the step becomes a
move between levels. Integers move by the step rounded at random, so that small steps move them rarely but by at least
one, and on average as far as a real number would move. For choices, distance has no meaning: the size of the step is
the probability of taking another level.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from moqd.core.types import Genes, Key

Genotypes = Float[Array, "batch genes"]


def settle(
    key: Key,
    genes: Genes,
    parent: Genotypes,
    proposed: Genotypes,
    forced: Bool[Array, "batch genes"] | None = None,
) -> Genotypes:
    """The proposed genotypes, with integers and choices moved from the parent's level to another, or left there.

    Where `forced`, they always move. A level is stored as the middle of its part.
    """
    if not genes.is_discrete.any():
        return proposed
    key_round, key_choice, key_side = jax.random.split(key, 3)
    count = jnp.broadcast_to(jnp.maximum(genes.num_values, 1).astype(jnp.float32), parent.shape)
    forced = jnp.zeros(parent.shape, bool) if forced is None else forced
    level = _level(parent, count)
    step = (proposed - parent) * count
    up = jnp.where(step == 0, jax.random.bernoulli(key_side, shape=parent.shape), step > 0)
    size = jnp.floor(jnp.abs(step) + jax.random.uniform(key_round, parent.shape))
    size = jnp.where(forced, jnp.maximum(size, 1), size)
    moved = _reflect(level, jnp.where(up, size, -size), count)
    # Another choice: any of the others, equally likely.
    shift = 1 + jnp.floor(jax.random.uniform(key_choice, parent.shape) * jnp.maximum(count - 1, 1))
    other = jnp.mod(level + jnp.minimum(shift, jnp.maximum(count - 1, 1)), count)
    ordered = jnp.broadcast_to(genes.is_ordered, parent.shape)
    settled = (jnp.where(ordered, moved, jnp.where(size >= 1, other, level)) + 0.5) / count
    return jnp.where(jnp.broadcast_to(genes.is_discrete, parent.shape), settled, proposed)


def _level(unit: Genotypes, count: Genotypes) -> Genotypes:
    return jnp.clip(jnp.floor(unit * count), 0, count - 1)


def _reflect(level: Genotypes, step: Genotypes, count: Genotypes) -> Genotypes:
    """A move that would leave the range goes in the other direction, as far as there is room."""
    beyond = (level + step < 0) | (level + step > count - 1)
    return jnp.clip(level + jnp.where(beyond, -step, step), 0, count - 1)
