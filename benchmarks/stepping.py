"""Environment steps per second of a Gymnasium robot, in one worker process and in two, and the plain loop beside them.

The plain loop steps one environment in this process with a policy of the same size, and does nothing else. The three
take turns.
"""

from typing import NamedTuple

import jax
import numpy as np

from benchmarks.timing import in_turns
from moqd.tasks.features import foot_contact
from moqd.tasks.gymnasium import GymnasiumTask, gymnasium_task

BATCH = 64
LENGTH = 250
ROBOT = "mo-hopper-v5"
WHOLE = {"terminate_when_unhealthy": False}
"""Episodes of full length, whatever the robot does."""


class Rate(NamedTuple):
    """A row of the table."""

    what: str
    steps_per_second: float
    times: float
    """As fast as one worker."""


def measure(rounds: int = 5) -> list[Rate]:
    """64 policies, 250 steps each."""
    tasks = [_task(workers) for workers in (1, 2)]
    policies = jax.device_get(tasks[0].init_genotype(jax.random.key(0), BATCH))
    calls = [lambda task=task: task.evaluate_fitness(jax.random.key(0), policies) for task in tasks]
    seconds = in_turns(*calls, lambda: _plain(policies), rounds=rounds)
    names = ("1 worker", "2 workers", "a plain loop in this process")
    return [Rate(name, BATCH * LENGTH / taken, seconds[0] / taken) for name, taken in zip(names, seconds, strict=True)]


def _task(workers: int) -> GymnasiumTask:
    features = {"foot contact": foot_contact("foot")}
    return gymnasium_task(ROBOT, features=features, env_options=WHOLE, episode_length=LENGTH, workers=workers)


def _plain(policies):  # type: ignore[no-untyped-def]
    import mo_gymnasium

    env = mo_gymnasium.make(ROBOT, **WHOLE)
    for row in range(BATCH):
        layers = [(kernel[row], bias[row]) for kernel, bias in policies]
        obs, _ = env.reset(seed=0)
        for _ in range(LENGTH):
            x = obs.astype(np.float32)
            for kernel, bias in layers[:-1]:
                x = np.maximum(x @ kernel + bias, 0)
            kernel, bias = layers[-1]
            obs, *_ = env.step(np.tanh(x @ kernel + bias))
    env.close()
