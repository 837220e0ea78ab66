"""The command `moqd pick`: one policy of a run, chosen by a preference, and what can be done with it."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.text import Text

from moqd.choose.ask import Answer, ask_actor
from moqd.choose.pick import RULES, Choice, Solution, choose, neighbours, reevaluated, solution_of, varies
from moqd.choose.policy_file import SUFFIXES, export_policy
from moqd.cli.output import number_table, say
from moqd.cli.own import parse
from moqd.io.errors import InputError
from moqd.io.options import whole_number
from moqd.runs.folder import Run, load_run
from moqd.runs.table import Solutions


@dataclass(frozen=True)
class PickOptions:
    """Chooses one solution of a run by what matters to you, and shows it with those next to it; on request it writes
    the policy, films its gait, or tries it from other initial states."""

    run: Path = field(metadata={"positional": "RUN"})
    """The folder of the run."""
    preference: str | None = None
    """A weight for each objective, such as 0.7,0.3; if not given, all count the same. Objectives are scaled to [0, 1]
    over the global front first, so weights mean the same in any units."""
    feature: str | None = None
    """Only in the cell of this feature, such as 0.2,0.8, or in the nearest with a solution within the limits."""
    limit: tuple[str, ...] = ()
    """What an objective, feature, constraint or parameter must be, in its own units and in quotes, such as
    "energy>=-1.5" or "material==steel"; the relation is <=, >=, <, >, == or !=. There may be several. If several have
    the name, the first of these four is meant, and "speed (feature)" names another."""
    rule: Literal["weighted", "achievement", "knee"] = "weighted"
    """weighted: the largest weighted sum. achievement: the least weighted regret, which also finds trade-offs in
    dents of the front. knee: the trade-off that would be missed most, whatever the preference."""
    solution: int | None = None
    """Not by a rule, but this one: the number that the explorer shows."""
    actor: bool = False
    """Ask the actor of the run for the --preference (and --feature, if it takes one) instead: what it answers is a
    policy that the archive does not have. It is evaluated and shown next to the archive's choice."""
    json: bool = False
    """Print the choice as JSON instead of tables."""
    export: Path | None = None
    """Write the policy to this file: .npz, or .onnx (which needs the extra onnx)."""
    video: Path | None = None
    """Film the gait: .gif, or .mp4 (which needs the program ffmpeg)."""
    episodes: int | None = None
    """Try the policy in so many episodes from random initial states, and say how stable it is."""
    seed: int = 0
    """Of these initial states."""


def main(arguments: Sequence[str], out: Console) -> int:
    options, _ = parse("moqd pick", PickOptions, arguments, out)
    if options.export is not None and options.export.suffix not in SUFFIXES:
        raise InputError(f"--export is {str(options.export)!r}; give a name that ends in .npz or .onnx.")
    if options.episodes is not None:
        whole_number("--episodes", options.episodes, least=1)
    if options.video is not None:
        from moqd.plots.gait import video_writer  # here, because matplotlib takes its time

        video_writer(options.video)  # so that what cannot be written is said first
    run = load_run(options.run)
    solutions = run.solutions()
    choice = _choice(options, run, solutions)
    rule = "" if options.solution is not None else options.rule
    chosen = solution_of(run, solutions, choice.row, rule, choice.value)
    if options.actor:
        others, chosen = {f"archive: {choice.row}": chosen}, _asked(options, out)
    else:
        near = neighbours(solutions, choice, run.task.direction)
        others = {str(row): solution_of(run, solutions, row) for row in near}
    again = None
    if options.episodes is not None:
        with out.status(f"trying it in {options.episodes} episodes"):
            tried = reevaluated(chosen, options.episodes, options.seed)
        again = {name: _statistics(column) for name, column in tried.items()}
    if options.json:
        out.print_json(json.dumps(_described(choice.row, chosen, again), allow_nan=False))
    else:
        _show(out, {str("actor" if options.actor else choice.row): chosen, **others})
        if again is not None:
            _show_again(out, chosen, again)

    def written(what: str, path: Path) -> None:
        if not options.json:
            say(out, f"{what} written to [bold]{escape(str(path))}[/]")

    if options.export is not None:
        written("policy", export_policy(chosen, options.export))
    if options.video is not None:
        _film(chosen, options.video, out)
        written("gait", options.video)
    return 0


def _asked(options: PickOptions, out: Console) -> Answer:
    if options.solution is not None or options.limit:
        raise InputError("--actor cannot be combined with --solution or --limit: it chooses nothing from the archive.")
    preference, feature = (_numbers(name, getattr(options, name)) for name in ("preference", "feature"))
    with out.status("asking the actor"):
        return ask_actor(options.run, preference, feature=feature)


def _choice(options: PickOptions, run: Run, solutions: Solutions) -> Choice:
    if options.solution is None:
        preference, feature = (_numbers(name, getattr(options, name)) for name in ("preference", "feature"))
        return choose(run, solutions, preference, feature=feature, limits=options.limit, rule=options.rule)
    for name in ("preference", "feature", "limit"):
        if getattr(options, name):
            raise InputError(f"--{name} chooses a solution, and --solution names one; give one of the two.")
    if len(solutions.cell) == 0:
        raise InputError("the archive is empty; there is nothing to choose from.")
    if not 0 <= options.solution < len(solutions.cell):
        raise InputError(f"--solution is {options.solution}; the run has those from 0 to {len(solutions.cell) - 1}.")
    return Choice(options.solution, float("nan"), np.arange(len(solutions.cell)))


def _numbers(name: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--{name} is {text!r}; give numbers with commas between them, such as 0.7,0.3.") from None


Statistics = dict[str, float | int | None]
"""Of an objective or a feature over episodes."""


def _described(row: int, chosen: Solution, again: Mapping[str, Statistics] | None) -> dict[str, Any]:
    asked = chosen if isinstance(chosen, Answer) else None
    known = {
        "solution": row if asked is None else None,
        "asked_for": None if asked is None else {"preference": asked.preference, "features": asked.asked_features},
        "is_new": None if asked is None else asked.is_new,
        "cell": chosen.cell,
        "objectives": chosen.objectives,
        "features": chosen.features,
        "constraints": _as_json(chosen.constraints) or None,
        "made_for": (chosen.preference or None) if asked is None else None,
        "parameters": _parameters(chosen),
        "rule": chosen.rule or None,
        "value": chosen.value if chosen.rule else None,
        "episodes": again,
    }
    return {name: part for name, part in known.items() if part is not None}


def _statistics(column: Float[np.ndarray, "episodes"]) -> Statistics:
    """Over the episodes that did not fail."""
    known = column[np.isfinite(column)]
    parts: dict[str, Callable[[Any], Any]] = {"mean": np.mean, "std": np.std, "least": np.min, "most": np.max}
    values = {name: float(part(known)) if len(known) else None for name, part in parts.items()}
    return {**values, "episodes": len(column), "failed": len(column) - len(known)}


def _show(out: Console, shown: Mapping[str, Solution]) -> None:
    """The chosen solution and those next to it, by their numbers."""
    chosen = next(iter(shown.values()))
    task = chosen.task
    if chosen.rule:
        out.print(f"{chosen.rule}: {escape(RULES[chosen.rule])}", style="dim")
    # A row for each name, since they may be long, or many.
    table = number_table("", *["chosen", "next to it", *[""] * len(shown)][: len(shown)])
    table.add_row("solution", *shown)
    table.add_row("cell", *(str(one.cell) for one in shown.values()))
    for kind in ("objectives", "features", "constraints"):
        for name in getattr(chosen, kind):
            arrow = ("↓ " if name in task.minimised else "↑ ") if kind == "objectives" else ""
            numbers = (f"{getattr(one, kind)[name]:.5g}" for one in shown.values())
            table.add_row(Text(f"{arrow}{task.label(name)}"), *numbers)
    if isinstance(chosen, Answer):
        for name, value in chosen.asked_features.items():
            table.add_row(Text(f"asked for {name}"), f"{value:.5g}")
    for i, name in enumerate(task.objective_names if all(one.preference for one in shown.values()) else ()):
        table.add_row(Text(f"preference {name}"), *(f"{one.preference[i]:.2f}" for one in shown.values()))
    for column in table.columns[1:]:
        column.no_wrap = True
    table.columns[1].style = "bold"
    out.print(table)
    if isinstance(chosen, Answer):
        say(out, f"the actor's policy is not in the archive: {chosen.verdict}")
    if (parameters := _parameters(chosen)) is not None:
        texts = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in parameters.values())
        named = ", ".join(f"{task.label(name)} = {text}" for name, text in zip(parameters, texts, strict=True))
        say(out, f"parameters of the chosen one: {escape(named)}")


def _parameters(chosen: Solution) -> dict[str, Any] | None:
    """By their names, where a solution has some; what is no number of JSON is text."""
    return None if chosen.task.space is None else _as_json(chosen.parameters)


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: value for name, value in values.items() if isinstance(value, int | float) and math.isfinite(value)}
    return {name: numbers.get(name, str(value)) for name, value in values.items()}


def _show_again(out: Console, chosen: Solution, again: Mapping[str, Statistics]) -> None:
    first = next(iter(again.values()))
    failed = f", of which {first['failed']} failed" if first["failed"] else ""
    start = " from random initial states" if varies(chosen.task) else ""
    out.print(f"in {first['episodes']} episodes{start}{failed}:")
    parts = ("mean", "std", "least", "most")
    table = number_table("", "once" if isinstance(chosen, Answer) else "archived", *parts)
    archived = (*chosen.objectives.values(), *chosen.features.values())
    for (name, values), value in zip(again.items(), archived, strict=True):
        numbers = [value, *(values[part] for part in parts)]
        table.add_row(Text(name), *("-" if number is None else f"{number:.5g}" for number in numbers))
    out.print(table)


def _film(chosen: Solution, path: Path, out: Console) -> None:
    from moqd.plots.gait import frames_shown, write_video  # here, because matplotlib takes its time

    with out.status("simulating the gait"):
        replay = chosen.replay()
    with Progress(console=out, transient=True) as progress:
        bar = progress.add_task("filming", total=len(frames_shown(replay)))
        trade_off = "   ".join(f"{name} {value:.4g}" for name, value in chosen.objectives.items())
        write_video(replay, path, f"{chosen.task.name}\n{trade_off}", lambda: progress.advance(bar))
