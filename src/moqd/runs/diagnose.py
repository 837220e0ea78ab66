"""Why learning does or does not pay in a run: offspring of each source, made from its newest checkpoint and examined.

The run is only read. Offspring are asked for and evaluated as the run would, with keys of their own, and nothing is
told to the algorithm, so that every generation is made from the same state.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from moqd.algorithms import ALGORITHMS, Algorithm
from moqd.algorithms.algorithm import hypervolume_added
from moqd.algorithms.gradient import Experience, GradientConfig, critic_for_variation, scaled_rewards
from moqd.core.archive import add
from moqd.core.devices import on_one
from moqd.core.networks import MLP
from moqd.core.types import Evaluation, Genotype, Key, Offspring, Source, Transition
from moqd.io.options import checked_seed, whole_number
from moqd.rl.running_stats import RunningStats
from moqd.rl.td3 import Agent, value
from moqd.runs.compilation import use_cache
from moqd.runs.config import AlgorithmConfig
from moqd.runs.folder import Run
from moqd.runs.learned import load_learned, parts_of
from moqd.runs.loop import Purpose, key_for
from moqd.runs.timing import Measured, Measurement
from moqd.tasks import Task
from moqd.tasks.evaluate import Evaluator, evaluate_first
from moqd.tasks.task import validated

Row: TypeAlias = Mapping[str, Any]
"""A name or a number for each column; None: not known."""
Columns: TypeAlias = dict[str, np.ndarray]
"""What is known of offspring, a row each."""
Group: TypeAlias = tuple[str, str, Bool[np.ndarray, "rows"]]
"""The sources and the preferences of some offspring, and which they are."""

LEARNED = (Source.PG, Source.ACTOR)
"""The sources that cost training, and whose offspring are made for a preference."""
NUM_BINS = 5
ALL = "all"
FEWEST = 3
"""Offspring of which a rank correlation is worth telling."""
BEYOND = 0.1
"""The discount at the time limit from which on it is mentioned."""
WELL, MODERATELY = 0.7, 0.3
"""Rank correlations from which on the critic is said to rank policies so."""


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What offspring of a run are worth, and how well the run has learned; `moqd.diagnose` makes it.

    Every table is a sequence of rows, by the names of their columns. A table is empty if the run has nothing of its
    kind, and a value is None if there are too few offspring to tell.
    """

    algorithm: str
    task: str
    iteration: int
    """That of the checkpoint."""
    generations: int
    weight_of: str
    """The objective whose weight divides the preferences into bins; empty if the largest weight does."""
    offspring: Sequence[Row]
    """By source: how many were made, the share that would enter the archive, the mean hypervolume that each would add
    to its cell (relative to the ranges from the reference point to the best values), what one costs in seconds, and
    the hypervolume added per second."""
    gradients: Sequence[Row]
    """By preference: how many parents were improved, the share of children that are better than their parent for that
    preference, and the mean change of w.F, in standard deviations of the reward."""
    critics: Sequence[Row]
    """By source and by preference, in the same unit: the first critic's value w.Q1 of the first state and action, the
    discounted return w.R, the rank correlation of the two, the mean error (value minus return), and the mean discount
    at the time limit: the weight of what would follow it, which a value counts and a return does not."""
    falls: Sequence[Row]
    """By source and by preference: the number of policies, the share of their episodes that terminated, and the mean
    length of these episodes."""

    @property
    def tables(self) -> dict[str, Sequence[Row]]:
        """Those that are not empty, by name."""
        named = {name: getattr(self, name) for name in ("offspring", "gradients", "critics", "falls")}
        return {name: rows for name, rows in named.items() if rows}

    @property
    def readings(self) -> dict[str, str]:
        """What each table says, in a sentence."""
        say = {"offspring": _of_offspring, "gradients": _of_gradients, "critics": _of_critics, "falls": _of_falls}
        return {name: say[name](rows) for name, rows in self.tables.items()}

    def to_json(self) -> dict[str, Any]:
        """All of it, and the readings, as plain values."""
        return {**asdict(self), "readings": self.readings}

    def __repr__(self) -> str:
        what = f"{self.algorithm} on {self.task}, iteration {self.iteration}, {self.generations} generations"
        return "\n  ".join([f"Diagnosis({what}):", *self.readings.values()])


def diagnose(
    run: Run | str | os.PathLike[str],
    *,
    generations: int = 4,
    seed: int = 0,
    task: Task | None = None,
    algorithm: Algorithm | None = None,
) -> Diagnosis:
    """Makes some generations of offspring from the newest checkpoint of a run, and says what each source is worth.

    The run, or its folder, is only read. Times are those of all generations but the first, which compiles, so there
    are at least two. A task or an algorithm of the user's own has to be given again: files never hold code.
    """
    use_cache()
    generations, seed = whole_number("generations", generations, least=2), checked_seed(seed)
    learned = load_learned(run, task, algorithm)
    config, task, algorithm, checkpoint = learned
    iteration = checkpoint.facts["iteration"]
    root = key_for(jax.random.key(config.seed), jnp.int32(iteration), Purpose.DIAGNOSE)
    state = learned.state
    if getattr(state, "effort", None) is not None:  # so that every generation is one that learns
        state = state._replace(effort=None, losses=None)
    sampling = _Sampling(algorithm, task, state, checkpoint.facts["reference_point"])
    columns, seconds = sampling(jax.random.fold_in(root, seed), generations)
    groups = list(_groups(columns, task))
    by_learning = [group for group in groups if group[0] not in ("random", "ga")]
    return Diagnosis(
        algorithm=algorithm.name,
        task=task.name,
        iteration=iteration,
        generations=generations,
        weight_of=task.objective_names[0] if task.num_objectives == 2 else "",
        offspring=_offspring_rows(columns, seconds),
        gradients=_gradient_rows(columns, task) if "change" in columns else [],
        critics=_rows(_critic_row, columns, by_learning) if "predicted" in columns else [],
        falls=_rows(_fall_row, columns, groups) if "fell" in columns else [],
    )


class _Learned(NamedTuple):
    """What was learned, by an algorithm with policy gradients."""

    config: GradientConfig
    critics: list[MLP]
    """The first critic of each agent, which takes observations as they are."""
    stats: RunningStats
    """Of the rewards; of their sum where the algorithm maximises that."""

    @classmethod
    def of(cls, algorithm: Algorithm, state: Any) -> "_Learned | None":
        agents, experiences = parts_of(state, Agent), parts_of(state, Experience)
        if not isinstance(algorithm.config, GradientConfig) or len(agents) != 1 or len(experiences) != 1:
            return None
        (agent,), (experience,) = agents, experiences
        if experience.buffer.steps.aim is not None:  # what it learns depends on features that are aimed for
            return None
        biases = agent.critics[0].bias
        each = [agent]
        if biases.ndim == 3:  # several agents, stacked: agents, critics, outputs
            each = [jax.tree.map(lambda leaf, i=i: leaf[i], agent) for i in range(biases.shape[0])]
        critics = [critic_for_variation(one, experience) for one in each]
        return cls(algorithm.config, critics, experience.reward_stats)

    def weight(self, preference: Float[Array, "batch _"]) -> Float[Array, "batch _"]:
        """Of the rewards that are learned from."""
        return preference if self._same(preference) else jnp.ones_like(preference[:, :1])

    def rewards(self, values: Float[Array, "*rows _"]) -> Float[Array, "*rows _"]:
        """The rewards that are learned from, of those of the objectives."""
        return values if self._same(values) else jnp.sum(values, axis=-1, keepdims=True)

    def _same(self, values: Array) -> bool:
        return values.shape[-1] == self.stats.mean.shape[0]

    def predicted(self, transitions: Transition, weight: Float[Array, "batch _"]) -> Float[Array, "batch"]:
        """w.Q1 of the first state and action; by the critic of the objective, where each has its own."""
        outputs = self.critics[0][-1].bias.shape[0]
        asked = weight if outputs == weight.shape[1] else jnp.ones_like(weight[:, :1])
        one = partial(value, obs=transitions.obs[:, 0], action=transitions.action[:, 0], preference=asked)
        each = jnp.stack([one(jax.tree.map(lambda leaf: leaf[None], critic))[0] for critic in self.critics])
        chosen = jnp.argmax(weight, axis=1) if len(self.critics) > 1 else jnp.zeros(weight.shape[0], jnp.int32)
        return jnp.take_along_axis(each, chosen[None], axis=0)[0]

    def returned(self, transitions: Transition, weight: Float[Array, "batch _"]) -> Float[Array, "batch"]:
        """The discounted return w.R, of rewards as the critics learn them."""
        reward = scaled_rewards(self.stats, self.rewards(transitions.reward), transitions.terminated, self.config)
        weighed = jnp.einsum("bto,bo->bt", reward, weight)
        discount = self.config.discount ** jnp.arange(weighed.shape[1], dtype=jnp.float32)
        return jnp.sum(weighed * discount[None], axis=1, where=transitions.valid)


class _Sampling:
    """Makes offspring from a state and examines them."""

    def __init__(self, algorithm: Algorithm, task: Task, state: Any, reference_point: Sequence[float]) -> None:
        self._task, self._state, self._learned = task, state, _Learned.of(algorithm, state)
        self._evaluate = Evaluator(task, transitions=task.policy is not None)
        self._measure = Measurement(algorithm, task, _ask_of(algorithm), self._evaluate)
        self._ask_parents = None if self._learned is None else _asking_for_parents(algorithm, task)
        self._add = jax.jit(lambda archive, *batch: add(archive, *batch)[1])
        self._volume = jax.jit(
            lambda archive, evaluation: hypervolume_added(archive, task, evaluation, reference_point)
        )
        self._episodes = jax.jit(self._episodes_of)

    def __call__(self, key: Key, generations: int) -> tuple[Columns, list[Measured]]:
        """What is known of all offspring, and the generations that were timed."""
        key_parents, *keys = jax.random.split(key, 1 + generations)
        measured, found, parents = [], [], []
        for key_generation in keys:
            key_ask, key_evaluate, key_tell = jax.random.split(key_generation, 3)
            one = self._measure(key_ask, key_evaluate, key_tell, self._state)
            measured.append(one)
            found.append(jax.tree.map(np.asarray, self._examined(one.offspring, one.evaluation)))
            if self._ask_parents is not None:
                is_pg = np.asarray(one.offspring.source) == Source.PG
                genotype = self._ask_parents(key_ask, self._state).genotype
                parents.append(jax.tree.map(lambda leaf, is_pg=is_pg: np.asarray(leaf)[is_pg], genotype))
        columns = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        if parents and np.any(columns["source"] == Source.PG):
            genotype = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parents)
            columns["change"] = self._changes(key_parents, columns, genotype, batch=len(found[0]["source"]))
        return columns, measured[1:]

    def _examined(self, offspring: Offspring, evaluation: Evaluation) -> dict[str, Array]:
        archive = self._state.archive
        columns = {
            "source": offspring.source,
            "preference": offspring.preference,
            "valid": evaluation.valid,
            "fitness": evaluation.fitness,
            "entered": self._add(archive, offspring, evaluation._replace(transitions=None)),
            "hypervolume": self._volume(archive, evaluation._replace(transitions=None)),
        }
        if evaluation.transitions is not None:
            columns |= self._episodes(offspring.preference, evaluation.transitions)
        return columns

    def _episodes_of(self, preference: Float[Array, "batch _"], transitions: Transition) -> dict[str, Array]:
        """Of each policy, the means over its episodes."""
        batch, length = preference.shape[0], jnp.sum(transitions.valid, axis=1).astype(jnp.float32)
        fell = jnp.any(transitions.terminated & transitions.valid, axis=1)
        columns = {"fell": fell.astype(jnp.float32), "length": length}
        if (learned := self._learned) is not None:
            weight = jnp.repeat(learned.weight(preference), length.shape[0] // batch, axis=0)
            columns["predicted"] = learned.predicted(transitions, weight)
            columns["returned"] = learned.returned(transitions, weight)
            columns["beyond_end"] = jnp.where(fell, 0, learned.config.discount**length)
        return {name: jnp.mean(column.reshape(batch, -1), axis=1) for name, column in columns.items()}

    def _changes(self, key: Key, columns: Columns, parents: Genotype, batch: int) -> Float[np.ndarray, "rows"]:
        """How w.F differs between offspring of gradients and their parents; NaN for others, and where one failed."""
        assert self._learned is not None
        is_pg, found = columns["source"] == Source.PG, []
        number = int(np.sum(is_pg))
        for index, start in enumerate(range(0, number, batch)):
            rows = np.minimum(np.arange(start, start + batch), number - 1)
            genotype = jax.tree.map(lambda leaf, rows=rows: jnp.asarray(leaf[rows]), parents)
            evaluate = partial(self._evaluate, jax.random.fold_in(key, index))
            evaluation = evaluate_first(self._task, evaluate, on_one(genotype), min(batch, number - start))
            found.append(jax.tree.map(np.asarray, validated(self._task, evaluation._replace(transitions=None))))
        fitness = np.concatenate([one.fitness for one in found])[:number]
        valid = np.concatenate([one.valid for one in found])[:number] & columns["valid"][is_pg]
        gain = self._learned.rewards(jnp.asarray(columns["fitness"][is_pg] - fitness)) / self._learned.stats.scale[None]
        weight = self._learned.weight(jnp.asarray(columns["preference"][is_pg]))
        change = np.full(len(is_pg), np.nan)
        change[is_pg] = np.where(valid, np.sum(np.asarray(gain * weight), axis=1), np.nan)
        return change


def _ask_of(algorithm: Algorithm) -> Callable[[Key, Any], Offspring]:
    """As a run calls it."""
    ask = algorithm.ask if algorithm.uses_devices else jax.jit(algorithm.ask)
    return (lambda key, state: on_one(ask(key, state))) if algorithm.uses_devices else ask


def _asking_for_parents(algorithm: Algorithm, task: Task) -> Callable[[Key, Any], Offspring] | None:
    """`ask` of the same algorithm with gradient steps of length 0: in place of an offspring, it gives the parent."""
    if algorithm.name not in ALGORITHMS:
        return None
    still = replace(algorithm.config, policy_learning_rate=0.0, pg_steps=1)
    return _ask_of(AlgorithmConfig.of(algorithm.name, still).make(task))


def _bins(preference: Float[np.ndarray, "rows objectives"], task: Task) -> dict[str, Bool[np.ndarray, "rows"]]:
    """By the weight of the first of two objectives, else by the objective with the largest weight."""
    if task.num_objectives == 2:
        index = np.minimum((preference[:, 0] * NUM_BINS).astype(int), NUM_BINS - 1)
        names = [f"{i / NUM_BINS:g} to {(i + 1) / NUM_BINS:g}" for i in range(NUM_BINS)]
    else:
        index, names = np.argmax(preference, axis=1), list(task.objective_names)
    return {name: index == i for i, name in enumerate(names)}


def _groups(columns: Columns, task: Task) -> Iterator[Group]:
    """The offspring that did not fail, by source; then those that were made for a preference, by that."""
    source, valid = columns["source"], columns["valid"]
    sources = [one for one in Source if np.any(source == one)]
    yield from ((one.name.lower(), ALL, valid & (source == one)) for one in sources)
    learned = [one for one in sources if one in LEARNED]
    for name, rows in _bins(columns["preference"], task).items():
        yield " + ".join(one.name.lower() for one in learned), name, rows & valid & np.isin(source, learned)


def _rows(row: Callable[[Columns], Row], columns: Columns, groups: Sequence[Group]) -> list[Row]:
    """One for each group that is not empty."""
    return [
        {"source": source, "preference": preference, "number": int(np.sum(rows)), **row(_only(columns, rows))}
        for source, preference, rows in groups
        if np.any(rows)
    ]


def _only(columns: Columns, rows: Bool[np.ndarray, "rows"]) -> Columns:
    return {name: column[rows] for name, column in columns.items()}


def _offspring_rows(columns: Columns, measured: Sequence[Measured]) -> list[Row]:
    costs = _costs(measured)

    def row(one: Source) -> Row:
        some = _only(columns, columns["source"] == one)
        volume, seconds = float(np.mean(some["hypervolume"])), costs[one]
        return {
            "source": one.name.lower(),
            "number": len(some["source"]),
            "entered": float(np.mean(some["entered"])),
            "hypervolume": volume,
            "seconds": seconds,
            "hypervolume_per_second": volume / seconds,
        }

    return [row(one) for one in Source if np.any(columns["source"] == one)]


def _costs(measured: Sequence[Measured]) -> dict[Source, float]:
    """The seconds of one offspring of each source: variation, evaluation and addition, and training if it is learned.

    All of a batch share evaluation and addition, and those that are learned share the training. Of each part the
    fastest time counts, because other processes can only add to it.
    """
    sources = np.asarray(measured[-1].offspring.source)
    number = {one: int(np.sum(sources == one)) for one in Source}
    total = {name: min(one.parts[name] for one in measured) for name in measured[0].parts}
    gradient = total.get("policy_gradient_variation", 0.0) if number[Source.PG] else 0.0
    others = max(min(one.ask for one in measured) - gradient, 0.0)
    shared = (total["rollout"] + total.get("addition", 0.0)) / len(sources)
    learned = sum(number[one] for one in LEARNED)
    costs = {}
    for one in Source:
        costs[one] = shared + (total.get("training", 0.0) / learned if one in LEARNED and learned else 0.0)
        if one == Source.PG and number[one]:
            costs[one] += gradient / number[one]
        elif len(sources) > number[Source.PG]:
            costs[one] += others / (len(sources) - number[Source.PG])
    return costs


def _gradient_rows(columns: Columns, task: Task) -> list[Row]:
    known = ~np.isnan(columns["change"])
    bins = {ALL: known} | {name: known & rows for name, rows in _bins(columns["preference"], task).items()}
    return [
        {
            "preference": name,
            "number": int(np.sum(rows)),
            "improved": float(np.mean(columns["change"][rows] > 0)),
            "change": float(np.mean(columns["change"][rows])),
        }
        for name, rows in bins.items()
        if np.any(rows)
    ]


def _critic_row(some: Columns) -> Row:
    predicted, returned = some["predicted"].astype(float), some["returned"].astype(float)
    return {
        "rank_correlation": _rank_correlation(predicted, returned),
        "predicted": float(np.mean(predicted)),
        "returned": float(np.mean(returned)),
        "error": float(np.mean(predicted - returned)),
        "beyond_end": float(np.mean(some["beyond_end"])),
    }


def _fall_row(some: Columns) -> Row:
    return {"fell": float(np.mean(some["fell"])), "length": float(np.mean(some["length"]))}


def _rank_correlation(one: Float[np.ndarray, "rows"], other: Float[np.ndarray, "rows"]) -> float | None:
    """Spearman's; None if there are too few rows, or all are the same."""
    from scipy.stats import spearmanr  # here, because it takes its time

    if len(one) < FEWEST or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(spearmanr(one, other).statistic)


def _of_offspring(rows: Sequence[Row]) -> str:
    ga = [row for row in rows if row["source"] == "ga"]
    learned = [row for row in rows if row["source"] in ("pg", "actor")]
    if not any(row["hypervolume"] for row in rows):
        return "No offspring would add hypervolume: the run may have converged."
    if not ga or not learned:
        best = max(rows, key=lambda row: row["hypervolume_per_second"])
        return f"{best['entered']:.0%} of {best['source']} offspring would enter the archive."
    names = " and ".join(row["source"] for row in learned)
    if not _mean(ga, "hypervolume"):
        return f"Learning pays here: {names} offspring add hypervolume, and ga offspring add none."
    gain = _mean(learned, "hypervolume") / _mean(ga, "hypervolume")
    pace = gain * _mean(ga, "seconds") / _mean(learned, "seconds")
    pays = "pays here" if pace > 1 else "does not pay here"
    added = f"{names} offspring add {gain:.2g} times the hypervolume of ga per evaluation"
    return f"Learning {pays}: {added}, and {pace:.2g} times per second."


def _mean(rows: Sequence[Row], column: str) -> float:
    """Over the offspring of all of them."""
    return float(np.average([row[column] for row in rows], weights=[row["number"] for row in rows]))


def _of_gradients(rows: Sequence[Row]) -> str:
    every, *bins = rows
    helps = "Gradients improve policies" if every["change"] > 0 else "Gradients do not improve policies"
    worst = min(bins, key=lambda row: row["change"])
    least = f"; worst at preference {worst['preference']} ({worst['change']:+.2g})" if len(bins) > 1 else ""
    better = f"{every['improved']:.0%} of children are better than their parent for their preference"
    return f"{helps}: {better}, and the mean change is {every['change']:+.2g}{least}."


def _of_critics(rows: Sequence[Row]) -> str:
    by_source = [row for row in rows if row["preference"] == ALL]
    texts = []
    for row in by_source:
        rank, error = row["rank_correlation"], row["error"]
        well = "well" if (rank or 0) >= WELL else "moderately" if (rank or 0) >= MODERATELY else "poorly"
        ranks = "" if rank is None else f"ranks {row['source']} offspring {well} ({rank:.2f}) and "
        over = "overestimates" if error > 0 else "underestimates"
        texts.append(f"{ranks}{over} {'their' if ranks else row['source']} returns by {abs(error):.2g}")
    beyond = max(row["beyond_end"] for row in by_source)
    also = f"; it also counts what would follow the time limit, with a weight of {beyond:.2f}"
    return f"The critic {', and '.join(texts)}{also if beyond > BEYOND else ''}."


def _of_falls(rows: Sequence[Row]) -> str:
    by_source = [row for row in rows if row["preference"] == ALL]
    if not any(row["fell"] for row in by_source):
        return "No episode ends in a fall."
    shares = (f"{row['source']} {row['fell']:.0%}" for row in by_source)
    return f"Episodes that end in a fall: {', '.join(shares)}."
