"""The command `moqd diagnose`: whether learning pays in a run, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from moqd.cli.output import number_table, say
from moqd.cli.own import parse
from moqd.cli.watch import devices_of
from moqd.core.devices import use_devices
from moqd.io.errors import InputError
from moqd.io.files import write_json
from moqd.runs.diagnose import Diagnosis, diagnose
from moqd.runs.folder import read_config

TITLES = {
    "offspring": "what offspring of each source are worth",
    "gradients": "how gradients change w.F, in standard deviations of the reward",
    "critics": "what the critic expects of a policy, and its discounted return, in the same unit",
    "falls": "how episodes end",
}
HEADERS = {
    "entered": "would enter",
    "hypervolume": "hypervolume each",
    "seconds": "seconds each",
    "hypervolume_per_second": "hypervolume / s",
    "improved": "better",
    "change": "mean change",
    "rank_correlation": "rank corr.",
    "predicted": "w.Q1",
    "returned": "return",
    "length": "mean length",
}
SHARES = ("entered", "improved", "fell")
LEFT_OUT = ("beyond_end",)
"""The reading says it where it matters."""


@dataclass(frozen=True)
class DiagnoseOptions:
    """Makes some generations of offspring from the newest checkpoint of a run, and says what those of each source are
    worth, whether gradients improve policies, how well the critic predicts returns, and how episodes end. The run is
    only read."""

    run: Path = field(metadata={"positional": "RUN"})
    """The folder of the run."""
    generations: int = 4
    """How many generations to make and evaluate, at least 2; with more of them the numbers are more certain."""
    seed: int = 0
    """Another one makes other offspring."""
    json: Path | None = None
    """A file to write the numbers to, as JSON."""
    devices: int | None = None
    """How many local devices to use. If not given: as many as the run."""


def main(arguments: Sequence[str], out: Console) -> int:
    options, _ = parse("moqd diagnose", DiagnoseOptions, arguments, out)
    if options.json is not None and (options.json.is_dir() or not options.json.parent.is_dir()):
        raise InputError(f"--json is {str(options.json)!r}; give a file in a folder that is there.")
    recorded = devices_of(read_config(options.run))
    use_devices(recorded if options.devices is None else options.devices)
    with out.status("making offspring and evaluating them"):
        found = diagnose(options.run, generations=options.generations, seed=options.seed)
    _show(out, found)
    if options.json is not None:
        write_json(options.json, found.to_json())
        say(out, f"written to [bold]{escape(str(options.json))}[/]")
    return 0


def _show(out: Console, found: Diagnosis) -> None:
    what = f"{found.algorithm} on {found.task}, from iteration {found.iteration}: {found.generations} generations"
    say(out, f"[bold]{escape(what)}[/]")
    if found.weight_of and len(found.tables) > 1:
        say(out, f"A preference is the weight of {escape(found.weight_of)}.")
    for name, rows in found.tables.items():
        out.print(f"\n{TITLES[name]}")
        first, *others = columns = [column for column in rows[0] if column not in LEFT_OUT]
        table = number_table(first, *(HEADERS.get(column, column) for column in others))
        for row in rows:
            table.add_row(*(Text(_formatted(column, row[column])) for column in columns))
        out.print(table)
        say(out, escape(found.readings[name]))


def _formatted(column: str, value: Any) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0%}" if column in SHARES else f"{value:.3g}"
