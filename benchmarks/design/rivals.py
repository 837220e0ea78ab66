"""The methods that are compared. Each gives the parameters of all its evaluations, in the order in which they are made.

What a method evaluates is all that is measured of it, so that archives, populations and final answers of different
kinds are compared by the same numbers.
"""

import ast
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import moqd
from benchmarks.design.measuring import NUM_CELLS
from benchmarks.design.problems import Problem, task
from moqd.algorithms import ALGORITHMS
from moqd.core.tessellation import cvt_centroids
from moqd.runs.loop import keys_for

POPULATION = 100
"""Of pymoo's algorithms: its default."""

Run = Callable[[int, int], np.ndarray]
"""Called as `run(seed, evaluations)`: gives parameters, one row per evaluation."""


class Method(NamedTuple):
    """A method by its name, with options where it is one of moqd's: mome[variation=sbx,ga_batch=100]."""

    name: str
    options: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> "Method":
        found = re.fullmatch(r"([\w-]+)(?:\[(.*)\])?", text)
        if found is None:
            raise moqd.InputError(
                f"invalid method {text!r}: give a name, or a name with options as in mome[ga_batch=64]."
            )
        name, options = found.groups()
        parts = re.split(r",(?=\w+=)", options) if options else []
        return cls(name, dict(_option(part) for part in parts))

    @property
    def is_known(self) -> bool:
        return self.name in RIVALS or self.name in ALGORITHMS

    def on(self, problem: Problem) -> Run:
        """Compiled once, whatever is done with it then."""
        if self.name in RIVALS:
            return RIVALS[self.name](problem, **self.options)
        return ours(problem, self.name, **self.options)


def _option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


# -------------------------------------------------------------------------------------------------------------- moqd


def ours(problem: Problem, name: str, **options: Any) -> Run:
    """One of moqd's algorithms: what `moqd.run` does, with every batch kept."""
    to_solve = task(problem)
    algorithm = moqd.make_algorithm(name, to_solve, **options)
    batch = jax.eval_shape(algorithm.init, jax.random.key(0))[1].source.shape[0]

    def evolve(seed: jax.Array, iterations: int) -> jax.Array:
        root = jax.random.key(seed)

        def iterate(state: Any, iteration: jax.Array) -> tuple[Any, jax.Array]:
            key_ask, key_evaluate, key_tell = keys_for(root, iteration)
            first, later = lambda key: algorithm.init(key)[1], lambda key: algorithm.ask(key, state)
            offspring = jax.lax.cond(iteration == 0, first, later, key_ask)
            evaluation = to_solve.evaluate(key_evaluate, offspring.genotype)
            return algorithm.tell(key_tell, state, offspring, evaluation)[0], offspring.genotype

        state = algorithm.init(keys_for(root, jnp.int32(0))[0])[0]
        return jax.lax.scan(iterate, state, jnp.arange(iterations))[1].reshape(iterations * batch, -1)

    compiled = jax.jit(evolve, static_argnums=1)

    def run(seed: int, evaluations: int) -> np.ndarray:
        genotypes = compiled(jnp.uint32(seed), -(-evaluations // batch))
        return problem.space.vector(np.asarray(genotypes)[:evaluations])

    return run


# ------------------------------------------------------------------------------------------------------------ random


def random_search(problem: Problem) -> Run:
    def run(seed: int, evaluations: int) -> np.ndarray:
        return problem.space.vector(np.random.default_rng(seed).random((evaluations, len(problem.bounds))))

    return run


# ------------------------------------------------------------------------------------------------------------- pymoo


def pymoo_problem(problem: Problem) -> tuple[Any, list[np.ndarray]]:
    """The problem for pymoo, and a list that its evaluations are appended to."""
    from pymoo.core.problem import Problem as PymooProblem
    from pymoo.core.variable import Choice, Integer, Real

    made: list[np.ndarray] = []
    numbers: dict[str, Any] = {"n_obj": len(problem.objectives), "n_ieq_constr": len(problem.constraints)}
    if problem.is_mixed:
        numbers["vars"] = {
            name: Choice(options=list(range(bound.number)))
            if isinstance(bound, moqd.Categorical)
            else Integer(bounds=(bound.low, bound.high))
            if isinstance(bound, moqd.Integer)
            else Real(bounds=bound)
            for name, bound in problem.bounds.items()
        }
    else:
        low, high = np.array(list(problem.bounds.values())).T
        numbers |= {"n_var": len(low), "xl": low, "xu": high, "vtype": float}

    class Recorded(PymooProblem):
        def _evaluate(self, x: Any, out: dict[str, Any], *_: Any, **__: Any) -> None:
            if problem.is_mixed:
                x = np.array([[one[name] for name in problem.bounds] for one in x], float)
            made.append(np.array(x, float))
            out["F"], _, constraints = problem.evaluate(made[-1], np)
            if problem.constraints:
                out["G"] = constraints

    return Recorded(**numbers), made


def pymoo_run(problem: Problem, build: Callable[..., Any]) -> Run:
    from pymoo.core.mixed import MixedVariableDuplicateElimination, MixedVariableMating, MixedVariableSampling
    from pymoo.optimize import minimize

    def run(seed: int, evaluations: int) -> np.ndarray:
        options: dict[str, Any] = {"pop_size": POPULATION}
        algorithm = build(**options)
        if problem.is_mixed:  # pymoo's operators for mixed variables, with the algorithm's own selection
            alike = MixedVariableDuplicateElimination()
            mating = MixedVariableMating(selection=algorithm.mating.selection, eliminate_duplicates=alike)
            options |= {"sampling": MixedVariableSampling(), "mating": mating, "eliminate_duplicates": alike}
            algorithm = build(**options)
        to_solve, made = pymoo_problem(problem)
        minimize(to_solve, algorithm, ("n_eval", evaluations), seed=seed)
        x = np.concatenate(made)
        if len(x) < evaluations:
            raise RuntimeError(f"pymoo stopped after {len(x)} evaluations")
        return x[:evaluations]

    return run


def pymoo_nsga2(problem: Problem) -> Run:
    from pymoo.algorithms.moo.nsga2 import NSGA2

    return pymoo_run(problem, NSGA2)


def pymoo_sms_emoa(problem: Problem) -> Run:
    from pymoo.algorithms.moo.sms import SMSEMOA

    return pymoo_run(problem, SMSEMOA)


# ------------------------------------------------------------------------------------------------------------ pyribs


def extent(problem: Problem) -> np.ndarray:
    """Of every objective, from the reference point to the best of random designs (to 0 where these are beyond)."""
    x = random_search(problem)(0, 10_000)
    objectives, _, constraints = problem.evaluate(x, np)
    best = objectives[np.all(constraints <= 0, axis=1)].min(axis=0)
    reference = np.array(problem.reference_point)
    return reference - np.where(best < reference, best, 0.0)


def pyribs_cma_me(problem: Problem, sigma: float = 0.2, emitters: int = 5, batch: int = 36) -> Run:
    """CMA-ME (Fontaine et al., 2020) on the equally weighted sum of objectives, over the same cells.

    Whole numbers and choices are relaxed, and solutions beyond the bounds are evaluated on them: given bounds, pyribs
    samples until all parameters are within, which may take for ever. (An archive of solutions that are brought back to
    the bounds gives it more on wfg4 and battery-pack, but less on ZDT and DTLZ7.) An infeasible solution is worse than
    all feasible ones, by its violation.
    """
    from ribs.archives import CVTArchive
    from ribs.emitters import EvolutionStrategyEmitter
    from ribs.schedulers import Scheduler

    number, scale = len(problem.bounds), extent(problem)
    low, high = np.array(list(problem.features.values())).T
    centroids = (cvt_centroids(NUM_CELLS, list(problem.features.values())) - low) / (high - low)
    worst = 1e3

    def score(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        objectives, features, constraints = problem.evaluate(x, np)
        value = -np.minimum(np.mean(objectives / scale, axis=1), worst)
        violation = np.sum(np.maximum(constraints, 0), axis=1)
        value = np.where(violation > 0, -worst - 1 - np.minimum(violation, 1e6), value)
        return value, np.clip((features - low) / (high - low), 0, 1)

    def run(seed: int, evaluations: int) -> np.ndarray:
        archive = CVTArchive(solution_dim=number, centroids=centroids, ranges=[(0, 1)] * len(low), seed=seed)
        start = np.full(number, 0.5)
        scheduler = Scheduler(
            archive,
            [
                EvolutionStrategyEmitter(archive, x0=start, sigma0=sigma, batch_size=batch, seed=emitters * seed + i)
                for i in range(emitters)
            ],
        )
        made: list[np.ndarray] = []
        while sum(map(len, made)) < evaluations:
            made.append(problem.space.vector(np.clip(scheduler.ask(), 0, 1)))
            scheduler.tell(*score(made[-1]))
        return np.concatenate(made)[:evaluations]

    return run


RIVALS: dict[str, Callable[..., Run]] = {
    "random": random_search,
    "pymoo-nsga2": pymoo_nsga2,
    "pymoo-sms-emoa": pymoo_sms_emoa,
    "pyribs-cma-me": pyribs_cma_me,
}
