"""A checkpoint is used only if every bit of it is as it was written; otherwise the one before it is."""

import json
import os
import pickle
import shutil
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core.types import Transition
from moqd.io.files import FORMAT
from moqd.rl.buffer import empty_buffer, insert
from moqd.runs import checkpoint as checkpoints
from moqd.runs.checkpoint import Checkpoint, _sealed, newest_checkpoint, write_checkpoint
from moqd.runs.loop import Loop
from moqd.runs.packing import packed, unpacked
from tests.algorithms.test_algorithms import small
from tests.quick import only
from tests.walk import walk

FACTS = {"env_steps": 0, "seconds": 0.5, "reference_point": [0.0, 0.0], "metrics": {}, "made_with": {}}
FILES = ["manifest.json", "metrics.csv", "state.safetensors"]


class Saved:
    """Two checkpoints of a loop that learns, with its buffer not yet full."""

    def __init__(self, folder):
        self.folder, task = folder, walk()
        loop = Loop(small("mome-p2c", task), task, seed=0)
        loop.prepare()
        loop.start()
        self.states = {}
        for iteration in (1, 2, 3):
            loop.advance(iteration)
            # Copies, because the loop donates its carry.
            self.states[iteration] = jax.tree.map(lambda leaf: np.array(leaf), loop.carry)
            facts = FACTS | {"iteration": iteration}
            write_checkpoint(folder, Checkpoint(facts, loop.carry, f"iteration\r\n{iteration}\r\n"), "this run")
        self.shapes, self.place = loop.carry_shapes(), loop.place

    def newest(self, folder=None, run="this run"):
        return newest_checkpoint(folder or self.folder, self.shapes, self.place, run)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return Saved(tmp_path_factory.mktemp("saved"))


@pytest.fixture
def copy(saved, tmp_path):
    shutil.copytree(saved.folder, tmp_path / "run")
    return tmp_path / "run"


def equal(one, other):
    return all(
        a.dtype == b.dtype and np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


@pytest.mark.slow
def test_the_newest_two_are_kept_and_nothing_else(saved):
    folders = sorted((saved.folder / "checkpoints").iterdir())
    assert [path.name for path in folders] == ["00000002", "00000003"]
    for path in folders:
        assert sorted(entry.name for entry in path.iterdir()) == FILES


def test_what_was_in_use_comes_back_bit_by_bit(saved):
    found = saved.newest()
    assert found.facts["iteration"] == 3
    assert found.table == "iteration\r\n3\r\n"
    before, after = saved.states[3], found.state
    assert jax.tree.structure(before) == jax.tree.structure(after)
    for name in ("agent", "experience"):
        assert equal(getattr(before.state, name), getattr(after.state, name))
    assert equal(before.progress, after.progress)
    archive = after.state.archive
    assert np.array_equal(archive.valid, before.state.archive.valid)
    taken = np.asarray(archive.valid)
    for a, b in zip(jax.tree.leaves(archive[:4]), jax.tree.leaves(before.state.archive[:4]), strict=True):
        assert np.array_equal(np.asarray(a)[taken], b[taken])
        assert not np.asarray(a)[~taken].any()


def test_only_what_is_in_use_of_a_buffer_is_written(tmp_path):
    def step(value, number):
        rows = jnp.full((1, number, 1), value)
        flags = jnp.ones((1, number), bool)
        return Transition(rows, rows, rows, rows, flags, flags)

    buffer = insert(empty_buffer(1_000_000, num_obs=1, num_actions=1, num_objectives=1), step(1.0, 5))
    tensors = packed(buffer)
    assert tensors["steps/obs"].shape == (5, 1)
    full = buffer = insert(empty_buffer(4, num_obs=1, num_actions=1, num_objectives=1), step(2.0, 3))
    full = insert(buffer, step(3.0, 3))
    arrays = {
        name: np.concatenate([*tensor.pieces()]).reshape(tensor.shape) if tensor.shape else next(iter(tensor.pieces()))
        for name, tensor in packed(full).items()
    }
    again = unpacked(jax.eval_shape(lambda: full), arrays, jnp.asarray, "it")
    assert equal(full, again)
    assert again.steps.obs[:, 0].tolist() == [3.0, 3.0, 2.0, 3.0]


@pytest.mark.parametrize("number", only([45], [45, 300]))
def test_every_damage_is_noticed_and_the_one_before_is_used(saved, tmp_path, rng, number):
    """Bit flips, truncations and missing files, spread over all files and all of their length."""
    newest = saved.folder / "checkpoints" / "00000003"
    contents = {name: (newest / name).read_bytes() for name in FILES}
    run = tmp_path / "run"
    shutil.copytree(saved.folder, run)
    broken = run / "checkpoints" / "00000003"
    for trial in range(number):
        shutil.rmtree(broken, ignore_errors=True)
        shutil.copytree(newest, broken)
        name = FILES[trial % 3]
        kind = ("flip", "cut", "missing")[trial // 3 % 3]
        if kind == "flip":
            at, bit = rng.integers(len(contents[name])), rng.integers(8)
            data = bytearray(contents[name])
            data[at] ^= 1 << int(bit)
            (broken / name).write_bytes(data)
        elif kind == "cut":
            (broken / name).write_bytes(contents[name][: rng.integers(len(contents[name]))])
        else:
            (broken / name).unlink()
        with pytest.warns(UserWarning, match="The run goes on from iteration 2"):
            found = saved.newest(run)
        assert found.facts["iteration"] == 2, (name, kind)
        assert equal(found.state.state.agent, saved.states[2].state.agent)
        assert not broken.exists()  # so that it does not count among those that are kept


def test_with_all_of_them_bad_there_is_one_sentence(saved, copy):
    for path in (copy / "checkpoints").iterdir():
        (path / "manifest.json").write_text("{}")
    with pytest.raises(moqd.InputError) as error:
        saved.newest(copy)
    assert str(error.value).startswith(
        f"no checkpoint of {str(copy)!r} is whole, so it cannot be continued; run it again"
    )


def test_a_checkpoint_of_another_run_is_not_used(saved, copy):
    with pytest.raises(moqd.InputError, match=r"no checkpoint of .* is whole"):
        saved.newest(copy, run="that run")


def test_a_newer_format_is_refused_and_not_gone_back_from(saved, copy):
    path = copy / "checkpoints" / "00000003" / "manifest.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    path.write_text(_sealed(content | {"format": FORMAT + 1}))
    with pytest.raises(moqd.InputError, match="has format 2, but this moqd reads up to 1; upgrade moqd"):
        saved.newest(copy)
    assert path.exists()


@pytest.mark.parametrize("attack", ["names", "pickle", "link to a file", "link to a folder", "parent", "huge", "facts"])
def test_hostile_checkpoints_are_refused(saved, copy, attack, tmp_path):
    """With a manifest that is right in itself, as one can make who knows how."""
    path = copy / "checkpoints" / "00000003"
    outside = tmp_path / "outside"
    shutil.copytree(path, outside)
    content = json.loads((path / "manifest.json").read_text())
    del content["sha256"]
    if attack == "names":
        content["files"] = {f"../../{name}": value for name, value in content["files"].items()}
    elif attack == "pickle":
        (path / "state.safetensors").write_bytes(pickle.dumps(print))
    elif attack == "link to a file":
        (path / "state.safetensors").unlink()
        (path / "state.safetensors").symlink_to(outside / "state.safetensors")
    elif attack == "huge":
        with (path / "manifest.json").open("ab") as file:
            file.truncate(2**40)
    elif attack == "facts":
        del content["facts"]["reference_point"]
    if attack != "huge":
        (path / "manifest.json").write_text(_sealed(content))
    if attack == "link to a folder":
        shutil.rmtree(path)
        path.symlink_to(outside)
    if attack == "parent":
        shutil.move(copy / "checkpoints", tmp_path / "moved")
        (copy / "checkpoints").symlink_to(tmp_path / "moved")
        with pytest.raises(moqd.InputError, match="is not a folder but a link"):
            saved.newest(copy)
        return
    with pytest.warns(UserWarning, match="The run goes on from iteration 2"):
        assert saved.newest(copy).facts["iteration"] == 2
    assert sorted(entry.name for entry in outside.iterdir()) == FILES


def test_storage_that_fails_for_a_moment_costs_no_checkpoint(saved, copy, monkeypatch):
    sha256_of = checkpoints.files.sha256_of

    def flaky(path):
        monkeypatch.undo()
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(checkpoints.files, "sha256_of", flaky)
    with pytest.warns(UserWarning, match="Stale file handle.* The run goes on from iteration 2"):
        assert saved.newest(copy).facts["iteration"] == 2
    assert checkpoints.files.sha256_of is sha256_of
    assert saved.newest(copy).facts["iteration"] == 3


def test_without_checkpoints_there_is_none(saved, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert saved.newest(tmp_path) is None


def test_a_full_disk_leaves_the_checkpoints_that_there_are(saved, copy, monkeypatch):
    calls = []

    def fsync(handle):
        calls.append(handle)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    checkpoint = Checkpoint(FACTS | {"iteration": 9}, saved.newest(copy).state, "")
    with pytest.raises(moqd.StorageError, match=r"could not be written \(No space left on device\)"):
        write_checkpoint(copy, checkpoint, "this run")
    assert sorted(path.name for path in (copy / "checkpoints").iterdir()) == ["00000002", "00000003"]
    assert saved.newest(copy).facts["iteration"] == 3
