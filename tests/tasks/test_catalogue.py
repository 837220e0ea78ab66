import jax
import pytest

import moqd
from moqd.core.networks import num_parameters
from moqd.tasks import TASKS


@pytest.mark.parametrize("name", TASKS)
def test_sizes_that_are_listed_are_those_of_the_task(name):
    task = moqd.make_task(name)
    genotype = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    sizes = (task.num_objectives, len(task.feature_names), num_parameters(genotype))
    assert sizes == TASKS[name].sizes
    assert (task.policy is not None) == TASKS[name].policies
