"""The command `moqd explore`: the interactive page of runs, as a file or from a server of this machine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from moqd.cli.output import say
from moqd.cli.own import parse
from moqd.io.errors import InputError
from moqd.io.options import whole_number
from moqd.runs.folder import load_run


@dataclass(frozen=True)
class ExploreOptions:
    """Writes one HTML file in which all that runs found can be looked at: the archive, the front of every cell, the
    gait of each policy, and which of them suits a preference. It opens by double-click, offline, and can be mailed."""

    runs: tuple[Path, ...] = field(metadata={"positional": "RUN"})
    """The folders of one or more runs of the same task; the second is compared with the first."""
    out: Path | None = None
    """The file to write. If not given: explorer.html in the folder of the first run."""
    gaits: Literal["some", "all", "none"] | None = None
    """Which gaits are in the page. some: those of the global front, and of the knee and the extremes of every cell, as
    far as the budget goes. If not given: some, and with --serve none."""
    budget: float = 25.0
    """Megabytes that the file may have, where gaits are some."""
    serve: bool = False
    """Serve the page instead, to this machine only; it can then simulate any policy on demand. Ctrl-C ends it."""
    port: int = 0
    """Where to serve it; 0: any port that is free."""


def main(arguments: Sequence[str], out: Console) -> int:
    options, _ = parse("moqd explore", ExploreOptions, arguments, out)
    if not options.budget > 0:
        raise InputError(f"--budget is {options.budget:g}; give megabytes, more than 0.")
    whole_number("--port", options.port, least=0, most=65535)
    if options.serve and options.out is not None:
        raise InputError("--serve writes no file; leave --out out.")
    gaits = options.gaits or ("none" if options.serve else "some")
    runs = [load_run(path) for path in options.runs]

    from moqd.explorer.write import explorer_page, write_explorer  # here, because matplotlib takes its time

    with Progress(
        TextColumn("recording gaits"), BarColumn(), TextColumn("{task.completed}"), console=out, transient=True
    ) as bar:
        task = bar.add_task("gaits", total=None)
        recording: dict[str, Any] = {"gaits": gaits, "budget": options.budget}
        recording["tick"] = lambda _, number: bar.update(task, completed=number)
        if options.serve:
            page = explorer_page(runs, served=True, **recording)
        else:
            path = write_explorer(runs, options.out, **recording)
    if not options.serve:
        size = f"{path.stat().st_size / 1e6:.1f} MB"
        say(out, f"written to [bold]{escape(str(path))}[/] ({size}); open it in a browser (a double-click will do)")
        return 0

    from moqd.explorer.serve import HOST, ExplorerServer

    try:
        server = ExplorerServer(page, runs, options.port)
    except OSError as error:
        why = f"port {options.port} of {HOST} cannot be used ({error.strerror})"
        raise InputError(f"{why}; give another --port.") from error
    with server:
        say(out, f"open [bold]{escape(server.address)}[/] in a browser of this machine; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            out.print("stopped.")
    return 0
