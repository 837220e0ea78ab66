"""The simulator below the tasks: Brax's own step and MuJoCo's geometry are the oracles."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import moqd
from moqd.core import devices
from moqd.core.devices import compiled
from moqd.tasks.locomotion import _brax, _robot
from moqd.tasks.unrolled import unrolled

SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "robot", ["hopper", *(pytest.param(name, marks=SLOW) for name in ("ant", "halfcheetah", "walker2d"))]
)
def test_unrolled_is_braxs_own_step(robot):
    """A whole control step from poses in the air and on the ground, with feet that slip."""
    env = _robot(robot, "spring")
    key_action, key_q, key_qd = jax.random.split(jax.random.key(0), 3)
    action = jax.random.uniform(key_action, (env.action_size, 8), minval=-1, maxval=1)
    with _brax():
        q = env.sys.init_q[:, None] + jax.random.uniform(key_q, (env.sys.q_size(), 8), minval=-0.05, maxval=0.05)
        qd = 0.5 * jax.random.normal(key_qd, (env.sys.qd_size(), 8))
        state = jax.jit(jax.vmap(env.pipeline_init, in_axes=-1, out_axes=-1))(q, qd)
        ours = jax.jit(unrolled(env.pipeline_step))(state, action)
        theirs = jax.jit(jax.vmap(env.pipeline_step, in_axes=-1, out_axes=-1))(state, action)
    for value, oracle in ((ours.x.pos, theirs.x.pos), (ours.x.rot, theirs.x.rot), (ours.q, theirs.q)):
        np.testing.assert_allclose(value, oracle, atol=1e-5)
    np.testing.assert_allclose(ours.qd, theirs.qd, atol=2e-3)


@pytest.mark.slow
def test_a_hopper_in_the_air_touches_nothing_and_a_standing_one_the_ground():
    task = moqd.make_task("hopper-2", episode_length=120)
    robot = task._robot

    @jax.jit
    def contact(height):
        with _brax():
            q = robot.sys.init_q.at[1].add(height)
            return task._contact(robot.pipeline_init(q, jnp.zeros(robot.sys.qd_size())).x)

    for height, expected in ((1.0, 0), (0.1, 0), (-0.01, 0), (-0.05, 1)):  # it starts 4 cm above the ground
        assert contact(height) == expected
    # Dropped from there with its motors off it bounces twice, and then stands.
    still = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), task.init_genotype(jax.random.key(0), 1))
    replay = moqd.replay(task, still)
    assert len(replay.contact) == 120
    assert not replay.contact[:5].any()
    assert replay.contact[80:].all()


@SLOW
def test_each_of_the_ants_feet_is_seen_alone():
    """Tilted and lowered at random: a foot touches the floor when its sphere, by MuJoCo's kinematics, reaches it."""
    task = moqd.make_task("ant-3")
    env, model = task._robot, task._robot.sys.mj_model
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    feet = [
        model.geom(name).id for name in ("left_foot_geom", "right_foot_geom", "third_foot_geom", "fourth_foot_geom")
    ]

    @jax.jit
    def contact(q):
        with _brax():
            return task._contact(env.pipeline_init(q, jnp.zeros(env.sys.qd_size())).x)

    seen = set()
    for _ in range(60):
        q = np.array(env.sys.init_q, float)
        axis = np.append(rng.normal(size=2), 0.0)
        mujoco.mju_axisAngle2Quat(q[3:7], axis / np.linalg.norm(axis), rng.uniform(0, 0.4))
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        lowest = np.sort(data.geom_xpos[feet, 2])
        q[2] += 0.08 - rng.uniform(lowest[0] - 0.02, lowest[-1] + 0.02)
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        gap = data.geom_xpos[feet, 2] - 0.08
        if np.min(np.abs(gap)) < 1e-4:
            continue  # rounding decides
        touching = np.asarray(contact(q.astype(np.float32)))
        np.testing.assert_array_equal(touching, (gap <= 0).astype(float))
        seen.add(tuple(touching))
    alone = {tuple(row) for row in np.eye(4)}
    assert alone <= seen


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", ["hopper-2", "ant-2"])
def test_memory_is_that_of_the_transitions(name, count, monkeypatch):
    monkeypatch.setattr(devices, "_wanted", count)
    task = moqd.make_task(name)
    genotype = jax.eval_shape(partial(task.init_genotype, num_genotypes=256), jax.random.key(0))
    numbers = 2 * task.policy.num_obs + task.policy.num_actions + 2
    steps = 256 * 1000 * (4 * numbers + 2)

    def memory(evaluate):
        program = compiled(evaluate).lower(jax.random.key(0), genotype)
        returned = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(program.out_info.transitions))
        needed = program.compile().memory_analysis()  # of one device
        return returned, count * (needed.temp_size_in_bytes + needed.output_size_in_bytes)

    returned, needed = memory(task.evaluate)
    assert returned == steps
    assert needed < 1.5 * returned
    returned, needed = memory(task.evaluate_fitness)
    assert returned == 0
    assert needed < 50e6


@pytest.mark.slow
def test_brax_and_mujoco_are_not_heard(tmp_path):
    code = "import moqd; task = moqd.make_task('halfcheetah-2'); print(task.policy.num_obs, task._feet)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert result.stdout.split("\n") == ["17 [3, 6]", ""]
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["positional", "generalized", "mjx"])
def test_other_backends(backend):
    task = moqd.make_task("hopper-2", backend=backend, episode_length=20)
    evaluation = task.evaluate(jax.random.key(0), task.init_genotype(jax.random.key(3), 16))
    assert np.all(np.asarray(evaluation.valid))
    assert np.all(np.isfinite(np.asarray(evaluation.fitness)))
    assert 0 < np.asarray(evaluation.transitions.valid).sum() <= 320
