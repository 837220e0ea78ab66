"""Asking the actor of a run for a solution that its archive does not have.

The actor of MOME-P2C can be asked for any preference, that of MOME-DCRL for any feature too: an empty cell, or a
trade-off between two solutions. What it answers is a policy like those in the archive, and it is evaluated like them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from moqd.algorithms import ALGORITHMS, Algorithm
from moqd.algorithms.dcrl_me import DcrlMeConfig
from moqd.algorithms.mome_dcrl import MomeDcrlConfig, policy_for
from moqd.algorithms.mome_p2c import MomeP2CConfig
from moqd.choose.pick import Solution, feature_asked_for, weights_of
from moqd.core.networks import MLP
from moqd.core.tessellation import nearest_cell
from moqd.io.errors import EvaluationError, InputError
from moqd.rl.td3 import Agent
from moqd.runs.checkpoint import CHECKPOINTS
from moqd.runs.compilation import use_cache
from moqd.runs.folder import Run, load_run
from moqd.runs.learned import load_learned, parts_of
from moqd.tasks import Task
from moqd.tasks.evaluate import Evaluator
from moqd.variation.actor_injection import inject


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Solution):
    """A policy of the actor, evaluated; it is not in the archive. `preference` is the one that was asked for, empty if
    the actor takes none."""

    asked_features: Mapping[str, float] = field(default_factory=dict)
    """The features that were asked for; empty if none were."""
    is_new: bool = False
    """Whether it is feasible and no solution of its cell is at least as good in all objectives."""

    @property
    def verdict(self) -> str:
        """How it compares with the archive, as the end of a sentence."""
        if self.is_new:
            return f"nothing in its cell, {self.cell}, is at least as good in every objective"
        return f"its cell, {self.cell}, has a solution that is at least as good, or it is infeasible"

    def __repr__(self) -> str:
        asked = [f"{name}={value:.4g}" for name, value in self.asked_features.items()]
        if self.preference:
            asked.insert(0, f"preference ({', '.join(f'{weight:.2g}' for weight in self.preference)})")
        return f"Answer of the actor, asked for {', '.join(asked)}: {super().__repr__()}; {self.verdict}"


def ask_actor(
    run: Run | str | os.PathLike[str],
    preference: ArrayLike | None = None,
    *,
    feature: ArrayLike | None = None,
    task: Task | None = None,
    algorithm: Algorithm | None = None,
) -> Answer:
    """The policy that the actor of a run is at a preference, and at a feature if it takes one; evaluated once.

    The run, or its folder, must have a checkpoint. Actors of `mome-p2c` and its relatives take a preference, which by
    default weighs all objectives the same; that of `mome-dcrl` also takes a feature. Unlike in `pick`, weights are of
    rewards in units of their standard deviations, as the actor has learned them. A task or an algorithm of the user's
    own has to be given again: files never hold code.
    """
    return Actor(run, task, algorithm).ask(preference, feature)


class Actor:
    """The actor of a run in its newest checkpoint, to be asked more than once."""

    def __init__(
        self, run: Run | str | os.PathLike[str], task: Task | None = None, algorithm: Algorithm | None = None
    ) -> None:
        use_cache()
        learned = load_learned(run, task, algorithm)
        self._task, self._seed, self._config = learned.task, learned.config.seed, learned.algorithm.config
        self._name, agents = learned.algorithm.name, parts_of(learned.state, Agent)
        actor: MLP = agents[0].actor if len(agents) == 1 else ()
        # Of the state, which may be large, nothing else is kept.
        self._actor = jax.tree.map(np.asarray, actor)
        self._archive = run.archive if isinstance(run, Run) else load_run(run, task=self._task).archive
        self._evaluate = Evaluator(self._task, checked=True)

    def ask(self, preference: ArrayLike | None = None, feature: ArrayLike | None = None) -> Answer:
        """As in `ask_actor`."""
        task, archive = self._task, self._archive
        weights = weights_of(task, preference)
        wanted = None if feature is None else feature_asked_for(task, feature)
        takes_preference = self._check(preference is not None, wanted is not None)
        genotype = self._policy(weights, wanted)
        evaluation = self._evaluate(jax.random.key(self._seed), genotype)
        if not bool(evaluation.valid[0]):
            raise EvaluationError(f"the evaluation of the actor's policy failed on task {task.name!r}.")
        cell = int(nearest_cell(evaluation.feature, archive.centroid, archive.feature_bounds)[0])
        there = np.asarray(archive.fitness)[cell][np.asarray(archive.valid)[cell]]
        found = np.asarray(evaluation.fitness[0])
        named = lambda names, values: dict(zip(names, map(float, values), strict=True))  # noqa: E731
        return Answer(
            task=task,
            cell=cell,
            place=-1,
            objectives=named(task.objective_names, found * task.direction),
            features=named(task.feature_names, np.asarray(evaluation.feature[0])),
            preference=tuple(map(float, weights)) if takes_preference else (),
            genotype=jax.tree.map(lambda leaf: np.asarray(leaf[0]), genotype),
            constraints={} if evaluation.constraint is None else named(task.constraint_names, evaluation.constraint[0]),
            asked_features={} if wanted is None else named(task.feature_names, wanted),
            is_new=bool(evaluation.feasible[0]) and not np.any(np.all(there >= found, axis=1)),
        )

    def _check(self, has_preference: bool, has_feature: bool) -> bool:
        """Raises where the actor cannot be asked so; whether it takes a preference."""
        name, task, actor = self._name, self._task, self._actor
        inputs = 0 if not actor or task.policy is None else actor[0].kernel.shape[-2] - task.policy.num_obs
        if not actor or actor[0].kernel.ndim != 2 or inputs == 0:
            raise InputError(
                f"the run is of algorithm {name!r}, which has no actor that can be asked; run 'mome-p2c-plus' to ask "
                "for preferences, or 'mome-dcrl' to ask for features too."
            )
        takes_feature = isinstance(self._config, MomeDcrlConfig)
        takes_preference = not takes_feature or inputs > task.num_features
        if takes_feature and not has_feature:
            names = ", ".join(task.feature_names)
            raise InputError(f"the actor of {name!r} takes a feature; give {task.num_features} numbers, for {names}.")
        if has_feature and not takes_feature:
            raise InputError(
                f"the actor of {name!r} takes a preference and no feature; leave the feature out, or run 'mome-dcrl'."
            )
        if has_preference and not takes_preference:
            raise InputError(
                f"the actor of {name!r} maximises the sum of the objectives and takes no preference; leave it out, or "
                "run 'mome-dcrl'."
            )
        return takes_preference

    def _policy(self, weights: Float[np.ndarray, "objectives"], feature: Float[np.ndarray, "features"] | None) -> MLP:
        """A batch of one."""
        one = lambda values: jnp.asarray(np.asarray(values, np.float32)[None])  # noqa: E731
        actor = jax.tree.map(jnp.asarray, self._actor)
        if feature is None:
            return inject(actor, one(weights))
        assert self._task.policy is not None
        inputs = actor[0].kernel.shape[0] - self._task.policy.num_obs
        return policy_for(actor, one(weights if inputs > self._task.num_features else [1.0]), one(feature), self._task)


def asks_for(run: Run) -> list[str]:
    """What the actor of a run may be asked for: "preference", "feature"; empty where it cannot be asked."""
    entry = ALGORITHMS.get(run.config.algorithm.name)
    if entry is None or run.path is None or not (run.path / CHECKPOINTS).exists() or run.task.policy is None:
        return []
    kinds = {DcrlMeConfig: ["feature"], MomeDcrlConfig: ["preference", "feature"], MomeP2CConfig: ["preference"]}
    return next((asked for kind, asked in kinds.items() if isinstance(entry.config, kind)), [])
