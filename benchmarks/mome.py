"""A MOME iteration on rastrigin-2 (selection, Iso+LineDD, evaluation, addition), 100 of them in one compiled loop."""

import jax
from qdax.core.emitters.mutation_operators import isoline_variation
from qdax.core.emitters.standard_emitters import MixingEmitter
from qdax.core.mome import MOME

from benchmarks.timing import Measured, in_turns
from moqd import make_algorithm, make_task
from moqd.runs.loop import Loop

ITERATIONS = 100
PAPER = {
    "variation": "iso-line",
    "iso_sigma": 0.005,
    "line_sigma": 0.05,
    "ga_batch": 256,
    "crowding": False,
    "guided": False,
    "cell_selection": "uniform",
}
"""The paper's settings, which QDax can have too; defaults for plain parameters are others."""


def measure(num_parameters: int) -> Measured:
    task = make_task("rastrigin-2", num_parameters=num_parameters)
    loop = Loop(make_algorithm("mome", task, **PAPER), task, 0)
    loop.start()

    def ours() -> object:
        loop.advance(loop.iteration + ITERATIONS)
        return loop.carry

    taken, theirs = in_turns(ours, qdax_mome(task, loop), rounds=5)
    what = f"MOME iteration, rastrigin-2, {num_parameters:,} parameters"
    return Measured(what, taken / ITERATIONS, "QDax", theirs / ITERATIONS)


def qdax_mome(task, loop):  # type: ignore[no-untyped-def]
    """The same task, cells, batch and variation in QDax."""

    def score(genotype, key):  # type: ignore[no-untyped-def]
        evaluation = task.evaluate(key, genotype)
        return evaluation.fitness, evaluation.feature, {}

    def vary(x1, x2, key):  # type: ignore[no-untyped-def]
        return isoline_variation(x1, x2, key, iso_sigma=0.005, line_sigma=0.05, minval=0.0, maxval=1.0)

    emitter = MixingEmitter(lambda x, key: (x, key), vary, 1.0, loop.batch)
    mome = MOME(score, emitter, lambda repertoire: {}, pareto_front_max_length=50)
    key = jax.random.key(0)
    genotype = task.init_genotype(key, loop.batch)
    state = list(mome.init(genotype, jax.numpy.copy(loop.archive.centroid), key)[:2])

    @jax.jit
    def iterate(repertoire, emitter_state, key):  # type: ignore[no-untyped-def]
        def step(carry, key):  # type: ignore[no-untyped-def]
            repertoire, emitter_state = carry
            repertoire, emitter_state, _ = mome.update(repertoire, emitter_state, key)[:3]
            return (repertoire, emitter_state), None

        return jax.lax.scan(step, (repertoire, emitter_state), jax.random.split(key, ITERATIONS))[0]

    def call():  # type: ignore[no-untyped-def]
        state[:] = iterate(*state, key)
        return state

    return call
