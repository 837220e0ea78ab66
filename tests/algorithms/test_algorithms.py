"""What holds for every algorithm by its name."""

from dataclasses import asdict
from functools import partial

import jax
import numpy as np
import pytest

import moqd
from moqd.algorithms import ALGORITHMS, batch_fields
from moqd.algorithms.mo_cma_mae import MoCmaMaeConfig
from moqd.algorithms.population import PopulationConfig
from moqd.core.devices import on_one
from moqd.core.tessellation import cvt_centroids, grid_centroids
from moqd.core.types import Source
from moqd.runs.loop import Loop
from moqd.study.plan import STUDIES
from moqd.variation.mixture import VariationConfig
from tests.walk import walk

SMALL = {"num_cells": 8, "front_length": 4}
FEW = {
    "num_emitters": 3,
    "critic_steps": 4,
    "pg_steps": 3,
    "minibatch": 16,
    "critic_hidden_sizes": (16, 16),
    "buffer_size": 300,
    "epochs": 2,
    "value_hidden_sizes": (8,),
    "grid_parts": 1,
    "generation": 2,
    "warm_up": 4,
    "buffers": 6,
    "front_size": 20,
}
LEARNERS = [name for name, entry in ALGORITHMS.items() if entry.policies]
OTHERS = [name for name in ALGORITHMS if name not in LEARNERS]


def small(name: str, task: moqd.Task, **overrides):
    """The algorithm with a batch of 12, divided as with the paper's settings."""
    config = ALGORITHMS[name].config
    batch = {field: getattr(config, field) for field in batch_fields(config)}
    options = {field: size * 12 // sum(batch.values()) for field, size in batch.items()}
    if options.get("actor_batch"):
        options["actor_batch"] = max(options["actor_batch"], task.num_objectives)
    options[next(iter(options))] += 12 - sum(options.values())
    options |= {field: value for field, value in FEW.items() if hasattr(config, field)}
    return moqd.make_algorithm(name, task, **(SMALL | options | overrides))


def task_for(name: str) -> moqd.Task:
    return walk() if name in LEARNERS else moqd.make_task("rastrigin-2")


def quick(names, *, except_for):
    """Those named last only in the long tests: they are made of the same parts, and each is a minute to compile."""
    return [pytest.param(name, marks=pytest.mark.slow if name in except_for else ()) for name in names]


def interrupted(algorithm, task, folder, *, at, **arguments) -> moqd.Run:
    """A run that is stopped as soon as it has reached each of some iterations, and resumed."""
    control = moqd.Control()

    class Stop(moqd.Callback):
        def on_progress(self, iteration):
            if iteration >= at[len(stops)]:
                control.stop()

    stops: list[str] = []
    start = partial(moqd.run, algorithm, task, out=folder, **arguments)
    for _ in at:
        control = moqd.Control()
        with pytest.raises(moqd.StoppedError) as stopped:
            start(control=control, callbacks=[Stop()])
        stops.append(str(stopped.value))
        start = partial(moqd.resume, folder, task=task)
    return start()


FIRST = list({entry.build.func: name for name, entry in reversed(ALGORITHMS.items())}.values())
"""One of each kind: the others are the same with other options."""
RELATED = ["mome-pgx", "mome-dcrl", "dcrl-me", *(name for name in ALGORITHMS if name not in FIRST)]


@pytest.mark.parametrize(
    "name",
    quick(
        ALGORITHMS,
        except_for=[*RELATED, "mome", "mo-cma-mae", "mome-p2c", "pga-me", "pg-morl", "spea2", "mcx", "move"],
    ),
)
def test_two_steps_keep_the_structure_and_are_compiled_once(name):
    task = walk(3) if name in LEARNERS else moqd.make_task("dtlz2-5")
    algorithm = small(name, task)
    assert algorithm.name == name
    keys = iter([jax.random.key(i) for i in range(10)])
    with jax.debug_key_reuse(True):
        state, offspring = on_one(jax.jit(algorithm.init)(next(keys)))
        assert (offspring.source == Source.RANDOM).all()
        structure = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state)
        ask = algorithm.ask if algorithm.uses_devices else jax.jit(algorithm.ask)
        tell = jax.jit(algorithm.tell)
        evaluate = jax.jit(task.evaluate)
        for _ in range(3):
            evaluation = on_one(evaluate(next(keys), offspring.genotype))
            state, info = tell(next(keys), state, offspring, evaluation)
            assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state) == structure
            offspring = on_one(ask(next(keys), state))
            if name not in LEARNERS:
                varies = isinstance(algorithm.config, VariationConfig | MoCmaMaeConfig)
                allowed = {Source.GA} if varies else {Source.RANDOM, Source.GA}
                assert set(offspring.source.tolist()) <= allowed
            assert offspring.preference.shape == (12, task.num_objectives)
            np.testing.assert_allclose(offspring.preference.sum(axis=1), 1, rtol=1e-5)
    assert info.added.shape == (12,)
    assert tell._cache_size() == 1
    assert algorithm.uses_devices or ask._cache_size() == 1


@pytest.mark.parametrize(
    "name",
    quick(
        dict.fromkeys([*OTHERS, *FIRST]),
        except_for=[*RELATED, "mome", "mo-cma-mae", "nsga2", "pga-me", "pg-morl", "spea2", "mcx", "move"],
    ),
)
def test_an_algorithm_improves_and_repeats_itself_also_when_it_is_interrupted(name, tmp_path):
    task = task_for(name)
    one = moqd.run(small(name, task), task, iterations=30, seed=3)
    other = interrupted(small(name, task), task, tmp_path / "run", at=(7,), iterations=30, seed=3)
    for a, b in zip(jax.tree.leaves(one.archive), jax.tree.leaves(other.archive), strict=True):
        assert np.array_equal(a, b)
    for column in set(one.metrics) - {"seconds"}:
        assert np.array_equal(one.metrics[column], other.metrics[column], equal_nan=True), column
    assert one.metrics["moqd_score"][-1] > one.metrics["moqd_score"][0]
    another = moqd.run(small(name, task), task, iterations=30, seed=4)
    assert not np.array_equal(one.archive.fitness, another.archive.fitness)


@pytest.mark.parametrize(
    "name",
    quick([name for name in FIRST if name in OTHERS], except_for=["mcx", "mo-cma-mae", "move", "nsga2", "spea2"]),
)
def test_failed_evaluations_never_survive(name):
    """Half of all evaluations fail, and all of the first batch."""
    calls = []

    def function(x):
        calls.append(1)
        if len(calls) <= 12 or x[0] < 0.5:
            raise RuntimeError
        return [x[0], -x[0] + x[1]], [x[1]]

    task = moqd.FunctionTask(
        function,
        name="t",
        bounds=[(0, 1)] * 3,
        objective_names=["a", "b"],
        feature_names=["f"],
        feature_bounds=[(0, 1)],
    )
    loop = Loop(small(name, task), task, seed=0)
    loop.start()
    loop.advance(10)
    assert loop.carry.progress.failed >= 12
    archive = loop.archive
    assert archive.valid.any()
    assert (archive.fitness[archive.valid][:, 0] >= 0.5).all()
    population = getattr(getattr(loop.carry.state, "active", None), "population", None)
    assert population is not None or not isinstance(ALGORITHMS[name].config, PopulationConfig)
    if population is not None:
        assert population.valid.any()
        assert (population.fitness[population.valid][:, 0] >= 0.5).all()


def test_the_same_seed_gives_every_algorithm_the_same_first_batch():
    task = walk()

    def first(name):
        algorithm = small(name, task)
        return jax.tree.leaves(jax.jit(lambda key: algorithm.init(key)[1].genotype)(jax.random.key(5)))

    expected = first("mome")
    for name in FIRST:
        assert all(np.array_equal(a, b) for a, b in zip(first(name), expected, strict=True)), name


def test_variants_differ_from_their_base_only_as_declared():
    for name in ("nsga2", "spea2"):
        base, variant = (asdict(ALGORITHMS[n].config) for n in (name, f"{name}-small"))
        assert {field for field in base if base[field] != variant[field]} == {"population"}
        assert base["population"] * 640 == variant["population"] * 4000 == 1_024_000


def test_paper_settings_spend_the_paper_evaluations():
    for num_objectives in (2, 3):
        task = walk(num_objectives)
        # Cells take a while to find and do not matter here.
        batch = {
            name: Loop(moqd.make_algorithm(name, task, num_cells=2, front_length=2), task, 0).batch
            for name in STUDIES["paper"][1]
        }
        assert batch == {name: 1600 if name in ("nsga2", "spea2") else 256 for name in batch}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_tuple_of_cells_is_a_grid_for_every_algorithm(name):
    task = task_for(name)
    shape = (6,) if name in LEARNERS else (2, 3)
    algorithm = small(name, task, num_cells=list(shape))
    assert algorithm.config.num_cells == shape
    state, _ = jax.eval_shape(algorithm.init, jax.random.key(0))
    assert state.archive.valid.shape == (6, 4)


def test_the_grid_is_that_of_the_features_but_for_the_elites_of_pga_me():
    state, _ = small("pga-me", walk(), num_cells=(6,), front_length=4).init(jax.random.key(0))
    assert np.array_equal(state.archive.centroid, grid_centroids((6,), walk().feature_bounds))
    # As many as the passive archive has places.
    assert state.active.archive.valid.shape == (24, 1)
    assert np.array_equal(state.active.archive.centroid, cvt_centroids(24, walk().feature_bounds))


def test_without_features_there_is_no_grid():
    task = moqd.FunctionTask(lambda x: [x[0], -x[0]], name="plain", bounds=[(0, 1)], objective_names=["a", "b"])
    with pytest.raises(moqd.InputError, match=r"a grid over 1 feature, but task 'plain' has none; give a single whole"):
        moqd.make_algorithm("mome", task, num_cells=(4,))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"cells": 3}, "unknown option 'cells' of algorithm 'mome'; did you mean 'num_cells'"),
        ({"num_cells": 0}, "num_cells is 0; give a whole number of at least 1"),
        ({"num_cells": 1.5}, "num_cells is 1.5; give a whole number"),
        ({"num_cells": True}, "num_cells is True; give a whole number of at least 1, or a list of them"),
        ({"num_cells": ()}, r"num_cells is \(\); give a whole number of at least 1, or a list of them"),
        ({"num_cells": [4, 0]}, r"num_cells is \[4, 0\]; give a whole number of at least 1, or a list of them"),
        ({"num_cells": "45"}, "num_cells is '45'; give a whole number"),
        (
            {"num_cells": (4, 5, 6)},
            r"num_cells is \(4, 5, 6\), a grid over 3 features, but task 'arm-2' has 2 \(hand x, hand y\); give one "
            r"number for each feature, or a single whole number\.$",
        ),
        ({"num_cells": [8]}, r"num_cells is \(8,\), a grid over 1 feature, but task 'arm-2' has 2"),
        ({"iso_sigma": -1}, "iso_sigma is -1; give a number that is not negative"),
    ],
)
def test_bad_options_get_one_sentence(overrides, message):
    with pytest.raises(moqd.InputError, match=message):
        moqd.make_algorithm("mome", moqd.make_task("arm-2"), **overrides)
    with pytest.raises(moqd.InputError, match="unknown algorithm 'mom'; did you mean 'mome'"):
        moqd.make_algorithm("mom", moqd.make_task("arm-2"))
