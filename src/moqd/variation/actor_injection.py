"""Actor injection: the preference-conditioned actor, turned into policies that can enter the archive."""

import jax

from moqd.core.networks import MLP, fold_preference
from moqd.core.types import Preference


def inject(actor: MLP, preference: Preference) -> MLP:
    """A policy for each preference: the actor, folded at that preference."""
    return jax.vmap(fold_preference, in_axes=(None, 0))(actor, preference)
