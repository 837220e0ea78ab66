"""The solutions of an archive as named columns, for tables, for limits and for pandas."""

from collections.abc import Collection, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from moqd.core.types import Genotype
from moqd.io.extras import need
from moqd.tasks import Categorical, Task
from moqd.tasks.parameters import Bound, column_of

KINDS = ("feature", "objective", "constraint", "preference", "parameter")
"""Of columns, in the order in which a table has them."""


class Solutions(NamedTuple):
    """All solutions of an archive, a row each, with objectives in the user's units and direction."""

    cell: Int[np.ndarray, "solutions"]
    objectives: Float[np.ndarray, "solutions objectives"]
    features: Float[np.ndarray, "solutions features"]
    genotype: Genotype
    preference: Float[np.ndarray, "solutions objectives"]
    """The trade-off that each was made for; of no meaning unless `run.has_preferences`."""
    constraints: Float[np.ndarray, "solutions constraints"] | None = None
    """At most 0; NaN where they are not known. None if the task has no constraints."""


class Column(NamedTuple):
    """What the solutions are in one respect."""

    kind: str
    """"objective", "feature", "constraint" or "parameter"."""
    name: str
    header: str
    """The name; with its kind, as in "speed (feature)", where one before has the same."""
    numbers: np.ndarray
    """Of a choice the place of its option."""
    bound: Bound | None = None
    """Of a parameter."""

    @property
    def options(self) -> tuple[Any, ...]:
        """Those of a choice."""
        return self.bound.options if isinstance(self.bound, Categorical) else ()

    @property
    def values(self) -> np.ndarray:
        """Floats; ints for whole numbers, and the options themselves for choices."""
        return self.numbers if self.bound is None else column_of(self.bound, self.numbers)


def told_apart(names: Sequence[str], taken: Collection[str], kind: str) -> list[str]:
    """The names, where those that are already taken are marked by their kind: "speed (feature)"."""
    return [f"{name} ({kind})" if name in taken else name for name in names]


def columns_of(task: Task, solutions: Solutions) -> list[Column]:
    """Objectives, features, constraints and, if solutions are plain parameters, these."""
    parts: list[tuple[str, Sequence[str], np.ndarray, Sequence[Bound]]] = [
        ("objective", task.objective_names, solutions.objectives, ()),
        ("feature", task.feature_names, solutions.features, ()),
    ]
    if solutions.constraints is not None:
        parts.append(("constraint", task.constraint_names, solutions.constraints, ()))
    if (space := task.space) is not None:
        parts.append(("parameter", space.names, space.vector(solutions.genotype), space.bounds))
    found: list[Column] = []
    for kind, names, numbers, bounds in parts:
        headers = told_apart(names, {"cell", *(column.name for column in found)}, kind)
        found += map(Column, repeat(kind), names, headers, numbers.T, bounds or repeat(None))
    return found


def by_header(task: Task, solutions: Solutions, *, preferences: bool) -> dict[str, np.ndarray]:
    """The table: cells and all columns by their headers; `preferences` says whether solutions were made for any."""
    names, made_for = task.objective_names if preferences else (), solutions.preference.T
    columns = [
        *columns_of(task, solutions),
        *(Column("preference", name, f"preference {name}", made_for[i]) for i, name in enumerate(names)),
    ]
    return {"cell": solutions.cell} | {
        column.header: column.values for kind in KINDS for column in columns if column.kind == kind
    }


def frame_of(columns: Mapping[str, Sequence[Any] | np.ndarray]) -> Any:
    """A pandas.DataFrame with these columns."""
    need("pandas", "pandas", "a DataFrame")
    import pandas

    return pandas.DataFrame(dict(columns))
