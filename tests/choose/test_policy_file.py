"""Exported policies act as ours do, say what they are, and refuse to be anything else."""

import json
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import moqd
from moqd.choose.pick import Solution
from tests.plots.made import made_run


@pytest.fixture(scope="module")
def solution():
    task = moqd.make_task("hopper-2", episode_length=20, hidden_sizes=(16, 8))
    genotype = jax.tree.map(lambda leaf: np.asarray(leaf)[0], task.init_genotype(jax.random.key(3), 1))
    objectives = {"forward velocity": 1.5, "energy": -0.25}
    return Solution(task, 2, 0, objectives, {"foot contact": 0.5}, (0.75, 0.25), genotype)


OBSERVATIONS = np.random.default_rng(0).normal(size=(50, 11)).astype(np.float32)


def ours(solution):
    return jax.vmap(lambda obs: solution.task.policy.apply(solution.genotype, obs))(jnp.asarray(OBSERVATIONS))


def test_a_solution_acts_as_its_policy(solution):
    np.testing.assert_allclose(solution.policy(OBSERVATIONS), ours(solution), atol=1e-6)
    np.testing.assert_allclose(solution.policy(OBSERVATIONS[0]), ours(solution)[0], atol=1e-6)
    assert np.all(np.abs(solution.policy(1e3 * OBSERVATIONS)) <= 1)


def test_npz_and_back(solution, tmp_path):
    path = moqd.export_policy(solution, tmp_path / "policy.npz")
    loaded = moqd.load_policy(path)
    np.testing.assert_allclose(loaded(OBSERVATIONS), ours(solution), atol=1e-6)
    assert loaded(OBSERVATIONS[0]).shape == (3,)
    header = loaded.header
    assert header["task"] == "hopper-2"
    assert header["objectives"] == solution.objectives
    assert header["preference"] == {"forward velocity": 0.75, "energy": 0.25}
    assert header["control_rate"] == pytest.approx(1 / solution.task._robot.dt)
    assert (header["action"]["low"], header["action"]["high"], header["action"]["size"]) == (-1, 1, 3)
    assert header["action"]["names"] == ["thigh_joint", "leg_joint", "foot_joint"]
    assert len(header["observation"]["names"]) == header["observation"]["size"] == 11
    assert header["network"]["sizes"] == [11, 16, 8, 3]
    np.testing.assert_array_equal(loaded.action_bounds, [[-1, 1]] * 3)
    assert repr(loaded).startswith("LoadedPolicy(11-16-8-3, of task 'hopper-2': {'forward velocity': 1.5")
    assert repr(solution.task.policy) == "Policy(11-16-8-3)"
    assert repr(solution) == (
        "Solution(hopper-2, cell 2: forward velocity=1.5, energy=-0.25, foot contact=0.5; "
        f"policy {solution.genotype!r})"
    )
    assert repr(solution.genotype) == "(Dense(11 -> 16), Dense(16 -> 8), Dense(8 -> 3))"


@pytest.mark.parametrize("bounds", [((-2.0, 2.0), (0.0, 0.5), (-1.0, 3.0)), None])
def test_a_policy_says_the_bounds_of_the_environment(solution, bounds, tmp_path, monkeypatch):
    monkeypatch.setitem(vars(solution.task), "policy", solution.task.policy._replace(action_bounds=bounds))
    loaded = moqd.load_policy(moqd.export_policy(solution, tmp_path / "policy.npz"))
    np.testing.assert_array_equal(loaded.action_bounds, bounds)
    assert (loaded.header["action"]["low"], loaded.header["action"]["high"]) == (-1, 1), "of the network"


def test_onnx_by_its_own_reference(solution, tmp_path):
    path = moqd.export_policy(solution, tmp_path / "policy.onnx")
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    (action,) = ReferenceEvaluator(model).run(None, {"observation": OBSERVATIONS})
    np.testing.assert_allclose(action, ours(solution), atol=1e-5)
    header = json.loads({prop.key: prop.value for prop in model.metadata_props}["moqd"])
    assert header["observation"]["names"] == list(solution.task.policy.obs_names)


@pytest.mark.parametrize("robot", ["ant-2", "halfcheetah-2", "hopper-2", "walker-2"])
def test_observations_are_what_their_names_say(robot):
    """Moving a joint, or giving it a velocity, changes the observation of its name most."""
    from moqd.tasks.locomotion import _brax

    task = moqd.make_task(robot)
    env, names = task._robot, task.policy.obs_names
    model, size = env.sys.mj_model, task.policy.num_obs
    with _brax():
        observe = jax.jit(lambda q, qd: env._get_obs(env.pipeline_init(q, qd)))
        q, qd = env.sys.init_q, jnp.zeros(env.sys.qd_size())
        rest = observe(q, qd)
        position = [i for i in range(model.nq) if not np.array_equal(observe(q.at[i].add(0.01), qd), rest)]
    assert len(names) == size == model.nq + model.nv - (2 if robot == "ant-2" else 1)
    assert sum(name.endswith("velocity") for name in names) == model.nv
    for joint in range(model.njnt):
        name = model.joint(joint).name
        at = int(model.jnt_qposadr[joint])
        if model.jnt_type[joint] in (2, 3) and at in position:  # slides and hinges
            dof = int(model.jnt_dofadr[joint])
            with _brax():
                changes = [observe(q.at[at].add(0.01), qd) - rest, observe(q, qd.at[dof].add(0.01)) - rest]
            for change, said in zip(changes, (name, f"{name} velocity"), strict=True):
                assert names[int(np.argmax(np.abs(np.asarray(change))))] == said
    assert not {names[0], names[1]} & {"rootx", "root x", "root y"}


@pytest.mark.parametrize("name", ["policy.txt", "policy", "policy.pkl"])
def test_other_kinds_of_files_are_refused(solution, tmp_path, name):
    with pytest.raises(moqd.InputError, match=r"ends in \.npz or \.onnx"):
        moqd.export_policy(solution, tmp_path / name)


def test_what_is_no_policy_is_not_exported(tmp_path):
    chosen = moqd.pick(made_run(), [1, 1])
    with pytest.raises(moqd.InputError, match="not policies"):
        moqd.export_policy(chosen, tmp_path / "policy.npz")


def damaged(path, content):
    with zipfile.ZipFile(path, "w") as file:
        for name, data in content.items():
            file.writestr(name, data)


def test_files_that_are_no_policy_are_refused(solution, tmp_path):
    path = tmp_path / "policy.npz"
    with pytest.raises(moqd.InputError, match="is missing"):
        moqd.load_policy(path)
    for content in (b"", b"PK", b"\x80\x04N."):
        path.write_bytes(content)
        with pytest.raises(moqd.InputError, match="is not a policy"):
            moqd.load_policy(path)
    damaged(path, {"header.npy": b"x"})
    with pytest.raises(moqd.InputError, match="is not a policy"):
        moqd.load_policy(path)
    np.savez(path, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(moqd.InputError, match="is not a policy"):
        moqd.load_policy(path)
    moqd.export_policy(solution, path)
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(bytes(arrays["header"]))
    for change, says in (
        ({"kernel0": arrays["kernel0"][:-1]}, "not of the sizes"),
        ({"bias0": arrays["bias0"].astype(np.float64)}, "not of float32"),
        ({"header": np.frombuffer(b"[]", np.uint8)}, "is not a policy"),
        ({"header": np.frombuffer(json.dumps(header | {"format": 99}).encode(), np.uint8)}, "upgrade moqd"),
    ):
        np.savez(path, **{**arrays, **change})
        with pytest.raises(moqd.InputError, match=says):
            moqd.load_policy(path)
