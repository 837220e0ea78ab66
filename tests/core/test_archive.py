"""The archive against a naive version of its rules, and its invariants."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from moqd.core.archive import Archive, add, add_uniform, empty_archive, merge, select_crowding, select_uniform
from moqd.core.types import Evaluation, Offspring
from tests import naive

ADD = jax.jit(add)
ADD_UNIFORM = jax.jit(add_uniform)
SEED, KIND = st.integers(0, 2**32 - 1), st.sampled_from(["continuous", "grid", "front"])
on_host = partial(jax.tree.map, np.asarray)  # indexing a JAX array from Python is slow
# (cells, front length, objectives, batch): narrow and wide newcomers, one cell, one place, many objectives.
SHAPES = [(4, 3, 2, 8), (1, 5, 3, 24), (6, 1, 2, 12), (2, 4, 5, 40), (3, 6, 1, 8), (2, 7, 2, 150)]
FEW_SHAPES = [*SHAPES[:2], SHAPES[-1], *(pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES[2:-1])]


def new_archive(cells: int, length: int, objectives: int) -> Archive:
    centroid = (np.arange(cells, dtype=np.float32)[:, None] + 0.5) / cells
    bounds = jnp.asarray([[0.0], [1.0]])
    genotype = {"id": jnp.zeros((1,), jnp.int32), "vector": jnp.zeros((1, 3))}
    return empty_archive(genotype, jnp.asarray(centroid), bounds, num_objectives=objectives, front_length=length)


def random_batch(
    rng: np.random.Generator, kind: str, objectives: int, batch: int, first: int
) -> tuple[Offspring, Evaluation]:
    if kind == "continuous":
        fitness = rng.standard_normal((batch, objectives))
    elif kind == "grid":
        fitness = rng.integers(0, 4, (batch, objectives))
    else:  # a front: few are dominated, so that fronts fill up
        fitness = np.abs(rng.standard_normal((batch, objectives))) + 0.1
        fitness /= np.linalg.norm(fitness, axis=1, keepdims=True)
    fitness, feature = fitness.astype(np.float32), rng.random((batch, 1)).astype(np.float32) * 1.2 - 0.1
    valid = rng.random(batch) < 0.9
    # What a task should have marked: the archive must not rely on it.
    fitness[rng.random(batch) < 0.05, 0] = rng.choice([np.nan, np.inf, -np.inf])
    feature[rng.random(batch) < 0.05] = np.nan
    index = np.arange(first, first + batch)
    genotype = {"id": index.astype(np.int32), "vector": np.tile(index[:, None], 3).astype(np.float32)}
    preference = np.tile(index[:, None], objectives).astype(np.float32)
    return Offspring(genotype, preference, np.zeros(batch, np.int32)), Evaluation(fitness, feature, valid)


def naive_cell(feature: float, cells: int) -> int:
    return min(int(np.clip(feature, 0, 1) * cells), cells - 1)


def fronts_of(archive: Archive) -> list[list[naive.Vector]]:
    fronts = zip(np.asarray(archive.fitness), np.asarray(archive.valid), strict=True)
    return [[tuple(vector) for vector in front[there].tolist()] for front, there in fronts]


def usable(evaluation: Evaluation) -> np.ndarray:
    finite = np.isfinite(evaluation.fitness).all(axis=1) & np.isfinite(evaluation.feature).all(axis=1)
    return evaluation.valid & finite


def check_invariants(archive: Archive, seen: dict[int, tuple[naive.Vector, float]]) -> None:
    """No dominated or duplicate member, everything finite, in its cell, and whole: all of one solution together."""
    archive = on_host(archive)
    cells, length = archive.valid.shape
    for cell, front in enumerate(fronts_of(archive)):
        assert len(front) <= length
        assert len(set(front)) == len(front)
        assert not any(naive.dominates(a, b) for a in front for b in front)
        for place in np.flatnonzero(archive.valid[cell]):
            solution = int(archive.genotype["id"][cell, place])
            fitness, feature = seen[solution]
            assert tuple(archive.fitness[cell, place].tolist()) == fitness
            assert archive.feature[cell, place, 0] == np.float32(feature)
            assert naive_cell(feature, cells) == cell
            assert (archive.genotype["vector"][cell, place] == solution).all()
            assert (archive.preference[cell, place] == solution).all()


def agrees_with_the_naive_version(shape, seed, kind, num_batches):
    cells, length, objectives, batch = shape
    rng = np.random.default_rng(seed)
    archive = new_archive(cells, length, objectives)
    expected: list[list[naive.Vector]] = [[] for _ in range(cells)]
    seen = {}
    for i in range(num_batches):
        offspring, evaluation = random_batch(rng, kind, objectives, batch, i * batch)
        archive, added = ADD(archive, offspring, evaluation)
        arrivals: list[list[naive.Vector]] = [[] for _ in range(cells)]
        for b in np.flatnonzero(usable(evaluation)):
            vector, feature = tuple(evaluation.fitness[b].tolist()), float(evaluation.feature[b, 0])
            seen[i * batch + int(b)] = vector, feature
            arrivals[naive_cell(feature, cells)].append(vector)
        expected = [naive.add(front, new, length) for front, new in zip(expected, arrivals, strict=True)]
        assert [set(front) for front in fronts_of(archive)] == [set(front) for front in expected]
        ids = set(np.asarray(archive.genotype["id"])[np.asarray(archive.valid)].tolist())
        assert {i * batch + int(b) for b in np.flatnonzero(added)} == {s for s in ids if s >= i * batch}
    check_invariants(archive, seen)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=25)
@given(seed=SEED, kind=KIND, num_batches=st.integers(1, 4))
def test_add_agrees_with_the_naive_version(shape, seed, kind, num_batches):
    """25 sequences of batches for each shape; the long tests have 400."""
    agrees_with_the_naive_version(shape, seed, kind, num_batches)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=400)
@given(seed=SEED, kind=KIND, num_batches=st.integers(1, 4))
def test_add_agrees_with_the_naive_version_in_many_more_cases(shape, seed, kind, num_batches):
    agrees_with_the_naive_version(shape, seed, kind, num_batches)


@settings(max_examples=10)
@given(seed=SEED, kind=KIND)
def test_merged_archives_hold_the_best_of_both(seed, kind):
    """In cells with places for all, so that nothing depends on who came first."""
    cells, objectives, batch = 3, 2, 8
    rng = np.random.default_rng(seed)
    archives, arrivals = [], [[] for _ in range(cells)]
    for i in range(2):
        offspring, evaluation = random_batch(rng, kind, objectives, batch, i * batch)
        archives.append(ADD(new_archive(cells, 2 * batch, objectives), offspring, evaluation)[0])
        for b in np.flatnonzero(usable(evaluation)):
            arrivals[naive_cell(float(evaluation.feature[b, 0]), cells)].append(tuple(evaluation.fitness[b].tolist()))
    expected = [set(naive.add([], newcomers, 2 * batch)) for newcomers in arrivals]
    assert [set(front) for front in fronts_of(merge(archives))] == expected
    assert [set(front) for front in fronts_of(merge(archives[::-1]))] == expected


@pytest.mark.parametrize("shape", FEW_SHAPES)
@settings(max_examples=30)
@given(seed=SEED, kind=KIND)
def test_order_within_a_batch_does_not_matter(shape, seed, kind):
    cells, length, objectives, batch = shape
    rng = np.random.default_rng(seed)
    archive, _ = ADD(new_archive(cells, length, objectives), *random_batch(rng, kind, objectives, batch, 0))
    offspring, evaluation = random_batch(rng, kind, objectives, batch, batch)
    order = jnp.asarray(rng.permutation(batch))
    shuffled = jax.tree.map(lambda leaf: leaf[order], (offspring, evaluation))
    one, other = ADD(archive, offspring, evaluation)[0], ADD(archive, *shuffled)[0]
    assert [set(front) for front in fronts_of(one)] == [set(front) for front in fronts_of(other)]


@pytest.mark.parametrize("shape", FEW_SHAPES)
@settings(max_examples=30)
@given(seed=SEED, kind=KIND)
def test_without_crowding_a_full_front_keeps_some_of_the_non_dominated(shape, seed, kind):
    cells, length, objectives, batch = shape
    rng = np.random.default_rng(seed)
    archive = new_archive(cells, length, objectives)
    seen = {}
    for i in range(3):
        before = fronts_of(archive)
        offspring, evaluation = random_batch(rng, kind, objectives, batch, i * batch)
        archive, _ = ADD_UNIFORM(jax.random.key(seed), archive, offspring, evaluation)
        arrivals: list[list[naive.Vector]] = [[] for _ in range(cells)]
        for b in np.flatnonzero(usable(evaluation)):
            vector, feature = tuple(evaluation.fitness[b].tolist()), float(evaluation.feature[b, 0])
            seen[i * batch + int(b)] = vector, feature
            arrivals[naive_cell(feature, cells)].append(vector)
        for front, old, new in zip(fronts_of(archive), before, arrivals, strict=True):
            possible = naive.add(old, new, None)
            assert set(front) <= set(possible)
            assert len(front) == min(len(possible), length)
    check_invariants(archive, seen)


def test_without_crowding_every_member_is_as_likely_to_stay():
    """Six on a line into four places, four of them incumbents: each stays in two cases of three."""
    line = np.stack([np.arange(6), -np.arange(6)], axis=1).astype(np.float32)

    def batch(rows: slice) -> tuple[Offspring, Evaluation]:
        fitness = jnp.asarray(line[rows])
        n = len(fitness)
        genotype = {"id": jnp.arange(n, dtype=jnp.int32), "vector": jnp.zeros((n, 3))}
        offspring = Offspring(genotype, jnp.zeros((n, 2)), jnp.zeros(n, jnp.int32))
        return offspring, Evaluation(fitness, jnp.zeros((n, 1)), jnp.ones(n, bool))

    archive, _ = ADD(new_archive(1, 4, 2), *batch(slice(0, 4)))
    run = jax.jit(jax.vmap(lambda key: add_uniform(key, archive, *batch(slice(4, 6)))[0]))
    filled = run(jax.random.split(jax.random.key(0), 3000))
    kept = np.bincount(np.asarray(filled.fitness[:, 0, :, 0]).astype(int).ravel(), minlength=6)
    assert stats.chisquare(kept).pvalue > 1e-3
    assert kept.sum() == 12_000


def test_without_crowding_equal_lots_let_nobody_in_who_has_no_place(monkeypatch):
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jnp.zeros(shape))
    line = jnp.stack([jnp.arange(3.0), -jnp.arange(3.0)], axis=1)
    genotype = {"id": jnp.arange(3, dtype=jnp.int32), "vector": jnp.zeros((3, 3))}
    offspring = Offspring(genotype, jnp.zeros((3, 2)), jnp.zeros(3, jnp.int32))
    evaluation = Evaluation(line, jnp.zeros((3, 1)), jnp.ones(3, bool))
    archive, added = jax.jit(lambda *of: add_uniform(jax.random.key(0), *of))(
        new_archive(1, 2, 2), offspring, evaluation
    )
    assert (archive.valid.sum(), added.sum()) == (2, 2)


def archive_with_fronts() -> Archive:
    """Cell 0 holds four members, cell 2 one, cell 1 none."""
    fitness = np.array([[0, 10], [1, 8], [4, 5], [5, 0], [3, 3]], np.float32)
    feature = np.array([0.1, 0.1, 0.1, 0.1, 0.9], np.float32)[:, None]
    genotype = {"id": jnp.arange(5, dtype=jnp.int32), "vector": jnp.zeros((5, 3))}
    offspring = Offspring(genotype, jnp.asarray(fitness), jnp.zeros(5, jnp.int32))
    evaluation = Evaluation(jnp.asarray(fitness), jnp.asarray(feature), jnp.ones(5, bool))
    return ADD(new_archive(3, 6, 2), offspring, evaluation)[0]


@pytest.mark.parametrize(
    ("select", "weight"),
    # The crowding weights of cell 0 are worked out in test_pareto.
    [(select_uniform, [1, 1, 1, 1]), (select_crowding, [0.4, 0.65, 0.8, 0.7])],
)
def test_selection_is_cell_then_member(select, weight):
    parents = jax.jit(partial(select, num_parents=40_000))(jax.random.key(0), archive_with_fronts())
    chosen = np.bincount(parents.genotype["id"], minlength=5)
    expected = np.append(np.array(weight) / np.sum(weight), 1) / 2
    assert stats.chisquare(chosen, expected * 40_000).pvalue > 1e-3
    assert np.array_equal(parents.preference[:, 0], np.array([0, 1, 4, 5, 3])[parents.genotype["id"]])


@pytest.mark.parametrize("select", [select_uniform, select_crowding])
@pytest.mark.parametrize(
    ("worth", "first_cell"),
    # Nine of ten cells by worth, one uniformly of the two that hold something; that of an empty cell is ignored.
    [
        ([1, 0, 0], 0.95),
        ([1, 5, 3], 0.275),
        ([0, 7, 0], 0.5),
        ([0, 0, 0], 0.5),
        ([1e-30, 1e30, 3e-30], 0.275),
        ([np.inf, 0, 0], 0.5),
        ([1, 0, np.nan], 0.95),
    ],
)
def test_cells_are_selected_by_their_worth(select, worth, first_cell):
    program = jax.jit(partial(select, num_parents=20_000))
    parents = program(jax.random.key(0), archive_with_fronts(), worth=jnp.array(worth, jnp.float32))
    in_first = int(np.sum(np.asarray(parents.genotype["id"]) < 4))
    assert stats.binomtest(in_first, 20_000, first_cell).pvalue > 1e-3


def test_donated_addition_does_not_copy_the_archive():
    archive = new_archive(4, 3, 2)
    offspring, evaluation = random_batch(np.random.default_rng(0), "front", 2, 8, 0)
    where = archive.genotype["vector"].unsafe_buffer_pointer()
    archive, _ = jax.jit(add, donate_argnums=0)(archive, offspring, evaluation)
    assert archive.genotype["vector"].unsafe_buffer_pointer() == where
