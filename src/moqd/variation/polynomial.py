"""Polynomial mutation, bounded.

Deb & Goyal, "A combined genetic adaptive search (GeneAS) for engineering design" (1996); the bounded form of Deb's own
NSGA-II code, which never leaves the bounds.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from moqd.core.types import Genes, Key
from moqd.variation.discrete import Genotypes, settle


def polynomial(
    key: Key,
    parent: Genotypes,
    genes: Genes,
    *,
    eta: float = 20.0,
    rate: float = 0.9,
    must: Bool[Array, "batch"] | None = None,
) -> Genotypes:
    """With probability `rate`, each gene changes with probability 1 / number of genes (at most one half).

    Where `must`, at least one gene changes. The larger `eta`, the smaller the steps. An integer or a choice that
    changes takes another value.
    """
    key_which, key_gene, key_step, key_settle, key_must = jax.random.split(key, 5)
    changes = jax.random.uniform(key_gene, parent.shape) < min(0.5, 1 / parent.shape[1])
    changes &= jax.random.uniform(key_which, (parent.shape[0], 1)) < rate
    if must is not None:
        one = jax.random.randint(key_must, (parent.shape[0], 1), 0, parent.shape[1])
        nothing = must & ~jnp.any(changes, axis=1)
        changes |= nothing[:, None] & (jnp.arange(parent.shape[1])[None, :] == one)
    lot = jax.random.uniform(key_step, parent.shape)
    power = 1 / (eta + 1)
    down = (2 * lot + (1 - 2 * lot) * (1 - parent) ** (eta + 1)) ** power - 1
    up = 1 - (2 * (1 - lot) + (2 * lot - 1) * parent ** (eta + 1)) ** power
    mutated = jnp.clip(parent + jnp.where(lot <= 0.5, down, up), 0, 1)
    return settle(key_settle, genes, parent, jnp.where(changes, mutated, parent), forced=changes)
