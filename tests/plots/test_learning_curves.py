from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from moqd.core.metrics import METRICS, OF_THE_PAPER
from moqd.plots.learning_curves import learning_curves, learning_curves_figure
from tests.plots.made import made_run

SIX = ["moqd_score", "moqd_sparsity_score", "global_hypervolume", "global_sparsity", "max_sum_scores", "coverage"]


def test_the_six_metrics_over_evaluations():
    run = made_run()
    figure = learning_curves_figure(run)
    assert list(OF_THE_PAPER) == SIX
    for ax, name in zip(figure.axes, SIX, strict=True):
        (line,) = ax.lines
        assert np.array_equal(line.get_xdata(), run.metrics["evaluations"])
        assert np.array_equal(line.get_ydata(), run.metrics[name])
        assert ax.get_xlabel() == "evaluations"
        assert ax.get_ylabel().replace("\n", " ") == METRICS[name].title


def test_what_is_not_finite_is_left_out():
    run = made_run()
    metrics = dict(run.metrics)
    metrics["coverage"] = np.array([np.nan, 0.25, np.inf, 0.5])
    metrics["max_sum_scores"] = np.full(4, np.nan)
    figure = learning_curves_figure(replace(run, metrics=metrics))
    figure.canvas.draw()
    assert figure.axes[5].lines[0].get_xydata().tolist() == [[32, 0.25], [64, 0.5]]
    assert [text.get_text() for text in figure.axes[4].texts] == ["no value"]


def test_one_row_is_seen_and_none_is_no_error():
    run = made_run()
    metrics = {name: column[:1] for name, column in run.metrics.items()}
    figure = learning_curves_figure(replace(run, metrics=metrics))
    figure.canvas.draw()
    assert all(ax.lines[0].get_marker() == "." for ax in figure.axes)
    axes = Figure().subplots(2, 3).flat
    learning_curves(axes, {})
    assert all(len(ax.lines[0].get_xdata()) == 0 for ax in axes)
