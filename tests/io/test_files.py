"""Files are whole or not there, hold what was written, and do nothing when they are read."""

import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import moqd
from moqd.io.files import (
    FORMAT,
    Tensor,
    own_folder,
    read_json,
    read_tensors,
    whole,
    write_file,
    write_json,
    write_tensors,
)


def arrays(rng):
    return {
        "weights/0": rng.normal(size=(7, 3)).astype(np.float32),
        "count": np.array(5, np.int32),
        "steps": np.array(2**32 - 1, np.uint32),
        "nothing": np.zeros((4, 0), np.float32),
        "valid": rng.random((3, 5)) < 0.5,
    }


def test_tensors_are_safetensors_for_everyone(rng, tmp_path):
    written = arrays(rng)
    write_tensors(tmp_path / "a.safetensors", {name: whole(array) for name, array in written.items()})
    for read in (read_tensors, load_file):
        found = read(tmp_path / "a.safetensors")
        assert set(found) == set(written)
        for name, array in written.items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_a_tensor_in_pieces_is_the_same_as_one(tmp_path):
    array = np.arange(30, dtype=np.float32).reshape(10, 3)
    write_tensors(tmp_path / "a", {"x": whole(array)})
    write_tensors(tmp_path / "b", {"x": Tensor("float32", (10, 3), lambda: (array[i : i + 4] for i in (0, 4, 8)))})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_every_flipped_bit_of_a_small_file_is_noticed(tmp_path):
    path = tmp_path / "a"
    write_tensors(path, {"x": whole(np.arange(3, dtype=np.float32)), "y": whole(np.array([True]))})
    good = path.read_bytes()
    for bit in range(8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(bad)
        with pytest.raises(moqd.InputError, match=r"is damaged|has format|does not"):
            read_tensors(path)


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_file(path, lambda beside: beside.write_text("old"))

    def half(beside: Path):
        beside.write_text("ne")
        raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        write_file(path, half)
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("a.txt", "old")]
    with pytest.raises(moqd.StorageError, match=r"could not be written \(No such file or directory\)"):
        write_file(tmp_path / "missing" / "a.txt", lambda beside: beside.write_text("x"))


def test_what_is_written_never_goes_through_a_link(tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    (run / "report.md").symlink_to(outside)
    write_file(run / "report.md", lambda beside: beside.write_text("theirs"))
    assert outside.read_text() == "mine"
    assert not (run / "report.md").is_symlink()
    (run / "figures").symlink_to(tmp_path)
    with pytest.raises(moqd.InputError, match="not a folder but a link"):
        own_folder(run / "figures")


class Bomb:
    def __reduce__(self):
        return (os.system, ("touch exploded",))


@pytest.mark.parametrize("kind", ["pickle", "header", "link", "pipe", "folder", "foreign", "newer"])
def test_hostile_tensors_are_refused(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "archive.safetensors"
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Bomb()))
    elif kind == "header":  # claims ten gigabytes, and has a hole of as much
        with path.open("wb") as file:
            file.write(struct.pack("<Q", 10 * 2**30) + b"{")
            file.truncate(10 * 2**30 + 8)
    elif kind == "link":
        write_tensors(tmp_path / "elsewhere", {"x": whole(np.zeros(1, np.float32))})
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "foreign":  # without our digest
        save_file({"x": np.zeros(1, np.float32)}, path, metadata={"format": str(FORMAT)})
    else:
        save_file({"x": np.zeros(1, np.float32)}, path, metadata={"format": str(FORMAT + 1)})
    expected = "upgrade moqd" if kind == "newer" else "damaged|not a plain file"
    with pytest.raises(moqd.InputError, match=expected):
        read_tensors(path)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a config"),
        ("[1, 2]", "is not a config"),
        ("{}", "is not a config"),
        ("[" * 100_000, "is not a config"),
        ('{"format": 99}', "has format 99, but this moqd reads up to 1; upgrade moqd"),
        ('{"format": true}', "is damaged: its format is True"),
        ("\udcff", "is damaged: it is not text"),
    ],
)
def test_json_is_checked(content, message, tmp_path):
    (tmp_path / "config.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(moqd.InputError, match=message):
        read_json(tmp_path / "config.json", "a config")


def test_json_comes_back_as_it_was(tmp_path):
    content = {"format": 1, "values": [1, 0.1, None, "ä"]}
    write_json(tmp_path / "a.json", content)
    assert read_json(tmp_path / "a.json", "a config") == json.loads(json.dumps(content))
    with (tmp_path / "a.json").open("ab") as file:
        file.truncate(2**25)
    with pytest.raises(moqd.InputError, match="more than the 16777216 that such a file may have"):
        read_json(tmp_path / "a.json", "a config")
