"""What a user sees of a study: how many runs are done, what goes on, what failed and why, and the time left."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from time import monotonic

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from moqd.io.errors import one_line
from moqd.runs.folder import LOG
from moqd.study.execute import StudyCallback
from moqd.study.job import Ending
from moqd.study.plan import PlannedRun, Study
from moqd.study.status import Standing, counts_of, folder_of, seconds_left, standing_of

STYLES = {"done": "green", "running": "cyan", "stopped": "yellow", "failed": "red", "waiting": "dim"}
MOST_LISTED = 8
"""Runs that are listed one by one; of more than that the rest is counted."""
EVERY = 2.0
"""Seconds between two looks at the files of what is running."""


class StudyDisplay(StudyCallback):
    """A live table in a terminal; elsewhere a line for each run that ends. Use it in a `with` statement."""

    def __init__(self, console: Console, root: Path, study: Study, workers: int) -> None:
        self._console, self._root, self._study, self._workers = console, root, study, workers
        self._standings = {run.key: standing_of(root, run) for run in study.runs}
        self._looked = monotonic()
        self._doing = ""
        self._elsewhere: set[str] = set()
        self._live = Live(console=console, get_renderable=self.picture, refresh_per_second=2, transient=True)

    def __enter__(self) -> "StudyDisplay":
        counts = counts_of(self._standings.values())
        self.say(f"{self._study.name}: {overview(self._study)}; {_in_words(counts)}")
        if self._console.is_interactive:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Gives the terminal back; from any thread, and more than once."""
        with suppress(OSError, SystemExit):
            self._live.stop()

    def say(self, text: str, style: str = "") -> None:
        """What cannot be shown must not end the study."""
        with suppress(OSError, SystemExit):
            self._console.print(Text(text, style=style), soft_wrap=True)

    def on_end(self, run: PlannedRun, ending: Ending) -> None:
        standing = self._standings[run.key] = standing_of(self._root, run)
        counts = counts_of(self._standings.values())
        done = f"[{counts['done'] + counts['failed']}/{len(self._standings)}]"
        if ending is Ending.DONE:
            left = "" if self._console.is_interactive else self._time_left()
            self.say("  ".join(filter(None, [f"{done} {run}: done in {_clock(standing.seconds)}", left])))
        elif ending is Ending.FAILED:
            reason = standing.reason or "it could not even say why; perhaps the disk is full"
            self.say(f"{done} {run}: failed: {one_line(reason)}", "red")
            self.say(f"    see {folder_of(self._root, run) / LOG}", "dim")

    def on_busy(self, run: PlannedRun) -> None:
        if run.key not in self._elsewhere:
            self._elsewhere.add(run.key)
            self.say(f"{run}: another process is making it; waiting for it")

    def on_look(self) -> None:
        if monotonic() - self._looked < EVERY:
            return
        self._looked = monotonic()
        for key, standing in list(self._standings.items()):
            if standing.state not in ("done", "failed"):
                self._standings[key] = standing_of(self._root, standing.run)

    def on_timing(self, run: PlannedRun) -> None:
        self._doing = f"timing the parts of {run.algorithm} on {run.task}"
        if not self._console.is_interactive:
            self.say(self._doing)

    def on_timed(self, run: PlannedRun, ending: Ending) -> None:
        if ending is Ending.FAILED:
            log = folder_of(self._root, run) / LOG
            self.say(f"the parts of {run.algorithm} on {run.task} could not be timed; see {log}", "red")

    def picture(self) -> RenderableType:
        """The live display as it is now."""
        standings = list(self._standings.values())
        parts = [self._bar(standings), Text(), matrix(self._study, standings), going_on(standings)]
        return Group(*parts, *([Text(self._doing, style="cyan")] if self._doing else []))

    def _bar(self, standings: Sequence[Standing]) -> RenderableType:
        done, work = (sum(parts) for parts in zip(*(one.work for one in standings), strict=True))
        columns = Column(no_wrap=True), Column(ratio=1, min_width=10), Column(no_wrap=True)
        table = Table.grid(*columns, padding=(0, 2, 0, 0), expand=True)
        bar = ProgressBar(work, done, complete_style="cyan", finished_style="cyan")
        table.add_row(Text(self._study.name, style="bold"), bar, self._time_left())
        return table

    def _time_left(self) -> str:
        standings = list(self._standings.values())
        left = seconds_left(standings, self._workers or counts_of(standings)["running"])
        return f"about {_clock(left)} left" if left else ""


def show_status(console: Console, root: Path, study: Study, standings: Sequence[Standing]) -> None:
    """What is done, running, failed (with the reason), and the time left."""
    counts = counts_of(standings)
    console.print(Text(f"{study.name}: {overview(study)}", style="bold"), soft_wrap=True)
    console.print(Text(_in_words(counts)))
    console.print(matrix(study, standings))
    console.print(going_on(standings))
    for run, state, *_, reason in standings:
        if state == "failed":
            console.print(Text(f"failed: {run}: {one_line(reason)}", style="red"), soft_wrap=True)
            console.print(Text(f"    see {folder_of(root, run) / LOG}", style="dim"), soft_wrap=True)
    if counts["done"] == len(standings):
        return
    left = seconds_left(standings, counts["running"])
    if left is None:
        console.print("time left: not known before some iterations are done")
    elif counts["running"]:
        console.print(f"time left: about {_clock(left)} with {counts['running']} running", highlight=False)
    else:
        console.print(f"nothing is running; left: about {_clock(left)} for one worker", highlight=False)


def overview(study: Study) -> str:
    """How large a study is."""
    few, *_, many = sorted(len(study.seeds_of(task)) for task in study.tasks) * 2
    sizes = ((len(study.tasks), "task"), (len(study.algorithms), "algorithm"), (many, "seed"))
    least = f"{few} to " if few < many else ""
    grid = " x ".join(f"{least * (what == 'seed')}{number} {what}{'s' * (number != 1)}" for number, what in sizes)
    return f"{grid} = {len(study.runs)} run{'s' * (len(study.runs) != 1)}"


def matrix(study: Study, standings: Sequence[Standing]) -> Table:
    """Algorithms x tasks: how many of the seeds are done, and what the others are."""
    table = Table("", *(Column(Text(task), justify="right") for task in study.tasks), box=SIMPLE_HEAD)
    for algorithm in study.algorithms:
        here = [one for one in standings if one.run.algorithm == algorithm]
        table.add_row(Text(algorithm), *(_cell([one for one in here if one.run.task == task]) for task in study.tasks))
    return table


def _cell(standings: Sequence[Standing]) -> Text:
    counts, total = counts_of(standings), len(standings)
    done = (f"{counts['done']}/{total}", STYLES["done"] if counts["done"] == total else "")
    others = [state for state in ("running", "stopped", "failed") if counts[state]]
    return Text.assemble(done, *((f" {counts[state]} {state}", STYLES[state]) for state in others))


def going_on(standings: Sequence[Standing]) -> RenderableType:
    """What is running, and how far it is."""
    running = [standing for standing in standings if standing.state == "running"]
    table = Table.grid(padding=(0, 2, 0, 0))
    for standing in running[:MOST_LISTED]:
        minutes = standing.run.config.minutes
        how_far = f"iteration {standing.iteration}{standing.run.config.of_iterations.replace(' of ', '/')}"
        if minutes is not None:
            how_far += f", {_clock(standing.seconds)} of {_clock(60 * minutes)}"
        if (steps := standing.run.config.env_steps) is not None:
            how_far += f", {standing.env_steps:,} of {steps:,} steps"
        how_far = how_far if standing.seconds else "compiling"
        table.add_row(Text("running", style=STYLES["running"]), Text(str(standing.run)), how_far)
    if len(running) > MOST_LISTED:
        table.add_row("", f"and {len(running) - MOST_LISTED} more")
    return table


def _in_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {state}" for state, number in counts.items() if number)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
