"""A study in Python: its tables, as its report has them, and its runs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moqd.io.errors import InputError, known_name
from moqd.runs.folder import CONFIG, Run, load_run
from moqd.runs.table import frame_of
from moqd.runs.user_code import load_algorithm, load_task
from moqd.study.analysis import TABLES
from moqd.study.execute import stored_study
from moqd.study.plan import Study
from moqd.study.status import folder_of, results_of
from moqd.study.summaries import Results


@dataclass(frozen=True, eq=False, repr=False)
class LoadedStudy:
    """What has come of a study when it was loaded, whether or not it is finished.

    Its tables, by their names:

    - `runs`: a row for each finished run, with its final metrics;
    - `metrics`: a row for each of its log points, with the columns of metrics.csv;
    - `curves`: the metrics over evaluations, as medians and quartiles over seeds;
    - `summary`: medians, quartiles, interquartile means and their confidence intervals of the final metrics;
    - `comparisons`: the reference against each other algorithm, with p values, effect sizes and outcomes;
    - `tally`: on how many tasks the reference wins, ties and loses;
    - `one_hot`, `data_efficiency`, `additions`, `wall_clock`, `parameters`: what else the report has;
    - `unfinished`: the other runs, with their state.
    """

    path: Path
    """Its folder."""
    plan: Study
    _results: Results

    def __repr__(self) -> str:
        done, planned = len(self._results.results), len(self.plan.runs)
        of = f"{', '.join(self.algorithms)} on {', '.join(self.tasks)}"
        return f"study {self.plan.name!r}: {of}; {done} of {planned} runs are finished"

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.plan.tasks

    @property
    def algorithms(self) -> tuple[str, ...]:
        """By their names in the study."""
        return self.plan.algorithms

    @property
    def seeds(self) -> tuple[int, ...]:
        return self.plan.seeds

    def rows(self, table: str = "runs") -> list[dict[str, Any]]:
        """The rows of a table, each with its values by column."""
        found = TABLES[known_name("table", table, TABLES)](self._results)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def to_pandas(self, table: str = "runs") -> Any:
        """A table as a pandas.DataFrame."""
        found = TABLES[known_name("table", table, TABLES)](self._results)
        return frame_of({name: [row[i] for row in found.rows] for i, name in enumerate(found.columns)})

    def run(self, task: str, algorithm: str, seed: int) -> Run:
        """A run with its archive, read from its folder now."""
        for planned in self.plan.runs:
            if (planned.task, planned.algorithm, planned.seed) == (task, algorithm, seed):
                folder = folder_of(self.path.parent, planned)
                if not (folder / CONFIG).exists():
                    raise InputError(f"the archive of {planned} is not here: there is no run in {str(folder)!r}.")
                return load_run(folder, task=self._results.tasks[task])
        raise InputError(f"the study has no run of {algorithm!r} on {task!r} with seed {seed}.")


def load_study(
    folder: str | os.PathLike[str], *, tasks: Sequence[str] = (), algorithms: Sequence[str] = ()
) -> LoadedStudy:
    """A study that `moqd study` has made, or is making, from its folder.

    If it is of tasks or algorithms of your own, say where they are: tasks=["FILE.py:NAME"].
    """
    for spec in tasks:
        load_task(spec)
    for spec in algorithms:
        load_algorithm(spec)
    path = Path(folder).resolve()
    plan = stored_study(path)
    return LoadedStudy(path, plan, results_of(path.parent, plan))
