"""Parameters of a function: what it is called with, and where values lie in the unit cube."""

import csv
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import moqd
from moqd import Categorical, FunctionTask, InputError, Integer, Real
from moqd.cli.main import main
from moqd.runs.config import TaskConfig
from moqd.tasks.parameters import space_of

BOUNDS = {"length": (2.0, 4.0), "teeth": Integer(-1, 3), "material": Categorical("steel", "oak", "glass")}
NAMES = {"objective_names": ["a", "b"], "feature_names": ["f"], "feature_bounds": [(0.0, 5.0)]}


def test_a_function_takes_parameters_by_name_as_what_they_are():
    seen = []

    def function(length, teeth, material):
        seen.append((length, teeth, material))
        return [length, float(teeth)], [1.0]

    task = FunctionTask(function, name="t", bounds=BOUNDS, **NAMES)
    genotype = jnp.asarray([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.5, 0.39, 0.34]])
    evaluation = task.evaluate(jax.random.key(0), genotype)
    assert seen == [(2.0, -1, "steel"), (4.0, 3, "glass"), (3.0, 0, "oak")]
    assert [type(value) for value in seen[0]] == [float, int, str]
    np.testing.assert_allclose(evaluation.fitness, [[2, -1], [4, 3], [3, 0]])
    assert task.named_parameters(genotype[2]) == {"length": 3.0, "teeth": 0, "material": "oak"}


@pytest.mark.parametrize("batched", [True, False])
def test_a_compiled_function_takes_integers_and_indices(batched):
    def function(length, teeth, material):
        assert (length.dtype, teeth.dtype, material.dtype) == (jnp.float32, jnp.int32, jnp.int32)
        cost = jnp.asarray([1.0, 2.0, 3.0])[material]
        return jnp.stack([length, cost], axis=-1), jnp.stack([teeth.astype(jnp.float32)], axis=-1)

    task = FunctionTask(function, name="t", bounds=BOUNDS, traceable=True, batched=batched, **NAMES)
    evaluation = task.evaluate(jax.random.key(0), jnp.asarray([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(evaluation.fitness, [[2, 1], [4, 3]])
    np.testing.assert_allclose(evaluation.feature, [[-1], [3]])


def test_a_batched_function_takes_columns():
    def function(length, teeth, material):
        assert material.tolist() == ["steel", "glass"]
        return np.stack([length, length], axis=1), teeth[:, None]

    task = FunctionTask(function, name="t", bounds=BOUNDS, batched=True, **NAMES)
    evaluation = task.evaluate(jax.random.key(0), jnp.asarray([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(evaluation.feature, [[-1], [3]])


def test_in_a_list_all_are_numbers_of_one_vector():
    task = FunctionTask(lambda x: ([x[0], x[1]], [x[2]]), name="t", bounds=list(BOUNDS.values()), **NAMES)
    assert task.parameters(np.array([1.0, 1.0, 1.0])).tolist() == [4.0, 3.0, 2.0]
    assert task.parameter_names == ("x0", "x1", "x2")


@given(
    st.fixed_dictionaries(
        {
            "length": st.floats(2, 4, width=32),
            "teeth": st.integers(-1, 3),
            "material": st.sampled_from(["steel", "oak", "glass"]),
        }
    )
)
def test_values_and_their_places_in_the_cube_go_together(values):
    space = space_of(BOUNDS)
    again = space.values(space.vector(space.genotype(values)))
    assert (again["teeth"], again["material"]) == (values["teeth"], values["material"])
    assert abs(again["length"] - values["length"]) < 1e-5


def test_every_whole_number_and_every_choice_takes_an_equal_part():
    space = space_of(BOUNDS)
    grid = (np.arange(1500) + 0.5) / 1500
    vectors = space.vector(np.stack([grid, grid, grid], axis=1))
    assert np.bincount(vectors[:, 1].astype(int) + 1).tolist() == [300] * 5
    assert np.bincount(vectors[:, 2].astype(int)).tolist() == [500] * 3


def test_reals_stay_within_their_bounds():
    space = space_of([(0.3, 0.9), (-2.0, 0.1)])
    assert space.vector(np.ones(2)).tolist() == [0.9, 0.1]
    assert (space.traced_vector(jnp.ones(2)) <= np.array([0.9, 0.1], np.float32)).all()


def test_a_logarithmic_scale_is_that_of_geomspace():
    space = space_of({"rate": Real(1e-4, 1, log=True), "size": Real(3, 7e5, log=True), "plain": Real(-2, 2)})
    unit = np.linspace(0, 1, 1001)
    expected = np.stack([np.geomspace(1e-4, 1, 1001), np.geomspace(3, 7e5, 1001), np.linspace(-2, 2, 1001)], axis=1)
    vectors = space.vector(np.stack([unit] * 3, axis=1))
    np.testing.assert_allclose(vectors, expected, rtol=1e-13, atol=1e-15)
    traced = jax.jit(space.traced_vector)(jnp.asarray(np.stack([unit] * 3, axis=1), jnp.float32))
    assert traced.dtype == jnp.float32
    np.testing.assert_allclose(traced, expected, rtol=3e-6, atol=1e-6)


POSITIVE = st.floats(np.finfo(np.float32).tiny, 3e38)


@pytest.mark.slow
@given(st.lists(POSITIVE, min_size=2, max_size=2), st.lists(st.floats(0, 1, width=32), min_size=1, max_size=50))
@example([0.1, 0.3], [0.0, 1.0])
@example([float(np.finfo(np.float32).tiny), 3e38], [0.0, 0.5, 1.0])
def test_a_logarithmic_scale_ascends_within_its_bounds_and_has_exact_ends(ends, genes):
    low, high = sorted(ends)
    assume(np.log(low) < np.log(high))
    space = space_of([Real(low, high, log=True)])
    unit = np.array([[0.0], *([gene] for gene in sorted(genes)), [1.0]], np.float32)
    for vectors, dtype in (
        (space.vector(unit), np.float64),
        (np.asarray(space.traced_vector(jnp.asarray(unit))), np.float32),
    ):
        assert vectors.dtype == dtype
        assert (vectors[0, 0], vectors[-1, 0]) == (dtype(low), dtype(high))
        assert np.all(np.diff(vectors[:, 0]) >= 0)
        assert np.all((vectors >= dtype(low)) & (vectors <= dtype(high)))


@pytest.mark.parametrize("ends", [(1e-4, 1.0), (2.0, 3.0), (1e-30, 1e30)])
def test_a_compiled_logarithmic_scale_ascends_from_float_to_float(ends):
    space = space_of([Real(*ends, log=True)])
    bits = np.arange(2**20, dtype=np.int32)
    for first in (0.0, 1e-6, 0.01, 0.4, 0.9375):
        unit = (np.float32(first).view(np.int32) + bits).view(np.float32)
        vectors = np.asarray(jax.jit(space.traced_vector)(jnp.asarray(unit[unit <= 1, None])))
        assert np.all(np.diff(vectors[:, 0]) >= 0)


@given(st.floats(1e-300, 1e300))
def test_values_on_a_logarithmic_scale_and_their_places_go_together(value):
    space = space_of({"rate": Real(1e-300, 1e300, log=True)})
    gene = space.genotype({"rate": value})
    assert gene[0] == pytest.approx((np.log10(value) + 300) / 600, abs=1e-7)
    extent = 600 * np.log(10)
    assert space.values(space.vector(gene))["rate"] == pytest.approx(value, rel=extent * 2**-24, abs=0)


def test_the_ends_of_a_logarithmic_scale_are_the_genes_0_and_1():
    space = space_of([Real(0.1, 0.3, log=True)])
    assert (space.genotype([0.1]), space.genotype([0.3])) == (0, 1)
    assert space.vector(np.array([1.0])).tolist() == [0.3]


def test_a_real_without_logarithm_is_a_pair():
    task, pair = (
        FunctionTask(lambda a, b: None, name="t", bounds=bounds, **NAMES)
        for bounds in ({"a": Real(0, 1), "b": Real(-2, 5.5)}, {"a": (0, 1), "b": (-2, 5.5)})
    )
    assert task.bounds == pair.bounds == {"a": (0.0, 1.0), "b": (-2.0, 5.5)}
    assert TaskConfig.of(task) == TaskConfig.of(pair)
    assert TaskConfig.of(task).description["bounds"] == [[0.0, 1.0], [-2.0, 5.5]]


@pytest.mark.slow
def test_a_run_on_a_logarithmic_scale_is_read_without_its_task(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("moqd.report.run.save", lambda *_: None)  # figures are drawn but not written, for speed

    def function(rate, depth):
        return [rate, -rate], [np.log10(rate)]

    bounds = {"rate": Real(1e-6, 1e2, log=True), "depth": Integer(1, 3)}
    task = FunctionTask(function, name="t", bounds=bounds, **(NAMES | {"feature_bounds": [(-6.0, 2.0)]}))
    run = moqd.run("mome", task, ga_batch=64, num_cells=8, iterations=3, out=tmp_path / "run")
    recorded = json.loads((tmp_path / "run" / "config.json").read_text())["task"]["bounds"]
    assert recorded == [{"log": [1e-6, 1e2]}, {"integer": [1, 3]}]
    # A random batch is uniform over the magnitudes.
    assert run.metrics["coverage"][0] == 1
    again = moqd.load_run(tmp_path / "run")
    assert again.task.space == space_of(tuple(bounds.values()), ("rate", "depth"))
    solutions = again.solutions()
    rate = again.task.parameters(solutions.genotype)[:, 0]
    np.testing.assert_allclose(solutions.objectives[:, 0], rate, rtol=1e-6)
    np.testing.assert_allclose(solutions.features[:, 0], np.log10(rate), atol=1e-5)
    chosen = moqd.pick(again, [0.5, 0.5])
    assert chosen.parameters["rate"] == pytest.approx(chosen.objectives["a"])
    assert main(["pick", str(tmp_path / "run"), "--json"]) == 0
    picked = json.loads(capsys.readouterr().out)
    assert picked["parameters"]["rate"] == pytest.approx(picked["objectives"]["a"])
    assert main(["export", str(tmp_path / "run"), "--csv"]) == 0
    table = list(csv.DictReader((tmp_path / "run" / "solutions.csv").read_text().splitlines()))
    np.testing.assert_allclose([float(row["rate"]) for row in table], rate)
    assert moqd.explore(again).is_file()
    assert main(["report", str(tmp_path / "run")]) == 0
    assert "1e-06, 100.0" in (tmp_path / "run" / "report.md").read_text()
    assert moqd.load_run(tmp_path / "run", task=task).task is task
    other = FunctionTask(function, name="t", bounds=bounds | {"rate": (1e-6, 1e2)}, **NAMES)
    with pytest.raises(InputError, match="give the task that was run"):
        moqd.load_run(tmp_path / "run", task=other)


def test_as_many_whole_numbers_as_there_may_be_are_told_apart():
    space = space_of({"n": Integer(3_000_000_000, 3_000_000_000 + 2**23 - 1)})
    for value in (3_000_000_000, 3_004_194_305, 3_000_000_000 + 2**23 - 1):
        vector = space.vector(space.genotype([value]))
        assert space.values(vector) == {"n": value}
        assert space.columns(vector)["n"] == value


def test_any_pytree_may_be_a_solution():
    def function(net):
        return [float(np.sum(net["w"])), -float(np.sum(net["w"] ** 2))], [float(net["b"])]

    task = FunctionTask(
        function,
        name="net",
        init=lambda key: {"w": jax.random.normal(key, (3,)), "b": jax.random.uniform(key)},
        **NAMES,
    )
    assert task.genotype_bounds is None
    run = moqd.run(moqd.make_algorithm("mome", task, ga_batch=16, num_cells=4), task, iterations=3)
    solutions = run.solutions()
    np.testing.assert_allclose(solutions.objectives[:, 0], solutions.genotype["w"].sum(axis=1), rtol=1e-5)
    with pytest.raises(InputError, match="no plain parameters"):
        _ = moqd.pick(run).parameters


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Real(3, 3), r"Real\(3, 3\): give two finite numbers, the lower one first"),
        (lambda: Real(0, float("inf")), "give two finite numbers"),
        (lambda: Real(0, 1, log=True), r"cannot reach 0; give two positive numbers, or leave log out"),
        (lambda: Real(-1, 1, log=True), r"Real\(-1, 1, log=True\): a logarithmic scale cannot reach -1"),
        (lambda: Real(1e300, np.nextafter(1e300, 2e300), log=True), "the same logarithm; leave log out"),
        (
            lambda: FunctionTask(print, name="t", bounds=[Real(1e-50, 1, log=True)], traceable=True, **NAMES),
            "beyond the floats of 32 bits .* give bounds from 1.2e-38 to 3.4e[+]38, or pass traceable=False",
        ),
        (lambda: space_of([Real(1, 2, log=True)]).genotype([3]), "x0 is 3; give a number from 1.0 to 2.0"),
        (lambda: Integer(3, 3), "two whole numbers"),
        (lambda: Integer(0, 2**23), "has 8388609 values; give at most 8388608, or a pair of floats"),
        (lambda: Categorical("one"), "at least two options"),
        (lambda: Categorical("one", "one"), "that differ"),
        (lambda: space_of({"a": (1, 0)}), r"a is \(1, 0\); give \(lowest, highest\)"),
        (lambda: space_of({"not a name": (0, 1)}), "names that Python"),
        (lambda: space_of({"a": (0, 1)}, ["b"]), "has names already"),
        (lambda: space_of({}), "bounds is empty"),
        (
            lambda: FunctionTask(lambda a, c: None, name="t", bounds={"a": (0.0, 1.0), "b": (0.0, 1.0)}, **NAMES),
            r"takes \(a, c\), but is called with a, b by name",
        ),
        (
            lambda: FunctionTask(print, name="t", init=lambda key: {"w": jnp.zeros(2), "n": jnp.arange(3)}, **NAMES),
            "init of task 't' makes arrays of float32, int32; make arrays of floats",
        ),
        (
            lambda: FunctionTask(print, name="t", init=lambda key: None, **NAMES),
            "init of task 't' makes arrays of nothing; make arrays of floats",
        ),
        (lambda: space_of(BOUNDS).genotype({"length": 3.0}), "give length, teeth, material"),
        (lambda: space_of(BOUNDS).genotype([3.0, 9, "oak"]), "teeth is 9; give a whole number from -1 to 3"),
        (lambda: space_of(BOUNDS).genotype([3.0, 1, "tin"]), "material is 'tin'; give one of 'steel'"),
    ],
)
def test_mistakes_are_one_sentence(make, said):
    with pytest.raises(InputError, match=said):
        make()
