"""Algorithms by name. A variant is a value of a config field, never a copy of code."""

from typing import TYPE_CHECKING

from moqd.algorithms.catalogue import ABLATIONS, ALGORITHMS, FOR_FUNCTIONS, FOR_POLICIES, Entry
from moqd.io.lazy import lazy

if TYPE_CHECKING:
    from moqd.algorithms.algorithm import Algorithm, batch_fields
    from moqd.algorithms.passive import with_passive_archive
    from moqd.algorithms.registry import make_algorithm, restore_algorithm
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = [
    "ABLATIONS",
    "ALGORITHMS",
    "FOR_FUNCTIONS",
    "FOR_POLICIES",
    "Algorithm",
    "Entry",
    "batch_fields",
    "make_algorithm",
    "restore_algorithm",
    "with_passive_archive",
]
