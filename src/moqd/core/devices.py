"""The local devices: how JAX is set up to use them, and how a population is spread over them.

On a CPU, JAX sees one device unless told otherwise, and one device runs a rollout on one core; `use_devices` makes
every core a device. It also makes XLA's multi-output fusion available, a pass that puts operations which share operands
into one loop and makes a rollout two to three times faster. The pass is experimental in XLA and aborts on some other
programs, so it stays off except in programs compiled with `compiled`.
"""

import ctypes
import gc
import math
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, Sharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from moqd.io.errors import InputError

FLAGS = {
    "--xla_backend_extra_options": "xla_cpu_use_multi_output_fusion=true",
    "--xla_disable_hlo_passes": "cpu_multi_output_fusion",
}
"""Multi-output fusion is available, but no program uses it..."""
FUSION = {"xla_disable_hlo_passes": ""}
"""...unless it is compiled with this."""
BRIEFLY = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
"""For a program that runs once on a CPU: less work for the compiler, and the same numbers."""
LANES = 8
"""Rows are padded to a multiple of this, the width of a vector operation."""
ROWS_AT_ONCE = 128
"""On a CPU, more rows than this are processed tile by tile, so that the data of a tile stays in the cache."""

_wanted: int | None = None
_called = False


def use_devices(count: int | None = None) -> None:
    """Spreads populations over `count` local devices (None: one per CPU core, or every GPU), with XLA's options set.

    Call it before anything else starts JAX, ideally right after the imports; the command line does so itself. Later
    calls must ask for the same number.
    """
    global _wanted, _called
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise InputError(f"count is {count!r}; give the number of devices, at least 1, or None for all of them.")
    try:
        jax.config.update("jax_num_cpu_devices", count or num_cores())
    except RuntimeError as error:
        everything = num_cores() if jax.default_backend() == "cpu" else jax.local_device_count()
        if _called and (count or everything) == (_wanted or everything):
            return
        raise InputError(
            "use_devices was called after JAX had started, which is too late; call it right after the imports, before "
            "anything computes with JAX."
        ) from error
    flags = os.environ.get("XLA_FLAGS", "")
    if not any(flag in flags for flag in FLAGS):
        os.environ["XLA_FLAGS"] = " ".join([*flags.split(), *(f"{flag}={value}" for flag, value in FLAGS.items())])
    _wanted, _called = count, True


def num_cores() -> int:
    """The number of CPU cores that this process may use, which is also the number of XLA's threads."""
    given = os.environ.get("PJRT_NPROC", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compiled(function: Callable[..., Any], *, fused: bool = True) -> Callable[..., Any]:
    """`jax.jit` for a simulation, with the fusion that `use_devices` allows. Do not call it inside another program."""
    return jax.jit(function, compiler_options=FUSION if fused else None)


def compile_briefly(lowered: Any) -> Any:
    """Compiles a program that runs once, in half the time where XLA knows how."""
    if jax.default_backend() == "cpu":
        with suppress(jax.errors.JaxRuntimeError):  # another version of XLA has other options
            return lowered.compile(compiler_options=BRIEFLY)
    return lowered.compile()


def is_traced() -> bool:
    """Whether JAX is tracing this code (for `jit` and the like) rather than computing it."""
    return isinstance(jnp.zeros(()), jax.core.Tracer)


def num_tiles(rows: int) -> int:
    """The number of tiles into which the rows of a device are divided."""
    return math.ceil(rows / ROWS_AT_ONCE) if jax.default_backend() == "cpu" else 1


def on_all(tree: Any) -> Any:
    """The arrays copied to every device, as a program with a sharded part expects them."""
    mesh = _mesh(_wanted)
    return jax.device_put(tree, NamedSharding(mesh, P())) if mesh.size > 1 else tree


def on_one(tree: Any) -> Any:
    """The arrays on the first device alone, so that work that is not sharded is not repeated on every device."""
    mesh = _mesh(_wanted)
    return jax.device_put(tree, mesh.devices[0]) if mesh.size > 1 else tree


def shapes_on_all(tree: Any) -> Any:
    """The shapes of arrays on every device, to compile a program before the arrays exist."""
    mesh = _mesh(_wanted)
    return _shapes(tree, NamedSharding(mesh, P()) if mesh.size > 1 else None)


def shapes_on_one(tree: Any) -> Any:
    """The shapes of arrays on the first device."""
    mesh = _mesh(_wanted)
    return _shapes(tree, SingleDeviceSharding(mesh.devices[0]) if mesh.size > 1 else None)


def _shapes(tree: Any, sharding: Sharding | None) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)


def release_memory() -> None:
    """Returns freed memory to the system: compiling leaves hundreds of megabytes that glibc would keep."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def sharded(function: Callable[..., Any], *, multiple: int = LANES) -> Callable[..., Any]:
    """The function with its batch, the first axis of all its arguments, spread over the devices.

    Rows must not depend on each other. Any batch size works: the batch is padded with copies of its first row, so that
    every device gets `num_tiles` tiles of equal size, a multiple of `multiple`. Every device has a copy of the values
    that the function closes over.
    """

    def spread(*arguments: Any) -> Any:
        mesh = _mesh(_wanted)
        batch = jax.tree.leaves(arguments)[0].shape[0]
        rows = math.ceil(batch / mesh.size)
        whole = multiple * num_tiles(rows)
        padding = mesh.size * whole * math.ceil(rows / whole) - batch

        def pad(leaf: jax.Array) -> jax.Array:
            copies = jnp.broadcast_to(leaf[:1], (padding, *leaf.shape[1:]))
            return jnp.concatenate([leaf, copies]) if padding else leaf

        each = function
        if mesh.size > 1:
            each = jax.shard_map(
                function, mesh=mesh, in_specs=P("population"), out_specs=P("population"), check_vma=False
            )
        results = each(*jax.tree.map(pad, arguments))
        return jax.tree.map(lambda leaf: leaf[:batch] if padding else leaf, results)

    return spread


@cache
def _mesh(count: int | None) -> Mesh:
    devices = jax.local_devices()[:count]
    return jax.make_mesh((len(devices),), ("population",), axis_types=(AxisType.Auto,), devices=devices)
