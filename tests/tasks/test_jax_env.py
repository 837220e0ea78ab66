"""Tasks from JAX environments, against a cart in plain NumPy whose episodes are a Python loop."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core.networks import apply_policy
from moqd.tasks.jax_env import StateFeature, jax_env_task
from moqd.tasks.locomotion import _brax, _rest, _robot

LENGTH = 30
BATCH = 12
WALL = 0.6


class CartState(NamedTuple):
    obs: Any
    done: Any
    speed: Any
    effort: Any
    info: Any


class Cart:
    """A cart on a track: pushed by its action and braked by its wheels; at the end of its track it is done."""

    action_size = 1
    dt = 0.05

    def __init__(self, wall: float = WALL, done_as: Any = jnp.float32, broken_beyond: float = np.inf) -> None:
        self.wall, self.done_as, self.broken_beyond = wall, done_as, broken_beyond

    def reset(self, key):
        position, velocity = 0.1 * jax.random.normal(key, (2,))
        # Not of the types that step gives, as in some environments.
        return CartState(jnp.stack([position, velocity]), self.done_as(0), 0, 0.0, {"rng": key, "time": 0})

    def step(self, state, action):
        position, velocity = state.obs
        velocity = 0.8 * velocity + 0.05 * action[0]
        position = position + velocity
        broken = jnp.abs(position) > self.broken_beyond
        return CartState(
            obs=jnp.stack([position, velocity]),
            done=(jnp.abs(position) > self.wall).astype(self.done_as),
            speed=jnp.where(broken, jnp.nan, velocity),
            effort=action[0] ** 2,
            info={"rng": jax.random.split(state.info["rng"])[0], "time": state.info["time"] + 1},
        )


FUNCTIONS = {
    "objectives": {"speed": lambda state: state.speed, "effort": lambda state: state.effort},
    "minimised": ["effort"],
    "features": {
        "distance": (lambda state: jnp.abs(state.obs[0]), (0.0, 1.0)),
        "end": StateFeature(lambda state: state.obs[0], (-1.0, 1.0), "final"),
    },
}


def cart_task(env=None, **changes):
    options = {"name": "cart", "episode_length": LENGTH, "hidden_sizes": (8,), **FUNCTIONS, **changes}
    return jax_env_task(Cart() if env is None else env, **options)


@cache
def some_policies():
    """Of which some reach the end of the track and some do not."""
    policies = cart_task().init_genotype(jax.random.key(1), BATCH)
    return jax.tree.map(lambda leaf: leaf * jnp.linspace(0.0, 3.0, BATCH).reshape(-1, *[1] * (leaf.ndim - 1)), policies)


@cache
def evaluated():
    return jax.tree.map(np.asarray, cart_task().evaluate(jax.random.key(0), some_policies()))


def played(policy, start, wall=WALL):
    """The steps of an episode (obs, action, reward, next obs) and whether the cart reached the end."""
    obs, steps = np.asarray(start), []
    while len(steps) < LENGTH:
        hidden = np.maximum(obs @ policy[0].kernel + policy[0].bias, 0)
        action = np.tanh(hidden @ policy[1].kernel + policy[1].bias)
        velocity = 0.8 * obs[1] + 0.05 * action[0]
        after = np.array([obs[0] + velocity, velocity])
        steps.append((obs, action, np.array([velocity, -(action[0] ** 2)]), after))
        obs = after
        if abs(obs[0]) > wall:
            return steps, True
    return steps, False


def policy_of(policies, i):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[i], policies)


@pytest.mark.parametrize("i", range(BATCH))
def test_episodes_are_those_of_a_plain_loop(i):
    steps, reached_end = played(policy_of(some_policies(), i), Cart().reset(jax.random.PRNGKey(0)).obs)
    columns = [np.stack(column) for column in zip(*steps, strict=True)]
    positions = columns[3][:, 0]
    one = jax.tree.map(lambda leaf: leaf[i], evaluated())
    close = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(one.fitness, columns[2].sum(axis=0), **close)
    np.testing.assert_allclose(one.feature, [np.abs(positions).mean(), positions[-1]], **close)
    assert one.valid
    assert one.num_steps == len(steps)
    transitions = one.transitions
    for found, expected in zip(transitions[:4], columns, strict=True):
        np.testing.assert_allclose(found[: len(steps)], expected, **close)
        assert (found[len(steps) :] == 0).all()
    assert transitions.valid.tolist() == [True] * len(steps) + [False] * (LENGTH - len(steps))
    assert np.flatnonzero(transitions.terminated).tolist() == ([len(steps) - 1] if reached_end else [])


def test_some_episodes_end_at_the_wall_and_some_at_the_time_limit():
    terminated = evaluated().transitions.terminated.any(axis=1)
    assert 0 < terminated.sum() < BATCH
    assert (evaluated().num_steps[~terminated] == LENGTH).all()


def test_fitness_alone_is_the_same_and_no_key_matters():
    task = cart_task(Cart(done_as=jnp.bool_))
    alone = task.evaluate_fitness(jax.random.key(7), some_policies())
    assert alone.transitions is None
    for found, expected in zip(alone[:3], evaluated()[:3], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_another_seed_is_another_start_and_a_start_can_be_given():
    start = Cart().reset(jax.random.PRNGKey(5))
    seeded, given = (
        task.evaluate_fitness(jax.random.key(0), some_policies())
        for task in (cart_task(seed=5), cart_task(initial_state=start))
    )
    np.testing.assert_allclose(seeded.fitness, given.fitness, rtol=1e-5, atol=1e-6)
    assert not np.allclose(seeded.fitness, evaluated().fitness)


def test_resamples_are_averaged_over_random_starts():
    policies, number = some_policies(), 3
    evaluation = cart_task(resamples=number).evaluate(jax.random.key(2), policies)
    starts = evaluation.transitions.obs[:, 0]
    assert len(np.unique(starts[:, 0])) == BATCH * number
    episodes = [
        [played(policy_of(policies, i), start)[0] for start in starts[i * number : (i + 1) * number]]
        for i in range(BATCH)
    ]
    fitness = np.array([[sum(step[2] for step in steps) for steps in some] for some in episodes])
    np.testing.assert_allclose(evaluation.fitness, fitness.mean(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(evaluation.std, fitness.std(axis=1), rtol=1e-3, atol=1e-5)
    assert evaluation.num_steps.tolist() == [sum(map(len, some)) for some in episodes]


@pytest.mark.parametrize("resamples", [None, 2])
def test_noise_is_added_to_actions_and_recorded(resamples):
    """The cart's velocity says which action it was given: the one with the noise, limited to [-1, 1]."""
    task, policies = cart_task(resamples=resamples), some_policies()
    noise = jnp.asarray(np.where(np.arange(BATCH) % 2, 0.5, 0)[:, None], jnp.float32)
    found = jax.tree.map(np.asarray, task.explore(jax.random.key(3), policies, noise))
    again = jax.tree.map(np.asarray, task.explore(jax.random.key(3), policies, noise))
    jax.tree.map(np.testing.assert_array_equal, found, again)
    steps, each = found.transitions, resamples or 1
    without = jax.vmap(apply_policy)(jax.tree.map(lambda leaf: jnp.repeat(leaf, each, axis=0), policies), steps.obs)
    deviation = (steps.action - np.asarray(without))[..., 0]
    noisy = np.repeat(np.arange(BATCH) % 2 == 1, each)[:, None] & steps.valid
    assert abs(deviation[noisy].std() - 0.5) < 0.07
    assert abs(deviation[noisy].mean()) < 4 * 0.5 / np.sqrt(noisy.sum())
    np.testing.assert_allclose(deviation[steps.valid & ~noisy], 0, atol=1e-6)
    assert (np.abs(steps.action) > 1).any()
    expected = 0.8 * steps.obs[..., 1] + 0.05 * np.clip(steps.action[..., 0], -1, 1)
    np.testing.assert_allclose(steps.next_obs[..., 1][steps.valid], expected[steps.valid], atol=1e-6)
    if resamples is None:  # the policies without noise do what they always do
        for ours, known in ((found.fitness, evaluated().fitness), (found.feature, evaluated().feature)):
            np.testing.assert_array_equal(ours[::2], known[::2])


def test_a_task_with_a_given_start_can_be_resampled():
    start = Cart().reset(jax.random.PRNGKey(5))
    found, expected = (
        task.evaluate(jax.random.key(2), some_policies())
        for task in (cart_task(initial_state=start).resampled(3), cart_task(resamples=3))
    )
    assert np.array_equal(found.fitness, expected.fitness)
    assert np.array_equal(found.std, expected.std)


def test_what_is_not_finite_is_not_valid():
    evaluation = cart_task(Cart(broken_beyond=WALL)).evaluate(jax.random.key(0), some_policies())
    terminated = evaluated().transitions.terminated.any(axis=1)
    assert np.array_equal(evaluation.valid, ~terminated)
    assert np.isfinite(evaluation.fitness).all()
    assert np.array_equal(evaluation.num_steps, evaluated().num_steps - terminated)


def test_a_start_that_is_not_finite_is_not_valid():
    start = Cart().reset(jax.random.PRNGKey(0))._replace(obs=jnp.array([jnp.nan, 0.0]))
    evaluation = cart_task(initial_state=start).evaluate_fitness(jax.random.key(0), some_policies())
    assert not evaluation.valid.any()
    assert (evaluation.num_steps == 0).all()


def test_the_policy_is_what_the_environment_asks_for():
    policy = cart_task(observe=lambda state: jnp.append(state.obs, state.speed)).policy
    assert (policy.num_obs, policy.num_actions, policy.hidden_sizes, policy.control_rate) == (3, 1, (8,), 20.0)


def test_bounds_that_are_not_known_are_left_to_a_run():
    task = cart_task(features={"a": (ANY[0], None), "b": ANY})
    assert (task.has_feature_bounds, task.feature_bounds[1]) == (False, ANY[1])
    learned = task.within([(-2.0, 3.0), (7.0, 8.0)])
    assert (learned.has_feature_bounds, learned.feature_bounds) == (True, ((-2.0, 3.0), ANY[1]))
    assert learned.env is task.env


def test_no_features_are_one_cell():
    evaluation = cart_task(features={}).evaluate_fitness(jax.random.key(0), some_policies())
    assert evaluation.feature.shape == (BATCH, 0)
    np.testing.assert_allclose(evaluation.fitness, evaluated().fitness, rtol=1e-5, atol=1e-6)


@pytest.mark.slow  # compiles twice
def test_a_run_continues_with_episodes_of_the_same_kind_only(tmp_path):
    task = cart_task()
    moqd.run("mome", task, iterations=1, ga_batch=4, num_cells=4, out=tmp_path / "run")
    assert moqd.load_run(tmp_path / "run", task=cart_task()).task.episode_length == task.episode_length
    for name, value in {"episode_length": 3, "resamples": 2, "seed": 9}.items():
        with pytest.raises(moqd.InputError, match=f"is of a task with {name.replace('_', ' ')} "):
            moqd.resume(tmp_path / "run", task=cart_task(**{name: value}), iterations=2)


@pytest.mark.slow  # tests/algorithms has such runs on the walk
def test_a_run_with_policy_gradients(tmp_path):
    task = cart_task(units={"speed": "m/s, summed over steps"})
    options = {"ga_batch": 4, "pg_batch": 4, "actor_batch": 4, "num_cells": 8, "front_length": 4}
    steps = {"critic_steps": 2, "pg_steps": 2, "minibatch": 16, "buffer_size": 1000, "critic_hidden_sizes": (8,)}
    algorithm = moqd.make_algorithm("mome-p2c", task, **options, **steps)
    run = moqd.run(algorithm, task, iterations=2, out=tmp_path / "run")
    assert run.metrics["failed_evaluations"][-1] == 0
    assert run.archive.valid.any()
    again = moqd.load_run(tmp_path / "run", task=task).solutions()
    assert (again.objectives[:, 1] >= 0).all()


class Playground(Cart):
    """Observations by name, as MuJoCo Playground has them."""

    def reset(self, key):
        state = super().reset(key)
        return state._replace(obs={"state": state.obs})

    def step(self, state, action):
        after = super().step(state._replace(obs=state.obs["state"]), action)
        return after._replace(obs={"state": after.obs})


def test_observations_by_name_are_observed_by_a_function():
    end = {"end": (lambda state: state.obs["state"][0], (-1.0, 1.0), "final")}
    task = cart_task(Playground(), features=end, observe=lambda state: state.obs["state"])
    evaluation = task.evaluate_fitness(jax.random.key(0), some_policies())
    np.testing.assert_allclose(evaluation.fitness, evaluated().fitness, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(evaluation.feature[:, 0], evaluated().feature[:, 1], rtol=1e-5, atol=1e-6)


class Sizeless(Cart):
    action_size = None


class Forgetful(Cart):
    def step(self, state, action):
        return super().step(state, action)._replace(info={"rng": state.info["rng"]})


class Growing(Cart):
    def step(self, state, action):
        return super().step(state, action)._replace(speed=jnp.zeros(2))


class OnHost(Cart):
    def step(self, state, action):
        return super().step(state, np.asarray(action))


ANY = (lambda state: state.obs[0], (0.0, 1.0))


@pytest.mark.parametrize(
    ("env", "changes", "message"),
    [
        (Sizeless(), {}, r"the action_size of the environment of task 'cart' is None; give action_size="),
        (Playground(), {}, r"what is observed in task 'cart' is a dict, not a vector; give observe="),
        (Cart(), {"observe": lambda state: state.speed}, r"what is observed in task 'cart' is one number, not a vec"),
        (
            Cart(),
            {"objectives": {"all": lambda state: state.obs}, "minimised": []},
            r"objective 'all'.*shape \(2,\); i",
        ),
        (Cart(), {"objectives": {"a": lambda state: state.sped}, "minimised": []}, r"objective 'a'.*has no attribute"),
        (Cart(), {"objectives": {}, "minimised": []}, "objective_names is empty"),
        (Cart(), {"features": {"all": (lambda state: state.obs, (0.0, 1.0))}}, r"feature 'all'.*is of shape \(2,\)"),
        (Cart(), {"features": {"a": (*ANY, "last")}}, r"the feature 'a' is .*'last'\); give \(function of the state"),
        (Cart(), {"features": {"a": ANY[:1]}}, r"the feature 'a' is .*; give \(function of the state"),
        (Cart(), {"features": {"a": (ANY[0], (1.0, 0.0))}}, r"the range of feature 'a' is \(1.0, 0.0\)"),
        (Cart(), {"minimised": ["efort"]}, "unknown objective 'efort' of minimised; did you mean 'effort'"),
        (Cart(), {"episode_length": 0}, "episode_length is 0; give a whole number of at least 1"),
        (Cart(), {"hidden_sizes": (0,)}, r"hidden_sizes is \(0,\); give a list of whole numbers"),
        (Cart(), {"resamples": 0}, "resamples is 0; give a whole number of at least 1, or None"),
        (Cart(), {"resamples": 2, "initial_state": ()}, "both resamples and initial_state are given"),
        (Cart(), {"seed": -1}, "seed is -1; give a whole number of at least 0"),
        (Forgetful(), {}, r"step of task 'cart' gives a state of another form.*, in \.info\['time'\]; reset and step"),
        (Growing(), {}, r"step of task 'cart' gives a state of another form.*, in \.speed; reset and step"),
        (OnHost(), {}, r"step of task 'cart' cannot be traced by JAX .TracerArrayConversionError: .*jax\.numpy\.$"),
        (object(), {"action_size": 1}, r"env is <object.*; give an environment with reset\(key\) and step"),
    ],
)
def test_what_does_not_fit_gets_one_sentence(env, changes, message):
    with pytest.raises(moqd.InputError, match=message) as caught:
        cart_task(env, **changes)
    assert "\n" not in str(caught.value)


def hopper_task():
    """Brax's hopper from the initial state of moqd's own."""
    hopper = _robot("hopper", "spring")
    with _brax():
        state, obs = _rest("hopper", "spring")
        start = jax.jit(hopper.reset)(jax.random.PRNGKey(0)).replace(pipeline_state=state, obs=obs)
        return jax_env_task(
            hopper,
            name="brax hopper",
            objectives={
                "forward velocity": lambda state: state.metrics["x_velocity"],
                "energy": lambda state: state.metrics["reward_ctrl"],
            },
            features={"height": (lambda state: state.pipeline_state.x.pos[0, 2], (0.0, 2.0))},
            episode_length=40,
            initial_state=start,
        )


@pytest.mark.slow
def test_a_robot_of_brax_moves_as_the_task_of_its_name():
    task, own = hopper_task(), moqd.make_task("hopper-2", episode_length=40)
    policies = task.init_genotype(jax.random.key(3), 8)
    with _brax():
        found = task.evaluate_fitness(jax.random.key(0), policies)
    expected = own.evaluate_fitness(jax.random.key(0), policies)
    assert task.policy[:3] == own.policy[:3]
    assert task.policy.control_rate == own.policy.control_rate
    assert np.array_equal(found.num_steps, expected.num_steps)
    np.testing.assert_allclose(found.fitness, expected.fitness, rtol=1e-2, atol=1e-3)
    assert np.std(expected.fitness[:, 0]) > 0.1
