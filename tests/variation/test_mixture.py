"""Mixtures of operators: what the option says, blocks of the batch, and shares that adapt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core.types import Genes
from moqd.variation.mixture import (
    FLOOR,
    OPERATORS,
    Credit,
    VariationConfig,
    credited,
    initial_credit,
    mixture_of,
    operator_of,
    shares_of,
    vary,
)

GENES = Genes(np.zeros(4, int), np.ones(4, bool))


@pytest.mark.parametrize(
    ("variation", "message"),
    [
        ("sbxx", "unknown operator 'sbxx' of variation; did you mean 'sbx'"),
        ("sbx:0.5,de:0.4", "shares add up to 0.9; they must add up to 1"),
        ("sbx:0.5,de", "give every operator of a mixture its share"),
        ("sbx:-1,de:2", "give every operator of a mixture its share"),
        ("sbx:half,de:0.5", "give every operator of a mixture its share"),
        ("sbx:0.5,sbx:0.5", "name every operator only once"),
        ("", "unknown operator ''"),
    ],
)
def test_a_bad_mixture_is_one_sentence(variation, message):
    with pytest.raises(moqd.InputError) as raised:
        moqd.make_algorithm("mome", moqd.make_task("arm-2"), variation=variation)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_operators_that_need_bounds_do_not_fit_pytrees():
    task = moqd.FunctionTask(
        lambda net: [0.0, 1.0], name="net", init=lambda key: {"a": jnp.zeros(2)}, objective_names=["a", "b"]
    )
    with pytest.raises(moqd.InputError, match="'sbx', which works within bounds, but the solutions of this task have"):
        moqd.make_algorithm("nsga2", task, variation="sbx:0.5,de:0.5")
    assert set(mixture_of("adaptive", bounded=False).names) == {"iso-line", "gaussian", "de", "de-elite"}
    assert moqd.make_algorithm("nsga2", task, variation="de").config.variation == "de"


def test_a_mixture_may_be_given_as_a_mapping():
    algorithm = moqd.make_algorithm("mome", moqd.make_task("arm-2"), variation={"sbx": 0.25, "de": 0.75})
    assert algorithm.config.variation == "sbx:0.25,de:0.75"


@pytest.mark.parametrize("batch", [1, 7, 50, 256])
def test_blocks_are_as_large_as_the_shares(batch):
    shares = np.array([0.6, 0.1, 0.3])
    counts = np.bincount(np.asarray(operator_of(jnp.asarray(shares, jnp.float32), batch)), minlength=3)
    assert counts.sum() == batch
    np.testing.assert_allclose(counts, batch * shares, atol=1)


def test_every_block_is_made_by_its_operator(rng):
    mixture = mixture_of("polynomial:0.5,gaussian:0.5", bounded=True)
    parents = [jnp.asarray(rng.random((40, 4)), jnp.float32)]
    child = vary(jax.random.key(3), mixture, None, parents, GENES, VariationConfig())
    keys = jax.random.split(jax.random.key(3), 2)
    for name, key, block in zip(mixture.names, keys, (slice(0, 20), slice(20, 40)), strict=True):
        expected = OPERATORS[name].apply(key, parents, GENES, VariationConfig())
        np.testing.assert_array_equal(child[block], expected[block])


def test_shares_follow_what_enters_and_keep_their_floor():
    mixture = mixture_of("adaptive", bounded=True)
    credit, number = initial_credit(mixture), len(mixture.names)
    np.testing.assert_allclose(shares_of(mixture, credit), 1 / number, rtol=1e-5)
    for _ in range(60):  # only offspring of the first operator enter
        operator = np.asarray(operator_of(shares_of(mixture, credit), 100))
        credit = credited(mixture, credit, jnp.asarray(operator == 0), jnp.ones(100, bool))
    shares = np.asarray(shares_of(mixture, credit))
    np.testing.assert_allclose(shares, [1 - FLOOR * (number - 1), *[FLOOR] * (number - 1)], atol=0.01)
    assert shares.sum() == pytest.approx(1, abs=1e-5)
    # What the operators did not make changes nothing but for what is forgotten of both alike.
    after = credited(mixture, credit, jnp.ones(100, bool), jnp.zeros(100, bool))
    np.testing.assert_allclose(shares_of(mixture, after), shares, atol=1e-5)
    assert isinstance(after, Credit)


@pytest.mark.slow
@pytest.mark.parametrize("variation", ["adaptive", "sbx:0.5,de:0.3,gaussian:0.2"])
@pytest.mark.parametrize("name", ["mome", "nsga2", "spea2"])
def test_a_run_with_any_variation_resumes_to_the_bit(name, variation, tmp_path):
    task = moqd.make_task("rastrigin-2")
    size = {"ga_batch" if name == "mome" else "population": 12}
    algorithm = moqd.make_algorithm(name, task, variation=variation, num_cells=8, front_length=5, **size)
    whole = moqd.run(algorithm, task, iterations=6, seed=1)
    moqd.run(algorithm, task, iterations=3, seed=1, out=tmp_path / "run")
    resumed = moqd.resume(tmp_path / "run", iterations=6)
    for mine, other in zip(jax.tree.leaves(whole.archive), jax.tree.leaves(resumed.archive), strict=True):
        np.testing.assert_array_equal(mine, other)
