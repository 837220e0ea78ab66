"""How much of the time of one worker two workers take, for a function that only waits: whole runs, each in its turn."""

import time

import moqd

EVALUATIONS = {0.02: 1024, 0.1: 512}
BATCH = 64


def run(seconds: float, workers: int) -> float:
    """Seconds of a whole run, compilation and the start of the workers included."""

    def wait(a: float, b: float) -> tuple[list[float], list[float]]:
        time.sleep(seconds)
        return [a, -(a**2)], [b]

    task = moqd.FunctionTask(
        wait,
        name="wait",
        bounds={"a": (0.0, 1.0), "b": (0.0, 1.0)},
        objective_names=["gain", "ease"],
        feature_names=["b"],
        feature_bounds=[(0.0, 1.0)],
        evaluator="processes",
        workers=workers,
    )
    algorithm = moqd.make_algorithm("mome", task, ga_batch=BATCH, num_cells=32)
    start = time.perf_counter()
    moqd.run(algorithm, task, iterations=EVALUATIONS[seconds] // BATCH - 1)
    return time.perf_counter() - start


def measure() -> list[tuple[float, float, float]]:
    """(seconds of a call, seconds of a run with one worker, with two)."""
    run(0.02, 2)  # what is loaded and compiled the first time is not counted
    return [(seconds, run(seconds, 1), run(seconds, 2)) for seconds in EVALUATIONS]
