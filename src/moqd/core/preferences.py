"""Preference samplers. A preference says how much each objective counts: non-negative weights that sum to one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moqd.core.types import Key, Preference
from moqd.io.errors import InputError

ANCHORS = 16
"""The number of preferences around which an adaptive sampler knows what they gain, beyond the one-hot ones."""
MEMORY = 0.95
"""How much earlier batches count in the next one for that sampler..."""
FLOOR = 0.3
"""...and the share of its samples that goes to all anchors alike."""


def uniform(key: Key, num_preferences: int, num_objectives: int) -> Preference:
    """Uniform on the simplex, which is Dirichlet(1): exponentials divided by their sum."""
    weight = jax.random.exponential(key, (num_preferences, num_objectives)) + jnp.finfo(jnp.float32).tiny
    return weight / jnp.sum(weight, axis=1, keepdims=True)


def one_hot(num_preferences: int, num_objectives: int) -> Preference:
    """One objective each, in equal shares; if they do not divide evenly, the first objectives get one more."""
    return jnp.eye(num_objectives)[shares(num_preferences, num_objectives)]


def uniform_and_one_hot(key: Key, num_preferences: int, num_objectives: int) -> Preference:
    """Uniform preferences for exploration, then one-hot ones, so that each objective is always pushed."""
    if num_preferences < num_objectives:
        raise InputError(
            f"num_preferences is {num_preferences}, but each of the {num_objectives} objectives needs one; "
            f"use at least {num_objectives}."
        )
    explore = uniform(key, num_preferences - num_objectives, num_objectives)
    return jnp.concatenate([explore, one_hot(num_objectives, num_objectives)])


def shares(number: int, num_objectives: int) -> Int[np.ndarray, "batch"]:
    """The objective of each of `number` places, in blocks of equal size; the first blocks may be one longer."""
    share, rest = divmod(number, num_objectives)
    return np.repeat(np.arange(num_objectives), share + (np.arange(num_objectives) < rest))


def mixed(key: Key, num_preferences: int, num_objectives: int) -> Preference:
    """Half of them one-hot in equal shares, the others uniform."""
    half = num_preferences // 2
    return jnp.concatenate([one_hot(half, num_objectives), uniform(key, num_preferences - half, num_objectives)])


class Gains(NamedTuple):
    """What adaptive preferences follow: for each anchor, how many offspring were made near it and how much hypervolume
    they added, with recent ones weighted most."""

    anchor: Float[Array, "anchors objectives"]
    made: Float[Array, "anchors"]
    added: Float[Array, "anchors"]


def no_gains(num_objectives: int) -> Gains:
    """Nothing is known yet. The anchors are the one-hot preferences and others that are spread over the simplex."""
    # A low-discrepancy sequence in the unit cube (additive recurrence; Roberts, 2018), as spacings of sorted numbers.
    root = np.polynomial.polynomial.polyroots([-1, -1, *[0] * (num_objectives - 2), 1]) if num_objectives > 1 else [1]
    growth = max(float(np.real(one)) for one in root if abs(np.imag(one)) < 1e-9)
    step = growth ** -np.arange(1.0, num_objectives)
    cube = np.sort((0.5 + np.arange(1, ANCHORS + 1)[:, None] * step) % 1, axis=1)
    edges = np.hstack([np.zeros((ANCHORS, 1)), cube, np.ones((ANCHORS, 1))])
    anchor = np.vstack([np.eye(num_objectives), np.diff(edges, axis=1)])
    return Gains(jnp.asarray(anchor, jnp.float32), jnp.ones(len(anchor)), jnp.zeros(len(anchor)))


def adaptive(key: Key, num_preferences: int, gains: Gains) -> Preference:
    """Near the anchors that gain most, and more often where little is known; one-hot ones exactly."""
    num_anchors, num_objectives = gains.anchor.shape
    key_anchor, key_near = jax.random.split(key)
    mean = gains.added / gains.made
    unsure = jnp.sqrt(jnp.log(1 + jnp.sum(gains.made)) / gains.made)
    score = mean / jnp.maximum(jnp.max(mean), jnp.finfo(jnp.float32).tiny) + 0.5 * jnp.minimum(unsure, 1)
    share = FLOOR / num_anchors + (1 - FLOOR) * score / jnp.sum(score)
    # One draw in each of equal parts of the unit interval, so that a batch follows the shares closely.
    place = jnp.arange(num_preferences, dtype=jnp.float32) + jax.random.uniform(key_anchor, (num_preferences,))
    ends = jnp.cumsum(share)[:-1]
    index = jnp.sum(place[:, None] / num_preferences >= ends[None, :], axis=1)
    near = uniform(key_near, num_preferences, num_objectives)
    width = jnp.where(index < num_objectives, 0.0, 1 / num_anchors)[:, None]
    return (1 - width) * gains.anchor[index] + width * near


def with_gains(
    gains: Gains, preference: Preference, added: Float[Array, "batch"], counts: Bool[Array, "batch"]
) -> Gains:
    """After a batch of offspring for these preferences; each counts for the nearest anchor."""
    distance = jnp.sum((preference[:, None, :] - gains.anchor[None, :, :]) ** 2, axis=-1)
    nearest = jnp.argmin(distance, axis=1)
    total = lambda rows: jax.ops.segment_sum(jnp.where(counts, rows, 0), nearest, gains.made.size)  # noqa: E731
    return Gains(
        anchor=gains.anchor,
        # From 1 on, so that an anchor of which nothing was heard for long is tried again.
        made=1 + MEMORY * (gains.made - 1) + total(jnp.ones(added.size)),
        added=MEMORY * gains.added + total(added),
    )
