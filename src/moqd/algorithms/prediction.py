"""What training does to a policy, predicted: the model of PG-MORL (Xu et al., 2020).

For each objective, the change of a policy's fitness in one generation is modelled as a function of that objective's
weight w: A (e^(a(w - b)) - 1) / (e^(a(w - b)) + 1) + c, which is A tanh(a(w - b) / 2) + c. It is fitted to recorded
changes of policies with nearby fitness, by least squares that are robust to outliers (soft L1).

Objectives are measured from the reference point, in units of the range from there to the best seen.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

MEMORY = 512
"""How many changes are remembered, the newest..."""
NEAREST = 64
"""...and of how many of these, the nearest, a prediction is made."""
NEAR, WIDTH = 0.1, 0.03
"""Fitness counts as near if it differs by at most this share in each objective, with weights of this width..."""
WIDER, DISTINCT = 10, 4
"""...or twice as much, up to so often, until there are so many distinct weights among the neighbours."""
SOFT = 0.01
"""From which residual on the loss is rather linear than squared."""
LARGEST = 1.0
"""Bound of a change."""
AT_ONCE = 20
"""Policies of which the change is predicted at a time."""
STARTS = np.array([[1.0, 1.0], [8.0, 0.5], [3.0, 0.0], [15.0, 0.2], [15.0, 0.8]], np.float32)
"""(a, b) from which the fit begins, each time; the best one counts."""
ROUNDS = 40
LOWEST = np.array([0.0, 0.1, -5.0, -LARGEST], np.float32)
"""Bounds of A, a, b and c; A is at most the range of the changes."""
HIGHEST = np.array([LARGEST, 20.0, 5.0, LARGEST], np.float32)

Curve = Float[Array, "4"]
"""A, a, b and c."""
Samples = Float[Array, "samples"]


class History(NamedTuple):
    """What training has done: a ring of the newest changes."""

    fitness: Float[Array, "memory objectives"]
    """Before the change, in the task's units."""
    weight: Float[Array, "memory objectives"]
    change: Float[Array, "memory objectives"]
    parent: Int[Array, "memory"]
    """The number of the policy that was changed; -1 where nothing is recorded."""
    size: Int[Array, ""]
    """How many changes were ever recorded."""


def no_history(num_objectives: int) -> History:
    nothing = jnp.zeros((MEMORY, num_objectives))
    return History(nothing, nothing, nothing, jnp.full(MEMORY, -1, jnp.int32), jnp.zeros((), jnp.int32))


def recorded(
    history: History,
    fitness: Float[Array, "batch objectives"],
    weight: Float[Array, "batch objectives"],
    change: Float[Array, "batch objectives"],
    parent: Int[Array, "batch"],
    valid: Bool[Array, "batch"],
) -> History:
    """The history with those changes added that are valid."""
    place = jnp.where(valid, (history.size + jnp.cumsum(valid, dtype=jnp.int32) - 1) % MEMORY, MEMORY)
    write = lambda column, new: column.at[place].set(new, mode="drop")  # noqa: E731
    return History(
        fitness=write(history.fitness, fitness),
        weight=write(history.weight, weight),
        change=write(history.change, change),
        parent=write(history.parent, parent),
        size=history.size + jnp.sum(valid, dtype=jnp.int32),
    )


def predict(
    history: History,
    fitness: Float[Array, "policies objectives"],
    exists: Bool[Array, "policies"],
    weights: Float[Array, "policies candidates objectives"],
    reference: Float[Array, "objectives"],
    unit: Float[Array, "objectives"],
) -> Float[Array, "policies candidates objectives"]:
    """The fitness of each policy that exists after training for each of some weights, in the units of the model."""
    there = history.parent >= 0
    scaled = lambda values: (values - reference[None]) / unit[None]  # noqa: E731
    before, change = scaled(history.fitness), history.change / unit[None]
    # The same weight has the same number: that of the first record with it.
    same = jnp.max(jnp.abs(history.weight[:, None] - history.weight[None, :]), axis=-1) < 1e-3
    kind = jnp.argmax(same & there[None, :], axis=1)

    def of_one(own: Float[Array, "objectives"], weights: Float[Array, "candidates objectives"]) -> Array:
        gap = jnp.abs(before - own[None]) / jnp.maximum(jnp.abs(own), 1e-6)[None]
        share = jnp.where(there, jnp.max(gap, axis=1), jnp.inf)
        within = share[None, :] <= NEAR * 2.0 ** np.arange(WIDER, dtype=np.float32)[:, None]
        kinds = jax.vmap(lambda near: jnp.zeros(MEMORY, bool).at[kind].max(near))(within)
        enough = jnp.sum(kinds, axis=1) >= DISTINCT
        wider = jnp.where(jnp.any(enough), jnp.argmax(enough), WIDER - 1)
        nearest = jnp.argsort(share)[:NEAREST]
        width = WIDTH * 2.0 ** wider.astype(jnp.float32)
        distance = jnp.sum(gap[nearest] ** 2, axis=1)
        counts = jnp.where(within[wider][nearest], jnp.exp(-0.5 * distance / width**2), 0)

        def of_objective(x: Samples, y: Samples, at: Float[Array, "candidates"]) -> Array:
            extent = jnp.max(y, where=counts > 0, initial=-jnp.inf) - jnp.min(y, where=counts > 0, initial=jnp.inf)
            curve, _ = fit(x, y, counts, jnp.clip(extent, SOFT / 20, LARGEST))
            return value(curve, at)

        changes = jax.vmap(of_objective, in_axes=1, out_axes=1)(history.weight[nearest], change[nearest], weights)
        return own[None] + changes

    # The few that exist come first; where there are none left, nothing is computed.
    order = jnp.argsort(~exists, stable=True)
    number = -(-len(order) // AT_ONCE) * AT_ONCE
    chunks = jnp.pad(order, (0, number - len(order))).reshape(-1, AT_ONCE)
    num_chunks = -(-jnp.sum(exists) // AT_ONCE)

    def one(i: Int[Array, ""], predicted: Array) -> Array:
        some = chunks[i]
        return predicted.at[some].set(jax.vmap(of_one)(scaled(fitness[some]), weights[some]))

    return jax.lax.fori_loop(0, num_chunks, one, jnp.zeros_like(weights))


def value(curve: Curve, x: Float[Array, "*samples"]) -> Float[Array, "*samples"]:
    """A tanh(a(x - b) / 2) + c."""
    height, steepness, middle, offset = curve
    return height * jnp.tanh(steepness * (x - middle) / 2) + offset


def fit(
    x: Samples, y: Samples, counts: Samples, highest: Float[Array, ""], soft: float = SOFT
) -> tuple[Curve, Float[Array, ""]]:
    """The curve through samples, each of which counts so much, and what it misses: its soft L1 loss.

    By Levenberg & Marquardt with reweighting, projected into the bounds of which `highest` is that of A, from several
    starts at once.
    """
    upper = jnp.concatenate([highest[None], HIGHEST[1:]])

    def residuals(curve: Curve) -> Samples:
        return (value(curve, x) - y) * counts

    def loss(curve: Curve) -> Float[Array, ""]:
        return soft**2 * jnp.sum(jnp.sqrt(1 + (residuals(curve) / soft) ** 2) - 1)

    def improved(state: tuple[Curve, Array, Array], _: None) -> tuple[tuple[Curve, Array, Array], None]:
        curve, now, damping = state
        off, slopes = residuals(curve), jax.jacfwd(residuals)(curve)
        trust = 1 / jnp.sqrt(1 + (off / soft) ** 2)
        gradient = slopes.T @ (trust * off)
        # A parameter at a bound that wants to go beyond stays where it is.
        stuck = ((curve <= LOWEST) & (gradient > 0)) | ((curve >= upper) & (gradient < 0))
        normal = (slopes.T * trust[None]) @ slopes
        free = ~stuck[:, None] & ~stuck[None, :]
        scale = jnp.diag(normal) + 1e-9 * jnp.max(jnp.diag(normal)) + 1e-20
        normal = jnp.where(free, normal, 0) + jnp.diag(jnp.where(stuck, 1, damping * scale))
        step = _solved(normal, jnp.where(stuck, 0, gradient))
        then = jnp.clip(curve - step, LOWEST, upper)
        after = loss(then)
        better = after < now
        damping = jnp.clip(jnp.where(better, damping / 4, damping * 4), 1e-7, 1e7)
        return (jnp.where(better, then, curve), jnp.where(better, after, now), damping), None

    def from_start(start: Float[Array, "2"]) -> tuple[Curve, Array]:
        middle = jnp.sum(counts * y) / jnp.maximum(jnp.sum(counts), 1e-20)
        first = jnp.clip(jnp.stack([upper[0] / 2, start[0], start[1], middle]), LOWEST, upper)
        (curve, least, _), _ = jax.lax.scan(improved, (first, loss(first), jnp.float32(0.01)), length=ROUNDS)
        return curve, least

    curves, losses = jax.vmap(from_start)(jnp.asarray(STARTS))
    best = jnp.argmin(losses)
    return curves[best], losses[best]


def _solved(matrix: Float[Array, "n n"], right: Float[Array, "n"]) -> Float[Array, "n"]:
    """Of a small positive definite system, by elimination: elementwise, so that a thousand of them are done at once."""
    rows = [list(row) for row in jnp.concatenate([matrix, right[:, None]], axis=1)]
    size = len(rows)
    for i in range(size):
        pivot = rows[i][i]
        for k in range(i + 1, size):
            factor = rows[k][i] / pivot
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    found: list[Array] = [right[0]] * size
    for i in reversed(range(size)):
        known = sum((rows[i][k] * found[k] for k in range(i + 1, size)), start=jnp.zeros(()))
        found[i] = (rows[i][size] - known) / rows[i][i]
    return jnp.stack(found)
