"""The designs that a run has evaluated on the host, and what came of each: so that none is evaluated twice.

A design is what a function is called with: where there are whole numbers or choices, many genotypes are one design.
What counts as a repeat depends only on the batches before, never on what is known besides (from the journal of a batch
that was interrupted, or from another run), so a resumed run is bit-for-bit identical to an uninterrupted one.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from moqd.core.types import Evaluation, Genotype, Key, Offspring
from moqd.io.errors import InputError, MissingFileError
from moqd.io.files import read_tensors, whole, write_tensors
from moqd.tasks import Categorical, FunctionTask, Task
from moqd.tasks.fingerprint import fingerprint
from moqd.tasks.function import Journal, Measured

EVALUATIONS = "evaluations.safetensors"
INITIAL, INHERITED = -1, -2
"""Instead of an iteration: told before the first batch; known from another run, but not told in this one yet."""
LEAST_ROWS = 1024


class Evaluations(NamedTuple):
    """Evaluations, a row each, in the order in which they were told."""

    function: bytes
    """The fingerprint of the function that was called; empty if it is not known."""
    parameters: Float[np.ndarray, "rows parameters"]
    """In the user's units; of a choice its index. NaN: of a batched call that failed as a whole, which any of its
    designs may have caused."""
    objectives: Float[np.ndarray, "rows objectives"]
    """In the user's direction; NaN where it failed."""
    features: Float[np.ndarray, "rows features"]
    constraints: Float[np.ndarray, "rows constraints"]
    iteration: Int[np.ndarray, "rows"]
    """In which it was told first, `INITIAL` or `INHERITED`."""

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self[1:]


COLUMNS = Evaluations._fields[1:]


class Designs(NamedTuple):
    """A batch of them."""

    parameters: Float[np.ndarray, "batch parameters"]
    keys: list[bytes]
    """What each is found by."""


class Ledger:
    """What a run knows of the designs of a task."""

    def __init__(self, task: FunctionTask) -> None:
        assert task.space is not None
        self.task, self._space = task, task.space
        options = [bound.options for bound in task.space.bounds if isinstance(bound, Categorical)]
        self._function = b"" if task.function is None else fingerprint(task.function, task.batched, options)
        self._columns = [np.zeros((0, size)) for size in _sizes(task)] + [np.zeros(0, np.int32)]
        self._number, self._num_told = 0, 0
        self._row: dict[bytes, int] = {}
        """Of a design, the newest."""
        self.num_calls = 0
        """Evaluations that were made in this run."""

    @property
    def is_complete(self) -> bool:
        """Whether there is no design that has not been told."""
        return self._num_told == self._space.num_designs

    @property
    def evaluations(self) -> Evaluations:
        return Evaluations(self._function, *(column[: self._number] for column in self._columns))

    def designs(self, genotype: Genotype) -> Designs:
        parameters = self._space.vector(genotype) + 0.0  # -0.0 is 0.0
        return Designs(parameters, _keys(parameters))

    def without_repeats(self, offspring: Offspring, further: Iterable[Offspring]) -> tuple[Offspring, Designs]:
        """The offspring, of which those that were told before, or stand earlier in the batch, give their places to what
        stands there in `further`, as soon as that is new."""
        designs = self.designs(offspring.genotype)
        seen: set[bytes] = set()
        places = self._repeats(designs.keys, range(len(designs.keys)), seen)
        if not places or self.is_complete:
            return offspring, designs
        rows: Offspring = jax.tree.map(np.array, offspring)
        for more in further:
            # Place for place, because an algorithm may know by its place how an offspring was made.
            still = self._repeats(self.designs(more.genotype).keys, places, seen)
            filled = sorted(set(places) - set(still))
            for row, other in zip(jax.tree.leaves(rows), jax.tree.leaves(more), strict=True):
                row[filled] = np.asarray(other)[filled]
            places = still
            if not places:
                break
        return rows, self.designs(rows.genotype)

    def _repeats(self, keys: Sequence[bytes], places: Iterable[int], seen: set[bytes]) -> list[int]:
        """The places whose designs were told or seen before; the others are seen now."""
        repeats: list[int] = []
        for place in places:
            if keys[place] in seen or self._is_told(keys[place]):
                repeats.append(place)
            else:
                seen.add(keys[place])
        return repeats

    def _is_told(self, key: bytes) -> bool:
        row = self._row.get(key)
        return row is not None and bool(self._columns[-1][row] > INHERITED)

    def evaluate(self, key: Key, designs: Designs, iteration: int, journal: Journal | None = None) -> Evaluation:
        """Only those of which nothing is known are evaluated."""
        measure = lambda rows: self.task.measure(key, designs.parameters[rows], journal, rows)  # noqa: E731
        return self.task.evaluation(self.measured(designs, iteration, measure))

    def measured(self, designs: Designs, iteration: int, measure: Callable[[list[int]], Measured]) -> Measured:
        """What is known of a batch; `measure` is asked for the rows of which nothing is. All of it is told then."""
        first: dict[bytes, int] = {}
        alike = [first.setdefault(key, i) for i, key in enumerate(designs.keys)]
        missing = [i for key, i in first.items() if key not in self._row]
        known = {i: self._row[key] for key, i in first.items() if key in self._row}
        inherited = [i for i in known if not self._is_told(designs.keys[i])]
        measured = Measured(*(np.full((len(alike), size), np.nan) for size in _sizes(self.task)[1:]))
        _put(measured, list(known), Measured(*(column[list(known.values())] for column in self._columns[1:4])))
        if missing:
            _put(measured, missing, measure(missing))
        for rows in filter(None, (inherited, missing)):
            parameters, keys = designs.parameters[rows], [designs.keys[i] for i in rows]
            self._add(parameters, keys, Measured(*(part[rows] for part in measured)), iteration)
        self.num_calls += len(missing)
        return Measured(*(part[alike] for part in measured))

    def inherit(self, other: Evaluations) -> None:
        """What another run of the same task knows: taken instead of a call. What failed there is tried here."""
        sound = np.all([np.isfinite(column).all(axis=1) for column in other.columns[:4]], axis=0)
        row = dict(zip(_keys(other.parameters[sound]), np.flatnonzero(sound), strict=True))  # each design once
        parameters, *measured = (column[list(row.values())] for column in other.columns[:4])
        self._add(parameters, list(row), Measured(*measured), INHERITED)

    def restore(self, known: Evaluations, iteration: int) -> None:
        """Goes on from the end of an iteration, with what was known then."""
        kept = known.iteration <= iteration
        self._columns = [column[kept] for column in known.columns]
        self._number = int(np.sum(kept))
        keys, told = _keys(self._columns[0]), self._columns[-1] > INHERITED
        inherited = {key for key, is_told in zip(keys, told, strict=True) if not is_told}
        self.num_calls = sum(key not in inherited for key, is_told in zip(keys, told, strict=True) if is_told)
        is_known = np.isfinite(self._columns[0]).all(axis=1)
        self._row = {keys[row]: int(row) for row in np.flatnonzero(is_known)}
        self._num_told = int(np.sum(is_known & told))
        if known.function != self._function:  # some of it was made by another
            self._function = b""

    def _add(self, parameters: np.ndarray, keys: Sequence[bytes], measured: Measured, iteration: int) -> None:
        """Designs that were not told before."""
        if self.task.batched and len(keys) > 1 and all(np.all(np.isnan(part)) for part in measured):
            parameters, keys = np.full_like(parameters, np.nan), ()  # nobody knows which of them it was
        start, end = self._number, self._number + len(parameters)
        if end > len(self._columns[0]):
            more = max(end, LEAST_ROWS)  # at least twice as many, so that no row is moved often
            spare = [np.zeros((more, *column.shape[1:]), column.dtype) for column in self._columns]
            self._columns = [np.concatenate(pair) for pair in zip(self._columns, spare, strict=True)]
        for column, part in zip(self._columns, (parameters, *measured, iteration), strict=True):
            column[start:end] = part
        self._number = end  # only now, so that an interrupt leaves whole rows
        self._row.update(zip(keys, range(start, end), strict=False))
        self._num_told += len(keys) if iteration > INHERITED else 0


def ledger_for(task: Task) -> Ledger | None:
    """None where another evaluation may say something else, or where designs are not plain parameters on the host."""
    if not isinstance(task, FunctionTask) or task.traceable or task.space is None:
        return None
    is_own = type(task).evaluate is not FunctionTask.evaluate  # which may do anything
    return None if is_own or task.noisy or task.resamples is not None else Ledger(task)


def write_evaluations(folder: Path, evaluations: Evaluations) -> None:
    function = {"function": np.frombuffer(evaluations.function, np.uint8)}
    arrays = function | dict(zip(COLUMNS, evaluations.columns, strict=True))
    write_tensors(folder / EVALUATIONS, {name: whole(array) for name, array in arrays.items()})


def read_evaluations(folder: Path, task: FunctionTask) -> Evaluations | None:
    """What a run has written; None if there is nothing (as of earlier versions) or, with a warning, nothing of use."""
    path = folder / EVALUATIONS
    try:
        arrays = read_tensors(path)
        rows = arrays["iteration"].shape[:1] if "iteration" in arrays else ()
        expected = [("float64", (*rows, size)) for size in _sizes(task)] + [("int32", rows)]
        found = [(str(arrays[name].dtype), arrays[name].shape) for name in COLUMNS if name in arrays]
        if found != expected or "function" not in arrays:
            raise InputError(f"{str(path)!r} does not fit the task.")
    except MissingFileError:
        return None
    except InputError as error:
        warnings.warn(f"{error} Designs that it knows may be evaluated again.", stacklevel=2)
        return None
    return Evaluations(arrays["function"].tobytes(), *(arrays[name] for name in COLUMNS))


def _sizes(task: FunctionTask) -> tuple[int, int, int, int]:
    """Of parameters, and of what is measured."""
    return len(task.parameter_names), task.num_objectives, task.num_features, len(task.constraint_names)


def _keys(parameters: Float[np.ndarray, "rows parameters"]) -> list[bytes]:
    """A digest of each row, which takes less memory than the row does."""
    width, content = parameters.shape[1] * parameters.itemsize, memoryview(parameters.tobytes())
    return [blake2b(content[i : i + width], digest_size=16).digest() for i in range(0, len(content), width)]


def _put(measured: Measured, rows: Sequence[int], new: Measured) -> None:
    for part, values in zip(measured, new, strict=True):
        part[rows] = values
