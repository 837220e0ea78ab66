"""The command `moqd algorithms`: the list of algorithms, or one of them with its options."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console

from moqd.algorithms import ALGORITHMS
from moqd.cli.output import describe, print_list
from moqd.cli.own import parse
from moqd.io.errors import unknown_name


@dataclass(frozen=True)
class AlgorithmsOptions:
    """Lists the algorithms, or shows one of them with its options."""

    algorithm: str | None = field(default=None, metadata={"positional": "ALGORITHM"})
    """The algorithm to look at. If not given: all of them."""


def main(arguments: Sequence[str], out: Console) -> int:
    name = parse("moqd algorithms", AlgorithmsOptions, arguments, out).algorithm
    if name is None:
        print_list(
            out,
            ("solves", "algorithm"),
            {name: ("policies" if one.policies else "all", one.summary) for name, one in ALGORITHMS.items()},
        )
        out.print("\n[bold]moqd algorithms NAME[/] shows one with its options.", highlight=False)
        return 0
    if name not in ALGORITHMS:
        raise unknown_name("algorithm", name, ALGORITHMS)
    entry = ALGORITHMS[name]
    vectors = ", ".join(f"{option}={value}" for option, value in entry.for_vectors.items())
    details = {
        "solves": "tasks whose solutions are policies" if entry.policies else "all tasks",
        "archive": "passive: it is filled, but not selected from" if entry.passive else "its own",
        **({"for plain parameters": vectors} if vectors else {}),
    }
    describe(out, name, entry.summary, entry.config, details)
    return 0
