"""Compares algorithms on design problems with features.

python -m benchmarks.design [--problems zdt1 ...] [--algorithms mome 'mome[ga_batch=64]' ...] [--seeds 5]
"""

from argparse import ArgumentParser
from pathlib import Path

from benchmarks.design.comparison import METHODS, SEEDS, compare
from benchmarks.design.problems import PROBLEMS, SUITE
from benchmarks.design.rivals import RIVALS


def main() -> None:
    parser = ArgumentParser(prog="python -m benchmarks.design", description=__doc__.split("\n")[0])
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=SUITE, metavar="PROBLEM")
    parser.add_argument(
        "--algorithms",
        nargs="+",
        default=METHODS,
        metavar="METHOD",
        help=f"{', '.join(RIVALS)}, or an algorithm of moqd, also with options: 'mome[ga_batch=64]'",
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"seeds 0 to N - 1; if not given: {SEEDS}")
    parser.add_argument("--out", type=Path, default=Path("results/bench/design"))
    parser.add_argument("--again", action="store_true", help="run also what the folder has already")
    parser.add_argument("--workers", type=int, default=2, help="processes; if not given: 2")
    options = parser.parse_args()
    compare(
        options.out, options.problems, options.algorithms, options.seeds, again=options.again, workers=options.workers
    )
    print(f"written: {options.out / 'README.md'}")


if __name__ == "__main__":
    main()
