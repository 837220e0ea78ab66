"""The fast way against the straightforward one, and that it goes up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import yardstick
from moqd.core import preferences
from moqd.core.networks import apply_policy, init_mlp
from moqd.rl.td3 import value
from moqd.variation.policy_gradient import improve

OBS, ACT = 5, 2


def stack(key, number, sizes):
    return jax.vmap(lambda key: init_mlp(key, sizes))(jax.random.split(key, number))


def problem(num_parents: int, num_objectives: int, *, hidden=(32, 24), conditioned=True):
    keys = jax.random.split(jax.random.key(0), 4)
    inputs = OBS + ACT + (num_objectives if conditioned else 0)
    return (
        stack(keys[0], num_parents, (OBS, 16, 16, ACT)),
        preferences.uniform(keys[1], num_parents, num_objectives),
        stack(keys[2], 2, (inputs, *hidden, num_objectives)),
        jax.random.normal(keys[3], (20, 32, OBS)),
    )


def first(critics):
    return jax.tree.map(lambda leaf: leaf[0], critics)


@pytest.mark.parametrize(
    ("num_parents", "num_objectives", "hidden"),
    [(5, 3, (32, 24)), *(pytest.param(*other, marks=pytest.mark.slow) for other in ((1, 2, (32,)), (8, 2, (16,) * 3)))],
)
def test_it_equals_the_straightforward_way(num_parents, num_objectives, hidden):
    parents, preference, critics, obs = problem(num_parents, num_objectives, hidden=hidden)
    expected = jax.jit(lambda *args: yardstick.improve(*args, learning_rate=0.01))(
        parents, preference, first(critics), obs
    )
    found = improve(parents, preference, first(critics), obs, learning_rate=0.01)
    traced = jax.jit(lambda *args: improve(*args, learning_rate=0.01))(parents, preference, first(critics), obs)
    for leaf, inlined, other, start in zip(*map(jax.tree.leaves, (found, traced, expected, parents)), strict=True):
        np.testing.assert_allclose(leaf, other, atol=2e-4)
        np.testing.assert_allclose(inlined, other, atol=2e-4)
        assert np.abs(leaf - start).max() > 0.05


def test_an_aim_is_an_input_like_any_other():
    """A critic that sees an aim is one without it for each parent: what it sees of the aim is a part of its bias."""
    parents, preference, _, obs = problem(3, 2)
    keys = jax.random.split(jax.random.key(5), 2)
    sees_aim = init_mlp(keys[0], (OBS + ACT + 4 + 2, 32, 24, 2))
    aim = jax.random.uniform(keys[1], (3, 4))
    found = improve(parents, preference, sees_aim, obs, learning_rate=0.01, aim=aim)
    kernel = sees_aim[0].kernel
    without = jnp.concatenate([kernel[: OBS + ACT], kernel[OBS + ACT + 4 :]])
    for i in range(3):
        first = sees_aim[0]._replace(kernel=without, bias=sees_aim[0].bias + aim[i] @ kernel[OBS + ACT : OBS + ACT + 4])
        some = jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], (parents, preference))
        alone = improve(*some, (first, *sees_aim[1:]), obs, learning_rate=0.01)
        for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(found), strict=True):
            np.testing.assert_allclose(a[0], b[i], atol=1e-5)


@pytest.mark.parametrize("conditioned", [True, False])
def test_every_parent_rises_on_held_out_states(conditioned):
    num_objectives = 3 if conditioned else 1
    parents, preference, critics, obs = problem(7, num_objectives, conditioned=conditioned)
    improved = improve(parents, preference, first(critics), obs, learning_rate=0.003)
    held_out = jax.random.normal(jax.random.key(9), (500, OBS))

    def worth(policy, preference):
        weights = jnp.broadcast_to(preference, (500, num_objectives))
        return jnp.mean(value(critics, held_out, apply_policy(policy, held_out), weights)[0])

    before, after = (jax.vmap(worth)(policies, preference) for policies in (parents, improved))
    assert (after > before + 0.01).all()


@pytest.mark.slow  # the straightforward way improves each alone
def test_a_parent_does_not_depend_on_who_else_is_improved():
    parents, preference, critics, obs = problem(6, 2)
    together = improve(parents, preference, first(critics), obs, learning_rate=0.01)
    for i in (0, 3, 5):
        alone = improve(
            *jax.tree.map(lambda leaf: leaf[i : i + 1], (parents, preference)),  # noqa: B023
            first(critics),
            obs,
            learning_rate=0.01,
        )
        for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            np.testing.assert_allclose(a[0], b[i], atol=1e-5)
