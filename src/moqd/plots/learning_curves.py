"""How a run went: the six metrics of the paper over evaluations."""

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from moqd.core.metrics import METRICS, OF_THE_PAPER
from moqd.plots.style import FRONT, InlineFigure, note
from moqd.runs.folder import Run


def learning_curves_figure(run: Run) -> Figure:
    """The six curves side by side."""
    figure = InlineFigure(figsize=(10, 5.2), layout="constrained")
    learning_curves(figure.subplots(2, 3).flat, run.metrics)
    return figure


def learning_curves(axes: Iterable[Axes], metrics: Mapping[str, Float[np.ndarray, "rows"]]) -> None:
    """Draws a metric into each of six axes; values that are not finite are left out."""
    for ax, name in zip(axes, OF_THE_PAPER, strict=True):
        evaluations, value = (metrics.get(column, np.zeros(0)) for column in ("evaluations", name))
        known = np.isfinite(value)
        ax.plot(evaluations[known], value[known], color=FRONT, marker="." if known.sum() < 30 else "")
        if not known.any():
            note(ax, "no value")
        ax.set(xlabel="evaluations", ylabel=METRICS[name].title.replace(" (", "\n("))
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
        ax.locator_params(nbins=5)
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
