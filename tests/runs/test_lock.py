"""Only one process writes to a run, also where machines share storage; nobody waits for the dead."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

import moqd
from moqd.io.errors import BusyError, StorageError
from moqd.runs import lock as locks
from moqd.runs.lock import LOCK, STALE, RunLock, is_held, process_start, this_process


def place(run, number=1, **changes):
    """A lock as another process would have left it."""
    folder = run / LOCK
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.json"
    path.write_text(json.dumps({"format": 1, "released": False, "since": 0.0, **this_process(), **changes}))
    return path


def held(run):
    return sorted(path.name for path in (run / LOCK).iterdir())


def test_a_lock_is_held_and_released(tmp_path):
    with RunLock(tmp_path) as lock:
        lock.check()
        with pytest.raises(moqd.InputError, match=f"is being written by process {os.getpid()} on"):
            RunLock(tmp_path).__enter__()
    with RunLock(tmp_path) as lock:
        lock.check()
        assert held(tmp_path) == ["2.json"]


def test_the_lock_of_a_dead_process_of_this_machine_is_taken_at_once(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = process_start(child.pid)
    assert start is not None
    place(tmp_path, pid=child.pid, process_start=start)
    with pytest.raises(moqd.InputError, match=f"process {child.pid} on"):
        RunLock(tmp_path).__enter__()
    child.communicate(b"\n")
    with RunLock(tmp_path):
        pass
    # A process id that came around again is another process.
    place(tmp_path, number=9, pid=os.getpid(), process_start="1")
    with RunLock(tmp_path):
        assert held(tmp_path) == ["10.json"]


def test_a_process_that_nobody_waited_for_is_dead(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    for _ in range(500):
        if process_start(child.pid) is None:
            break
        time.sleep(0.02)
    assert process_start(child.pid) is None
    child.wait()


def test_another_machine_counts_while_its_heart_beats(tmp_path):
    path = place(tmp_path, host="elsewhere", machine="elsewhere 1", pid=1)
    with pytest.raises(
        moqd.InputError, match=r"by process 1 on elsewhere, which gave a sign of life 0 s ago.*try again in"
    ):
        RunLock(tmp_path).__enter__()
    os.utime(path, (time.time() - STALE - 5,) * 2)
    with RunLock(tmp_path):
        pass


def test_a_damaged_lock_counts_by_its_age(tmp_path):
    path = place(tmp_path)
    path.write_text("{")
    with pytest.raises(moqd.InputError, match=r"process \? on an unknown host"):
        RunLock(tmp_path).__enter__()
    os.utime(path, (time.time() - STALE - 5,) * 2)
    with RunLock(tmp_path):
        pass


def test_who_was_taken_over_stops_before_it_writes(tmp_path):
    with RunLock(tmp_path) as lock:
        place(tmp_path, number=2, host="elsewhere", machine="elsewhere 1")
        with pytest.raises(BusyError, match="was taken over by another process while this one was suspended"):
            lock.check()
    assert "2.json" in held(tmp_path)
    assert not json.loads((tmp_path / LOCK / "2.json").read_text())["released"]


def test_a_lock_that_cannot_be_looked_at_is_not_taken_over(tmp_path):
    with RunLock(tmp_path) as lock:
        shutil.rmtree(tmp_path / LOCK)
        with pytest.raises(StorageError, match=r"\.lock' cannot be read"):
            lock.check()


def test_a_process_knows_which_of_its_own_locks_it_holds(tmp_path, monkeypatch):
    """Where the disk was full, a lock could not be marked as released."""

    def full(*_):
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(locks, "write_json", full)
        with RunLock(tmp_path):
            assert is_held(tmp_path)
    assert not json.loads((tmp_path / LOCK / "1.json").read_text())["released"]
    assert not is_held(tmp_path)
    with RunLock(tmp_path), pytest.raises(BusyError, match="is being written by process"):
        RunLock(tmp_path).__enter__()


def test_who_is_slow_does_not_get_a_number_that_was_used_before(tmp_path, monkeypatch):
    """It saw lock 1 stale, then others took 2 and 3, and 2 is gone again."""
    place(tmp_path, number=1, pid=2**22 + 1, process_start="1")
    slow = RunLock(tmp_path)
    monkeypatch.setattr(slow, "_holder", lambda number: place(tmp_path, number=3) and None)
    with pytest.raises(moqd.InputError, match="was just taken by another process"):
        slow.__enter__()
    assert "2.json" not in held(tmp_path)
    assert "3.json" in held(tmp_path)


def test_storage_without_links_will_do(tmp_path, monkeypatch):
    def link(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with RunLock(tmp_path) as lock:
        lock.check()
        with pytest.raises(moqd.InputError, match="is being written by process"):
            RunLock(tmp_path).__enter__()


def test_a_lock_from_the_future_is_of_a_wrong_clock(tmp_path):
    path = place(tmp_path, host="elsewhere", machine="elsewhere 1")
    os.utime(path, (time.time() + 10**8,) * 2)
    with RunLock(tmp_path):
        pass


@pytest.mark.parametrize("change", [{"pid": "abc"}, {"pid": None}, {"machine": 3}, {"released": "no"}])
def test_strange_locks_are_no_accident(change, tmp_path):
    place(tmp_path, **change)
    (tmp_path / LOCK / "²3.json").write_text("")
    lock = RunLock(tmp_path)
    if change != {"released": "no"}:
        with pytest.raises(moqd.InputError, match="is being written by process"):
            lock.__enter__()


def test_links_in_the_lock_are_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    place(tmp_path, host="elsewhere", machine="elsewhere 1")
    (tmp_path / LOCK / f".{os.getpid()}.now").symlink_to(precious)
    (tmp_path / LOCK / f".{os.getpid()}.{threading.get_ident()}.new").symlink_to(precious)
    with pytest.raises(moqd.InputError, match="gave a sign of life"):
        RunLock(tmp_path).__enter__()
    os.utime(tmp_path / LOCK / "1.json", (1, 1))
    with RunLock(tmp_path):
        assert precious.read_text() == "precious"


def test_the_heart_beats(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "HEARTBEAT", 0.05)
    with RunLock(tmp_path):
        path = tmp_path / LOCK / "1.json"
        os.utime(path, (1, 1))
        for _ in range(200):
            if path.stat().st_mtime > 1:
                break
            time.sleep(0.02)
        assert path.stat().st_mtime > 1


def _contend(run, gate, wins):
    gate.wait()
    for _ in range(20):
        try:
            with RunLock(run) as lock:
                try:
                    (run / "writer").touch(exist_ok=False)
                except FileExistsError:
                    wins.put("two writers")
                time.sleep(0.002)
                lock.check()
                (run / "writer").unlink()
                wins.put("one")
        except moqd.InputError:
            time.sleep(0.001)


def test_of_many_only_one_writes(tmp_path):
    place(tmp_path, pid=2**22 + 1, process_start="1")  # stale, so that all try to take it over
    context = multiprocessing.get_context("fork")
    gate, wins = context.Event(), context.Queue()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # fork and threads: these children touch no JAX
        children = [context.Process(target=_contend, args=(tmp_path, gate, wins)) for _ in range(6)]
        for child in children:
            child.start()
    gate.set()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    results = [wins.get(timeout=5) for _ in range(wins.qsize())]
    assert results
    assert set(results) == {"one"}
