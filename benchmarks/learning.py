"""Policy-gradient variation, training and whole iterations with the paper's settings, beside the straightforward way.

The yardstick is the variation of 64 parents by 100 gradient steps as `benchmarks.yardstick` does it, on one device; it
is timed in turns with what is measured by it. Memory is that of `moqd train` in a process of its own.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import moqd
from benchmarks import yardstick
from benchmarks.timing import in_turns
from moqd.core import preferences
from moqd.core.devices import on_one
from moqd.core.parts import calls_of_parts
from moqd.rl.buffer import empty_buffer, sample, sample_obs
from moqd.rl.td3 import init_agent, train
from moqd.runs.loop import Loop
from moqd.runs.presets import preset_for
from moqd.runs.timing import PartsOfTell

ROUNDS = 3
PARENTS, STEPS, MINIBATCH = 64, 100, 256


class Share(NamedTuple):
    """A row of the table: what takes which share of the yardstick."""

    what: str
    seconds: float
    yardstick: float

    @property
    def share(self) -> float:
        return self.seconds / self.yardstick


def iterations() -> Iterator[Share]:
    """Of MOME-P2C, whole and by part, and of MOME-PGX."""
    for task_name in ("hopper-2", "ant-2"):
        p2c = Iterations(*of_the_paper(task_name))
        straightforward, parts = _straightforward(p2c), _parts(p2c)
        calls = [straightforward, p2c.next, *parts.values()]
        names = ["MOME-P2C iteration", *(f"  {name}" for name in parts)]
        if task_name == "hopper-2":
            calls.append(Iterations(*of_the_paper(task_name, "mome-pgx")).next)
            names.append("MOME-PGX iteration")
        base, *taken = in_turns(*calls, rounds=ROUNDS)
        yield from (Share(f"{task_name}: {name}", seconds, base) for name, seconds in zip(names, taken, strict=True))


def of_the_paper(task_name: str, name: str = "mome-p2c") -> tuple[Any, Any]:
    """An algorithm and its task, with the paper's settings."""
    preset = preset_for("paper", task_name, name)
    task = moqd.make_task(task_name, **preset.task)
    return moqd.make_algorithm(name, task, **preset.algorithm), task


class Iterations:
    """A run that goes on by one iteration at each call."""

    def __init__(self, algorithm: Any, task: Any) -> None:
        self.loop, self.algorithm, self.task = Loop(algorithm, task, seed=0), algorithm, task
        self.loop.prepare()
        self.loop.start()

    @property
    def state(self) -> Any:
        return self.loop.carry.state

    def next(self) -> object:
        self.loop.advance(self.loop.iteration + 1)
        return self.loop.carry.progress


def _straightforward(p2c: Iterations) -> Callable[[], object]:
    """Of random policies and preferences, with minibatches of what the run has seen."""
    key = jax.random.key(0)
    policies = jax.jit(p2c.task.init_genotype, static_argnums=1)(key, PARENTS)
    preference = preferences.uniform(key, PARENTS, p2c.task.num_objectives)
    obs = sample_obs(key, p2c.state.experience.buffer, (STEPS, MINIBATCH))
    policies, preference, obs = on_one((policies, preference, obs))
    critic = jax.tree.map(jnp.array, p2c.state.agent.first_critic)
    program = jax.jit(lambda *arguments: yardstick.improve(*arguments, learning_rate=1e-3))
    return lambda: program(policies, preference, critic, obs)


def _parts(p2c: Iterations) -> dict[str, Callable[[], object]]:
    key, state = jax.random.key(0), jax.tree.map(jnp.copy, p2c.state)  # which the next iteration takes away
    with calls_of_parts() as calls:
        offspring = p2c.algorithm.ask(key, state)
    calls |= PartsOfTell(p2c.algorithm)(key, state, offspring, p2c.loop._evaluator(key, offspring.genotype))
    vary, train_once = calls["policy_gradient_variation"], calls["training"]
    return {
        "policy-gradient variation": lambda: vary.function(*vary.arguments),
        "rollout": lambda: p2c.loop._evaluator(key, offspring.genotype),
        "training": lambda: train_once.function(*train_once.arguments),
    }


def training() -> Iterator[Share]:
    """300 training steps from buffers of growing size, beside the smallest."""
    task = moqd.make_task("hopper-2")
    config, policy = moqd.make_algorithm("mome-p2c", task).config, task.policy
    sizes = (10_000, 100_000, 1_000_000)

    @jax.jit
    def learn(key: jax.Array, agent: Any, buffer: Any) -> object:
        return train(key, agent, sample(key, buffer, (config.critic_steps, config.minibatch)), config)[1]

    def call(size: int) -> Callable[[], object]:
        agent = init_agent(jax.random.key(0), policy, 2, config, conditioned=True)
        buffer = empty_buffer(size, num_obs=policy.num_obs, num_actions=policy.num_actions, num_objectives=2)
        arguments = on_one((jax.random.key(0), agent, buffer._replace(size=jnp.int32(size))))
        return lambda: learn(*arguments)

    base, *taken = in_turns(*map(call, sizes), rounds=7)
    for size, seconds in zip(sizes, [base, *taken], strict=True):
        yield Share(f"300 training steps, buffer of {size:,}", seconds, base)


def memory(num_iterations: int = 3) -> Iterator[tuple[str, float]]:
    """Peak resident gigabytes: of the imports alone, and of runs with the paper's settings."""
    yield "imports of JAX and Brax", _peak("import moqd, brax.envs")
    for task in ("hopper-2", "ant-2"):
        for algorithm in ("mome-p2c", "mome-pgx"):
            arguments = ["train", task, "--algorithm", algorithm, "--preset", "paper"]
            arguments += ["--iterations", str(num_iterations), "--out"]
            code = (
                "import sys, tempfile; from moqd.cli.main import main\n"
                f"with tempfile.TemporaryDirectory() as folder: assert main({arguments} + [folder + '/run']) == 0"
            )
            yield f"{algorithm} on {task}, {num_iterations} iterations", _peak(code)


def _peak(code: str) -> float:
    """Of a process that runs this, and nothing that ran before it."""
    measured = f"{code}\nfrom benchmarks.timing import peak_bytes; print(peak_bytes())"
    command = [sys.executable, "-W", "ignore", "-c", measured]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1]) / 1e9
