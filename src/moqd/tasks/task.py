"""The Task contract: what an algorithm and a run need to know of a problem."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from moqd.core.networks import Policy
from moqd.core.types import Evaluation, Genes, Genotype, Key, Transition
from moqd.io.errors import InputError, known_name, listed
from moqd.io.lazy import later
from moqd.tasks.checks import numbers, require, require_extent
from moqd.tasks.parameters import Space


class Replay(NamedTuple):
    """An episode to look at, from the first pose to the last. Every shape is a capsule; a sphere has no length."""

    time: Float[np.ndarray, "frames"]
    """In seconds."""
    position: Float[np.ndarray, "frames bodies 3"]
    rotation: Float[np.ndarray, "frames bodies 4"]
    """Quaternions (w, x, y, z)."""
    body_names: tuple[str, ...]
    shape_body: Int[np.ndarray, "shapes"]
    """The body that a shape moves with."""
    shape_start: Float[np.ndarray, "shapes 3"]
    """Where the capsule's axis starts, in the frame of its body."""
    shape_end: Float[np.ndarray, "shapes 3"]
    shape_radius: Float[np.ndarray, "shapes"]
    reward: Float[np.ndarray, "steps objectives"]
    """Of each step from a frame to the next, in the user's direction."""
    contact: Bool[np.ndarray, "steps features"]
    """Which feet touch the ground after the step."""


class Frames(NamedTuple):
    """Pictures of a solution, one after the other."""

    images: Sequence[UInt8[np.ndarray, "height width 3"]]
    seconds: float = 0.05
    """Between two of them."""


Rendering: TypeAlias = str | Frames
"""SVG or HTML, or pictures."""


class _Unknown(tuple[float, float]):
    def __reduce__(self) -> str:
        return "UNKNOWN"  # in another process it is that one again


UNKNOWN = _Unknown((float("nan"), float("nan")))
"""The bounds of a feature that nobody knows yet."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Task(ABC):
    """A problem with several objectives and a feature space.

    Inside, every objective is maximised; what is given and shown is in the user's own units and direction.
    """

    name: str
    objective_names: Sequence[str]
    minimised: Sequence[str] = ()
    """The objectives of which less is better."""
    feature_names: Sequence[str] = ()
    """Without any, the archive has one cell."""
    feature_bounds: Sequence[tuple[float, float]] = ()
    """(lowest, highest) of each feature: the space that the cells divide. If not given: `moqd.run` learns them."""
    reference_point: Sequence[float] | None = None
    """Where hypervolume is measured from, in the user's units; None: fixed from the first batch of a run."""
    units: Mapping[str, str] = field(default_factory=dict)
    """The unit of an objective, feature, constraint or parameter by its name, to be shown: {"weight": "kg"}."""
    constraint_names: Sequence[str] = ()
    """Constraints, of which `evaluate` gives the violation; a solution is feasible if that is 0."""
    traceable: bool = True
    """Whether `evaluate` can be compiled by JAX; if not, it runs on the host."""
    options: Mapping[str, Any] | None = field(default=None, repr=False)
    """What `make_task` was given, which makes the task again; None for a task of the user's own."""

    space = cast(Space | None, None)  # not a field: only tasks of parameters have one
    """Where solutions are plain parameters, these."""
    uses_devices: ClassVar[bool] = False
    """Whether `evaluate` spreads its batch over the local devices."""

    @property
    def genes(self) -> Genes | None:
        """What genotypes are made of where they are plain vectors in the unit cube; None for unbounded pytrees."""
        return None

    @property
    def genotype_bounds(self) -> tuple[float, float] | None:
        """The interval in which variation keeps every gene; None: unbounded."""
        return None if self.genes is None else (0.0, 1.0)

    @property
    def fused(self) -> bool:
        """Whether `evaluate` is elementwise enough for the fusion of `moqd.core.devices`."""
        return False

    @abstractmethod
    def init_genotype(self, key: Key, num_genotypes: int) -> Genotype:
        """A batch of random genotypes."""

    @abstractmethod
    def evaluate(self, key: Key, genotype: Genotype) -> Evaluation:
        """Fitness (maximised) and feature of a batch of genotypes."""

    def evaluate_fitness(self, key: Key, genotype: Genotype) -> Evaluation:
        """As `evaluate`, without transitions: for algorithms that need none, which then do not pay for them."""
        return self.evaluate(key, genotype)._replace(transitions=None)

    def explore(self, key: Key, genotype: Genotype, noise: Float[Array, "batch act"]) -> Evaluation:
        """As `evaluate`, with Gaussian noise of these standard deviations added to the actions of each policy.

        A transition's action is the one with the noise, before the environment limits it to [-1, 1].
        """
        raise InputError(
            f"the policies of task {self.name!r} cannot act with noise; give it a method explore(key, genotype, noise)."
        )

    @property
    def num_resamples(self) -> int | None:
        """Over how many evaluations each solution is averaged; None: it is evaluated once."""
        return getattr(self, "resamples", None)

    @property
    def is_uncertain(self) -> bool:
        """Whether another evaluation of the same solution may say something else."""
        return self.num_resamples is not None

    def resampled(self, resamples: int) -> "Task":
        """The same task, with each solution averaged over so many evaluations; itself, if it knows no such thing."""
        known = any(field.name == "resamples" for field in fields(self))
        return replace(self, resamples=resamples) if known else self  # type: ignore[call-arg]

    @property
    def policy(self) -> Policy | None:
        """What the genotypes are when they are policies; None for plain vectors."""
        return None

    def replay(self, genotype: Genotype) -> Replay:
        """The episode of one policy, to be drawn."""
        raise InputError(f"task {self.name!r} cannot be replayed: its solutions are not policies of a robot.")

    def replays(self, genotype: Genotype) -> Iterator[Replay]:
        """The episodes of a batch of policies."""
        number = jax.tree.leaves(genotype)[0].shape[0]
        return (self.replay(jax.tree.map(lambda leaf, i=i: leaf[i], genotype)) for i in range(number))

    def render(self, genotype: Genotype) -> Rendering | None:
        """One solution to look at, where there is no replay: SVG or HTML as text, or frames; None: nothing to show.

        To be overridden. The page shows text without running what may be scripts in it.
        """
        return None

    @property
    def has_feature_bounds(self) -> bool:
        """Whether all of them are known, so that the feature space can be divided into cells."""
        return UNKNOWN not in self.feature_bounds

    @property
    def feature_ranges(self) -> dict[str, str]:
        """The bounds of each feature as text."""
        named = dict(zip(self.feature_names, self.feature_bounds, strict=True))
        return {name: "(learned by a run)" if e == UNKNOWN else f"{e[0]:g} to {e[1]:g}" for name, e in named.items()}

    def within(self, feature_bounds: Sequence[Sequence[float]]) -> "Task":
        """The same task, with these bounds for the features whose bounds are not known."""
        task = copy(self)  # with its workers, if it has any
        pairs = zip(self.feature_bounds, feature_bounds, strict=True)
        known = tuple((float(new[0]), float(new[1])) if old == UNKNOWN else old for old, new in pairs)
        object.__setattr__(task, "feature_bounds", known)
        Task.__post_init__(task)
        return task

    def __post_init__(self) -> None:
        for name in ("objective_names", "minimised", "feature_names", "feature_bounds", "constraint_names"):
            value = () if getattr(self, name) is None else getattr(self, name)
            require(isinstance(value, Sequence) and not isinstance(value, str), name, value, "a list")
            object.__setattr__(self, name, tuple(tuple(v) if isinstance(v, list) else v for v in value))
        if not self.objective_names:
            raise InputError("objective_names is empty; name at least one objective.")
        for name in ("objective_names", "feature_names"):
            names = getattr(self, name)
            require(len(set(names)) == len(names), name, names, "every name only once")
        for name in self.minimised:
            known_name("objective", name, self.objective_names, of="minimised")
        sound = isinstance(self.units, Mapping) and all(isinstance(unit, str) for unit in self.units.values())
        require(sound, "units", self.units, 'a unit for each name, such as {"weight": "kg"}')
        named = (*self.objective_names, *self.feature_names, *self.constraint_names)
        for name in self.units:
            known = (*named, *getattr(self, "parameter_names", ()))
            known_name("objective, feature, constraint or parameter", name, known, of="units")
        bounds = self.feature_bounds or (UNKNOWN,) * self.num_features
        object.__setattr__(self, "feature_bounds", bounds)
        require(len(bounds) == self.num_features, "feature_bounds", bounds, "(lowest, highest) for each feature name")
        for name, entry in zip(self.feature_names, bounds, strict=True):
            if entry != UNKNOWN:
                require_extent(f"the range of feature {name!r}", entry)
        if self.reference_point is not None:
            point = numbers(self.reference_point)
            wanted = f"{self.num_objectives} finite numbers, one for each of {', '.join(self.objective_names)}"
            sound = point.shape == (self.num_objectives,) and bool(np.all(np.isfinite(point)))
            require(sound, "reference_point", self.reference_point, wanted)
            object.__setattr__(self, "reference_point", tuple(point.tolist()))

    def __repr__(self) -> str:
        objectives = [f"{name}{' (minimised)' * (name in self.minimised)}" for name in self.objective_names]
        parts = {"objectives": objectives, "features": self.feature_names, "constraints": self.constraint_names}
        parts["parameters"] = () if self.space is None else self.space.names
        shown = [f"{kind}: {listed(names)}" for kind, names in parts.items() if names]
        return f"{type(self).__name__}({self.name!r}; {'; '.join(shown)})"

    def _repr_html_(self) -> str:
        return later("moqd.plots.notebook", "task_html")(self)

    @property
    def num_objectives(self) -> int:
        return len(self.objective_names)

    @property
    def num_features(self) -> int:
        return len(self.feature_names)

    @property
    def direction(self) -> Float[np.ndarray, "objectives"]:
        """-1 for a minimised objective, 1 for others: turns fitness into the user's units, and back."""
        return np.array([-1.0 if name in self.minimised else 1.0 for name in self.objective_names], np.float32)

    def label(self, name: str) -> str:
        """A name with its unit, where it has one: "weight (kg)"."""
        return f"{name} ({self.units[name]})" if name in self.units else name


def averaged(evaluation: Evaluation, resamples: int) -> Evaluation:
    """An evaluation in which every solution has `resamples` rows one after the other, with one row for each.

    Fitness and feature are means, `std` is that of the fitness, a solution is valid if all of its rows are, and the
    transitions of all rows are kept.
    """

    def rows(array: Array) -> Array:
        return array.reshape(array.shape[0] // resamples, resamples, *array.shape[1:])

    return evaluation._replace(
        fitness=jnp.mean(rows(evaluation.fitness), axis=1),
        feature=jnp.mean(rows(evaluation.feature), axis=1),
        valid=jnp.all(rows(evaluation.valid), axis=1),
        std=jnp.std(rows(evaluation.fitness), axis=1),
        violation=None if evaluation.violation is None else jnp.mean(rows(evaluation.violation), axis=1),
        num_steps=None if evaluation.num_steps is None else jnp.sum(rows(evaluation.num_steps), axis=1),
        constraint=None if evaluation.constraint is None else jnp.mean(rows(evaluation.constraint), axis=1),
    )


def validated(task: Task, evaluation: Evaluation) -> Evaluation:
    """The evaluation with its shapes checked, `valid` False wherever a number is not finite, and no NaN passed on."""
    fitness, feature, valid, violation = evaluation.fitness, evaluation.feature, evaluation.valid, evaluation.violation
    batch = valid.shape[0]
    sizes = {"fitness": task.num_objectives, "feature": task.num_features, "constraint": len(task.constraint_names)}
    shapes = {name: (batch, size) for name, size in sizes.items()} | {"violation": (batch,)}
    for name, shape in shapes.items():
        value = getattr(evaluation, name)
        if value is not None and value.shape != shape:
            raise InputError(f"task {task.name!r} gave {name} of shape {value.shape}; {shape} is expected.")
    valid = valid & jnp.all(jnp.isfinite(fitness), axis=1) & jnp.all(jnp.isfinite(feature), axis=1)
    if violation is not None:
        valid &= jnp.isfinite(violation)
        violation = jnp.where(valid, jnp.maximum(violation, 0), 0).astype(jnp.float32)
    if evaluation.transitions is not None:
        valid &= _all_finite(evaluation.transitions).reshape(batch, -1).all(axis=1)
    return evaluation._replace(
        fitness=jnp.where(valid[:, None], fitness, 0).astype(jnp.float32),
        feature=jnp.where(valid[:, None], feature, 0).astype(jnp.float32),
        valid=valid,
        violation=violation,
    )


def _all_finite(transitions: Transition) -> Bool[Array, "episodes"]:
    """Whether every step of an episode that happened is of finite numbers."""
    columns = (transitions.obs, transitions.action, transitions.reward, transitions.next_obs)
    finite = jnp.stack([jnp.all(jnp.isfinite(column), axis=-1) for column in columns]).all(axis=0)
    return jnp.all(finite | ~transitions.valid, axis=1)
