"""Actor injection: the preference-conditioned actor as policies of the population."""

import jax

from moqd.core.networks import MLP, fold_preference
from moqd.core.types import Preference


def inject(actor: MLP, preference: Preference) -> MLP:
    """A policy for each preference: the actor folded at it."""
    return jax.vmap(fold_preference, in_axes=(None, 0))(actor, preference)
