"""The report of a study: its numbers are its tables', its links lead somewhere, and no name is more than text."""

# ruff: noqa: RUF001  dashes and minus signs are what is shown

import csv
import io
import math
import re
import statistics
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from markdown_it import MarkdownIt
from matplotlib.figure import Figure

import moqd
from moqd.core.metrics import METRICS
from moqd.report import pictures, write_study_report
from moqd.report.study import csv_text
from moqd.report.tables import seeds_needed
from moqd.study.analysis import Table
from moqd.study.plan import Variant, make_study
from tests.report.made import made_results, made_with, with_cells

TASKS = {"hopper-2": (1, 2), "own task": (2, 3)}
ALGORITHMS = ("mome-p2c", "mome-pgx", "own way", "mome-p2c-one-hot")
NAMES = {"mome-p2c": "MOME-P2C", "mome-pgx": "MOME-PGX", "own way": "own way", "mome-p2c-one-hot": "One-Hot"}
TITLES = {"hopper-2": "Hopper-2", "own task": "own task"}
HOSTILE = "</script><img src=x onerror=alert(1)> | **x** [y](http://evil.example) `z`"
TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "p",
        "nav",
        "ul",
        "li",
        "a",
        "aside",
        "strong",
    ),
    *("figure", "figcaption", "b", "div", "img", "table", "thead", "tbody", "tr", "th", "td", "small", "span"),
}
TABLES = {
    *("runs", "summary", "comparisons", "one_hot", "tally", "data_efficiency", "curves", "wall_clock", "parameters"),
    *("additions", "unfinished"),
}


def without_figures(patch):
    """Figures are neither drawn nor written, which takes most of the time."""
    drawn = {name: (lambda *_: Figure(), caption) for name, (_, caption) in pictures.KINDS.items()}
    patch.setattr(pictures, "KINDS", drawn)
    patch.setattr(pictures, "wall_clock_figure", lambda *_: Figure())
    patch.setattr(pictures, "save", lambda *_: None)
    patch.setattr(pictures, "svg", lambda _: b"<svg/>")


@pytest.fixture
def text_only(monkeypatch):
    without_figures(monkeypatch)


class Page(HTMLParser):
    """What a browser would see: tables as rows of cells, links, identities, tags and attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.links, self.anchors, self.tags, self.attributes, self.text = [], [], [], Counter(), [], ""
        self.in_cell = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        self.attributes += attributes
        self.links += [value for name, value in attributes if name in ("href", "src")]
        self.anchors += [value for name, value in attributes if name == "id"]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
            self.in_cell = True
        elif tag == "small":
            self.handle_data("(")

    def handle_endtag(self, tag):
        if tag == "small":
            self.handle_data(")")
        elif tag in ("th", "td"):
            self.in_cell = False

    def handle_data(self, data):
        self.text += data
        if self.in_cell:
            self.tables[-1][-1][-1] += data


@cache
def tables_of(text):
    """The tables of report.md, as rows of cells without their looks, and which cells are bold."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    tables = []
    for before, token in pairwise(tokens):
        if before.type == "table_open":
            tables.append([])
        if before.type == "tr_open":
            tables[-1].append([])
        if before.type in ("th_open", "td_open"):
            bold = any(child.type == "strong_open" for child in token.children)
            tables[-1][-1].append(("".join(child.content for child in token.children), bold))
    return tables


def grid_of(folder, caption):
    """The table of report.md whose caption begins so: its head, and its rows by their first cells."""
    text = (folder / "report.md").read_text()
    captions = re.findall(r"^\*\*Table \d+\.\*\* (.*)", text, re.MULTILINE)
    place = next(i for i, one in enumerate(captions) if one.startswith(caption))
    (head, *rows) = tables_of(text)[place]
    return [cell for cell, _ in head], {row[0][0]: row[1:] for row in rows}


def rows_of(folder, name):
    """The rows of a CSV file."""
    return list(csv.DictReader(io.StringIO((folder / "tables" / f"{name}.csv").read_bytes().decode())))


def value(shown, head):
    """A number as it is read, with the power of ten from the head of its column."""
    power = re.search(r"×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", head)
    exponent = int(power[1].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))) if power else 0
    return float(shown.replace("−", "-").replace(",", "")) * 10.0**exponent


@pytest.fixture(scope="module")
def results():
    return made_results(
        TASKS, ALGORITHMS, (0, 1, 2, 3, 4), timed=("mome-p2c", "mome-pgx"), unfinished=[("own task", "own way", 3)]
    )


@pytest.fixture(scope="module")
def folder(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies") / "made"
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        assert write_study_report(results, folder) == folder / "report.html"
    return folder


def test_page_and_markdown_show_the_same_tables(folder):
    page, markdown = Page((folder / "report.html").read_text()), tables_of((folder / "report.md").read_text())
    plain = [[[" ".join(cell.split()) for cell, _ in row] for row in table] for table in markdown]
    assert [[[" ".join(cell.split()) for cell in row] for row in table] for table in page.tables] == plain
    assert len(plain) > 15


@pytest.mark.parametrize("task", TASKS)
def test_medians_and_means_are_those_of_the_runs(folder, task):
    """The oracle is `statistics`, on what runs.csv holds."""
    title = TITLES[task]
    runs = [row for row in rows_of(folder, "runs") if row["task"] == task]
    summary = {(row["metric"], row["algorithm"]): row for row in rows_of(folder, "summary") if row["task"] == task}
    head, medians = grid_of(folder, f"{title}: final metrics")
    same_head, means = grid_of(folder, f"{title}: interquartile means")
    assert head == same_head
    for column, (metric, about) in enumerate(METRICS.items()):
        top = head[column + 1]
        assert top.startswith(about.label)
        assert ("↓" in top) == about.less_is_better
        found = {}
        for algorithm, name in NAMES.items():
            values = [float(row[metric]) for row in runs if row["algorithm"] == algorithm]
            lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
            shown, bold = medians[name][column]
            read = [value(number, top) for number in re.fullmatch(r"(\S+) \((\S+) – (\S+)\)", shown).groups()]
            np.testing.assert_allclose(read, [median, lower, upper], rtol=6e-3)
            found[name] = (median, bold)
            shown, bold = means[name][column]
            assert not bold
            read = [value(number, top) for number in re.fullmatch(r"(\S+) \((\S+) – (\S+)\)", shown).groups()]
            expected = [float(summary[metric, algorithm][field]) for field in ("iqm", "iqm_low", "iqm_high")]
            np.testing.assert_allclose(read, expected, rtol=6e-3)
        best = (min if about.less_is_better else max)(median for median, _ in found.values())
        assert [name for name, (_, bold) in found.items() if bold] == [
            name for name, (median, _) in found.items() if median == best
        ]


def test_comparisons_are_those_of_the_tables(folder):
    assert {row["outcome"] for row in rows_of(folder, "comparisons")} == {"win", "tie", "loss"}
    for row in rows_of(folder, "comparisons"):
        _, cells = grid_of(folder, f"{TITLES[row['task']]}: the outcome for MOME-P2C")
        check_outcome(cells[NAMES[row["algorithm"]]], row)
    for row in rows_of(folder, "one_hot"):
        _, cells = grid_of(folder, "One-Hot against MOME-PGX: the outcome for One-Hot")
        check_outcome(cells[TITLES[row["task"]]], row)


def check_outcome(cells, row):
    shown, _ = cells[list(METRICS).index(row["metric"])]
    outcome, p, effect = re.fullmatch(r"(\w+) (\S+) \((\S+)\)", shown).groups()
    assert outcome == row["outcome"]
    assert float(p) == pytest.approx(float(row["p_adjusted"]), rel=6e-3)
    assert float(effect) == pytest.approx(float(row["effect"]), abs=0.0051)


def test_the_tally_counts_the_outcomes(folder):
    _, cells = grid_of(folder, "Number of tasks on which MOME-P2C")
    rows = rows_of(folder, "comparisons")
    assert list(cells) == ["MOME-PGX", "own way", "One-Hot"]
    for algorithm in ALGORITHMS[1:]:
        for metric, (shown, _) in zip(METRICS, cells[NAMES[algorithm]], strict=True):
            found = Counter(row["outcome"] for row in rows if (row["algorithm"], row["metric"]) == (algorithm, metric))
            assert shown == f"{found['win']} / {found['tie']} / {found['loss']}"
    assert {shown for cells in cells.values() for shown, _ in cells} > {"0 / 2 / 0"}  # not all the same


def test_data_efficiency_and_time_and_size(folder):
    for row in rows_of(folder, "data_efficiency"):
        label = METRICS[row["metric"]].label
        head, cells = grid_of(folder, f"{label[0].upper()}{label[1:]}: evaluations that MOME-P2C takes")
        shown, _ = cells[NAMES[row["algorithm"]]][head.index(TITLES[row["task"]]) - 1]
        if not row["evaluations"]:
            assert shown == "never"
            continue
        evaluations, share, own, whole = re.fullmatch(r"(\S+) \((\d+)%; (\S+) of (\S+) min\)", shown).groups()
        assert int(evaluations.replace(",", "")) == int(row["evaluations"])
        assert int(share) == round(100 * float(row["share"]))
        assert [60 * float(own), 60 * float(whole)] == pytest.approx(
            [float(row["seconds"]), float(row["algorithm_seconds"])], abs=3.01
        )
    head, _ = grid_of(folder, "Solutions that entered the archive")
    assert head == ["task", "algorithm", "variation"]
    head, _ = grid_of(folder, "Seconds per iteration")
    assert head == ["task", "algorithm", "iteration", "rollout", "policy-gradient variation", "training", "addition"]
    text = (folder / "report.md").read_text()
    assert "| Hopper-2 | MOME-PGX | 99 / 495 |" in text  # 0, 99, 198, 297 in four rows
    # 5 measurements of 3.00 to 3.12 s: median 3.06, quartiles 3.03 and 3.09
    assert "| Hopper-2 | MOME-P2C | 3.060 (3.030 – 3.090) | 1.020 (" in text
    assert "| own task | MOME-PGX | 5,126 | 20,800 | 584,000 |" in text


def test_what_it_says_of_the_study(folder):
    text = (folder / "report.md").read_text()
    assert text.startswith(
        "# Study made\n\n4 algorithms (MOME-P2C, MOME-PGX, own way, One-Hot) on 2 tasks (Hopper-2, own task), each "
        "with 5 seeds (0 to 4). 39 of 40 runs are finished. MOME-P2C is compared with each other algorithm.\n"
    )
    assert "**1 of 40 runs are not finished** (1 failed), listed below." in text
    assert (
        "| own task | own way | 3 | failed | DivergenceError: the loss of the critic is not finite at iteration 40 |"
        in text
    )
    assert "two-sided Mann-Whitney U test" in text
    assert "Holm-Bonferroni method within each task and metric, over 3 comparisons" in text
    assert "significant at 0.05" in text
    assert "| iterations | 150 |" in text
    assert "| evaluations in all, after a first random batch | 9,600 |" in text
    assert "| episode length | 250 |" in text
    assert "over 4 to 5 seeds" in text


def test_what_is_scaled_and_shown_is_said(folder, results):
    text = (folder / "report.md").read_text()
    fitness = [
        np.asarray(one.archive.fitness)[np.asarray(one.archive.valid)]
        for one in results.results
        if one.task == "hopper-2"
    ]
    energy = -np.concatenate(fitness)[:, 1]
    assert f"| Hopper-2 | energy, less is better | 20 | {energy.min():.6g} | {energy.max():.6g} |" in text
    _, seeds = grid_of(folder, "Seeds of the runs")
    scores = {
        row["seed"]: float(row["moqd_score"])
        for row in rows_of(folder, "runs")
        if (row["task"], row["algorithm"]) == ("own task", "own way")
    }
    assert seeds["own way"][1][0] == sorted(scores, key=scores.get)[1]  # of four, the lower of the two in the middle


def test_csv_files_hold_everything_in_full(folder):
    assert {path.stem for path in (folder / "tables").iterdir()} == TABLES
    nasty = [("a,b", 1, 0.1 + 0.2), ('say "x"\r\n', -7, math.nan), (HOSTILE, 2**60, np.float64(1e-300))]
    text = csv_text(Table("t", ("text", "whole", "number"), nasty))
    assert text.startswith('text,whole,number\r\n"a,b",1,0.30000000000000004\r\n"say ""x""\r\n",-7,\r\n')
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert [row[0] for row in read[1:]] == [row[0] for row in nasty]
    assert float(read[3][2]) == 1e-300


def small_study():
    return made_results({"hopper-2": (2, 2)}, ("mome-p2c", "mome"), (0, 1), timed=("mome-p2c",), num_cells=5)


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_every_link_leads_somewhere(tmp_path):
    write_study_report(small_study(), tmp_path)
    page = Page((tmp_path / "report.html").read_text())
    inside = [link for link in page.links if link.startswith("#")]
    assert {link[1:] for link in inside} <= set(page.anchors)
    assert len(inside) == 7
    assert len(page.anchors) == len(set(page.anchors))
    images = [link for link in page.links if link.startswith("data:")]
    assert len(images) == page.tags["img"] == 6
    for image in images:
        kind, _, content = image.partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert ElementTree.fromstring(b64decode(content)).tag.endswith("}svg")
    files = [link for link in page.links if link not in inside + images]
    assert len(files) == 2 * 6 + len(TABLES)
    files += re.findall(r"\]\(([^)]*)\)", (tmp_path / "report.md").read_text())
    assert set(files) == files_in(tmp_path) - {"report.md", "report.html"}


def test_the_same_results_give_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "KINDS", {"archives": pictures.KINDS["archives"]})
    for folder in ("a", "b"):
        write_study_report(small_study(), tmp_path / folder)
    written = files_in(tmp_path / "a")
    assert len(written) == 2 + 2 * 2 + len(TABLES)
    assert written == files_in(tmp_path / "b")
    read = [{name: (tmp_path / folder / name).read_bytes() for name in written} for folder in ("a", "b")]
    assert [name for name in written if read[0][name] != read[1][name]] == []


def test_the_page_needs_nothing_but_itself(folder):
    text = (folder / "report.html").read_text()
    page = Page(text)
    assert all(link.startswith(("#", "data:", "tables/", "figures/")) for link in page.links)
    without_images = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]*", "", text)
    assert not re.search(r"//|url\(|@import", without_images)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    (policy,) = [value for _, value in page.attributes if value and value.startswith("default-src")]
    assert policy.startswith("default-src 'none'; img-src data:;")


@pytest.mark.usefixtures("text_only")
def test_no_name_is_more_than_text(tmp_path):
    results = made_results(
        {HOSTILE: (1, 2)}, (HOSTILE + "1", HOSTILE + "2"), (0, 1, 2), name=HOSTILE, timed=(HOSTILE + "1",)
    )
    machine = {"processor": HOSTILE, "cores": 2}
    odd = results.results[0]._replace(config=made_with(results.results[0].config, machine=machine))
    missing = moqd.study.summaries.Unfinished(HOSTILE, HOSTILE + "1", 4, "failed", f"{HOSTILE}\n\n# {HOSTILE}")
    results = replace(results, results=(odd, *results.results[1:]), unfinished=(missing,))
    write_study_report(results, tmp_path)

    page = Page((tmp_path / "report.html").read_text())
    assert set(page.tags) <= TAGS
    assert page.tags["img"] == 6
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert page.text.count(HOSTILE) > 50
    assert all(link.startswith(("#", "data:", "tables/", "figures/")) for link in page.links)

    tokens = MarkdownIt("commonmark").enable("table").parse((tmp_path / "report.md").read_text())
    spans = [child for token in tokens for child in token.children or [token]]
    assert not [
        span.content for span in spans if "html" in span.type or span.type in ("code_inline", "fence", "code_block")
    ]
    addresses = [address for span in spans for name, address in span.attrs.items() if name in ("href", "src")]
    assert all(address.startswith(("tables/", "figures/")) for address in addresses)
    assert "".join(span.content for span in spans).count(HOSTILE) > 50
    assert all(len(row) == len(table[0]) for table in tables_of((tmp_path / "report.md").read_text()) for row in table)
    assert {row["algorithm"] for row in rows_of(tmp_path, "runs")} == {HOSTILE + "1", HOSTILE + "2"}


@pytest.mark.usefixtures("text_only")
def test_many_unfinished_runs_are_all_listed_at_the_end(tmp_path):
    missing = [("own task", "own way", seed) for seed in range(1, 48)]
    results = made_results({"own task": (1, 2)}, ("mome", "own way"), range(48), unfinished=missing)
    write_study_report(results, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert (
        "**47 of 96 runs are not finished** (12 failed, 12 running, 12 stopped, 11 waiting), listed under Runs that"
        in text
    )
    _, _, last = text.partition("\n## Runs that are not finished\n")
    assert [int(seed) for seed in re.findall(r"^\| own task \| own way \| (\d+) \|", last, re.MULTILINE)] == list(
        range(1, 48)
    )
    assert "| own way |" not in text.partition("## Results")[0]


def test_nothing_is_finished_yet(tmp_path):
    everything = [(task, one, 0) for task in TASKS for one in ALGORITHMS]
    write_study_report(made_results(TASKS, ALGORITHMS, (0,), unfinished=everything), tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "0 of 8 runs are finished." in text
    assert "There is nothing to report yet." in text
    assert "| iterations | 150 |" in text
    assert "## Results" not in text
    assert Page((tmp_path / "report.html").read_text()).tags["img"] == 0
    assert rows_of(tmp_path, "runs") == []
    assert len(rows_of(tmp_path, "unfinished")) == 8


@pytest.mark.usefixtures("text_only")
def test_one_seed_and_an_algorithm_without_results(tmp_path):
    results = made_results(
        TASKS, ("mome-p2c", "mome", "own way"), (7,), unfinished=[(task, "mome", 7) for task in TASKS]
    )
    write_study_report(results, tmp_path)
    _, medians = grid_of(tmp_path, "Hopper-2: final metrics, as the median (first – third quartile) over 1 seed.")
    assert [shown for shown, _ in medians["MOME"]] == ["–"] * len(METRICS)
    assert all(re.fullmatch(r"[−\d.,e]+", shown) for shown, _ in medians["MOME-P2C"])
    _, outcomes = grid_of(tmp_path, "Hopper-2: the outcome for MOME-P2C")
    assert {shown for shown, _ in outcomes["MOME"]} == {"not tested"}
    _, effort = grid_of(tmp_path, "MOQD score: evaluations that MOME-P2C takes")
    assert {shown for shown, _ in effort["MOME"]} == {"–"}
    assert "4 seeds of every algorithm would be enough" in (tmp_path / "report.md").read_text()


@pytest.mark.usefixtures("text_only")
def test_the_reference_has_no_results(tmp_path):
    results = made_results(TASKS, ("mome-p2c", "mome"), (0,), unfinished=[(task, "mome-p2c", 0) for task in TASKS])
    write_study_report(results, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "No run of MOME-P2C is finished, so there is nothing to compare the others with yet." in text
    assert "## Data efficiency" not in text
    assert "never" not in text


@pytest.mark.usefixtures("text_only")
def test_one_algorithm_is_compared_with_nothing(tmp_path):
    write_study_report(made_results({"hopper-2": (1, 2)}, ("mome",), (0, 1)), tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert text.startswith(
        "# Study made\n\n1 algorithm (MOME) on 1 task (Hopper-2), each with 2 seeds (0, 1). All runs (2) are"
    )
    assert "The study has one algorithm, so there is nothing to compare." in text


def test_how_many_seeds_are_enough():
    """Fully apart, two samples of n have the p value 2 / C(2n, n): for 3, 4, 5, 6 it is 1/10, 1/35, 1/126, 1/462."""
    assert seeds_needed(1) == 4  # 1/35 < 0.05 < 1/10
    assert seeds_needed(2) == 5  # 2/126 < 0.05 < 2/35
    assert seeds_needed(6) == 5  # 6/126 = 0.048
    assert seeds_needed(7) == 6  # 7/462 < 0.05 < 7/126 = 0.056


@pytest.mark.usefixtures("text_only")
def test_too_few_seeds_are_told(tmp_path):
    write_study_report(made_results({"hopper-2": (1, 2)}, ("mome-p2c", "mome", "nsga2"), (0, 1, 2)), tmp_path)
    text = (tmp_path / "report.md").read_text()
    # Two comparisons of 3 against 3: 2 x 1/10.
    assert (
        "**Too few seeds.** In all comparisons of MOME-P2C (on Hopper-2), the smallest adjusted p value that the "
        "number of seeds allows is 0.2 or more" in text
    )
    assert "With 2 comparisons per task and metric, 5 seeds of every algorithm would be enough." in text
    assert "| iterations | 24 (NSGA-II); else 150 |" in text
    write_study_report(made_results({"hopper-2": (1, 2)}, ("mome-p2c", "mome", "nsga2"), range(5)), tmp_path)
    assert "Too few seeds" not in (tmp_path / "report.md").read_text()


@pytest.mark.usefixtures("text_only")
def test_cells_of_a_grid_are_told(tmp_path):
    results = made_results({"hopper-2": (1, 2)}, ("mome-p2c", "mome", "pga-me"), (0, 1))
    runs = [
        replace(run, config=replace(run.config, algorithm=with_cells(run.config.algorithm, [10, 2000])))
        for run in results.study.runs
    ]
    mixed = [grid if grid.algorithm == "mome" else run for run, grid in zip(results.study.runs, runs, strict=True)]
    for some, said in ((mixed, "a grid of 10 × 2,000 (MOME); else 128"), (runs, "a grid of 10 × 2,000")):
        write_study_report(replace(results, study=replace(results.study, runs=tuple(some))), tmp_path)
        assert f"| cells of the archive | {said} |" in (tmp_path / "report.md").read_text()


@pytest.mark.usefixtures("text_only")
def test_differences_between_runs_are_told(tmp_path):
    results = made_results({"hopper-2": (1, 2)}, ("mome-p2c", "mome"), (0, 1))
    first, *others = results.results
    versions = {"python": "3.13.1", "jax": "0.9.0"}
    config = made_with(first.config, versions=versions, devices=("NVIDIA H100",))
    metrics = {**first.metrics, "max_sum_scores": np.full(4, np.nan), "failed_evaluations": np.full(4, 1234.0)}
    odd = first._replace(config=config, reference_point=first.reference_point + 1, metrics=metrics)
    write_study_report(replace(results, results=(odd, *others)), tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "**Not all runs were made in the same environment** (version of jax, devices)" in text
    assert "| version of jax | 0.10.1 | 3 |\n| version of jax | 0.9.0 | 1 |" in text
    assert "| devices | cpu, cpu | 3 |\n| devices | NVIDIA H100 | 1 |" in text
    assert "| versions | python 3.13.1 |" in text
    assert "**Hypervolumes cannot be compared** on Hopper-2" in text
    assert "left out of their metric: max sum of scores of 1 run of MOME-P2C on Hopper-2." in text
    assert "1,234 in 1 run" in text
    write_study_report(results, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "same environment" not in text
    assert "cannot be compared" not in text
    assert "there are none" in text


@pytest.mark.usefixtures("text_only")
def test_variants_and_unequal_budgets_are_told(tmp_path):
    variants = {"mome": Variant("mome", {}), "Bigger": Variant("mome", {"ga_batch": 128, "iso_sigma": 0.5})}
    results = made_results({"hopper-2": (1, 2)}, tuple(variants), (0, 1))
    for budget, fair in (({"iterations": 10}, False), ({"evaluations": 1280}, True)):
        study = make_study("own", tasks={"hopper-2": {}}, algorithms=variants, seeds=[0, 1], preset="small", **budget)
        write_study_report(replace(results, study=study), tmp_path)
        head, rows = grid_of(tmp_path, "Algorithms whose options differ")
        assert head == ["algorithm", "is", "with"]
        assert [(name, *(shown for shown, _ in cells)) for name, cells in rows.items()] == [
            ("Bigger", "MOME", "ga_batch = 128, iso_sigma = 0.5")
        ]
        told = "**Not all algorithms have the same budget:** Bigger made" in (tmp_path / "report.md").read_text()
        assert told != fair


@pytest.mark.usefixtures("text_only")
def test_an_option_that_is_set_back_to_the_default_for_policies_is_told(tmp_path):
    variants = {"mome": Variant("mome", {}), "Plain": Variant("mome", {"variation": "sbx", "guided": False})}
    study = make_study("own", tasks={"arm-2": {}}, algorithms=variants, seeds=[0, 1], evaluations=100)
    write_study_report(replace(made_results({"arm-2": (1, 2)}, tuple(variants), (0, 1)), study=study), tmp_path)
    (row,) = grid_of(tmp_path, "Algorithms whose options differ")[1].items()
    assert [row[0], *(shown for shown, _ in row[1])] == ["Plain", "MOME", "guided = False, variation = sbx"]


@pytest.mark.usefixtures("text_only")
def test_different_cells_are_told(tmp_path):
    results = made_results({"hopper-2": (1, 2)}, ("mome", "Finer"), (0, 1))
    for cells, comparable in ((256, False), ((128,), False), (128, True)):
        variants = {"mome": Variant("mome", {}), "Finer": Variant("mome", {"num_cells": cells, "iso_sigma": 0.5})}
        study = make_study("own", tasks={"hopper-2": {}}, algorithms=variants, seeds=[0, 1], preset="small")
        write_study_report(replace(results, study=study), tmp_path)
        told = "**Not all archives have the same cells:** Finer and MOME have" in (tmp_path / "report.md").read_text()
        assert told != comparable


def test_a_folder_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "tables").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(moqd.InputError, match="is not a folder but a link"):
        write_study_report(made_results({"hopper-2": (1, 2)}, ("mome",), (0,)), tmp_path / "study")
    assert list((tmp_path / "elsewhere").iterdir()) == []
