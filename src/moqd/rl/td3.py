"""TD3 with an actor and vector critics that are conditioned on a preference, on a feature, or on both.

TD3: Fujimoto, van Hoof & Meger, "Addressing Function Approximation Error in Actor-Critic Methods" (2018). Here a critic
Q(s, a | w) has one value per objective, and all losses are on w.Q. An agent whose networks have no inputs for the
preference and whose critics have one value is ordinary TD3; its preference is 1. With an aim d, a feature that the
policy should have, they are Q(s, a | d, w) and pi(s | d, w).
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from moqd.core import preferences
from moqd.core.networks import MLP, Policy, apply_mlp, apply_policy, descend, init_mlp
from moqd.core.types import Feature, Key, Preference
from moqd.rl.buffer import Steps
from moqd.rl.running_stats import RunningStats, empty_stats, standardise


@dataclass(frozen=True, kw_only=True)
class TD3Config:
    """How actor and critics learn; the defaults are the paper's."""

    critic_steps: int = 300
    """Training steps of the critics per iteration."""
    minibatch: int = 256
    """Transitions per training step and per step of the policy-gradient variation."""
    critic_hidden_sizes: tuple[int, ...] = (256, 256)
    """Hidden layers of each critic. The actor has the hidden layers of the policies, so that it can be injected."""
    critic_learning_rate: float = 3e-4
    """Adam's step size for the critics."""
    actor_learning_rate: float = 3e-4
    """Adam's step size for the actor."""
    discount: float = 0.99
    """Discount factor of the critics."""
    tau: float = 0.005
    """Soft update: the share by which target networks move towards the trained ones."""
    policy_noise: float = 0.2
    """Standard deviation of the noise on the actions of the target."""
    noise_clip: float = 0.2
    """Bound to which this noise is clipped."""
    policy_delay: int = 2
    """Training steps of the critics for each step of the actor."""


class Agent(NamedTuple):
    """Everything that learns. The two critics are stacked along the first axis of every leaf."""

    actor: MLP
    critics: MLP
    target_actor: MLP
    target_critics: MLP
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState

    @property
    def first_critic(self) -> MLP:
        return jax.tree.map(lambda leaf: leaf[0], self.critics)


class Losses(NamedTuple):
    """Means over the training of one iteration; not finite if any parameter is not."""

    critic: Float[Array, ""]
    actor: Float[Array, ""]
    mean_q: Float[Array, ""]
    """The mean of w.Q1 over the transitions trained on."""


def init_agent(
    key: Key, policy: Policy, num_objectives: int, config: TD3Config, *, conditioned: bool, num_features: int = 0
) -> Agent:
    """An untrained agent; `conditioned` says whether its networks see the preference, `num_features` how long the aims
    are that they see."""
    key_actor, key_critics = jax.random.split(key)
    num_inputs = policy.num_obs + num_features + (num_objectives if conditioned else 0)
    actor = init_mlp(key_actor, (num_inputs, *policy.hidden_sizes, policy.num_actions))
    sizes = (num_inputs + policy.num_actions, *config.critic_hidden_sizes, num_objectives)
    critics = jax.vmap(lambda key: init_mlp(key, sizes))(jax.random.split(key_critics))
    actor_optimiser, critic_optimiser = _optimisers(config)
    return Agent(
        actor=actor,
        critics=critics,
        # Copies, because a donated agent must own everything in it.
        target_actor=jax.tree.map(jnp.array, actor),
        target_critics=jax.tree.map(jnp.array, critics),
        actor_optimiser=actor_optimiser.init(actor),
        critic_optimiser=critic_optimiser.init(critics),
    )


def act(
    actor: MLP, obs: Float[Array, "batch obs"], preference: Preference, aim: Feature | None = None
) -> Float[Array, "batch act"]:
    """pi(s | w), or pi(s | d, w) with an aim d."""
    return apply_policy(actor, _inputs(actor[0].kernel.shape[0], preference, obs, aim))


def value(
    critics: MLP,
    obs: Float[Array, "batch obs"],
    action: Float[Array, "batch act"],
    preference: Preference,
    aim: Feature | None = None,
) -> Float[Array, "critics batch"]:
    """w.Q(s, a | w) for each of the stacked critics, or w.Q(s, a | d, w) with an aim d."""
    inputs = _inputs(critics[0].kernel.shape[1], preference, obs, action, aim)
    return jnp.einsum("cbm,bm->cb", jax.vmap(apply_mlp, in_axes=(0, None))(critics, inputs), preference)


def train(
    key: Key, agent: Agent, minibatches: Steps, config: TD3Config, obs_stats: RunningStats | None = None
) -> tuple[Agent, Losses]:
    """One step of the critics for every minibatch (the first axis), and of the actor for every `policy_delay`-th.

    Rewards must already be standardised. Each transition gets its own preference, uniform on the simplex; its aim, if
    there is one, comes with it. The critics see observations standardised by `obs_stats`; the actor sees raw ones.
    """
    seen = partial(standardise, empty_stats(minibatches.obs.shape[-1]) if obs_stats is None else obs_stats)
    actor_optimiser, critic_optimiser = _optimisers(config)

    def critic_step(agent: Agent, steps: Steps, preference: Preference, noise: Array) -> tuple[Agent, Array, Array]:
        next_action = jnp.clip(act(agent.target_actor, steps.next_obs, preference, steps.aim) + noise, -1, 1)
        next_values = value(agent.target_critics, seen(steps.next_obs), next_action, preference, steps.aim)
        # Termination (a fall) cuts the bootstrap; a time limit does not.
        future = jnp.where(steps.terminated, 0, config.discount * jnp.min(next_values, axis=0))
        target = jnp.sum(preference * steps.reward, axis=-1) + future

        def loss_of(critics: MLP) -> tuple[Array, Array]:
            predicted = value(critics, seen(steps.obs), steps.action, preference, steps.aim)
            error = predicted - target[None]
            return jnp.sum(jnp.mean(error**2, axis=1)), jnp.mean(predicted[0])

        (loss, mean_q), gradient = jax.value_and_grad(loss_of, has_aux=True)(agent.critics)
        critics, optimiser_state = descend(critic_optimiser, gradient, agent.critic_optimiser, agent.critics)
        moved = agent._replace(
            critics=critics,
            critic_optimiser=optimiser_state,
            target_critics=optax.incremental_update(critics, agent.target_critics, config.tau),
        )
        return moved, loss, mean_q

    def actor_step(agent: Agent, steps: Steps, preference: Preference) -> tuple[Agent, Array]:
        critic = jax.tree.map(lambda leaf: leaf[:1], agent.critics)

        def loss_of(actor: MLP) -> Array:
            action = act(actor, steps.obs, preference, steps.aim)
            return -jnp.mean(value(critic, seen(steps.obs), action, preference, steps.aim))

        loss, gradient = jax.value_and_grad(loss_of)(agent.actor)
        actor, optimiser_state = descend(actor_optimiser, gradient, agent.actor_optimiser, agent.actor)
        moved = agent._replace(
            actor=actor,
            actor_optimiser=optimiser_state,
            target_actor=optax.incremental_update(actor, agent.target_actor, config.tau),
        )
        return moved, loss

    def step(
        agent: Agent, inputs: tuple[Int[Array, ""], Steps, Preference, Array]
    ) -> tuple[Agent, tuple[Array, Array, Array]]:
        number, steps, preference, noise = inputs
        agent, critic_loss, mean_q = critic_step(agent, steps, preference, noise)
        agent, actor_loss = jax.lax.cond(
            number % config.policy_delay == 0,
            lambda agent: actor_step(agent, steps, preference),
            lambda agent: (agent, jnp.zeros(())),
            agent,
        )
        return agent, (critic_loss, actor_loss, mean_q)

    key_preference, key_noise = jax.random.split(key)
    preference = preferences.uniform(key_preference, minibatches.terminated.size, minibatches.reward.shape[-1])
    noise = config.policy_noise * jax.random.normal(key_noise, minibatches.action.shape)
    number = jnp.arange(minibatches.terminated.shape[0])
    agent, (critic_loss, actor_loss, mean_q) = jax.lax.scan(
        step,
        agent,
        (
            number,
            minibatches,
            preference.reshape(minibatches.reward.shape),
            jnp.clip(noise, -config.noise_clip, config.noise_clip),
        ),
    )
    sound = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(agent)]))
    actor_loss = jnp.sum(actor_loss) / jnp.sum(number % config.policy_delay == 0).astype(jnp.float32)
    return agent, Losses(
        critic=jnp.where(sound, jnp.mean(critic_loss), jnp.nan),
        actor=actor_loss,
        mean_q=jnp.mean(mean_q),
    )


def _optimisers(config: TD3Config) -> tuple[optax.GradientTransformation, optax.GradientTransformation]:
    """The optimisers of the actor and of the critics."""
    return optax.adam(config.actor_learning_rate), optax.adam(config.critic_learning_rate)


def _inputs(
    num_inputs: int, preference: Preference, *parts: Float[Array, "batch _"] | None
) -> Float[Array, "batch inputs"]:
    """The inputs of a network, including the preference if it has inputs for it."""
    given = [part for part in parts if part is not None]
    conditioned = num_inputs > sum(part.shape[-1] for part in given)
    return jnp.concatenate([*given, preference] if conditioned else given, axis=-1)
