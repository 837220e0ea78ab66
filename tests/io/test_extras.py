"""What is said where an extra is missing."""

import subprocess
import sys
import textwrap

import pytest

from moqd.io.errors import InputError
from moqd.io.extras import need


def test_what_is_there_is_imported():
    assert need("json.decoder", "robots", "this") is sys.modules["json.decoder"]


def test_what_is_missing_is_said_with_the_command():
    with pytest.raises(InputError, match=r"a robot needs the package 'nowhere_to_be', .* pip install 'moqd\[robots\]'"):
        need("nowhere_to_be.found", "robots", "a robot")


def test_a_broken_package_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import something_else_that_is_missing")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_else"):
        need("broken_package", "ray", "this")


@pytest.mark.slow  # tests/documentation/test_wheel.py does it where they are not installed
def test_a_function_needs_no_extra(tmp_path):
    """In an interpreter in which no package of an extra can be imported."""
    program = textwrap.dedent("""
        import sys

        for name in ("brax", "mujoco", "gymnasium", "mo_gymnasium", "ray", "onnx", "tensorboard"):
            sys.modules[name] = None
        import moqd

        def plane(x, y):
            return [x, y - x], [x + y]

        task = moqd.problem(plane, {"x": (0, 1), "y": (0, 1)}, {"a": "max", "b": "min"}, {"sum": (0, 2)})
        run = moqd.run("mome", task, iterations=2, out="run")
        moqd.explore(run)
        moqd.pick(moqd.load_run("run", task=task), [0.5, 0.5])
        try:
            moqd.run("mome", moqd.make_task("hopper-2"), iterations=1)
        except moqd.InputError as error:
            print(error)
    """)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install 'moqd[robots]'" in done.stdout
