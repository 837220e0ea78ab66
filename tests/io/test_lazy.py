"""Names that are imported when they are first used."""

import subprocess
import sys

import pytest

import moqd

CODE = """
import sys
import moqd
assert "jax" not in sys.modules
assert set(moqd.__all__) <= set(dir(moqd))
from moqd import features, run
assert moqd.features is features is moqd.tasks.features
assert moqd.run is run is moqd.runs.start.run
assert moqd.tasks.locomotion.SCENES
from moqd.algorithms import *
assert make_algorithm is moqd.make_algorithm
"""


def test_names_and_submodules_are_there_when_they_are_used():
    subprocess.run([sys.executable, "-c", CODE], check=True)


def test_what_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'moqd' has no attribute 'nothing'"):
        moqd.nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from moqd.tasks import nothing  # noqa: F401


def test_only_public_names_are_listed():
    listed = {name for name in dir(moqd) if not name.startswith("__")}
    assert listed == set(moqd.__all__)
    for name in ("version", "Path", "Sequence", "lazy"):
        assert not hasattr(moqd, name)
