"""Preference samplers. A preference says how much each objective counts: non-negative weights that sum to one."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from moqd.core.types import Key, Preference
from moqd.io.errors import InputError


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
