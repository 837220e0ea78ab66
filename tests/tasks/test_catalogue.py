import jax
import pytest

import moqd
from moqd.core.networks import num_parameters
from moqd.tasks import TASKS
from moqd.tasks.catalogue import CATALOGUE


@pytest.mark.parametrize("name", CATALOGUE)
def test_sizes_that_are_listed_are_those_of_the_task(name):
    task, listed = moqd.make_task(name), CATALOGUE[name]
    genotype = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    sizes = (task.num_objectives, len(task.feature_names), num_parameters(genotype))
    assert sizes == (listed.objectives, listed.features, listed.parameters)
    assert (task.policy is not None) == listed.policies == TASKS[name].policies
