"""The presets are the settings that were agreed on, for every algorithm."""

from dataclasses import replace

import pytest
from rich.console import Console

import moqd
from moqd.algorithms import ALGORITHMS, batch_fields
from moqd.cli.train import plan_of
from moqd.runs.presets import preset_for
from moqd.study.plan import STUDIES

PAPER = STUDIES["paper"][1]
POPULATIONS = ("nsga2", "spea2")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_small_is_a_quarter_of_the_papers_batches_for_every_algorithm(algorithm):
    preset, entry = preset_for("small", "hopper-2", algorithm), ALGORITHMS[algorithm]
    config, share = entry.config, 1 if entry.is_ours else 4
    assert preset.task == {"episode_length": 250}
    assert preset.evaluations == 150 * 64
    assert preset.algorithm == {name: getattr(config, name) // share for name in batch_fields(config)}
    assert preset.evaluations % sum(preset.algorithm.values()) == 0


@pytest.mark.parametrize("algorithm", PAPER)
def test_paper_is_the_papers(algorithm):
    """Of table 'Policy Gradient Network Hyperparameters' and section 'Hyperparameters'; 1,024,000 evaluations each."""
    preset = preset_for("paper", "ant-3", algorithm)
    config = replace(ALGORITHMS[algorithm].config, **preset.algorithm)
    assert preset.task == {"episode_length": 1000}
    assert preset.evaluations == 1_024_000
    batch = sum(getattr(config, name) for name in batch_fields(config))
    assert (batch, preset.evaluations / batch) == ((1600, 640) if algorithm in POPULATIONS else (256, 4000))
    assert (config.num_cells, config.front_length) == (128, 50)
    if hasattr(config, "iso_sigma"):
        assert (config.iso_sigma, config.line_sigma) == (0.005, 0.05)
    if hasattr(config, "critic_steps"):
        assert (config.buffer_size, config.minibatch, config.critic_hidden_sizes) == (1_000_000, 256, (256, 256))
        assert (config.critic_learning_rate, config.actor_learning_rate) == (3e-4, 3e-4)
        assert (config.policy_learning_rate, config.discount, config.tau) == (1e-3, 0.99, 0.005)
        assert (config.critic_steps, config.pg_steps, config.policy_delay) == (300, 100, 2)
        assert (config.policy_noise, config.noise_clip) == (0.2, 0.2)
        assert config.center_rewards  # "we normalise the reward values using a running mean and variance"
        assert not config.standardise_obs


def test_what_is_of_no_paper_keeps_its_options_in_the_papers_preset():
    preset, config = preset_for("paper", "ant-3", "mome-p2c-plus"), ALGORITHMS["mome-p2c-plus"].config
    assert preset.algorithm == {name: 4 * getattr(config, name) for name in batch_fields(config)}
    assert preset.task == {"episode_length": 1000}


def test_rows_are_as_dense_for_every_algorithm():
    for name, evaluations in (("small", 640), ("paper", 2560)):
        for algorithm in ALGORITHMS:
            preset = preset_for(name, "hopper-2", algorithm)
            batch = sum(preset.algorithm[field] for field in batch_fields(ALGORITHMS[algorithm].config))
            assert evaluations / 1.5 <= preset.log_every * batch <= evaluations * 1.5


def planned(line):
    return plan_of(line.split(), Console())


def test_flags_go_before_presets_and_presets_before_defaults():
    plan = planned("hopper-2")
    assert (plan.algorithm_name, plan.task.episode_length, plan.algorithm.ga_batch) == ("mome-p2c-plus", 250, 60)
    assert plan.budget == {"evaluations": 9600}
    plan = planned("hopper-2 --preset paper --algorithm mome-p2c --ga-batch 7 --iterations 3")
    assert (plan.task.episode_length, plan.algorithm.ga_batch, plan.algorithm.pg_batch) == (1000, 7, 64)
    assert plan.options.iterations == 3
    plan = planned("--preset quick")
    assert plan.task_name == "hopper-2"
    plan = planned("arm-2")
    assert (plan.algorithm_name, plan.algorithm.ga_batch, plan.budget) == ("mome", 50, {"iterations": 1000})
    plan = planned("arm-2 --preset small")
    assert (plan.algorithm.ga_batch, plan.budget) == (64, {"evaluations": 9600})
    with pytest.raises(moqd.InputError, match="unknown preset 'big'"):
        preset_for("big", "arm-2", "mome")
