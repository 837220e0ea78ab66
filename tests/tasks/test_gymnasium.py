"""Environments of Gymnasium, beside plain loops over their steps."""

import subprocess
import sys

import gymnasium
import jax
import jax.numpy as jnp
import mo_gymnasium
import numpy as np
import pytest

import moqd
from moqd import InputError
from moqd.core.networks import apply_policy
from moqd.tasks.features import Feature, final_info, final_position, foot_contact, mean_info, mean_obs
from moqd.tasks.gymnasium import gymnasium_task

# What is sent to the workers is made within functions: a name of this module would have them import it, and JAX.
KEY = jax.random.key(0)
SMALL = {"hidden_sizes": (8,), "workers": 1}
FOOT = {"foot contact": foot_contact("foot")}
jitted_policy = jax.jit(apply_policy)


def policies(task, number, *, seed=0, scale=1.0):
    return jax.tree.map(lambda leaf: leaf * scale, task.init_genotype(jax.random.key(seed), number))


def act(genotype, row, obs):
    policy = jax.tree.map(lambda leaf: np.asarray(leaf)[row], genotype)
    return np.asarray(jitted_policy(policy, obs))


def plain_loop(task, genotype, row, env, seed, to_env=lambda action: action, watch=lambda env: None):
    """An episode as anyone would write it: a tuple for each step."""
    obs, _ = env.reset(seed=seed)
    steps = []
    for _ in range(task.episode_length):
        action = act(genotype, row, obs.astype(np.float32))
        after, reward, terminated, truncated, info = env.step(to_env(action))
        steps.append((obs, action, reward, after, terminated, info, watch(env)))
        obs = after
        if terminated or truncated:
            break
    return steps


def touches(env):
    """Whether the hopper's foot is in a contact with the floor."""
    model, data = env.unwrapped.model, env.unwrapped.data
    pairs = [{model.geom(i).name for i in contact.geom} for contact in data.contact]
    return {"floor", "foot_geom"} in pairs


@pytest.fixture(scope="module")
def hopper():
    """Policies of a hopper of which some fall within 40 steps and some do not."""
    task = gymnasium_task("mo-hopper-v5", features=FOOT, episode_length=40, **SMALL)
    genotype = policies(task, 6)
    return task, genotype, task.evaluate(KEY, genotype)


def test_returns_features_and_transitions_are_those_of_a_plain_loop(hopper):
    task, genotype, evaluation = hopper
    env, length = mo_gymnasium.make("mo-hopper-v5"), task.episode_length
    ends = set()
    for row in range(6):
        obs, action, reward, after, terminated, _, on_ground = zip(
            *plain_loop(task, genotype, row, env, 0, watch=touches), strict=True
        )
        steps = len(obs)
        np.testing.assert_allclose(evaluation.fitness[row], np.sum(reward, axis=0), rtol=1e-4)
        np.testing.assert_allclose(evaluation.feature[row, 0], np.mean(on_ground), atol=1e-6)
        assert evaluation.num_steps[row] == steps
        recorded = jax.tree.map(lambda leaf, row=row: np.asarray(leaf[row]), evaluation.transitions)
        for column, expected in zip(recorded, (obs, action, reward, after), strict=False):
            np.testing.assert_allclose(column[:steps], expected, rtol=1e-3, atol=1e-4)
            assert not column[steps:].any()
        assert recorded.valid.tolist() == [True] * steps + [False] * (length - steps)
        assert recorded.terminated.tolist() == [*terminated, *[False] * (length - steps)]
        ends.add((terminated[-1], steps == length))
    assert ends == {(True, False), (False, True)}  # falls, and episodes that the limit cut
    assert evaluation.valid.all()
    assert 0 < evaluation.feature.mean() < 1


def test_the_fitness_alone_is_the_same_without_transitions(hopper):
    task, genotype, evaluation = hopper
    alone = task.evaluate_fitness(KEY, genotype)
    assert alone.transitions is None
    jax.tree.map(np.testing.assert_array_equal, alone, evaluation._replace(transitions=None))


def test_noise_is_added_to_actions_and_recorded(hopper):
    task, genotype, evaluation = hopper
    noise = jnp.broadcast_to(jnp.array([0, 0, 0, 0.1, 0.1, 0.3])[:, None], (6, 3))
    noisy = task.explore(KEY, genotype, noise)
    np.testing.assert_array_equal(noisy.fitness[:3], evaluation.fitness[:3])
    steps = jax.tree.map(np.asarray, noisy.transitions)
    deviation = steps.action - np.asarray(jax.vmap(apply_policy)(genotype, noisy.transitions.obs))
    np.testing.assert_allclose(deviation[:3][steps.valid[:3]], 0, atol=1e-5)
    assert 0.2 < deviation[5][steps.valid[5]].std() < 0.4
    again = task.explore(KEY, genotype, noise)
    jax.tree.map(np.testing.assert_array_equal, again, noisy)


def test_any_number_of_workers_gives_the_same(hopper):
    _, genotype, evaluation = hopper
    other = gymnasium_task("mo-hopper-v5", features=FOOT, episode_length=40, hidden_sizes=(8,), workers=2)
    jax.tree.map(np.testing.assert_array_equal, other.evaluate(jax.random.key(1), genotype), evaluation)


def test_it_says_what_it_is(hopper):
    task, *_ = hopper
    assert task.objective_names == ("reward 0", "reward 1", "reward 2")
    assert not task.traceable
    assert (task.policy.num_obs, task.policy.num_actions, task.policy.hidden_sizes) == (11, 3, (8,))
    assert task.policy.control_rate == 125
    assert task.policy.obs_names[:3] == ("rootz", "rooty", "thigh_joint")
    assert task.policy.action_names == ("thigh_joint", "leg_joint", "foot_joint")
    assert task.label("foot contact") == "foot contact (share of steps on the ground)"
    assert gymnasium_task("mo-hopper-v5", features={}).episode_length == 1000


def test_a_robot_is_replayed(hopper):
    task, genotype, evaluation = hopper
    env = mo_gymnasium.make("mo-hopper-v5")
    replay = task.replay(jax.tree.map(lambda leaf: leaf[1], genotype))
    poses = plain_loop(task, genotype, 1, env, 0, watch=lambda env: env.unwrapped.data.xpos[1:].copy())
    steps = int(evaluation.num_steps[1])
    np.testing.assert_allclose(replay.position[1:], [step[-1] for step in poses], atol=1e-4)
    np.testing.assert_allclose(replay.reward.sum(axis=0), evaluation.fitness[1], rtol=1e-5)
    np.testing.assert_allclose(replay.contact.mean(axis=0), evaluation.feature[1], atol=1e-6)
    np.testing.assert_allclose(replay.time, np.arange(steps + 1) * 0.008)
    assert replay.body_names == ("torso", "thigh", "leg", "foot")
    assert replay.rotation.shape == (steps + 1, 4, 4)
    torso = replay.shape_start[0], replay.shape_end[0]  # 0.4 m long and upright
    np.testing.assert_allclose(np.abs(torso[1] - torso[0]), [0, 0, 0.4], atol=1e-3)
    assert len(list(task.replays(genotype))) == 6
    with pytest.raises(InputError, match="give one policy, not a batch"):
        task.replay(genotype)


def test_resamples_are_averaged_over_random_initial_states():
    task = gymnasium_task("mo-hopper-v5", features=FOOT, episode_length=20, resamples=3, **SMALL)
    genotype = policies(task, 2)
    evaluation = task.evaluate(KEY, genotype)
    env = mo_gymnasium.make("mo-hopper-v5")
    for row, seeds in enumerate(np.asarray(jax.random.bits(KEY, (6,), jnp.uint32)).reshape(2, 3)):
        episodes = [plain_loop(task, genotype, row, env, int(seed)) for seed in seeds]
        returns = np.array([np.sum([step[2] for step in steps], axis=0) for steps in episodes])
        np.testing.assert_allclose(evaluation.fitness[row], returns.mean(axis=0), rtol=1e-3)
        np.testing.assert_allclose(evaluation.std[row], returns.std(axis=0), rtol=1e-2, atol=1e-3)
        assert evaluation.num_steps[row] == sum(map(len, episodes))
    assert evaluation.transitions.obs.shape == (6, 20, 11)
    starts = evaluation.transitions.obs[:, 0]
    assert len(np.unique(starts, axis=0)) == 6
    same, other = task.evaluate_fitness(KEY, genotype), task.evaluate_fitness(jax.random.key(1), genotype)
    assert (same.fitness == evaluation.fitness).all()
    assert not (other.fitness == evaluation.fitness).any()


def test_discrete_actions_and_objectives_from_info():
    task = gymnasium_task(
        "CartPole-v1",
        objectives={"time": "reward", "cost": lambda info: 2 * info["reward"]},
        minimised=["cost"],
        features={"position": mean_obs(0, (-2.4, 2.4), unit="m")},
        units={"time": "steps"},
        episode_length=30,
        **SMALL,
    )
    genotype = policies(task, 4)
    evaluation = task.evaluate(KEY, genotype)
    env = gymnasium.make("CartPole-v1")
    lengths = set()
    for row in range(4):
        steps = plain_loop(task, genotype, row, env, 0, to_env=lambda action: int(np.argmax(action)))
        assert evaluation.fitness[row].tolist() == [len(steps), -2 * len(steps)]
        np.testing.assert_allclose(evaluation.feature[row, 0], np.mean([step[3][0] for step in steps]), rtol=1e-4)
        np.testing.assert_allclose(
            evaluation.transitions.action[row, : len(steps)], [step[1] for step in steps], rtol=1e-3, atol=1e-5
        )
        assert evaluation.transitions.terminated[row].any() == (len(steps) < 30)
        lengths.add(len(steps))
    assert evaluation.transitions.reward[0, 0].tolist() == [1, -2]
    assert len(lengths) > 1
    assert task.units == {"position": "m", "time": "steps"}
    with pytest.raises(InputError, match="cannot be replayed"):
        task.replay(jax.tree.map(lambda leaf: leaf[0], genotype))


def test_continuous_actions_are_scaled_to_their_bounds():
    def make(high):
        class Echo(gymnasium.Env):
            """Rewards are the actions."""

            observation_space = gymnasium.spaces.Dict(
                place=gymnasium.spaces.Discrete(3), speed=gymnasium.spaces.Box(-1, 1, (2,))
            )
            action_space = gymnasium.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, high], np.float32))

            def reset(self, *, seed=None, options=None):
                self.place, self.steps = seed, 0
                return self.observed(), {}

            def step(self, action):
                assert self.action_space.contains(action)
                self.place, self.steps = 0, self.steps + 1
                return self.observed(), action, False, self.steps == 3, {"level": self.steps}

            def observed(self):
                return {"place": self.place, "speed": np.array([0.5, -0.5], np.float32)}

        return Echo()

    task = gymnasium_task(
        make,
        env_options={"high": 10.0},
        objectives=["first", "second"],
        features={"level": mean_info("level", (0, 1)), "end": final_info("level", (0, 1))},
        episode_length=4,
        seed=2,
        name="echo",
        **SMALL,
    )
    assert task.policy.action_bounds == ((-2.0, 2.0), (0.0, 10.0))
    genotype = policies(task, 3, scale=4.0)
    evaluation = task.evaluate(KEY, genotype)
    assert evaluation.valid.all(), task.failures
    assert evaluation.transitions.obs[0, :2].tolist() == [[0, 0, 1, 0.5, -0.5], [1, 0, 0, 0.5, -0.5]]
    action, reward = (np.asarray(column)[:, :3] for column in evaluation.transitions[1:3])
    np.testing.assert_allclose(reward, action * [2, 5] + [0, 5], rtol=1e-5)
    np.testing.assert_allclose(evaluation.feature, [[2, 3]] * 3)
    assert evaluation.num_steps.tolist() == [3, 3, 3]  # cut by the environment itself
    assert not evaluation.transitions.terminated.any()


def test_robots_features_and_objectives_of_gymnasium():
    task = gymnasium_task(
        "HalfCheetah-v5",
        objectives={"speed": "x_velocity", "effort": "reward_ctrl"},
        features={"end": final_position(0, (-1, 1)), "also end": final_info("x_position", (-1, 1))},
        env_options={"reset_noise_scale": 0.0},
        episode_length=10,
        **SMALL,
    )
    genotype = policies(task, 2)
    evaluation = task.evaluate(KEY, genotype)
    np.testing.assert_allclose(evaluation.feature[:, 0], evaluation.feature[:, 1], rtol=1e-5)
    np.testing.assert_allclose(evaluation.fitness[:, 0] * 0.05, evaluation.feature[:, 0], rtol=1e-3)
    assert (evaluation.fitness[:, 1] < 0).all()
    assert not task.replay(jax.tree.map(lambda leaf: leaf[0], genotype)).contact.any()


def test_an_episode_that_fails_is_a_failed_evaluation():
    def make():
        class Fragile(gymnasium.Env):
            observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
            action_space = gymnasium.spaces.Discrete(3)

            def reset(self, *, seed=None, options=None):
                return np.ones(1, np.float32), {}

            def step(self, action):
                if action == 1:
                    raise RuntimeError("the simulator\nblew up")
                return np.ones(1, np.float32), np.array([1.0, np.nan if action == 2 else 2.0]), False, False, {}

        return Fragile()

    task = gymnasium_task(make, features={}, episode_length=3, hidden_sizes=(), workers=2)
    assert task.policy.action_bounds is None, "they are discrete"
    (layer,) = policies(task, 5)
    genotype = (layer._replace(kernel=jnp.eye(3, dtype=jnp.float32)[jnp.array([0, 1, 2, 0, 1])][:, None, :]),)
    evaluation = task.evaluate(KEY, genotype)
    assert evaluation.valid.tolist() == [True, False, False, True, False]
    assert evaluation.fitness.tolist() == [[3, 6], [0, 0], [0, 0], [3, 6], [0, 0]]
    assert all(np.isfinite(column).all() for column in evaluation.transitions)
    raised = "it raised RuntimeError (the simulator) in an episode with seed 0"
    nan = "it raised FloatingPointError (the reward of step 0 is not finite) in an episode with seed 0"
    assert list(task.failures) == [raised, nan, raised]
    broken = (layer._replace(kernel=jnp.full((1, 1, 3), jnp.nan), bias=layer.bias[:1]),)
    assert not task.evaluate_fitness(KEY, broken).valid.any()
    assert "the action of step 0 is not finite" in task.failures[-1]


def test_a_feature_that_fails_is_a_failed_evaluation():
    features = {"a": Feature(lambda trajectory: 1 / 0, (0, 1))}, {"b": Feature(lambda trajectory: np.nan, (0, 1))}
    said = "ZeroDivisionError", "feature 'b' is nan"
    for one, expected in zip(features, said, strict=True):
        task = gymnasium_task("mo-hopper-v5", features=one, episode_length=2, **SMALL)
        assert not task.evaluate_fitness(KEY, policies(task, 1)).valid.any()
        assert expected in task.failures[-1]


def test_a_worker_loads_neither_jax_nor_moqd():
    loaded = lambda name: Feature(lambda trajectory: float(name in sys.modules), (0, 1))  # noqa: E731
    features = {name: loaded(name) for name in ("jax", "moqd", "gymnasium")}
    task = gymnasium_task("mo-hopper-v5", features=features, episode_length=2, **SMALL)
    assert task.evaluate_fitness(KEY, policies(task, 1)).feature.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"env_id": "mo-hoper-v5"}, "unknown environment 'mo-hoper-v5'; did you mean 'mo-hopper-v5'"),
        ({"env_id": "Hopper-v5"}, "reward of task 'Hopper-v5' is one number; give objectives by name"),
        ({"objectives": ["a", "b"]}, r"objectives is \['a', 'b'\], but task .* has 3 rewards; give 3 names"),
        ({"objectives": {"a": "heigt"}}, "LookupError: info has no field 'heigt', only reward, x_position"),
        ({"objectives": {"a": lambda info: [1, 2]}}, "an objective .* is not one number"),
        ({"env_options": {"legs": 3}}, "cannot be made .TypeError: .*legs.* look at env_options"),
        ({"features": {"a": foot_contact("toe")}}, "'a' cannot be observed .LookupError: .* 'toe', only .*foot_geom"),
        ({"features": {"a": Feature(lambda trajectory: 1, (1, 0))}}, r"the range of feature 'a' is \(1, 0\)"),
        ({"episode_length": 0}, "episode_length is 0; give a whole number"),
        ({"hidden_sizes": (0,)}, r"hidden_sizes is \(0,\); give a list"),
        ({"resamples": 0}, "resamples is 0; give a whole number"),
        ({"workers": 0}, "workers is 0; give a whole number"),
        ({"seed": -1}, "seed is -1; give a whole number"),
        ({"reference_point": [0.0]}, "give 3 finite numbers"),
        ({"env_id": lambda: 3}, "is 3; its function must return a gymnasium.Env"),
    ],
)
def test_bad_arguments_get_one_sentence(change, message):
    arguments = {"env_id": "mo-hopper-v5", "features": {}, "episode_length": 5, **change}
    with pytest.raises(InputError, match=message) as caught:
        gymnasium_task(arguments.pop("env_id"), **arguments)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (gymnasium.spaces.MultiBinary(2), "actions of task 'env' are of MultiBinary.2.*use a wrapper"),
        (gymnasium.spaces.Box(-np.inf, np.inf, (2,)), "actions of task 'env' are of Box.*finite bounds"),
    ],
)
def test_other_actions_are_refused(space, message):
    env = gymnasium.Env()
    env.action_space, env.observation_space = space, gymnasium.spaces.Discrete(2)
    with pytest.raises(InputError, match=message):
        gymnasium_task(lambda: env, features={}, name="env")


MISTAKES = """
import sys
from moqd import InputError
from moqd.tasks.gymnasium import gymnasium_task


def say(call):
    try:
        call()
    except InputError as error:
        print(error)


say(lambda: gymnasium_task(3, features={}))
say(lambda: gymnasium_task("CartPole-v1", features=["foot"]))
say(lambda: gymnasium_task("CartPole-v1", features={"foot": abs}))
say(lambda: gymnasium_task("CartPole-v1", features={}, objectives="reward"))
say(lambda: gymnasium_task("CartPole-v1", features={}, env_options=3))
sys.modules["gymnasium"] = None
say(lambda: gymnasium_task("CartPole-v1", features={}))
"""


def test_wrong_types_and_a_missing_extra_get_one_sentence():
    done = subprocess.run([sys.executable, "-c", MISTAKES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "env_id is 3; give an id such as 'mo-hopper-v5', or a function that makes one.",
        "features is ['foot']; give a Feature for each name, such as those of moqd.features.",
        "features['foot'] is <built-in function abs>; give one of moqd.features, or your own: "
        "moqd.features.Feature(lambda trajectory: ..., bounds=(0, 1)).",
        "objectives is 'reward'; give a list of names, or functions of info: "
        '{"speed": "x_velocity", "effort": lambda info: ...}.',
        "env_options is 3; give options of the environment by name.",
        "gymnasium_task needs the package 'gymnasium', which is not installed; "
        "install it with: pip install 'moqd[gym]'",
    ]


@pytest.mark.slow  # docs/environments.md has a run of MOME
@pytest.mark.parametrize("name", ["mome-p2c", "mome-pgx"])
def test_policy_gradients_run(name):
    task = gymnasium_task("mo-hopper-v5", features=FOOT, episode_length=20, **SMALL)
    options = {"ga_batch": 3, "pg_batch": 4, "pg_steps": 2, "critic_steps": 2, "minibatch": 8, "buffer_size": 256}
    own = {"actor_batch": 3} if name == "mome-p2c" else {}
    algorithm = moqd.make_algorithm(name, task, critic_hidden_sizes=(8,), num_cells=4, **options, **own)
    run = moqd.run(algorithm, task, iterations=2)
    assert run.metrics["moqd_score"][-1] > 0
    assert run.metrics["failed_evaluations"][-1] == 0
    assert len(run.solutions().cell) > 0


@pytest.mark.slow
def test_mome_p2c_beats_mome_on_a_hopper():
    """Equal evaluations, settings of the preset `small`, two seeds."""
    task = gymnasium_task(
        "mo-hopper-v5",
        objectives=["forward", "height", "energy"],
        features=FOOT,
        episode_length=200,
        reference_point=(-50.0, 0.0, 0.0),
    )
    options = {"mome-p2c": {"ga_batch": 32, "pg_batch": 16, "actor_batch": 16}, "mome": {"ga_batch": 64}}

    def score(name, seed):
        algorithm = moqd.make_algorithm(name, task, **options[name])
        return moqd.run(algorithm, task, evaluations=64 * 24, seed=seed).metrics["moqd_score"][-1]

    scores = {name: [score(name, seed) for seed in (0, 1)] for name in options}
    print(scores)
    assert min(scores["mome-p2c"]) > max(scores["mome"]), scores


def test_an_environment_that_this_program_has_registered():
    """The workers have never heard of its name."""

    class Still(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-1, 1, (2,))
        action_space = gymnasium.spaces.Box(-1, 1, (1,))

        def __init__(self, start=0.0):
            self.start = start

        def reset(self, *, seed=None, options=None):
            return np.full(2, self.start, np.float32), {}

        def step(self, action):
            return np.full(2, self.start, np.float32), 1.0, False, False, {"x": self.start}

    gymnasium.register("moqd-still-v0", entry_point=Still, max_episode_steps=7)
    try:
        objectives = {"reward": "reward", "place": "x"}
        features = {"x": mean_info("x", bounds=(0, 1))}
        task = gymnasium_task(
            "moqd-still-v0", features=features, objectives=objectives, env_options={"start": 0.25}, **SMALL
        )
        evaluation = task.evaluate(KEY, policies(task, 2))
    finally:
        del gymnasium.registry["moqd-still-v0"]
    assert task.name == "moqd-still-v0"
    assert evaluation.valid.all()
    np.testing.assert_allclose(evaluation.fitness, [[7, 1.75]] * 2)
    np.testing.assert_allclose(evaluation.feature, 0.25)
