"""`jax.vmap` for functions of many tiny arrays, such as a step of a physics engine.

`jax.vmap` puts the batch in front of arrays of shape (links, 3) and the like, and what XLA makes of thousands of
operations on such arrays leaves most of a processor idle. Here every scalar of the function is a vector over the batch.
Data that only moves (slices, gathers, transposes) costs nothing, since arrays of vectors are rearranged while tracing;
what is known then (axes of joints, zeros of a matrix) is folded; and the rest is elementwise arithmetic on vectors of
one length, which XLA fuses into a few loops.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress, islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

Value = np.ndarray
"""An array of the function: of known numbers, or of objects, each of which is a vector over the batch or known."""


def unrolled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `jax.vmap(function, in_axes=-1, out_axes=-1)`, computed with vectors over the batch.

    For functions whose arrays are tiny: the program has an operation for every scalar. A product with a known zero is
    zero, also where the other factor is not finite.
    """

    def batched(*arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)
        scalars = [jax.ShapeDtypeStruct(leaf.shape[:-1], leaf.dtype) for leaf in leaves]
        jaxpr, shape = jax.make_jaxpr(function, return_shape=True)(*jax.tree.unflatten(structure, scalars))
        interpreter = _Interpreter(leaves[0].shape[-1])
        values = interpreter.evaluate(jaxpr, [_split(leaf) for leaf in leaves])
        joined = [interpreter.join(value, aval.dtype) for value, aval in zip(values, jaxpr.out_avals, strict=True)]
        return jax.tree.unflatten(jax.tree.structure(shape), joined)

    return batched


def computed(function: Callable[[], Any]) -> Any:
    """What the function returns, with NumPy where that can do it: for what is needed once, compiling takes longer."""
    jaxpr, shape = jax.make_jaxpr(function, return_shape=True)()
    return jax.tree.unflatten(jax.tree.structure(shape), _Interpreter(1).evaluate(jaxpr, []))


class _Interpreter:
    """Evaluates a jaxpr on `Value`s; the same operation on the same vectors is done once."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._done: dict[Any, tuple[jax.Array, Any]] = {}

    def evaluate(self, closed: Any, arguments: Sequence[Value]) -> list[Value]:
        values = dict(zip(closed.jaxpr.invars, arguments, strict=True))
        values |= {name: np.asarray(value) for name, value in zip(closed.jaxpr.constvars, closed.consts, strict=True)}

        def read(variable: Any) -> Value:
            literal = isinstance(variable, core.Literal)
            return np.asarray(variable.val, variable.aval.dtype) if literal else values[variable]

        for equation in closed.jaxpr.eqns:
            results = self._equation(equation, [read(variable) for variable in equation.invars])
            values |= dict(zip(equation.outvars, results, strict=True))
        return [read(variable) for variable in closed.jaxpr.outvars]

    def join(self, value: Value, dtype: Any) -> jax.Array:
        """A value as one array with the batch last."""
        if _is_known(value):
            return jnp.broadcast_to(jnp.asarray(value, dtype)[..., None], (*value.shape, self._batch))
        return jnp.stack([self._vector(scalar, dtype) for scalar in value.flat]).reshape(*value.shape, self._batch)

    def _equation(self, equation: Any, inputs: list[Value]) -> list[Value]:
        primitive, parameters, output = equation.primitive, equation.params, equation.outvars[0].aval
        name = primitive.name
        if name in CALLS:
            return self.evaluate(parameters[CALLS[name]], inputs)
        if name == "device_put":
            return inputs
        if name == "platform_index":
            backend = jax.default_backend()
            matches = [names is None or backend in names for names in parameters["platforms"]]
            return [np.asarray(matches.index(True), np.int32)]
        if name == "cond" and _is_known(inputs[0]):
            return self.evaluate(parameters["branches"][int(inputs[0])], inputs[1:])
        if name == "scan" and _has_only_carry(equation):
            return self._loop(parameters, inputs)
        places = _places(name, parameters, inputs) if name in WINDOWS else None
        if places is not None:
            if name in SCATTERS:
                return [self._scatter(SCATTERS[name], places, inputs[0], inputs[2], output)]
            return [_array(inputs[0].reshape(-1)[places].flat, output)]
        if name in MOVES:
            return [_array(MOVES[name](output.shape, parameters, *inputs).flat, output)]
        if name in REDUCTIONS:
            axes = parameters["axes"]
            return [self._reduce(REDUCTIONS[name], np.moveaxis(inputs[0], axes, range(len(axes))), output)]
        if name == "dot_general":
            return [self._dot(inputs[0], inputs[1], parameters["dimension_numbers"], output)]
        if all(map(_is_known, inputs)) and not primitive.multiple_results:
            return [_computed(primitive, parameters, inputs, output.dtype)]
        if name in ELEMENTWISE:
            rows = zip(*(np.broadcast_to(value, output.shape).flat for value in inputs), strict=True)
            return [_array([self._scalar(primitive, row, output.dtype, parameters) for row in rows], output)]
        return self._as_vmap(equation, inputs)

    def _scalar(self, primitive: Any, scalars: Sequence[Any], dtype: Any, parameters: Any = None) -> Any:
        """One elementwise operation on vectors and known numbers."""
        parameters = parameters or {}
        known = [not isinstance(scalar, jax.Array) for scalar in scalars]
        if all(known):
            return _computed(primitive, parameters, scalars, dtype)[()]
        simpler = _folded(primitive.name, scalars, known, dtype)
        if simpler is not None:
            return simpler
        operands = [scalar.tobytes() if at else id(scalar) for scalar, at in zip(scalars, known, strict=True)]
        key = (primitive, tuple(sorted(parameters.items())), tuple(operands))
        if key not in self._done:
            vectors = [self._vector(scalar, scalar.dtype) for scalar in scalars]
            # The scalars are kept beside the result, so that none is freed and its id used again.
            self._done[key] = (primitive.bind(*vectors, **parameters), scalars)
        return self._done[key][0]

    def _vector(self, scalar: Any, dtype: Any) -> jax.Array:
        return scalar if isinstance(scalar, jax.Array) else jnp.full(self._batch, scalar, dtype)

    def _reduce(self, primitive: Any, terms: Value, output: Any) -> Value:
        """Over the first axes, down to the output's shape."""
        first, *rest = terms.reshape(-1, math.prod(output.shape))
        results = list(first.flat)
        for row in rest:
            results = [self._scalar(primitive, pair, output.dtype) for pair in zip(results, row.flat, strict=True)]
        return _array(results, output)

    def _dot(self, left: Value, right: Value, dimensions: Any, output: Any) -> Value:
        (left_sum, right_sum), (left_batch, right_batch) = dimensions
        a, b = _matrices(left, left_batch, left_sum), _matrices(right, right_batch, right_sum)
        a, b = np.broadcast_arrays(a[:, :, :, None], b[:, :, None, :])
        products = [self._scalar(jax.lax.mul_p, pair, output.dtype) for pair in zip(a.flat, b.flat, strict=True)]
        return self._reduce(jax.lax.add_p, np.fromiter(products, object), output)

    def _scatter(self, combine: Any, places: Value, operand: Value, updates: Value, output: Any) -> Value:
        results = list(operand.flat)
        for place, update in zip(places.flat, updates.flat, strict=True):
            results[place] = self._scalar(combine, (results[place], update), output.dtype) if combine else update
        return _array(results, output)

    def _loop(self, parameters: dict[str, Any], inputs: list[Value]) -> list[Value]:
        """A `scan` of a carry alone. What every step hands on as it was stays outside of the loop."""
        body, num_consts = parameters["jaxpr"], parameters["num_consts"]
        consts, carry = inputs[:num_consts], inputs[num_consts:]
        pairs = zip(body.jaxpr.invars[num_consts:], body.jaxpr.outvars, strict=True)
        changes = [before is not after for before, after in pairs]

        def pack(interpreter: _Interpreter, values: Sequence[Value]) -> list[jax.Array]:
            changing = compress(zip(values, body.out_avals, strict=True), changes)
            return [interpreter._vector(scalar, aval.dtype) for value, aval in changing for scalar in value.flat]

        def unpack(vectors: list[jax.Array]) -> list[Value]:
            rest = iter(vectors)
            return [
                np.fromiter(islice(rest, value.size), object).reshape(value.shape) if change else value
                for value, change in zip(carry, changes, strict=True)
            ]

        def step(_: Any, vectors: list[jax.Array]) -> list[jax.Array]:
            inside = _Interpreter(self._batch)
            return pack(inside, inside.evaluate(body, [*consts, *unpack(vectors)]))

        return unpack(jax.lax.fori_loop(0, parameters["length"], step, pack(self, carry)))

    def _as_vmap(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """Whatever has no rule of its own."""
        dtypes = [variable.aval.dtype for variable in equation.invars]
        joined = list(map(self.join, inputs, dtypes))
        results = jax.vmap(partial(equation.primitive.bind, **equation.params), in_axes=-1, out_axes=-1)(*joined)
        return [_split(result) for result in (results if equation.primitive.multiple_results else [results])]


def _folded(name: str, scalars: Sequence[Any], known: Sequence[bool], dtype: Any) -> Any:
    """What the operation comes to without computing anything; None if it must be done."""
    if name in NEUTRAL and any(known):
        number, vector = scalars if known[0] else scalars[::-1]
        if number == NEUTRAL[name]:
            return vector
        if name == "mul" and number == 0:
            return number
    if name in ("and", "or") and any(known) and dtype == np.bool_:
        number, vector = scalars if known[0] else scalars[::-1]
        return vector if number == (name == "and") else number
    if name in ("sub", "div") and known[1] and scalars[1] == (name == "div"):
        return scalars[0]
    if name == "div" and known[0] and scalars[0] == 0:
        return scalars[0]
    if name == "select_n":
        which, *cases = scalars
        if known[0]:
            return cases[int(which)]
        if all(case is cases[0] for case in cases) or (all(known[1:]) and len(set(cases)) == 1):
            return cases[0]
    if name == "convert_element_type" and dtype == scalars[0].dtype:
        return scalars[0]
    return None


def _computed(primitive: Any, parameters: dict[str, Any], inputs: Sequence[Any], dtype: Any) -> Value:
    """A primitive with one result, of known values."""
    if primitive.name in NUMPY:
        return np.asarray(NUMPY[primitive.name](*inputs), dtype)
    with jax.ensure_compile_time_eval():
        return np.asarray(primitive.bind(*map(jnp.asarray, inputs), **parameters))


def _places(name: str, parameters: dict[str, Any], inputs: Sequence[Value]) -> Value | None:
    """From or to which entry of the flat operand each entry goes; None if that depends on what is not known."""
    windows = WINDOWS[name](parameters, inputs)
    if not _is_known(windows.starts):
        return None
    shape, sizes = np.array(inputs[0].shape, int), windows.sizes
    starts, last = windows.starts, shape - sizes
    if windows.clip:
        starts = np.clip(starts, 0, last)
    elif np.any((starts < 0) | (starts > last)):
        return None
    steps = np.cumprod([1, *shape[:0:-1]])[: len(shape)][::-1]  # in the flat operand, along each of its axes
    batch = starts.shape[:-1]
    inside = np.tensordot(steps, np.indices(sizes), 1) if sizes else np.zeros((), int)
    places = (starts @ steps).reshape([*batch, *[1] * len(sizes)]) + inside
    kept = [size for axis, size in enumerate(sizes) if axis not in windows.dropped]
    return np.moveaxis(places.reshape([*batch, *kept]), range(len(batch), len(batch) + len(kept)), windows.axes)


class _Windows(NamedTuple):
    """Windows of an array, as gather and scatter and the like describe them."""

    starts: Value
    """The first entry of each, by axis of the array (the last axis of this)."""
    sizes: tuple[int, ...]
    dropped: Sequence[int]
    """Axes of a window, all of size 1, that it does not have where the entries come together..."""
    axes: Sequence[int]
    """...and which axes are those that it does have."""
    clip: bool
    """Whether windows that reach beyond the array are moved into it."""


def _gathered(parameters: dict[str, Any], inputs: Sequence[Value]) -> _Windows:
    numbers = parameters["dimension_numbers"]
    batching = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    return _Windows(
        starts=_starts(inputs, numbers.start_index_map, batching),
        sizes=parameters["slice_sizes"],
        dropped=(*numbers.collapsed_slice_dims, *batching),
        axes=numbers.offset_dims,
        clip=parameters["mode"] == jax.lax.GatherScatterMode.CLIP,
    )


def _scattered(parameters: dict[str, Any], inputs: Sequence[Value]) -> _Windows:
    numbers, (operand, _, updates) = parameters["dimension_numbers"], inputs
    batching = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    dropped = (*numbers.inserted_window_dims, *batching)
    window = iter([updates.shape[axis] for axis in numbers.update_window_dims])
    return _Windows(
        starts=_starts(inputs, numbers.scatter_dims_to_operand_dims, batching),
        sizes=tuple(1 if axis in dropped else next(window) for axis in range(operand.ndim)),
        dropped=dropped,
        axes=numbers.update_window_dims,
        clip=parameters["mode"] == jax.lax.GatherScatterMode.CLIP,
    )


def _sliced(parameters: dict[str, Any], inputs: Sequence[Value]) -> _Windows:
    operand, *starts = inputs
    sizes, axes = parameters["slice_sizes"], range(operand.ndim)
    indices = _array([start.item() for start in starts], np.zeros(operand.ndim, int))
    return _Windows(indices, sizes, dropped=(), axes=axes, clip=True)


def _starts(inputs: Sequence[Value], axes: Sequence[Any], batching: Mapping[int, int]) -> Value:
    """The indices, an axis of the operand each; along batching axes a window is where it is among the indices."""
    operand, indices = inputs[:2]
    batch = indices.shape[:-1]
    starts = np.zeros((*batch, operand.ndim), int if _is_known(indices) else object)
    starts[..., list(axes)] = indices
    for axis, along in batching.items():
        starts[..., axis] = np.indices(batch)[along]
    return starts


def _matrices(value: Value, batch: Sequence[int], summed: Sequence[int]) -> Value:
    """As (summed, batch, free)."""
    free = [axis for axis in range(value.ndim) if axis not in (*batch, *summed)]
    sizes = [math.prod(value.shape[axis] for axis in axes) for axes in (summed, batch, free)]
    return value.transpose(*summed, *batch, *free).reshape(sizes)


def _split(array: jax.Array) -> Value:
    """An array with the batch last, as an array of vectors."""
    return np.fromiter(array.reshape(-1, array.shape[-1]), object).reshape(array.shape[:-1])


def _array(scalars: Iterable[Any], like: Any) -> Value:
    """In the shape of `like`: an array of numbers if all are known, otherwise of objects."""
    scalars = list(scalars)
    known = not any(isinstance(scalar, jax.Array) for scalar in scalars)
    return (np.array(scalars, like.dtype) if known else np.fromiter(scalars, object)).reshape(like.shape)


def _is_known(value: Value) -> bool:
    return value.dtype != object


def _has_only_carry(scan: Any) -> bool:
    return scan.params["num_carry"] == len(scan.outvars) == len(scan.invars) - scan.params["num_consts"]


def _broadcast_in_dim(shape: tuple[int, ...], parameters: dict[str, Any], value: Value) -> Value:
    sizes = dict(zip(parameters["broadcast_dimensions"], value.shape, strict=True))
    return np.broadcast_to(value.reshape([sizes.get(axis, 1) for axis in range(len(shape))]), shape)


def _joined(join: Callable[..., Value], values: Sequence[Value], axis: int) -> Value:
    return join([np.fromiter(value.flat, object).reshape(value.shape) for value in values], axis)


def _slice(shape: tuple[int, ...], parameters: dict[str, Any], value: Value) -> Value:
    strides = parameters["strides"] or [1] * value.ndim
    return value[tuple(map(slice, parameters["start_indices"], parameters["limit_indices"], strides))]


CALLS = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "jit": "jaxpr"}
"""Primitives that are nothing but the jaxpr in this parameter."""
MOVES: dict[str, Callable[..., Value]] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": lambda shape, parameters, *values: _joined(np.concatenate, values, parameters["dimension"]),
    "copy": lambda shape, parameters, value: value,
    "reshape": lambda shape, parameters, value: value.reshape(shape),
    "slice": _slice,
    "squeeze": lambda shape, parameters, value: value.reshape(shape),
    "stack": lambda shape, parameters, *values: _joined(np.stack, values, parameters["axis"]),
    "tile": lambda shape, parameters, value: np.tile(value, parameters["reps"]),
    "transpose": lambda shape, parameters, value: value.transpose(parameters["permutation"]),
}
"""Primitives that move entries to places that do not depend on any value."""
NUMPY: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "add": np.add,
    "and": np.bitwise_and,
    "convert_element_type": lambda value: value,
    "div": lambda a, b: np.divide(a, b) if np.issubdtype(a.dtype, np.floating) else np.trunc(a / b),
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "is_finite": np.isfinite,
    "le": np.less_equal,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "pow": np.power,
    "rem": np.fmod,
    "select_n": lambda which, *cases: np.choose(which.astype(np.int32), cases),
    "sign": np.sign,
    "sqrt": np.sqrt,
    "square": np.square,
    "sub": np.subtract,
}
"""Elementwise primitives as NumPy does them, which compiles nothing."""
ELEMENTWISE = NUMPY.keys() | {"acos", "atan2", "clamp", "cos", "exp", "floor", "integer_pow", "rsqrt", "sin", "tanh"}
NEUTRAL = {"add": 0, "mul": 1}
SCATTERS = {"scatter": None, "scatter-add": jax.lax.add_p, "scatter-mul": jax.lax.mul_p}
WINDOWS = {"dynamic_slice": _sliced, "gather": _gathered, **dict.fromkeys(SCATTERS, _scattered)}
"""Primitives that move windows to places that are values."""
REDUCTIONS = {
    "reduce_and": jax.lax.and_p,
    "reduce_max": jax.lax.max_p,
    "reduce_min": jax.lax.min_p,
    "reduce_or": jax.lax.or_p,
    "reduce_sum": jax.lax.add_p,
}
