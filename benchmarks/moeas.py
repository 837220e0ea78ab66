"""A generation of NSGA-II and SPEA2 on DTLZ2 with three objectives, against pymoo with the same variation."""

import jax.numpy as jnp
import numpy as np
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.algorithms.moo.spea2 import SPEA2
from pymoo.core.crossover import Crossover
from pymoo.operators.mutation.nom import NoMutation
from pymoo.problems import get_problem

from benchmarks.timing import Measured, in_turns
from moqd import FunctionTask
from moqd.algorithms.nsga2 import nsga2
from moqd.algorithms.population import PopulationConfig
from moqd.algorithms.spea2 import spea2
from moqd.experiment.loop import Loop


class IsoLine(Crossover):
    """Iso+LineDD as an operator of pymoo."""

    def __init__(self) -> None:
        super().__init__(n_parents=2, n_offsprings=1, prob=1.0)

    def _do(self, problem, parents, *args, random_state=None, **kwargs):  # type: ignore[no-untyped-def]
        first, second = parents
        along = 0.05 * random_state.normal(size=(len(first), 1))
        return np.clip(first + 0.005 * random_state.normal(size=first.shape) + along * (second - first), 0, 1)[None]


def dtlz2(x):  # type: ignore[no-untyped-def]
    radius = 1 + jnp.sum((x[2:] - 0.5) ** 2)
    sin, cos = jnp.sin(x[:2] * jnp.pi / 2), jnp.sin((1 - x[:2]) * jnp.pi / 2)
    return radius * jnp.stack([cos[0] * cos[1], cos[0] * sin[1], sin[0]])


def measure(name: str, population: int, generations: int) -> Measured:
    names = ("f1", "f2", "f3")
    task = FunctionTask(
        dtlz2, name="dtlz2", bounds=((0.0, 1.0),) * 12, objective_names=names, minimised=names, traceable=True
    )
    build, peer = {"NSGA-II": (nsga2, NSGA2), "SPEA2": (spea2, SPEA2)}[name]
    loop = Loop(build(name, PopulationConfig(population=population), task), task, 0)
    loop.start()
    theirs = peer(pop_size=population, crossover=IsoLine(), mutation=NoMutation(), eliminate_duplicates=False)
    theirs.setup(get_problem("dtlz2", n_var=12, n_obj=3), termination=("n_gen", 10**9), seed=0)
    for _ in range(20):  # both past the first generations, in which most are dominated
        loop.advance(loop.iteration + 1)
        theirs.next()

    def ours() -> object:
        loop.advance(loop.iteration + generations)
        return loop.carry

    def pymoos() -> object:
        for _ in range(generations):
            theirs.next()
        return ()

    taken, other = in_turns(ours, pymoos, rounds=3)
    return Measured(f"{name} generation, population {population}", taken / generations, "pymoo", other / generations)
