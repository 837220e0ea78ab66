"""The straightforward policy-gradient variation: `vmap` over the parents of a scan over minibatches.

It is what others are measured by, and the oracle of the tests of the faster one.
"""

import jax
import jax.numpy as jnp
import optax

from moqd.core.networks import MLP, apply_mlp, apply_policy, descend


def improve(parents: MLP, preference: jax.Array, critic: MLP, obs: jax.Array, *, learning_rate: float) -> MLP:
    """Parents (first axis) after one step of Adam per minibatch (first axis of `obs`), towards their preferences."""
    optimiser = optax.adam(learning_rate)

    def improve_one(policy: MLP, preference: jax.Array) -> MLP:
        def loss_of(policy: MLP, obs: jax.Array) -> jax.Array:
            weights = jnp.broadcast_to(preference, (obs.shape[0], preference.shape[0]))
            inputs = jnp.concatenate([obs, apply_policy(policy, obs), weights], axis=-1)
            return -jnp.mean(apply_mlp(critic, inputs) @ preference)

        def step(carry, obs):  # type: ignore[no-untyped-def]
            policy, state = carry
            return descend(optimiser, jax.grad(loss_of)(policy, obs), state, policy), None

        return jax.lax.scan(step, (policy, optimiser.init(policy)), obs)[0][0]

    return jax.vmap(improve_one)(parents, preference)
