"""Iso+LineDD.

Vassiliades & Mouret, "Discovering the elite hypervolume by leveraging interspecies correlation" (2018).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from moqd.core.types import Genotype, Key


def iso_line(
    key: Key,
    parent: Genotype,
    other: Genotype,
    *,
    iso_sigma: float,
    line_sigma: float,
    bounds: tuple[float, float] | None = None,
) -> Genotype:
    """Each parent moved by isotropic noise and along the line to another, by one random amount for the whole genotype.

    With `bounds`, values outside are clipped.
    """
    key_iso, key_line = jax.random.split(key)
    leaves, structure = jax.tree.flatten(parent)
    keys_iso = jax.tree.unflatten(structure, list(jax.random.split(key_iso, len(leaves))))
    along = line_sigma * jax.random.normal(key_line, (leaves[0].shape[0],))

    def vary(key: Key, x: Array, y: Array) -> Array:
        along_leaf = along.reshape((-1,) + (1,) * (x.ndim - 1)).astype(x.dtype)
        child = x + iso_sigma * jax.random.normal(key, x.shape, x.dtype) + along_leaf * (y - x)
        return child if bounds is None else jnp.clip(child, *bounds)

    return jax.tree.map(vary, keys_iso, parent, other)
