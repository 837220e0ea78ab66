"""The command `moqd report`: the report of a run, or of a study."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from moqd.cli.output import say
from moqd.cli.own import parse
from moqd.io.errors import StorageError
from moqd.runs.folder import Run, load_run
from moqd.study.execute import STUDY, stored_study
from moqd.study.status import keep_records, results_of


@dataclass(frozen=True)
class ReportOptions:
    """Writes the report of a run (report.md, figures) or of a study (report.html, report.md, tables as CSV, figures),
    from what it has saved so far."""

    run: Path = field(metadata={"positional": "RUN|STUDY"})
    """The folder of the run, or of the study."""
    out: Path | None = None
    """Another folder to write to. If not given: that of the run, or of the study."""


def main(arguments: Sequence[str], out: Console) -> int:
    options, _ = parse("moqd report", ReportOptions, arguments, out)
    if is_study(options.run):
        write_report_of(options.run, out, options.out)
        return 0
    path = write_run_report(load_run(options.run), out, options.out)
    say(out, f"written to [bold]{escape(str(path))}[/]")
    return 0


def write_run_report(result: Run, out: Console, to: Path | None = None) -> Path:
    """The report of a run, into its folder or another."""
    from moqd.report import write_report  # here, because matplotlib takes its time, and a run should start soon

    with out.status("") as status:
        return write_report(result, to, status.update)


def write_report_of(folder: Path, out: Console, to: Path | None = None) -> None:
    """The report of a study, from what is finished so far, into its folder or another."""
    from moqd.report import write_study_report  # here, because matplotlib takes its time

    folder = named(folder)
    plan = stored_study(folder)
    with Progress(console=out, transient=True) as progress:
        bar = progress.add_task("reading the runs", total=len(plan.runs))
        results = results_of(folder.parent, plan, tick=lambda: progress.advance(bar))
    with suppress(StorageError):  # the report of somebody else's study can be made all the same
        keep_records(folder.parent, results)
    with out.status("drawing the report"):
        path = write_study_report(results, to or folder)
    if results.unfinished:
        number = f"{len(results.unfinished)} of {len(plan.runs)} runs"
        say(out, f"[yellow]{number} are not finished[/]: the report lists them, but its numbers do not count them.")
    say(out, f"written to [bold]{escape(str(path))}[/]")


def named(folder: Path) -> Path:
    """The folder by a path that ends in its name."""
    return folder if folder.name not in ("", "..") else folder.resolve()


def is_study(folder: Path) -> bool:
    return (folder / STUDY).exists()
