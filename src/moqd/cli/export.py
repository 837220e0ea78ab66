"""The command `moqd export`: an archive for other programs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from moqd.choose.export import export_csv
from moqd.cli.output import say
from moqd.cli.own import parse
from moqd.io.errors import InputError
from moqd.runs.folder import load_run


@dataclass(frozen=True)
class ExportOptions:
    """Writes the archive of a run for other programs."""

    run: Path = field(metadata={"positional": "RUN"})
    """The folder of the run."""
    csv: bool = False
    """As a table with a row for each solution: its cell, features, objectives, constraints and parameters, in their own
    units, and the preference that it was made for, if solutions were made for any."""
    out: Path | None = None
    """The file to write to. If not given: solutions.csv in the folder of the run."""


def main(arguments: Sequence[str], out: Console) -> int:
    options, _ = parse("moqd export", ExportOptions, arguments, out)
    if not options.csv:
        raise InputError("moqd export needs a format; give --csv.")
    result = load_run(options.run)
    path = options.out or options.run / "solutions.csv"
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"--out is {str(path)!r}; give a file in a folder that is there.")
    export_csv(result, path)
    number = len(result.solutions().cell)
    say(out, f"{number} solutions written to [bold]{escape(str(path))}[/]")
    return 0
