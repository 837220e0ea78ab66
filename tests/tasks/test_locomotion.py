"""The robots, checked by physics that can be done by hand, by MuJoCo's own geometry and by Brax's own step."""

import subprocess
import sys
from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import moqd
from moqd.core import devices
from moqd.core.devices import compiled
from moqd.tasks.locomotion import SCENES, LocomotionTask, _brax, _rest, _robot

TASKS = list(SCENES)
WEIGHTS = {"ant": 0.5, "halfcheetah": 0.1, "hopper": 0.001, "walker2d": 0.001}


def each(names, slow=()):
    return [pytest.param(name, marks=pytest.mark.slow if name in slow else ()) for name in names]


evaluated_tasks = pytest.mark.parametrize("name", each(TASKS, slow=set(TASKS) - {"hopper-2"}))
"""The robot that compiles soonest; the others in the long tests."""


@pytest.fixture(autouse=True, scope="module")
def fused_as_for_users():
    """Bits of different programs are compared, and those are the same only by the emitters that users have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(devices.FUSION, "xla_cpu_use_fusion_emitters", "True")
        yield


@cache
def task_of(name, **options):
    return moqd.make_task(name, **{"episode_length": 60, **options})


@cache
def genotype_of(name, batch):
    return jax.jit(task_of(name).init_genotype, static_argnums=1)(jax.random.key(3), batch)


@cache
def evaluate(name):
    return task_of(name).evaluate


@cache
def evaluated(name):
    """Thirty-two random policies for 60 steps: on each of two devices, more than the fewest that are done at once."""
    return jax.tree.map(np.asarray, evaluate(name)(jax.random.key(0), genotype_of(name, 32)))


@cache
def replayed(name, i):
    return moqd.replay(task_of(name), jax.tree.map(lambda leaf: leaf[i], genotype_of(name, 32)))


@pytest.mark.parametrize("name", each(TASKS))
def test_a_task_is_what_the_paper_says(name):
    objectives, reference, feet = {
        "ant-2": (["forward velocity", "energy"], [-350, -4500], 4),
        "ant-3": (["x velocity", "y velocity", "energy"], [-1200, -1200, -4500], 4),
        "halfcheetah-2": (["forward velocity", "energy"], [-2000, -800], 2),
        "hopper-2": (["forward velocity", "energy"], [-50, -2], 1),
        "hopper-3": (["forward velocity", "jumping height", "energy"], [-750, 0, -3], 1),
        "walker-2": (["forward velocity", "energy"], [-210, -15], 2),
    }[name]
    task = moqd.make_task(name)
    assert list(task.objective_names) == objectives
    assert list(task.reference_point) == reference
    assert task.num_features == feet == len(task._feet)
    assert set(task.feature_bounds) == {(0.0, 1.0)}
    assert task.config.episode_length == 1000
    assert task.policy.hidden_sizes == (64, 64)
    assert list(moqd.make_task(name, episode_length=250).reference_point) == [value / 4 for value in reference]
    assert list(moqd.make_task(name, reference_point=[-1.0] * len(objectives)).reference_point) == [-1] * len(
        objectives
    )


@evaluated_tasks
def test_an_evaluation_adds_up(name):
    """Fitness is the sum of the recorded rewards, energy that of squared actions, and only what happened is marked."""
    task, evaluation, steps = task_of(name), evaluated(name), evaluated(name).transitions
    length = steps.valid.sum(axis=1)
    assert np.all(evaluation.valid)
    assert np.all((length >= 1) & (length <= 60))
    np.testing.assert_array_equal(steps.valid, np.arange(60) < length[:, None])
    for array in (steps.obs, steps.action, steps.reward, steps.next_obs):
        assert np.all(array[~steps.valid] == 0)
        assert np.all(np.isfinite(array))
    np.testing.assert_allclose(evaluation.fitness, steps.reward.sum(axis=1), rtol=1e-4, atol=1e-4)
    energy = -WEIGHTS[task.scene.robot] * np.sum(steps.action.astype(float) ** 2, axis=(1, 2))
    np.testing.assert_allclose(evaluation.fitness[:, -1], energy, rtol=1e-5)
    assert np.all((evaluation.feature >= 0) & (evaluation.feature <= 1))
    in_steps = evaluation.feature * length[:, None]
    np.testing.assert_allclose(in_steps, np.round(in_steps), atol=1e-3)
    following = steps.valid[:, 1:]
    np.testing.assert_array_equal(steps.obs[:, 1:][following], steps.next_obs[:, :-1][following])
    actions = jax.vmap(jax.vmap(task.policy.apply, in_axes=(None, 0)))(genotype_of(name, 32), steps.obs)
    np.testing.assert_allclose(steps.action[steps.valid], np.asarray(actions)[steps.valid], atol=1e-5)


@evaluated_tasks
def test_truncation_is_told_from_termination(name):
    steps = evaluated(name).transitions
    length = steps.valid.sum(axis=1)
    assert np.all(steps.terminated.sum(axis=1) <= 1)
    assert np.all(steps.terminated[length < 60, length[length < 60] - 1])  # it ended early: it fell
    assert not np.any(steps.terminated & ~steps.valid)
    if task_of(name).scene.robot == "halfcheetah":
        assert not steps.terminated.any()
        assert np.all(length == 60)
    if task_of(name).scene.robot == "hopper":
        assert 0 < steps.terminated.any(axis=1).sum() < 32
        height, angle = steps.next_obs[..., 0], steps.next_obs[..., 1]
        fallen = (height < 0.7) | (np.abs(angle) > 0.2)
        np.testing.assert_array_equal(steps.terminated, fallen & steps.valid)


@pytest.mark.slow
@evaluated_tasks
def test_velocities_sum_to_the_way_and_a_replay_is_the_evaluation(name):
    evaluation, steps = evaluated(name), evaluated(name).transitions
    i = int(np.argmax(steps.valid.sum(axis=1)))
    replay, num_steps = replayed(name, i), int(steps.valid[i].sum())
    np.testing.assert_array_equal(replay.reward, steps.reward[i, :num_steps])
    np.testing.assert_allclose(replay.contact.mean(axis=0), evaluation.feature[i], atol=1e-6)
    assert len(replay.time) == len(replay.position) == len(replay.rotation) == num_steps + 1
    dt = float(task_of(name)._robot.dt)
    np.testing.assert_allclose(np.diff(replay.time), dt)
    way = replay.position[-1, 0] - replay.position[0, 0]
    names = task_of(name).objective_names
    for axis, velocity in enumerate(("x velocity", "y velocity") if name == "ant-3" else ("forward velocity",)):
        assert evaluation.fitness[i, names.index(velocity)] == pytest.approx(way[axis] / dt, rel=1e-3, abs=1e-2)
    if name == "hopper-3":
        np.testing.assert_allclose(replay.reward[:, 1], replay.position[1:, 0, 2], rtol=1e-6)


@pytest.mark.parametrize("name", each(["ant-3", "hopper-2"], slow=["ant-3"]))
def test_shapes_of_a_replay_are_where_mujoco_has_them(name):
    replay, model = replayed(name, 0), _robot(SCENES[name].robot, "spring").sys.mj_model
    data = mujoco.MjData(model)
    data.qpos[:] = np.asarray(_robot(SCENES[name].robot, "spring").sys.init_q)
    mujoco.mj_forward(model, data)
    geoms = np.flatnonzero(model.geom_bodyid > 0)
    assert len(replay.shape_body) == len(geoms)
    for k, geom in enumerate(geoms):
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, replay.rotation[0, replay.shape_body[k]].astype(float))
        ends = [
            replay.position[0, replay.shape_body[k]] + rotation.reshape(3, 3) @ end
            for end in (replay.shape_start[k], replay.shape_end[k])
        ]
        np.testing.assert_allclose(np.mean(ends, axis=0), data.geom_xpos[geom], atol=1e-5)
        capsule = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE
        half = data.geom_xmat[geom].reshape(3, 3)[:, 2] * model.geom_size[geom, 1] * capsule
        np.testing.assert_allclose((ends[1] - ends[0]) / 2, half, atol=1e-5)
        assert replay.shape_radius[k] == pytest.approx(model.geom_size[geom, 0])


@pytest.mark.slow  # the replay above is the evaluation, step by step
@pytest.mark.parametrize("name", ["ant-3", "hopper-2"])
def test_two_evaluations_are_bit_identical(name):
    fitness = task_of(name).evaluate_fitness(jax.random.key(1), genotype_of(name, 32))
    assert fitness.transitions is None
    np.testing.assert_array_equal(fitness.fitness, evaluated(name).fitness)
    np.testing.assert_array_equal(fitness.feature, evaluated(name).feature)
    again = jax.tree.map(np.asarray, evaluate(name)(jax.random.key(1), genotype_of(name, 32)))
    jax.tree.map(np.testing.assert_array_equal, again, evaluated(name))


@pytest.mark.slow
def test_after_a_fall_nothing_is_added():
    """Whoever fell within 50 steps has the same fitness and feature when given 60."""
    shorter = task_of("hopper-2", episode_length=50)
    short = jax.tree.map(np.asarray, shorter.evaluate(jax.random.key(0), genotype_of("hopper-2", 32)))
    long = evaluated("hopper-2")
    fell = short.transitions.terminated.any(axis=1)
    assert 0 < fell.sum() < 32
    np.testing.assert_array_equal(long.fitness[fell], short.fitness[fell])
    np.testing.assert_array_equal(long.feature[fell], short.feature[fell])
    np.testing.assert_array_equal(long.transitions.valid[fell][:, :50], short.transitions.valid[fell])
    assert not long.transitions.valid[fell][:, 50:].any()
    assert np.all(long.fitness[~fell] != short.fitness[~fell])


@pytest.mark.slow
def test_a_rollout_ends_when_all_its_episodes_have():
    task = moqd.make_task("hopper-2", episode_length=60)
    count, advance = [], task.advance

    def counted(genotype, episode, noise=None):
        jax.debug.callback(lambda time: count.append(int(time)), episode.time)
        return advance(genotype, episode, noise)

    object.__setattr__(task, "advance", counted)
    fell = evaluated("hopper-2").transitions.terminated.any(axis=1)
    length = evaluated("hopper-2").transitions.valid.sum(axis=1)
    falling = jax.tree.map(lambda leaf: leaf[fell], genotype_of("hopper-2", 32))
    jax.block_until_ready(jax.jit(partial(task.episodes, record=False))(falling))
    jax.effects_barrier()
    assert max(count) + 1 == length[fell].max() < 60


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ant-2", "hopper-2", "walker-2"])
def test_one_and_two_devices_agree(name, monkeypatch):
    task = task_of(name, episode_length=50)
    two = task.evaluate(jax.random.key(0), genotype_of(name, 32))
    assert len(two.fitness.sharding.device_set) == 2
    monkeypatch.setattr(devices, "_wanted", 1)
    one = compiled(lambda key, genotype: task.evaluate(key, genotype))(jax.random.key(0), genotype_of(name, 32))
    assert len(one.fitness.sharding.device_set) == 1
    assert np.all(np.asarray(one.transitions.valid) == np.asarray(two.transitions.valid))
    np.testing.assert_allclose(one.transitions.next_obs, two.transitions.next_obs, atol=1e-4)
    np.testing.assert_allclose(one.fitness, two.fitness, atol=1e-4, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 11])
def test_any_batch_gives_the_same_rows(batch):
    part = jax.tree.map(lambda leaf: leaf[:batch], genotype_of("hopper-2", 32))
    evaluation = evaluate("hopper-2")(jax.random.key(0), part)
    assert evaluation.fitness.shape == (batch, 2)
    assert evaluation.transitions.obs.shape == (batch, 60, 11)
    np.testing.assert_allclose(evaluation.fitness, evaluated("hopper-2").fitness[:batch], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_resamples_are_random_initial_states_averaged():
    task = task_of("hopper-2", resamples=3)
    genotype = jax.tree.map(lambda leaf: leaf[:5], genotype_of("hopper-2", 32))
    evaluate = task.evaluate
    evaluation = evaluate(jax.random.key(0), genotype)
    steps = evaluation.transitions
    assert evaluation.fitness.shape == evaluation.std.shape == (5, 2)
    assert steps.obs.shape[0] == 15
    each = np.asarray(steps.reward).sum(axis=1).reshape(5, 3, 2)
    np.testing.assert_allclose(evaluation.fitness, each.mean(axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(evaluation.std, each.std(axis=1), rtol=1e-2, atol=1e-4)
    assert np.all(np.asarray(evaluation.std)[:, 0] > 0)
    first = np.asarray(steps.obs[:, 0])
    assert len(np.unique(first, axis=0)) == 15
    rest = np.asarray(_rest("hopper", "spring")[1])
    assert 0 < np.max(np.abs(first - rest)) <= 0.03  # Brax moves every joint by up to 0.005
    other = evaluate(jax.random.key(1), genotype)
    assert np.all(np.asarray(other.fitness)[:, 0] != np.asarray(evaluation.fitness)[:, 0])
    assert evaluated("hopper-2").std is None


def test_a_robot_that_explodes_is_a_failed_evaluation():
    task = task_of("hopper-2")
    genotype = jax.tree.map(lambda leaf: leaf.at[0].set(jnp.nan), genotype_of("hopper-2", 32))
    evaluation = jax.tree.map(np.asarray, evaluate("hopper-2")(jax.random.key(0), genotype))
    assert not evaluation.valid[0]
    assert evaluation.valid[1:].all()
    assert not evaluation.transitions.valid[0].any()
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(evaluation))
    np.testing.assert_array_equal(evaluation.fitness[1:], evaluated("hopper-2").fitness[1:])
    assert task.num_objectives == 2


def test_feet_that_cannot_be_found_are_an_error():
    task = task_of("hopper-2")
    scene = task.scene._replace(feet=("left", "right"))
    other = LocomotionTask(
        scene,
        task.config,
        name="two-footed hopper",
        objective_names=task.objective_names,
        feature_names=scene.feet,
        feature_bounds=((0.0, 1.0),) * 2,
    )
    with pytest.raises(moqd.InputError, match=r"1 links of the robot 'hopper' can touch the floor as feet, but 2 are"):
        jax.eval_shape(other.evaluate, jax.random.key(0), genotype_of("hopper-2", 32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episode_length": 0}, "episode_length is 0; give a whole number of at least 1"),
        ({"resamples": 0}, "resamples is 0; give a whole number of at least 1, or None"),
        ({"hidden_sizes": (64, 0)}, r"hidden_sizes is \(64, 0\); give a list of whole numbers"),
        ({"episode": 3}, "unknown option 'episode' of task 'hopper-2'"),
        ({"reference_point": [0.0]}, "give 2 finite numbers"),
    ],
)
def test_wrong_options_are_said(options, message):
    with pytest.raises(moqd.InputError, match=message):
        moqd.make_task("hopper-2", **options)


def test_what_cannot_be_replayed_is_said():
    with pytest.raises(moqd.InputError, match="give one policy, not a batch"):
        moqd.replay(task_of("hopper-2"), genotype_of("hopper-2", 32))
    with pytest.raises(moqd.InputError, match="task 'arm-2' cannot be replayed"):
        moqd.replay(moqd.make_task("arm-2"), jnp.zeros(12))


def test_other_hidden_sizes():
    genotype = jax.eval_shape(lambda: moqd.make_task("hopper-2", hidden_sizes=[8]).init_genotype(jax.random.key(0), 2))
    assert [layer.kernel.shape for layer in genotype] == [(2, 11, 8), (2, 8, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", each(["ant-2", "halfcheetah-2", "hopper-2", "walker-2"], slow=["ant-2", "halfcheetah-2", "walker-2"])
)
def test_as_much_is_observed_as_brax_says(name):
    with _brax():
        assert task_of(name).policy.num_obs == task_of(name)._robot.observation_size


@pytest.mark.slow
def test_what_only_other_robots_need_is_imported_when_it_is_used() -> None:
    script = """
import sys
import moqd
moqd.make_task("hopper-2").policy
assert not {"trimesh", "scipy.spatial", "jaxopt"} & set(sys.modules)
from brax.generalized import constraint
from mujoco.mjx._src import mesh
import jaxopt, scipy.spatial, trimesh
assert mesh.trimesh.Trimesh is trimesh.Trimesh
assert mesh.spatial.ConvexHull is scipy.spatial.ConvexHull
assert constraint.jaxopt.ProjectedGradient is jaxopt.ProjectedGradient
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
