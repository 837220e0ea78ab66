"""Addition of 256 solutions of 5,123 parameters, into archives that are sparse, half full and full.

QDax's MOMERepertoire.add inserts one by one. Both are compiled with a donated archive, and get the same batches.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from qdax.core.containers.mome_repertoire import MOMERepertoire

from benchmarks.timing import Measured, in_turns
from moqd.core.archive import add, empty_archive
from moqd.core.types import Evaluation, Offspring

BATCH, PARAMETERS, LENGTH = 256, 5123, 50
ROUNDS = 15
KINDS = {
    "sparse": "random objectives: most are dominated",
    "half full": "objectives in a band along a front",
    "full": "objectives on a front: nearly all fronts are over their length",
}


def batches(kind: str, rng: np.random.Generator, parameters: int) -> Iterator[tuple[Offspring, Evaluation]]:
    while True:
        angle = rng.random(BATCH) * np.pi / 2
        radius = 1 - {"half full": 0.1, "full": 1e-4}.get(kind, 1.0) * rng.random(BATCH)
        fitness = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        if kind == "sparse":
            fitness = rng.standard_normal((BATCH, 2))
        genotype = jnp.asarray(rng.standard_normal((BATCH, parameters)), jnp.float32)
        offspring = Offspring(genotype, jnp.full((BATCH, 2), 0.5), jnp.zeros(BATCH, jnp.int32))
        feature = jnp.asarray(rng.random((BATCH, 2)), jnp.float32)
        yield offspring, Evaluation(jnp.asarray(fitness, jnp.float32), feature, jnp.ones(BATCH, bool))


class Ours:
    """An archive that has taken in 120 solutions per cell; each of its first `calls` calls adds a batch that is new."""

    def __init__(self, kind: str, cells: int, parameters: int = PARAMETERS, calls: int = ROUNDS + 1) -> None:
        rng = np.random.default_rng(0)
        self.centroid = jnp.asarray(rng.random((cells, 2)), jnp.float32)
        first = next(batches(kind, rng, parameters))
        bounds = jnp.asarray([[0.0, 0.0], [1.0, 1.0]])
        self.archive = empty_archive(first[0].genotype, self.centroid, bounds, num_objectives=2, front_length=LENGTH)
        self.add = jax.jit(add, donate_argnums=0)
        filling = batches(kind, rng, 1)
        for _ in range(120 * cells // BATCH):
            offspring, evaluation = next(filling)
            wide = offspring._replace(genotype=jnp.broadcast_to(offspring.genotype, (BATCH, parameters)))
            self.archive, _ = self.add(self.archive, wide, evaluation)
        prepared = batches(kind, rng, parameters)
        self.batches = [next(prepared) for _ in range(calls)]
        self.turn = 0

    def __call__(self) -> object:
        self.archive, added = self.add(self.archive, *self._batch())
        return self.archive, added

    def _batch(self) -> tuple[Offspring, Evaluation]:
        self.turn += 1
        return self.batches[self.turn - 1]


class Qdax(Ours):
    """The same batches, and the same fronts to start from, in QDax's repertoire."""

    def __init__(self, ours: Ours) -> None:
        archive = jax.tree.map(jnp.copy, ours.archive)
        empty = ~archive.valid[..., None]
        self.archive = MOMERepertoire(
            genotypes=archive.genotype,
            fitnesses=jnp.where(empty, -jnp.inf, archive.fitness),
            descriptors=archive.feature,
            extra_scores={},
            keys_extra_scores=(),
            centroids=ours.centroid,
        )
        self.add = jax.jit(
            lambda repertoire, offspring, evaluation: repertoire.add(
                offspring.genotype, evaluation.feature, evaluation.fitness, {}
            ),
            donate_argnums=0,
        )
        self.batches, self.turn = ours.batches, 0

    def __call__(self) -> object:
        self.archive = self.add(self.archive, *self._batch())
        return self.archive


def measure() -> list[Measured]:
    rows = []
    for kind in KINDS:
        ours = Ours(kind, 128)
        taken, theirs = in_turns(ours, Qdax(ours), rounds=ROUNDS)
        rows.append(Measured(f"archive addition, 128 cells, {kind}", taken, "QDax", theirs))
        del ours
    return rows


def growth() -> list[Measured]:
    """Our own addition with 1,024 cells, beside that with 128."""
    rows = []
    for kind in KINDS:
        small, large = in_turns(*(Ours(kind, cells, calls=52) for cells in (128, 1024)), rounds=51)
        rows.append(Measured(f"archive addition, 1,024 cells, {kind}", large, "128 cells", small))
    return rows
