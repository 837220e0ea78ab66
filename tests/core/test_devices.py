import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moqd
from moqd.core import devices
from moqd.core.devices import FLAGS, LANES, ROWS_AT_ONCE, compiled, num_tiles, on_all, on_one, sharded


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("batch", [1, 2, 3, 17, 2 * ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 1, 5 * ROWS_AT_ONCE])
def test_any_batch_can_be_spread(batch, count, monkeypatch):
    monkeypatch.setattr(devices, "_wanted", count)
    rows = {"x": jnp.arange(3.0 * batch).reshape(batch, 3), "key": jax.random.split(jax.random.key(0), batch)}
    seen = []

    def function(rows):
        seen.append(rows["x"].shape[0])
        return rows["x"] * 2 + jax.vmap(jax.random.uniform)(rows["key"])[:, None], rows["x"][:, 0]

    twice, first = jax.jit(sharded(function))(rows)
    np.testing.assert_array_equal(twice, jax.jit(function)(rows)[0])
    np.testing.assert_array_equal(first, rows["x"][:, 0])
    tiles = num_tiles(seen[0])
    assert seen[0] % (LANES * tiles) == 0
    assert seen[0] // tiles <= ROWS_AT_ONCE
    assert seen[0] * count - batch < LANES * tiles * count
    assert len(twice.sharding.device_set) in (1, count)


def test_the_population_is_spread_over_both_devices():
    result = jax.jit(sharded(lambda x: x + 1))(jnp.zeros((2 * LANES, 3)))
    assert len(result.sharding.device_set) == 2
    assert {shard.data.shape for shard in result.addressable_shards} == {(LANES, 3)}
    assert len(on_all(jnp.zeros(3)).sharding.device_set) == 2
    assert on_one(on_all(jnp.zeros(3))).devices() == {jax.local_devices()[0]}


OURS = [f"{flag}={value}" for flag, value in FLAGS.items()]


def python(code):
    """In a process without what this one has set."""
    environment = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "PJRT_NPROC")}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_use_devices_sets_jax_up_before_it_starts():
    code = "import moqd, os; moqd.use_devices(3); import jax; print(jax.local_device_count(), os.environ['XLA_FLAGS'])"
    printed = python(code)
    assert printed.stdout.split() == ["3", *OURS]
    assert printed.stderr == ""


def test_use_devices_takes_every_core_and_keeps_other_flags():
    code = (
        "import os; os.environ['XLA_FLAGS'] = '--xla_cpu_enable_fast_math=false'\n"
        "import moqd; moqd.use_devices(); moqd.use_devices(); import jax\n"
        "assert jax.local_device_count() == len(os.sched_getaffinity(0))\n"
        "print(os.environ['XLA_FLAGS'])"
    )
    assert python(code).stdout.split() == ["--xla_cpu_enable_fast_math=false", *OURS]


def test_only_what_is_compiled_so_uses_the_fusion_of_shared_operands():
    """A value with three users becomes one loop with three results instead of several."""

    def function(x):
        shared = jnp.sin(x) * jnp.cos(x)
        return shared + 1, shared * 2, shared - x

    def num_loops(program):
        return program.lower(jnp.ones((64, 64))).compile().as_text().count("fusion(")

    assert num_loops(compiled(function)) < num_loops(jax.jit(function))


def test_too_late_or_wrong_is_said():
    code = (
        "import moqd, jax; jax.numpy.zeros(3)\ntry: moqd.use_devices(2)\nexcept moqd.InputError as error: print(error)"
    )
    assert "use_devices was called after JAX had started" in python(code).stdout
    for count in (0, -1, True):
        with pytest.raises(moqd.InputError, match=r"count is .*; give the number of devices, at least 1"):
            moqd.use_devices(count)


@pytest.mark.parametrize("wanted", [2, None])
def test_later_calls_may_ask_for_what_there_is(wanted, monkeypatch):
    assert jax.local_device_count() == 2  # JAX has started
    monkeypatch.setattr(devices, "_wanted", wanted)
    for count in (2, None):  # as if there were two cores
        moqd.use_devices(count)
    with pytest.raises(moqd.InputError, match="too late"):
        moqd.use_devices(1)
    monkeypatch.setenv("PJRT_NPROC", "3")
    monkeypatch.setattr(devices, "_wanted", 2)
    with pytest.raises(moqd.InputError, match="too late"):
        moqd.use_devices()
