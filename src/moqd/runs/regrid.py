"""The same solutions over other cells."""

import os
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from moqd.algorithms.algorithm import archive_for
from moqd.core.archive import added
from moqd.core.metrics import archive_metrics
from moqd.core.tessellation import NumCells
from moqd.io.errors import InputError
from moqd.io.files import write_text
from moqd.io.options import is_count
from moqd.runs.folder import (
    ARCHIVE,
    METRICS_CSV,
    Run,
    checked_run,
    columns_of,
    table_of,
    write_archive,
    write_config,
)
from moqd.runs.packing import on_host
from moqd.runs.start import new_folder


def regrid(run: Run, num_cells: NumCells, *, out: str | os.PathLike[str] | None = None) -> Run:
    """The run with its solutions in finer or coarser cells, without evaluating any: what an empty archive holds after
    all of them are added.

    `num_cells` is that of a tessellation, or one number per feature for a regular grid. Metrics are a single row, of
    the new archive; sparsity is relative to the best objectives of the old one. Finer cells hold no more solutions than
    the run has kept. With `out`, it is written to that folder, for `load_run`.
    """
    num_cells = tuple(num_cells) if isinstance(num_cells, list | tuple) else num_cells
    if not all(map(is_count, num_cells if isinstance(num_cells, tuple) else (num_cells,))) or num_cells == ():
        wanted = "a whole number of at least 1, or one for each feature"
        raise InputError(f"num_cells is {num_cells!r}; give {wanted}.")
    old, task, config = checked_run(run).archive, run.task, run.config
    genotype = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), old.genotype)
    empty = archive_for(task, genotype, num_cells=num_cells, front_length=old.valid.shape[1])
    archive = on_host(added(empty, [old]))
    best = np.max(np.asarray(old.fitness)[np.asarray(old.valid)], axis=0, initial=-np.inf)
    # What was counted since the row before is summed up.
    row = {
        name: float(np.sum(column) if name.startswith("added_") else column[-1])
        for name, column in run.metrics.items()
        if len(column)
    }
    row |= archive_metrics(archive, run.reference_point, best)
    options = dict(config.algorithm.options)
    if "num_cells" in options:
        options["num_cells"] = list(num_cells) if isinstance(num_cells, tuple) else num_cells
    config = replace(
        config, algorithm=replace(config.algorithm, options=options), iterations=int(row.get("iteration", 0))
    )
    folder = None if out is None else new_folder(Path(out))
    if folder is not None:
        write_archive(folder / ARCHIVE, archive, config.iterations)
        write_text(folder / METRICS_CSV, table_of(row, [row]))
        write_config(folder, config)
    return Run(task, config, archive, columns_of([row]), folder)
