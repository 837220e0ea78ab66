"""The table of algorithms: what each name stands for. It imports no JAX, so that the command line lists it at once.

To register an algorithm, add a line here; a variant is another line with other values of the same config.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Listed(NamedTuple):
    """An algorithm that is not imported yet."""

    summary: str
    module: str
    """Of moqd.algorithms; the function that builds the algorithm has the same name."""
    config: str
    """The class of its options, in the same module."""
    changes: Mapping[str, Any] = NOTHING
    """Where the options differ from the defaults of that class."""
    for_vectors: Mapping[str, Any] = NOTHING
    """Where the defaults differ for tasks of plain parameters, whose solutions are vectors within bounds."""
    passive: bool = False
    """Whether it has no archive of its own and gets a passive one."""
    policies: bool = False
    """Whether it improves policies by their gradients, and so needs a task whose solutions are policies."""


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


def _p2c(summary: str, **changes: Any) -> Listed:
    return Listed(summary, "mome_p2c", "MomeP2CConfig", changes, policies=True)


def _pga(summary: str, **changes: Any) -> Listed:
    return Listed(summary, "pga_me", "PgaMeConfig", changes, passive=True, policies=True)


def _population(module: str, summary: str, for_vectors: Mapping[str, Any], **changes: Any) -> Listed:
    return Listed(summary, module, "PopulationConfig", changes, for_vectors, passive=True)


ABLATIONS = {
    "keep-pref": _p2c("mome-p2c: gradients for the parent's preference", pg_preferences="parent"),
    "one-hot": _p2c("mome-p2c: gradients aim for one objective each", pg_preferences="one-hot"),
    "no-actor": _p2c("mome-p2c: without actor injection", pg_batch=128, actor_batch=0),
    "no-ga": _p2c("mome-p2c: without Iso+LineDD variation", pg_batch=128, ga_batch=0, actor_batch=128),
    "no-crowding": _p2c("mome-p2c: without crowding", crowding=False),
}

CATALOGUE: dict[str, Listed] = {
    "mome-p2c": _p2c("gradients and an actor that know preferences"),
    "mome-pgx": Listed("policy gradients of each objective", "mome_pgx", "MomePgxConfig", policies=True),
    "mome": Listed("MAP-Elites with a front in every cell", "mome", "MomeConfig", for_vectors=FOR_VECTORS),
    "mo-cma-mae": Listed("CMA-ES on the hypervolume of annealed fronts", "mo_cma_mae", "MoCmaMaeConfig"),
    "pga-me": _pga("policy gradients of the sum of objectives"),
    "pga-me-128": _pga("pga-me with as many elites as there are cells", elite_cells=128),
    "nsga2": _population("nsga2", "non-dominated sorting and crowding", POPULATION),
    "nsga2-small": _population("nsga2", "nsga2 with a small population", SMALL, population=256),
    "spea2": _population("spea2", "strength, density and truncation", POPULATION),
    "spea2-small": _population("spea2", "spea2 with a small population", SMALL, population=256),
    **{f"mome-p2c-{name}": listed for name, listed in ABLATIONS.items()},
}
