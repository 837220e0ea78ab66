"""PG-MORL's parts against oracles, and a front that is known on paper."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import moocore
import numpy as np
import pytest
from scipy.optimize import least_squares

import moqd
from moqd.algorithms.pg_morl import (
    NOBODY,
    Front,
    PgMorlConfig,
    Population,
    best_tasks,
    by_task,
    candidates,
    directions,
    extended,
    renewed,
    simplex_grid,
    sparsity_with,
)
from moqd.algorithms.prediction import HIGHEST, LOWEST, MEMORY, SOFT, fit, no_history, predict, recorded, value
from moqd.core.networks import Policy, apply_policy, init_mlp
from moqd.core.types import Evaluation, Transition
from moqd.core.volume import improvement

FIT = jax.jit(jax.vmap(fit))
SAMPLES = 40


def scipys(x, y, counts, highest):
    """The loss that SciPy ends with from the paper's start."""

    def residuals(p):
        return (p[0] * np.tanh(p[1] * (x - p[2]) / 2) + p[3] - y) * counts

    bounds = LOWEST - [1e-12, 0, 0, 0], [highest, *HIGHEST[1:]]
    first = np.clip(np.ones(4), bounds[0], [0.99 * highest, *HIGHEST[1:]])
    return least_squares(residuals, first, loss="soft_l1", f_scale=SOFT, bounds=bounds).cost


@pytest.mark.slow
def test_the_fit_is_at_least_as_good_as_scipys(rng):
    """Curves with noise and outliers, of which each sample counts more or less."""
    sets = []
    for _ in range(60):
        curve = rng.uniform([0, 0.5, -0.5, -0.3], [0.5, 15, 1.5, 0.3])
        x = rng.choice(np.linspace(0, 1, 11), SAMPLES)
        y = np.asarray(value(jnp.asarray(curve), jnp.asarray(x)))
        y = y + rng.choice([0.0, 0.005, 0.05]) * rng.standard_t(2, SAMPLES)
        counts = np.where(
            np.arange(SAMPLES) < rng.integers(6, SAMPLES), np.exp(-0.5 * rng.uniform(0, 3, SAMPLES) ** 2), 0
        )
        sets.append((x, y, counts, np.clip(np.ptp(y), SOFT / 20, 1)))
    sets = [np.array(column) for column in zip(*sets, strict=True)]
    curves, losses = map(np.asarray, FIT(*(jnp.asarray(column, jnp.float32) for column in sets)))
    expected = np.array([scipys(*one) for one in zip(*sets, strict=True)])
    assert (losses <= 1.02 * expected + 1e-6).all()
    assert (curves >= LOWEST).all()
    assert (curves <= np.column_stack([sets[3], *np.tile(HIGHEST[1:], (60, 1)).T]) + 1e-6).all()


def test_the_fit_recovers_a_curve():
    curve = jnp.array([0.2, 6.0, 0.4, 0.1])
    x = jnp.linspace(0, 1, SAMPLES)
    found, loss = fit(x, value(curve, x), jnp.ones(SAMPLES), jnp.float32(0.5))
    np.testing.assert_allclose(found, curve, rtol=0.02)
    assert loss < 1e-7


def test_a_prediction_follows_what_happened_to_neighbours(rng):
    """Policies near (1, 1) gain what their weights say, those near (3, 3) lose; objectives have their own units."""
    weight = np.tile(np.stack([np.linspace(0, 1, 11), np.linspace(1, 0, 11)], axis=1), (2, 1)).astype(np.float32)
    near = np.repeat([1.0, 3.0], 11)[:, None]
    fitness = (near * (1 + 0.02 * rng.uniform(-1, 1, (22, 2)))).astype(np.float32)
    change = np.where(near < 2, 0.2 * np.tanh(3 * (weight - 0.5)) + 0.1, -0.3).astype(np.float32)
    reference, unit = np.array([-5, 10], np.float32), np.array([2, 100], np.float32)
    history = recorded(
        no_history(2),
        *(jnp.asarray(a) for a in (reference + unit * fitness, weight, unit * change)),
        jnp.arange(22, dtype=jnp.int32),
        jnp.ones(22, bool),
    )
    asked = jnp.tile(jnp.array([[0.25, 0.75], [0.9, 0.1]]), (3, 1, 1))
    own = reference + unit * np.array([[1, 1], [3, 3], [1, 1]], np.float32)
    exists = jnp.array([True, True, False])
    found = jax.jit(predict)(history, jnp.asarray(own), exists, asked, jnp.asarray(reference), jnp.asarray(unit))
    expected = 1 + 0.2 * np.tanh(3 * (np.asarray(asked[0]) - 0.5)) + 0.1
    np.testing.assert_allclose(found[0], expected, atol=0.02)
    np.testing.assert_allclose(found[1], 2.7, atol=0.02)


def test_the_newest_changes_are_remembered():
    history = no_history(2)
    for start in range(0, 2 * MEMORY + 100, 61):
        row = jnp.arange(start, start + 61, dtype=jnp.int32)
        pair = jnp.tile(row[:, None].astype(jnp.float32), (1, 2))
        history = recorded(history, pair, pair, pair, row, row % 2 == 0)
    number = -(-(2 * MEMORY + 100) // 61) * 61
    expected = np.arange(0, number, 2)[-MEMORY:]
    assert sorted(history.parent.tolist()) == expected.tolist()
    assert np.array_equal(history.fitness[:, 0], history.parent)


def random_front(rng, size, num_objectives):
    points = rng.uniform(0, 1, (size, num_objectives)).astype(np.float32)
    return Front(jnp.asarray(points), jnp.asarray(moqd.non_dominated(points)))


@pytest.mark.parametrize("num_objectives", [2, 3])
def test_hypervolume_and_sparsity_of_a_predicted_front_are_the_oracles(num_objectives, rng):
    front = random_front(rng, 20, num_objectives)
    points = jnp.asarray(rng.uniform(-0.1, 1.1, (30, num_objectives)), jnp.float32)
    gaps = jax.vmap(lambda point: sparsity_with(point, front))(points)
    volumes = jax.vmap(lambda point: improvement(point, front.fitness, front.valid))(points)
    old, origin = np.asarray(front.fitness[front.valid], float), np.zeros(num_objectives)
    before = moocore.hypervolume(old, ref=origin, maximise=True)
    for point, gap, volume in zip(np.asarray(points, float), gaps, volumes, strict=True):
        both = np.vstack([old, point])
        both = both[moocore.is_nondominated(both, maximise=True)]
        after = moocore.hypervolume(np.maximum(both, 0), ref=origin, maximise=True)
        np.testing.assert_allclose(volume, after - before, atol=1e-5)
        np.testing.assert_allclose(gap, moqd.sparsity(both), rtol=1e-4)


def test_tasks_are_the_greedy_choice(rng):
    front, predicted = random_front(rng, 12, 2), rng.uniform(0, 1.3, (4, 5, 2)).astype(np.float32)
    allowed = rng.random((4, 5)) < 0.5
    grown = Front(jnp.pad(front.fitness, ((0, 3), (0, 0))), jnp.pad(front.valid, (0, 3)))
    member, which, found = best_tasks(jnp.asarray(predicted), jnp.asarray(allowed), grown, 3, 0.7)
    assert found.all()
    virtual, left = np.asarray(front.fitness[front.valid], float), {(int(i), int(j)) for i, j in np.argwhere(allowed)}
    for chosen in zip(member.tolist(), which.tolist(), strict=True):

        def merit(one, virtual=virtual):
            both = np.vstack([virtual, predicted[one]])
            both = both[moocore.is_nondominated(both, maximise=True)]
            return moocore.hypervolume(both, ref=[0, 0], maximise=True) - 0.7 * moqd.sparsity(both), both

        best = max(left, key=lambda one: merit(one)[0])
        assert merit(chosen)[0] == pytest.approx(merit(best)[0], abs=1e-5)
        left.remove(chosen)
        virtual = merit(chosen)[1]
    *_, found = best_tasks(jnp.asarray(predicted), jnp.zeros((4, 5), bool).at[0, 0].set(True), grown, 3, 0.7)
    assert found.tolist() == [True, False, False]


def test_weights_are_an_even_grid():
    assert simplex_grid(2, 5).tolist() == pytest.approx(np.column_stack([np.arange(6), np.arange(6)[::-1]]) / 5)
    for num_objectives, parts, number in ((3, 4, 15), (1, 3, 1), (4, 2, 10)):
        grid = simplex_grid(num_objectives, parts)
        assert len(np.unique(grid, axis=0)) == number
        np.testing.assert_allclose(grid.sum(axis=1), 1)
        assert (np.round(grid * parts) == grid * parts).all()
    assert (len(directions(2, 0)), len(directions(3, 0)), len(directions(2, 7))) == (100, 210, 7)
    np.testing.assert_allclose(np.linalg.norm(directions(3, 0), axis=1), 1, rtol=1e-5)


def test_buffers_keep_the_farthest_in_each_direction(rng):
    """Against a sort by hand: 2 of each of 4 sectors, in units of each objective, nothing below the reference point."""
    direction, reference, unit = directions(2, 4), np.array([1.0, -20.0]), np.array([1.0, 10.0])
    population = Population((jnp.zeros((8, 1)),), jnp.zeros((8, 2)), jnp.zeros((8, 2)), jnp.full(8, NOBODY, jnp.int32))
    everyone = []
    for batch in range(3):
        fitness = (reference + unit * rng.uniform(-0.3, 1, (10, 2))).astype(np.float32)
        number = np.where(rng.random(10) < 0.8, 10 * batch + np.arange(10), NOBODY).astype(np.int32)
        everyone += [(*row, one) for row, one in zip(fitness, number, strict=True) if one != NOBODY]
        newcomers = Population(
            (jnp.asarray(number, jnp.float32)[:, None],), jnp.asarray(fitness), jnp.zeros((10, 2)), jnp.asarray(number)
        )
        given = jnp.asarray(reference, jnp.float32), jnp.asarray(unit, jnp.float32)
        population = renewed(population, newcomers, direction, *given, 2)
    sectors = {sector: [] for sector in range(4)}
    for a, b, one in everyone:
        point = (np.array([a, b]) - reference) / unit
        if (point > 0).all():
            sectors[int(np.arctan2(*point) // (np.pi / 8))].append((np.hypot(*point), int(one)))
    expected = sorted(one for found in sectors.values() for _, one in sorted(found)[-2:])
    there = population.number != NOBODY
    assert sorted(population.number[there].tolist()) == expected
    assert np.array_equal(population.learner[0][there, 0], population.number[there])


@pytest.mark.parametrize("num_objectives", [2, 3])
def test_candidates_are_near_and_new(num_objectives):
    config = PgMorlConfig()
    weight = jnp.asarray(simplex_grid(num_objectives, 4))
    places = len(weight)
    number = jnp.arange(places, dtype=jnp.int32).at[-1].set(NOBODY)
    population = Population((), jnp.zeros_like(weight), weight, number)
    nothing = no_history(num_objectives)
    found, allowed = map(np.asarray, candidates(jax.random.key(0), population, nothing, config))
    weight = np.asarray(weight)
    assert found.shape == (places, 7, num_objectives)
    assert not allowed[-1].any()
    for own, weights in zip(weight[:-1], [w[a] for w, a in zip(found[:-1], allowed[:-1], strict=True)], strict=True):
        assert len(weights) >= 4
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
        cosine = weights @ own / np.linalg.norm(weights, axis=1) / np.linalg.norm(own)
        assert (np.degrees(np.arccos(np.clip(cosine, -1, 1))) <= 45.1).all()
        assert np.abs(weights - own).max(axis=1).min() < 1e-5  # its own is one of them
        assert len(np.unique(np.round(weights, 4), axis=0)) == len(weights)
    # What a policy was trained for is not tried again, by it.
    tried = jnp.asarray(found[1][allowed[1]][:1])
    history = recorded(nothing, tried, tried, tried, number[1:2], jnp.ones(1, bool))
    _, then = candidates(jax.random.key(0), population, history, config)
    assert (allowed & ~then).sum() == 1
    assert (allowed & ~then)[1].any()


def test_the_front_is_the_non_dominated_set(rng):
    front, everything = Front(jnp.zeros((30, 2)), jnp.zeros(30, bool)), np.zeros((0, 2))
    for _ in range(4):
        fitness = rng.integers(0, 9, (10, 2)).astype(np.float32)
        feasible = rng.random(10) < 0.8
        front, added = extended(front, jnp.asarray(fitness), jnp.asarray(feasible))
        everything = np.vstack([everything, fitness[feasible]])
        assert not added[~feasible].any()
    expected = np.unique(everything[moocore.is_nondominated(everything, maximise=True)], axis=0)
    assert np.array_equal(np.unique(front.fitness[front.valid], axis=0), expected)
    assert front.valid.sum() == len(expected)


@pytest.mark.parametrize("resamples", [1, 2])
def test_episodes_go_to_the_task_that_made_them(resamples):
    """11 rows for 3 tasks: one each as it is, then 8 with noise, of which the last task has one less."""
    row_task = np.concatenate([np.arange(3), np.arange(8) % 3])
    row = jnp.repeat(jnp.arange(11.0), resamples)[:, None]
    wide = row[..., None]
    steps = Transition(wide, wide, wide, wide, row < 0, row >= 0)
    failed = jnp.ones(11, bool).at[4].set(False)
    found = by_task(Evaluation(jnp.zeros((11, 2)), jnp.zeros((11, 0)), failed, steps), row_task, 3)
    rows = [np.unique(found.obs[i][found.valid[i]]).tolist() for i in range(3)]
    assert rows == [[3, 6, 9], [7, 10], [5, 8]]
    assert found.valid.shape == (3, 3 * resamples, 1)


NUM_ACTIONS = 4


@dataclass(frozen=True, eq=False)
class Compromise(moqd.Task):
    """One step: rewards 1 - |a - (0.5, ..., 0.5)|^2 and 1 - |a + (0.5, ..., 0.5)|^2 for an action a.

    The front is the line between these two points, which random policies hardly meet.
    """

    policy = Policy(num_obs=1, num_actions=NUM_ACTIONS, hidden_sizes=(8,), apply=apply_policy)

    def init_genotype(self, key, num_genotypes):
        return jax.vmap(lambda key: init_mlp(key, (1, 8, NUM_ACTIONS)))(jax.random.split(key, num_genotypes))

    def evaluate(self, key, genotype):
        return self.explore(key, genotype, jnp.zeros((genotype[0].bias.shape[0], NUM_ACTIONS)))

    def explore(self, key, genotype, noise):
        obs = jnp.ones((noise.shape[0], 1, 1))
        deviation = noise[:, None] * jax.random.normal(key, (noise.shape[0], 1, NUM_ACTIONS))
        action = jax.vmap(apply_policy)(genotype, obs) + deviation
        taken = jnp.clip(action, -1, 1)
        far = [jnp.sum((taken - where) ** 2, axis=-1) for where in (0.5, -0.5)]
        reward = 1 - jnp.stack(far, axis=-1)
        ended = jnp.ones((noise.shape[0], 1), bool)
        steps = Transition(obs, action, reward, obs, ended, ended)
        return Evaluation(reward[:, 0], jnp.zeros((noise.shape[0], 0)), ended[:, 0], steps)


def compromise():
    return Compromise(name="compromise", objective_names=("right", "left"), reference_point=(-4, -4))


def learned(iterations, **options):
    task = compromise()
    usual = {"episode_batch": 192, "learning_rate": 3e-3, "minibatch": 32, "warm_up": 30, "generation": 5}
    usual |= {"num_cells": 1, "front_length": 100, "value_hidden_sizes": (8,), "front_size": 60, "buffers": 20}
    return moqd.run(
        moqd.make_algorithm("pg-morl", task, **(usual | options)), task, iterations=iterations, log_every=10
    )


@pytest.mark.slow
def test_a_front_that_is_known_on_paper_is_found():
    """Hypervolume from (-4, -4) of {(1 - 4 (a - 0.5)^2, 1 - 4 (a + 0.5)^2): |a| <= 0.5}, as an integral."""
    run = learned(100)
    a = np.linspace(-0.5, 0.5, 100_001)
    right, left = (5 - NUM_ACTIONS * (a - where) ** 2 for where in (0.5, -0.5))
    whole = float(right[0] * left[0] + np.sum(np.diff(right) * left[1:]))
    found = run.metrics["global_hypervolume"]
    at = dict(zip(run.metrics["iteration"].tolist(), found.tolist(), strict=True))
    print(whole, at, run.metrics["noise"])
    assert found[-1] > 0.97 * whole
    assert found[-1] <= whole + 1e-3
    assert at[100] > at[30] > at[0]  # generations improve on the warm-up, and that on chance


def test_what_does_not_fit_gets_one_sentence():
    with pytest.raises(moqd.InputError, match=r"episode_batch is 11, but each of the 6 policies .* at least 12"):
        moqd.make_algorithm("pg-morl", compromise(), episode_batch=11)
    with pytest.raises(moqd.InputError, match="warm_up is 55, but tasks are selected every 10 iterations"):
        moqd.make_algorithm("pg-morl", compromise(), warm_up=55)
    with pytest.raises(moqd.InputError, match=r"discount is 1\.0; give a number below 1"):
        moqd.make_algorithm("pg-morl", compromise(), discount=1.0)
    with pytest.raises(moqd.InputError, match="the solutions of task 'arm-2' are not such policies"):
        moqd.make_algorithm("pg-morl", moqd.make_task("arm-2"))
