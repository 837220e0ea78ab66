"""Calls in processes: whatever a function does, the others go on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moqd import InputError
from moqd.tasks.pool import ProcessPool, check_pool

FACTOR = 3


def calls(*numbers):
    return [((number,), {}) for number in numbers]


def results(pool, arguments):
    found = dict(pool.calls(arguments))
    assert sorted(found) == list(range(len(arguments)))
    return [found[index] for index in range(len(arguments))]


def made_awkward():
    """Made here, because a name of this module would have each worker import it, and JAX."""

    def awkward(number):
        """What a simulator may do."""
        if number == 1:
            raise ValueError("one\nis wrong")
        if number == 2:
            time.sleep(60)
        if number == 3:
            os._exit(7)
        if number == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 5:
            print("this is no answer", flush=True)
            sys.stdout.write("nor is this")
        return FACTOR * number

    return awkward


def test_a_failure_is_a_result():
    pool = ProcessPool(made_awkward(), workers=2, timeout=1)
    found = results(pool, calls(0, 1, 2, 3, 4, 5, 6))
    assert [one.value for one in found] == [0, None, None, None, None, 15, 18]
    kinds = [one.failure and one.failure.kind for one in found]
    assert kinds == [None, "raised", "timeout", "died", "died", None, None]
    assert found[1].failure.reason == "it raised ValueError (one)"
    assert "awkward" in found[1].failure.traceback
    assert "exit code 7" in found[3].failure.reason
    assert "SIGKILL" in found[4].failure.reason
    pool.close()


def test_processes_are_new_ones_without_jax_and_are_kept():
    def seen():
        return os.getpid(), os.getppid(), "jax" in sys.modules, "moqd" in sys.modules

    pool = ProcessPool(seen, workers=1)
    (first,), (second,) = results(pool, [((), {})]), results(pool, [((), {})])
    assert first == second
    process, parent, *loaded = first.value
    assert (process != os.getpid(), parent, loaded) == (True, os.getpid(), [False, False])
    pool.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_batch_that_is_left_leaves_no_process():
    pool = ProcessPool(lambda seconds: (time.sleep(seconds), os.getpid())[1], workers=2)
    running = pool.calls(calls(0.0, 30.0, 30.0))
    _, first = next(running)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first.value, 0)
    (again,) = results(pool, calls(0.0))
    assert again.failure is None
    pool.close()


def test_what_a_call_has_started_ends_with_it(tmp_path):
    """The simulator of a call that hangs, too."""

    def simulate():
        simulator = subprocess.Popen(["sleep", "60"])
        (tmp_path / "pid").write_text(str(simulator.pid))
        simulator.wait()

    pool = ProcessPool(simulate, workers=1, timeout=1.0)
    (result,) = results(pool, [((), {})])
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    simulator = Path("/proc", (tmp_path / "pid").read_text(), "stat")
    deadline = time.monotonic() + 10
    while simulator.exists() and ") Z " not in simulator.read_text():  # gone, or only waited for by nobody
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pool.close()


def gives_what_cannot_be_read():
    class Unreadable:
        def __reduce__(self):
            return int, ("no number",)

    return Unreadable()


@pytest.mark.parametrize("function", [lambda: lambda: 1, gives_what_cannot_be_read])
def test_what_cannot_be_sent_back_is_a_failure(function):
    pool = ProcessPool(function, workers=1)
    (result,) = results(pool, [((), {})])
    assert result.failure is not None
    assert result.failure.kind == "raised"
    pool.close()


def test_a_function_that_cannot_be_sent_or_loaded_says_so():
    lock = __import__("threading").Lock()
    with pytest.raises(InputError, match="cannot be sent to another process"):
        ProcessPool(lambda: lock, workers=1)


RAY = """
import time, os
from moqd.tasks.pool import make_pool
from tests.tasks.test_pool import calls, made_awkward, results

awkward = made_awkward()
pool = make_pool("ray", awkward, timeout=60)
found = results(pool, calls(0, 1, 3, 5, 6))
print([one.value for one in found], [one.failure and one.failure.kind for one in found])
print([one.failure and one.failure.kind for one in results(make_pool("ray", awkward, timeout=3), calls(2, 6))])
"""


@pytest.mark.slow
def test_ray_does_the_same():
    """In a process of its own, because Ray forks where it starts a cluster."""
    root = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", RAY], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[0, None, None, 15, 18] [None, 'raised', 'died', None, None]" in done.stdout
    assert "['timeout', None]" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"evaluator": "threads"}, "unknown evaluator"),
        ({"evaluator": "processes", "workers": 0}, "workers is 0"),
        ({"evaluator": "processes", "timeout": -1}, "timeout is -1"),
        ({"evaluator": "here", "timeout": 3}, 'pass evaluator="processes"'),
    ],
)
def test_mistakes_are_one_sentence(options, said):
    with pytest.raises(InputError, match=said):
        check_pool(**options)


def test_programs_that_read_are_at_the_end_of_their_input():
    def reads(number):
        import subprocess
        import sys

        code = "import sys; print(len(sys.stdin.read()))"
        return number + int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)

    def asks(number):
        return input()

    pool = ProcessPool(reads, workers=1, timeout=30)
    assert [one.value for one in results(pool, calls(1, 2))] == [1, 2]
    pool.close()
    pool = ProcessPool(asks, workers=1, timeout=30)
    (found,) = results(pool, calls(1))
    assert found.failure.reason.startswith("it raised EOFError")
    pool.close()


def test_a_timeout_may_be_of_months():
    pool = ProcessPool(lambda number: number, workers=1, timeout=1e8)
    assert [one.value for one in results(pool, calls(1))] == [1]
    pool.close()
