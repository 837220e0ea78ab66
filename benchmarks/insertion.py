"""The transitions of 256 episodes, of which most end early, into a replay buffer of a million, beside the
straightforward way.

Straightforward: those that happened are sorted to the front, the whole buffer is rolled so that it ends where they go,
and they are written over its end. Both hold the same steps, which is checked.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import Measured, in_turns
from moqd.core.types import Transition
from moqd.rl.buffer import Buffer, Steps, empty_buffer, insert

CAPACITY, POLICIES, LENGTH = 1_000_000, 256, 250
SIZES = {"hopper-2": (11, 3), "ant-2": (27, 8)}


@partial(jax.jit, donate_argnums=0)
def straightforward(buffer: Buffer, transitions: Transition) -> Buffer:
    valid = transitions.valid.reshape(-1)
    order = jnp.argsort(~valid, stable=True)
    number = jnp.sum(valid)

    def write(column: jax.Array, new: jax.Array) -> jax.Array:
        rows = new.reshape(-1, *column.shape[1:])[order]
        place = jnp.arange(len(rows)).reshape(-1, *(1,) * (rows.ndim - 1))
        rolled = jnp.roll(column, -number, axis=0)
        end = rolled[-len(rows) :]
        shifted = jnp.roll(rows, -number, axis=0)
        return rolled.at[-len(rows) :].set(jnp.where(place >= len(rows) - number, shifted, end))

    steps = jax.tree.map(write, buffer.steps, Steps(*transitions[:-1]))
    return Buffer(steps, buffer.position, jnp.minimum(buffer.size + number, CAPACITY))


def measure() -> list[Measured]:
    rows = []
    for task, (num_obs, num_actions) in SIZES.items():
        rng = np.random.default_rng(0)
        shape = (POLICIES, LENGTH)

        def numbers(width: int, rng: np.random.Generator = rng, shape: tuple[int, int] = shape) -> jax.Array:
            return jnp.asarray(rng.random((*shape, width), np.float32))

        fell = rng.integers(LENGTH // 5, LENGTH, POLICIES)
        transitions = Transition(
            numbers(num_obs),
            numbers(num_actions),
            numbers(2),
            numbers(num_obs),
            jnp.zeros(shape, bool),
            jnp.asarray(np.arange(LENGTH) < fell[:, None]),
        )
        buffers = [empty_buffer(CAPACITY, num_obs=num_obs, num_actions=num_actions, num_objectives=2) for _ in range(2)]
        in_place = jax.jit(insert, donate_argnums=0)

        def ours(buffers=buffers, transitions=transitions, in_place=in_place):  # type: ignore[no-untyped-def]
            buffers[0] = in_place(buffers[0], transitions)
            return buffers[0]

        def theirs(buffers=buffers, transitions=transitions):  # type: ignore[no-untyped-def]
            buffers[1] = straightforward(buffers[1], transitions)
            return buffers[1]

        in_ours, in_theirs = ours(), theirs()
        size = int(in_ours.size)
        np.testing.assert_array_equal(in_ours.steps.obs[:size], in_theirs.steps.obs[-size:])
        taken, other = in_turns(ours, theirs, rounds=5)
        rows.append(Measured(f"{POLICIES} episodes of {task} into the buffer", taken, "roll and write", other))
    return rows
