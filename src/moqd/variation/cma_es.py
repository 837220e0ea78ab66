"""CMA-ES as pure functions over a stack of independent search distributions.

Hansen, "The CMA Evolution Strategy: A Tutorial" (2016, arXiv 1604.00772), with positive weights; with a diagonal
covariance, for many parameters, Ros & Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space
Complexity" (2008). Every array has the distributions as its first axis; the tutorial's symbols are in brackets.

The ranked solutions need not be the sampled ones: `update` only sees solutions, so they may have been clipped.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moqd.core.types import Key

MOST_CONDITION = 1e7
"""Largest condition number of the covariance (in 32 bits); beyond it, a distribution counts as degenerate."""


class Constants(NamedTuple):
    """The strategy's parameters, the tutorial's defaults."""

    weight: tuple[float, ...]
    """Weights of the best samples, the best first; they sum to 1 [w]."""
    selection: float
    """Variance-effective selection mass [mu_eff]."""
    step_rate: float
    """[c_sigma]"""
    step_damping: float
    """[d_sigma]"""
    path_rate: float
    """[c_c]"""
    rank_one_rate: float
    """[c_1]"""
    rank_mu_rate: float
    """[c_mu]"""
    expected_norm: float
    """Expected norm of a standard normal vector [chi_N]."""


class Distributions(NamedTuple):
    """Normal distributions with means and covariances step² · covariance."""

    mean: Float[Array, "stack parameters"]
    step: Float[Array, "stack"]
    """[sigma]"""
    step_path: Float[Array, "stack parameters"]
    """[p_sigma]"""
    path: Float[Array, "stack parameters"]
    """[p_c]"""
    covariance: Float[Array, "stack parameters parameters"] | Float[Array, "stack parameters"]
    """The whole matrix, or its diagonal [C]."""
    axes: Float[Array, "stack parameters parameters"] | None
    """Eigenvectors of the matrix, in columns [B]."""
    scale: Float[Array, "stack parameters"]
    """Square roots of its eigenvalues, or of its diagonal [D]."""
    generation: Int[Array, "stack"]


def constants(num_parameters: int, num_samples: int, *, separable: bool) -> Constants:
    """Table 1 of the tutorial, without negative weights."""
    n, num_parents = num_parameters, max(1, num_samples // 2)
    weight = np.log((num_samples + 1) / 2) - np.log(np.arange(1, num_parents + 1))
    weight = weight / weight.sum() if num_samples > 1 else np.ones(1)
    selection = float(1 / np.sum(weight**2))
    step_rate = (selection + 2) / (n + selection + 5)
    rank_one_rate = 2 / ((n + 1.3) ** 2 + selection)
    rank_mu_rate = 2 * (selection - 2 + 1 / selection) / ((n + 2) ** 2 + selection)
    if separable:
        rank_one_rate, rank_mu_rate = (rate * (n + 2) / 3 for rate in (rank_one_rate, rank_mu_rate))
    rank_one_rate = min(rank_one_rate, 1.0)
    return Constants(
        weight=tuple(map(float, weight)),
        selection=selection,
        step_rate=step_rate,
        step_damping=1 + 2 * max(0.0, float(np.sqrt((selection - 1) / (n + 1))) - 1) + step_rate,
        path_rate=(4 + selection / n) / (n + 4 + 2 * selection / n),
        rank_one_rate=rank_one_rate,
        rank_mu_rate=min(1 - rank_one_rate, max(rank_mu_rate, 0.0)),
        expected_norm=float(np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))),
    )


def start(mean: Float[Array, "stack parameters"], step: Float[Array, "stack"], *, separable: bool) -> Distributions:
    """Isotropic distributions."""
    ones = jnp.ones_like(mean)
    eye = None if separable else jnp.broadcast_to(jnp.eye(mean.shape[1]), (*mean.shape, mean.shape[1]))
    return Distributions(
        mean=mean,
        step=step,
        step_path=jnp.zeros_like(mean),
        path=jnp.zeros_like(mean),
        covariance=ones if eye is None else eye,
        axes=eye,
        scale=ones,
        generation=jnp.zeros(mean.shape[0], jnp.int32),
    )


def restart(distributions: Distributions, which: Bool[Array, "stack"], fresh: Distributions) -> Distributions:
    """The distributions, with those marked in `which` replaced by those of `fresh`."""

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(which.reshape((-1,) + (1,) * (old.ndim - 1)), new, old)

    return jax.tree.map(choose, fresh, distributions)


def sample(key: Key, distributions: Distributions, num_samples: int) -> Float[Array, "stack samples parameters"]:
    """`num_samples` samples from every distribution."""
    stack, num_parameters = distributions.mean.shape
    noise = jax.random.normal(key, (stack, num_samples, num_parameters)) * distributions.scale[:, None, :]
    if distributions.axes is not None:
        noise = jnp.einsum("sij,snj->sni", distributions.axes, noise)
    return distributions.mean[:, None, :] + distributions.step[:, None, None] * noise


def update(
    distributions: Distributions, ranked: Float[Array, "stack samples parameters"], constants: Constants
) -> Distributions:
    """The distributions after a generation; `ranked` has the best samples first."""
    return jax.vmap(lambda distribution, ranked: _update(distribution, ranked, constants))(distributions, ranked)


def degenerate(
    distributions: Distributions, least_step: Float[Array, ""], most_step: Float[Array, ""]
) -> Bool[Array, "stack"]:
    """Which distributions cannot continue: their steps are too small or too large, they are too thin, or not finite."""
    longest, shortest = jnp.max(distributions.scale, axis=1), jnp.min(distributions.scale, axis=1)
    reach = distributions.step * longest
    sound = (reach >= least_step) & (reach <= most_step) & (longest**2 <= MOST_CONDITION * shortest**2)
    return ~(sound & jnp.all(jnp.isfinite(distributions.mean), axis=1))


def _update(distribution: Distributions, ranked: Float[Array, "samples parameters"], c: Constants) -> Distributions:
    mean, step, step_path, path, covariance, axes, scale, generation = distribution
    weight = jnp.asarray(c.weight, jnp.float32)
    moves = (ranked[: weight.size] - mean[None, :]) / step  # [y]
    move = weight @ moves

    # Step size: longer where the means' moves point the same way, shorter where they cancel out.
    white = move / scale if axes is None else axes @ ((axes.T @ move) / scale)
    step_path = (1 - c.step_rate) * step_path + np.sqrt(c.step_rate * (2 - c.step_rate) * c.selection) * white
    length = jnp.linalg.norm(step_path) / c.expected_norm
    new_step = step * jnp.exp(jnp.minimum((c.step_rate / c.step_damping) * (length - 1), 1.0))

    # Covariance: towards the path of the mean (rank one) and towards the best samples (rank mu).
    generation = generation + 1
    settled = jnp.sqrt(1 - (1 - c.step_rate) ** (2 * generation.astype(jnp.float32)))
    steady = (length / settled < 1.4 + 2 / (mean.size + 1)).astype(jnp.float32)  # [h_sigma]
    path = (1 - c.path_rate) * path + steady * np.sqrt(c.path_rate * (2 - c.path_rate) * c.selection) * move
    lost = (1 - steady) * c.rank_one_rate * c.path_rate * (2 - c.path_rate)
    keep = 1 + lost - c.rank_one_rate - c.rank_mu_rate
    if axes is None:
        covariance = keep * covariance + c.rank_one_rate * path**2 + c.rank_mu_rate * (weight @ moves**2)
        scale = jnp.sqrt(jnp.maximum(covariance, jnp.finfo(jnp.float32).tiny))
    else:
        rank_mu = (moves * weight[:, None]).T @ moves
        covariance = keep * covariance + c.rank_one_rate * jnp.outer(path, path) + c.rank_mu_rate * rank_mu
        covariance = 0.5 * (covariance + covariance.T)
        value, axes = jnp.linalg.eigh(covariance, symmetrize_input=False)
        scale = jnp.sqrt(jnp.maximum(value, 1e-2 / MOST_CONDITION * jnp.max(value)))
    return Distributions(mean + step * move, new_step, step_path, path, covariance, axes, scale, generation)
