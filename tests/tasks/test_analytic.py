import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pymoo.problems import get_problem

import moqd


@pytest.mark.parametrize("name", ["arm-2", "rastrigin-2", "dtlz2-5"])
def test_named_tasks_evaluate(name):
    task = moqd.make_task(name)
    assert task.name == name
    evaluation = task.evaluate(jax.random.key(0), task.init_genotype(jax.random.key(1), 500))
    assert evaluation.valid.all()
    assert evaluation.fitness.shape == (500, task.num_objectives)
    lower, upper = np.asarray(task.feature_bounds).T
    assert ((evaluation.feature >= lower[None]) & (evaluation.feature <= upper[None])).all()


def test_dtlz2_is_the_published_function(rng):
    x = rng.random((20, 14))
    task = moqd.make_task("dtlz2-5")
    evaluation = task.evaluate(jax.random.key(0), jnp.asarray(x, jnp.float32))
    expected = get_problem("dtlz2", n_var=14, n_obj=5).evaluate(x)
    np.testing.assert_allclose(-evaluation.fitness, expected, atol=1e-5)


def test_rastrigin_has_its_optima_where_they_should_be():
    task = moqd.make_task("rastrigin-2", num_parameters=3)
    genotype = (jnp.asarray([[0.0] * 3, [2.2] * 3]) + 2) / 6
    fitness = task.evaluate(jax.random.key(0), genotype).fitness
    np.testing.assert_allclose(jnp.diag(fitness), 0, atol=1e-3)
    assert (fitness <= 1e-3).all()


def test_a_stretched_arm_worked_out_on_paper():
    task = moqd.make_task("arm-2", num_joints=2)
    # Straight ahead, straight up, and folded back: angles 0 and 0; 90 and 0; 90 and 90 degrees.
    genotype = jnp.asarray([[0.5, 0.5], [1.0, 0.5], [1.0, 1.0]])
    evaluation = task.evaluate(jax.random.key(0), genotype)
    np.testing.assert_allclose(evaluation.feature, [[1, 0], [0, 1], [-0.5, 0.5]], atol=1e-6)
    # Ahead: links of mass 1/2 at 1/4 and 3/4 of the shoulder, the second at 1/4 of the elbow: 1/2 and 1/8, mean 5/16.
    quarter_turn = (np.pi / 2) ** 2
    bending, torque = -np.asarray(evaluation.fitness).T
    np.testing.assert_allclose(bending, [0, quarter_turn / 2, quarter_turn], atol=1e-6)
    np.testing.assert_allclose(torque, [5 / 16, 0, 1 / 8], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: moqd.make_task("arm2"), "unknown task 'arm2'; did you mean 'arm-2'"),
        (lambda: moqd.make_task("arm-2", joints=3), "option 'joints' of task 'arm-2'; did you mean 'num_joints'"),
        (lambda: moqd.make_task("arm-2", num_joints=0), "num_joints is 0; give a whole number of at least 1"),
        (lambda: moqd.make_task("arm-2", reference_point=[1.0]), "reference_point is .* give 2 finite numbers"),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(moqd.InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "option"), [("rastrigin-2", "num_parameters"), ("dtlz2-5", "num_distance_parameters")]
)
def test_two_parameters_are_the_features(name, option):
    assert moqd.make_task(name, **{option: 2}).num_features == 2
    with pytest.raises(moqd.InputError, match="at least 2"):
        moqd.make_task(name, **{option: 1})
