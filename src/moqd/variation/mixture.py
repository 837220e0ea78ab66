"""Operators by name, and mixtures of them with fixed shares or with shares that follow each operator's success.

A mixture gives every operator a block of the batch, in the order in which they are named. Which operator made which
offspring follows from the shares alone, so `tell` can derive it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moqd.core.types import Genes, Genotype, Key
from moqd.io.errors import InputError, unknown_name
from moqd.variation.differential import de_elite, de_rand
from moqd.variation.discrete import Genotypes, settle
from moqd.variation.gaussian import gaussian
from moqd.variation.iso_line import iso_line
from moqd.variation.polynomial import polynomial
from moqd.variation.sbx import sbx

FLOOR = 0.05
"""Minimum share of an operator when shares adapt."""
MEMORY = 0.9
"""How much earlier iterations count in the next one when shares adapt."""


@dataclass(frozen=True)
class VariationConfig:
    """How offspring are made without gradients."""

    variation: str = field(default="iso-line", metadata={"before": "iso-line"})
    """How offspring are made without gradients: an operator (iso-line, sbx, polynomial, gaussian, de, de-elite), a
    mixture with shares (sbx:0.5,de:0.5), or adaptive: all that suit the task, in shares that follow their success."""
    iso_sigma: float = 0.005
    """Iso+LineDD: scale of the isotropic noise."""
    line_sigma: float = 0.05
    """Iso+LineDD: scale of the step along the line to another parent."""


Apply = Callable[[Key, Sequence[Genotypes], Genes | None, VariationConfig], Genotypes]


class Operator(NamedTuple):
    """A way to make children from parents, all of them matrices with a row for each child."""

    num_parents: int
    apply: Apply
    needs_bounds: bool = False
    """Whether it works only within bounds."""


def _iso_line(key: Key, parents: Sequence[Genotypes], genes: Genes | None, config: VariationConfig) -> Genotypes:
    key_line, key_settle = (key, key) if genes is None or not genes.is_discrete.any() else jax.random.split(key)
    bounds = None if genes is None else (0.0, 1.0)
    sigmas = {"iso_sigma": config.iso_sigma, "line_sigma": config.line_sigma}
    child = iso_line(key_line, parents[0], parents[1], **sigmas, bounds=bounds)
    return child if genes is None else settle(key_settle, genes, parents[0], child)


def _sbx(key: Key, parents: Sequence[Genotypes], genes: Genes | None, config: VariationConfig) -> Genotypes:
    assert genes is not None
    key_first, key_again = jax.random.split(key)
    nobody, everybody = jnp.zeros(parents[0].shape[0], bool), jnp.ones(parents[0].shape[0], bool)
    child = _crossed(key_first, parents, genes, must=nobody)
    copied = jnp.all(child == parents[0], axis=1) | jnp.all(child == parents[1], axis=1)
    return jnp.where(copied[:, None], _crossed(key_again, parents, genes, must=everybody), child)


def _crossed(key: Key, parents: Sequence[Genotypes], genes: Genes, must: Bool[Array, "batch"]) -> Genotypes:
    """Crossed and mutated; those marked in `must` are never a copy of a parent."""
    key_cross, key_mutate = jax.random.split(key)
    child = sbx(key_cross, parents[0], parents[1], genes)
    copied = jnp.all(child == parents[0], axis=1) | jnp.all(child == parents[1], axis=1)
    return polynomial(key_mutate, child, genes, must=must & copied)


def _polynomial(key: Key, parents: Sequence[Genotypes], genes: Genes | None, config: VariationConfig) -> Genotypes:
    assert genes is not None
    return polynomial(key, parents[0], genes, rate=1.0, must=jnp.ones(parents[0].shape[0], bool))


def _four(parents: Sequence[Genotypes]) -> tuple[Genotypes, Genotypes, Genotypes, Genotypes]:
    parent, other, one, two = parents[:4]
    return parent, other, one, two


OPERATORS: Mapping[str, Operator] = {
    "iso-line": Operator(2, _iso_line),
    "sbx": Operator(2, _sbx, needs_bounds=True),
    "polynomial": Operator(1, _polynomial, needs_bounds=True),
    "gaussian": Operator(1, lambda key, parents, genes, config: gaussian(key, parents[0], genes)),
    "de": Operator(4, lambda key, parents, genes, config: de_rand(key, *_four(parents), genes)),
    "de-elite": Operator(4, lambda key, parents, genes, config: de_elite(key, *_four(parents), genes)),
}
ADAPTIVE = "adaptive"


class Mixture(NamedTuple):
    """Operators with their shares of the batch."""

    names: tuple[str, ...]
    shares: Float[np.ndarray, "operators"]
    """The initial shares, if they adapt."""
    adapts: bool

    @property
    def num_parents(self) -> int:
        """The number of parents of each child."""
        return max(OPERATORS[name].num_parents for name in self.names)


class Credit(NamedTuple):
    """What adaptive shares follow: for each operator, how many offspring were made and how many entered, with recent
    ones weighted most."""

    entered: Float[Array, "operators"]
    made: Float[Array, "operators"]


def mixture_of(variation: str, *, bounded: bool) -> Mixture:
    """The mixture that the option names; `bounded`: whether genotypes are plain vectors of parameters within bounds."""
    if variation == ADAPTIVE:
        names = tuple(name for name, operator in OPERATORS.items() if bounded or not operator.needs_bounds)
        return Mixture(names, np.full(len(names), 1 / len(names)), True)
    given = [part.strip() for part in variation.split(",")]
    words = [tuple(word.strip() for word in part.split(":")) for part in given]
    names = tuple(word[0] for word in words)
    for name in names:
        if name not in OPERATORS:
            raise unknown_name("operator", name, (*OPERATORS, ADAPTIVE), of="variation")
        if OPERATORS[name].needs_bounds and not bounded:
            usable = ", ".join(name for name, operator in OPERATORS.items() if not operator.needs_bounds)
            raise InputError(
                f"variation has {name!r}, which works within bounds, but the solutions of this task have none; use "
                f"operators of {usable}."
            )
    if len(set(names)) < len(names):
        raise InputError(f"variation is {variation!r}; name every operator only once.")
    shares = np.array([1.0 if len(words) == 1 and len(word) == 1 else _share(variation, word) for word in words])
    if abs(shares.sum() - 1) > 1e-6:
        raise InputError(f"variation is {variation!r}, whose shares add up to {shares.sum():g}; they must add up to 1.")
    return Mixture(names, shares, False)


def _share(variation: str, word: tuple[str, ...]) -> float:
    try:
        (share,) = map(float, word[1:])
        if not 0 < share <= 1:
            raise ValueError
    except ValueError:
        raise InputError(
            f"variation is {variation!r}; give every operator of a mixture its share, above 0 and at most 1, as in "
            "sbx:0.5,de:0.5."
        ) from None
    return share


def initial_credit(mixture: Mixture) -> Credit | None:
    """The initial credit; None if shares are fixed."""
    if not mixture.adapts:
        return None
    return Credit(jnp.ones(len(mixture.names)), jnp.ones(len(mixture.names)))


def shares_of(mixture: Mixture, credit: Credit | None) -> Float[Array, "operators"]:
    """The share of each operator: proportional to how often its offspring enter, and at least `FLOOR`."""
    if credit is None:
        return jnp.asarray(mixture.shares, jnp.float32)
    rate = credit.entered / credit.made
    rest = 1 - FLOOR * rate.size
    return FLOOR + rest * rate / jnp.maximum(jnp.sum(rate), jnp.finfo(jnp.float32).tiny)


def operator_of(shares: Float[Array, "operators"], batch: int) -> Int[Array, "batch"]:
    """The operator of each offspring: blocks of the batch, sized by the shares and rounded."""
    ends = jnp.round(jnp.cumsum(shares)[:-1] * batch).astype(jnp.int32)
    return jnp.sum(jnp.arange(batch)[:, None] >= ends[None, :], axis=1)


def vary(
    key: Key,
    mixture: Mixture,
    credit: Credit | None,
    parents: Sequence[Genotype],
    genes: Genes | None,
    config: VariationConfig,
) -> Genotype:
    """A child for each row of the `mixture.num_parents` parents."""
    if mixture.names == ("iso-line",) and genes is None:  # leaf by leaf, as it always was
        return iso_line(key, parents[0], parents[1], iso_sigma=config.iso_sigma, line_sigma=config.line_sigma)
    matrices = [_as_matrix(parent) for parent in parents]
    if len(mixture.names) == 1:
        return _as_genotype(OPERATORS[mixture.names[0]].apply(key, matrices, genes, config), parents[0])
    keys = jax.random.split(key, len(mixture.names))
    pairs = zip(mixture.names, keys, strict=True)
    made = jnp.stack([OPERATORS[name].apply(one, matrices, genes, config) for name, one in pairs])
    operator = operator_of(shares_of(mixture, credit), made.shape[1])
    return _as_genotype(made[operator, jnp.arange(made.shape[1])], parents[0])


def credited(
    mixture: Mixture, credit: Credit | None, added: Bool[Array, "batch"], counts: Bool[Array, "batch"]
) -> Credit | None:
    """The credit after a batch; offspring that `counts` excludes were not made by these operators."""
    if credit is None:
        return None
    operator = operator_of(shares_of(mixture, credit), added.shape[0])
    sums = lambda rows: jax.ops.segment_sum(rows.astype(jnp.float32), operator, len(mixture.names))  # noqa: E731
    return Credit(MEMORY * credit.entered + sums(added & counts), MEMORY * credit.made + sums(counts))


def _as_matrix(genotype: Genotype) -> Genotypes:
    leaves = jax.tree.leaves(genotype)
    flat = [leaf.reshape(leaf.shape[0], -1) for leaf in leaves]
    return flat[0] if len(flat) == 1 else jnp.concatenate(flat, axis=1)


def _as_genotype(matrix: Genotypes, like: Genotype) -> Any:
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf[0].size for leaf in leaves])[:-1]
    parts = jnp.split(matrix, ends, axis=1)
    return jax.tree.unflatten(structure, [p.reshape(leaf.shape) for p, leaf in zip(parts, leaves, strict=True)])
