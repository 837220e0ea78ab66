"""What a user sees while a run goes on: a live display in a terminal, plain lines elsewhere."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from time import monotonic

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from moqd.core.metrics import OF_THE_PAPER, formatted
from moqd.core.types import Source
from moqd.runs.compilation import CompileClock, uses_cache
from moqd.runs.config import RunConfig
from moqd.runs.folder import Run
from moqd.runs.session import Callback

IN_A_LINE = ("moqd_score", "global_hypervolume", "coverage")
"""Those that plain lines have room for."""
SOURCES = tuple(source.name.lower() for source in Source)
RECENT = 60.0
"""Seconds of the run that its speed is taken from."""


class Display(Callback):
    """Progress, speed, metrics, and which sources of offspring still contribute. Use it in a `with` statement.

    Another thread draws the live display, so what it draws from is replaced as a whole and never changed in place.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_live = console.is_interactive
        self._clock = CompileClock()
        self._said = (0.0, 0, 0)
        """What has been said of the compile clock: seconds, programs, programs from the cache."""
        self._label = ""
        self._iterations = self._iteration = 0
        self._of = ""
        """The number of iterations, if it is known."""
        self._limit = math.inf
        """Seconds after which the run ends..."""
        self._steps: int | None = None
        """...or environment steps."""
        self._is_resumed = False
        self._checkpoint: int | None = None
        self._begin = monotonic()
        self._row: Mapping[str, float] | None = None
        self._previous: Mapping[str, float] | None = None
        self._points: tuple[Mapping[str, float], ...] = ()
        """What had been done by the recent log points, and in how many seconds, without those of compiling."""
        self._end: float | None = None
        """When the run is expected to end, on the monotonic clock..."""
        self._deadline = math.inf
        """...and when it does at the latest."""
        self._added: dict[str, int] = {}
        self._contributors: frozenset[str] = frozenset()
        self._printed = -math.inf
        self._live = Live(console=console, get_renderable=self.picture, refresh_per_second=4, transient=True)

    def __enter__(self) -> "Display":
        self._clock.__enter__()
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._clock.__exit__()

    def stop(self) -> None:
        """Takes the live display away and gives the terminal back; from any thread, and more than once."""
        with suppress(OSError, SystemExit):
            self._live.stop()

    def on_start(self, config: RunConfig) -> None:
        self._iterations, self._begin = config.iterations, monotonic()
        self._limit = math.inf if config.minutes is None else 60 * config.minutes
        self._steps = config.env_steps
        self._of = f"/{config.iterations}" if config.of_iterations else ""
        label = f"{config.algorithm.name} on {config.task.name}"
        limits = [f"{config.minutes:g} minutes"] if config.minutes is not None else []
        limits += [f"{config.env_steps:,} environment steps"] if config.env_steps is not None else []
        limits += [f"patience of {config.patience} iterations"] if config.patience is not None else []
        number = f"{config.iterations} iterations" if self._of else "iterations"
        self._say(", ".join([f"{label}: {number} of {config.batch} evaluations", *limits]))
        if not self._is_live:
            self._say(f"compiling ...{_hint()}")
        self._label = label

    def on_progress(self, iteration: int) -> None:
        if self._row is None and not self._is_resumed:  # nothing was logged in this process yet
            more = "" if iteration < self._iterations else ", so it is finished; --iterations N extends it"
            self._say(f"goes on from iteration {iteration}{self._of.replace('/', ' of ')}{more}")
            self._is_resumed = True
        self._iteration = iteration
        self._foresee()

    def on_log(self, row: Mapping[str, float]) -> None:
        self._say_what_was_compiled(row)
        self._count_additions(row)
        self._previous, self._row, self._iteration = self._row, dict(row), int(row["iteration"])
        point = {name: row[name] for name in ("seconds", "iteration", "evaluations", "env_steps") if name in row}
        point["seconds"] -= self._clock.seconds
        recent = tuple(old for old in self._points if old["seconds"] >= point["seconds"] - RECENT)
        self._points = (*(recent or self._points[-1:]), point)
        self._foresee()
        last = self._iteration == self._iterations
        if not self._is_live and (last or row["seconds"] - self._printed >= 1):
            self._say(self._line(row))
            self._printed, self._added = row["seconds"], {}

    def on_checkpoint(self, path: Path) -> None:
        self._checkpoint = self._iteration
        if not self._is_live:
            self._say(f"checkpoint at iteration {self._checkpoint}")

    def on_end(self, run: Run) -> None:
        self.stop()
        if run.ended:
            self._say(run.ended)

    def _say(self, line: str) -> None:
        """What cannot be shown, to a full disk or a closed pipe, must not end the run."""
        with suppress(OSError, SystemExit):  # the latter is what rich makes of a closed pipe
            self._console.print(Text(line), soft_wrap=True)

    def _say_what_was_compiled(self, row: Mapping[str, float]) -> None:
        now = (self._clock.seconds, self._clock.programs, self._clock.from_cache)
        seconds, programs, cached = (new - old for new, old in zip(now, self._said, strict=True))
        if seconds > 1 if self._row is not None else programs:
            took = f"in {seconds:.1f} s"
            if self._row is not None:
                took = f"for another {seconds:.1f} s up to iteration {row['iteration']:.0f}"
            self._say(f"compiled {took} ({cached} of {programs} programs from the cache)")
            self._said = now

    def _count_additions(self, row: Mapping[str, float]) -> None:
        """Since the last log point; for plain lines, since the last line."""
        now = {source: int(row.get(f"added_{source}", 0)) for source in SOURCES}
        contributors = frozenset(source for source, count in now.items() if count)
        if self._row is not None:  # the first batch is random, and no other
            self._contributors |= contributors
        before = {} if self._is_live else self._added
        shown = self._contributors | contributors | before.keys()
        self._added = {source: count + before.get(source, 0) for source, count in now.items() if source in shown}

    def _foresee(self) -> None:
        speed, now = speed_of(self._points).get("iteration"), monotonic()
        if self._row is not None and self._row["iteration"] == self._iteration:
            self._deadline = now + self._limit - self._row["seconds"]
        by_speed = math.inf if speed is None or not self._of else now + (self._iterations - self._iteration) / speed
        steps_per_second = speed_of(self._points).get("env_steps")
        if self._steps is not None and self._row is not None and steps_per_second:
            by_speed = min(by_speed, now + (self._steps - self._row["env_steps"]) / steps_per_second)
        end = min(by_speed, self._deadline)
        self._end = end if math.isfinite(end) else None

    def _time_left(self) -> str:
        end = self._end
        if end is None or self._iteration >= self._iterations:
            return ""
        return f"{_clock_time(max(0.0, end - monotonic()))} left"

    def _speeds(self, unit: str) -> list[str]:
        speed = speed_of(self._points)
        units = {"evaluations": unit, "env_steps": "steps/s"}
        return [f"{_count(speed[name])} {unit}" for name, unit in units.items() if name in speed]

    def _line(self, row: Mapping[str, float]) -> str:
        """The plain line of a log point."""
        total = sum(self._added.values())
        added = ", ".join(f"{source} {count} ({count / max(1, total):.0%})" for source, count in self._added.items())
        parts = [
            f"iteration {row['iteration']:.0f}{self._of}",
            f"{row['seconds']:.1f} s",
            *self._speeds("ev/s"),
            self._time_left(),
            *(f"{name} {formatted(name, row[name])}" for name in IN_A_LINE),
            f"added: {added or 'none'}",
        ]
        return "  ".join(part for part in parts if part)

    def picture(self) -> RenderableType:
        """The live display as it is now."""
        if not self._label:
            return Group()
        row, previous, added = self._row, self._previous, self._added
        parts: list[RenderableType] = [self._bar(), Padding(self._status(), (0, 2))]
        if row is not None:
            tables = Table.grid(padding=(0, 6, 0, 0))
            up_and_down = "+-" if self._console.options.ascii_only else "▲▼"
            tables.add_row(metrics_table(row, previous, up_and_down), additions_table(added))
            parts.append(Padding(tables, (1, 2, 0, 2)))
        return Group(*parts)

    def _bar(self) -> RenderableType:
        total: float | None = self._iterations if self._of else None
        done: float = self._iteration
        if not self._of and math.isfinite(self._deadline):
            total, done = self._limit, self._limit - max(0.0, self._deadline - monotonic())
        elif not self._of and self._steps is not None and self._row is not None:
            total, done = self._steps, self._row["env_steps"]
        bar = ProgressBar(total, done, complete_style="cyan", finished_style="cyan", pulse_style="cyan")
        label, middle = Column(no_wrap=True, overflow="ellipsis"), Column(ratio=1, min_width=10)
        ends = Column(no_wrap=True), Column(no_wrap=True)
        table = Table.grid(label, middle, *ends, padding=(0, 2, 0, 0), expand=True)
        iteration = f"iteration {self._iteration}{self._of}"
        table.add_row(Text(self._label, style="bold"), bar, iteration, self._time_left())
        return table

    def _status(self) -> Text:
        if self._row is None and not self._is_resumed:
            status = f"compiling, {_clock_time(monotonic() - self._begin)}{_hint()}"
        elif self._clock.busy:
            status = "compiling"
        else:
            status = "   ".join(self._speeds("evaluations/s")) or "measuring the speed"
        saved = "" if self._checkpoint is None else f"   checkpoint at iteration {self._checkpoint}"
        return Text.assemble(status, (saved, "dim"))


def speed_of(points: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """What was done in a second between the first and the last of these points; empty where nothing can be said."""
    seconds = points[-1]["seconds"] - points[0]["seconds"] if points else 0.0
    if seconds <= 0 or points[-1]["iteration"] <= points[0]["iteration"]:
        return {}
    return {name: (end - points[0][name]) / seconds for name, end in points[-1].items() if name in points[0]}


def metrics_table(row: Mapping[str, float], previous: Mapping[str, float] | None, up_and_down: str) -> Table:
    """The six metrics, and how they changed since the log point before."""
    rows = []
    for name in OF_THE_PAPER:
        change = "" if previous is None else _change(name, row[name] - previous[name], up_and_down)
        rows.append((name, Text(formatted(name, row[name]), style="bold"), change))
    return _table(("metric", "value", "change"), rows)


def additions_table(added: Mapping[str, int]) -> Table:
    """How many of the archive's newcomers each source made."""
    total = max(1, sum(added.values()))
    rows = [(source, f"{count:,}", f"{count / total:.0%}") for source, count in added.items()]
    return _table(("added by", "count", "share"), rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[RenderableType]]) -> Table:
    """With names to the left, and numbers to the right."""
    first, *others = header
    table = Table.grid(first, *(Column(justify="right") for _ in others), padding=(0, 2, 0, 0))
    for row in ([Text(name, style="dim") for name in header], *rows):
        table.add_row(*row)
    return table


def _change(name: str, difference: float, up_and_down: str) -> str:
    if not math.isfinite(difference) or difference == 0:
        return "=" if difference == 0 else ""
    return f"{up_and_down[difference < 0]} {formatted(name, abs(difference), digits=3)}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _clock_time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _hint() -> str:
    return " (longer the first time, later from the cache)" if uses_cache() else ""
