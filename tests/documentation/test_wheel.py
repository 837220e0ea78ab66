"""What `make dist` builds can be installed into an empty environment, and the README's program runs there."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HEAVY = {"brax", "mujoco", "mujoco-mjx", "plotly", "ray", "gymnasium", "pandas", "flax", "tensorboard"}


@pytest.mark.slow
def test_the_readme_runs_from_the_wheel_alone(tmp_path):
    def call(*command, **options):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XLA", "JAX"))}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    call(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=ROOT)
    (wheel,) = tmp_path.glob("moqd-*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    call(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel))
    installed = call(python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check").splitlines()
    assert not {line.partition("==")[0].lower() for line in installed} & HEAVY
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert call(python, "-c", program, cwd=tmp_path)
    assert call(python, "-c", "import moqd", cwd=tmp_path) == "", "importing prints nothing"
    assert "pip install 'moqd[robots]'" in call(
        python,
        "-c",
        "import moqd\ntry:\n    moqd.run('mome', moqd.make_task('hopper-2'), iterations=1)\n"
        "except moqd.InputError as error:\n    print(error)",
        cwd=tmp_path,
    )
