"""Strict everywhere: shapes and types are checked, nothing is promoted silently, warnings are errors."""

import gc
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

CACHE = Path(__file__).parent.parent / ".pytest_cache"


def pytest_configure(config: pytest.Config) -> None:
    """What all tests rely on, but for the process that only hands them to others: it imports none of it."""
    if not (getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")):
        import_checked()
        set_up_jax(short=config.option.markexpr == "not slow")
        from hypothesis import settings

        settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
        settings.load_profile("fixed")
        gc.collect()
        gc.freeze()  # all that was imported, so that it is not looked through again and again
        gc.set_threshold(50_000, 20, 100)  # tracing makes many small objects, few of which are in cycles


def import_checked() -> None:
    """All of moqd, with its functions' types and shapes checked whenever they are called."""
    from jaxtyping import install_import_hook

    import tests.typecheck  # noqa: F401  the hook wants it imported

    with install_import_hook("moqd", "tests.typecheck.check"):
        import moqd
        from moqd.cli.main import COMMANDS

        for name in moqd.__all__:  # which are imported when they are first used
            getattr(moqd, name)
        for entry in (*moqd.tasks.TASKS.values(), *moqd.algorithms.ALGORITHMS.values()):
            entry.load()
        for command in COMMANDS:
            import_module(f"moqd.cli.{command}")
        import moqd.cli.look
        import moqd.report


def set_up_jax(*, short: bool) -> None:
    """Two devices, and nothing promoted silently.

    Short tests mostly compile, so they do without XLA's costly optimisations; the long ones run what users run.
    """
    import jax

    import moqd

    os.environ["XDG_CACHE_HOME"] = str(CACHE)  # of processes that tests start; nothing is written to the user's own
    os.environ["PJRT_NPROC"] = "2"  # so that the command line, which takes every core, asks for the devices there are
    moqd.use_devices(2)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    # Many tests compile the same programs: what one has compiled the others, and the next session, need not.
    jax.config.update("jax_compilation_cache_dir", str(CACHE / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    jax.config.update("jax_disable_most_optimizations", short)
    if short:
        # Nor with its emitters of fused operations, which take more than half of the time that compiling takes.
        os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"
        os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # of processes that tests start


@pytest.fixture(autouse=True, scope="module")
def few_memory_maps() -> Iterator[None]:
    """Compiled programs take memory maps, of which Linux gives a process 65,530; XLA crashes when there are no more."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 30_000:
        import jax

        jax.clear_caches()
        gc.collect()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
