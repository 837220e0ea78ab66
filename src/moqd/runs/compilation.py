"""Compiled programs: kept on disk from one start to the next, and the time that compiling takes."""

import os
import platform
import warnings
from bisect import bisect_left, bisect_right
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from moqd.core.tessellation import keep_cells_in

COMPILE = "/jax/core/compile/backend_compile_duration"
"""Comes once for every program, also one from the cache."""
STAGES = {"/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration", COMPILE}
"""What JAX calls tracing, lowering and compiling."""
HIT = "/jax/compilation_cache/cache_hits"


def use_cache(folder: Path | None = None) -> Path | None:
    """Keeps compiled programs in `folder`, by default the user's own cache folder; gives the folder, None for none.

    What the user has told JAX (JAX_COMPILATION_CACHE_DIR, JAX_ENABLE_COMPILATION_CACHE) is left as it is.
    Tessellations, which take long too, are kept beside.
    """
    settings: Any = jax.config
    if not settings.jax_enable_compilation_cache:
        return None
    with suppress(RuntimeError):  # the user has no home
        keep_cells_in(_cache_home() / "cells" / _processor())
    if settings.jax_compilation_cache_dir:
        return Path(settings.jax_compilation_cache_dir)
    try:
        folder = folder or default_folder()
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # programs are run from here, so nobody else may write; fails where others own the folder
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(0, "it cannot be written")
    except (OSError, RuntimeError) as error:  # the latter where the user has no home
        where = "" if folder is None else f" in {str(folder)!r}"
        warnings.warn(
            f"compiled programs cannot be kept{where} ({getattr(error, 'strerror', None) or error}), so every start "
            "compiles anew; set JAX_COMPILATION_CACHE_DIR to a folder that you may write to.",
            stacklevel=2,
        )
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # All programs, however small: there are many little ones, and together they take seconds.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    reset_cache()  # JAX decides once whether it has a cache, when it first compiles; that may have been before
    return folder


def uses_cache() -> bool:
    """Whether compiled programs are kept on disk."""
    settings: Any = jax.config
    return bool(settings.jax_enable_compilation_cache and settings.jax_compilation_cache_dir)


def default_folder() -> Path:
    """moqd/jax/PROCESSOR in the user's cache folder, by the XDG rules: a path that is not absolute does not count."""
    return _cache_home() / "jax" / _processor()


def _cache_home() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "moqd"


def _processor() -> str:
    """Names this kind of processor: programs hold its instructions, and machines may share a home folder."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    kinds = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    facts = [platform.processor(), *sorted(kinds)]
    return f"{platform.machine()}-{sha256(repr(facts).encode()).hexdigest()[:12]}"


class CompileClock:
    """How long JAX has been compiling between entering and leaving, and how many programs; in any thread."""

    def __init__(self) -> None:
        self.programs = 0
        self.from_cache = 0
        self._under_way = 0
        self._starts: list[float] = []  # of intervals that do not overlap, in order
        self._ends: list[float] = []
        self._lock = Lock()

    def __enter__(self) -> "CompileClock":
        jax.monitoring.register_scalar_listener(self._on_begin)
        jax.monitoring.register_event_time_span_listener(self._on_span)
        jax.monitoring.register_event_listener(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        jax.monitoring.unregister_scalar_listener(self._on_begin)
        jax.monitoring.unregister_event_time_span_listener(self._on_span)
        jax.monitoring.unregister_event_listener(self._on_event)

    @property
    def seconds(self) -> float:
        """In which something was traced, lowered or compiled: each counts once, whatever is nested or concurrent."""
        with self._lock:
            return sum(end - start for start, end in zip(self._starts, self._ends, strict=True))

    @property
    def busy(self) -> bool:
        """Whether something is being compiled right now."""
        return self._under_way > 0

    def _on_begin(self, event: str, *_: Any, **__: Any) -> None:
        if event in STAGES:
            with self._lock:
                self._under_way += 1

    def _on_span(self, event: str, start_time: float, end_time: float, **_: Any) -> None:
        if event not in STAGES:
            return
        with self._lock:
            self._under_way = max(0, self._under_way - 1)
            self.programs += event == COMPILE
            touched = slice(bisect_left(self._ends, start_time), bisect_right(self._starts, end_time))
            start, end = min([start_time, *self._starts[touched]]), max([end_time, *self._ends[touched]])
            self._starts[touched], self._ends[touched] = [start], [end]

    def _on_event(self, event: str, **_: Any) -> None:
        if event == HIT:
            with self._lock:
                self.from_cache += 1
