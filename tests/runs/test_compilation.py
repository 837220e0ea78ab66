import os
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread

import jax
import pytest

from moqd.runs import compilation
from moqd.runs.compilation import COMPILE, HIT, CompileClock, default_folder, use_cache, uses_cache

TRACE = "/jax/core/compile/jaxpr_trace_duration"
SETTINGS = (
    "jax_enable_compilation_cache",
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@pytest.fixture
def no_cache_yet():
    """JAX as it is when a user starts it, and afterwards as the other tests want it."""
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_seconds_are_those_of_the_union():
    """[1, 2] and [3, 4] within [0, 5]; [7, 9] and [8, 10] overlap; [10, 11] touches; [20, 20.5] comes late: 5+4+0.5."""
    with CompileClock() as clock:
        for start, end in ((1, 2), (3, 4), (20, 20.5), (0, 5), (7, 9), (8, 10), (10, 11)):
            jax.monitoring.record_event_time_span(TRACE, start, end, fun_name="f")
        jax.monitoring.record_event_time_span("/jax/something/else", 30, 40)
        assert clock.seconds == pytest.approx(9.5)
        assert clock.programs == 0
        jax.monitoring.record_event_time_span(COMPILE, 4, 7.5)  # from within the first to within the second
        assert clock.seconds == pytest.approx(11.5)
        jax.monitoring.record_event_time_span(COMPILE, 9, 10)  # adds nothing
        jax.monitoring.record_event(HIT)
        jax.monitoring.record_event("/jax/compilation_cache/cache_misses")
        assert clock.seconds == pytest.approx(11.5)
    assert (clock.programs, clock.from_cache) == (2, 1)
    jax.monitoring.record_event_time_span(COMPILE, 100, 200)  # after the end
    jax.monitoring.record_event(HIT)
    assert (clock.seconds, clock.programs, clock.from_cache) == (pytest.approx(11.5), 2, 1)


def test_a_real_program():
    seen = []
    with CompileClock() as clock:
        assert not clock.busy
        program = jax.jit(lambda x: seen.append(clock.busy) or x * 3.0)
        program(2.0)
        assert seen == [True]
        assert clock.programs >= 1
        assert clock.seconds > 0
        assert not clock.busy
        before = clock.programs, clock.seconds
        program(3.0)  # compiled already
        assert (clock.programs, clock.seconds) == before


def test_threads_do_not_lose_anything():
    def compile_many(first: int) -> None:
        for i in range(first, first + 500):
            jax.monitoring.record_event(HIT)
            jax.monitoring.record_event_time_span(COMPILE, 2 * i, 2 * i + 1)

    with CompileClock() as clock:
        threads = [Thread(target=compile_many, args=(500 * k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (clock.seconds, clock.programs, clock.from_cache) == (2000.0, 2000, 2000)


def test_the_cache_is_in_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_folder().parent == tmp_path / "cache" / "moqd" / "jax"
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert default_folder().parent == Path.home() / ".cache" / "moqd" / "jax"


def test_programs_of_another_processor_are_kept_apart(monkeypatch):
    """JAX would load them, and they would crash."""
    here = default_folder()
    assert default_folder() == here
    told = "processor : 0\nmodel name : Another\nflags : fpu avx512f\n"
    monkeypatch.setattr(Path, "exists", lambda _: True)
    monkeypatch.setattr(Path, "read_text", lambda _: told)
    there = default_folder()
    assert there != here
    monkeypatch.setattr(Path, "read_text", lambda _: f"{told}\ncpu MHz : 2400\n{told}")
    assert default_folder() == there
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert default_folder() not in (here, there)


@pytest.mark.usefixtures("no_cache_yet")
def test_every_program_is_kept_where_only_the_user_can_write(tmp_path):
    assert not uses_cache()
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True, mode=0o777)
    assert use_cache(folder) == folder
    assert uses_cache()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert jax.config.jax_compilation_cache_dir == str(folder)
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 0
    assert jax.config.jax_persistent_cache_min_entry_size_bytes == -1


@pytest.mark.usefixtures("no_cache_yet")
def test_what_the_user_has_set_stays(tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.7)
    assert use_cache(tmp_path / "other") == tmp_path / "mine"
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 0.7
    jax.config.update("jax_enable_compilation_cache", False)
    assert use_cache(tmp_path / "other") is None
    assert not uses_cache()
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("no_cache_yet")
def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match=r"cannot be kept in .*file/cache' \(Not a directory\), so every start"):
        assert use_cache(tmp_path / "file" / "cache") is None
    assert not uses_cache()


@pytest.mark.usefixtures("no_cache_yet")
def test_a_user_without_home(monkeypatch):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.warns(UserWarning, match=r"cannot be kept \(Could not determine home directory.\), so"):
        assert use_cache() is None


def test_the_second_start_compiles_nothing(tmp_path):
    """Two processes, with nothing of moqd but the file that is tested, which is quicker."""
    program = (
        "import runpy, jax\n"
        f"parts = runpy.run_path({str(compilation.__file__)!r})\n"
        "assert parts['use_cache']() == parts['default_folder']()\n"
        "with parts['CompileClock']() as clock:\n"
        "    jax.jit(lambda x: x @ x)(jax.numpy.ones((4, 4))).block_until_ready()\n"
        "print(clock.programs, clock.from_cache)\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    for start in range(2):
        told = subprocess.run(
            [sys.executable, "-c", program],
            env=kept | {"XDG_CACHE_HOME": str(tmp_path), "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            check=True,
        )
        programs, from_cache = map(int, told.stdout.split())
        assert programs > 0
        assert from_cache == start * programs
        assert told.stderr == ""


@pytest.mark.slow  # processes that compile everything
def test_other_seeds_take_the_same_programs(tmp_path):
    """A second run with another seed compiles nothing."""
    script = """
import sys
import jax
import moqd
from moqd.runs.compilation import HIT, COMPILE, use_cache
from pathlib import Path

use_cache(Path(sys.argv[1]))
seen = {HIT: 0, COMPILE: 0}
jax.monitoring.register_event_listener(lambda name, **_: seen.update({HIT: seen[HIT] + (name == HIT)}))
jax.monitoring.register_event_duration_secs_listener(
    lambda name, *_, **__: seen.update({COMPILE: seen[COMPILE] + (name == COMPILE)})
)
task = moqd.make_task("arm-2", num_joints=3)
moqd.run(moqd.make_algorithm("mome", task, num_cells=4, ga_batch=8), task, iterations=2, seed=int(sys.argv[2]))
print(seen[COMPILE] - seen[HIT])
"""
    environment = os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    compiled = []
    for seed in ("0", "1"):
        command = [sys.executable, "-c", script, str(tmp_path), seed]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        compiled.append(int(done.stdout))
    assert compiled[0] > 0
    assert compiled[1] == 0
