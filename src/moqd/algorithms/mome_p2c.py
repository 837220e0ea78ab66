"""MOME-P2C: Janmohamed, Faldor, Pierrot & Cully, "Preference-Conditioned Gradient Variations for Multi-Objective
Quality-Diversity".

    initialise archive, actor, critics and replay buffer; evaluate random policies
    repeat
        select parents: a cell uniformly, in it a member of the front by crowding distance
        policy-gradient variation of b_p parents towards sampled preferences
        Iso+LineDD variation of b_g parents
        the actor, folded at n_a sampled preferences
        evaluate; store transitions in the replay buffer; train actor and critics
        crowding-based addition to the archive

The ablations are other values of `pg_preferences`, `crowding` and the three batches.
Deviations: see docs/deviations.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp

from moqd.algorithms.algorithm import (
    Algorithm,
    Draw,
    Pace,
    archive_for,
    concatenate,
    hypervolume_added,
    init_key,
    offspring_of,
    random_offspring,
)
from moqd.algorithms.effort import Effort, initial_effort, with_cost, with_generation
from moqd.algorithms.gradient import (
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
from moqd.core.archive import Archive, Parents
from moqd.core.networks import MLP
from moqd.core.parts import part
from moqd.core.preferences import Gains, no_gains
from moqd.core.types import Evaluation, Info, Key, Offspring, Preference, Source
from moqd.io.errors import InputError, unknown_name
from moqd.rl.td3 import Agent, Losses, init_agent, train
from moqd.tasks.task import Task
from moqd.variation.actor_injection import inject
from moqd.variation.mixture import Credit
from moqd.variation.policy_gradient import improve

PgPreferences = Literal["uniform", "one-hot", "parent", "mixed", "adaptive"]
ActorPreferences = Literal["uniform", "adaptive"]


@dataclass(frozen=True, kw_only=True)
class MomeP2CConfig(GradientConfig):
    """Hyper-parameters of MOME-P2C, with the paper's values except for `center_rewards` and `standardise_obs`.

    docs/deviations.md says why, and what the paper leaves open.
    """

    actor_batch: int = field(default=64, metadata={"least": 0})
    """Offspring per iteration that are the actor at a preference: one-hot for each objective, the others uniform."""
    pg_preferences: PgPreferences = "uniform"
    """What gradients aim for: uniform on the simplex, one-hot in equal shares, the preference the parent carries, half
    one-hot and half uniform (mixed), or more often what has added hypervolume (adaptive)."""
    actor_preferences: ActorPreferences = field(default="uniform", metadata={"before": "uniform"})
    """Where the actor is injected beyond the one-hot preferences: uniform on the simplex, or adaptive as above."""
    learn_every: int = field(default=1, metadata={"least": 0, "before": 1})
    """Every so many generations there are offspring of gradients and actor, and training; in the others all offspring
    are by chance. 0: as often as pays, for the time that it takes if the run has a limit in minutes, else for its
    evaluations."""
    learning_cost: float = field(default=0.0, metadata={"before": 0.0})
    """For learn_every=0: how many times as long a generation with learning takes as one without; 0: measured at the
    start of a run that has a limit in minutes, 1 in any other. The run records it."""


class MomeP2CState(NamedTuple):
    archive: Archive
    agent: Agent
    experience: Experience
    credit: Credit | None = None
    """Of the operators of Iso+LineDD's place, where their shares adapt."""
    pg_gains: Gains | None = None
    """What preferences have gained, where they adapt."""
    actor_gains: Gains | None = None
    effort: Effort | None = None
    """What learning costs and gains, where not every generation learns..."""
    losses: Losses | None = None
    """...and those of the last one that did."""


def mome_p2c(name: str, config: MomeP2CConfig, task: Task) -> Algorithm:
    policy, num_objectives = policy_of(name, task, config), task.num_objectives
    select, vary, credited, initial_credit, recall_obs, add = build_operators(config, task)
    batch = config.pg_batch + config.ga_batch + config.actor_batch
    _check(config, num_objectives)

    @jax.jit
    def sample_pg_preference(key: Key, parents: Parents, gains: Gains | None) -> Preference:
        if gains is not None:
            return preferences.adaptive(key, config.pg_batch, gains)
        if config.pg_preferences == "one-hot":
            return preferences.one_hot(config.pg_batch, num_objectives)
        if config.pg_preferences == "mixed":
            return preferences.mixed(key, config.pg_batch, num_objectives)
        if config.pg_preferences == "parent":
            return parents.preference
        return preferences.uniform(key, config.pg_batch, num_objectives)

    @jax.jit
    def inject_actor(key: Key, actor: MLP, gains: Gains | None) -> Offspring:
        if gains is None:
            preference = preferences.uniform_and_one_hot(key, config.actor_batch, num_objectives)
        else:
            preference = preferences.adaptive(key, config.actor_batch, gains)
        return offspring_of(Source.ACTOR, inject(actor, preference), preference)

    def init(key: Key) -> tuple[MomeP2CState, Offspring]:
        offspring = random_offspring(key, task, batch)
        return MomeP2CState(
            archive=archive_for(task, offspring.genotype, num_cells=config.num_cells, front_length=config.front_length),
            agent=init_agent(init_key(key, Draw.AGENT), policy, num_objectives, config, conditioned=True),
            experience=empty_experience(policy, num_objectives, config),
            credit=initial_credit(),
            pg_gains=no_gains(num_objectives) if config.pg_preferences == "adaptive" else None,
            actor_gains=no_gains(num_objectives) if config.actor_preferences == "adaptive" else None,
            effort=None if config.learn_every == 1 else initial_effort(config.learning_cost),
            losses=None if config.learn_every == 1 else Losses(*[jnp.zeros(())] * 3),
        ), offspring

    @part("policy_gradient_variation")
    def vary_by_gradient(keys: Sequence[Key], state: MomeP2CState) -> list[Offspring]:
        if config.pg_batch == 0:
            return []
        key_select, key_preference, key_obs = keys
        parents = select(key_select, state.archive, config.pg_batch)
        preference = sample_pg_preference(key_preference, parents, state.pg_gains)
        obs = recall_obs(key_obs, state.experience.buffer)
        critic = critic_for_variation(state.agent, state.experience)
        genotype = improve(parents.genotype, preference, critic, obs, learning_rate=config.policy_learning_rate)
        return [offspring_of(Source.PG, genotype, preference)]

    def ask(key: Key, state: MomeP2CState) -> Offspring:
        *keys_pg, key_ga, key_line, key_actor = jax.random.split(key, 6)
        if state.effort is not None and not state.effort.learns:
            return concatenate(*vary(key_ga, key_line, state.archive, state.credit, batch))
        offspring = vary_by_gradient(keys_pg, state)  # Preference-conditioned policy-gradient variation
        offspring += vary(key_ga, key_line, state.archive, state.credit, config.ga_batch)  # Iso+LineDD variation
        if config.actor_batch:  # Actor injection
            offspring.append(inject_actor(key_actor, state.agent.actor, state.actor_gains))
        return concatenate(*offspring)

    @part("training")
    def learn(keys: Sequence[Key], agent: Agent, experience: Experience) -> tuple[Agent, Losses]:
        key_recall, key_train = keys
        minibatches = recall(key_recall, experience, config)
        return train(key_train, agent, minibatches, config, experience.obs_stats)

    def learn_if_due(
        keys: Sequence[Key], state: MomeP2CState, experience: Experience
    ) -> tuple[Agent, Losses, Losses | None]:
        if state.effort is None:
            return *learn(keys, state.agent, experience), None
        kept = state.agent, state.losses
        agent, losses = jax.lax.cond(state.effort.learns, lambda: learn(keys, state.agent, experience), lambda: kept)
        return agent, losses, losses

    def what_it_gained(state: MomeP2CState, offspring: Offspring, evaluation: Evaluation) -> dict[str, Any]:
        """What preferences and kinds of generation have gained, where something follows that."""
        if not any((state.pg_gains, state.actor_gains, state.effort)):
            return {}
        added = hypervolume_added(state.archive, task, evaluation)
        made = {source: offspring.source == int(source) for source in (Source.PG, Source.ACTOR, Source.GA)}

        def updated(gains: Gains | None, source: Source) -> Gains | None:
            if gains is None:
                return None
            return preferences.with_gains(gains, offspring.preference, added, made[source])

        effort = state.effort
        if effort is not None:
            effort = with_generation(
                effort, added, made[Source.GA], made[Source.PG] | made[Source.ACTOR], config.learn_every
            )
        return {
            "pg_gains": updated(state.pg_gains, Source.PG),
            "actor_gains": updated(state.actor_gains, Source.ACTOR),
            "effort": effort,
        }

    def tell(key: Key, state: MomeP2CState, offspring: Offspring, evaluation: Evaluation) -> tuple[MomeP2CState, Info]:
        *keys_learn, key_add = jax.random.split(key, 3)
        experience = remember(state.experience, evaluation, config)
        agent, losses, kept = learn_if_due(keys_learn, state, experience)
        gained = what_it_gained(state, offspring, evaluation)
        archive, added = add(key_add, state.archive, offspring, evaluation)
        credit = credited(state.credit, offspring, added)
        metrics = learning_metrics(losses, experience)
        if state.effort is not None:
            metrics["learning_cost"] = state.effort.cost
        state = MomeP2CState(archive, agent, experience, credit, **gained, losses=kept)
        return state, Info(added, offspring.source, metrics)

    is_measured = config.learn_every == 0 and config.learning_cost == 0
    pace = Pace(lambda state: state.effort.learns, tell_cost) if is_measured else None
    return Algorithm(name, config, init, ask, tell, needs_transitions=True, uses_devices=True, pace=pace)


def tell_cost(state: MomeP2CState, cost: float) -> MomeP2CState:
    assert state.effort is not None
    return state._replace(effort=with_cost(state.effort, cost))


def _check(config: MomeP2CConfig, num_objectives: int) -> None:
    if config.pg_preferences not in get_args(PgPreferences):
        raise unknown_name("pg_preferences", config.pg_preferences, get_args(PgPreferences))
    if config.actor_preferences not in get_args(ActorPreferences):
        raise unknown_name("actor_preferences", config.actor_preferences, get_args(ActorPreferences))
    if config.learn_every != 1 and config.variation == "adaptive":
        raise InputError(
            "variation is 'adaptive', which follows offspring of every generation, but learn_every is "
            f"{config.learn_every}; give a fixed mixture, or learn_every=1."
        )
    check_batches(config.pg_batch, config.ga_batch, config.actor_batch, num_objectives)
