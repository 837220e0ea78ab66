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
from jaxtyping import Array

from moqd.algorithms import Algorithm
from moqd.core.archive import Archive
from moqd.core.devices import num_cores
from moqd.core.networks import num_parameters
from moqd.core.parts import Call, calls_of_parts
from moqd.core.types import Evaluation, Key, Offspring
from moqd.io.errors import InputError
from moqd.io.files import FORMAT, read_json, write_json
from moqd.io.options import is_count
from moqd.rl.td3 import Agent
from moqd.runs.config import processor
from moqd.runs.learned import parts_of
from moqd.runs.loop import Loop
from moqd.tasks import Task
from moqd.tasks.task import validated

COMMON = {"iteration", "rollout"}
"""What every algorithm has..."""
PARTS = {"addition"}, {"addition", "policy_gradient_variation", "training"}, set[str]()
"""...and the parts (`moqd.core.parts`) that are known: of most, of those with actors and critics, and none."""
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
    agents = parts_of(state, Agent)
    return {
        "policy": policies // offspring.source.shape[0],
        "actors": num_parameters([agent.actor for agent in agents]),
        "critics": num_parameters([agent.critics for agent in agents]),
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


class PartsOfTell:
    """The parts of an algorithm's `tell` as calls of compiled programs, with the arguments that `tell` calls them with.

    What `tell` hands on in the next state, such as the replay buffer, is taken from the state that is there: a second
    one may not fit into memory.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self._tell, self._arguments = algorithm.tell, jax.jit(self._traced)

    def _traced(self, *arguments: Any) -> list[Array]:
        """The arguments of the parts, but for those that the next state has in it."""
        with calls_of_parts() as calls:
            state, _ = self._tell(*arguments)
        place = {id(leaf): index for index, leaf in enumerate(jax.tree.leaves(state))}
        leaves, self._structure = jax.tree.flatten({name: call.arguments for name, call in calls.items()})
        self._places = [place.get(id(leaf)) for leaf in leaves]
        self._programs = {name: _in_place(*call) for name, call in calls.items()}
        return [leaf for leaf in leaves if id(leaf) not in place]

    def __call__(self, key: Key, state: Any, offspring: Offspring, evaluation: Evaluation) -> dict[str, Call]:
        others, there = iter(self._arguments(key, state, offspring, evaluation)), jax.tree.leaves(state)
        arguments = jax.tree.unflatten(
            self._structure, [next(others) if place is None else there[place] for place in self._places]
        )
        return {name: Call(program, _with_copies(arguments[name])) for name, program in self._programs.items()}


def _in_place(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """Compiled, with archives changed in place, as in a run."""
    return jax.jit(function, donate_argnums=[i for i, one in enumerate(arguments) if isinstance(one, Archive)])


def _with_copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """With archives that may be changed."""
    copied = (jax.tree.map(jnp.copy, one) if isinstance(one, Archive) else one for one in arguments)
    return jax.block_until_ready(tuple(copied))


class Measured(NamedTuple):
    """Offspring that were made from a state, what came of them, and the seconds that it took."""

    offspring: Offspring
    evaluation: Evaluation
    ask: float
    parts: dict[str, float]
    """`rollout`, and every part of `ask` and `tell` on its own."""


class Measurement:
    """Makes offspring from a state and evaluates them, part by part; the state stays as it is."""

    def __init__(
        self,
        algorithm: Algorithm,
        task: Task,
        ask: Callable[[Key, Any], Offspring],
        evaluate: Callable[..., Evaluation],
    ) -> None:
        self._ask, self._evaluate, self._parts_of_tell = ask, evaluate, PartsOfTell(algorithm)
        self._sound = jax.jit(lambda evaluation: validated(task, evaluation))

    def __call__(self, key_ask: Key, key_evaluate: Key, key_tell: Key, state: Any) -> Measured:
        with calls_of_parts() as calls:
            asked = _timed(self._ask, key_ask, state)
        rollout = _timed(self._evaluate, key_evaluate, asked.result.genotype, None, asked.result.noise)
        evaluation = self._sound(rollout.result)
        calls |= self._parts_of_tell(key_tell, state, asked.result, evaluation)
        parts = {name: _timed(call.function, *call.arguments).seconds for name, call in calls.items()}
        return Measured(asked.result, evaluation, asked.seconds, {"rollout": rollout.seconds, **parts})


def _measurement(algorithm: Algorithm, task: Task, seed: int) -> Callable[[], dict[str, float]]:
    """Starts a run; each call takes it on by one iteration, and gives the seconds of that and of the parts."""
    loop, key = Loop(algorithm, task, seed), jax.random.key(seed)
    loop.prepare()
    loop.start()

    def ask(key: Key, state: Any) -> Offspring:
        return loop._ask(key, jnp.int32(loop.iteration + 1), state)

    of_parts = Measurement(algorithm, task, ask, loop._evaluator)

    def advance() -> Any:
        loop.advance(loop.iteration + 1)
        return loop.carry

    def measure() -> dict[str, float]:
        iteration = _timed(advance)
        return {"iteration": iteration.seconds, **of_parts(key, key, key, iteration.result.state).parts}

    return measure


def _is_number(value: Any, least: int = 1) -> bool:
    return is_count(value, least) and value <= MOST


def _are_devices(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) and name.isprintable() for name in names)


def _are_seconds(seconds: Any, iterations: int) -> bool:
    if not isinstance(seconds, dict) or seconds.keys() not in [COMMON | parts for parts in PARTS]:
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
