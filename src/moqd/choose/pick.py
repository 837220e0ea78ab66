"""Choosing one solution from an archive by a preference, limits, and a feature.

Objectives are scaled to [0, 1] over the global front of the archive, so that a preference means the same in any units.
The explorer's page chooses by the same rules (choose.js) with the same operations, so that both agree to the last bit;
a test checks it.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from moqd.core.metrics import non_dominated
from moqd.core.types import Genotype
from moqd.io.errors import InputError, known_name, listed, unknown_name
from moqd.io.lazy import later
from moqd.io.options import checked_seed
from moqd.runs.folder import Run, checked_run
from moqd.runs.table import Column, Solutions, columns_of, told_apart
from moqd.tasks import FunctionTask, Replay, Task
from moqd.tasks.evaluate import Evaluator
from moqd.tasks.policies import PolicyTask

RULES = {
    "weighted": "maximises the weighted sum of the scaled objectives",
    "achievement": "minimises the largest weighted distance of a scaled objective from its best value (Chebyshev); it "
    "also finds trade-offs in concave parts of the front",
    "knee": "the trade-off that would be missed most: the utility that is lost without it, averaged over all "
    "preferences (so yours does not matter); solutions that are best in an objective come last",
}
"""The rules by which a solution can be chosen."""
AUGMENTATION = 1e-3
"""The weight of the sum of all distances relative to the largest one, so that no objective is wasted on ties."""
MOST_WEIGHTS = 300
"""Approximate number of preferences that the rule `knee` averages over."""
Objectives = Float[np.ndarray, "solutions objectives"]
Values = Float[np.ndarray, "solutions"]
RELATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
"""Those of limits; of a choice only the two that need no order."""
RELATION = rf"\s*({'|'.join(RELATIONS)})\s*(.+)"


class Limit(NamedTuple):
    """What an objective, feature, constraint or parameter must be, in the user's units."""

    name: str
    """If several have it, the first of these; the others are called as in tables: "speed (feature)"."""
    relation: str
    """One of `RELATIONS`."""
    value: float | str
    """A number; of a choice, the text of an option."""

    def __str__(self) -> str:
        return f"{self.name}{self.relation}{self.value}"


class Scale(NamedTuple):
    """The smallest and largest value of each (maximised) objective on the global front."""

    low: Float[np.ndarray, "objectives"]
    high: Float[np.ndarray, "objectives"]

    def scaled(self, fitness: Objectives) -> Objectives:
        extent = self.high - self.low
        return (fitness - self.low) / np.where(extent > 0, extent, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """One solution of an archive."""

    task: Task
    cell: int
    place: int
    """Its place in the front of the cell."""
    objectives: Mapping[str, float]
    """In the user's units."""
    features: Mapping[str, float]
    preference: tuple[float, ...]
    """The trade-off that it was made for; empty if it was made for none."""
    genotype: Genotype
    rule: str = ""
    """The rule that chose it; `value` is its value by that rule."""
    value: float = math.nan
    constraints: Mapping[str, float] = field(default_factory=dict)
    """The value of each constraint, at most 0; empty if the task has none."""

    def __repr__(self) -> str:
        short = {name: f"{one:.4g}" if isinstance(one, float) else repr(one) for name, one in self.named.items()}
        named = listed([f"{name}={text}" for name, text in short.items()], most=20)
        policy = f"; policy {self.genotype!r}" if isinstance(self.task, PolicyTask) else ""
        return f"Solution({self.task.name}, cell {self.cell}: {named}{policy})"

    def _repr_html_(self) -> str:
        return later("moqd.plots.notebook", "solution_html")(self)

    @property
    def named(self) -> dict[str, Any]:
        """Objectives, features, constraints and, if there are any, parameters, by the headers of `run.columns()`."""
        parts = {"objective": self.objectives, "feature": self.features, "constraint": self.constraints}
        if self.task.space is not None:
            parts["parameter"] = self.parameters
        found: dict[str, Any] = {}
        for kind, values in parts.items():
            found |= zip(told_apart(tuple(values), {"cell", *found}, kind), values.values(), strict=True)
        return found

    @cached_property
    def _apply(self) -> Callable[[Any], Any]:
        policy = self.task.policy
        if policy is None:
            raise InputError(f"solutions of task {self.task.name!r} are not policies; see its parameters instead.")
        genotype = jax.tree.map(jnp.asarray, self.genotype)
        return jax.jit(lambda obs: policy.apply(genotype, obs))

    def policy(self, observation: ArrayLike) -> Float[np.ndarray, "*batch act"]:
        """The action for an observation, or the actions for a batch of them."""
        return np.asarray(self._apply(jnp.asarray(observation, jnp.float32)))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """For a task of plain parameters, each value by its name, in the user's units."""
        if not isinstance(self.task, FunctionTask):
            raise InputError(f"solutions of task {self.task.name!r} are not plain parameters; use its genotype.")
        return self.task.named_parameters(self.genotype)

    def replay(self) -> Replay:
        """Its episode, to be drawn."""
        return self.task.replay(self.genotype)


class Choice(NamedTuple):
    """The solution chosen from an archive."""

    row: int
    """Its row in `run.solutions()`."""
    value: float
    """Its value by the rule."""
    candidates: Int[np.ndarray, "candidates"]
    """The rows that it was chosen from: those within all limits, and in the cell if one was asked for."""


def pick(
    run: Run,
    preference: ArrayLike | None = None,
    *,
    feature: ArrayLike | None = None,
    limits: Sequence[str | tuple[str, str, Any]] = (),
    rule: str = "weighted",
) -> Solution:
    """The solution of a run that suits a preference best.

    `preference` has a weight for each objective; by default, all count the same. A limit is a string such as
    "energy>=-1.5" or "material==steel": an objective, feature, constraint or parameter (the first of these that has the
    name; "speed (feature)" names another), one of <=, >=, <, >, == and !=, and a value in the user's units. With
    `feature`, only the cell of that feature is considered, or the nearest cell that has a solution within the limits.
    """
    solutions = checked_run(run).solutions()
    choice = choose(run, solutions, preference, feature=feature, limits=limits, rule=rule)
    return solution_of(run, solutions, choice.row, rule, choice.value)


def choose(
    run: Run,
    solutions: Solutions,
    preference: ArrayLike | None = None,
    *,
    feature: ArrayLike | None = None,
    limits: Sequence[str | tuple[str, str, Any]] = (),
    rule: str = "weighted",
) -> Choice:
    """Like `pick`, but returns the row and the candidates that it was chosen from."""
    task = run.task
    known_name("rule", rule, RULES)
    weights = weights_of(task, preference)
    if len(solutions.cell) == 0:
        raise InputError("the archive is empty; there is nothing to choose from.")
    candidates = _within(columns_of(task, solutions), limits)
    if feature is not None:
        candidates = _in_nearest_cell(run, solutions, candidates, feature)
    fitness = solutions.objectives.astype(float) * task.direction
    scaled = scale_of(fitness).scaled(fitness)[candidates]
    value = values_by(rule, scaled, weights)
    best = best_of(value, scaled)
    return Choice(int(candidates[best]), float(value[best]), candidates)


def scale_of(fitness: Objectives) -> Scale:
    """The range of the global front; if the front is constant in an objective, that of all solutions."""
    if len(fitness) == 0:
        return Scale(np.zeros(fitness.shape[1]), np.ones(fitness.shape[1]))
    front = fitness[global_front_rows(fitness)]
    low, high = front.min(axis=0), front.max(axis=0)
    return Scale(np.where(low < high, low, fitness.min(axis=0)), high)


def global_front_rows(fitness: Objectives) -> Int[np.ndarray, "_"]:
    """The rows that no other dominates."""
    return np.flatnonzero(non_dominated(fitness))


def ends_of_front(task: Task, solutions: Solutions) -> dict[str, int]:
    """For each objective the row that is best in it; of equals, the one with the largest sum of objectives."""
    fitness = solutions.objectives.astype(float) * task.direction
    front = global_front_rows(fitness)
    ends = {}
    for i, name in enumerate(task.objective_names if len(front) else ()):
        ends[name] = int(max(front, key=lambda row: (fitness[row, i], fitness[row].sum())))
    return ends


def values_by(rule: str, scaled: Objectives, weights: Float[np.ndarray, "objectives"]) -> Values:
    """The value of each solution by a rule; higher is better."""
    if rule == "weighted":
        return _sum(scaled * weights)
    if rule == "achievement":
        regret = weights * (1.0 - scaled)
        return -(np.max(regret, axis=1) + AUGMENTATION * _sum(regret))
    return _marginal_utility(scaled)


def best_of(value: Float[np.ndarray, "solutions"], scaled: Objectives) -> int:
    """The first of the largest values; of equals, the one with the largest sum of scaled objectives."""
    equals = np.nonzero(value == np.max(value))[0]
    return int(equals[np.argmax(_sum(scaled[equals]))])


def _marginal_utility(scaled: Objectives) -> Float[np.ndarray, "solutions"]:
    """The utility that is lost without a solution, as a mean over an even lattice of preferences; minus 1 for those
    that are best in an objective, which would be missed in any case and are not trade-offs.

    Branke, Deb, Dierolf & Osswald, "Finding knees in multi-objective optimization" (2004).
    """
    value = np.zeros(len(scaled))
    lattice = simplex_lattice(scaled.shape[1])
    for weights in lattice:
        utility = _sum(scaled * weights)
        best = int(np.argmax(utility))
        others = np.delete(utility, best)
        value[best] += utility[best] - np.max(others) if len(others) else 1.0
    extreme = np.any(scaled == np.max(scaled, axis=0), axis=1)
    return value / len(lattice) - np.where(extreme, 1.0, 0.0)


def simplex_lattice(num_objectives: int) -> Float[np.ndarray, "weights objectives"]:
    """Preferences in even steps, as fine as `MOST_WEIGHTS` allows."""
    steps = 1
    while math.comb(steps + num_objectives, num_objectives - 1) <= MOST_WEIGHTS and steps < 100:
        steps += 1
    rows = []
    for bars in combinations(range(steps + num_objectives - 1), num_objectives - 1):
        edges = (-1, *bars, steps + num_objectives - 1)
        rows.append([after - before - 1 for before, after in pairwise(edges)])
    return np.asarray(rows, float) / steps


def _sum(rows: Objectives) -> Float[np.ndarray, "solutions"]:
    """From the first objective to the last, so that the page's sums are the same to the last bit."""
    total = np.zeros(len(rows))
    for column in rows.T:
        total = total + column
    return total


def _within(columns: Sequence[Column], limits: Sequence[str | tuple[str, str, Any]]) -> Int[np.ndarray, "_"]:
    """The rows that are within all limits."""
    if isinstance(limits, str):
        raise InputError(f"limits is {limits!r}; give a list, such as [{limits!r}].")
    named = {column.header: column for column in columns}
    for column in columns:
        named.setdefault(column.name, column)
    checked = [_checked(limit, named) for limit in limits]
    keeps = np.ones(len(columns[0].numbers), bool)
    for limit in checked:
        keeps &= _is_within(named[limit.name], limit)
    if not keeps.any():
        limited = {limit.name: _range(limit.name, named[limit.name]) for limit in checked}
        within = " and ".join(map(str, checked))
        raise InputError(
            f"no solution is within {within}; in the archive {', '.join(limited.values())}: relax a limit."
        )
    return np.flatnonzero(keeps)


def _is_within(column: Column, limit: Limit) -> Bool[np.ndarray, "solutions"]:
    relation, numbers = RELATIONS[limit.relation], column.numbers
    if column.options:
        return np.array([relation(str(value), limit.value) for value in column.values])
    if limit.relation in ("==", "!="):  # as exactly as the archive knows it
        with np.errstate(over="ignore"):
            return np.asarray(relation(numbers, np.asarray(limit.value, float).astype(numbers.dtype)))
    return np.asarray(relation(numbers.astype(float), limit.value))


def _range(name: str, column: Column) -> str:
    known = column.values[np.isfinite(column.numbers)]
    if column.options:
        return f"{name} is {' or '.join(sorted(set(map(str, known))))}"
    return f"{name} ranges from {known.min():g} to {known.max():g}" if len(known) else f"{name} is not known"


def _parsed(text: str, named: Mapping[str, Column]) -> Limit | None:
    """A limit such as "energy>=-1.5"; the name, which may hold a relation itself, is the longest that is known."""
    for name in sorted(named, key=len, reverse=True):
        if text.startswith(name) and (found := re.fullmatch(RELATION, text[len(name) :], re.DOTALL)):
            return Limit(name, found[1], found[2])
    found = re.fullmatch(rf"([^\d\s.+-].*?){RELATION}", text, re.DOTALL)
    return None if found is None else Limit(*found.groups())


def _checked(given: str | tuple[str, str, Any], named: Mapping[str, Column]) -> Limit:
    """The limit, with a value of the kind that is limited."""
    limit = _parsed(given.strip(), named) if isinstance(given, str) else Limit(*given)
    if limit is not None and limit.name not in named:
        raise unknown_name("objective, feature, constraint or parameter", limit.name, named, of="a limit")
    if limit is not None and limit.relation in RELATIONS:
        if options := list(map(str, named[limit.name].options)):
            if limit.relation not in ("==", "!="):
                raise InputError(f"invalid limit {str(limit)!r}: {limit.name} is a choice; use == or !=.")
            return limit._replace(value=known_name(f"option of {limit.name}", str(limit.value), options))
        with suppress(ValueError):
            if math.isfinite(value := float(limit.value)):
                return limit._replace(value=value)
    wanted = f"a name, one of {', '.join(RELATIONS)}, and a finite number or an option"
    raise InputError(f'invalid limit {str(limit or given)!r}: give {wanted}, in quotes: "{next(iter(named))}>=1.5".')


def weights_of(task: Task, preference: ArrayLike | None) -> Float[np.ndarray, "objectives"]:
    """The preference, scaled to sum to 1; all objectives count equally by default."""
    if preference is None:
        return np.full(task.num_objectives, 1 / task.num_objectives)
    weights = _vector(preference, task.num_objectives)
    if weights is None or np.any(weights < 0) or not np.sum(weights) > 0:
        raise InputError(
            f"preference is {preference!r}; give {task.num_objectives} weights that are not negative and not all 0, "
            f"for {', '.join(task.objective_names)}."
        )
    return weights / _sum(weights[None])[0]


def _in_nearest_cell(
    run: Run, solutions: Solutions, candidates: Int[np.ndarray, "candidates"], feature: ArrayLike
) -> Int[np.ndarray, "_"]:
    """The candidates in the cell of the feature, or in the nearest cell that has any."""
    wanted = feature_asked_for(run.task, feature)
    lower, upper = np.asarray(run.archive.feature_bounds, float)
    centroid = np.asarray(run.archive.centroid, float)
    distance = np.sum(((np.clip(wanted, lower, upper) - centroid) / (upper - lower)) ** 2, axis=1)
    cells = np.unique(solutions.cell[candidates])
    nearest = cells[np.argmin(distance[cells])]
    return candidates[solutions.cell[candidates] == nearest]


def feature_asked_for(task: Task, feature: ArrayLike) -> Float[np.ndarray, "features"]:
    """A number for each feature."""
    wanted = _vector(feature, task.num_features)
    if wanted is None:
        names = ", ".join(task.feature_names) or "a task that has none"
        raise InputError(f"feature is {feature!r}; give {task.num_features} numbers, for {names}.")
    return wanted


def _vector(given: ArrayLike, size: int) -> Float[np.ndarray, "_"] | None:
    """What was given as an array, if it is so many finite numbers."""
    try:
        numbers = np.asarray(given, float)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.shape == (size,) and np.all(np.isfinite(numbers)) else None


def solution_of(run: Run, solutions: Solutions, index: int, rule: str = "", value: float = math.nan) -> Solution:
    """A row of `run.solutions()` as a solution."""
    task, cell = run.task, int(solutions.cell[index])
    first = int(np.searchsorted(solutions.cell, cell))
    places = np.nonzero(np.asarray(run.archive.valid)[cell])[0]

    def named(names: Sequence[str], values: np.ndarray | None) -> dict[str, float]:
        return {} if values is None else dict(zip(names, map(float, values[index]), strict=True))

    return Solution(
        task=task,
        cell=cell,
        place=int(places[index - first]),
        objectives=named(task.objective_names, solutions.objectives),
        features=named(task.feature_names, solutions.features),
        preference=tuple(map(float, solutions.preference[index])) if run.has_preferences else (),
        genotype=jax.tree.map(lambda leaf: leaf[index], solutions.genotype),
        rule=rule,
        value=value,
        constraints=named(task.constraint_names, solutions.constraints),
    )


def reevaluated(solution: Solution, episodes: int, seed: int = 0) -> dict[str, Float[np.ndarray, "episodes"]]:
    """Each objective and feature of a solution over `episodes` new evaluations, from random initial states if the task
    has any; NaN where one failed. A feature with the name of an objective is called "NAME (feature)"."""
    task = solution.task.resampled(1)
    genotype = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], episodes, axis=0), solution.genotype)
    evaluation = Evaluator(task)(jax.random.key(checked_seed(seed)), genotype)
    valid = np.asarray(evaluation.valid)[:, None]
    columns = np.concatenate([np.asarray(evaluation.fitness) * task.direction, np.asarray(evaluation.feature)], axis=1)
    names = (*task.objective_names, *told_apart(task.feature_names, task.objective_names, "feature"))
    return dict(zip(names, np.where(valid, columns, np.nan).T, strict=True))


def varies(task: Task) -> bool:
    """Whether episodes of the task can start from random initial states."""
    return task.policy is not None and task.resampled(1) is not task


def neighbours(
    solutions: Solutions, choice: Choice, direction: Float[np.ndarray, "objectives"], number: int = 4
) -> list[int]:
    """The non-dominated candidates that are nearest to the chosen one in scaled objectives."""
    fitness = solutions.objectives.astype(float) * direction
    front = global_front_rows(fitness[choice.candidates])
    others = [int(i) for i in choice.candidates[front] if i != choice.row]
    scaled = scale_of(fitness).scaled(fitness)
    return sorted(others, key=lambda i: float(np.sum((scaled[i] - scaled[choice.row]) ** 2)))[:number]
