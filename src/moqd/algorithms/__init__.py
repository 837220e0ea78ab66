"""Algorithms by name. A variant is a value of a config field, never a copy of code."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from moqd.algorithms.algorithm import Algorithm, batch_fields, check_cells
from moqd.algorithms.mo_cma_mae import MoCmaMaeConfig, mo_cma_mae
from moqd.algorithms.mome import MomeConfig, mome
from moqd.algorithms.mome_p2c import MomeP2CConfig, mome_p2c
from moqd.algorithms.mome_pgx import MomePgxConfig, mome_pgx
from moqd.algorithms.nsga2 import nsga2
from moqd.algorithms.passive import with_passive_archive
from moqd.algorithms.pga_me import PgaMeConfig, pga_me
from moqd.algorithms.population import PopulationConfig
from moqd.algorithms.spea2 import spea2
from moqd.io.errors import InputError, unknown_name
from moqd.io.options import overridden, restored
from moqd.tasks.task import Task

__all__ = ["ALGORITHMS", "Algorithm", "batch_fields", "make_algorithm", "restore_algorithm", "with_passive_archive"]


class Entry(NamedTuple):
    """What a name stands for."""

    label: str
    """What reports and figures call it."""
    look: tuple[int, str] | None
    """Colour (of the palette of `moqd.plots.style`) and line in figures: dashed for another size of the same algorithm,
    dash-dotted for an ablation. None: what is left."""
    build: Callable[[str, Any, Task], Algorithm]
    config: Any
    summary: str
    passive: bool = False
    """Whether it has no archive of its own and gets a passive one."""
    for_vectors: Mapping[str, Any] = MappingProxyType({})
    """Where the defaults differ for tasks of plain parameters, whose solutions are vectors within bounds."""

    def config_for(self, task: Task) -> Any:
        """The default config for a task: `config` for policies, changed by `for_vectors` for plain parameters."""
        return self.config if task.genes is None else replace(self.config, **self.for_vectors)


MOME_P2C = MomeP2CConfig()
NSGA2 = SPEA2 = PopulationConfig()
ABLATIONS = {
    "Keep-Pref": (replace(MOME_P2C, pg_preferences="parent"), "gradients keep the preference of the parent"),
    "One-Hot": (replace(MOME_P2C, pg_preferences="one-hot"), "gradients aim for one objective each"),
    "No-Actor": (replace(MOME_P2C, pg_batch=128, actor_batch=0), "without actor injection"),
    "No-GA": (replace(MOME_P2C, pg_batch=128, ga_batch=0, actor_batch=128), "without Iso+LineDD variation"),
    "No-Crowding": (replace(MOME_P2C, crowding=False), "selection and addition without crowding"),
}

FOR_VECTORS = {
    "ga_batch": 50,
    "variation": "sbx:0.7,iso-line:0.05,de:0.25",
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

PASSIVE = ", with a passive archive"
ACTOR = "policy gradients and an actor conditioned on preferences"
SUM = f"policy gradients of the sum of objectives{PASSIVE}"
CELLS = "CMA-ES on the hypervolume of annealed fronts, in every cell"
PGA_128 = "pga-me with as many elites as there are cells"

ALGORITHMS: dict[str, Entry] = {
    "mome-p2c": Entry("MOME-P2C", (0, "-"), mome_p2c, MOME_P2C, ACTOR),
    "mome-pgx": Entry("MOME-PGX", (1, "-"), mome_pgx, MomePgxConfig(), "policy gradients of each objective"),
    "mome": Entry("MOME", (2, "-"), mome, MomeConfig(), "MAP-Elites with a front in every cell", False, FOR_VECTORS),
    "mo-cma-mae": Entry("MO-CMA-MAE", (6, "-"), mo_cma_mae, MoCmaMaeConfig(), CELLS),
    "pga-me": Entry("PGA-ME", (3, "-"), pga_me, PgaMeConfig(), SUM, True),
    "pga-me-128": Entry("PGA-ME-128", (3, "--"), pga_me, PgaMeConfig(elite_cells=128), PGA_128, True),
    "nsga2": Entry("NSGA-II", (4, "-"), nsga2, NSGA2, f"non-dominated sorting and crowding{PASSIVE}", True, POPULATION),
    "nsga2-small": Entry(
        "NSGA-II-small", (4, "--"), nsga2, replace(NSGA2, population=256), "nsga2 with a small population", True, SMALL
    ),
    "spea2": Entry("SPEA2", (5, "-"), spea2, SPEA2, f"strength, density and truncation{PASSIVE}", True, POPULATION),
    "spea2-small": Entry(
        "SPEA2-small", (5, "--"), spea2, replace(SPEA2, population=256), "spea2 with a small population", True, SMALL
    ),
    **{
        f"mome-p2c-{label.lower()}": Entry(label, (2 + i, "-."), mome_p2c, config, f"mome-p2c: {what}")
        for i, (label, (config, what)) in enumerate(ABLATIONS.items())
    },
}
"""To add one of moqd's own, add it here: nothing else knows it by its name."""


def make_algorithm(name: str, task: Task, **overrides: Any) -> Algorithm:
    """An algorithm by its name, for a task; `overrides` are fields of its config, such as `num_cells`."""
    if not isinstance(task, Task):
        raise InputError(f"task is {task!r}; give a task, such as make_task('arm-2').")
    config = overridden(_entry(name).config_for(task), overrides, f"algorithm {name!r}")
    return _build(name, config, task)


def restore_algorithm(record: Mapping[str, Any], task: Task) -> Algorithm:
    """The algorithm that a file describes by its name and options, as `moqd.io.options.recorded` gave them."""
    values = dict(record)
    name = values.pop("name", None)
    return _build(name, restored(_entry(name).config, values, f"algorithm {name!r}"), task)


def _entry(name: Any) -> Entry:
    if name not in ALGORITHMS:
        raise unknown_name("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]


def _build(name: str, config: Any, task: Task) -> Algorithm:
    entry = ALGORITHMS[name]
    if hasattr(config, "num_cells"):
        check_cells(config.num_cells, task)
    algorithm = entry.build(name, config, task)
    if not entry.passive:
        return algorithm
    return with_passive_archive(algorithm, task, num_cells=config.num_cells, front_length=config.front_length)
