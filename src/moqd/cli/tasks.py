"""The command `moqd tasks`: the list of tasks, or one of them and what random solutions of it reach."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from rich.console import Console

from moqd.cli.output import print_list
from moqd.cli.own import OwnOptions, named_task
from moqd.cli.parser import Line
from moqd.io.errors import InputError
from moqd.tasks import TASKS


@dataclass(frozen=True)
class TasksOptions:
    """Lists the tasks, or looks at one of them."""

    task: str | None = field(default=None, metadata={"positional": "TASK"})
    """The task to look at. If not given: all of them."""
    sample: int | None = None
    """Evaluate so many random solutions, and say what they reach and how many fall below the reference point."""
    seed: int = 0
    """Seed of the random solutions."""
    reference_point: tuple[float, ...] | None = None
    """Another reference point, one number per objective."""


def main(arguments: Sequence[str], out: Console) -> int:
    if not arguments:
        return _list(out)

    from moqd.cli.look import look_at, sample  # here, because JAX takes its time
    from moqd.core.devices import use_devices
    from moqd.tasks import make_task

    line = Line("moqd tasks", arguments)
    line.match(TasksOptions, OwnOptions, others=TASKS)
    name = named_task(line, line.values(TasksOptions).get("task"))
    config = [] if name is None else [TASKS[name].config]
    options, _, *config = line.build(out, TasksOptions, OwnOptions, *config)
    if name is None:
        if options.sample is not None:
            raise InputError("--sample needs a task: moqd tasks hopper-2 --sample 256.")
        return _list(out)
    use_devices()
    task = make_task(name, **asdict(config[0]) | {"reference_point": options.reference_point})
    look_at(out, name, task)
    if options.sample is not None:
        sample(out, task, options.sample, options.seed)
    return 0


def _list(out: Console) -> int:
    sizes = {name: [f"{size:,}" for size in entry.sizes or ()] or [""] * 3 for name, entry in TASKS.items()}
    rows = {name: (*sizes[name], entry.summary) for name, entry in TASKS.items()}
    print_list(out, ("obj", "feat", "params", "task"), rows)
    out.print("\nobj: objectives, feat: features, params: parameters of a solution", style="dim")
    out.print("[bold]moqd tasks NAME[/] shows one with its options.")
    return 0
