"""The vocabulary of the project as types: what passes between tasks, algorithms and archives."""

from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

Key: TypeAlias = PRNGKeyArray
Genotype: TypeAlias = Any
"""A pytree of arrays; in a batch every leaf has the batch as its first axis."""
Fitness: TypeAlias = Float[Array, "batch objectives"]
Feature: TypeAlias = Float[Array, "batch features"]
Preference: TypeAlias = Float[Array, "batch objectives"]


class Genes(NamedTuple):
    """What the genes of a plain vector of parameters stand for; all of them are in [0, 1]."""

    num_values: Int[np.ndarray, "genes"]
    """The number of equal parts into which the unit interval is divided; 0 for a real number."""
    is_ordered: Bool[np.ndarray, "genes"]
    """True for reals and integers; False for choices, between which there is no distance."""

    @property
    def is_discrete(self) -> Bool[np.ndarray, "genes"]:
        return self.num_values > 0


class Source(IntEnum):
    """Where an offspring came from: a random genotype, genetic variation, a policy gradient, or the actor itself."""

    RANDOM = 0
    GA = 1
    PG = 2
    ACTOR = 3


class Transition(NamedTuple):
    """Steps of an environment, one row per policy, padded to the longest episode."""

    obs: Float[Array, "batch time obs"]
    action: Float[Array, "batch time act"]
    reward: Float[Array, "batch time objectives"]
    next_obs: Float[Array, "batch time obs"]
    terminated: Bool[Array, "batch time"]
    """Whether the episode terminated here (a fall); False if it only reached the time limit."""
    valid: Bool[Array, "batch time"]
    """Whether the step happened; False for padding."""


class Evaluation(NamedTuple):
    """The result of evaluating a batch of genotypes."""

    fitness: Fitness
    """Maximised, unnormalised."""
    feature: Feature
    valid: Bool[Array, "batch"]
    """False: failed, non-finite or padding; one mask for all of these."""
    transitions: Transition | None = None
    """Recorded only if the algorithm needs them."""
    violation: Float[Array, "batch"] | None = None
    """Of the constraints; 0 means feasible."""
    std: Fitness | None = None
    """Standard deviation of the fitness over resamples."""
    num_steps: Int[Array, "batch"] | None = None
    """The length of the episodes, if there are any, to count environment steps."""
    constraint: Float[Array, "batch constraints"] | None = None
    """The value of each constraint, at most 0 if the solution keeps to it; None where only the violation is known."""

    @property
    def feasible(self) -> Bool[Array, "batch"]:
        """Which solutions are valid and satisfy all constraints: only these may enter an archive."""
        return self.valid if self.violation is None else self.valid & (self.violation <= 0)


class Offspring(NamedTuple):
    """What an algorithm wants evaluated."""

    genotype: Genotype
    preference: Preference
    """The trade-off that each was made for; uniformly random if it was made for none."""
    source: Int[Array, "batch"]
    noise: Float[Array, "batch act"] | None = None
    """Standard deviation of the noise on the actions of each episode; 0: the policy as it is. None where all are."""
    aim: Feature | None = None
    """The feature that each was made for, NaN if it was made for none; None where none ever is."""
    enters: Bool[Array, "batch"] | None = None
    """Whether it is for the archive, or only to be learned from; None where all are."""

    def may_enter(self, evaluation: Evaluation) -> Bool[Array, "batch"]:
        """Which of them were evaluated as they are and are feasible: only these may enter an archive."""
        allowed = evaluation.feasible if self.enters is None else evaluation.feasible & self.enters
        return allowed if self.noise is None else allowed & ~jnp.any(self.noise > 0, axis=1)


class Info(NamedTuple):
    """What one `tell` did."""

    added: Bool[Array, "batch"]
    """Which offspring entered `state.archive` (or the population, if there is no archive)."""
    source: Int[Array, "batch"]
    metrics: dict[str, Float[Array, ""]]
    """Additional numbers for the log, such as losses; the same names at every call."""
