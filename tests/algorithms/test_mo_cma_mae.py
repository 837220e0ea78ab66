import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core.types import Source
from moqd.runs.loop import Loop
from tests.plain import PLAIN

SMALL = {"num_cells": 16, "front_length": 8, "ga_batch": 20, "num_emitters": 2}


def plane(function, *, parameters=4, reference_point=(-4.0, -4.0), **arguments) -> moqd.FunctionTask:
    arguments = {"bounds": [(0.0, 1.0)] * parameters} | arguments
    return moqd.FunctionTask(
        function,
        name="plane",
        objective_names=("a", "b"),
        feature_names=("f", "g"),
        feature_bounds=((0.0, 1.0), (0.0, 1.0)),
        reference_point=reference_point,
        traceable=True,
        **arguments,
    )


def two_spheres(x):
    return jnp.stack([-jnp.sum((x - 0.3) ** 2), -jnp.sum((x - 0.7) ** 2)]), x[:2]


def evolved(algorithm, task, iterations, seed=0) -> Loop:
    loop = Loop(algorithm, task, seed)
    loop.start()
    while loop.iteration < iterations:
        loop.advance(iterations)
    return loop


@pytest.mark.slow
def test_it_is_ahead_of_the_papers_mome_and_of_random_search_on_spheres_with_20_parameters():
    """Of which each feature is the mean of a half, so that random solutions are all in the middle."""

    def spheres(x):
        return two_spheres(x)[0], jnp.stack([jnp.mean(x[:10]), jnp.mean(x[10:])])

    task = plane(spheres, parameters=20, reference_point=(-8.0, -8.0))
    places = {"num_cells": 32, "front_length": 10}
    found = moqd.run(moqd.make_algorithm("mo-cma-mae", task, **places), task, iterations=50, seed=1).metrics
    mome = moqd.make_algorithm("mome", task, ga_batch=80, **PLAIN, **places)
    rival = moqd.run(mome, task, iterations=50, seed=1).metrics
    first = rival["moqd_score"][0], rival["coverage"][0]
    assert found["moqd_score"][-1] > 1.5 * rival["moqd_score"][-1] > 1.5 * first[0]
    assert found["coverage"][-1] > 1.5 * rival["coverage"][-1] > 1.5 * first[1]


@pytest.mark.slow
def test_where_all_is_beyond_the_reference_point_it_finds_the_way():
    """All of the first batch is: random points are 15 times as far away as the reference point allows."""
    task = plane(two_spheres, parameters=10, reference_point=(-0.6, -0.6))
    scores = {}
    for approach in (True, False):
        algorithm = moqd.make_algorithm("mo-cma-mae", task, approach=approach, **SMALL)
        scores[approach] = moqd.run(algorithm, task, iterations=60, seed=0).metrics["moqd_score"]
    assert scores[True][0] == 0
    assert scores[True][-1] > 1.5 * scores[False][-1]


@pytest.mark.slow
def test_without_a_reference_point_it_takes_that_of_the_run():
    task = plane(two_spheres, reference_point=None)
    loop = evolved(moqd.make_algorithm("mo-cma-mae", task, **SMALL), task, 3)
    np.testing.assert_allclose(loop.carry.state.scale.reference, loop.reference_point, rtol=1e-5)
    assert loop.carry.state.scale.known


@pytest.mark.slow
def test_while_nothing_is_feasible_it_descends_the_violation():
    def function(x):
        return *two_spheres(x), jnp.sum((x - 0.95) ** 2)[None] - 0.02

    task = plane(function, parameters=8, constraint_names=("near the corner",))
    algorithm = moqd.make_algorithm("mo-cma-mae", task, **SMALL)
    first = jax.jit(algorithm.init)(jax.random.key(0))[1].genotype
    assert (jnp.sum((first - 0.95) ** 2, axis=1) > 0.1).all()
    state = evolved(algorithm, task, 40).carry.state
    assert state.archive.valid.any()
    member = state.archive.genotype[state.archive.valid]
    assert (jnp.sum((member - 0.95) ** 2, axis=1) <= 0.02 + 1e-6).all()


@pytest.mark.slow
def test_pytrees_without_bounds_have_steps_of_their_own_size():
    def init(key):
        return {"w": 50 * jax.random.normal(key, (3, 4)), "b": jnp.zeros(2)}

    def function(genotype):
        w, b = genotype["w"] / 100, genotype["b"]
        return jnp.stack([-jnp.sum((w - 1) ** 2), -jnp.sum((w + 1) ** 2)]), jnp.clip(b / 100 + 0.5, 0, 1)

    task = plane(function, bounds=(), init=init, reference_point=(-60.0, -60.0))
    algorithm = moqd.make_algorithm("mo-cma-mae", task, **SMALL)
    state = jax.jit(algorithm.init)(jax.random.key(0))[0]
    assert 30 < state.spread < 60  # 12 of the 14 genes have a standard deviation of 50
    assert state.emitters.axes.shape == (2, 14, 14)
    run = moqd.run(algorithm, task, iterations=40, seed=0)
    assert run.metrics["coverage"][0] < 0.1  # random genotypes all have the same feature
    assert run.metrics["coverage"][-1] > 0.5


@pytest.mark.slow
def test_emitters_may_be_beyond_the_bounds_within_which_they_are_evaluated():
    """The best solutions of every cell have 8 of 10 parameters at 0."""

    def function(x):
        away = jnp.sum(x[2:])
        return -jnp.stack([x[0] + away, 1 - x[0] + away]), x[:2]

    task = plane(function, parameters=10, reference_point=(-3.0, -3.0))
    loop = evolved(moqd.make_algorithm("mo-cma-mae", task, **SMALL), task, 60)
    emitters, archive = loop.carry.state.emitters, loop.archive
    assert (emitters.mean[:, 2:] < 0).any()
    assert ((emitters.mean >= -0.25 - 1e-6) & (emitters.mean <= 1.25 + 1e-6)).all()
    member = archive.genotype[archive.valid]
    assert ((member >= 0) & (member <= 1)).all()
    assert (member[:, 2:] == 0).all(axis=1).any()


@pytest.mark.slow
def test_many_parameters_have_diagonal_covariances():
    task = plane(two_spheres, parameters=101)
    state = evolved(moqd.make_algorithm("mo-cma-mae", task, **SMALL), task, 2).carry.state
    assert state.emitters.axes is None
    assert state.emitters.covariance.shape == (2, 101)


@pytest.mark.slow
def test_whole_numbers_do_not_freeze_it():
    """The features are whole numbers alone, so that a step within their parts finds nothing new."""

    def function(x):
        return jnp.stack([-((x[2] - 3) ** 2), -((x[2] - 12) ** 2)]), x[:2] / 15

    task = plane(function, bounds=[moqd.Integer(0, 15)] * 3, reference_point=(-400.0, -400.0))
    loop = evolved(moqd.make_algorithm("mo-cma-mae", task, **SMALL), task, 60)
    assert loop.archive.valid.any(axis=1).all()
    assert (loop.carry.state.emitters.step > 0.01).all()


@pytest.mark.slow
def test_seeds_are_told_and_emitters_start_anew():
    task = plane(two_spheres)
    algorithm = moqd.make_algorithm("mo-cma-mae", task, **SMALL)
    state, offspring = jax.jit(algorithm.init)(jax.random.key(0))
    tell = jax.jit(algorithm.tell)
    evaluation = jax.jit(task.evaluate)(jax.random.key(1), offspring.genotype)
    state, info = tell(jax.random.key(2), state, offspring, evaluation)
    assert info.metrics["restarts"] == 1
    member = np.asarray(state.archive.genotype[state.archive.valid])
    assert all((member == mean).all(axis=1).any() for mean in np.asarray(state.emitters.mean))
    sampled = jax.jit(algorithm.ask)(jax.random.key(3), state)
    assert (sampled.source == Source.GA).all()
    assert ((sampled.genotype >= 0) & (sampled.genotype <= 1)).all()
    state, info = tell(jax.random.key(4), state, sampled, jax.jit(task.evaluate)(jax.random.key(5), sampled.genotype))
    assert info.metrics["restarts"] < 1


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"num_emitters": 3}, "ga_batch is 20; give a multiple of num_emitters, which is 3"),
        ({"alpha": 0.0}, "alpha is 0.0; give a number above 0 and at most 1"),
        ({"alpha": 1.5}, "alpha is 1.5"),
    ],
)
def test_bad_options_get_one_sentence(overrides, message):
    with pytest.raises(moqd.InputError, match=message):
        moqd.make_algorithm("mo-cma-mae", plane(two_spheres), **(SMALL | overrides))


def projected(score):
    """Two functions with optima apart; the features are those of linear projection (Fontaine et al., 2020)."""

    def function(x):
        within = jnp.abs(x) <= 5.12
        clipped = jnp.where(within, x, 5.12 / jnp.where(within, 1, x)) / 5.12
        first, second = jnp.split(clipped, 2)
        most = score(jnp.full(x.shape, 5.12 + 2.048))
        values = jnp.stack([100 * (1 - score(x - centre) / most) for centre in (2.048, -2.048)])
        return values, jnp.stack([jnp.mean(first), jnp.mean(second)])

    return function


PAPERS = {
    "sphere": projected(lambda z: jnp.sum(z**2)),
    "rastrigin": projected(lambda z: jnp.sum(z**2 + 10 * (1 - jnp.cos(2 * jnp.pi * z)))),
}


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [10, 20, 100])
@pytest.mark.parametrize("name", [*PAPERS, "arm"])
def test_on_the_benchmarks_of_its_paper_it_is_ahead_of_mome(name, parameters):
    """In MOQD score and coverage, as the paper reports; medians of three seeds, 20,000 evaluations."""
    if name == "arm":
        task = moqd.make_task("arm-2", num_joints=parameters)
    else:
        task = moqd.FunctionTask(
            PAPERS[name],
            name=name,
            bounds=[(-10.24, 10.24)] * parameters,
            objective_names=("a", "b"),
            feature_names=("f", "g"),
            feature_bounds=((-1.0, 1.0), (-1.0, 1.0)),
            reference_point=(0.0, 0.0),
            traceable=True,
        )
    as_published = {
        "iso_sigma": 0.005,
        "line_sigma": 0.05,
        "crowding": False,
        "guided": False,
        "cell_selection": "uniform",
    }
    mome = moqd.make_algorithm("mome", task, ga_batch=80, variation="iso-line", **as_published)
    ours = moqd.make_algorithm("mo-cma-mae", task)
    for metric in ("moqd_score", "coverage"):
        found, rival = (
            np.median([_last(algorithm, task, seed)[metric] for seed in range(3)]) for algorithm in (ours, mome)
        )
        assert found > rival, metric


_RUNS: dict[tuple[str, str, int, int], dict[str, float]] = {}


def _last(algorithm, task, seed):
    """The last metrics of a run, which is made once."""
    key = algorithm.name, task.name, len(task.parameter_names), seed
    if key not in _RUNS:
        run = moqd.run(algorithm, task, evaluations=20_000, seed=seed)
        _RUNS[key] = {name: column[-1] for name, column in run.metrics.items()}
        print(key, _RUNS[key]["moqd_score"], _RUNS[key]["coverage"])
    return _RUNS[key]
