"""Time goes to chance and to learning by what they gain in it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd import InputError
from moqd.algorithms.effort import LEAST, MOST, TURNS, initial_effort, with_generation
from tests.algorithms.test_algorithms import interrupted, small
from tests.walk import walk

BATCH, LEARNED = 16, 8


@pytest.mark.parametrize(
    ("cost", "by_chance", "by_learning", "deserved"),
    [
        (8.5, 1.0, 8.0, 0.5),  # 8 in 8 generations' time, beyond the half that its offspring by chance take
        (8.5, 1.0, 4.0, 1 / 3),
        (2.5, 1.0, 4.0, 2 / 3),
        (40.5, 1.0, 0.0, LEAST),
        (4.5, 0.0, 1.0, MOST),
    ],
)
def test_time_is_shared_by_what_it_gains(cost, by_chance, by_learning, deserved):
    """By hand: gains are the same in every generation, so the shares follow from their rates."""
    update = jax.jit(lambda *arguments: with_generation(*arguments, 0))
    effort, learned_in = initial_effort(cost), []
    for _ in range(600):
        learns = bool(effort.learns)
        learned = (np.arange(BATCH) < LEARNED) & learns
        added = np.where(learned, by_learning / LEARNED, by_chance / BATCH)
        effort = update(effort, jnp.asarray(added, jnp.float32), jnp.asarray(~learned), jnp.asarray(learned))
        learned_in.append(learns)
    assert learned_in[:TURNS] == [True, False] * (TURNS // 2)
    settled = np.array(learned_in[100:])
    longer = cost - 0.5
    time = settled.sum() * longer / (settled.sum() * cost + (~settled).sum())
    assert time == pytest.approx(deserved, abs=0.06)


@pytest.mark.slow  # compiles MOME-P2C once more
def test_generations_by_chance_train_nothing_and_are_all_by_chance():
    task = walk()
    algorithm = small("mome-p2c", task, learn_every=3)
    state, offspring = algorithm.init(jax.random.key(0))
    tell, kinds, losses = jax.jit(algorithm.tell), [], []
    for step in range(7):
        offspring = offspring if step == 0 else algorithm.ask(jax.random.key(step), state)
        before = state.agent
        evaluation = task.evaluate(jax.random.key(0), offspring.genotype)
        state, info = tell(jax.random.key(step), state, offspring, evaluation)
        same = all(map(np.array_equal, jax.tree.leaves(before), jax.tree.leaves(state.agent)))
        kinds.append((set(np.asarray(info.source).tolist()), same))
        losses.append(float(info.metrics["critic_loss"]))
    assert kinds == [({0}, False), *[({1}, True)] * 2, ({1, 2, 3}, False), *[({1}, True)] * 2, ({1, 2, 3}, False)]
    assert losses[3] == losses[4] == losses[5] != losses[6]


@pytest.mark.slow
def test_a_run_whose_costs_were_measured_is_resumed_and_repeated_bit_for_bit(tmp_path):
    """Measured, so no two runs need be the same; but each can be repeated from what config.json says, as a whole or
    in parts."""
    task, limit = walk(), {"iterations": 24, "log_every": 5}
    run = moqd.run(small("mome-p2c", task, learn_every=0), task, out=tmp_path / "measured", minutes=60, **limit)
    cost = moqd.load_run(tmp_path / "measured", task=task).config.learning_cost
    assert cost is not None
    assert cost > 0
    assert run.metrics["learning_cost"][-1] == pytest.approx(cost)
    again = small("mome-p2c", task, learn_every=0, learning_cost=cost)
    whole = moqd.run(again, task, **limit)
    parts = interrupted(again, task, tmp_path / "parts", at=(3, 11), **limit)
    resumed = interrupted(again, task, tmp_path / "early", at=(8,), **limit)
    for other in (whole, parts, resumed):
        jax.tree.map(np.testing.assert_array_equal, run.archive, other.archive)


@pytest.mark.slow  # compiles MOME-P2C once more
def test_without_a_limit_of_time_only_evaluations_count(tmp_path):
    """Then all generations cost the same, and nothing is measured: two runs are the same."""
    task, limit = walk(), {"iterations": 16, "log_every": 4}
    runs = [moqd.run(small("mome-p2c", task, learn_every=0), task, out=tmp_path / one, **limit) for one in "ab"]
    assert [moqd.load_run(tmp_path / one, task=task).config.learning_cost for one in "ab"] == [1, 1]
    jax.tree.map(np.testing.assert_array_equal, runs[0].archive, runs[1].archive)


def test_operators_that_adapt_need_every_generation():
    with pytest.raises(InputError, match="variation is 'adaptive', which follows offspring of every generation"):
        small("mome-p2c", walk(), learn_every=2, variation="adaptive")
