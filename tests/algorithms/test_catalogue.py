from moqd.algorithms import ALGORITHMS
from moqd.algorithms.catalogue import CATALOGUE
from moqd.algorithms.gradient import GradientConfig


def test_what_is_listed_is_what_is_built():
    assert list(CATALOGUE) == list(ALGORITHMS)
    for name, listed in CATALOGUE.items():
        assert isinstance(ALGORITHMS[name].config, GradientConfig) == listed.policies
