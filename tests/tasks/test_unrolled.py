"""`jax.vmap` is the oracle: whatever the function, the numbers are the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moqd.tasks.unrolled import unrolled

MATRIX = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [-1.0, 0.5, 0.0]], np.float32)


def loop(x):
    def step(carry, _):
        a, fixed, count = carry
        return (jnp.sin(a) * fixed + count, fixed, count + 1.0), None

    return jax.lax.scan(step, (x, x + 1, jnp.zeros(())), None, length=3)[0]


def loop_with_outputs(x):
    return jax.lax.scan(lambda carry, row: (carry + row, carry * row), x[0], x)


def until(x):
    return jax.lax.while_loop(lambda x: jnp.sum(x) < 20.0, lambda x: x * 1.5, jnp.abs(x) + 1)


FUNCTIONS = {
    "arithmetic": lambda x: (x + 1) * 2 - x / 3 + x**2 + jnp.sqrt(jnp.abs(x)) - (-x),
    "zero and one": lambda x: (x * 0.0, x * 1.0, x + 0.0, x - 0.0, 0.0 - x, x / 1.0, 0.0 / (jnp.abs(x) + 1)),
    "comparison": lambda x: (x > 0, x >= x.T, (x < 1) & (x > -1), (x != 0) | (x <= 0), jnp.isfinite(x), jnp.sign(x)),
    "choice": lambda x: (jnp.where(x > 0, x, 0.0), jnp.where(MATRIX > 0, x, -x), jnp.clip(x, -0.5, 0.5)),
    "known": lambda x: x @ (MATRIX @ MATRIX.T) + jnp.linalg.norm(jnp.asarray(MATRIX), axis=1)[:, None],
    "angles": lambda x: (jnp.arctan2(x, x.T + 2), jnp.arccos(jnp.tanh(x)), jnp.exp(x), jnp.cos(x)),
    "matrix product": lambda x: (x @ x, x @ MATRIX, MATRIX @ x, jnp.dot(x[0], x[1]), jnp.outer(x[0], x[1])),
    "einsum": lambda x: (jnp.einsum("ij,kj->ki", x, x), jnp.einsum("ij,ij->i", x, jnp.asarray(MATRIX))),
    "batched product": lambda x: jax.vmap(lambda a, b: a @ b)(jnp.stack([x, x + 1]), jnp.stack([x.T, x])),
    "cross": lambda x: jax.vmap(jnp.cross)(x, x[::-1]),
    "reductions": lambda x: (jnp.sum(x), jnp.sum(x, axis=1), jnp.max(x, axis=0), jnp.min(x), jnp.any(x > 0, axis=1)),
    "logic": lambda x: (jnp.all(x > -1), ~(x > 0), jnp.logical_and(x > 0, MATRIX > 0), jnp.logical_or(x > 0, True)),
    "moves": lambda x: (x.T, x[1:, ::2], x.reshape(-1), x[None], jnp.concatenate([x, jnp.asarray(MATRIX)], axis=1)),
    "stack": lambda x: (jnp.stack([x, x + 1], axis=1), jnp.stack([x[0], jnp.asarray(MATRIX)[0]])),
    "tiles": lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 2, axis=0), jnp.flip(x, 0), jnp.broadcast_to(x[0], (4, 3))),
    "gather": lambda x: (x[np.array([2, 0, 0])], jnp.take(x, np.array([-1, 4]), axis=0, mode="wrap"), x[:, 1]),
    "scatter": lambda x: (x.at[np.array([0, 0, 2])].add(x), x.at[1].set(5.0), x.at[1:].multiply(2.0)),
    "windows": lambda x: (
        jax.lax.dynamic_slice(x, (1, 2), (2, 2)),
        x[np.array([[0, 2], [1, 1]]), :, None],
        x[:, np.array([0, 2]), None],
        x[np.array([2, 1]), np.array([0, 2])],
        x[np.int32(1), np.int32(2)],
        jnp.take_along_axis(x, np.argsort(MATRIX, axis=1), axis=1),
        jax.vmap(lambda row, i: row[i])(x, np.array([2, 0, 1])),
        jax.vmap(lambda row, i: row.at[i].add(1.0))(x, np.array([2, 0, 1])),
        x.at[np.array([0, 2])[:, None], np.array([1, 2])].set(x[:2, :2]),
        jnp.asarray(MATRIX)[np.array([2, 0])] @ x,
        jnp.zeros((4, 3)).at[np.array([3, 1, 3])].add(MATRIX) @ x,
    ),
    "beyond the array": lambda x: (
        jnp.take(x, np.array([1, 7]), axis=0, mode="clip"),
        jnp.take(x, np.array([1, 7]), axis=0, mode="fill", fill_value=5.0),
        x.at[np.array([1, 7])].add(1.0, mode="drop"),
        x.at[np.array([1, 7])].add(1.0, mode="clip"),
        jnp.asarray(MATRIX).at[np.array([1, 7])].add(1.0, mode="drop"),
    ),
    "places that depend on values": lambda x: (
        x[jnp.argmax(x[0])],
        jax.lax.dynamic_slice(x, (jnp.argmin(x[1]), 0), (1, 3)),
        x.at[jnp.argmax(x[0])].set(0.0),
    ),
    "segments": lambda x: jax.ops.segment_sum(x, np.array([1, 0, 1]), 4),
    "padding": lambda x: jnp.pad(x, ((1, 0), (0, 2))),
    "integers": lambda x: (x.astype(jnp.int32) // 2, jnp.arange(3) % 2, (x > 0).astype(jnp.float32)),
    "loop": loop,
    "loop with outputs": loop_with_outputs,
    "while": until,
    "known branch": lambda x: jax.lax.cond(MATRIX[0, 0] > 0, lambda x: x * 2, lambda x: x * 3, x),
    "branch": lambda x: jax.lax.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x * 3, x),
    "sorting": lambda x: (jnp.sort(x, axis=0), jnp.argmin(x, axis=1), jnp.cumsum(x, axis=1)),
    "linear algebra": lambda x: jnp.linalg.cholesky(x @ x.T + 2 * jnp.eye(3)),
    "own derivative": lambda x: (jax.nn.relu(x), jax.nn.softplus(x), jnp.linalg.norm(x, axis=0)),
    "nothing": lambda x: (jnp.ones(2), jnp.zeros((0, 3)), x[:0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unrolled_is_vmap(name, rng):
    x = rng.normal(size=(3, 3, 5)).astype(np.float32)
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        ours = jax.jit(unrolled(FUNCTIONS[name]))(x)
        expected = jax.jit(jax.vmap(FUNCTIONS[name], in_axes=-1, out_axes=-1))(x)
    assert jax.tree.structure(ours) == jax.tree.structure(expected)
    for value, oracle in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        assert value.dtype == oracle.dtype
        np.testing.assert_allclose(value, oracle, rtol=2e-6, atol=2e-6)


def test_several_arguments_as_pytrees(rng):
    arguments = {"a": rng.normal(size=(2, 6)), "b": (rng.normal(size=6), rng.integers(0, 9, 6))}
    arguments = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), arguments)

    def function(tree, factor):
        return {"sum": tree["a"][0] + tree["b"][0] * factor, "rest": tree["b"][1]}

    factor = jnp.full(6, 3.0)
    ours, expected = unrolled(function)(arguments, factor), jax.vmap(function, -1, -1)(arguments, factor)
    jax.tree.map(np.testing.assert_allclose, ours, expected)


def test_nothing_is_computed_twice_or_for_nothing():
    def function(x):
        rotation = jnp.asarray(MATRIX)
        return (rotation @ x) * (rotation @ x), jnp.zeros((3, 3)) @ x

    primitives = [equation.primitive.name for equation in jax.make_jaxpr(unrolled(function))(jnp.zeros((3, 5))).eqns]
    assert primitives.count("mul") == 6  # 2 z, -x and y / 2 are three products, and there are three squares
    assert "dot_general" not in primitives
