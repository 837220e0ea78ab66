"""Gaussian mutation."""

import jax
import jax.numpy as jnp

from moqd.core.types import Genes, Key
from moqd.variation.discrete import Genotypes, settle

SMALLEST = 0.03
"""The smallest step, as a share of the largest."""


def gaussian(key: Key, parent: Genotypes, genes: Genes | None, *, sigma: float = 0.3) -> Genotypes:
    """Normal steps, whose size is drawn for each child: log-uniform from 3 % of `sigma` to `sigma`.

    The share of genes that move is drawn for each child too: from one gene (on average) to all of them, log-uniform.
    With `genes`, steps that would leave the bounds are mirrored.
    """
    key_size, key_share, key_gene, key_step, key_settle = jax.random.split(key, 5)
    batch, number = parent.shape
    size = sigma * SMALLEST ** jax.random.uniform(key_size, (batch, 1))
    share = (1 / number) ** jax.random.uniform(key_share, (batch, 1))
    moves = jax.random.uniform(key_gene, parent.shape) < share
    child = parent + jnp.where(moves, size * jax.random.normal(key_step, parent.shape), 0)
    if genes is None:
        return child
    return settle(key_settle, genes, parent, mirror(child), forced=moves)


def mirror(unit: Genotypes) -> Genotypes:
    """Values outside the unit interval, mirrored at the bound."""
    return 1 - jnp.abs(jnp.mod(unit, 2) - 1)
