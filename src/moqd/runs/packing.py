"""Archives and whole states as named tensors, and back: only what is in use is written.

An archive has a place for every solution that it could hold, and a replay buffer one for every transition; most are
empty for most of a run. Of both only the places that are taken are packed, in pieces, so that a large state is neither
copied as a whole nor kept from being donated to the next step.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from moqd.core.archive import Archive
from moqd.io.errors import InputError
from moqd.io.files import Tensor, whole
from moqd.rl.buffer import Buffer

PIECE = 2**24
"""Bytes that are brought from the device at once."""


def _has_places(part: Any) -> bool:
    return isinstance(part, Archive | Buffer)


def _places(part: Any) -> tuple[dict[str, Any], dict[str, Any], int]:
    """The fields with a value in every place, the other fields, and how many leading axes of the first are places."""
    rest = part._asdict()
    if isinstance(part, Buffer):
        return {"steps": rest.pop("steps")}, rest, 1
    return {name: rest.pop(name) for name in ("genotype", "fitness", "feature", "preference", "constraint")}, rest, 2


def _taken(rest: Mapping[str, Any]) -> Int[np.ndarray, "taken"]:
    """Which places are in use, as the other fields say it."""
    return np.arange(int(rest["size"])) if "size" in rest else np.flatnonzero(np.asarray(rest["valid"]))


def packed(tree: Any) -> dict[str, Tensor]:
    """The arrays of a pytree by their names."""
    tensors = {}
    for name, part in _named(tree, is_leaf=_has_places).items():
        if not _has_places(part):
            tensors[name] = whole(part)
            continue
        content, rest, num_axes = _places(part)
        tensors |= {_join(name, field): whole(value) for field, value in rest.items()}
        for field, leaf in _named(content).items():
            tensors[_join(name, field)] = _rows(leaf, num_axes, _taken(rest).astype(np.int32))
    return tensors


def unpacked(template: Any, arrays: Mapping[str, np.ndarray], place: Callable[[Any], Any], where: str) -> Any:
    """The pytree with the shapes of `template` whose arrays these are; `place` brings each to its device.

    Places that were not in use are zero. `where` the arrays are from is said if they do not fit.
    """
    arrays = dict(arrays)

    def take(name: str, expected: Any, shape: tuple[int, ...]) -> np.ndarray:
        if name not in arrays:
            raise InputError(f"{where} does not fit the task: it holds no {name}.")
        array = arrays.pop(name)
        if array.shape != shape or array.dtype != expected.dtype:
            raise InputError(
                f"{where} does not fit the task: {name} has shape {array.shape} and type {array.dtype}, but "
                f"{shape} and {expected.dtype} are expected; give the task that was run."
            )
        return array

    def restore(name: str, part: Any) -> Any:
        if not _has_places(part):
            return place(take(name, part, part.shape))
        content, others, num_axes = _places(part)
        rest = {field: take(_join(name, field), value, value.shape) for field, value in others.items()}
        if isinstance(part, Buffer):
            capacity, size = part.steps.terminated.shape[0], int(rest["size"])
            if not 0 <= size <= capacity or not 0 <= int(rest["position"]) < capacity:
                raise InputError(f"{where} is damaged: its buffer holds {size} of {capacity} transitions.")
        taken = _taken(rest)

        def fill(field: str, leaf: Any) -> Any:
            shape = (len(taken), *leaf.shape[num_axes:])
            if field == "constraint":  # which earlier versions did not keep
                arrays.setdefault(_join(name, field), np.full(shape, np.nan, leaf.dtype))
            rows = take(_join(name, field), leaf, shape)
            full = np.zeros(leaf.shape, leaf.dtype)
            full.reshape(math.prod(leaf.shape[:num_axes]), *rows.shape[1:])[taken] = rows
            return place(full)

        leaves = [fill(field, leaf) for field, leaf in _named(content).items()]
        filled = jax.tree.unflatten(jax.tree.structure(content), leaves)
        return type(part)(**filled, **{field: place(value) for field, value in rest.items()})

    parts = [restore(name, part) for name, part in _named(template, is_leaf=_has_places).items()]
    if arrays:
        raise InputError(f"{where} does not fit the task: nothing is known of {', '.join(sorted(arrays)[:3])}.")
    return jax.tree.unflatten(jax.tree.structure(template, is_leaf=_has_places), parts)


def on_host(archive: Archive) -> Archive:
    """The archive free of the devices it was made on, with zeros in its empty places, which may hold what has left.

    It takes no program of JAX's, which would be compiled for every shape.
    """
    content, rest, _ = _places(jax.device_get(archive))
    valid = rest["valid"]

    def clear(leaf: np.ndarray) -> np.ndarray:
        return np.where(valid.reshape(*valid.shape, *[1] * (leaf.ndim - 2)), leaf, np.zeros((), leaf.dtype))

    return jax.tree.map(jnp.asarray, Archive(**jax.tree.map(clear, content), **rest))


def _rows(leaf: Array, num_axes: int, taken: Int[np.ndarray, "taken"]) -> Tensor:
    row_shape = leaf.shape[num_axes:]
    row_bytes = max(math.prod(row_shape) * leaf.dtype.itemsize, 1)
    at_once = min(max(PIECE // row_bytes, 1), math.prod(leaf.shape[:num_axes]))

    def pieces() -> Iterator[np.ndarray]:
        for start in range(0, len(taken), at_once):
            some = taken[start : start + at_once]
            padded = np.pad(some, (0, at_once - len(some)))  # so that one program does for every piece
            yield np.asarray(_gather(leaf, padded, num_axes))[: len(some)]

    return Tensor(str(leaf.dtype), (len(taken), *row_shape), pieces)


@partial(jax.jit, static_argnums=2)
def _gather(leaf: Array, rows: Int[Array, "rows"], num_axes: int) -> Array:
    return leaf.reshape(math.prod(leaf.shape[:num_axes]), *leaf.shape[num_axes:])[rows]


def _named(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> dict[str, Any]:
    named, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in named}


def _join(*names: str) -> str:
    return "/".join(name for name in names if name)
