"""Small runs and studies made by hand, so that what should be seen in a figure is known without running anything."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text

import moqd
from moqd.core.archive import empty_archive
from moqd.core.metrics import archive_metrics
from moqd.runs.config import AlgorithmConfig, RunConfig, Surroundings, TaskConfig
from moqd.study.plan import REFERENCE, Study
from moqd.study.summaries import Result, Results

NUM_CELLS, FRONT_LENGTH, NUM_EMPTY = 12, 5, 3


def made_task(num_features: int, num_objectives: int) -> moqd.FunctionTask:
    """The last objective is minimised; the first objective and the first feature have a unit."""
    objectives = [f"objective {i}" for i in range(num_objectives)]
    features = [f"feature {i}" for i in range(num_features)]
    return moqd.FunctionTask(
        lambda x: x,
        name=f"made-{num_features}-{num_objectives}",
        bounds=[(0, 1)] * 2,
        objective_names=objectives,
        minimised=objectives[-1:],
        feature_names=features,
        feature_bounds=[(-2.0, 3.0)] * num_features,
        reference_point=[-1.0] * (num_objectives - 1) + [1.0],
        units={objectives[0]: "m/s"} | dict.fromkeys(features[:1], "degrees"),
    )


def made_run(
    num_features: int = 2, num_objectives: int = 2, *, path: Path | None = None, empty: bool = False, seed: int = 0
) -> moqd.Run:
    """Twelve cells, three of them empty, with fronts of one to five solutions on spheres about the reference point."""
    task = made_task(num_features, num_objectives)
    rng = np.random.default_rng(num_features + 10 * num_objectives + 100 * seed)
    num_cells = NUM_CELLS if num_features else 1
    centroid = rng.uniform(-2, 3, (num_cells, num_features)).astype(np.float32)
    bounds = jnp.asarray(np.reshape(task.feature_bounds, (num_features, 2)).T, jnp.float32)
    archive = empty_archive(
        jnp.zeros((1, 2)), jnp.asarray(centroid), bounds, num_objectives=num_objectives, front_length=FRONT_LENGTH
    )
    valid = np.arange(FRONT_LENGTH) < rng.integers(1, FRONT_LENGTH + 1, (num_cells, 1))
    valid[num_cells - NUM_EMPTY :] &= num_cells == 1
    sphere = np.abs(rng.normal(size=(num_cells, FRONT_LENGTH, num_objectives)))
    radius = 1 + rng.uniform(size=(num_cells, 1, 1))
    sphere *= radius / np.linalg.norm(sphere, axis=-1, keepdims=True)
    archive = archive._replace(
        fitness=jnp.asarray(sphere - 1, jnp.float32),
        feature=jnp.broadcast_to(jnp.asarray(centroid)[:, None], archive.feature.shape),
        valid=jnp.asarray(valid & (not empty)),
    )
    config = RunConfig(
        TaskConfig(task.name, None, {"objectives": [], "features": []}),
        AlgorithmConfig("by hand", {"num_cells": num_cells}),
        seed=3,
        iterations=3,
        reference_point=tuple(task.reference_point),
        surroundings=Surroundings(versions={"moqd": moqd.__version__}, devices=("cpu",)),
    )
    measured = archive_metrics(archive, task.direction * np.array(task.reference_point), np.ones(num_objectives))
    rows = {name: np.linspace(value / 2, value, 4) for name, value in measured.items()}
    counted = {"iteration": np.arange(4.0), "evaluations": 16 * np.arange(1.0, 5), "seconds": np.arange(4.0) + 0.5}
    exact = {"hypervolume_exact": np.ones(4), "failed_evaluations": np.zeros(4), "below_reference": np.zeros(4)}
    return moqd.Run(task, config, archive, rows | counted | exact, path)


def made_results(
    tasks: Mapping[str, tuple[int, int]],
    algorithms: Sequence[str],
    *,
    num_seeds: int = 3,
    missing: Collection[tuple[str, str]] = (),
    empty: Collection[tuple[str, str]] = (),
    timings: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
) -> Results:
    """A study of tasks with so many features and objectives; every run is another, those of `empty` found nothing."""
    found = []
    for task, shape in tasks.items():
        for i, algorithm in enumerate(algorithms):
            for seed in range(num_seeds if (task, algorithm) not in missing else 0):
                run = _known_run(*shape, 10 * i + seed, (task, algorithm) in empty)
                archive = run.archive._replace(genotype=())
                found.append(Result(task, algorithm, seed, run.metrics, archive, run.reference_point, {}, Path("none")))
    reference = REFERENCE if REFERENCE in algorithms else algorithms[0]
    study = Study("made", tuple(tasks), tuple(algorithms), tuple(range(num_seeds)), reference, ())
    named = {name: replace(made_task(*shape), name=name) for name, shape in tasks.items()}
    return Results(study, tuple(found), (), named, timings or {})


@cache
def _known_run(num_features: int, num_objectives: int, seed: int, empty: bool) -> moqd.Run:
    return made_run(num_features, num_objectives, seed=seed, empty=empty)


def notes(figure: Figure) -> list[str]:
    """What panels say instead of showing something."""
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def texts_of(figure: Figure) -> list[Text]:
    """All text that is seen in a figure that has been drawn; numbers beyond the ends of an axis are not."""
    found = list(figure.texts) + [text for legend in figure.legends for text in legend.get_texts()]
    for ax in figure.axes:
        if not ax.axison:
            continue
        found += [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            found += [label for tick in ticks for label in (tick.label1, tick.label2)]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def assert_readable(figure: Figure) -> None:
    """No text covers another or goes beyond the figure."""
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    page = figure.bbox
    for text, box in boxes:
        inside = box.x0 >= page.x0 and box.y0 >= page.y0 and box.x1 <= page.x1 and box.y1 <= page.y1
        assert inside, f"{text!r} goes beyond the figure"
    for (one, box), (other, other_box) in combinations(boxes, 2):
        assert not box.padded(-0.5).overlaps(other_box.padded(-0.5)), f"{one!r} covers {other!r}"
