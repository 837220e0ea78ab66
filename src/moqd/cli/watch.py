"""A run on the command line: its progress, how it is stopped, what came of it, and its report."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from moqd.cli.output import number_table, say
from moqd.cli.report import write_run_report
from moqd.core.metrics import OF_THE_PAPER, formatted, global_front
from moqd.io.errors import StoppedError, to_resume
from moqd.runs.config import RunConfig
from moqd.runs.control import Control, signals
from moqd.runs.display import Display
from moqd.runs.folder import CONFIG, Run
from moqd.runs.journal import CAUTIONS, cautions, lost_evaluations
from moqd.runs.session import Callback
from moqd.runs.tensorboard import TensorBoard


def watch(out: Console, folder: Path, tensorboard: bool, start: Callable[..., Run]) -> int:
    """A run with its display, that can be stopped; then its report. `start` takes callbacks and control."""
    control, display = Control(), Display(out)
    callbacks: list[Callback] = [display, *([TensorBoard(folder / "tensorboard")] if tensorboard else [])]
    how = f"continue with: [bold]{escape(to_resume(folder))}[/]"

    def told() -> None:
        say(out, "[yellow]stopping[/] when this chunk is done and saved; once more stops at once")

    def at_once() -> None:
        display.stop()
        saved = (folder / CONFIG).exists()
        say(Console(stderr=True, highlight=False), f"[yellow]stopped at once[/]{f'; {how}' if saved else ''}")

    with signals(control, told, at_once) as exit_code, warnings.catch_warnings():
        warnings.filterwarnings("ignore", CAUTIONS)  # which is shown below
        try:
            with display:
                result = start(callbacks=callbacks, control=control)
        except StoppedError as stopped:
            say(out, f"{stopped} Everything is saved; {how}")
            return exit_code()
    _show(out, result)
    report = write_run_report(result, out)
    picture = folder / "figures" / "overview.png"
    say(out, f"written to [bold]{escape(str(report))}[/]; to see it at a glance, open [bold]{escape(str(picture))}[/]")
    return 0


def _show(out: Console, result: Run) -> None:
    """The last metrics, and the ends of the global front."""
    last = {name: column[-1] for name, column in result.metrics.items()}
    out.print(f"\n{last['evaluations']:,.0f} evaluations in {last['seconds']:.1f} s")
    table = number_table("metric", "value")
    for name in (*OF_THE_PAPER, "num_solutions"):
        table.add_row(name, formatted(name, last[name]))
    out.print(table)

    if len(best := global_front(result.archive)):
        out.print(f"the global front has {len(best)} solutions; its ends:")
        table = number_table("best in", *result.task.objective_names)
        for i, name in enumerate(result.task.objective_names):
            solution = best[np.argmax(best[:, i])] * result.task.direction
            table.add_row(Text(name), *(f"{value:.4g}" for value in solution))
        out.print(table)
    for fact in (*lost_evaluations(result), *cautions(result)):
        say(out, escape(fact))


def devices_of(config: RunConfig) -> int | None:
    """As many CPU devices as a run had; None for others, of which there are as many as there are."""
    devices = config.surroundings.devices
    return len(devices) if devices and set(devices) == {"cpu"} else None
