from moqd.algorithms import ALGORITHMS
from moqd.algorithms.gradient import GradientConfig
from moqd.rl.ppo import PPOConfig


def test_what_needs_policies_is_said():
    for entry in ALGORITHMS.values():
        assert isinstance(entry.config, GradientConfig | PPOConfig) == entry.policies
