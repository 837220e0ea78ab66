"""Actor injection: the conditioned actor, turned into policies that can enter the archive."""

import jax
from jaxtyping import Array, Float

from moqd.core.networks import MLP, fold_preference


def inject(actor: MLP, preference: Float[Array, "batch conditions"]) -> MLP:
    """A policy for each preference (or feature, or both): the actor, folded there."""
    return jax.vmap(fold_preference, in_axes=(None, 0))(actor, preference)
