"""That it learns on the robots, and that every algorithm runs on each of them. Minutes to an hour: make test-slow."""

import jax
import numpy as np
import pytest

import moqd
from moqd.algorithms import ALGORITHMS
from moqd.tasks.locomotion import SCENES
from tests.algorithms.test_algorithms import small

SEEDS = (0, 1, 2)
BATCH = {
    "mome": {"ga_batch": 64},
    "mome-p2c": {"ga_batch": 32, "pg_batch": 16, "actor_batch": 16},
}


def final(task_name: str, iterations: int, metric: str, runs: dict) -> dict[str, np.ndarray]:
    return {name: np.array([run[metric][-1] for run in runs[task_name, iterations, name]]) for name in BATCH}


@pytest.fixture(scope="module")
def runs() -> dict:
    """Metrics of both algorithms at equal evaluations: episodes of 250 steps, batches of 64, otherwise as the paper."""
    found = {}
    for task_name, iterations in (("hopper-2", 150), ("ant-2", 60)):
        task = moqd.make_task(task_name, episode_length=250)
        for name, batch in BATCH.items():
            algorithm = moqd.make_algorithm(name, task, **batch)
            found[task_name, iterations, name] = [
                moqd.run(algorithm, task, iterations=iterations, seed=seed, log_every=iterations).metrics
                for seed in SEEDS
            ]
    return found


@pytest.mark.slow
def test_p2c_is_ahead_of_mome_on_the_hopper(runs):
    for metric, least in (("moqd_score", 1.15), ("global_hypervolume", 1.20)):
        reached = final("hopper-2", 150, metric, runs)
        print(metric, reached)
        assert (reached["mome-p2c"] > reached["mome"]).all()
        assert reached["mome-p2c"].mean() / reached["mome"].mean() >= least


@pytest.mark.slow
def test_p2c_reaches_further_than_mome_on_the_ant(runs):
    for metric, least in (("moqd_score", 0.95), ("global_hypervolume", 1.30)):
        reached = final("ant-2", 60, metric, runs)
        print(metric, reached)
        assert reached["mome-p2c"].mean() / reached["mome"].mean() >= least


@pytest.mark.slow
def test_generations_of_pg_morl_improve_on_its_warm_up():
    """With the settings of the preset `small`."""
    task = moqd.make_task("hopper-2", episode_length=250)
    algorithm = moqd.make_algorithm("pg-morl", task, episode_batch=64)
    found = moqd.run(algorithm, task, iterations=150, seed=0, log_every=10).metrics
    volume = dict(zip(found["iteration"].tolist(), found["global_hypervolume"].tolist(), strict=True))
    print(volume)
    assert volume[150] > volume[100] > volume[60]


@pytest.mark.slow
@pytest.mark.parametrize("task_name", SCENES)
def test_every_algorithm_runs_on_every_robot(task_name):
    task = moqd.make_task(task_name, episode_length=12)
    for name in ALGORITHMS:
        run = moqd.run(small(name, task), task, iterations=2, seed=1, log_every=1)
        assert run.metrics["evaluations"].tolist() == [12, 24, 36], name
        assert run.metrics["num_solutions"][-1] > 0, name
        for column in run.metrics.values():
            assert np.isfinite(column).all(), name
        for leaf in jax.tree.leaves(run.archive):
            assert np.isfinite(np.asarray(leaf, float)).all(), name
