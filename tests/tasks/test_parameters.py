"""Parameters of a function: what it is called with, and where values lie in the unit cube."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import moqd
from moqd import Categorical, FunctionTask, InputError, Integer
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
