"""Flags: good input gives its values, and every mistake is one sentence with nothing printed."""

import ast
import inspect
import re
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, replace
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro
from hypothesis import assume, example, given
from hypothesis import strategies as st

from moqd.algorithms import ALGORITHMS
from moqd.cli.flags import _ask_tyro, parse
from moqd.cli.main import ExportOptions, ReportOptions, ResumeOptions, TasksOptions, TrainOptions
from moqd.io.errors import InputError
from moqd.tasks import TASKS


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class General:
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
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
    window: tuple[int, int] = (1, 2)
    """The window."""
    bounds: tuple[float, float] | None = None
    """The bounds."""
    backend: Literal["spring", "positional", "mjx"] = "spring"
    """The backend."""
    colour: Colour | None = None
    """The colour."""
    crowding: bool = True
    """Whether to crowd."""


@dataclass(frozen=True)
class Looking:
    """Its only positional argument can be left out."""

    task: Annotated[str | None, tyro.conf.Positional] = None
    """The task."""
    seed: int = 0
    """The seed."""


@dataclass(frozen=True)
class Comparing:
    """A required option, and any number of positional arguments."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """The runs."""
    out: Path
    """The picture."""


CONFIG = Config(num_cells=256)
PARTS = {"general": General, "algorithm": CONFIG}
ELSEWHERE = {"--population": "the algorithms nsga2, spea2", "--resample": "the task hopper-2"}


def train(line, **more):
    return parse("moqd train", "Trains.", PARTS, line.split() if isinstance(line, str) else line, **more)


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
        ("arm --hidden-sizes 8 9 --seed 1", {"seed": 1}, {"hidden_sizes": [8, 9]}),
        ("--window 3 4 arm", {}, {"window": (3, 4)}),
        ("arm --bounds 3 4", {}, {"bounds": (3.0, 4.0)}),
        ("arm --bounds None", {}, {}),
        ("arm --backend mjx --colour BLUE", {}, {"backend": "mjx", "colour": Colour.BLUE}),
        ("--no-crowding arm", {}, {"crowding": False}),
        ("--no_crowding arm --crowding", {}, {}),
        ("-- --arm", {"task": "--arm"}, {}),
        ("-5", {"task": "-5"}, {}),
    ],
)
def test_good_input_gives_its_values(line, general, algorithm, capsys):
    expected = {"general": replace(General("arm"), **general), "algorithm": replace(CONFIG, **algorithm)}
    assert train(line) == expected
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
        ("arm --xyz", "unknown option '--xyz' of moqd train; moqd train --help lists those that there are."),
        (
            "--tyro-write-completion bash file",
            "unknown option '--tyro-write-completion' of moqd train; moqd train --help lists those that there are.",
        ),
        # options of others
        (
            "arm --population 3",
            "option '--population' is not one of moqd train here: it belongs to the algorithms nsga2 and spea2.",
        ),
        ("--no_resample arm", "option '--no_resample' is not one of moqd train here: it belongs to the task hopper-2."),
        # values of the wrong type
        ("arm --seed x", "--seed is 'x'; give a whole number."),
        ("arm --seed=", "--seed is ''; give a whole number."),
        ("arm --seed 1.5", "--seed is '1.5'; give a whole number."),
        ("arm --seed None", "--seed is 'None'; give a whole number."),
        ("arm --iterations none", "--iterations is 'none'; give a whole number."),
        ("arm --rate -x", "--rate needs a value; give a number."),
        ("arm --rate -1x", "--rate is '-1x'; give a number."),
        ("--reference-point 1 arm --seed 1", "--reference-point has the value 'arm'; give numbers."),
        ("arm --hidden-sizes 8 8.5", "--hidden-sizes has the value '8.5'; give whole numbers."),
        ("arm --window 1 x", "--window has the value 'x'; give 2 whole numbers."),
        ("arm --grid x", "--grid is 'x'; give a whole number, or several."),
        ("arm --grid 10x10", "--grid is '10x10'; give a whole number, or several."),
        ("--grid 10 2.5 arm", "--grid has the value '2.5'; give a whole number, or several."),
        ("arm --grid 10 x 10", "--grid has the value 'x'; give a whole number, or several."),
        ("--grid 10 arm x", "unexpected 'x'; moqd train takes only TASK beside its options."),
        # missing values, and another number of them
        ("arm --num-cells", "--num-cells needs a value; give a whole number."),
        ("arm --num_cells --seed 1", "--num-cells needs a value; give a whole number."),
        ("arm --grid", "--grid needs a value; give a whole number, or several."),
        ("arm --out", "--out needs a value; give a path."),
        ("arm --backend", "--backend needs a value; give 'spring', 'positional' or 'mjx'."),
        ("arm --window", "--window has 0 values; give 2 whole numbers."),
        ("arm --window 1 --seed 2", "--window has 1 value; give 2 whole numbers."),
        ("arm --window 1 2 3", "unexpected '3'; moqd train takes only TASK beside its options."),
        ("arm --bounds 1", "--bounds has 1 value; give 2 numbers."),
        ("arm --bounds 1 2 3", "--bounds has 3 values; give 2 numbers."),
        # choices
        ("arm --backend brax", "--backend is 'brax'; give 'spring', 'positional' or 'mjx'."),
        ("arm --colour red", "--colour is 'red'; give 'RED' or 'BLUE'."),
        # switches
        ("arm --crowding=False", "--crowding takes no value, but got 'False'; give --crowding or --no-crowding."),
        ("--crowding false arm", "--crowding takes no value, but got 'false'; give --crowding or --no-crowding."),
        ("arm --no-crowding=1", "--crowding takes no value, but got '1'; give --crowding or --no-crowding."),
        # positional arguments
        ("", "moqd train needs a TASK; moqd train --help says what it can be."),
        ("--seed 1", "moqd train needs a TASK; moqd train --help says what it can be."),
        ("--", "moqd train needs a TASK; moqd train --help says what it can be."),
        ("arm hand", "unexpected 'hand'; moqd train takes only TASK beside its options."),
        ("arm --seed 1 2", "unexpected '2'; moqd train takes only TASK beside its options."),
        ("arm -- --seed", "unexpected '--seed'; moqd train takes only TASK beside its options."),
    ],
)
def test_a_mistake_is_one_sentence(line, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        train(line, elsewhere=ELSEWHERE)
    assert str(error.value) == sentence
    assert capsys.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_positional_arguments_that_can_be_left_out():
    assert parse("p", "", {"a": Looking}, []) == {"a": Looking()}
    assert parse("p", "", {"a": Looking}, ["arm"]) == {"a": Looking("arm")}
    assert parse("p", "", {"config": Config()}, []) == {"config": Config()}
    with pytest.raises(InputError, match=r"^unexpected 'arm'; p takes nothing beside its options\.$"):
        parse("p", "", {"config": Config()}, ["arm"])


def test_any_number_of_positional_arguments_and_a_required_option():
    several = {"a": Comparing(runs=(Path("x"), Path("y")), out=Path("z"))}
    assert parse("p", "", {"a": Comparing}, ["x", "y", "--out", "z"]) == several
    assert parse("p", "", {"a": Comparing}, ["--out", "z", "x", "y"]) == several
    with pytest.raises(InputError, match=r"^p needs --out; give a path\.$"):
        parse("p", "", {"a": Comparing}, ["x"])


def test_parts_in_any_order():
    """Also one with defaults before one without."""
    parsed = parse("p", "", {"algorithm": CONFIG, "general": General}, ["arm", "--rate", "2"])
    assert parsed == {"algorithm": replace(CONFIG, rate=2.0), "general": General("arm")}


@dataclass(frozen=True)
class Picky:
    seed: int = 0
    """The seed."""

    def __post_init__(self):
        if self.seed > 2:
            raise ValueError("the seed is too large.")


def test_what_only_the_class_refuses_is_one_sentence_too(capsys):
    with pytest.raises(InputError, match=r"^p cannot use these arguments: the seed is too large\.$"):
        parse("p", "", {"picky": Picky}, ["--seed", "3"])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("field", ["int | str", "int | tuple[str, ...]", "tuple[int, str]", "dict", "set[int]"])
def test_types_that_are_no_flags_are_for_the_developer_to_mend(field):
    cls = dataclass(type("Strange", (), {"__annotations__": {"x": eval(field)}}))
    with pytest.raises(TypeError, match="cannot be a flag"):
        parse("p", "", {"strange": cls}, [])


@pytest.mark.parametrize("line", ["--help", "-h", "arm --help", "--sed 1 --help", "arm --seed -h"])
def test_help_wins_and_is_whole(line, capsys):
    with pytest.raises(SystemExit) as stop:
        train(line)
    assert stop.value.code == 0
    printed, errors = capsys.readouterr()
    assert "usage: moqd train" in printed
    assert "Trains." in printed
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


def quietly(parts, arguments):
    """What comes of it: the parsed parts, the error, or the help; and what is printed meanwhile."""
    with redirect_stdout(StringIO()) as printed, redirect_stderr(printed):
        try:
            return parse("moqd train", "Trains.", parts, arguments, ELSEWHERE), printed.getvalue()
        except (InputError, SystemExit) as stop:
            return stop, printed.getvalue()


@given(arguments=st.lists(TOKENS, max_size=7), parts=st.sampled_from([PARTS, {"a": Looking, "b": CONFIG}]))
@example(arguments=["--reference-point=1"], parts=PARTS)
@example(arguments=["--hidden-sizes", "1", "--", "arm"], parts=PARTS)
@example(arguments=["--grid", "1", "arm", "--"], parts={"a": Looking, "b": CONFIG})
@example(arguments=["--grid", "1", "--", "--grid"], parts=PARTS)
def test_nothing_but_values_a_sentence_or_the_help(arguments, parts):
    """And all sentences are ours: nothing that passes the check is refused by tyro."""
    came, printed = quietly(parts, arguments)
    if isinstance(came, SystemExit):
        assert came.code == 0
        assert printed.startswith("usage: moqd train")
        return
    assert printed == ""
    if isinstance(came, InputError):
        assert re.fullmatch(r".*[.?]", str(came))
        assert "cannot use these arguments" not in str(came)
    else:
        assert [type(part) for part in came.values()] == [Config if part is CONFIG else part for part in parts.values()]


PLAIN = st.sampled_from(
    [
        *(flag for flag in FLAGS[1:] if flag != "--grid"),
        "--no-crowding",
        "--seed=1",
        "--sed",
        "arm",
        "1",
        "-3",
        "0.5",
        "None",
        "mjx",
        "--",
    ]
)


@given(arguments=st.lists(PLAIN, max_size=7))
def test_what_is_refused_is_what_tyro_refuses(arguments):
    """But that tyro does not look at a wrong value when the flag is given again; and that a flag with one value or
    several takes at least one, and leaves what is not a number to TASK."""
    flags = [token.partition("=")[0] for token in arguments if token.startswith("--")]
    assume(len(flags) == len(set(flags)))
    came, _ = quietly(PARTS, arguments)
    with redirect_stderr(StringIO()):
        try:
            _ask_tyro("moqd train", "", PARTS, arguments)
        except SystemExit:
            assert isinstance(came, InputError)
        else:
            assert isinstance(came, dict), (arguments, came)


DOCUMENTED = {
    cls.__name__: cls
    for cls in (
        TrainOptions,
        ResumeOptions,
        ReportOptions,
        ExportOptions,
        TasksOptions,
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
        parse("moqd", "", {"options": cls}, ["--help"])
    packed = re.sub(r"[\s│]", "", capsys.readouterr().out)
    texts = docstrings(cls)
    for field in fields(cls):
        text = texts[field.name]
        assert re.fullmatch(r"[A-Z].*\.", text, re.DOTALL), f"{cls.__name__}.{field.name}: {text!r}"
        assert re.sub(r"\s", "", text) in packed, f"{cls.__name__}.{field.name}"
