"""What the parts of an iteration take, and how large the networks are: the paper's comparison of wall-clock time.

In a run, training and addition are one compiled call, in which they cannot be told apart. So each part is compiled on
its own here, and called once after every iteration on the state that the run has reached; the run goes on untouched.
"""

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from moqd.algorithms import Algorithm
from moqd.core.devices import num_cores
from moqd.core.networks import num_parameters
from moqd.io.errors import InputError
from moqd.io.files import FORMAT, read_json, write_json
from moqd.io.options import is_count
from moqd.runs.config import processor
from moqd.runs.loop import Loop
from moqd.tasks import Task
from moqd.tasks.task import validated

COMMON = {"iteration", "rollout", "addition"}
"""The parts that every algorithm has..."""
LEARNED = {"policy_gradient_variation", "training"}
"""...and those that only algorithms with actors and critics have."""
NETWORKS = {"policy", "actors", "critics"}
MOST = 2**63 - 1
"""The largest count that is taken from a file."""


def time_parts(algorithm: Algorithm, task: Task, seed: int = 0, iterations: int = 5) -> dict[str, Any]:
    """The content of timing.json: the seconds of each part in each of so many iterations, without compilation.

    Gradient variation and training are those of all objectives; addition is that to the archive which metrics read.
    """
    if not is_count(iterations):
        raise InputError(f"iterations is {iterations!r}; give a whole number of at least 1.")
    measure = _measurement(algorithm, task, seed)
    measure()  # which compiles
    taken = [measure() for _ in range(iterations)]
    return {
        "format": FORMAT,
        "iterations": iterations,
        "devices": [device.device_kind for device in jax.local_devices()],
        "cores": num_cores(),
        "processor": processor(),
        "seconds": {part: [one[part] for one in taken] for part in taken[0]},
        "parameters": num_parameters_of(algorithm),
    }


def num_parameters_of(algorithm: Algorithm) -> dict[str, int]:
    """Of one archived policy, of all actors, and of all critics; target networks do not count."""
    state, offspring = jax.eval_shape(algorithm.init, jax.random.key(0))
    policies = num_parameters(offspring.genotype)
    agent = None if algorithm.learning is None else algorithm.learning.agent(state)
    return {
        "policy": policies // offspring.source.shape[0],
        "actors": 0 if agent is None else num_parameters(agent.actor),
        "critics": 0 if agent is None else num_parameters(agent.critics),
    }


def write_timing(path: Path, content: Mapping[str, Any]) -> None:
    write_json(path, dict(content))


def read_timing(path: Path) -> dict[str, Any]:
    """What `time_parts` gave and `write_timing` wrote; raises InputError where the file cannot hold that."""
    content = read_json(path, "what the parts of an iteration took")
    wrong = next((name for name, is_sound in _SOUND.items() if not is_sound(content)), None)
    if wrong is not None:
        raise InputError(f"{str(path)!r} is damaged: its {wrong} are not what was written; remove it and time anew.")
    return {name: content[name] for name in ("format", *_SOUND)}


class _Timed(NamedTuple):
    seconds: float
    result: Any


def _timed(call: Callable[..., Any], *arguments: Any) -> _Timed:
    """Until the result is there."""
    start = time.perf_counter()
    result = jax.block_until_ready(call(*arguments))
    return _Timed(time.perf_counter() - start, result)


def _measurement(algorithm: Algorithm, task: Task, seed: int) -> Callable[[], dict[str, float]]:
    """Starts a run; each call takes it on by one iteration, and gives the seconds of that and of the parts."""
    loop, key = Loop(algorithm, task, seed), jax.random.key(seed)
    loop.prepare()
    loop.start()
    learned: dict[str, Callable[..., Any]] = {}
    if algorithm.learning is not None:
        learned = {"policy_gradient_variation": algorithm.learning.vary, "training": jax.jit(algorithm.learning.train)}
    add = jax.jit(algorithm.add, donate_argnums=1)  # in place, as in a run
    sound = jax.jit(lambda evaluation: validated(task, evaluation))

    def advance() -> Any:
        loop.advance(loop.iteration + 1)
        return loop.carry

    def measure() -> dict[str, float]:
        iteration = _timed(advance)
        state = iteration.result.state
        offspring = jax.block_until_ready(loop._ask(key, jnp.int32(loop.iteration + 1), state))
        rollout = _timed(loop._evaluate, key, offspring.genotype)
        of_learning = {name: _timed(part, key, state).seconds for name, part in learned.items()}
        archive, evaluation = jax.block_until_ready((jax.tree.map(jnp.copy, state.archive), sound(rollout.result)))
        addition = _timed(add, key, archive, offspring, evaluation)
        return {
            "iteration": iteration.seconds,
            "rollout": rollout.seconds,
            **of_learning,
            "addition": addition.seconds,
        }

    return measure


def _is_number(value: Any, least: int = 1) -> bool:
    return is_count(value, least) and value <= MOST


def _are_devices(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) and name.isprintable() for name in names)


def _are_seconds(seconds: Any, iterations: int) -> bool:
    if not isinstance(seconds, dict) or seconds.keys() not in (COMMON, COMMON | LEARNED):
        return False
    return all(
        isinstance(times, list)
        and len(times) == iterations
        and all(isinstance(one, float) and math.isfinite(one) and one >= 0 for one in times)
        for times in seconds.values()
    )


def _are_parameters(parameters: Any) -> bool:
    return (
        isinstance(parameters, dict)
        and parameters.keys() == NETWORKS
        and all(_is_number(number, 0) for number in parameters.values())
    )


_SOUND: dict[str, Callable[[dict[str, Any]], bool]] = {
    "iterations": lambda content: _is_number(content.get("iterations")),
    "devices": lambda content: _are_devices(content.get("devices")),
    "cores": lambda content: _is_number(content.get("cores")),
    "processor": lambda content: _are_devices([content.get("processor")]),
    "seconds": lambda content: _are_seconds(content.get("seconds"), content["iterations"]),
    "parameters": lambda content: _are_parameters(content.get("parameters")),
}
"""What a file must say, in the order in which it is checked."""
