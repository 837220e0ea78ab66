"""Settings by name: `paper` is the paper's, `small` about a hundredth of its evaluations, `quick` a first look."""

import json
from dataclasses import asdict, fields, replace
from typing import Any, NamedTuple

from moqd.algorithms import ALGORITHMS, Entry, batch_fields
from moqd.io.errors import unknown_name
from moqd.runs.config import AlgorithmConfig
from moqd.tasks import TASKS


class Preset(NamedTuple):
    """What a preset sets, for a task and an algorithm; all of it can be overridden."""

    task: dict[str, Any]
    algorithm: dict[str, Any]
    evaluations: int
    log_every: int


class _Scale(NamedTuple):
    episode_length: int
    batch: int
    """Offspring per iteration of MOME-P2C; other batches are in proportion."""
    iterations: int
    exact: bool
    """Whether the algorithm is the paper's to the letter, also where our defaults differ."""


PRESETS = {
    "quick": _Scale(episode_length=250, batch=64, iterations=50, exact=False),
    "small": _Scale(episode_length=250, batch=64, iterations=150, exact=False),
    "paper": _Scale(episode_length=1000, batch=256, iterations=4000, exact=True),
}
LETTER = {"center_rewards": True, "standardise_obs": False}
"""Where our defaults differ from the paper (docs/deviations.md)."""


def changed_options(algorithm: AlgorithmConfig) -> dict[str, Any]:
    """Of the options of an algorithm, those that are not its defaults in the preset that is nearest to them."""
    if algorithm.name not in ALGORITHMS:
        return {}
    entry = ALGORITHMS[algorithm.name]
    usual = [entry.config, replace(entry.config, **entry.for_vectors)]
    usual += [replace(entry.config, **_options(scale, entry)) for scale in PRESETS.values()]
    usual = [json.loads(json.dumps(asdict(one))) for one in usual]
    options = (usual[0] | algorithm.options).items()  # an option that is not recorded has its default
    found = [{name: value for name, value in options if name in one and value != one[name]} for one in usual]
    return min(found, key=len)


def preset_for(name: str, task: str, algorithm: str) -> Preset:
    """The settings of a preset for a task and an algorithm, by their names."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    scale, entry = PRESETS[name], ALGORITHMS[algorithm]
    config, options = entry.config, _options(scale, entry)
    batch = sum(options[field] for field in batch_fields(config))
    has_episodes = "episode_length" in {field.name for field in fields(TASKS[task].config)}
    return Preset(
        task={"episode_length": scale.episode_length} if has_episodes else {},
        algorithm=options,
        evaluations=scale.batch * scale.iterations,
        log_every=max(1, round(10 * scale.batch / batch)),  # a row for as many evaluations with every algorithm
    )


def iterations_for(evaluations: int, batch: int) -> int:
    """How many iterations a budget is; the first, random batch comes on top, so at most one batch is too many."""
    return evaluations // batch


def _options(scale: _Scale, entry: Entry) -> dict[str, Any]:
    config = entry.config
    known = set() if entry.is_ours else {field.name for field in fields(config)}
    size = PRESETS["small" if entry.is_ours else "paper"].batch  # for which the defaults are made
    batches = {field: getattr(config, field) * scale.batch // size for field in batch_fields(config)}
    return batches | {field: value for field, value in LETTER.items() if scale.exact and field in known}
