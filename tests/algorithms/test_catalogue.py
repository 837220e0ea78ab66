from moqd.algorithms import ALGORITHMS
from moqd.algorithms.gradient import GradientConfig


def test_what_needs_policies_is_said():
    for entry in ALGORITHMS.values():
        assert isinstance(entry.config, GradientConfig) == entry.policies
