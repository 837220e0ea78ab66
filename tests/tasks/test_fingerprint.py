"""The same function has the same fingerprint, in every process; one that computes something else has another."""

import functools
import os
import subprocess
import sys
import types

import numpy as np
import pytest

from moqd.tasks.fingerprint import fingerprint


def made(text, name="function", **values):
    module = types.ModuleType("made")
    vars(module).update(values)
    exec(compile(text, "made.py", "exec"), vars(module))
    return getattr(module, name)


SPRING = """
import math
import numpy as np
from functools import partial
TABLE = {"steel": 7.8, "oak": [0.7, 0.9]}
def helper(x): return FACTOR * x
def function(wire, coil, *, material="steel"):
    if material in {"steel", "oak", "glass"}:
        weights = [helper(x) for x in (wire, coil)]
    return math.sqrt(wire), np.sin(coil), TABLE[material], weights
"""


@pytest.mark.parametrize(
    "changes",
    [
        [("sqrt", "cbrt")],
        [("math.sqrt(wire), ", "")],
        [('material="steel"', 'material="oak"')],
        [("0.9", "0.8")],
        [("FACTOR * x", "FACTOR + x")],
        [("FACTOR * x", "x * FACTOR")],
        [('"glass"', '"brass"')],
        [("FACTOR * x", "2 * x")],
    ],
)
def test_every_change_of_what_it_computes_shows(changes):
    text = SPRING
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    assert fingerprint(made(SPRING, FACTOR=2.0)) != fingerprint(made(text, FACTOR=2.0)) != b""
    assert fingerprint(made(SPRING, FACTOR=2.0)) != fingerprint(made(SPRING, FACTOR=3.0))


def test_where_it_stands_and_what_is_beside_it_does_not_matter():
    beside = "\n\n# a comment\nUNUSED = object()\n" + SPRING.replace("weights = [", "weights = [  # of both\n")
    assert fingerprint(made(SPRING, FACTOR=2.0)) == fingerprint(made(beside, FACTOR=2.0)) != b""


def test_closures_defaults_and_what_wraps_a_function():
    def times(factor):
        return lambda x: factor * x

    def odd(number):
        return False if number == 0 else not odd(number - 1)

    assert fingerprint(times(2)) == fingerprint(times(2)) != fingerprint(times(3))
    assert fingerprint(times(2)) != fingerprint(times(2.0))
    assert fingerprint(odd) == fingerprint(odd) != b"", "which refers to itself"
    assert fingerprint(functools.partial(pow, 2)) != fingerprint(functools.partial(pow, 3)) != b""
    assert fingerprint(functools.cache(times(2))) == fingerprint(functools.cache(times(2))) != b""
    assert fingerprint(functools.cache(times(2))) != fingerprint(functools.cache(times(3)))
    arrays = [np.arange(4.0), np.arange(4.0).reshape(2, 2), np.arange(4), np.arange(1.0, 5.0)]
    assert len({fingerprint(times(array)) for array in arrays}) == len(arrays)
    loop: list = []
    loop.append(loop)
    assert fingerprint(times(loop)) != b""


def test_of_what_cannot_be_looked_into_nothing_is_said():
    class Solver:
        factor = 2

        def solve(self, x):
            return self.factor * x

    solver, generator = Solver(), np.random.default_rng(0)
    for function in (solver.solve, lambda x: solver.solve(x), lambda x: generator.normal() + x, solver):
        assert fingerprint(function) == b""
    assert fingerprint(np.array([solver])) == b""


def test_modules_of_the_users_own_count_with_their_text(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "flow").mkdir()
    for file in ("flow/__init__.py", "flow/solver.py", "drag.py"):
        (tmp_path / file).write_text("FACTOR = 2\nclass Wing: pass\n")
    import drag  # type: ignore[import-not-found]
    import flow  # type: ignore[import-not-found]

    functions = [lambda: flow.solver, lambda: drag.FACTOR, drag.Wing]
    before = [fingerprint(function) for function in functions]
    assert before == [fingerprint(function) for function in functions]
    assert b"" not in before
    for file in ("flow/solver.py", "drag.py"):
        (tmp_path / file).write_text("FACTOR = 3\nclass Wing: pass\n")
    assert not set(before) & {fingerprint(function) for function in functions}


def test_it_is_the_same_in_every_process(tmp_path):
    script = f"import sys\nfrom moqd.tasks.fingerprint import fingerprint\nFACTOR = 2.0\n{SPRING}\n"
    (tmp_path / "script.py").write_text(f"{script}\nprint(fingerprint(function).hex())")
    told = {
        subprocess.run(
            [sys.executable, tmp_path / "script.py"],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert len(told) == 1
    assert len(told.pop()) == 64
