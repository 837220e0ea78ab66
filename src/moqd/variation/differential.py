"""Differential variation.

Storn & Price, "Differential evolution: a simple and efficient heuristic for global optimization over continuous
spaces" (1997): steps are differences between other solutions, so that their size and direction adapt to the
population.
"""

import jax
import jax.numpy as jnp

from moqd.core.types import Genes, Key
from moqd.variation.discrete import Genotypes, settle


def de_rand(
    key: Key, parent: Genotypes, base: Genotypes, one: Genotypes, two: Genotypes, genes: Genes | None
) -> Genotypes:
    """DE/rand/1/bin: base + F (one - two), crossed with the parent."""
    key_factor, key_cross = jax.random.split(key)
    factor = _factor(key_factor, parent.shape[0])
    return _cross(key_cross, parent, base, base + factor * (one - two), genes)


def de_elite(
    key: Key, parent: Genotypes, elite: Genotypes, one: Genotypes, two: Genotypes, genes: Genes | None
) -> Genotypes:
    """DE/current-to-best/1/bin with an elite for the best: parent + F (elite - parent) + F (one - two), crossed."""
    key_factor, key_cross = jax.random.split(key)
    factor = _factor(key_factor, parent.shape[0])
    return _cross(key_cross, parent, elite, parent + factor * (elite - parent + one - two), genes)


def _factor(key: Key, batch: int) -> Genotypes:
    """F, drawn for each child."""
    return jax.random.uniform(key, (batch, 1), minval=0.3, maxval=0.9)


def _cross(key: Key, parent: Genotypes, other: Genotypes, donor: Genotypes, genes: Genes | None) -> Genotypes:
    """Each gene is taken from the donor with a probability that is drawn for each child; at least one gene is taken.

    A gene that would leave the bounds is drawn between the bound and the parent's value. Integers and choices that are
    taken move by their step from the other solution's value.
    """
    key_rate, key_gene, key_one, key_bound, key_settle = jax.random.split(key, 5)
    batch, number = parent.shape
    taken = jax.random.uniform(key_gene, parent.shape) < jax.random.uniform(key_rate, (batch, 1))
    taken |= jnp.arange(number)[None, :] == jax.random.randint(key_one, (batch, 1), 0, number)
    child = jnp.where(taken, donor, parent)
    if genes is None:
        return child
    bound = jnp.clip(child, 0, 1)
    within = bound + jax.random.uniform(key_bound, parent.shape) * (parent - bound)
    child = jnp.where(child == bound, child, within)
    return settle(key_settle, genes, jnp.where(taken, other, parent), child)
