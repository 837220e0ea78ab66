"""What objects show of themselves: in a line, and in a notebook, where nothing that a user named is HTML."""

import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import jax
import pytest
from matplotlib.figure import Figure

import moqd
from tests.plots.made import made_run, made_task

EVIL = '<script>alert("x & y")</script>'


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def evil_run(**changes):
    run = made_run()
    names = {"objective_names": [EVIL, "objective 1"], "feature_names": [f"{EVIL}2", "f"], "units": {EVIL: EVIL}}
    return replace(run, task=replace(run.task, name=EVIL, **names, **changes))


def test_html_is_whole_and_names_are_text():
    run = evil_run(parameter_names=[f"{EVIL}3", "p"])
    for shown in (run, run.archive, moqd.pick(run), run.task):
        page = shown._repr_html_()
        assert set(Tags(page).seen) <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "img"}
        assert escape(EVIL) in page or shown is run.archive


def test_a_run_shows_the_ends_of_its_global_front_and_a_picture():
    run = made_run()
    page, frame = run._repr_html_(), run.to_pandas()
    assert 'src="data:image/png;base64,' in page
    least, most = frame.loc[frame["objective 1"].idxmin()], frame.loc[frame["objective 0"].idxmax()]
    cells = [[*re.findall("<td>(.*?)</td>", row)] for row in re.findall("<tr>(.*?)</tr>", page)]
    assert ["objective 0", f"{most['objective 0']:.5g}"] in [row[:2] for row in cells]
    assert ["objective 1", f"{least['objective 1']:.5g}"] in [[*row[:1], *row[2:3]] for row in cells]
    for empty in (made_run(empty=True), replace(run, metrics={})):
        Tags(empty._repr_html_())
        Tags(empty.archive._repr_html_())


@pytest.mark.parametrize("num_features", [0, 1, 3])
def test_archives_of_any_number_of_features(num_features):
    Tags(made_run(num_features).archive._repr_html_())


def test_a_task_says_which_bounds_are_not_known():
    page = replace(made_task(2, 2), feature_bounds=())._repr_html_()
    assert page.count("<td>(learned by a run)</td>") == 2
    assert "nan" not in page


def test_in_a_line():
    run = made_run()
    number = int(run.archive.valid.sum())
    assert repr(run) == f"Run(by hand on made-2-2: {number} solutions in 9 of 12 cells)"
    assert repr(run.archive) == f"Archive({number} solutions in 9 of 12 cells of up to 5; 2 objectives, 2 features)"
    assert repr(jax.eval_shape(lambda: run.archive)) == "Archive(12 cells of up to 5; 2 objectives, 2 features)"
    chosen = moqd.pick(run, [1, 0])
    assert f"objective 0={chosen.objectives['objective 0']:.4g}, " in repr(chosen)
    assert repr(chosen).endswith("x0=0, x1=0)")
    assert repr(made_task(1, 2)) == (
        "FunctionTask('made-1-2'; objectives: objective 0, objective 1 (minimised); features: feature 0; "
        "parameters: x0, x1)"
    )
    many = replace(made_task(0, 1), bounds=[(0, 1)] * 100, parameter_names=())
    assert repr(many).endswith("x10, x11, ... (100))")


@pytest.mark.parametrize("kind", ["overview", "archive_map", "fronts", "learning_curves"])
def test_every_figure_is_one_call(kind):
    run = made_run()
    figure = getattr(moqd.plots, f"{kind}_figure")(run)
    assert isinstance(figure, Figure)
    assert type(run.plot(kind)) is type(figure)
    assert len(figure.axes) >= 1


def test_figures_are_shown_by_notebooks_and_saved_by_a_path_of_text(tmp_path):
    run = made_run()
    assert run.plot()._repr_png_().startswith(b"\x89PNG")
    moqd.plots.save_overview(run, str(tmp_path / "x.svg"))
    assert b"<svg" in (tmp_path / "x.svg").read_bytes()
    with pytest.raises(moqd.InputError, match="unknown kind 'front' of plot; did you mean 'fronts'"):
        run.plot("front")
