"""MOME-PGX: Janmohamed, Pierrot & Cully, "Improving the Data Efficiency of Multi-Objective Quality-Diversity through
Gradient Assistance and Crowding Exploration" (2023).

    initialise archive and replay buffer, and an actor and critics for each objective; evaluate random policies
    repeat
        select parents: a cell uniformly, in it a member of the front by crowding distance
        for each objective: policy-gradient variation of its share of parents, and its actor itself
        Iso+LineDD variation of b_g parents
        evaluate; store transitions in the replay buffer; train each objective's actor and critics
        crowding-based addition to the archive

Deviations: see docs/deviations.md.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

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
    Experience,
    GradientConfig,
    build_operators,
    critic_for_variation,
    empty_experience,
    learning_metrics,
    policy_of,
    recall,
    remember,
)
from moqd.core import preferences
from moqd.core.archive import Archive
from moqd.core.parts import part
from moqd.core.types import Evaluation, Info, Key, Offspring, Source
from moqd.io.errors import InputError
from moqd.rl.buffer import Steps
from moqd.rl.td3 import Agent, Losses, init_agent, train
from moqd.tasks.task import Task
from moqd.variation.mixture import Credit
from moqd.variation.policy_gradient import improve


@dataclass(frozen=True, kw_only=True)
class MomePgxConfig(GradientConfig):
    """Hyper-parameters of MOME-PGX: those of the MOME-P2C paper except for `center_rewards` and `standardise_obs`."""

    pg_batch: int = field(default=128, metadata={"least": 1})
    """Policy-gradient offspring per iteration, in equal shares for the objectives; the last of each is the actor."""


class MomePgxState(NamedTuple):
    archive: Archive
    agents: Agent
    """One for each objective, stacked: all leaves have the objectives as their first axis."""
    experience: Experience
    credit: Credit | None = None
    """Of the operators of Iso+LineDD's place, where their shares adapt."""


def mome_pgx(name: str, config: MomePgxConfig, task: Task) -> Algorithm:
    policy, num_objectives = policy_of(name, task, config), task.num_objectives
    select, vary, credited, initial_credit, recall_obs, add = build_operators(config, task)
    batch = config.pg_batch + config.ga_batch
    if config.pg_batch < num_objectives:
        raise InputError(
            f"pg_batch is {config.pg_batch}, but each of the {num_objectives} objectives needs a share; give at least "
            f"{num_objectives}."
        )
    shares = np.bincount(preferences.shares(config.pg_batch, num_objectives))

    def init(key: Key) -> tuple[MomePgxState, Offspring]:
        offspring = random_offspring(key, task, batch)
        keys = jax.random.split(init_key(key, Draw.AGENT), num_objectives)
        return MomePgxState(
            archive=archive_for(task, offspring.genotype, num_cells=config.num_cells, front_length=config.front_length),
            agents=jax.vmap(lambda key: init_agent(key, policy, 1, config, conditioned=False))(keys),
            experience=empty_experience(policy, num_objectives, config),
            credit=initial_credit(),
        ), offspring

    def vary_for(objective: int, key: Key, state: MomePgxState) -> list[Offspring]:
        """The share of one objective."""
        key_select, key_obs = jax.random.split(key)
        agent = jax.tree.map(lambda leaf: leaf[objective], state.agents)
        preference = preferences.one_hot(num_objectives, num_objectives)[objective][None]
        actor = offspring_of(Source.ACTOR, jax.tree.map(lambda leaf: leaf[None], agent.actor), preference)
        num_parents = int(shares[objective]) - 1
        if num_parents == 0:
            return [actor]
        parents = select(key_select, state.archive, num_parents)
        genotype = improve(
            parents.genotype,
            jnp.ones((num_parents, 1)),  # of the only value that this critic has
            critic_for_variation(agent, state.experience),
            recall_obs(key_obs, state.experience.buffer),
            learning_rate=config.policy_learning_rate,
        )
        improved = offspring_of(Source.PG, genotype, jnp.repeat(preference, num_parents, axis=0))
        return [improved, actor]

    @part("policy_gradient_variation")
    def vary_by_gradient(key: Key, state: MomePgxState) -> list[Offspring]:
        offspring = []
        for objective, key_objective in enumerate(jax.random.split(key, num_objectives)):
            offspring += vary_for(objective, key_objective, state)
        return offspring

    def ask(key: Key, state: MomePgxState) -> Offspring:
        key_pg, key_ga, key_line = jax.random.split(key, 3)
        offspring = vary_by_gradient(key_pg, state)
        offspring += vary(key_ga, key_line, state.archive, state.credit, config.ga_batch)
        return concatenate(*offspring)

    def learn_one(key: Key, agent: Agent, experience: Experience, objective: Array) -> tuple[Agent, Losses]:
        key_recall, key_train = jax.random.split(key)
        steps: Steps = recall(key_recall, experience, config)
        own = jax.lax.dynamic_slice_in_dim(steps.reward, objective, 1, axis=-1)
        return train(key_train, agent, steps._replace(reward=own), config, experience.obs_stats)

    @part("training")
    def learn(key: Key, agents: Agent, experience: Experience) -> tuple[Agent, Losses]:
        keys, objectives = jax.random.split(key, num_objectives), jnp.arange(num_objectives)
        return jax.vmap(learn_one, in_axes=(0, 0, None, 0))(keys, agents, experience, objectives)

    def tell(key: Key, state: MomePgxState, offspring: Offspring, evaluation: Evaluation) -> tuple[MomePgxState, Info]:
        key_train, key_add = jax.random.split(key)
        experience = remember(state.experience, evaluation, config)
        agents, losses = learn(key_train, state.agents, experience)
        archive, added = add(key_add, state.archive, offspring, evaluation)
        mean = jax.tree.map(jnp.mean, losses)
        state = MomePgxState(archive, agents, experience, credited(state.credit, offspring, added))
        return state, Info(added, offspring.source, learning_metrics(mean, experience))

    return Algorithm(name, config, init, ask, tell, needs_transitions=True, uses_devices=True)
