"""PPO with vector values, for a stack of policies that are trained together.

PPO: Schulman, Wolski, Dhariwal, Radford & Klimov, "Proximal Policy Optimization Algorithms" (2017), with the
generalised advantage estimation of Schulman et al. (2016). The value network has one value per objective; only the
advantages are weighted, as in Xu et al. (2020), so that what it has learned holds for every weight.

A policy acts by the output of its network plus Gaussian noise, whose standard deviations are learned and do not depend
on the state. Episodes are given as the environment recorded them, with the noise in their actions; the probability of
these is computed here. In a stack of learners, every leaf has the learners as its first axis.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

from moqd.core.networks import MLP, Policy, apply_mlp, apply_policy, fold_standardisation, init_mlp
from moqd.core.types import Key, Transition
from moqd.rl.running_stats import RunningStats, empty_stats, standardise, update

TINY = 1e-4
"""The least standard deviation of an observation by which it is divided."""
SMALL = 0.01
"""Scale of the last layer of a new policy, so that it begins with actions near 0 and its noise."""


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """How policies learn."""

    epochs: int = 10
    """Passes over the newest episodes per iteration."""
    minibatch: int = 64
    """Transitions per training step."""
    learning_rate: float = 3e-4
    """Adam's step size."""
    discount: float = 0.995
    """Discount factor of the values."""
    gae_lambda: float = 0.95
    """Of generalised advantage estimation: 0 trusts the values, 1 the returns of the episodes."""
    clip: float = 0.2
    """By which share the probability of an action may change before an iteration stops encouraging it."""
    entropy_bonus: float = 0.0
    """How much the entropy of the noise counts."""
    max_gradient_norm: float = 0.5
    """Gradients are shortened to this length."""
    initial_noise: float = 0.5
    """Standard deviation of the noise on the actions of a new policy."""
    value_hidden_sizes: tuple[int, ...] = (64, 64)
    """Hidden layers of the value networks."""


class Networks(NamedTuple):
    """What gradients change."""

    actor: MLP
    """Takes standardised observations."""
    log_noise: Float[Array, "act"]
    value: MLP


class Learner(NamedTuple):
    """A policy with everything that its training needs to go on."""

    networks: Networks
    optimiser: optax.OptState
    obs_stats: RunningStats
    return_stats: RunningStats
    """Of the discounted rewards that follow a step; values are in units of their standard deviations."""

    @property
    def noise(self) -> Float[Array, "*stack act"]:
        """Standard deviations of the noise on its actions."""
        return jnp.exp(self.networks.log_noise)


class Losses(NamedTuple):
    """Means over the training of one iteration; not finite if any parameter is not."""

    policy: Float[Array, ""]
    value: Float[Array, ""]


class _Rows(NamedTuple):
    """Steps to learn from."""

    obs: Float[Array, "rows obs"]
    """Standardised."""
    action: Float[Array, "rows act"]
    log_probability: Float[Array, "rows"]
    """Of the action, when it was taken."""
    advantage: Float[Array, "rows"]
    target: Float[Array, "rows objectives"]
    """Of the values."""
    valid: Bool[Array, "rows"]


def init_learner(key: Key, policy: Policy, num_objectives: int, config: PPOConfig) -> Learner:
    """An untrained one."""
    key_actor, key_value = jax.random.split(key)
    *hidden, last = init_mlp(key_actor, (policy.num_obs, *policy.hidden_sizes, policy.num_actions))
    networks = Networks(
        actor=(*hidden, last._replace(kernel=SMALL * last.kernel)),
        log_noise=jnp.full(policy.num_actions, jnp.log(config.initial_noise), jnp.float32),
        value=init_mlp(key_value, (policy.num_obs, *config.value_hidden_sizes, num_objectives)),
    )
    return Learner(
        networks, _optimiser(config).init(networks), empty_stats(policy.num_obs), empty_stats(num_objectives)
    )


def policy_of(learner: Learner) -> MLP:
    """Its policy without noise, which takes observations as they are."""
    stats = learner.obs_stats
    return fold_standardisation(learner.networks.actor, stats.mean, _spread(stats))


def train(
    key: Key, learners: Learner, episodes: Transition, weight: Float[Array, "learners objectives"], config: PPOConfig
) -> tuple[Learner, Losses]:
    """One iteration of PPO for each of a stack of learners, on its own episodes and for its own weight.

    The episodes are (learners, episodes, time, ...), made by `policy_of` with `noise`. The weights apply to rewards as
    they are. A learner without valid steps stays what it is.
    """
    learners, rows = jax.vmap(partial(_prepare, config=config))(learners, episodes, weight)
    step = partial(_step, config=config)

    def epoch(carry: tuple[Networks, optax.OptState], key: Key) -> tuple[tuple[Networks, optax.OptState], Losses]:
        # Valid steps come first, in random order, and there are only as many training steps as these need.
        lot = jax.random.uniform(key, rows.valid.shape) + jnp.where(rows.valid, 0.0, 2.0)
        size = rows.valid.shape[1]
        order = jnp.pad(
            jnp.argsort(lot, axis=1), ((0, 0), (0, -size % config.minibatch)), constant_values=size
        )  # the last minibatch is filled up with steps that do not count
        num_steps = -(-jnp.max(jnp.sum(rows.valid, axis=1)) // config.minibatch)

        def one(i: Array, carry: tuple[Networks, optax.OptState, Losses]) -> tuple[Networks, optax.OptState, Losses]:
            networks, optimiser, so_far = carry
            chosen = jax.lax.dynamic_slice_in_dim(order, i * config.minibatch, config.minibatch, axis=1)
            minibatch = jax.vmap(lambda rows, index: jax.tree.map(lambda leaf: leaf[index], rows))(rows, chosen % size)
            minibatch = minibatch._replace(valid=minibatch.valid & (chosen < size))
            networks, optimiser, losses = jax.vmap(step)(networks, optimiser, minibatch)
            return networks, optimiser, jax.tree.map(lambda a, b: a + jnp.mean(b), so_far, losses)

        none = Losses(jnp.zeros(()), jnp.zeros(()))
        networks, optimiser, total = jax.lax.fori_loop(0, num_steps, one, (*carry, none))
        mean = jax.tree.map(lambda loss: loss / jnp.maximum(num_steps, 1).astype(jnp.float32), total)
        return (networks, optimiser), mean

    keys = jax.random.split(key, config.epochs)
    (networks, optimiser), losses = jax.lax.scan(epoch, (learners.networks, learners.optimiser), keys)
    sound = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(networks)]))
    trained = learners._replace(
        networks=networks, optimiser=optimiser, obs_stats=jax.vmap(seen)(learners.obs_stats, episodes)
    )
    return trained, Losses(jnp.where(sound, jnp.mean(losses.policy), jnp.nan), jnp.mean(losses.value))


def seen(stats: RunningStats, episodes: Transition) -> RunningStats:
    """The statistics of observations with those of episodes added."""
    return update(stats, episodes.obs, episodes.valid)


def advantages(
    reward: Float[Array, "episodes time objectives"],
    value: Float[Array, "episodes time objectives"],
    next_value: Float[Array, "episodes time objectives"],
    terminated: Bool[Array, "episodes time"],
    valid: Bool[Array, "episodes time"],
    config: PPOConfig,
) -> Float[Array, "episodes time objectives"]:
    """Generalised advantages: a fall cuts the future, a time limit is bridged by the value of the last observation."""
    future = jnp.where(terminated[..., None], 0, config.discount * next_value)
    error = jnp.where(valid[..., None], reward + future - value, 0)
    return _discounted(error, config.discount * config.gae_lambda)


def log_probability(
    networks: Networks, obs: Float[Array, "*rows obs"], action: Float[Array, "*rows act"]
) -> Float[Array, "*rows"]:
    """Of actions with noise."""
    mean = apply_policy(networks.actor, obs)
    deviation = (action - mean) / jnp.broadcast_to(jnp.exp(networks.log_noise), action.shape)
    size = networks.log_noise.shape[0]
    return -0.5 * jnp.sum(deviation**2, axis=-1) - jnp.sum(networks.log_noise) - 0.5 * size * jnp.log(2 * jnp.pi)


def _prepare(
    learner: Learner, episodes: Transition, weight: Float[Array, "objectives"], config: PPOConfig
) -> tuple[Learner, _Rows]:
    networks, valid = learner.networks, episodes.valid
    return_stats = update(learner.return_stats, _discounted(_only(episodes.reward, valid), config.discount), valid)
    obs, next_obs = (
        (values - learner.obs_stats.mean[None, None]) / _spread(learner.obs_stats)[None, None]
        for values in (episodes.obs, episodes.next_obs)
    )
    value, next_value = apply_mlp(networks.value, obs), apply_mlp(networks.value, next_obs)
    reward = standardise(return_stats, episodes.reward, center=False)
    advantage = advantages(reward, value, next_value, episodes.terminated, valid, config)
    towards = jnp.einsum("etm,m->et", advantage, weight * return_stats.scale)
    number = jnp.maximum(jnp.sum(valid), 1).astype(jnp.float32)
    mean = jnp.sum(towards, where=valid) / number
    deviation = jnp.sqrt(jnp.sum((towards - mean) ** 2, where=valid) / number)
    rows = _Rows(
        obs=obs,
        action=episodes.action,
        log_probability=log_probability(networks, obs, episodes.action),
        advantage=(towards - mean) / jnp.maximum(deviation, jnp.finfo(jnp.float32).tiny),
        target=advantage + value,
        valid=valid,
    )
    flat = jax.tree.map(lambda leaf: _flat(leaf, valid), rows)
    return learner._replace(return_stats=return_stats), flat


def _step(
    networks: Networks, optimiser: optax.OptState, rows: _Rows, config: PPOConfig
) -> tuple[Networks, optax.OptState, Losses]:
    number = jnp.maximum(jnp.sum(rows.valid), 1).astype(jnp.float32)

    def loss_of(networks: Networks) -> tuple[Array, Losses]:
        ratio = jnp.exp(log_probability(networks, rows.obs, rows.action) - rows.log_probability)
        clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
        gain = jnp.minimum(ratio * rows.advantage, clipped * rows.advantage)
        error = jnp.sum((apply_mlp(networks.value, rows.obs) - rows.target) ** 2, axis=-1)
        losses = Losses(-jnp.sum(gain, where=rows.valid) / number, jnp.sum(error, where=rows.valid) / number)
        return losses.policy + 0.25 * losses.value - config.entropy_bonus * jnp.sum(networks.log_noise), losses

    gradient, losses = jax.grad(loss_of, has_aux=True)(networks)
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers and multiplies them with floats
        change, after = _optimiser(config).update(gradient, optimiser)
    moved = optax.apply_updates(networks, change), after
    trains = jnp.any(rows.valid)
    networks, optimiser = jax.tree.map(lambda new, old: jnp.where(trains, new, old), moved, (networks, optimiser))
    return networks, optimiser, losses


def _optimiser(config: PPOConfig) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(config.max_gradient_norm), optax.adam(config.learning_rate, eps=1e-5))


def _discounted(values: Float[Array, "episodes time numbers"], discount: float) -> Float[Array, "episodes time _"]:
    """The sum of what follows each step, and of the step itself."""

    def before(after: Array, now: Array) -> tuple[Array, Array]:
        total = now + discount * after
        return total, total

    _, total = jax.lax.scan(before, jnp.zeros_like(values[:, 0]), jnp.swapaxes(values, 0, 1), reverse=True)
    return jnp.swapaxes(total, 0, 1)


def _only(values: Float[Array, "episodes time numbers"], valid: Bool[Array, "episodes time"]) -> Array:
    return jnp.where(valid[..., None], values, 0)


def _flat(leaf: Array, valid: Bool[Array, "episodes time"]) -> Array:
    """Of steps of all episodes, with zeros where none happened."""
    leaf = jnp.where(valid.reshape(valid.shape + (1,) * (leaf.ndim - 2)), leaf, jnp.zeros_like(leaf))
    return leaf.reshape(valid.size, *leaf.shape[2:])


def _spread(stats: RunningStats) -> Float[Array, "numbers"]:
    return jnp.maximum(stats.scale, TINY)
