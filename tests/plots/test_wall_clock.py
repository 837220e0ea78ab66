import numpy as np
import pytest
from matplotlib.colors import to_hex

from moqd.algorithms import ALGORITHMS
from moqd.plots.style import algorithm_styles
from moqd.plots.wall_clock import wall_clock_figure
from moqd.study.plan import PAPER_TASKS
from tests.plots.made import assert_readable, made_results, notes

THREE = ("mome-p2c", "mome-pgx", "mome")


def timing(seconds, *, learns=True):
    """Of the parts, the training takes ten times the variation."""
    parts = {"iteration": [99.0] * len(seconds), "rollout": [50.0] * len(seconds)}
    if learns:
        parts |= {"policy_gradient_variation": seconds, "training": [10 * s for s in seconds]}
    return {"seconds": parts, "parameters": {"policy": 1, "actors": 1, "critics": 1}}


def study(timings, algorithms=THREE):
    tasks = dict.fromkeys(("walker-2", "ant-2"), (2, 2))
    return made_results(
        tasks, algorithms, num_seeds=1, missing=[(t, a) for t in tasks for a in algorithms], timings=timings
    )


def test_bars_are_medians_and_whiskers_quartiles():
    # Of 1, 2, 4, 5, 9 the quartiles are 2, 4 and 5.
    results = study(
        {
            ("ant-2", "mome-p2c"): timing([9.0, 2, 1, 5, 4]),
            ("ant-2", "mome-pgx"): timing([7.0] * 5),
            ("ant-2", "mome"): timing([3.0], learns=False),
            ("walker-2", "mome-pgx"): timing([6.0] * 5),
        }
    )
    figure = wall_clock_figure(results, THREE)
    styles = algorithm_styles(results.study)
    for ax, times in zip(figure.axes, (1, 10), strict=True):
        own, other = (one for one in ax.containers if hasattr(one, "patches"))
        assert [bar.get_height() for bar in own] == [4 * times]
        assert [bar.get_height() for bar in other] == [7 * times, 6 * times]
        (whisker,) = own.errorbar.lines[2]
        assert whisker.get_segments()[0][:, 1].tolist() == [2 * times, 5 * times]
        assert [to_hex(bars[0].get_facecolor()) for bars in (own, other)] == [
            styles[label].colour for label in ("mome-p2c", "mome-pgx")
        ]
        # Side by side around the task's place: ant-2 comes first.
        assert own[0].get_x() + own[0].get_width() == pytest.approx(other[0].get_x()) == pytest.approx(0)
        assert other[1].get_x() - other[0].get_x() == pytest.approx(1)
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["Ant-2", "Walker-2"]
    assert [ax.get_title() for ax in figure.axes] == ["policy-gradient variation", "training of actors and critics"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["MOME-P2C", "MOME-PGX"]  # mome does not learn
    assert "seconds per iteration" in [text.get_text() for text in figure.texts]


def test_only_the_algorithms_of_the_figure():
    results = study({("ant-2", label): timing([1.0, 2]) for label in THREE[:2]})
    (legend,) = wall_clock_figure(results, THREE[1:]).legends
    assert [text.get_text() for text in legend.get_texts()] == ["MOME-PGX"]


def test_nothing_timed_says_so():
    for timings in ({}, {("ant-2", "mome"): timing([1.0], learns=False)}):
        figure = wall_clock_figure(study(timings), THREE)
        assert notes(figure) == ["no algorithm that learns was timed"] * 2
        assert not figure.legends
        assert_readable(figure)


@pytest.mark.parametrize("algorithms", [THREE[:1], tuple(ALGORITHMS)])
def test_all_tasks_are_readable_and_as_large(algorithms):
    timings = {(task, label): timing([1.0, 2, 3]) for task in (*PAPER_TASKS, "a$b_c") for label in algorithms}
    tasks = dict.fromkeys((*PAPER_TASKS, "a$b_c"), (2, 2))
    missing = [(task, label) for task in tasks for label in algorithms]
    figure = wall_clock_figure(made_results(tasks, algorithms, missing=missing, timings=timings), algorithms)
    assert_readable(figure)
    first, second = (ax.get_window_extent().size for ax in figure.axes)
    np.testing.assert_allclose(first, second, atol=1)
