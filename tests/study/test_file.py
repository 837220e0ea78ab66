"""A study's file gives the study that it says, or every mistake in it with its line.

Where lines are known: they are those on which the tests wrote what is wrong.
"""

import copy
import json
import random
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import fields
from datetime import date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moqd.algorithms import ALGORITHMS
from moqd.io.errors import InputError, MissingFileError
from moqd.study.display import overview
from moqd.study.document_lines import Lines
from moqd.study.execute import stored_study, write_study
from moqd.study.file import KEYS, MOST_BYTES, read_study
from moqd.study.plan import STUDIES, Study, Variant, make_study, named_study, with_seeds
from moqd.tasks import TASKS

ROOT = Path(__file__).parent.parent.parent
FULL = """
name = "gradient-steps"
preset = "small"
tasks = ["hopper-2", "ant-2"]
algorithms = ["mome-p2c", "more-steps", "mome"]
seeds = [0, 1, 7]
reference = "more-steps"
evaluations = 6400
log_every = 5
snapshot_every = 10

[task.hopper-2]
episode_length = 100
hidden_sizes = [32, 16]
reference_point = [-10, -2.5]

[algorithm.more-steps]
base = "mome-p2c"
pg_steps = 200
critic_hidden_sizes = [64]
crowding = false

[algorithm.mome]
num_cells = 64
"""
FULL_STUDY = {
    "tasks": {
        "hopper-2": {"episode_length": 100, "hidden_sizes": (32, 16), "reference_point": (-10, -2.5)},
        "ant-2": {},
    },
    "algorithms": {
        "mome-p2c": Variant("mome-p2c", {}),
        "more-steps": Variant("mome-p2c", {"pg_steps": 200, "critic_hidden_sizes": (64,), "crowding": False}),
        "mome": Variant("mome", {"num_cells": 64}),
    },
    "seeds": (0, 1, 7),
    "preset": "small",
    "evaluations": 6400,
    "log_every": 5,
    "snapshot_every": 10,
    "reference": "more-steps",
}


def written(folder, text, name="mine.toml"):
    path = Path(folder) / name
    path.write_bytes(text.encode())
    return path


def problems_of(path):
    """(line, text) of each; the message must have the form that it should have."""
    with pytest.raises(InputError) as caught:
        read_study(path)
    head, *rest = str(caught.value).split("\n")
    number = "a problem" if len(rest) == 1 else f"{len(rest)} problems"
    assert head == f"{path} has {number}:"
    found = [re.fullmatch(r"  line (\d+): (\S.*\S)", line).groups() for line in rest]
    lines = [int(line) for line, _ in found]
    assert lines == sorted(lines)
    return [(int(line), text) for line, text in found]


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_correct_file_is_the_study_that_it_says(suffix, tmp_path):
    text = FULL if suffix == "toml" else json.dumps(tomllib.loads(FULL))
    assert read_study(written(tmp_path, text, f"x.{suffix}")) == make_study("gradient-steps", **FULL_STUDY)


def test_cells_of_a_grid(tmp_path):
    text = 'tasks = ["arm-2"]\nalgorithms = ["mome", "grid"]\nseeds = 1\n'
    text += '[algorithm.grid]\nbase = "mome"\nnum_cells = [10, 12]\n'
    study = read_study(written(tmp_path, text))
    assert [run.settings["algorithm"]["num_cells"] for run in study.runs] == [128, [10, 12]]
    algorithms = {"mome": Variant("mome", {}), "grid": Variant("mome", {"num_cells": (10, 12)})}
    assert study.runs == make_study("x", tasks={"arm-2": {}}, algorithms=algorithms, seeds=[0]).runs
    write_study(tmp_path, study)
    assert stored_study(tmp_path / study.name) == study


def test_a_task_may_have_seeds_of_its_own(tmp_path):
    text = 'tasks = ["hopper-2", "ant-2"]\nalgorithms = ["mome", "nsga2"]\nseeds = 3\n[task.ant-2]\nseeds = [1, 9]\n'
    study = read_study(written(tmp_path, text))
    assert (study.seeds, study.seeds_of("hopper-2"), study.seeds_of("ant-2")) == ((0, 1, 2, 9), (0, 1, 2), (1, 9))
    assert [(run.task, run.seed) for run in study.runs if run.algorithm == "mome"] == [
        ("hopper-2", 0), ("hopper-2", 1), ("ant-2", 1), ("hopper-2", 2), ("ant-2", 9)
    ]  # fmt: skip
    assert overview(study) == "2 tasks x 2 algorithms x 2 to 3 seeds = 10 runs"
    write_study(tmp_path, study)
    assert stored_study(tmp_path / study.name) == study
    same = with_seeds(study, [5])
    assert [(run.task, run.algorithm, run.settings["seed"]) for run in same.runs] == [
        (task, algorithm, 5) for task in study.tasks for algorithm in study.algorithms
    ]
    wrong = written(tmp_path, text.replace("[1, 9]", "0"), "wrong.toml")
    assert problems_of(wrong) == [(5, "seeds is 0; give how many, from 1 to 10000, or a list.")]


def test_what_is_left_out_is_as_in_make_study(tmp_path):
    text = 'tasks = ["arm-2", "hopper-2"]\nalgorithms = ["spea2-small", "mome"]\nseeds = 2'
    expected = make_study(
        "mine.v2",
        tasks={"arm-2": {}, "hopper-2": {}},
        algorithms={"spea2-small": Variant("spea2-small", {}), "mome": Variant("mome", {})},
        seeds=[0, 1],
    )
    assert read_study(written(tmp_path, text, "mine.v2.TOML")) == expected
    assert expected.reference == "spea2-small"


def test_a_study_with_a_name_can_be_written_as_a_file(tmp_path):
    preset, algorithms, _ = STUDIES["paper"]
    content = {"name": "paper", "preset": preset, "tasks": ["hopper-2"], "algorithms": algorithms, "seeds": [3]}
    expected = named_study("paper", tasks=["hopper-2"], seeds=[3])
    assert read_study(written(tmp_path, json.dumps(content), "a.json")) == expected


# In these, "#!" stands on the line of a problem, and behind it is what is to be said of it.
MISTAKES = {
    "the example": """
tasks = ["hoper-2", "ant-2"]  #! unknown task 'hoper-2'; did you mean 'hopper-2' or 'hopper-3' or 'walker-2'?
algorithms = ["mome"]
seeds = [-1, 3, 3]  #! seed -1 is negative; give whole numbers from 0 to 4294967295. \
#! seed 3 is given twice, which would be the same runs; give it once.
[task.hopper-2]
episode_lenght = 3  #! unknown option 'episode_lenght' of task 'hopper-2'; did you mean 'episode_length'?
""",
    "nothing": """#! there are no tasks; give at least one, such as ["hopper-2"]. \
#! there are no algorithms; give at least one, such as ["mome-p2c"]. \
#! there are no seeds; give how many, such as 5, or a list of them.
""",
    "empty lists": """
tasks = []  #! there are no tasks; give at least one, such as ["hopper-2"].
algorithms = [ # none
]
reference = 3
seeds = []  #! there are no seeds; give how many, such as 5, or a list of them.
[task.arm-2]
[algorithm.mome]
""".replace("[ # none", '[  #! there are no algorithms; give at least one, such as ["mome-p2c"].'),
    "wrong types": """
name = 5  #! name is 5; give a name of up to 100 letters, digits, '.', '_' and '-', of which the first is no '.'.
preset = 3  #! preset is 3; give one of quick, small, paper.
tasks = "arm-2"  #! tasks is 'arm-2'; give a list of names, such as ["hopper-2"].
algorithms = [
    "mome",
    ["spea2"],  #! algorithm ['spea2'] is no name; give one in quotes, such as "mome-p2c".
]
seeds = "5"  #! seeds is '5'; give how many, from 1 to 10000, or a list.
reference = true  #! reference is True; give one of mome.
iterations = 1.5  #! iterations is 1.5; give a whole number of at least 0.
log_every = 0  #! log_every is 0; give a whole number of at least 1.
snapshot_every = 2020-01-01  #! snapshot_every is datetime.date(2020, 1, 1); give a whole number of at least 1.
task = 1  #! task is 1; give a table of options for each task, by its name.
[algorithm]
mome = 1  #! algorithm 'mome' is 1; give a table of its options.
""",
    "names that are not known": """
nam = "x"  #! unknown key 'nam'; did you mean 'name'?
preset = "tiny"  #! unknown preset 'tiny'; known: paper, quick, small.
tasks = ["arm-2"]
algorithms = [
    "mme",  #! unknown algorithm 'mme'; did you mean 'mome' or 'mine' or 'mome-pgx'?
    "mome",
    "mine"
]
seeds = 1
reference = "mine-2"  #! unknown reference 'mine-2'; did you mean 'mine' or 'mome'?
[algorithm.mine]
base = "nsga"  #! unknown base 'nsga' of algorithm 'mine'; did you mean 'nsga2' or 'nsga2-small' or 'spea2'?
[algorithm.mome]
cells = 5  #! unknown option 'cells' of algorithm 'mome'; did you mean 'num_cells'?
seeds = 5  #! 'seeds' is no option of algorithm 'mome', but a key of the study; move it to the top.
[task.arm-2]
refrence_point = [1, 2]  #! unknown option 'refrence_point' of task 'arm-2'; did you mean 'reference_point' or \
'num_joints'?
""",
    "seeds": """
tasks = ["arm-2"]
algorithms = ["mome"]
seeds = [
    4294967295,
    4294967296,  #! seed 4294967296 is too large; give whole numbers from 0 to 4294967295.
    100000000000000000000000,  #! seed 100000000000000000000000 is too large; give whole numbers from 0 to 4294967295.
    true,  #! seed True is no whole number; give whole numbers from 0 to 4294967295.
    1.0,  #! seed 1.0 is no whole number; give whole numbers from 0 to 4294967295.
    nan,  #! seed nan is no whole number; give whole numbers from 0 to 4294967295.
    "1", '1',  #! seed '1' is no whole number; give whole numbers from 0 to 4294967295.
    0,
    4_294_967_295,  #! seed 4294967295 is given twice, which would be the same runs; give it once.
    0x0,  #! seed 0 is given twice, which would be the same runs; give it once.
    -0,  #! seed 0 is given twice, which would be the same runs; give it once.
]
""",
    "no number of seeds": """
tasks = ["arm-2"]
algorithms = ["mome"]
seeds = 0  #! seeds is 0; give how many, from 1 to 10000, or a list.
""",
    "a negative number of seeds": """
tasks = ["arm-2"]
algorithms = ["mome"]
seeds = -3  #! seeds is -3; give how many, from 1 to 10000, or a list.
""",
    "more seeds than can be listed": """
tasks = ["arm-2"]
algorithms = ["mome"]
seeds = 99999999999999999999  #! seeds is 99999999999999999999; give how many, from 1 to 10000, or a list.
""",
    "too many runs": """
tasks = ["arm-2", "ant-2"]
algorithms = ["mome", "nsga2"]
seeds = 3000  #! these are 12000 runs; give fewer seeds, for at most 10000 runs.
""",
    "twice": """
tasks = ["arm-2",
  "rastrigin-2", "arm-2"]  #! task 'arm-2' is given twice, which would be the same runs; give it once.
algorithms = ["mome", "nsga2",
  "nsga2", "mome", "mome"]  #! algorithm 'nsga2' is given twice, which would be the same runs; give it once. \
#! algorithm 'mome' is given twice, which would be the same runs; give it once.
seeds = 1
""",
    "both budgets": """
evaluations = 3
tasks = ["arm-2"]
iterations = 3  #! iterations and evaluations are both given; give one of the two and not the other.
algorithms = ["mome"]
seeds = 1
""",
    "options that are refused": """
tasks = ["hopper-3"]
algorithms = ["mome-p2c", "tiny"]
seeds = 1
[task.hopper-3]
episode_length = 0  #! episode_length is 0; give a whole number of at least 1.
hidden_sizes = [4, 0]  #! hidden_sizes is [4, 0]; give a list of whole numbers of at least 1.
reference_point = [1, 2]  #! reference_point is [1, 2]; give 3 finite numbers, one for each of forward velocity, \
jumping height, energy.
[algorithm.tiny]
base = "mome-p2c"
crowding = 1  #! crowding is 1; give True or False.
iso_sigma = -0.5  #! iso_sigma is -0.5; give a number that is not negative.
line_sigma = inf  #! line_sigma is inf; give a number that is not negative.
tau = 2.0  #! tau is 2.0; give a number from 0 to 1, a share of the way to what is trained.
discount = 1  #! discount is 1.0; give a number below 1, or values would not stay finite.
actor_batch = 2  #! actor_batch is 2, but each of the 3 objectives is injected once; give at least 3, or 0 for none.
num_cells = 9999999999  #! num_cells is 9999999999, which is too large; give whole numbers of at most 2147483647.
critic_hidden_sizes = []  #! critic_hidden_sizes is empty; give at least one hidden layer, such as (256, 256).
""",
    "a reference point of words": """
tasks = ["arm-2"]
algorithms = ["mome"]
seeds = 1
[task.arm-2]
reference_point = ["1", "2"]  #! reference_point is ['1', '2']; give a list of numbers, one for each objective.
num_joints = 10000000000  #! num_joints is 10000000000, which is too large; give whole numbers of at most 100000.
""",
    "grids": """
tasks = ["arm-2", "hopper-2"]
algorithms = ["flat", "line", "vast", "odd", "empty"]
seeds = 1
[algorithm.flat]
base = "mome"
num_cells = [4, 5]  #! num_cells is (4, 5), a grid over 2 features, but task 'hopper-2' has 1 (foot contact); give one \
number for each feature, or a single whole number.
[algorithm.line]
base = "mome"
num_cells = [7]  #! num_cells is (7,), a grid over 1 feature, but task 'arm-2' has 2 (hand x, hand y); give one number \
for each feature, or a single whole number.
[algorithm.vast]
base = "mome"
num_cells = [100000, 100000]  #! num_cells is [100000, 100000], which is too many; give at most 2147483647 cells in all.
[algorithm.odd]
base = "mome"
num_cells = [4, "5"]  #! num_cells is [4, '5']; give a whole number of at least 1, or a list of them.
[algorithm.empty]
base = "mome"
num_cells = []  #! num_cells is []; give a whole number of at least 1, or a list of them.
""",
    "options that do not go together": """
tasks = ["hopper-2"]
algorithms = ["mome-p2c"]
seeds = 1
[algorithm.mome-p2c]
pg_batch = 0
actor_batch = 0
front_length = 20
ga_batch = 0  #! pg_batch, ga_batch and actor_batch are all 0; give at least one of them some offspring.
""",
    "nothing to take a gradient of": """
tasks = ["arm-2", "hopper-2"]
algorithms = [
  "mome",
  "mine",  #! algorithm 'mine' improves policies by their gradient, but the solutions of task 'arm-2' are no policies; \
use 'mome' for it, or a task such as 'hopper-2'.
  "pga-me",  #! algorithm 'pga-me' improves policies by their gradient, but the solutions of task 'arm-2' are no \
policies; use 'mome' for it, or a task such as 'hopper-2'.
]
seeds = 1
algorithm.mine = {base = "mome-pgx", pg_steps = 3}
""",
    "options of what is not there": """
tasks = ["arm-2"]
algorithms = ["mome", "more-steps"]
seeds = 1
[task.hopper-2]  #! the study has no task 'hopper-2', of which options are given; add it to tasks, or leave its \
options out.
episode_length = 5
[task.arm2]  #! the study has no task 'arm2', of which options are given; did you mean 'arm-2'?
[algorithm.spea2]  #! the study has no algorithm 'spea2', of which options are given; add it to algorithms, or leave \
its options out.
population = 0  #! population is 0; give a whole number of at least 1.
[algorithm.more-steps]
base = "mome"
iso_sigma = 1
""",
    "bases": """
tasks = ["arm-2"]
algorithms = ["mome", "other", "a b"]
seeds = 1
[algorithm.mome]
base = "mome"  #! 'mome' is one of moqd's algorithms and has no base; leave base out, or give the variant a name of \
its own.
[algorithm.other]  #! algorithm 'other' has no base; give the algorithm that it is a variant of, such as "mome-p2c".
iso_sigma = 1
[algorithm."a b"]  #! algorithm 'a b' cannot be named so; give a name of up to 100 letters, digits, '.', '_' and '-', \
of which the first is no '.'.
base = ["mome"]  #! base is ['mome']; give one of BASES.
""".replace("BASES", ", ".join(ALGORITHMS)),
    # On robots, which are run as the preset small, mome has 256 * 64 / 256 = 64 offspring; on others its default, 50.
    "the same twice": """
tasks = ["arm-2", "hopper-2", "ant-2"]
algorithms = [
  "mome",
  "again",  #! algorithm 'again' has the same settings as 'mome', which would be the same runs; leave one of the two \
out.
  "fewer",  #! algorithm 'fewer' has the same settings as 'mome', which would be the same runs; leave one of the two \
out.
  "wide",
  "wider",  #! algorithm 'wider' has the same settings as 'wide', which would be the same runs; leave one of the two \
out.
  "wrong",
]
seeds = 5
[algorithm.again]
base = "mome"
num_cells = 128
[algorithm.fewer]
base = "mome"
ga_batch = 64
[algorithm.wide]
base = "mome"
line_sigma = 1
[algorithm.wider]
base = "mome"
line_sigma = 1.0
[algorithm.wrong]
base = "mome"
num_cells = 0  #! num_cells is 0; give a whole number of at least 1, or a list of them.
""",
    # With the preset small the two would be the same, but it is not known which one is meant.
    "what cannot be compared": """
preset = "smal"  #! unknown preset 'smal'; did you mean 'small'?
tasks = ["hopper-2"]
algorithms = ["mome", "fewer"]
seeds = 5
[algorithm.fewer]
base = "mome"
ga_batch = 64
""",
    "no TOML": """
tasks = ["arm-2"]
seeds = five  #! this is no TOML (invalid value, at column 9); give text in quotes, a number, a list, true or false.
preset = "tiny"
""",
    "a key twice": """
seeds = 1
tasks = ["arm-2"]
seeds = 2  #! this is no TOML (cannot overwrite a value, at column 10); give every key once.
""",
    "a table twice": """
[task.arm-2]
[task.arm-2]  #! this is no TOML (cannot declare ('task', 'arm-2') twice, at column 12); correct it.
""",
    "an end too early": """
tasks = ["arm-2",
"ant-2"  #! this is no TOML (unclosed array, at the end); correct it.
""",
    "a number without end": f"""
tasks = ["arm-2"]
# {"1" * 40}
seeds = {"1" * 5000}  #! a number has more than 100 digits; give a shorter one.
""",
    "a hexadecimal number without end": f"""
tasks = ["arm-2"]
seeds = [1, 2,
  0x{"f" * 5000}]  #! a number has more than 100 digits; give a shorter one.
""",
    "too deep": f"""
tasks = ["arm-2"]
seeds = {"[" * 30}{"]" * 30}  #! this is nested too deeply; a study has lists and tables, and tables in a table, but \
no more.
""",
    "far too deep for the parser": f"""#! this is nested too deeply; a study has lists and tables, and tables in a \
table, but no more.
seeds = {"[" * 5000}{"]" * 5000}
""",
}


# The type checks of these tests refuse the values in this one, so it is read without them.
UNTYPED = """
tasks = ["hopper-2"]
algorithms = ["mome-p2c", "pga-me", "one"]
seeds = 1
[task.hopper-2]
backend = "sprig"  #! unknown backend 'sprig'; did you mean 'spring'?
resamples = "3"  #! resamples is '3'; give a whole number of at least 1, or None.
reference_point = [1]  #! reference_point is [1]; give 2 finite numbers, one for each of forward velocity, energy.
[algorithm]
pga-me.elite_cells = 0  #! elite_cells is 0; give a whole number of at least 1, or None.
[algorithm.one]
base = "mome-p2c"
pg_preferences = "onehot"  #! unknown pg_preferences 'onehot'; did you mean 'one-hot'?
tau = 7  #! tau is 7.0; give a number from 0 to 1, a share of the way to what is trained.
"""


def check_marked(text, path):
    marked = [line.split("#!") for line in text.split("\n")]
    expected = [(i, said.strip()) for i, (_, *all_said) in enumerate(marked, 1) for said in all_said]
    assert expected
    assert sorted(problems_of(path)) == sorted(expected)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mistakes", MISTAKES)
def test_every_mistake_is_said_with_its_line(mistakes, end, tmp_path):
    text = MISTAKES[mistakes]
    check_marked(text, written(tmp_path, text.replace("\n", end)))


GOOD = {"tasks": ["arm-2"], "algorithms": ["mome"], "seeds": 1}
JSON_MISTAKES = {
    '{\n"tasks": ["arm-2"],\n"seeds": 1,\n}': [
        (4, "this is no JSON (Expecting property name enclosed in double quotes, at column 1); correct it.")
    ],
    "[1]": [(1, 'there are no keys; give an object that has some, such as {"tasks": ["hopper-2"]}.')],
    "": [(1, "this is no JSON (Expecting value, at column 1); correct it.")],
    "[" * 3000: [
        (1, "this is nested too deeply; a study has lists and tables, and tables in a table, but no more."),
    ],
    '{"algorithms": ["mome"],\n"seeds": 0,\n\n"task": {"arm-2": {"num_joints": 3,\n "num_joints": 0}},\n'
    '"seeds":\n [\n1, \n-2], "preset": null, "tasks": ["arm-2"]}': [
        (5, "key 'num_joints' is given twice; give it once."),
        (5, "num_joints is 0; give a whole number of at least 1."),
        (6, "key 'seeds' is given twice; give it once."),
        (9, "preset is None; give one of quick, small, paper."),
        (9, "seed -2 is negative; give whole numbers from 0 to 4294967295."),
    ],
    '{"seeds": 1' + "0" * 5000 + "}": [(1, "a number has more than 100 digits; give a shorter one.")],
}


@pytest.mark.parametrize("text", JSON_MISTAKES, ids=lambda text: text[:20])
def test_mistakes_in_json(text, tmp_path):
    assert sorted(problems_of(written(tmp_path, text, "a.json"))) == JSON_MISTAKES[text]


def test_a_name_must_do_for_a_folder(tmp_path):
    for i, name in enumerate(["../x", ".x", "a/b", "", "ü", "a b", "x" * 101, "a\nb", "..", "\ud800"]):
        ((line, text),) = problems_of(written(tmp_path, json.dumps({"name": name, **GOOD}), f"{i}.json"))
        assert line == 1
        assert text.startswith("name is ")
    for i, name in enumerate(["x" * 100, "-", "A.b_c-1", "7"]):
        assert read_study(written(tmp_path, json.dumps({"name": name, **GOOD}), f"{i}.json")).name == name
    ((line, text),) = problems_of(written(tmp_path, json.dumps(GOOD), "my study.json"))
    assert (line, text[:56]) == (1, "there is no name, and that of the file is 'my study'; gi")


def test_only_plain_files_of_the_two_kinds_and_not_too_large(tmp_path):
    good = written(tmp_path, json.dumps(GOOD), "good.json")
    assert read_study(good).seeds == (0,)
    (tmp_path / "link.json").symlink_to(good)
    (tmp_path / "folder.toml").mkdir()
    written(tmp_path, "#" * (MOST_BYTES + 1), "large.toml")
    (tmp_path / "other.toml").write_bytes(b'name = "\xff"')
    for name in ("link.json", "folder.toml", "large.toml", "other.toml"):
        with pytest.raises(InputError, match=name):
            read_study(tmp_path / name)
    with pytest.raises(MissingFileError):
        read_study(tmp_path / "none.toml")
    for name in ("good.yaml", "good", "toml"):
        with pytest.raises(InputError, match=r"ends in \.toml or \.json"):
            read_study(written(tmp_path, json.dumps(GOOD), name))


def test_a_file_from_windows(tmp_path):
    assert read_study(written(tmp_path, "\ufeff" + FULL.replace("\n", "\r\n"))).name == "gradient-steps"


def test_messages_stay_lines_of_a_length_to_be_read(tmp_path):
    wild = "\n\x1b[31m\u2028" + "x" * 5000
    content = GOOD | {"task": {"arm-2": {"reference_point": wild}}, wild: 1, "tasks": ["arm-2", wild]}
    content |= {"algorithms": ["mome", wild], "algorithm": {wild: {"base": "mome", "num_cells": 5}}, "reference": 5}
    found = problems_of(written(tmp_path, json.dumps(content), "a.json"))
    assert len(found) == 5
    assert all(len(text) < 600 and text.isprintable() for _, text in found)
    many = [*range(300), *range(300)]
    with pytest.raises(InputError) as caught:
        read_study(written(tmp_path, json.dumps(GOOD | {"seeds": many}, indent=1), "b.json"))
    head, *listed, last = str(caught.value).split("\n")
    assert (head[-17:], len(listed), last) == ("has 300 problems:", 100, "  and 200 more.")


class Layout:
    """Writes a document in one of the many ways that its format allows, and notes the line of all that is in it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.text, self.lines = "", {}
        self.end = self.random.choice(["\n", "\r\n"])

    @property
    def line(self):
        return self.text.count("\n") + 1

    def note(self, place):
        self.lines[place] = self.line

    def note_parents(self, place):
        for depth in range(1, len(place)):
            self.lines.setdefault(place[:depth], self.line)

    def maybe(self, probability=0.4):
        return self.random.random() < probability


class TomlLayout(Layout):
    COMMENTS = ("", "tasks = [1,", ' "', "'''", '"""', "[task.arm-2]", "seeds = ]}", "# [[x]]")

    def gap(self, lines=True):
        """What may stand between two things: within lists, ends of lines too."""
        self.text += self.random.choice(["", "", " ", "\t"])
        while lines and self.maybe(0.3):
            self.text += f"#{self.random.choice(self.COMMENTS)}" * self.maybe() + self.end + "  "

    def line_end(self):
        self.text += f" # {self.random.choice(self.COMMENTS)}" * self.maybe() + self.end
        while self.maybe(0.3):
            self.text += f"\t#{self.random.choice(self.COMMENTS)}" * self.maybe() + self.end

    def document(self, content):
        self.text += f"# seeds = [{self.end}" * self.maybe()
        plain = {key: value for key, value in content.items() if not isinstance(value, dict)}
        tables = {key: value for key, value in content.items() if isinstance(value, dict)}
        first = [key for key in tables if self.maybe()]
        for key in self.random.sample([*plain, *first], len(plain) + len(first)):
            if key in plain or self.maybe():
                self.pair((key,), content[key])
                self.line_end()
            else:
                self.dotted((key,), tables[key])
        for key in tables:
            if key not in first:
                self.headed((key,), tables[key])
        return self.text

    def dotted(self, place, table):
        """Each value of the table with a key from the top: a.b = 1."""
        if not table:
            self.pair(place, table)
            self.line_end()
        for key, value in table.items():
            if isinstance(value, dict) and self.maybe(0.7):
                self.dotted((*place, key), value)
            else:
                self.pair((*place, key), value)
                self.line_end()

    def headed(self, place, table):
        """[a.b] and its values, and after these the tables in it."""
        later = {key for key, value in table.items() if isinstance(value, dict) and self.maybe(0.7)}
        lists = {key for key, value in table.items() if key not in later and self.several(value) and self.maybe(0.7)}
        if not later or later | lists < set(table) or self.maybe():
            self.text += "["
            self.header(place)
            self.text += "]"
            self.line_end()
        for key in set(table) - later - lists:
            self.pair((key,), table[key], within=place)
            self.line_end()
        for key in later:
            self.headed((*place, key), table[key])
        for key in lists:
            for i, element in enumerate(table[key]):
                self.text += "[["
                self.header((*place, key))
                if i > 0:  # the list itself is where its first table is
                    self.lines[*place, key] = self.first
                self.first = self.lines[*place, key]
                self.note((*place, key, i))
                self.text += "]]"
                self.line_end()
                for name, value in element.items():
                    self.pair((name,), value, within=(*place, key, i))
                    self.line_end()

    def header(self, place):
        self.note_parents(place)
        self.note(place)
        self.key([part for part in place if isinstance(part, str)])

    @staticmethod
    def several(value):
        return isinstance(value, list) and bool(value) and all(isinstance(element, dict) for element in value)

    def pair(self, place, value, within=()):
        self.note_parents((*within, *place))
        self.note((*within, *place))
        self.key(place)
        self.gap(lines=False)
        self.text += "="
        self.gap(lines=False)
        self.value((*within, *place), value)

    def key(self, parts):
        for i, part in enumerate(parts):
            if i:
                self.gap(lines=False)
                self.text += "."
                self.gap(lines=False)
            bare = re.fullmatch("[A-Za-z0-9_-]+", part)
            self.text += part if bare and self.maybe(0.7) else self.quoted(part)

    def quoted(self, text):
        if self.maybe() and "'" not in text and text.isprintable():
            return f"'{text}'"
        return json.dumps(text, ensure_ascii=self.maybe() and text.isascii())

    def value(self, place, value):
        if isinstance(value, list):
            self.text += "["
            self.gap()
            for i, element in enumerate(value):
                self.note((*place, i))
                self.value((*place, i), element)
                self.gap()
                if i < len(value) - 1 or self.maybe():
                    self.text += ","
                self.gap()
            self.text += "]"
        elif isinstance(value, dict):
            self.text += "{"
            for i, (key, element) in enumerate(value.items()):
                self.text += ", " if i else " "
                self.pair((key,), element, within=place)
            self.text += "}"
        elif isinstance(value, str):
            self.string(value)
        elif isinstance(value, bool):
            self.text += str(value).lower()
        elif isinstance(value, datetime):
            self.text += str(value)  # with a space in the middle
        else:
            self.text += repr(value) if isinstance(value, int | float) else str(value)

    def string(self, value):
        if self.maybe(0.6):
            self.text += self.quoted(value)
        elif "'''" not in value and not value.endswith("''''") and (value.isprintable() or value == "\n"):
            self.text += f"'''{self.end}{value}'''"
        else:
            escaped = json.dumps(value, ensure_ascii=False)[1:-1].replace("\\n", self.end).replace('\\"', '"')
            escaped = re.sub('"""', '""\\\\"', escaped)
            self.text += f'"""\\{self.end}   {escaped}"""' if not value[:1].isspace() else f'"""{self.end}{escaped}"""'


class JsonLayout(Layout):
    def gap(self):
        while self.maybe():
            self.text += self.random.choice([" ", "\t", self.end, self.end])

    def document(self, content):
        self.gap()
        self.value((), content)
        self.gap()
        return self.text

    def string(self, value):
        self.text += json.dumps(value, ensure_ascii=self.maybe())

    def value(self, place, value):
        if isinstance(value, list):
            self.several("[]", value, lambda i, element: self.element((*place, i), element))
        elif isinstance(value, dict):
            self.several("{}", value.items(), lambda i, pair: self.pair((*place, pair[0]), pair[1]))
        elif isinstance(value, str):
            self.string(value)
        else:
            self.text += json.dumps(value)

    def several(self, brackets, values, write):
        self.text += brackets[0]
        for i, value in enumerate(values):
            self.text += "," if i else ""
            self.gap()
            write(i, value)
            self.gap()
        self.text += brackets[1]

    def element(self, place, value):
        self.note(place)
        self.value(place, value)

    def pair(self, place, value):
        self.note(place)
        self.string(place[-1])
        self.gap()
        self.text += ":"
        self.gap()
        self.value(place, value)


AWKWARD = (
    "tasks",
    "a.b",
    "x = [1, 2]",
    "#no",
    "]",
    "{",
    '"',
    "'",
    "",
    '""',
    "''",
    "\\",
    "a\nb",
    "[task]",
    "é",
    ",",
    ":",
)


def anything(chance, depth=3):
    """Some value that a document may have."""
    kind = chance.randrange(9 if depth else 6)
    if kind >= 7:
        return {text(chance): anything(chance, depth - 1) for _ in range(chance.randrange(4))}
    if kind == 6:
        several = chance.choice([lambda: anything(chance, depth - 1), lambda: {text(chance): anything(chance, 0)}])
        return [several() for _ in range(chance.randrange(5))]
    scalars = (chance.randint(-99, 99), chance.random() * 1e6, chance.choice([True, False]), 1e-7, text(chance))
    return text(chance) if kind == 5 else scalars[kind]


def text(chance):
    letters = "".join(chance.choice("abc-_ .,=#\"'[]{}\\\n\téλ") for _ in range(chance.randrange(6)))
    return chance.choice([letters, chance.choice(AWKWARD)])


@pytest.mark.parametrize(("layouts", "suffix"), [(TomlLayout, ".toml"), (JsonLayout, ".json")])
def test_the_line_of_everything_in_any_layout(layouts, suffix):
    for seed in range(250):
        chance = random.Random(seed)
        content = {text(chance): anything(chance) for _ in range(8)}
        if suffix == ".toml":
            content["dates"] = [date(1979, 5, 27), datetime(1979, 5, 27, 7, 32), [datetime(1999, 1, 1, 0, 0, 1)]]
        layout = layouts(seed)
        document = layout.document(content)
        assert (tomllib.loads if suffix == ".toml" else json.loads)(document) == content, seed  # so it is a layout
        assert Lines(document, suffix).at == layout.lines, f"{seed}:\n{document}"


def test_the_lines_of_tables_in_lists_of_tables():
    document = """[[a]]
b = 1
[[a]]
[a.c]
d = 2
[[a.e]]
[[a.e]]
f = {g = [1,
          {h = 2}]}
"""
    expected = {
        ("a",): 1, ("a", 0): 1, ("a", 0, "b"): 2, ("a", 1): 3, ("a", 1, "c"): 4, ("a", 1, "c", "d"): 5,
        ("a", 1, "e"): 6, ("a", 1, "e", 0): 6, ("a", 1, "e", 1): 7, ("a", 1, "e", 1, "f"): 8,
        ("a", 1, "e", 1, "f", "g"): 8, ("a", 1, "e", 1, "f", "g", 0): 8, ("a", 1, "e", 1, "f", "g", 1): 9,
        ("a", 1, "e", 1, "f", "g", 1, "h"): 9,
    }  # fmt: skip
    assert Lines(document, ".toml").at == expected


def test_what_has_no_line_has_that_of_what_it_is_in():
    lines = Lines("\n\na.b = [1,\n2]", ".toml")
    assert [lines.of(place) for place in [("a", "b", 1), ("a", "b", 2), ("a", "c"), ("d",), ()]] == [4, 3, 3, 1, 1]


def in_both_layouts(content, seed, folder):
    """The two files, each with the lines of what is in it."""
    for layouts, suffix in ((TomlLayout, "toml"), (JsonLayout, "json")):
        layout = layouts(seed)
        yield written(folder, layout.document(content), f"mine.{suffix}"), layout.lines


def mistakes_have_the_lines_that_they_were_written_on(folder):
    def put(value, *place):
        def mistake(content):
            *way, last = place
            for part in way:
                content = content[part]
            content[last] = value
            return place

        return mistake

    def append(value, key):
        def mistake(content):
            content[key].append(value)
            return key, len(content[key]) - 1

        return mistake

    mistakes = [
        append("hoper-2", "tasks"),
        append("hopper-2", "tasks"),
        append(3, "tasks"),
        append("mom", "algorithms"),
        append(-1, "seeds"),
        append(7, "seeds"),
        append(1.5, "seeds"),
        put("none", "reference"),
        put(0, "log_every"),
        put(1, "colour"),
        put(0, "task", "hopper-2", "episode_length"),
        put([1], "task", "hopper-2", "reference_point"),
        put(1, "task", "hopper-2", "episode_lenght"),
        put({}, "task", "walker-2"),
        put({"base": "mome"}, "algorithm", "spare"),
        put(0, "algorithm", "more-steps", "pg_steps"),
        put(1.5, "algorithm", "more-steps", "discount"),
        put(2, "algorithm", "more-steps", "tau"),
        put("x", "algorithm", "mome", "num_cells"),
        put("mome", "algorithm", "mome", "base"),
    ]
    for seed in range(15):
        content = copy.deepcopy(tomllib.loads(FULL))
        places = [mistake(content) for mistake in random.Random(seed).sample(mistakes, 8)]
        for path, lines in in_both_layouts(content, seed, folder):
            assert [line for line, _ in problems_of(path)] == sorted(lines[place] for place in places)


def scale_of(algorithm):
    return "iso_sigma" if hasattr(ALGORITHMS[algorithm].config, "iso_sigma") else "sigma"


def both_forms_of_a_correct_file_are_the_study_that_make_study_makes(folder):
    for seed in range(15):
        chance = random.Random(seed)
        robots = chance.choice([True, False])
        tasks = chance.sample([name for name, entry in TASKS.items() if entry.policies or not robots], 2)
        robots = all(TASKS[task].policies for task in tasks)
        own = [name for name, entry in ALGORITHMS.items() if robots or not hasattr(entry.config, "pg_batch")]
        algorithms = {label: Variant(label, {}) for label in chance.sample(own, 2)}
        algorithms |= {
            f"v{i}": Variant(base, {"num_cells": 50 + i, scale_of(base): chance.choice([0, 1, 0.25])})
            for i, base in enumerate(chance.choices(own, k=chance.randrange(3)))
        }
        labels = chance.sample(list(algorithms), len(algorithms))
        algorithms = {label: algorithms[label] for label in labels}
        options = {task: {"reference_point": [-1] * int(task[-1])} for task in tasks if chance.random() < 0.5}
        others = {
            "seeds": chance.choice([2, [4294967295, 0, 5]]),
            "preset": chance.choice(["quick", "small", "paper"]),
            "reference": chance.choice(labels),
            chance.choice(["iterations", "evaluations"]): chance.randrange(1000),
            "log_every": chance.randint(1, 9),
            "snapshot_every": chance.randint(1, 9),
        }
        others = {key: value for key, value in others.items() if key == "seeds" or chance.random() < 0.5}
        content = {"tasks": tasks, "algorithms": labels, **others}
        content["algorithm"] = {
            label: {"base": variant.base, **variant.options} for label, variant in algorithms.items() if variant.options
        }
        content["task"] = options
        seeds = others.pop("seeds")
        expected = make_study(
            "mine",
            tasks={task: options.get(task, {}) for task in tasks},
            algorithms=algorithms,
            seeds=range(seeds) if isinstance(seeds, int) else seeds,
            **others,
        )
        for path, _ in in_both_layouts(content, seed, folder):
            assert read_study(path) == expected


FUZZ = settings(max_examples=100, derandomize=True, database=None, deadline=None)
STRANGE = (
    -1,
    0,
    1,
    3,
    2**31,
    2**63,
    10**30,
    -(10**90),
    0.0,
    -1.5,
    1e300,
    float("inf"),
    float("nan"),
    True,
    "",
    "x",
    [],
    {},
)


def study_like(chance):
    """Content that is mostly that of a study."""
    labels = [*ALGORITHMS, "mine", "yours", "mom"]
    options = sorted({field.name for entry in ALGORITHMS.values() for field in fields(entry.config)} | {"base", "bas"})
    of_tasks = sorted({field.name for entry in TASKS.values() for field in fields(entry.config)} | {"reference_point"})
    usual = {
        "name": lambda: chance.choice(["x", "..", "a b"]),
        "preset": lambda: chance.choice(["small", "smal", "paper"]),
        "tasks": lambda: chance.sample([*TASKS, "hoper-2"] if chance.random() < 0.3 else list(TASKS), 2),
        "algorithms": lambda: chance.sample(labels if chance.random() < 0.3 else list(ALGORITHMS), 2),
        "seeds": lambda: chance.choice([2, [1, 2], [1, 2], [1, 1, -1]]),
        "reference": lambda: chance.choice(labels),
        "iterations": lambda: 3,
        "evaluations": lambda: 300,
        "log_every": lambda: 5,
        "snapshot_every": lambda: 7,
        "task": lambda: {name: some(of_tasks) for name in chance.sample([*TASKS, "hoper-2"], 2)},
        "algorithm": lambda: {name: some(options) | some(["base"], labels) for name in chance.sample(labels, 2)},
        "colour": lambda: 1,
    }
    assert set(KEYS) < set(usual)

    def some(names, values=()):
        chosen = chance.sample(names, min(len(names), chance.randrange(4)))
        return {name: chance.choice(values) if values else strange() for name in chosen}

    def strange():
        value = chance.choice([*STRANGE, "mome", "spring", "one-hot", 0.5, 64, [64], [1, 2], anything(chance)])
        return copy.deepcopy([value, chance.choice(STRANGE)] if chance.random() < 0.1 else value)

    odd = chance.choice([0, 0, 0.05, 0.5])
    needed = ("tasks", "algorithms", "seeds")
    chosen = {key for key in usual if chance.random() < (0.95 if key in needed else odd)}
    return {key: strange() if chance.random() < odd else usual[key]() for key in usual if key in chosen}


def is_study(path):
    """If it is not, the problems must be on lines that there are."""
    try:
        return isinstance(read_study(path), Study)
    except InputError as error:
        message = str(error)
    content = path.read_bytes()
    head, *rest = message.split("\n")
    lines = [re.fullmatch(r"  line (\d+): \S.*", line) for line in rest]
    assert rest or "is not text" in head
    assert all(line and 1 <= int(line[1]) <= content.count(b"\n") + 1 for line in lines), message
    return False


def any_document_is_a_study_or_an_input_error(folder):
    found = []
    suffixes = {".toml": TomlLayout, ".json": JsonLayout}

    def look(content, suffix):
        path = Path(folder) / f"x{suffix}"
        path.write_bytes(content)
        found.append(is_study(path))

    @FUZZ
    @given(st.integers(0, 2**32), st.sampled_from(list(suffixes)))
    def studies(seed, suffix):
        look(suffixes[suffix](seed).document(study_like(random.Random(seed))).encode(), suffix)

    @FUZZ
    @given(st.integers(0, 10), st.sampled_from(list(suffixes)), st.data())
    def damaged(seed, suffix, data):
        document = suffixes[suffix](seed).document(tomllib.loads(FULL))
        start, length = data.draw(st.integers(0, len(document))), data.draw(st.integers(0, 5))
        put = data.draw(st.text(st.sampled_from("[]{}\"'=:,.#\n\\0a-"), max_size=3))
        look((document[:start] + put + document[start + length :]).encode(), suffix)

    @FUZZ
    @given(st.text().map(str.encode) | st.binary(), st.sampled_from(list(suffixes)))
    def noise(content, suffix):
        look(content, suffix)

    for documents in (studies, damaged, noise):
        documents()
        if documents is not noise:
            assert 10 < sum(found) < len(found) - 10  # some are, some are not
        found.clear()


def test_what_is_said_without_the_type_checks_of_tests():
    """They would refuse some values before moqd does, and make the building of many algorithms slow."""
    command = [sys.executable, "-W", "error", "-m", "tests.study.test_file"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check_marked(UNTYPED, written(folder, UNTYPED))
        mistakes_have_the_lines_that_they_were_written_on(folder)
        both_forms_of_a_correct_file_are_the_study_that_make_study_makes(folder)
        any_document_is_a_study_or_an_input_error(folder)
    assert "brax" not in sys.modules  # nothing long was started
    print("done")
