import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd import FunctionTask, InputError
from tests.plain import PLAIN

BOUNDS = [(-1.0, 1.0), (10.0, 20.0)]
NAMES = {"objective_names": ["gain", "cost"], "feature_names": ["width"], "feature_bounds": [(10.0, 20.0)]}


def measure(x):
    """Gain x0, cost x0 squared, width x1: any array library will do."""
    return [x[0], x[0] ** 2], [x[1]]


@pytest.mark.parametrize("traceable", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_user_units_outside_and_maximised_inside(traceable, batched):
    def function(x):
        stack = jnp.stack if traceable else np.stack
        return (stack([x[:, 0], x[:, 0] ** 2], axis=1), x[:, 1:]) if batched else measure(x)

    task = FunctionTask(
        function, name="t", bounds=BOUNDS, minimised=["cost"], traceable=traceable, batched=batched, **NAMES
    )
    genotype = jnp.asarray([[0.0, 0.0], [1.0, 1.0], [0.75, 0.5]])
    evaluation = task.evaluate(jax.random.key(0), genotype)
    np.testing.assert_allclose(evaluation.fitness, [[-1, -1], [1, -1], [0.5, -0.25]], rtol=1e-6)
    np.testing.assert_allclose(evaluation.feature, [[10], [20], [15]], rtol=1e-6)
    assert evaluation.valid.all()
    np.testing.assert_allclose(task.parameters(genotype), [[-1, 10], [1, 20], [0.5, 15]])
    random = task.init_genotype(jax.random.key(0), 1000)
    assert random.shape == (1000, 2)
    assert ((random >= 0) & (random <= 1)).all()


@pytest.mark.parametrize("traceable", [True, False])
def test_failures_are_masked_and_hold_no_nan(traceable):
    def function(x):
        return [jnp.where(x[0] > 0, x[0], jnp.nan), 1.0], [x[1]]

    task = FunctionTask(function, name="t", bounds=BOUNDS, traceable=traceable, **NAMES)
    evaluation = task.evaluate(jax.random.key(0), jnp.asarray([[0.2, 0.5], [0.8, 0.5]]))
    assert evaluation.valid.tolist() == [False, True]
    assert np.isfinite(evaluation.fitness).all()


def test_a_function_that_raises_fails_alone():
    def function(x):
        if x[0] < 0:
            raise RuntimeError("the simulator\nblew up")
        return measure(x)

    task = FunctionTask(function, name="t", bounds=BOUNDS, **NAMES)
    evaluation = task.evaluate(jax.random.key(0), jnp.asarray([[0.2, 0.5], [0.8, 0.5]]))
    assert evaluation.valid.tolist() == [False, True]
    assert task.failures[-1].startswith("it raised RuntimeError (the simulator) at x = [-0.5999")


def test_without_features_the_function_returns_objectives_alone():
    task = FunctionTask(lambda x: [x[0], -x[0]], name="t", bounds=[(0, 1)], objective_names=["a", "b"])
    evaluation = task.evaluate(jax.random.key(0), jnp.asarray([[0.25]]))
    assert evaluation.fitness.tolist() == [[0.25, -0.25]]
    assert evaluation.feature.shape == (1, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bounds": [(1.0, -1.0), (0.0, 1.0)]}, r"bounds\[0\] is \(1.0, -1.0\).*lowest < highest"),
        ({"bounds": [(0.0, np.inf)]}, r"bounds\[0\].*finite"),
        ({"bounds": []}, "bounds is empty"),
        ({"feature_bounds": [(3, 3)]}, r"range of feature '.*' is \(3, 3\)"),
        ({"feature_bounds": [(1.7e9, 1.7e9 + 60)]}, r"range of feature '.*' is .*32 bits.*; subtract an offset"),
        ({"feature_bounds": [(-3e38, 3e38)]}, r"range of feature '.*' is .*32 bits.* or scale it"),
        (
            {"feature_bounds": [(0, 1), (0, 1)]},
            r"feature_bounds is \(\(0, 1\), \(0, 1\)\); give \(lowest, highest\) for each feature name",
        ),
        ({"reference_point": [0.0]}, r"reference_point is \[0.0\]; give 2 finite numbers.*gain, cost"),
        ({"minimised": ["costs"]}, "unknown objective 'costs' of minimised; did you mean 'cost'"),
        ({"objective_names": "gain"}, "objective_names is 'gain'; give a list"),
        ({"objective_names": ["a", "a"]}, "only once"),
        ({"objective_names": []}, "at least one objective"),
        ({"parameter_names": ["a"]}, "parameter_names is .* give 2 different names"),
    ],
)
def test_bad_arguments_get_one_sentence(change, message):
    with pytest.raises(InputError, match=message):
        FunctionTask(measure, **({"name": "t", "bounds": BOUNDS, **NAMES} | change))


@pytest.mark.parametrize("traceable", [True, False])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: [x[0], x[1]], r"objectives of shape \(\); return the pair \[gain, cost\], \[width\]"),
        (lambda x: ([x[0]], [x[1]]), r"objectives of shape \(1,\); return the pair \[gain, cost\], \[width\]"),
        (lambda x: ([x[0], x[1]], [x[1], x[1]]), r"features of shape \(2,\); return the pair"),
        (lambda x: None, "returned None; return the pair"),
    ],
)
def test_wrong_returns_get_one_sentence(function, message, traceable):
    task = FunctionTask(function, name="t", bounds=BOUNDS, traceable=traceable, **NAMES)
    with pytest.raises(InputError, match=message):
        task.evaluate(jax.random.key(0), jnp.zeros((3, 2)))


@pytest.mark.parametrize("traceable", [True, False])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x[:1], x[:1, :1]), r"objectives of shape \(1, 2\) for 3 rows; return .* for each row"),
        (lambda x: (x, x[:1, :1]), r"features of shape \(1, 1\) for 3 rows; return .* for each row"),
    ],
)
def test_a_batched_function_returns_as_many_rows_as_it_takes(function, message, traceable):
    task = FunctionTask(function, name="t", bounds=BOUNDS, traceable=traceable, batched=True, **NAMES)
    with pytest.raises(InputError, match=message):
        task.evaluate(jax.random.key(0), jnp.zeros((3, 2)))


def test_a_function_that_cannot_be_traced_says_how_to_run_it():
    task = FunctionTask(lambda x: ([float(x[0]), 1], [x[1]]), name="t", bounds=BOUNDS, traceable=True, **NAMES)
    with pytest.raises(InputError, match="traceable=False"):
        jax.jit(task.evaluate)(jax.random.key(0), jnp.zeros((3, 2)))


@pytest.mark.parametrize("reason", ["raises", "nan"])
def test_a_run_in_which_everything_fails_says_why(reason):
    def function(x):
        if reason == "raises":
            raise ZeroDivisionError("no wind")
        return [np.nan, 1.0], [15.0]

    task = FunctionTask(function, name="mill", bounds=BOUNDS, **NAMES)
    expected = "raised ZeroDivisionError .no wind." if reason == "raises" else r"returned \(\[nan, 1.0\]"
    with pytest.raises(moqd.EvaluationError, match=f"every evaluation of task 'mill' failed.*{expected}"):
        moqd.run(moqd.make_algorithm("mome", task, ga_batch=4, num_cells=4, **PLAIN), task, iterations=10)


def test_options_may_be_sequences_also_of_a_batch():
    seen = []

    def sizes(size):
        seen.extend(size)
        return np.array([[sum(one), -sum(one)] for one in size]), np.zeros((len(size), 1))

    space = {"size": moqd.Categorical((1, 2), (3, 4))}
    task = FunctionTask(sizes, name="t", bounds=space, batched=True, **NAMES)
    evaluation = task.evaluate(jax.random.key(0), task.init_genotype(jax.random.key(0), 8))
    assert set(seen) == {(1, 2), (3, 4)}
    assert set(evaluation.fitness[:, 0].tolist()) == {3.0, 7.0}
