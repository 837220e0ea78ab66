"""The command line: `moqd train TASK`, `moqd resume RUN` and the other commands that `moqd --help` lists.

The module of a command is imported when that command is used, so that none waits for what another needs.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from rich.console import Console
from rich.markup import escape

from moqd.cli.output import say
from moqd.cli.parser import HELP
from moqd.io.errors import DivergenceError, EvaluationError, InputError, StorageError, unknown_name

COMMANDS = {
    "train": ("arm-2", "run an algorithm on a task"),
    "resume": ("RUN", "continue a run that was stopped"),
    "study": ("small-main --seeds 3", "make all runs of a study"),
    "explore": ("RUN", "look at a run in a browser"),
    "pick": ("RUN --preference 0.7,0.3", "choose a policy of a run"),
    "diagnose": ("RUN", "see whether learning pays in a run, and why"),
    "report": ("RUN", "write the report of a run or a study"),
    "export": ("RUN --csv", "write an archive for other programs"),
    "tasks": ("[hopper-2]", "list the tasks, or look at one"),
    "algorithms": ("[mome-p2c]", "list the algorithms, or look at one"),
}
"""How each is used, and what it does. It is a module of moqd.cli with a function `main`."""

out, err = Console(highlight=False), Console(stderr=True, highlight=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; a mistake of the user's is told in one sentence, with exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    warnings.showwarning = lambda message, *_: err.print(f"[yellow]note:[/] {escape(str(message))}", soft_wrap=True)
    try:
        if not arguments or arguments[0] in HELP:
            _overview()
        elif arguments[0] == "--version":
            out.print(f"moqd {version('moqd')}")
        elif arguments[0] not in COMMANDS:
            raise unknown_name("command", arguments[0], COMMANDS)
        else:
            return import_module(f"moqd.cli.{arguments[0]}").main(arguments[1:], out)
    except (InputError, EvaluationError, DivergenceError, StorageError, OSError) as error:
        say(err, f"[red]moqd:[/] {escape(str(error))}")
        return 1 if isinstance(error, (StorageError, OSError)) else 2
    except KeyboardInterrupt:
        err.print("[yellow]stopped.[/]")
        return 130
    return 0


def _overview() -> None:
    out.print("[bold]moqd[/]: many different good solutions, each in many trade-offs\n")
    for name, (example, summary) in COMMANDS.items():
        out.print(f"  [bold]{escape(f'moqd {name} {example}'.ljust(38))}[/]{summary}")
    out.print("\nRUN is the folder of a run, such as runs/arm-2-mome-0.")
    out.print("[bold]moqd COMMAND --help[/] explains a command.")
    out.print("Every command knows a task of your own that is named by --task FILE.py:NAME.")
