"""What the algorithms with policy gradients share: their options, and the parts of selection, variation and learning.

Their `ask` is called outside of `jit`, because policy-gradient variation runs on all devices and all else on one; so
its parts are compiled here one by one. `tell` is compiled as a whole, on one device.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from moqd.algorithms.algorithm import ArchiveConfig, add_by_crowding, chance, select_or_random
from moqd.core.archive import Archive, Parents, add_uniform, select_crowding, select_uniform
from moqd.core.networks import MLP, Policy, apply_policy, fold_standardisation
from moqd.core.types import Evaluation, Feature, Key, Offspring
from moqd.io.errors import InputError, unknown_name
from moqd.rl.buffer import Buffer, Steps, capacity_of, empty_buffer, insert, sample, sample_obs
from moqd.rl.running_stats import RunningStats, empty_stats, standardise, update
from moqd.rl.td3 import Agent, Losses, TD3Config
from moqd.tasks.task import Task
from moqd.variation.mixture import Credit, VariationConfig

AfterFall = Literal["nothing", "costs", "worst"]
WORST = 2.0
"""Standard deviations below the mean at which `after_fall="worst"` charges an objective."""


@dataclass(frozen=True, kw_only=True)
class GradientConfig(TD3Config, VariationConfig, ArchiveConfig):
    """Hyper-parameters that the algorithms with policy gradients share.

    The defaults are the paper's, except for `center_rewards` and `standardise_obs`: see docs/deviations.md.
    """

    ga_batch: int = field(default=128, metadata={"least": 0})
    """Iso+LineDD offspring per iteration."""
    pg_batch: int = field(default=64, metadata={"least": 0})
    """Policy-gradient offspring per iteration."""
    pg_steps: int = 100
    """Gradient steps that make one such offspring."""
    policy_learning_rate: float = 1e-3
    """Adam's step size for these."""
    pg_minibatch: int = field(default=0, metadata={"least": 0, "before": 0})
    """Transitions per step of the policy-gradient variation; 0 means as many as in training."""
    buffer_size: int = 1_000_000
    """Capacity of the replay buffer; the oldest transitions are discarded first."""
    center_rewards: bool = False
    """Whether rewards, which are divided by their standard deviation, have their mean subtracted too."""
    standardise_obs: bool = True
    """Whether the critics see observations standardised, as rewards are (policies and actor see them as they are)."""
    after_fall: AfterFall = field(default="nothing", metadata={"before": "nothing"})
    """What the critics expect after a fall: no reward at all (the paper), costs that go on at their mean while gains
    stop, or rewards that are about the worst of those seen."""
    crowding: bool = True
    """Whether selection within a front and removal from one that is too long go by crowding distance, or uniformly."""


class Experience(NamedTuple):
    """All that was seen of the environment and is learned from."""

    buffer: Buffer
    reward_stats: RunningStats
    obs_stats: RunningStats


def policy_of(name: str, task: Task, config: GradientConfig) -> Policy:
    """What the task's policies are; without any there is nothing to take a policy gradient of."""
    if task.policy is None:
        raise InputError(
            f"algorithm {name!r} improves policies by their gradient, but the solutions of task {task.name!r} are no "
            "policies; use 'mome' for it, or a task such as 'hopper-2'."
        )
    if task.policy.apply is not apply_policy:
        raise InputError(
            f"algorithm {name!r} improves plain networks with relu and tanh, but the policies of task {task.name!r} "
            "have an `apply` of their own; use 'mome' for it, or give its policy moqd.core.networks.apply_policy."
        )
    if config.discount >= 1:
        raise InputError(f"discount is {config.discount}; give a number below 1, or values would not stay finite.")
    if config.tau > 1:
        raise InputError(f"tau is {config.tau}; give a number from 0 to 1, a share of the way to what is trained.")
    if config.after_fall not in get_args(AfterFall):
        raise unknown_name("after_fall", config.after_fall, get_args(AfterFall))
    if not config.critic_hidden_sizes:
        raise InputError("critic_hidden_sizes is empty; give at least one hidden layer, such as (256, 256).")
    return task.policy


def check_batches(pg_batch: int, ga_batch: int, actor_batch: int, num_objectives: int) -> None:
    """Of an algorithm whose offspring come from gradients, from chance and from the actor."""
    if pg_batch + ga_batch + actor_batch == 0:
        raise InputError("pg_batch, ga_batch and actor_batch are all 0; give at least one of them some offspring.")
    if 0 < actor_batch < num_objectives:
        raise InputError(
            f"actor_batch is {actor_batch}, but each of the {num_objectives} objectives is injected once; give at "
            f"least {num_objectives}, or 0 for none."
        )


def empty_experience(policy: Policy, num_objectives: int, config: GradientConfig, num_features: int = 0) -> Experience:
    """With `num_features`, the buffer knows the feature that each policy was made for, and the one that it had."""
    buffer = empty_buffer(
        config.buffer_size,
        num_obs=policy.num_obs,
        num_actions=policy.num_actions,
        num_objectives=num_objectives,
        num_features=num_features,
    )
    return Experience(buffer, empty_stats(num_objectives), empty_stats(policy.num_obs))


def remember(
    experience: Experience,
    evaluation: Evaluation,
    config: GradientConfig,
    aim: Feature | None = None,
    achieved: Feature | None = None,
) -> Experience:
    """With the steps of a batch that happened; those of failed evaluations are not to be learned from."""
    transitions = evaluation.transitions
    assert transitions is not None
    num_episodes = transitions.valid.shape[0] // evaluation.valid.shape[0]  # of one policy: over resamples
    transitions = transitions._replace(
        valid=transitions.valid & jnp.repeat(evaluation.valid, num_episodes)[:, None],
    )
    of_episodes = (None if one is None else jnp.repeat(one, num_episodes, axis=0) for one in (aim, achieved))
    obs_stats = experience.obs_stats
    if config.standardise_obs:
        obs_stats = update(obs_stats, transitions.obs, transitions.valid)
    return Experience(
        buffer=insert(experience.buffer, transitions, *of_episodes),
        reward_stats=update(experience.reward_stats, transitions.reward, transitions.valid),
        obs_stats=obs_stats,
    )


def recall(key: Key, experience: Experience, config: GradientConfig) -> Steps:
    """The minibatches of one training, with rewards standardised by the newest statistics."""
    steps = sample(key, experience.buffer, (config.critic_steps, config.minibatch))
    return steps._replace(reward=scaled_rewards(experience.reward_stats, steps.reward, steps.terminated, config))


def scaled_rewards(
    stats: RunningStats,
    reward: Float[Array, "batch time objectives"],
    terminated: Bool[Array, "batch time"],
    config: GradientConfig,
) -> Float[Array, "batch time objectives"]:
    """Rewards as the critics learn them."""
    scaled = partial(standardise, stats, center=config.center_rewards)
    reward = scaled(reward)
    if config.after_fall != "nothing":
        # A fall cuts the bootstrap, so what would follow is charged at once: the same reward at every step for ever.
        each = jnp.minimum(stats.mean, 0) if config.after_fall == "costs" else stats.mean - WORST * stats.scale
        rest = config.discount / (1 - config.discount) * scaled(each)
        reward += jnp.where(terminated[..., None], rest[None, None], 0)
    return reward


@jax.jit
def critic_for_variation(agent: Agent, experience: Experience) -> MLP:
    """The agent's first critic, such that it takes observations as they are."""
    return fold_standardisation(agent.first_critic, experience.obs_stats.mean, experience.obs_stats.scale)


def learning_metrics(losses: Losses, experience: Experience) -> dict[str, jax.Array]:
    """What the log says of learning."""
    buffer = experience.buffer
    return {
        "critic_loss": losses.critic,
        "actor_loss": losses.actor,
        "mean_q": losses.mean_q,
        "buffer_share": buffer.size.astype(jnp.float32) / capacity_of(buffer),
    }


class Operators(NamedTuple):
    """The compiled parts of `ask`, and addition."""

    select: Callable[..., Parents]
    """(key, archive, number), and True if their features are asked for."""
    vary: Callable[[Key, Key, Archive, Credit | None, int], list[Offspring]]
    """Selection and variation by chance: so many offspring, none if that is 0."""
    credited: Callable[[Credit | None, Offspring, jax.Array], Credit | None]
    """What the operators of that variation did in a batch, of which the whole is given and who of it was added."""
    initial_credit: Callable[[], Credit | None]
    recall_obs: Callable[[Key, Buffer], jax.Array]
    """The minibatches of one policy-gradient variation."""
    add: Callable[[Key, Archive, Offspring, Evaluation], tuple[Archive, jax.Array]]


def build_operators(config: GradientConfig, task: Task) -> Operators:
    select_members = select_crowding if config.crowding else select_uniform

    @partial(jax.jit, static_argnums=(2, 3))
    def select(key: Key, archive: Archive, num_parents: int, features: bool = False) -> Parents:
        some = partial(select_members, archive=archive, num_parents=num_parents, features=features)
        return select_or_random(key, task, num_parents, jnp.any(archive.valid), some, features=features)

    by_chance = chance(config, task)
    vary_selected = jax.jit(by_chance.vary)

    def vary(key_select: Key, key_vary: Key, archive: Archive, credit: Credit | None, number: int) -> list[Offspring]:
        if number == 0:
            return []
        parents = select(key_select, archive, by_chance.num_parents * number)
        return [vary_selected(key_vary, parents, credit)]

    def credited(credit: Credit | None, offspring: Offspring, added: jax.Array) -> Credit | None:
        varied = slice(config.pg_batch, config.pg_batch + config.ga_batch)
        return by_chance.credited(credit, added[varied], jax.tree.map(lambda leaf: leaf[varied], offspring))

    @jax.jit
    def recall_obs(key: Key, buffer: Buffer) -> jax.Array:
        return sample_obs(key, buffer, (config.pg_steps, config.pg_minibatch or config.minibatch))

    add = add_by_crowding if config.crowding else add_uniform
    return Operators(select, vary, credited, by_chance.initial_credit, recall_obs, add)
