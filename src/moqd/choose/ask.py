"""Asking the actor of a run for a solution that its archive does not have.

The actor of MOME-P2C can be asked for any preference, that of MOME-DCRL for any feature too: an empty cell, or a
trade-off between two solutions. What it answers is a policy like those in the archive, and it is evaluated like them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from moqd.algorithms import ALGORITHMS, Algorithm
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
from moqd.runs.learned import Learned, load_learned, parts_of
from moqd.tasks import Task
from moqd.tasks.evaluate import Evaluator
from moqd.variation.actor_injection import inject


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Solution):
    """A policy of the actor, evaluated; it is not in the archive. `preference` is the one that was asked for."""

    asked_features: Mapping[str, float] = field(default_factory=dict)
    """The features that were asked for; empty if none were."""
    would_enter: bool = False
    """Whether the front of its cell would take it: no solution there is at least as good in all objectives."""

    def __repr__(self) -> str:
        asked = "".join(f", {name}={value:.4g}" for name, value in self.asked_features.items())
        trade_off = ", ".join(f"{weight:.2g}" for weight in self.preference)
        said = f"Answer of the actor, asked for preference ({trade_off}){asked}: "
        return said + super().__repr__() + ("" if self.would_enter else " (its cell has solutions that are no worse)")


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
        self._learned = load_learned(run, task, algorithm)
        self._archive = run.archive if isinstance(run, Run) else load_run(run, task=self._learned.task).archive
        self._evaluate = Evaluator(self._learned.task, checked=True)

    def ask(self, preference: ArrayLike | None = None, feature: ArrayLike | None = None) -> Answer:
        """As in `ask_actor`."""
        task, archive = self._learned.task, self._archive
        weights = weights_of(task, preference)
        wanted = None if feature is None else feature_asked_for(task, feature)
        genotype = _policy(self._learned, weights, wanted)
        evaluation = self._evaluate(jax.random.key(self._learned.config.seed), genotype)
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
            preference=tuple(map(float, weights)),
            genotype=jax.tree.map(lambda leaf: np.asarray(leaf[0]), genotype),
            asked_features={} if wanted is None else named(task.feature_names, wanted),
            would_enter=not np.any(np.all(there >= found, axis=1)),
        )


def takes(run: Run) -> Literal["preference", "feature"] | None:
    """What the actor of a run may be asked for: a preference alone, or a feature too; None where nothing."""
    entry = ALGORITHMS.get(run.config.algorithm.name)
    if entry is None or run.path is None or not (run.path / CHECKPOINTS).exists() or run.task.policy is None:
        return None
    kinds = {MomeDcrlConfig: "feature", MomeP2CConfig: "preference"}
    found: list[Any] = [what for kind, what in kinds.items() if isinstance(entry.config, kind)]
    return found[0] if found else None


def _policy(
    learned: Learned, weights: Float[np.ndarray, "objectives"], feature: Float[np.ndarray, "features"] | None
) -> MLP:
    """A batch of one."""
    task, config, agents = learned.task, learned.algorithm.config, parts_of(learned.state, Agent)
    name = learned.algorithm.name
    one = lambda values: jnp.asarray(np.asarray(values, np.float32)[None])  # noqa: E731
    actor: MLP = agents[0].actor if len(agents) == 1 else ()
    inputs = 0 if not actor or task.policy is None else actor[0].kernel.shape[-2] - task.policy.num_obs
    if not actor or actor[0].kernel.ndim != 2 or inputs == 0:
        raise InputError(
            f"the run is of algorithm {name!r}, which has no actor that can be asked; run 'mome-p2c-plus' to ask for "
            "preferences, or 'mome-dcrl' to ask for features too."
        )
    if isinstance(config, MomeDcrlConfig):
        if feature is None:
            names = ", ".join(task.feature_names)
            raise InputError(f"the actor of {name!r} takes a feature; give {task.num_features} numbers, for {names}.")
        sees_preference: Array = one(weights) if inputs > task.num_features else jnp.ones((1, 1))
        return policy_for(actor, sees_preference, one(feature), task)
    if feature is not None:
        raise InputError(
            f"the actor of {name!r} takes a preference and no feature; leave the feature out, or run 'mome-dcrl'."
        )
    return inject(actor, one(weights))
