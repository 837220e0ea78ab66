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

    label: str
    """What reports and figures call it."""
    look: tuple[int, str] | None = None
    """Colour (an index into `COLOURS` of `moqd.plots.style`) and line in figures, which no other entry has: dashed for
    another size of the same algorithm, dash-dotted for an ablation. None: what is left in a study."""
    passive: bool = False
    """Whether it has no archive of its own and gets a passive one, of its config's `num_cells` and `front_length`."""
    policies: bool = False
    """Whether it improves policies by their gradients, and so needs a task whose solutions are policies."""
    is_ours: bool = False
    """Whether it is of no paper: its batches are for a laptop, and the preset `paper` gives it larger ones and the
    paper's episodes, but none of its options."""
    for_vectors: Mapping[str, Any] = field(default_factory=dict)
    """Where the defaults differ for tasks of plain parameters, whose solutions are vectors within bounds."""

    def config_for(self, task: Any) -> Any:
        """The default config for a task: the paper's for policies, what suits functions for plain parameters."""
        return self.config if task.genes is None else replace(self.config, **self.for_vectors)


def _of(module: str, config: str, **changes: Any) -> Callable[[], Loaded]:
    """A module's function of the same name, and its config with these changes."""
    return loader(f"moqd.algorithms.{module}", module, config, **changes)


ELITES = {
    "ga_batch": 50,
    "variation": "sbx:0.7,iso-line:0.05,de:0.25",
    "iso_sigma": 0.05,
    "line_sigma": 0.5,
}
FOR_VECTORS = ELITES | {"crowding": True, "guided": True, "cell_selection": "gain"}
POPULATION = {
    "population": 100,
    "variation": "sbx:0.8,iso-line:0.1,de:0.1",
    "iso_sigma": 0.05,
    "line_sigma": 0.5,
}
SMALL = POPULATION | {"population": 50}
"""What suits plain parameters, by `python -m benchmarks design`."""


Look = tuple[int, str]


def _p2c(label: str, look: Look, summary: str, **changes: Any) -> Entry:
    return Entry(summary, _of("mome_p2c", "MomeP2CConfig", **changes), label, look, policies=True)


def _pga(label: str, look: Look, summary: str, **changes: Any) -> Entry:
    return Entry(summary, _of("pga_me", "PgaMeConfig", **changes), label, look, passive=True, policies=True)


def _dcrl(label: str, look: Look, summary: str, **changes: Any) -> Entry:
    return Entry(summary, _of("dcrl_me", "DcrlMeConfig", **changes), label, look, passive=True, policies=True)


def _population(label: str, look: Look, module: str, summary: str, vectors: Mapping[str, Any], **changes: Any) -> Entry:
    load = _of(module, "PopulationConfig", **changes)
    return Entry(summary, load, label, look, passive=True, for_vectors=vectors)


def _elites(label: str, look: Look, module: str, config: str, summary: str) -> Entry:
    return Entry(summary, _of(module, config), label, look, passive=True, for_vectors=ELITES)


def _ablation(number: int, label: str, summary: str, **changes: Any) -> Entry:
    return _p2c(label, (2 + number, "-."), f"mome-p2c: {summary}", **changes)


ABLATIONS = {
    "keep-pref": _ablation(0, "Keep-Pref", "gradients for the parent's preference", pg_preferences="parent"),
    "one-hot": _ablation(1, "One-Hot", "gradients aim for one objective each", pg_preferences="one-hot"),
    "no-actor": _ablation(2, "No-Actor", "without actor injection", pg_batch=128, actor_batch=0),
    "no-ga": _ablation(3, "No-GA", "without Iso+LineDD variation", pg_batch=128, ga_batch=0, actor_batch=128),
    "no-crowding": _ablation(4, "No-Crowding", "without crowding", crowding=False),
}
PLUS = {
    "ga_batch": 60,
    "pg_batch": 24,
    "actor_batch": 12,
    "critic_steps": 1800,
    "minibatch": 128,
    "critic_hidden_sizes": (128, 128),
    "pg_minibatch": 64,
    "pg_preferences": "adaptive",
    "after_fall": "costs",
    "learn_every": 0,
}
"""What makes MOME-P2C learn where it pays: docs/mome-p2c-plus.md says which part does what."""
MOME = _of("mome", "MomeConfig")
MOME_PGX = _of("mome_pgx", "MomePgxConfig")
MOME_DCRL = _of("mome_dcrl", "MomeDcrlConfig")
PG_MORL = _of("pg_morl", "PgMorlConfig")
MO_CMA_MAE = _of("mo_cma_mae", "MoCmaMaeConfig")

ALGORITHMS: dict[str, Entry] = {
    "mome-p2c": _p2c("MOME-P2C", (0, "-"), "preference-conditioned gradients and actor"),
    "mome-p2c-plus": replace(
        _p2c("MOME-P2C+", (0, "--"), "mome-p2c that learns when and what for it pays", **PLUS), is_ours=True
    ),
    "mome-pgx": Entry("policy gradients of each objective", MOME_PGX, "MOME-PGX", (1, "-"), policies=True),
    "mome-dcrl": Entry("mome-p2c for a feature, too", MOME_DCRL, "MOME-DCRL", (0, ":"), policies=True),
    "mome": Entry("MAP-Elites with a front in every cell", MOME, "MOME", (2, "-"), for_vectors=FOR_VECTORS),
    "mo-cma-mae": Entry("CMA-ES on the hypervolume of annealed fronts", MO_CMA_MAE, "MO-CMA-MAE", (6, "-")),
    "pga-me": _pga("PGA-ME", (3, "-"), "policy gradients of the sum of objectives"),
    "pga-me-128": _pga("PGA-ME-128", (3, "--"), "pga-me with as many elites as there are cells", elite_cells=128),
    "dcrl-me": _dcrl("DCRL-ME", (3, ":"), "gradients and actor for a feature, of the sum of objectives"),
    "dcg-me": _dcrl("DCG-ME", (4, ":"), "dcrl-me whose actor is only learned from", injection=False),
    "pg-morl": Entry("PPO on tasks chosen by prediction", PG_MORL, "PG-MORL", (6, "--"), passive=True, policies=True),
    "nsga2": _population("NSGA-II", (4, "-"), "nsga2", "non-dominated sorting and crowding", POPULATION),
    "nsga2-small": _population(
        "NSGA-II-small", (4, "--"), "nsga2", "nsga2 with a small population", SMALL, population=256
    ),
    "spea2": _population("SPEA2", (5, "-"), "spea2", "strength, density and truncation", POPULATION),
    "spea2-small": _population(
        "SPEA2-small", (5, "--"), "spea2", "spea2 with a small population", SMALL, population=256
    ),
    "mcx": _elites("MCX", (2, "--"), "mcx", "McxConfig", "one balanced elite in every cell, by T-DominO"),
    "move": _elites("MOVE", (1, ":"), "move", "MoveConfig", "elites of subsets of many objectives, by majority"),
    **{f"mome-p2c-{name}": entry for name, entry in ABLATIONS.items()},
}
"""To add one of moqd's own, add it here: nothing else knows it by its name."""
FOR_POLICIES, FOR_FUNCTIONS = "mome-p2c-plus", "mome"
"""What `moqd train` takes if no algorithm is named."""
