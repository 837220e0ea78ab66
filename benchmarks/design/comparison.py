"""Runs methods on problems, keeps what was measured in files, and puts it into tables."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.design.measuring import BUDGETS, fingerprint, measure
from benchmarks.design.problems import PROBLEMS, SUITE
from benchmarks.design.rivals import Method

METHODS = (
    *("random", "pymoo-nsga2", "pymoo-sms-emoa", "pyribs-cma-me"),
    *("mome", "nsga2", "spea2", "mo-cma-mae"),
)
"""Those of the comparison; one that moqd does not know is left out."""
SEEDS = 5
YARDSTICK, CHANCE = "pymoo-nsga2", "random"
TITLES = {"hypervolume": "hypervolume", "moqd_score": "MOQD score"}


class Job(NamedTuple):
    """The seeds of one method on one problem: they share a compiled program."""

    problem: str
    method: str
    seeds: tuple[int, ...]
    folder: Path


def file_of(folder: Path, problem: str, method: str) -> Path:
    return folder / problem / f"{method}.json"


def read(folder: Path, problem: str, method: str) -> dict[int, dict[str, Any]]:
    """What was measured, by seed; nothing if it was of a problem that has changed since."""
    path = file_of(folder, problem, method)
    content = json.loads(path.read_text()) if path.exists() else {}
    if content.get("problem") != fingerprint(PROBLEMS[problem]):
        return {}
    return {int(seed): found for seed, found in content["seeds"].items()}


def write(folder: Path, problem: str, method: str, found: dict[int, dict[str, Any]]) -> None:
    path = file_of(folder, problem, method)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"problem": fingerprint(PROBLEMS[problem]), "seeds": {str(seed): found[seed] for seed in sorted(found)}}
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(content, indent=1) + "\n")
    beside.replace(path)


def run_job(job: Job) -> float:
    """Runs and measures what is missing; gives the seconds that it took."""
    begin = time.perf_counter()
    problem = PROBLEMS[job.problem]
    run = Method.parse(job.method).on(problem)
    for seed in job.seeds:
        start = time.perf_counter()
        x = run(seed, max(BUDGETS))
        taken = time.perf_counter() - start
        metrics = {
            str(budget): {name: float(f"{value:.8g}") for name, value in row.items()}
            for budget, row in measure(problem, x).items()
        }
        known = read(job.folder, job.problem, job.method)
        write(job.folder, job.problem, job.method, known | {seed: metrics | {"seconds": round(taken, 2)}})
    return time.perf_counter() - begin


def prepare() -> None:
    """In every process."""
    import warnings

    from moqd.runs.compilation import use_cache

    warnings.filterwarnings("ignore")
    use_cache()


def compare(
    folder: Path,
    problems: Sequence[str] = SUITE,
    methods: Sequence[str] = METHODS,
    seeds: int = SEEDS,
    *,
    again: bool = False,
    workers: int = 2,
) -> list[str]:
    """Runs what is not in the folder yet, and writes its README.md; gives the methods that could be run."""
    known = [method for method in methods if Method.parse(method).is_known]
    for method in methods:
        if method not in known:
            print(f"{method} is left out: moqd has no algorithm of this name.")
    jobs = []
    for problem in problems:
        for method in known:
            found = {} if again else read(folder, problem, method)
            missing = tuple(seed for seed in range(seeds) if seed not in found)
            if missing:
                jobs.append(Job(problem, method, missing, folder))
    failed = run_jobs(jobs, workers)
    write_tables(folder, seeds)
    if failed:
        raise SystemExit(f"not measured, for the reasons above: {', '.join(failed)}.")
    return known


def run_jobs(jobs: Sequence[Job], workers: int) -> list[str]:
    if not jobs:
        return []
    # One thread for each process: there are as many processes as cores.
    os.environ |= {"PJRT_NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    failed = []
    with ProcessPoolExecutor(workers, get_context("spawn"), prepare) as pool:
        running = {pool.submit(run_job, job): job for job in jobs}
        for number, future in enumerate(as_completed(running), 1):
            job = running[future]
            what = f"[{number}/{len(jobs)}] {job.problem}, {job.method}, {len(job.seeds)} seeds"
            try:
                print(f"{what}: {future.result():.0f} s", flush=True)
            except Exception as error:
                print(f"{what}: {type(error).__name__}: {error}", flush=True)
                failed.append(f"{job.method} on {job.problem}")
    return failed


# ------------------------------------------------------------------------------------------------------------ tables


class Row(NamedTuple):
    """Medians over seeds, by metric and budget."""

    problem: str
    method: str
    seeds: int
    values: dict[tuple[str, int], float]
    seconds: float


def rows(folder: Path, seeds: int) -> Iterator[Row]:
    """All that the folder has, of these seeds."""
    for problem in PROBLEMS:
        names = sorted(path.stem for path in (folder / problem).glob("*.json"))
        for method in sorted(names, key=lambda name: (METHODS.index(name) if name in METHODS else len(METHODS), name)):
            found = {seed: one for seed, one in read(folder, problem, method).items() if seed < seeds}
            if found:
                values = {
                    (metric, budget): median(one[str(budget)][metric] for one in found.values())
                    for metric in TITLES
                    for budget in BUDGETS
                }
                yield Row(problem, method, len(found), values, median(one["seconds"] for one in found.values()))


def number(value: float) -> str:
    return "0" if value == 0 else f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def markdown(columns: Sequence[str], body: Sequence[Sequence[str]], words: int = 2) -> str:
    sides = [":--"] * words + ["--:"] * (len(columns) - words)
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, sides, *body))


def medians(found: Sequence[Row]) -> str:
    """The best of each problem in bold."""
    keys = [(metric, budget) for metric in TITLES for budget in BUDGETS]
    body = []
    for row in found:
        cells = []
        for key in keys:
            best = max(other.values[key] for other in found if other.problem == row.problem)
            text = number(row.values[key])
            cells.append(f"**{text}**" if row.values[key] == best > 0 else text)
        body.append([row.problem, row.method, *cells, f"{row.seconds:.1f}"])
    columns = [f"{TITLES[metric]}, {budget:,}" for metric, budget in keys]
    return markdown(["problem", "method", *columns, "seconds"], body)


def ratio(row: Row, base: Row | None, key: tuple[str, int]) -> float | None:
    """None where there is nothing to divide by."""
    if base is None or base.values[key] == 0:
        return None
    return row.values[key] / base.values[key]


def told(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def ratios(found: Sequence[Row]) -> str:
    at = {(row.problem, row.method): row for row in found}
    keys = [(metric, budget) for metric in TITLES for budget in BUDGETS]
    body = [
        [
            row.problem,
            row.method,
            *(told(ratio(row, at.get((row.problem, YARDSTICK)), key)) for key in keys),
            *(told(ratio(row, at.get((row.problem, CHANCE)), key)) for key in keys if key[1] == max(BUDGETS)),
        ]
        for row in found
    ]
    columns = [f"{TITLES[metric]}, {budget:,}" for metric, budget in keys]
    last = [f"{TITLES[metric]} to random, {max(BUDGETS):,}" for metric in TITLES]
    return markdown(["problem", "method", *columns, *last], body)


SUMMARY = ("method", "problems", *(f"{title}, {budget:,}" for title in TITLES.values() for budget in BUDGETS))


def summary(found: Sequence[Row]) -> list[tuple[str, ...]]:
    """The geometric mean of each method's ratios to the yardstick, where neither is 0, and how often it is ahead."""
    at = {(row.problem, row.method): row for row in found}
    lines = []
    for method in dict.fromkeys(row.method for row in found):
        cells = []
        own = [row for row in found if row.method == method]
        for key in ((metric, budget) for metric in TITLES for budget in BUDGETS):
            all_of = [ratio(row, at.get((row.problem, YARDSTICK)), key) for row in own]
            values = [value for value in all_of if value]
            ahead = sum(
                row.values[key] > base.values[key]
                for row in own
                if (base := at.get((row.problem, YARDSTICK))) is not None
            )
            mean = np.exp(np.mean(np.log(values))) if values else float("nan")
            cells.append(f"{mean:.3g} ({ahead})")
        lines.append((method, str(len(own)), *cells))
    return lines


def listed(numbers: Sequence[int]) -> str:
    *first, last = (f"{one:,}" for one in numbers)
    return f"{', '.join(first)} and {last}"


def write_tables(folder: Path, seeds: int) -> None:
    found = list(rows(folder, seeds))
    suite = [row for row in found if row.problem in SUITE]
    folder.mkdir(parents=True, exist_ok=True)
    most = max((row.seeds for row in found), default=0)
    sections = [
        HEAD.format(seeds=most, budgets=listed(BUDGETS)),
        "## All problems\n\nRatios to pymoo's NSGA-II: the geometric mean over the problems on which neither is 0,\n"
        "and in brackets the number of problems on which the median is higher.\n",
        markdown(SUMMARY, summary(suite), 1),
        "\n## Medians\n\nThe best of each problem is bold. Seconds are those of a run of "
        f"{max(BUDGETS):,} evaluations, the first with compiling.\n",
        medians(found),
        "\n## Ratios\n\nTo pymoo's NSGA-II, and in the last columns to random search. - where the other is 0.\n",
        ratios(found),
        "",
    ]
    (folder / "README.md").write_text("\n".join(sections))


HEAD = """# Design problems

Made by `python -m benchmarks.design`. Every method makes the same number of evaluations, and all of them are measured
in the same way: by the hypervolume of the feasible solutions so far, and by the MOQD score of one archive (128 cells,
fronts of 50) to which they are all added. Medians over {seeds} seeds after {budgets} evaluations;
more is better. The JSON files hold every seed.

pymoo's algorithms use its default operators, for mixed variables its own operators for those, and a population of 100.
CMA-ME is that of pyribs, on the equally weighted sum of objectives, with integers and choices relaxed to reals.
"""
