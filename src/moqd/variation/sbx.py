"""Simulated binary crossover, bounded.

Deb & Agrawal, "Simulated binary crossover for continuous search space" (1995); the bounded form of Deb's own NSGA-II
code, which never leaves the bounds.
"""

import jax
import jax.numpy as jnp

from moqd.core.types import Genes, Key
from moqd.variation.discrete import Genotypes, settle

CLOSE = 1e-7
"""Genes that differ by less are not crossed."""


def sbx(
    key: Key, first: Genotypes, second: Genotypes, genes: Genes, *, eta: float = 15.0, rate: float = 0.9
) -> Genotypes:
    """A child of each pair: it is crossed with probability `rate`, and then each gene with probability one half.

    A crossed gene is near that of one parent or the other, and the nearer the larger `eta`. For integers and choices, a
    crossed gene is the other parent's as often as its own; integers may also move beyond.
    """
    key_which, key_gene, key_spread, key_side, key_settle = jax.random.split(key, 5)
    crosses = jax.random.uniform(key_gene, first.shape) < 0.5
    crosses &= jax.random.uniform(key_which, (first.shape[0], 1)) < rate
    crosses &= jnp.abs(first - second) > CLOSE
    low, high = jnp.minimum(first, second), jnp.maximum(first, second)
    gap = jnp.maximum(high - low, CLOSE)
    lot = jax.random.uniform(key_spread, first.shape)

    def spread(room: Genotypes) -> Genotypes:
        """The distance between the children relative to that of the parents, given the room to the bound."""
        alpha = 2 - (1 + 2 * room / gap) ** -(eta + 1)
        inside = lot <= 1 / alpha
        return jnp.where(inside, lot * alpha, 1 / jnp.where(inside, 1, 2 - lot * alpha)) ** (1 / (eta + 1))

    middle = 0.5 * (low + high)
    lower = jnp.clip(middle - 0.5 * spread(low) * gap, 0, 1)
    upper = jnp.clip(middle + 0.5 * spread(1 - high) * gap, 0, 1)
    # Half of the crossed genes start from the other parent's value.
    exchanged = crosses & jax.random.bernoulli(key_side, shape=first.shape)
    near = jnp.where(exchanged, second, first)
    crossed = jnp.where(near == low, lower, upper)
    return settle(key_settle, genes, near, jnp.where(crosses, crossed, first))
