"""A generation of NSGA-II and SPEA2 on DTLZ2 with three objectives and Iso+LineDD: beside pymoo, with the same NumPy
function on the host, and beside QDax, with the same function in JAX, compiled with the generation.

QDax's SPEA2 does not truncate (it keeps the best by strength and density alone), so that its time is only reported.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import qdax.baselines.nsga2
import qdax.baselines.spea2
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.algorithms.moo.spea2 import SPEA2
from pymoo.core.crossover import Crossover
from pymoo.core.problem import Problem
from pymoo.operators.mutation.nom import NoMutation
from qdax.core.emitters.mutation_operators import isoline_variation
from qdax.core.emitters.standard_emitters import MixingEmitter

from benchmarks.timing import Measured, in_turns
from moqd import FunctionTask
from moqd.algorithms.nsga2 import nsga2
from moqd.algorithms.population import PopulationConfig
from moqd.algorithms.spea2 import spea2
from moqd.runs.loop import Loop

PARAMETERS, FIRST = 12, 20
"""Generations before the first that is timed, in which most solutions are dominated."""
NAMES = ("f1", "f2", "f3")


class IsoLine(Crossover):
    """Iso+LineDD as an operator of pymoo."""

    def __init__(self) -> None:
        super().__init__(n_parents=2, n_offsprings=1, prob=1.0)

    def _do(self, problem, parents, *args, random_state=None, **kwargs):  # type: ignore[no-untyped-def]
        first, second = parents
        along = 0.05 * random_state.normal(size=(len(first), 1))
        return np.clip(first + 0.005 * random_state.normal(size=first.shape) + along * (second - first), 0, 1)[None]


def dtlz2(x: Any, numpy: Any) -> Any:
    """Of a batch, minimised."""
    radius = 1 + numpy.sum((x[:, 2:] - 0.5) ** 2, axis=1)
    (a, b), (c, d) = numpy.cos(x[:, :2].T * np.pi / 2), numpy.sin(x[:, :2].T * np.pi / 2)
    return numpy.stack([radius * a * b, radius * a * d, radius * c], axis=1)


def on_the_host(x: Any) -> Any:
    return dtlz2(np.asarray(x), np)


class Dtlz2(Problem):
    def __init__(self) -> None:
        super().__init__(n_var=PARAMETERS, n_obj=3, xl=0.0, xu=1.0)

    def _evaluate(self, x, out, *args, **kwargs):  # type: ignore[no-untyped-def]
        out["F"] = on_the_host(x)


def beside_pymoo(name: str, population: int, generations: int) -> Measured:
    loop = _ours(name, population, traceable=False)
    peer = {"NSGA-II": NSGA2, "SPEA2": SPEA2}[name]
    theirs = peer(pop_size=population, crossover=IsoLine(), mutation=NoMutation(), eliminate_duplicates=False)
    theirs.setup(Dtlz2(), termination=("n_gen", 10**9), seed=0)
    for _ in range(FIRST):
        theirs.next()

    def pymoos() -> object:
        for _ in range(generations):
            theirs.next()
        return ()

    return _compare(name, population, generations, loop, "pymoo", pymoos)


def beside_qdax(name: str, population: int, generations: int) -> Measured:
    loop = _ours(name, population, traceable=True)
    key = jax.random.key(0)

    def score(genotype, key):  # type: ignore[no-untyped-def]
        return -dtlz2(genotype, jnp), {}

    def vary(x1, x2, key):  # type: ignore[no-untyped-def]
        return isoline_variation(x1, x2, key, iso_sigma=0.005, line_sigma=0.05, minval=0.0, maxval=1.0)

    emitter = MixingEmitter(lambda x, key: (x, key), vary, 1.0, population)
    genotype = jax.random.uniform(key, (population, PARAMETERS))
    if name == "NSGA-II":
        peer = qdax.baselines.nsga2.NSGA2(score, emitter, lambda repertoire: {})
        state = list(peer.init(genotype, population, key)[:2])
    else:
        peer = qdax.baselines.spea2.SPEA2(score, emitter, lambda repertoire: {})
        state = list(peer.init(genotype, population, int(np.sqrt(2 * population)), key)[:2])

    @jax.jit
    def iterate(repertoire, emitter_state, keys):  # type: ignore[no-untyped-def]
        def step(carry, key):  # type: ignore[no-untyped-def]
            return tuple(peer.update(*carry, key)[:2]), None

        return jax.lax.scan(step, (repertoire, emitter_state), keys)[0]

    def theirs() -> object:
        state[:] = iterate(*state, jax.random.split(key, generations))
        return state

    for _ in range(-(-FIRST // generations)):
        theirs()
    return _compare(name, population, generations, loop, "QDax", theirs)


def _ours(name: str, population: int, *, traceable: bool) -> Loop:
    function = (lambda x: dtlz2(x[None], jnp)[0]) if traceable else on_the_host
    task = FunctionTask(
        function,
        name="dtlz2",
        bounds=((0.0, 1.0),) * PARAMETERS,
        objective_names=NAMES,
        minimised=NAMES,
        traceable=traceable,
        batched=not traceable,
    )
    build = {"NSGA-II": nsga2, "SPEA2": spea2}[name]
    loop = Loop(build(name, PopulationConfig(population=population), task), task, 0)
    loop.start()
    _advance(loop, FIRST)
    return loop


def _advance(loop: Loop, generations: int) -> None:
    """A task on the host makes one generation at a time."""
    stop = loop.iteration + generations
    while loop.iteration < stop:
        loop.advance(stop)


def _compare(
    name: str, population: int, generations: int, loop: Loop, peer: str, theirs: Callable[[], object]
) -> Measured:
    def ours() -> object:
        _advance(loop, generations)
        return loop.carry

    taken, other = in_turns(ours, theirs, rounds=3)
    return Measured(f"{name} generation, population {population:,}", taken / generations, peer, other / generations)
