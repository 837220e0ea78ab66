"""The table of algorithms. It imports no JAX, so that the command line lists it at once.

To register an algorithm, add an entry here; a variant is another entry with other values of the same config.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moqd.io.lazy import Listed, Loaded, loader


@dataclass(frozen=True)
class Entry(Listed):
    """What a name stands for."""

    passive: bool = False
    """Whether it has no archive of its own and gets a passive one."""
    policies: bool = False
    """Whether it improves policies by their gradients, and so needs a task whose solutions are policies."""
    for_vectors: Mapping[str, Any] = field(default_factory=dict)
    """Where the defaults differ for tasks of plain parameters, whose solutions are vectors within bounds."""

    def config_for(self, task: Any) -> Any:
        """The default config for a task: the paper's for policies, what suits functions for plain parameters."""
        return self.config if task.genes is None else replace(self.config, **self.for_vectors)


def _of(module: str, config: str, **changes: Any) -> Callable[[], Loaded]:
    """A module's function of the same name, and its config with these changes."""
    return loader(f"moqd.algorithms.{module}", module, config, **changes)


FOR_VECTORS = {
    "ga_batch": 50,
    "variation": "sbx:0.6,iso-line:0.2,de:0.2",
    "iso_sigma": 0.05,
    "line_sigma": 0.5,
    "crowding": True,
    "guided": True,
}
POPULATION = {
    "population": 100,
    "variation": "sbx:0.8,iso-line:0.1,de:0.1",
    "iso_sigma": 0.05,
    "line_sigma": 0.5,
}
SMALL = POPULATION | {"population": 50}
"""What suits plain parameters, by `python -m benchmarks design`."""


def _p2c(summary: str, **changes: Any) -> Entry:
    return Entry(summary, _of("mome_p2c", "MomeP2CConfig", **changes), policies=True)


def _pga(summary: str, **changes: Any) -> Entry:
    return Entry(summary, _of("pga_me", "PgaMeConfig", **changes), passive=True, policies=True)


def _population(module: str, summary: str, for_vectors: Mapping[str, Any], **changes: Any) -> Entry:
    return Entry(summary, _of(module, "PopulationConfig", **changes), passive=True, for_vectors=for_vectors)


ABLATIONS = {
    "keep-pref": _p2c("mome-p2c: gradients for the parent's preference", pg_preferences="parent"),
    "one-hot": _p2c("mome-p2c: gradients aim for one objective each", pg_preferences="one-hot"),
    "no-actor": _p2c("mome-p2c: without actor injection", pg_batch=128, actor_batch=0),
    "no-ga": _p2c("mome-p2c: without Iso+LineDD variation", pg_batch=128, ga_batch=0, actor_batch=128),
    "no-crowding": _p2c("mome-p2c: without crowding", crowding=False),
}

ALGORITHMS: dict[str, Entry] = {
    "mome-p2c": _p2c("preference-conditioned gradients and actor"),
    "mome-pgx": Entry("policy gradients of each objective", _of("mome_pgx", "MomePgxConfig"), policies=True),
    "mome": Entry("MAP-Elites with a front in every cell", _of("mome", "MomeConfig"), for_vectors=FOR_VECTORS),
    "mo-cma-mae": Entry("CMA-ES on the hypervolume of annealed fronts", _of("mo_cma_mae", "MoCmaMaeConfig")),
    "pga-me": _pga("policy gradients of the sum of objectives"),
    "pga-me-128": _pga("pga-me with as many elites as there are cells", elite_cells=128),
    "nsga2": _population("nsga2", "non-dominated sorting and crowding", POPULATION),
    "nsga2-small": _population("nsga2", "nsga2 with a small population", SMALL, population=256),
    "spea2": _population("spea2", "strength, density and truncation", POPULATION),
    "spea2-small": _population("spea2", "spea2 with a small population", SMALL, population=256),
    **{f"mome-p2c-{name}": entry for name, entry in ABLATIONS.items()},
}
