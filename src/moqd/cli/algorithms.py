"""The command `moqd algorithms`: the list of algorithms, or one of them with its options."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console

from moqd.algorithms import ALGORITHMS
from moqd.cli.output import describe, print_list
from moqd.cli.own import parse
from moqd.io.errors import known_name


@dataclass(frozen=True)
class AlgorithmsOptions:
    """Lists the algorithms, or shows one of them with its options."""

    algorithm: str | None = field(default=None, metadata={"positional": "ALGORITHM"})
    """The algorithm to look at: one of moqd's, or one of your own, as FILE.py:NAME. If not given: all of them."""


def main(arguments: Sequence[str], out: Console) -> int:
    name = parse("moqd algorithms", AlgorithmsOptions, arguments, out)[0].algorithm
    if name is None:
        rows = {name: ("policies" if one.policies else "all", one.summary) for name, one in ALGORITHMS.items()}
        print_list(out, ("solves", "algorithm"), rows)
        out.print("\n[bold]moqd algorithms NAME[/] shows one with its options.")
        return 0
    if ".py:" in name:
        from moqd.runs.user_code import load_algorithm  # here, because JAX takes its time

        name = load_algorithm(name)
    entry = ALGORITHMS[known_name("algorithm", name, ALGORITHMS, own="--algorithm FILE.py:NAME")]
    vectors = ", ".join(f"{option}={value}" for option, value in entry.for_vectors.items())
    details = {
        "solves": "tasks whose solutions are policies" if entry.policies else "all tasks",
        "archive": "passive: it is filled, but not selected from" if entry.passive else "its own",
        **({"for plain parameters": vectors} if vectors else {}),
    }
    describe(out, name, entry.summary, entry.config, details)
    return 0
