"""MOME-DCRL: one actor for every feature in every trade-off. It is MOME-P2C whose networks see a feature as well, as in

DCRL-ME: Faldor, Chalumeau, Flageat & Cully, "Synergizing Quality-Diversity with Descriptor-Conditioned Reinforcement
Learning" (2024), of which it is made with one objective, the sum, and one place in every cell (see dcrl_me.py).

    initialise archive, actor, critics and replay buffer; evaluate random policies
    repeat
        select parents: a cell uniformly, in it a member of the front by crowding distance
        policy-gradient variation of b_p parents, each towards its own feature and a sampled preference
        Iso+LineDD variation of b_g parents
        the actor, folded at n_a features of the archive and sampled preferences
        evaluate; store transitions with the feature that was aimed for and the one that was achieved
        train actor and critics on rewards times how near the two are
        crowding-based addition to the archive

Deviations: see docs/deviations.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from moqd.algorithms.algorithm import (
    Algorithm,
    Draw,
    archive_for,
    concatenate,
    init_key,
    offspring_of,
    random_offspring,
)
from moqd.algorithms.gradient import (
    WORST,
    Experience,
    GradientConfig,
    build_operators,
    check_batches,
    critic_for_variation,
    empty_experience,
    learning_metrics,
    policy_of,
    recall,
    remember,
)
from moqd.core import preferences
from moqd.core.archive import Archive
from moqd.core.networks import MLP
from moqd.core.parts import part
from moqd.core.types import Evaluation, Feature, Info, Key, Offspring, Preference, Source
from moqd.io.errors import InputError
from moqd.rl.buffer import Steps
from moqd.rl.running_stats import standardise
from moqd.rl.td3 import Agent, Losses, init_agent, train
from moqd.tasks.task import Task
from moqd.variation.actor_injection import inject
from moqd.variation.mixture import Credit
from moqd.variation.policy_gradient import improve


@dataclass(frozen=True, kw_only=True)
class MomeDcrlConfig(GradientConfig):
    """Hyper-parameters of MOME-DCRL: those of the MOME-P2C paper, and two of DCRL-ME."""

    actor_batch: int = field(default=64, metadata={"least": 0})
    """Offspring per iteration that are the actor at the feature of a solution of the archive, and at a preference."""
    similarity_length: float = 0.1
    """How fast rewards fall with the distance between the feature achieved and the one aimed for: exp(-distance /
    length), in units of the ranges of the features."""
    injection: bool = True
    """Whether the actor's offspring may enter the archive (DCRL-ME), or are only learned from (DCG-ME)."""


class MomeDcrlState(NamedTuple):
    archive: Archive
    agent: Agent
    experience: Experience
    credit: Credit | None = None
    """Of the operators of Iso+LineDD's place, where their shares adapt."""


def mome_dcrl(name: str, config: MomeDcrlConfig, task: Task) -> Algorithm:
    policy, num_objectives, num_features = policy_of(name, task, config), task.num_objectives, task.num_features
    select, vary, credited, initial_credit, recall_obs, add = build_operators(config, task)
    batch = config.pg_batch + config.ga_batch + config.actor_batch
    _check(name, config, task)

    @jax.jit
    def inject_actor(key: Key, actor: MLP, aim: Feature) -> Offspring:
        preference = preferences.uniform_and_one_hot(key, config.actor_batch, num_objectives)
        genotype = policy_for(actor, preference, aim, task)
        return complete(offspring_of(Source.ACTOR, genotype, preference), aim)

    def complete(offspring: Offspring, aim: Feature | None = None) -> Offspring:
        size = offspring.source.shape[0]
        enters = jnp.ones(size, bool) if config.injection else offspring.source != int(Source.ACTOR)
        return offspring._replace(
            aim=jnp.full((size, num_features), jnp.nan, jnp.float32) if aim is None else aim, enters=enters
        )

    def init(key: Key) -> tuple[MomeDcrlState, Offspring]:
        offspring = complete(random_offspring(key, task, batch))
        conditioned = num_objectives > 1  # there is nothing to prefer otherwise
        return MomeDcrlState(
            archive=archive_for(task, offspring.genotype, num_cells=config.num_cells, front_length=config.front_length),
            agent=init_agent(
                *(init_key(key, Draw.AGENT), policy, num_objectives, config),
                conditioned=conditioned,
                num_features=num_features,
            ),
            experience=empty_experience(policy, num_objectives, config, num_features),
            credit=initial_credit(),
        ), offspring

    @part("policy_gradient_variation")
    def vary_by_gradient(keys: Sequence[Key], state: MomeDcrlState) -> list[Offspring]:
        if config.pg_batch == 0:
            return []
        key_select, key_preference, key_obs = keys
        parents = select(key_select, state.archive, config.pg_batch, True)
        preference = preferences.uniform(key_preference, config.pg_batch, num_objectives)
        obs = recall_obs(key_obs, state.experience.buffer)
        critic, rate = critic_for_variation(state.agent, state.experience), config.policy_learning_rate
        aim = parents.feature
        assert aim is not None
        genotype = improve(parents.genotype, preference, critic, obs, learning_rate=rate, aim=scaled(aim, task))
        return [complete(offspring_of(Source.PG, genotype, preference), aim)]

    def ask(key: Key, state: MomeDcrlState) -> Offspring:
        *keys_pg, key_ga, key_line, key_aim, key_actor = jax.random.split(key, 7)
        offspring = vary_by_gradient(keys_pg, state)
        offspring += map(complete, vary(key_ga, key_line, state.archive, state.credit, config.ga_batch))
        if config.actor_batch:
            aim = select(key_aim, state.archive, config.actor_batch, True).feature
            offspring.append(inject_actor(key_actor, state.agent.actor, aim))
        return concatenate(*offspring)

    @part("training")
    def learn(keys: Sequence[Key], agent: Agent, experience: Experience) -> tuple[Agent, Losses]:
        key_recall, key_train = keys
        minibatches = rewarded_for_aim(recall(key_recall, experience, config), experience, config)
        return train(key_train, agent, minibatches, config, experience.obs_stats)

    def tell(
        key: Key, state: MomeDcrlState, offspring: Offspring, evaluation: Evaluation
    ) -> tuple[MomeDcrlState, Info]:
        *keys_learn, key_add = jax.random.split(key, 3)
        assert offspring.aim is not None
        achieved, has_aim = scaled(evaluation.feature, task), ~jnp.isnan(offspring.aim)
        aim = jnp.where(has_aim, scaled(offspring.aim, task), achieved)
        experience = remember(state.experience, evaluation, config, aim, achieved)
        agent, losses = learn(keys_learn, state.agent, experience)
        archive, added = add(key_add, state.archive, offspring, evaluation)
        missed = distance(aim, achieved)
        aimed = evaluation.valid & (offspring.source == int(Source.ACTOR))
        mean = jnp.sum(missed, where=aimed) / jnp.maximum(jnp.sum(aimed, dtype=jnp.float32), 1)
        metrics = learning_metrics(losses, experience) | {"aim_error": mean}
        state = MomeDcrlState(archive, agent, experience, credited(state.credit, offspring, added))
        return state, Info(added, offspring.source, metrics)

    return Algorithm(name, config, init, ask, tell, needs_transitions=True, uses_devices=True)


def condition(aim: Feature, preference: Preference) -> Float[Array, "batch conditions"]:
    """What the networks see of both, with the aim scaled; of a single objective there is no preference."""
    return jnp.concatenate([aim, preference], axis=1) if preference.shape[1] > 1 else aim


def policy_for(actor: MLP, preference: Preference, feature: Feature, task: Task) -> MLP:
    """The policies that an actor is at preferences and features."""
    return inject(actor, condition(scaled(feature, task), preference))


def scaled(feature: Feature, task: Task) -> Feature:
    """Features from their bounds to [-1, 1]; beyond them they count as on them, as they do for cells."""
    low, high = np.asarray(task.feature_bounds, np.float32).T[:, None]
    return jnp.clip(2 * (feature - low) / (high - low) - 1, -1, 1)


def distance(aim: Float[Array, "*rows features"], achieved: Float[Array, "*rows features"]) -> Float[Array, "*rows"]:
    """Between scaled features, in units of their ranges."""
    return jnp.linalg.norm(aim - achieved, axis=-1) / 2


def rewarded_for_aim(steps: Steps, experience: Experience, config: MomeDcrlConfig) -> Steps:
    """Steps whose rewards count the more, the nearer their policy came to its aim.

    They are measured from about the worst on: of a negative reward, less would be better.
    """
    assert steps.aim is not None
    assert steps.achieved is not None
    stats = experience.reward_stats
    worst = standardise(stats, stats.mean - WORST * stats.scale, center=config.center_rewards)
    similarity = jnp.exp(-distance(steps.aim, steps.achieved) / config.similarity_length)
    gained = jnp.maximum(steps.reward - jnp.broadcast_to(worst, steps.reward.shape), 0)
    return steps._replace(reward=similarity[..., None] * gained)


def _check(name: str, config: MomeDcrlConfig, task: Task) -> None:
    if task.num_features == 0:
        raise InputError(
            f"algorithm {name!r} learns to reach features, but task {task.name!r} has none; use 'mome-p2c' for it."
        )
    if config.similarity_length <= 0:
        raise InputError(f"similarity_length is {config.similarity_length}; give a number above 0, such as 0.1.")
    if config.after_fall != "nothing":
        raise InputError(
            f"after_fall is {config.after_fall!r}, but rewards are measured from about the worst on here, so that a "
            "fall already forgoes them; leave it at 'nothing'."
        )
    check_batches(config.pg_batch, config.ga_batch, config.actor_batch, task.num_objectives)
