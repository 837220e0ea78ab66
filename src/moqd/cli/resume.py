"""The command `moqd resume`: a run that was stopped goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console

from moqd.cli.own import parse
from moqd.cli.watch import devices_of, watch
from moqd.core.devices import use_devices
from moqd.runs.compilation import use_cache
from moqd.runs.config import LIMITS
from moqd.runs.folder import read_config
from moqd.runs.start import resume


@dataclass(frozen=True)
class ResumeOptions:
    """Continues a run from its newest checkpoint that is whole, and ends as if it had never been interrupted."""

    run: Path = field(metadata={"positional": "RUN"})
    """The folder of the run."""
    iterations: int | None = None
    """A new total of iterations, which extends a run that is finished. New limits replace all that the run had; if
    none is given: as it was started."""
    minutes: float | None = None
    """A new total of minutes, with those that the run has taken up to now."""
    env_steps: int | None = None
    """A new total of environment steps."""
    patience: int | None = None
    """A new number of iterations without a better MOQD score after which the run ends."""
    tensorboard: bool = False
    """Whether to write metrics for TensorBoard too, into the folder tensorboard of the run."""
    devices: int | None = None
    """How many local devices to use. If not given: as many as before; with others, bits of the result may differ."""


def main(arguments: Sequence[str], out: Console) -> int:
    options, _ = parse("moqd resume", ResumeOptions, arguments, out)
    recorded = devices_of(read_config(options.run))
    use_devices(recorded if options.devices is None else options.devices)
    use_cache()
    limits = {name: getattr(options, name) for name in LIMITS}
    return watch(out, options.run, options.tensorboard, partial(resume, options.run, **limits))
