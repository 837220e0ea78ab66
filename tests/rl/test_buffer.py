"""The ring against a list in plain Python, and that it is written in place."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from moqd.core.types import Transition
from moqd.rl.buffer import Buffer, empty_buffer, insert, sample, sample_obs

BATCH, TIME = 3, 5


def numbered(first: int, valid: np.ndarray) -> Transition:
    """Steps that each say their number in every column."""
    number = first + np.arange(valid.size, dtype=np.float32).reshape(valid.shape)
    columns = [number[..., None] + np.zeros(width, np.float32) for width in (4, 2, 3, 4)]
    return Transition(*map(jnp.asarray, columns), terminated=jnp.asarray(number % 3 == 0), valid=jnp.asarray(valid))


def empty(capacity: int) -> Buffer:
    return empty_buffer(capacity, num_obs=4, num_actions=2, num_objectives=3)


@pytest.mark.parametrize("capacity", [1, 7, 15, 40])
def test_the_ring_holds_the_newest_steps_that_happened(capacity, rng):
    """Seven steps are less than a batch, so that one batch may overwrite its own beginning."""
    add = jax.jit(insert)
    for share in (0.0, 0.3, 0.9, 1.0):
        buffer, expected = empty(capacity), []
        for call in range(12):
            valid = rng.random((BATCH, TIME)) < share
            buffer = add(buffer, numbered(100 * call, valid))
            expected = (expected + (100 * call + np.flatnonzero(valid)).tolist())[-capacity:]
            assert buffer.size == len(expected)
            held = jax.tree.map(lambda column: np.asarray(column[: len(expected)]), buffer.steps)  # noqa: B023
            oldest = int(buffer.position) if len(expected) == capacity else 0
            assert np.roll(held.obs[:, 0], -oldest).tolist() == expected
            for column in (held.obs, held.action, held.reward, held.next_obs):
                assert (column == held.obs[:, :1]).all()
            assert (held.terminated == (held.obs[:, 0] % 3 == 0)).all()


def test_every_step_knows_what_its_policy_was_made_for_and_what_it_had():
    buffer = empty_buffer(11, num_obs=4, num_actions=2, num_objectives=3, num_features=2)
    add, valid = jax.jit(insert), np.arange(BATCH * TIME).reshape(BATCH, TIME) % 3 > 0
    for call in range(3):
        aim = jnp.arange(BATCH, dtype=jnp.float32)[:, None] + 10.0 * call + jnp.zeros((BATCH, 2))
        buffer = add(buffer, numbered(100 * call, valid), aim, -aim)
    call, step = np.divmod(np.asarray(buffer.steps.obs[:, 0]), 100)
    np.testing.assert_array_equal(buffer.steps.aim, np.tile((10 * call + step // TIME)[:, None], 2))
    np.testing.assert_array_equal(buffer.steps.achieved, -np.asarray(buffer.steps.aim))


def test_samples_are_uniform_over_what_is_there():
    valid = np.arange(BATCH * TIME).reshape(BATCH, TIME) < 10
    buffer = insert(empty(1000), numbered(5, valid))
    steps = jax.jit(partial(sample, shape=(40, 250)))(jax.random.key(0), buffer)
    assert steps.action.shape == (40, 250, 2)
    number, times = np.unique(steps.obs[..., 0], return_counts=True)
    assert number.tolist() == list(range(5, 15))
    assert chisquare(times).pvalue > 0.01
    assert (steps.reward[..., 0] == steps.next_obs[..., 3]).all()
    assert (steps.terminated == (steps.obs[..., 0] % 3 == 0)).all()
    obs = sample_obs(jax.random.key(0), buffer, (40, 250))
    assert (obs == steps.obs).all()


def test_a_donated_buffer_is_written_in_place():
    buffer = jax.jit(lambda: empty(1000))()
    where = [column.unsafe_buffer_pointer() for column in jax.tree.leaves(buffer.steps)]
    add = jax.jit(insert, donate_argnums=0)
    for _ in range(2):
        buffer = add(buffer, numbered(0, np.ones((BATCH, TIME), bool)))
    assert [column.unsafe_buffer_pointer() for column in jax.tree.leaves(buffer.steps)] == where


def test_writing_copies_no_column():
    """What the compiled program needs beside the buffer and the batch does not grow with the buffer."""

    def memory(capacity: int) -> int:
        arguments = empty(capacity), numbered(0, np.ones((BATCH, TIME), bool))
        return jax.jit(insert, donate_argnums=0).lower(*arguments).compile().memory_analysis().temp_size_in_bytes

    assert memory(100_000) == memory(1000)
