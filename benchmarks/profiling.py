"""Where the time of an iteration of MOME-P2C with the paper's settings goes, and how near it is to the machine's peak.

The peak is the fastest product of two float32 matrices that JAX makes here, one on every device at once. Operations are
counted in what is traced (`benchmarks.flops`). Archive addition and metrics are those of an archive whose fronts are
full, as late in a run; metrics are measured as if every iteration wrote a row of them. Times are the least of several,
not medians: shares of a whole, and of a peak, make sense only where nothing else disturbed what they are shares of. The
iteration is its three calls, each waited for, so that all parts are of the same iterations.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp

from benchmarks.addition import Ours
from benchmarks.flops import Operations, count
from benchmarks.learning import Iterations, of_the_paper
from benchmarks.timing import in_turns
from moqd.core.devices import on_all, sharded
from moqd.core.metrics import archive_metrics
from moqd.core.networks import num_parameters
from moqd.core.parts import calls_of_parts
from moqd.runs.timing import PartsOfTell

ROUNDS = 7
PRODUCTS = (512, 1024, 2048)
"""Rows and columns of the matrices that each device multiplies to find the peak."""


class Part(NamedTuple):
    """A row of the table."""

    task: str
    part: str
    seconds: float
    share: float
    """Of the iteration."""
    operations: Operations | None = None
    """None: not counted."""
    of_peak: float = float("nan")
    """The speed of its matrix products alone, as if nothing else were done, beside the peak."""


def measure() -> Iterator[Part]:
    for name in ("hopper-2", "ant-2"):
        run = Iterations(*of_the_paper(name))
        yield from _parts(name, run)
        del run


class Thirds:
    """The iterations of a run, of which each of the three calls can be timed: made in this order, they are one."""

    def __init__(self, run: Iterations) -> None:
        self._run = run
        self.ask()

    def ask(self) -> object:
        loop = self._run.loop
        self._keys = loop._keys(loop._root, jnp.int32(loop.iteration + 1))
        self.offspring = loop._ask(self._keys[0], jnp.int32(loop.iteration + 1), loop.carry.state)
        return self.offspring

    def evaluate(self) -> object:
        self._evaluation = self._run.loop._evaluator(self._keys[1], self.offspring.genotype)
        return self._evaluation

    def tell(self) -> object:
        loop = self._run.loop
        loop.carry, loop.metrics = loop._tell(self._keys[2], loop.carry, self.offspring, self._evaluation)
        loop.iteration += 1
        return loop.carry


def _parts(name: str, run: Iterations) -> Iterator[Part]:
    key, iteration = jax.random.key(0), Thirds(run)
    offspring, state = iteration.offspring, jax.tree.map(jnp.copy, run.state)  # which the next iteration takes away
    with calls_of_parts() as parts:
        run.algorithm.ask(key, state)
    parts |= PartsOfTell(run.algorithm)(key, state, offspring, run.loop._evaluator(key, offspring.genotype))
    vary, train = parts["policy_gradient_variation"], parts["training"]
    archive = Ours("full", 128, num_parameters(offspring.genotype) // offspring.source.shape[0])
    calls: dict[str, Callable[[], object]] = {
        "ask": iteration.ask,
        "policy-gradient variation": lambda: vary.function(*vary.arguments),
        "rollout": iteration.evaluate,
        "training of critics and actor": lambda: train.function(*train.arguments),
        "archive addition": archive,
        "metrics": lambda: archive_metrics(archive.archive, [-0.1, -0.1], [1.0, 1.0]),
        "tell": iteration.tell,
    }
    operations = {
        "policy-gradient variation": count(vary.function, *vary.arguments),
        "training of critics and actor": count(train.function, *train.arguments),
    }
    seconds = in_turns(*calls.values(), *map(_product, PRODUCTS), rounds=ROUNDS, of=min)
    taken, of_products = dict(zip(calls, seconds, strict=False)), seconds[len(calls) :]
    products = [Operations(matrix=2.0 * jax.device_count() * size**3) for size in PRODUCTS]
    fastest, best = max(zip(of_products, products, strict=True), key=lambda one: one[1].matrix / one[0])
    peak, whole = best.matrix / fastest, taken.pop("ask") + taken["rollout"] + taken.pop("tell")
    yield Part(name, "iteration", whole, 1.0)
    for part, time in taken.items():
        counted = operations.get(part)
        yield Part(name, part, time, time / whole, counted, (counted or Operations()).matrix / time / peak)
    rest = whole - sum(time for part, time in taken.items() if part != "metrics")
    yield Part(name, "all else (selection, Iso+LineDD, buffer)", rest, rest / whole)
    yield Part(name, "a product of two matrices on each core", fastest, 0.0, best, 1.0)


def _product(size: int) -> Callable[[], object]:
    rows, columns = (jax.random.normal(jax.random.key(0), (n, size)) for n in (size * jax.device_count(), size))
    multiply = jax.jit(lambda rows, columns: sharded(lambda some: some @ columns)(rows))
    arguments = on_all((rows, columns))
    return lambda: multiply(*arguments)
