"""The parser: good input gives its values, and every mistake is one sentence with nothing printed."""

import ast
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from io import StringIO
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from moqd.algorithms import ALGORITHMS
from moqd.cli.algorithms import AlgorithmsOptions
from moqd.cli.explore import ExploreOptions
from moqd.cli.export import ExportOptions
from moqd.cli.own import OwnOptions
from moqd.cli.parser import Line
from moqd.cli.pick import PickOptions
from moqd.cli.report import ReportOptions
from moqd.cli.resume import ResumeOptions
from moqd.cli.study import StudyOptions
from moqd.cli.tasks import TasksOptions
from moqd.cli.train import TrainOptions
from moqd.io.errors import InputError
from moqd.io.lazy import Listed
from moqd.tasks import TASKS


@dataclass(frozen=True)
class General:
    task: str = field(metadata={"positional": "TASK"})
    """The task."""
    seed: int = 0
    """The seed."""
    iterations: int | None = None
    """The iterations."""
    out: Path | None = None
    """The folder."""
    reference_point: tuple[float, ...] | None = None
    """The reference point."""


@dataclass(frozen=True)
class Config:
    num_cells: int = 128
    """The cells."""
    grid: int | tuple[int, ...] = 4
    """The grid."""
    rate: float = 0.5
    """The rate."""
    hidden_sizes: Sequence[int] = (64, 64)
    """The layers."""
    backend: Literal["spring", "positional", "mjx"] = "spring"
    """The backend."""
    colour: Literal["RED", "BLUE"] | None = None
    """The colour."""
    file: tuple[str, ...] = field(default=(), metadata={"repeated": True})
    """The files."""
    fingerprint: str = field(default="kept", metadata={"hidden": True})
    crowding: bool = True
    """Whether to crowd."""


@dataclass(frozen=True)
class Looking:
    """Its only positional argument can be left out."""

    task: str | None = field(default=None, metadata={"positional": "TASK"})
    """The task."""
    seed: int = 0
    """The seed."""


@dataclass(frozen=True)
class Comparing:
    """A required option, and any number of positional arguments."""

    runs: tuple[Path, ...] = field(metadata={"positional": "RUN"})
    """The runs."""
    out: Path
    """The picture."""


@dataclass(frozen=True)
class Population:
    population: int = 5
    """The population."""


@dataclass(frozen=True)
class Hopper:
    resample: bool = False
    """Whether to sample again."""


CONFIG = Config(num_cells=256, fingerprint="changed")
PARTS = (General, CONFIG)
CONFIGS = {"mome": CONFIG, "nsga2": Population(), "spea2": Population(), "hopper-2": Hopper()}
OTHERS = {name: Listed("", lambda config=config: (None, config)) for name, config in CONFIGS.items()}


def parse(arguments, *parts, program="p", out=None):
    return Line(program, arguments).match(*parts, others=OTHERS).build(out or Console(), *parts)


def test_others_are_imported_only_for_a_flag_of_theirs():
    def load():
        raise AssertionError("imported")

    others = {"heavy": Listed("", load)}
    assert Line("p", ["arm", "--seed", "3", "-h"]).match(General, others=others).values(General)["task"] == "arm"
    with pytest.raises(AssertionError, match="imported"):
        Line("p", ["arm", "--weight", "3"]).match(General, others=others)


def train(line):
    return parse(line.split(), *PARTS, program="moqd train")


@pytest.mark.parametrize(
    ("line", "general", "algorithm"),
    [
        ("arm", {}, {}),
        ("--seed 3 arm", {"seed": 3}, {}),
        ("arm --seed=-3 --iterations 10", {"seed": -3, "iterations": 10}, {}),
        ("arm --seed 1 --seed 2", {"seed": 2}, {}),
        ("arm --iterations 5 --iterations None", {"iterations": None}, {}),
        ("arm --out a/b", {"out": Path("a/b")}, {}),
        ("arm --out=--seed", {"out": Path("--seed")}, {}),
        ("--reference-point 1 -2.5 arm", {"reference_point": (1.0, -2.5)}, {}),
        ("arm --reference_point=1 -inf --seed 2", {"reference_point": (1.0, -float("inf")), "seed": 2}, {}),
        ("arm --reference-point", {"reference_point": ()}, {}),
        ("--reference-point 1 --seed 3 --reference-point=2 arm", {"reference_point": (1.0, 2.0), "seed": 3}, {}),
        ("--reference-point 1 --reference-point None arm", {"reference_point": None}, {}),
        ("arm --num_cells 8 --rate 1e-3", {}, {"num_cells": 8, "rate": 1e-3}),
        ("arm --grid 128", {}, {"grid": 128}),
        ("arm --grid 10 10 --seed 1", {"seed": 1}, {"grid": (10, 10)}),
        ("arm --grid=2 3 4", {}, {"grid": (2, 3, 4)}),
        ("--grid 128 arm", {}, {"grid": 128}),
        ("--grid 2 -3 arm --seed 1", {"seed": 1}, {"grid": (2, -3)}),
        ("--grid 2 arm --", {}, {"grid": 2}),
        ("--grid 2 3 -- arm", {}, {"grid": (2, 3)}),
        ("arm --grid 2 3 --grid 7", {}, {"grid": 7}),
        ("arm --hidden-sizes 8 9 --seed 1", {"seed": 1}, {"hidden_sizes": (8, 9)}),
        ("arm --backend mjx --colour BLUE", {}, {"backend": "mjx", "colour": "BLUE"}),
        ("--no-crowding arm", {}, {"crowding": False}),
        ("--no_crowding arm --crowding", {}, {}),
        ("--reference-point 1 arm --seed 1", {"reference_point": (1.0,), "seed": 1}, {}),
        ("--hidden-sizes 8 arm --rate 2 --", {}, {"hidden_sizes": (8,), "rate": 2.0}),
        ("--file a arm --file=b", {}, {"file": ("a", "b")}),
        ("-- --arm", {"task": "--arm"}, {}),
        ("-5", {"task": "-5"}, {}),
    ],
)
def test_good_input_gives_its_values(line, general, algorithm, capsys):
    assert train(line) == [replace(General("arm"), **general), replace(CONFIG, **algorithm)]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        # unknown options
        ("arm --sed 1", "unknown option '--sed' of moqd train; did you mean '--seed'?"),
        ("--sed=1 arm", "unknown option '--sed' of moqd train; did you mean '--seed'?"),
        ("arm -seed 1", "unknown option '-seed' of moqd train; did you mean '--seed'?"),
        ("arm --num_cels 1", "unknown option '--num_cels' of moqd train; did you mean '--num-cells'?"),
        (
            "arm --no-crowdin",
            "unknown option '--no-crowdin' of moqd train; did you mean '--no-crowding' or '--crowding'?",
        ),
        ("arm --no-seed", "unknown option '--no-seed' of moqd train; did you mean '--seed'?"),
        ("arm --xyz", "unknown option '--xyz' of moqd train; moqd train --help lists all options."),
        ("arm --fingerprint x", "unknown option '--fingerprint' of moqd train; moqd train --help lists all options."),
        # options of others
        (
            "arm --population 3",
            "option '--population' is not one of moqd train here: it belongs to nsga2 and spea2.",
        ),
        ("--no_resample arm", "option '--resample' is not one of moqd train here: it belongs to hopper-2."),
        # values of the wrong type
        ("arm --seed x", "--seed is 'x'; give a whole number."),
        ("arm --seed=", "--seed is ''; give a whole number."),
        ("arm --seed 1.5", "--seed is '1.5'; give a whole number."),
        ("arm --seed None", "--seed is 'None'; give a whole number."),
        ("arm --iterations none", "--iterations is 'none'; give a whole number."),
        ("arm --rate -x", "unknown option '-x' of moqd train; moqd train --help lists all options."),
        ("arm --rate -1x", "--rate is '-1x'; give a number."),
        ("arm --reference-point 1 x", "--reference-point has the value 'x'; give numbers."),
        ("arm --hidden-sizes 8 8.5", "--hidden-sizes has the value '8.5'; give whole numbers."),
        ("arm --grid x", "--grid is 'x'; give a whole number, or several."),
        ("arm --grid 10x10", "--grid is '10x10'; give a whole number, or several."),
        ("--grid 10 2.5 arm", "--grid has the value '2.5'; give a whole number, or several."),
        ("arm --grid 10 x 10", "--grid has the value 'x'; give a whole number, or several."),
        ("--grid 10 arm x", "unexpected 'x'; moqd train takes only TASK besides its options."),
        # missing values, and another number of them
        ("arm --num-cells", "--num-cells needs a value; give a whole number."),
        ("arm --num_cells --seed 1", "--num-cells needs a value; give a whole number."),
        ("arm --grid", "--grid needs a value; give a whole number, or several."),
        ("arm --out", "--out needs a value; give a path."),
        ("arm --backend", "--backend needs a value; give 'spring', 'positional' or 'mjx'."),
        # choices
        ("arm --backend brax", "--backend is 'brax'; give 'spring', 'positional' or 'mjx'."),
        ("arm --colour red", "--colour is 'red'; give 'RED' or 'BLUE'."),
        # switches
        ("arm --crowding=False", "--crowding takes no value, but got 'False'; give --crowding or --no-crowding."),
        ("--crowding false arm", "--crowding takes no value, but got 'false'; give --crowding or --no-crowding."),
        ("arm --no-crowding=1", "--crowding takes no value, but got '1'; give --crowding or --no-crowding."),
        # positional arguments
        ("", "moqd train needs a TASK; moqd train --help explains it."),
        ("--seed 1", "moqd train needs a TASK; moqd train --help explains it."),
        ("--", "moqd train needs a TASK; moqd train --help explains it."),
        ("arm hand", "unexpected 'hand'; moqd train takes only TASK besides its options."),
        ("arm --seed 1 2", "unexpected '2'; moqd train takes only TASK besides its options."),
        ("arm -- --seed", "unexpected '--seed'; moqd train takes only TASK besides its options."),
    ],
)
def test_a_mistake_is_one_sentence(line, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        train(line)
    assert str(error.value) == sentence
    assert capsys.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_positional_arguments_that_can_be_left_out():
    assert parse([], Looking) == [Looking()]
    assert parse(["arm"], Looking) == [Looking("arm")]
    assert parse([], Config()) == [Config()]
    with pytest.raises(InputError, match=r"^unexpected 'arm'; p takes nothing besides its options\.$"):
        parse(["arm"], Config())


def test_any_number_of_positional_arguments_and_a_required_option():
    several = [Comparing(runs=(Path("x"), Path("y")), out=Path("z"))]
    assert parse(["x", "y", "--out", "z"], Comparing) == several
    assert parse(["--out", "z", "x", "y"], Comparing) == several
    with pytest.raises(InputError, match=r"^p needs --out; give a path\.$"):
        parse(["x"], Comparing)
    with pytest.raises(InputError, match=r"^p needs a RUN; p --help explains it\.$"):
        parse(["--out", "z"], Comparing)


def test_words_of_a_list_are_left_to_what_must_be_given():
    """The last one only where no later one can be it."""
    for line in ("--limit a b arm", "--limit a --limit b arm", "--limit a b --seed 1 arm", "--limit a b -- arm"):
        general, listing = parse(line.split(), General, Listing)
        assert (general.task, listing.limit) == ("arm", ("a", "b"))


@dataclass(frozen=True)
class Listing:
    limit: tuple[str, ...] = ()
    """The limits."""


def test_which_parts_apply_can_be_decided_by_what_was_given():
    line = Line("p", ["--population", "7", "--algorithm=nsga2", "arm"])
    assert line.word("--algorithm") == "nsga2"
    assert line.word("--seed") is None
    line.match(General, Choosing, others=OTHERS)
    assert line.values(General) == {"task": "arm"}
    assert line.values(Choosing) == {"algorithm": "nsga2"}
    assert line.build(Console(), General, Choosing, Population())[2] == Population(7)
    with pytest.raises(InputError, match="belongs to nsga2 and spea2"):
        line.build(Console(), General, Choosing, CONFIG)


@dataclass(frozen=True)
class Choosing:
    algorithm: str = "mome"
    """The algorithm."""


@pytest.mark.parametrize("field", ["int | str", "int | tuple[str, ...]", "tuple[int, str]", "dict", "set[int]"])
def test_types_that_are_no_flags_are_for_the_developer_to_mend(field):
    cls = dataclass(type("Strange", (), {"__annotations__": {"x": eval(field)}}))
    with pytest.raises(TypeError, match="cannot be a flag"):
        parse([], cls)


@pytest.mark.parametrize("line", ["--help", "-h", "arm --help", "--sed 1 --help", "arm --seed -h"])
def test_help_wins_and_is_whole(line, capsys):
    with pytest.raises(SystemExit) as stop:
        train(line)
    assert stop.value.code == 0
    printed, errors = capsys.readouterr()
    assert printed.startswith("usage: moqd train TASK [OPTIONS]")
    assert all(flag in printed for flag in ("TASK", "--seed", "--no-crowding", "256"))
    assert errors == ""


FLAGS = [f"--{field.name}" for cls in (General, Config) for field in fields(cls)]
TOKENS = st.one_of(
    st.sampled_from(FLAGS),
    st.sampled_from(FLAGS).map(lambda flag: flag.replace("_", "-")),
    st.sampled_from(["arm", "1", "2", "-3", "0.5", "-1e3", "nan", "-inf", "None", "True", "mjx", "RED", "x", "", "-"]),
    st.sampled_from(["--", "--no-crowding", "--help", "-h", "-H", "--tyro-print-completion", "bash", "--sed", "---"]),
    st.tuples(st.sampled_from(FLAGS), st.sampled_from(["1", "", "x", "--seed", "=", "mjx"])).map("=".join),
    st.text(max_size=6),
    st.text("-=_ \n1e.[]", max_size=5),
)


@given(arguments=st.lists(TOKENS, max_size=7), parts=st.sampled_from([PARTS, (Looking, CONFIG)]))
@example(arguments=["--reference-point=1"], parts=PARTS)
@example(arguments=["--hidden-sizes", "1", "--", "arm"], parts=PARTS)
@example(arguments=["--grid", "1", "arm", "--"], parts=(Looking, CONFIG))
@example(arguments=["--grid", "1", "--", "--grid"], parts=PARTS)
def test_nothing_but_values_a_sentence_or_the_help(arguments, parts):
    out = Console(file=StringIO())
    try:
        came = parse(arguments, *parts, program="moqd train", out=out)
    except (SystemExit, InputError) as stop:
        came = stop
    printed = out.file.getvalue()
    if isinstance(came, SystemExit):
        assert came.code == 0
        assert printed.startswith("usage: moqd train")
        return
    assert printed == ""
    if isinstance(came, InputError):
        assert re.fullmatch(r".*[.?]", str(came))
    else:
        assert [type(part) for part in came] == [Config if part is CONFIG else part for part in parts]


DOCUMENTED = {
    cls.__name__: cls
    for cls in (
        AlgorithmsOptions,
        ExploreOptions,
        ExportOptions,
        OwnOptions,
        PickOptions,
        ReportOptions,
        ResumeOptions,
        StudyOptions,
        TasksOptions,
        TrainOptions,
        *(type(entry.config) for entry in ALGORITHMS.values()),
        *(type(entry.config) for entry in TASKS.values()),
    )
}


def docstrings(cls):
    """Of the fields, by name: the string that stands right below a field, there or in the class it comes from."""
    found = {}
    for owner in reversed([owner for owner in cls.__mro__ if owner is not object]):
        body = ast.parse(inspect.getsource(owner)).body[0].body
        for statement, below in zip(body, [*body[1:], None], strict=True):
            if isinstance(statement, ast.AnnAssign):
                documented = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
                found[statement.target.id] = inspect.cleandoc(below.value.value) if documented else ""
    return found


@pytest.mark.parametrize("cls", DOCUMENTED.values(), ids=DOCUMENTED)
def test_every_flag_has_a_sentence_in_the_help(cls, capsys):
    with pytest.raises(SystemExit):
        parse(["--help"], cls)
    packed = re.sub(r"\s", "", capsys.readouterr().out)
    texts = docstrings(cls)
    for known in fields(cls):
        text = texts[known.name]
        assert re.match(r"[A-Z].*\.|weighted: ", text, re.DOTALL), f"{cls.__name__}.{known.name}: {text!r}"
        assert known.metadata.get("hidden") or re.sub(r"\s", "", text) in packed, f"{cls.__name__}.{known.name}"
