"""What a user sees while a run goes on: a progress bar in a terminal, plain lines elsewhere."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from moqd.experiment.run import Callback
from moqd.experiment.store import Run


class Display(Callback):
    """Iterations done, time left and the main metrics."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[metrics]}"),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._task = TaskID(0)
        self._iterations = 0
        self._shown = float("-inf")

    def __enter__(self) -> "Display":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def on_start(self, config: Mapping[str, Any]) -> None:
        self._iterations = config["iterations"]
        label = f"{config['algorithm']['name']} on {config['task']['name']}"
        self._console.print(f"{label}: {self._iterations} iterations of {config['batch']} evaluations, compiling ...")
        self._task = self._bar.add_task(label, total=self._iterations, metrics="")

    def on_log(self, row: Mapping[str, float]) -> None:
        shown = (
            f"moqd_score {row['moqd_score']:.5g}  coverage {row['coverage']:.0%}  solutions {row['num_solutions']:.0f}"
        )
        self._bar.update(self._task, completed=int(row["iteration"]), metrics=shown)
        last = int(row["iteration"]) == self._iterations
        if not self._live and (last or row["seconds"] - self._shown >= 1):
            self._shown = row["seconds"]
            at = f"iteration {row['iteration']:.0f}/{self._iterations}"
            self._console.print(f"{at}  {row['seconds']:.1f} s  {shown}", highlight=False)

    def on_end(self, run: Run) -> None:
        self._bar.stop()
