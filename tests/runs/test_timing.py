"""The parts of an iteration on their own: that they are those of a run, that timing leaves it alone, and the file."""

import json
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.algorithms.algorithm import concatenate
from moqd.core.devices import num_cores
from moqd.core.parts import Call, calls_of_parts
from moqd.rl.td3 import Agent
from moqd.runs import timing
from moqd.runs.compilation import CompileClock
from moqd.runs.loop import Carry, Loop, keys_for
from moqd.runs.timing import PartsOfTell, num_parameters_of, read_timing, time_parts, write_timing
from moqd.tasks.task import validated
from tests.algorithms.test_algorithms import LEARNERS, quick, small, task_for
from tests.plain import PLAIN
from tests.walk import walk

COMMON = ["addition", "iteration", "rollout"]
LEARNED = ["policy_gradient_variation", "training"]


class Watched(Loop):
    """A run that remembers its first state, and how many programs had been compiled when each iteration began."""

    def __init__(self, clock, *arguments):
        super().__init__(*arguments)
        self.clock, self.programs = clock, []

    def start(self):
        super().start()
        self.first = copied(self.carry)

    def advance(self, stop):
        self.programs.append(self.clock.programs)
        super().advance(stop)


class Timed(NamedTuple):
    content: dict
    loop: Watched
    carry: Carry
    programs: tuple[int, ...]


def copied(tree):
    return jax.tree.map(jnp.copy, tree)


@cache
def timed(name: str) -> Timed:
    """What timing says, and the run that it timed."""
    loops = []
    task = task_for(name)
    with pytest.MonkeyPatch.context() as patch, CompileClock() as clock:
        patch.setattr(timing, "Loop", lambda *arguments: loops.append(Watched(clock, *arguments)) or loops[0])
        # Compiled with other parts, what the defaults for vectors do is rounded otherwise.
        content = time_parts(small(name, task, **(PLAIN if name == "mome" else {})), task, seed=3)
    (loop,) = loops
    return Timed(content, loop, copied(loop.carry), tuple(loop.programs))


@cache
def untimed(name: str) -> tuple[Any, Loop]:
    """The same run without timing, and what its state was before the last iteration."""
    loop = timed(name).loop
    loop.restore(loop.first, loop.metrics, 0, 0, loop.reference_point)
    for iteration in range(1, 6):
        loop.advance(iteration)
    before = copied(loop.carry.state)
    loop.advance(6)
    return before, loop


SOME = quick(["mome-p2c", "mome-pgx", "pga-me", "mome"], except_for=["mome-p2c", "mome-pgx", "pga-me"])


def assert_same(found, expected):
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SOME, pytest.param("nsga2", marks=pytest.mark.slow)])
def test_every_part_has_a_time_for_each_iteration(name):
    content, programs = timed(name).content, timed(name).programs
    assert sorted(content["seconds"]) == sorted(COMMON + LEARNED if name in LEARNERS else COMMON)
    for part, seconds in content["seconds"].items():
        assert len(seconds) == 5, part
        assert all(one > 0 for one in seconds), part
    assert content["iterations"] == 5
    assert content["devices"] == ["cpu", "cpu"]
    assert content["cores"] == num_cores()
    # The first iteration, which is not counted, compiles; after it nothing does.
    assert len(programs) == 6
    assert programs[0] < programs[1] == programs[-1]


@pytest.mark.parametrize("name", SOME)
def test_a_run_that_is_timed_is_the_run_that_is_not(name):
    assert_same(timed(name).carry, untimed(name)[1].carry)


@pytest.mark.parametrize("name", SOME)
def test_the_parts_are_those_of_the_run(name):
    before, loop = untimed(name)
    after, algorithm, task = loop.carry.state, loop._algorithm, loop._task
    ask, evaluate, tell = keys_for(loop._root, jnp.int32(6))
    offspring = loop._ask(ask, jnp.int32(6), before)
    evaluation = validated(task, loop._evaluator(evaluate, offspring.genotype))
    with calls_of_parts() as calls:
        loop._ask(ask, jnp.int32(6), before)
    calls |= PartsOfTell(algorithm)(tell, before, offspring, evaluation)
    # One evaluation that the run has made goes into the archive as it went in there.
    assert_same(called(calls["addition"])[0], after.archive)
    assert (calls.keys() == {"addition"}) == (name == "mome")
    if name == "mome":
        return
    # What gradients make comes first in a batch.
    gradient = concatenate(*called(calls["policy_gradient_variation"]))
    assert gradient.source.shape == (algorithm.config.pg_batch,)
    assert_same(gradient.genotype, jax.tree.map(lambda leaf: leaf[: algorithm.config.pg_batch], offspring.genotype))
    # An agent that is trained on the same experience learns the same; the experience is that of the state it is given.
    trained, losses = called(PartsOfTell(algorithm)(tell, seen(before, after), offspring, evaluation)["training"])
    assert np.isfinite(losses.critic).all()
    for found, expected in zip(jax.tree.leaves(trained), jax.tree.leaves(agent_of(after)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert not np.allclose(agent_of(before).critics[0].kernel, trained.critics[0].kernel, rtol=1e-4, atol=1e-6)


def called(call: Call) -> Any:
    return call.function(*call.arguments)


def agent_of(state: Any) -> Agent:
    state = getattr(state, "active", state)
    return state.agent if hasattr(state, "agent") else state.agents


def seen(before: Any, after: Any) -> Any:
    """A state with the experience of the next."""
    if hasattr(before, "active"):
        return before._replace(active=seen(before.active, after.active))
    return before._replace(experience=after.experience)


def test_a_result_is_waited_for(monkeypatch):
    """By a clock on which nothing takes time but a result, which is there after two seconds."""
    now = [10.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    class Late:
        def block_until_ready(self):
            now[0] += 2
            return self

    assert timing._timed(Late).seconds == 2


def test_networks_have_the_parameters_of_the_paper():
    """Hopper: 11 observations and 3 actions. A layer of i inputs and o outputs has (i + 1) o parameters.

    Critic of MOME-P2C: (11 + 3 + 2 + 1) 256 + 257 256 + 257 2 = 4,352 + 65,792 + 514 = 70,658; there are two of them.
    Critic of MOME-PGX: (11 + 3 + 1) 256 + 257 256 + 257 = 3,840 + 65,792 + 257 = 69,889; two for each objective.
    Policy, and actor of MOME-PGX: 12 64 + 65 64 + 65 3 = 768 + 4,160 + 195 = 5,123; an actor that sees the preference
    has 2 64 more.
    """
    task = moqd.make_task("hopper-2", episode_length=10)
    few = {"num_cells": 2, "front_length": 2}
    names = ("mome-p2c", "mome-pgx", "pga-me", "mome", "spea2")
    found = {name: num_parameters_of(moqd.make_algorithm(name, task, **few)) for name in names}
    assert found["mome-p2c"] == {"policy": 5_123, "actors": 5_251, "critics": 141_316}
    assert found["mome-pgx"] == {"policy": 5_123, "actors": 10_246, "critics": 279_556}
    assert found["pga-me"] == {"policy": 5_123, "actors": 5_123, "critics": 139_778}
    assert found["mome"] == found["spea2"] == {"policy": 5_123, "actors": 0, "critics": 0}


def test_networks_of_three_objectives():
    """Hopper-3: 256 + 257 more for each critic of MOME-P2C, 64 more for its actor; a third agent for MOME-PGX.

    So 141,316 + 2 513 = 142,342 and 279,556 + 2 69,889 = 419,334, which are the paper's numbers too.
    """
    task = moqd.make_task("hopper-3", episode_length=10)
    few = {"num_cells": 2, "front_length": 2}
    found = {name: num_parameters_of(moqd.make_algorithm(name, task, **few)) for name in ("mome-p2c", "mome-pgx")}
    assert {name: one["critics"] for name, one in found.items()} == {"mome-p2c": 142_342, "mome-pgx": 419_334}
    assert {name: one["actors"] for name, one in found.items()} == {"mome-p2c": 5_315, "mome-pgx": 3 * 5_123}


def test_what_is_not_a_policy_is_counted_too():
    """Rastrigin has 10 parameters."""
    task = moqd.make_task("rastrigin-2")
    assert num_parameters_of(small("mome", task)) == {"policy": 10, "actors": 0, "critics": 0}


@pytest.mark.parametrize("iterations", [0, -1, True])
def test_a_number_of_iterations_that_is_none_is_refused(iterations):
    task = walk()
    with pytest.raises(moqd.InputError, match=r"iterations is .*; give a whole number of at least 1"):
        time_parts(small("mome", task), task, iterations=iterations)


CONTENT = {
    "format": 1,
    "iterations": 2,
    "devices": ["cpu"],
    "cores": 2,
    "processor": "one of many",
    "seconds": {"iteration": [1.0, 2.0], "rollout": [0.5, 0.25], "addition": [0.0, 1e-6]},
    "parameters": {"policy": 7, "actors": 0, "critics": 0},
}


def test_what_is_written_is_read(tmp_path):
    content = timed("mome-p2c").content
    for one in (content, CONTENT):
        write_timing(tmp_path / "timing.json", one)
        assert read_timing(tmp_path / "timing.json") == one
    write_timing(tmp_path / "timing.json", CONTENT | {"unheard": "of"})
    assert read_timing(tmp_path / "timing.json") == CONTENT


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"iterations": True}, "iterations"),
        ({"iterations": 3}, "seconds"),
        ({"iterations": 10**30}, "iterations"),
        ({"devices": "cpu"}, "devices"),
        ({"devices": ["cpu\n# A heading"]}, "devices"),
        ({"devices": [1]}, "devices"),
        ({"cores": 0}, "cores"),
        ({"cores": None}, "cores"),
        ({"processor": 3}, "processor"),
        ({"seconds": [1.0, 2.0]}, "seconds"),
        ({"seconds": {}}, "seconds"),
        ({"seconds": CONTENT["seconds"] | {"training": [1.0, 1.0]}}, "seconds"),  # without the variation
        ({"seconds": CONTENT["seconds"] | {"rollout": [1.0]}}, "seconds"),
        ({"seconds": CONTENT["seconds"] | {"rollout": [1.0, -1.0]}}, "seconds"),
        ({"seconds": CONTENT["seconds"] | {"rollout": [1.0, float("nan")]}}, "seconds"),
        ({"seconds": CONTENT["seconds"] | {"rollout": [1.0, float("inf")]}}, "seconds"),
        ({"seconds": CONTENT["seconds"] | {"rollout": [1.0, 10**400]}}, "seconds"),
        ({"seconds": CONTENT["seconds"] | {"rollout": "ab"}}, "seconds"),
        ({"parameters": {"policy": 7, "actors": 0}}, "parameters"),
        ({"parameters": {"policy": 7, "actors": 0, "critics": -1}}, "parameters"),
        ({"parameters": {"policy": 7, "actors": 0, "critics": 1.5}}, "parameters"),
        ({"parameters": {"policy": 10**30, "actors": 0, "critics": 0}}, "parameters"),
    ],
)
def test_a_damaged_file_is_told_from_a_sound_one(tmp_path, changed, named):
    path = tmp_path / "timing.json"
    path.write_text(json.dumps(CONTENT | changed))
    with pytest.raises(moqd.InputError, match=rf"timing.json' is damaged: its {named} are not"):
        read_timing(path)


@pytest.mark.parametrize("name", [name for name in CONTENT if name != "format"])
def test_nothing_may_be_missing(tmp_path, name):
    path = tmp_path / "timing.json"
    write_timing(path, {other: value for other, value in CONTENT.items() if other != name})
    with pytest.raises(moqd.InputError, match=f"is damaged: its {name} are not"):
        read_timing(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": "1"}', "[" * 100_000])
def test_what_is_no_timing_at_all_is_refused(tmp_path, text):
    path = tmp_path / "timing.json"
    path.write_text(text)
    with pytest.raises(moqd.InputError, match=r"timing\.json"):
        read_timing(path)


def test_a_link_is_not_followed(tmp_path):
    write_timing(tmp_path / "elsewhere.json", CONTENT)
    (tmp_path / "timing.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(moqd.InputError, match="not a plain file"):
        read_timing(tmp_path / "timing.json")
