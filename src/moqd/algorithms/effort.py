"""Where the time of a run goes: to generations by chance alone, or to those that learn as well.

Learning costs as much as hundreds of evaluations of a fast simulator, and next to nothing beside a slow one. What both
kinds of generation add to the hypervolume of their cells is counted, and each gets time in proportion to what it has
added per unit of time. What a generation with learning costs is measured once, by the first of each kind, if the run
has a limit in minutes. Otherwise evaluations are what is scarce, and of these all generations take as many.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

TURNS = 6
"""Generations at the start in which both kinds take turns."""
MEMORY = 0.8
"""How much of what was added up to one training counts at the next."""
LEAST, MOST = 0.1, 0.7
"""Shares of the time that learning may have."""
ALIKE = 1.0
"""The cost of a generation with learning where only evaluations count; one that was measured is above it."""


class Gained(NamedTuple):
    """Hypervolume that was added in how many generations; the newest count most."""

    added: Float[Array, ""]
    generations: Float[Array, ""]


class Effort(NamedTuple):
    cost: Float[Array, ""]
    """How many times as long a generation with learning takes as one by chance; 0 while it is not known."""
    chance: Gained
    """Of offspring by chance, in either kind of generation."""
    learning: Gained
    """Of offspring of gradients and of the actor."""
    turns: Int[Array, ""]
    """How many generations there are left in which both kinds take turns."""
    wait: Float[Array, ""]
    """Generations by chance before the next one that learns; a fraction is carried over to the one after that."""

    @property
    def learns(self) -> Bool[Array, ""]:
        """Whether the next generation does."""
        return self.wait < 0.5


def initial_effort(cost: float) -> Effort:
    """The first generation learns; both kinds take turns then, unless there is nothing to measure."""
    none = Gained(jnp.zeros(()), jnp.zeros(()))
    return Effort(jnp.float32(cost), none, none, jnp.int32(0 if cost == ALIKE else TURNS), jnp.zeros(()))


def with_cost(effort: Effort, cost: float) -> Effort:
    """As soon as it is known."""
    return effort._replace(cost=jnp.float32(cost), turns=jnp.minimum(effort.turns, initial_effort(cost).turns))


def with_generation(
    effort: Effort,
    added: Float[Array, "batch"],
    by_chance: Bool[Array, "batch"],
    learned: Bool[Array, "batch"],
    learn_every: int,
) -> Effort:
    """After a generation, by what each of its offspring added; those that are of neither kind were random."""
    keep, share = jnp.where(effort.learns, MEMORY, 1.0), jnp.mean(by_chance, dtype=jnp.float32)

    def gained(before: Gained, made: Bool[Array, "batch"], generations: Float[Array, ""]) -> Gained:
        return Gained(keep * before.added + jnp.sum(added, where=made), keep * before.generations + generations)

    chance = gained(effort.chance, by_chance, share)
    learning = gained(effort.learning, learned, effort.learns.astype(jnp.float32))
    turns = jnp.maximum(effort.turns - 1, 0)
    if learn_every:
        more = jnp.float32(learn_every - 1)
    else:
        # The time of learning is what its generation takes longer than its offspring by chance.
        longer = jnp.maximum(effort.cost - share, 0.1)
        rates = [
            gain.added / jnp.maximum(gain.generations * time, 1e-6) for gain, time in ((learning, longer), (chance, 1))
        ]
        total = rates[0] + rates[1]
        deserved = jnp.where(total > 0, rates[0] / jnp.maximum(total, jnp.finfo(jnp.float32).tiny), MOST)
        time = jnp.clip(deserved, LEAST, MOST)
        more = jnp.where((turns > 0) | (effort.cost == 0), 1.0, longer * (1 - time) / time - share)
    wait = jnp.maximum(effort.wait + jnp.where(effort.learns, more, -1.0), -1.0)
    return Effort(effort.cost, chance, learning, turns, wait)
