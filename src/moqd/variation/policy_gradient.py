"""Policy-gradient variation: Nilsson & Cully, "Policy gradient assisted MAP-Elites" (2021), towards preferences.

The parents do not depend on each other, so they are spread over the devices. They share every minibatch, so the critic
is applied to a few parents at once, as matrix products over (parents x minibatch) rows; the part of its first layer
that sees only the observation is computed once for them, and its last layer is scalarised by the preference beforehand.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from moqd.core.devices import is_traced, on_all, on_one, sharded
from moqd.core.networks import MLP, apply_policy, descend
from moqd.core.types import Feature, Preference

PARENTS_AT_ONCE = 2
"""On a CPU, so that the data of a step stays in the cache of a core; a GPU takes all parents at once."""


def improve(
    genotype: MLP,
    preference: Preference,
    critic: MLP,
    obs: Float[Array, "steps minibatch obs"],
    *,
    learning_rate: float,
    aim: Feature | None = None,
) -> MLP:
    """Every policy after one step of Adam for each minibatch of observations, ascending w.Q(s, pi(s) | w).

    The critic may also be conditioned on a feature, the `aim` of each policy: Q(s, a | d, w). Adam starts from a fresh
    state for each policy. Called outside of `jit`, this runs on all devices, and the result is on the first.
    """
    if is_traced():
        return _improve(genotype, preference, aim, critic, obs, learning_rate=learning_rate)
    return on_one(_program(*on_all((genotype, preference, aim, critic, obs)), learning_rate=learning_rate))


def _improve(
    genotype: MLP, preference: Preference, aim: Feature | None, critic: MLP, obs: Array, *, learning_rate: float
) -> MLP:
    def some(genotype: MLP, preference: Preference, aim: Feature | None) -> MLP:
        return _improve_together(genotype, preference, aim, critic, obs, learning_rate)

    def share(genotype: MLP, preference: Preference, aim: Feature | None) -> MLP:
        """The parents of one device."""
        parents = preference.shape[0]
        at_once = PARENTS_AT_ONCE if jax.default_backend() == "cpu" else parents

        def portions(leaf: Array) -> Array:
            return leaf.reshape(parents // at_once, at_once, *leaf.shape[1:])

        improved = jax.lax.map(lambda portion: some(*portion), jax.tree.map(portions, (genotype, preference, aim)))
        return jax.tree.map(lambda leaf: leaf.reshape(parents, *leaf.shape[2:]), improved)

    return sharded(share, multiple=PARENTS_AT_ONCE)(genotype, preference, aim)


_program = partial(jax.jit, static_argnames="learning_rate")(_improve)


def _improve_together(
    genotype: MLP, preference: Preference, aim: Feature | None, critic: MLP, obs: Array, learning_rate: float
) -> MLP:
    first, *hidden, last = critic
    num_obs, num_actions = obs.shape[-1], genotype[-1].bias.shape[-1]
    num_features = 0 if aim is None else aim.shape[-1]
    ends = np.cumsum([num_obs, num_actions, num_features])
    from_obs, from_action, from_aim, from_preference = jnp.split(first.kernel, ends)
    context = jnp.broadcast_to(first.bias, (preference.shape[0], *first.bias.shape))
    if aim is not None:
        context += aim @ from_aim
    if from_preference.shape[0]:
        context += preference @ from_preference
    readout = preference @ last.kernel.T

    def loss_of(genotype: MLP, obs: Float[Array, "minibatch obs"]) -> Float[Array, ""]:
        """Minus w.Q up to a constant: the mean over the minibatch, summed over the parents."""
        action = jax.vmap(apply_policy, in_axes=(0, None))(genotype, obs)
        shape = (*action.shape[:2], context.shape[-1])
        seen = jnp.broadcast_to((obs @ from_obs)[None], shape) + jnp.broadcast_to(context[:, None], shape)
        x = jax.nn.relu(action @ from_action + seen)
        for layer in hidden:
            x = jax.nn.relu(x @ layer.kernel + jnp.broadcast_to(layer.bias, (*shape[:2], *layer.bias.shape)))
        return -jnp.sum(x * jnp.broadcast_to(readout[:, None], x.shape)) / obs.shape[0]

    optimiser = optax.adam(learning_rate)

    def step(carry: tuple[MLP, Any], obs: Array) -> tuple[tuple[MLP, Any], None]:
        genotype, state = carry
        return descend(optimiser, jax.grad(loss_of)(genotype, obs), state, genotype), None

    return jax.lax.scan(step, (genotype, optimiser.init(genotype)), obs)[0][0]
