"""A study's file gives the study that it says, or every mistake in it with its key."""

import copy
import json
import random
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moqd.algorithms import ALGORITHMS
from moqd.io.errors import InputError, MissingFileError
from moqd.study.display import overview
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
    """The lines of the message, which must have the form that it should have."""
    with pytest.raises(InputError) as caught:
        read_study(path)
    head, *rest = str(caught.value).split("\n")
    number = "a problem" if len(rest) == 1 else f"{len(rest)} problems"
    assert head == f"{path} has {number}:"
    assert all(line.startswith("  ") and line.strip() for line in rest)
    return [line[2:] for line in rest]


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_correct_file_is_the_study_that_it_says(suffix, tmp_path):
    text = FULL if suffix == "toml" else json.dumps(tomllib.loads(FULL))
    assert read_study(written(tmp_path, text, f"x.{suffix}")) == make_study("gradient-steps", **FULL_STUDY)


def test_cells_of_a_grid(tmp_path):
    text = 'tasks = ["arm-2"]\nalgorithms = ["mome", "grid"]\nseeds = 1\n'
    text += '[algorithm.grid]\nbase = "mome"\nnum_cells = [10, 12]\n'
    study = read_study(written(tmp_path, text))
    assert [run.config.algorithm.options["num_cells"] for run in study.runs] == [128, [10, 12]]
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
    assert [(run.task, run.algorithm, run.config.seed) for run in same.runs] == [
        (task, algorithm, 5) for task in study.tasks for algorithm in study.algorithms
    ]
    wrong = written(tmp_path, text.replace("[1, 9]", "0"), "wrong.toml")
    assert problems_of(wrong) == ["task.ant-2.seeds is 0; give how many, from 1 to 10000, or a list."]


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


# By what is wrong: a file, and how each line begins that is said of it.
MISTAKES = {
    "the example": """
tasks = ["hoper-2", "ant-2"]
algorithms = ["mome"]
seeds = [-1, 3, 3]
[task.hopper-2]
episode_lenght = 3
=> task.hopper-2.episode_lenght: unknown option 'episode_lenght' of task 'hopper-2'; did you mean 'episode_length'
=> tasks[0]: unknown task 'hoper-2'; did you mean 'hopper-2'
=> seeds[0]: seed is -1
=> seeds[2]: seed 3 is given twice, which would be the same runs
""",
    "nothing": """

=> tasks: there are no tasks
=> algorithms: there are no algorithms
=> seeds: there are no seeds
""",
    "wrong types": """
name = 5
preset = 3
tasks = "arm-2"
algorithms = [
    "mome",
    ["spea2"],
]
seeds = "5"
reference = [true]
iterations = 1.5
log_every = 0
snapshot_every = 2020-01-01
task = 1
[algorithm]
mome = 1
=> name is 5
=> iterations is 1.5
=> log_every is 0
=> snapshot_every is datetime.date(2020, 1, 1)
=> preset: unknown preset 3
=> task is 1
=> algorithm.mome is 1
=> tasks is 'arm-2'
=> algorithms[1]: unknown algorithm ['spea2']; did you mean 'spea2'
=> seeds is '5'
=> reference: unknown reference [True]
""",
    "names that are not known": """
nam = "x"
preset = "tiny"
tasks = ["arm-2"]
algorithms = [
    "mme",
    "mome",
    "mine"
]
seeds = 1
reference = "mine-2"
[algorithm.mine]
base = "nsga"
[algorithm.mome]
cells = 5
seeds = 5
[task.arm-2]
refrence_point = [1, 2]
=> nam: unknown key 'nam'; did you mean 'name'
=> preset: unknown preset 'tiny'
=> task.arm-2.refrence_point: unknown option 'refrence_point' of task 'arm-2'; did you mean 'reference_point'
=> algorithm.mine.base: unknown base 'nsga'; did you mean 'nsga2'
=> algorithm.mome.cells: unknown option 'cells' of algorithm 'mome'; did you mean 'num_cells'
=> algorithm.mome.seeds: 'seeds' is no option of algorithm 'mome', but a key of the study.
=> algorithms[0]: unknown algorithm 'mme'; did you mean 'mome'
=> reference: unknown reference 'mine-2'; did you mean 'mine'
""",
    "seeds": """
tasks = ["arm-2"]
algorithms = ["mome"]
seeds = [
    4294967295,
    4294967296,
    100000000000000000000000,
    true,
    1.0,
    nan,
    "1", '1',
    0,
    4_294_967_295,
    0x0,
    -0,
]
=> seeds[1]: seed is 4294967296
=> seeds[2]: seed is 100000000000000000000000
=> seeds[3]: seed is True
=> seeds[4]: seed is 1.0
=> seeds[5]: seed is nan
=> seeds[6]: seed is '1'
=> seeds[7]: seed is '1'
=> seeds[9]: seed 4294967295 is given twice, which would be the same runs
=> seeds[10]: seed 0 is given twice, which would be the same runs
=> seeds[11]: seed 0 is given twice, which would be the same runs
""",
    "too many runs": """
tasks = ["arm-2", "ant-2"]
algorithms = ["mome", "nsga2"]
seeds = 3000
=> seeds: these are 12000 runs
""",
    "twice": """
tasks = ["arm-2",
  "rastrigin-2", "arm-2"]
algorithms = ["mome", "nsga2",
  "nsga2", "mome", "mome"]
seeds = 1
=> tasks[2]: task 'arm-2' is given twice, which would be the same runs
=> algorithms[2]: algorithm 'nsga2' is given twice, which would be the same runs
=> algorithms[3]: algorithm 'mome' is given twice, which would be the same runs
=> algorithms[4]: algorithm 'mome' is given twice, which would be the same runs
""",
    "both budgets": """
evaluations = 3
tasks = ["arm-2"]
iterations = 3
algorithms = ["mome"]
seeds = 1
=> evaluations: iterations and evaluations are both given
""",
    "options that are refused": """
tasks = ["hopper-3"]
algorithms = ["mome-p2c", "tiny"]
seeds = 1
[task.hopper-3]
episode_length = 0
hidden_sizes = [4, 0]
reference_point = [1, 2]
[algorithm.tiny]
base = "mome-p2c"
crowding = 1
iso_sigma = -0.5
line_sigma = inf
tau = 2.0
discount = 1
actor_batch = 2
num_cells = 9999999999
critic_hidden_sizes = []
=> task.hopper-3.episode_length is 0
=> task.hopper-3.hidden_sizes is [4, 0]
=> task.hopper-3.reference_point is [1, 2]
=> algorithm.tiny.crowding is 1
=> algorithm.tiny.iso_sigma is -0.5
=> algorithm.tiny.line_sigma is inf
=> algorithm.tiny.num_cells is 9999999999, which is too large
=> algorithm.tiny.tau is 2.0
=> algorithm.tiny.discount is 1.0
=> algorithm.tiny.actor_batch is 2, but each of the 3 objectives is injected once
=> algorithm.tiny.critic_hidden_sizes is empty
""",
    "a reference point of words": """
tasks = ["arm-2"]
algorithms = ["mome"]
seeds = 1
[task.arm-2]
reference_point = ["1", "2"]
num_joints = 10000000000
=> task.arm-2.reference_point is ['1', '2']
=> task.arm-2.num_joints is 10000000000, which is too large
""",
    "grids": """
tasks = ["arm-2", "hopper-2"]
algorithms = ["flat", "line", "vast", "odd", "empty"]
seeds = 1
[algorithm.flat]
base = "mome"
num_cells = [4, 5]
[algorithm.line]
base = "mome"
num_cells = [7]
[algorithm.vast]
base = "mome"
num_cells = [100000, 100000]
[algorithm.odd]
base = "mome"
num_cells = [4, "5"]
[algorithm.empty]
base = "mome"
num_cells = []
=> algorithm.vast.num_cells is [100000, 100000], which is too many
=> algorithm.odd.num_cells is [4, '5']
=> algorithm.empty.num_cells is []
=> algorithm.line.num_cells is (7,), a grid over 1 feature, but task 'arm-2' has 2 (hand x, hand y)
=> algorithm.flat.num_cells is (4, 5), a grid over 2 features, but task 'hopper-2' has 1 (foot contact)
""",
    "options that do not go together": """
tasks = ["hopper-2"]
algorithms = ["mome-p2c"]
seeds = 1
[algorithm.mome-p2c]
pg_batch = 0
actor_batch = 0
front_length = 20
ga_batch = 0
=> algorithm.mome-p2c.ga_batch: pg_batch, ga_batch and actor_batch are all 0
""",
    "nothing to take a gradient of": """
tasks = ["arm-2", "hopper-2"]
algorithms = [
  "mome",
  "mine",
  "pga-me",
]
seeds = 1
algorithm.mine = {base = "mome-pgx", pg_steps = 3}
=> algorithms[1]: algorithm 'mine' improves policies by their gradient
=> algorithms[2]: algorithm 'pga-me' improves policies by their gradient
""",
    "options of what is not there": """
tasks = ["arm-2"]
algorithms = ["mome", "more-steps"]
seeds = 1
[task.hopper-2]
episode_length = 5
[task.arm2]
[algorithm.spea2]
population = 0
[algorithm.more-steps]
base = "mome"
iso_sigma = 1
=> algorithm.spea2.population is 0
=> task.hopper-2: it is not listed in tasks; add it there, or remove its options
=> task.arm2: unknown task 'arm2' of the study; did you mean 'arm-2'
=> algorithm.spea2: it is not listed in algorithms; add it there, or remove its options
""",
    "bases": """
tasks = ["arm-2"]
algorithms = ["mome", "other", "a b"]
seeds = 1
[algorithm.mome]
base = "mome"
[algorithm.other]
iso_sigma = 1
[algorithm."a b"]
base = ["mome"]
=> algorithm.mome.base: 'mome' is one of moqd's algorithms and has no base
=> algorithm.other: it has no base
=> algorithm.a b.base: unknown base ['mome']; did you mean 'mome'
=> algorithm.a b: an algorithm cannot be named so
""",
    # On robots, which are run as the preset small, mome has 256 * 64 / 256 = 64 offspring; on others its default, 50.
    "the same twice": """
tasks = ["arm-2", "hopper-2", "ant-2"]
algorithms = [
  "mome",
  "again",
  "fewer",
  "wide",
  "wider",
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
num_cells = 0
=> algorithm.wrong.num_cells is 0
=> algorithms[1]: algorithm 'again' has the same settings as 'mome', which would be the same runs
=> algorithms[4]: algorithm 'wider' has the same settings as 'wide', which would be the same runs
=> algorithms[2]: algorithm 'fewer' has the same settings as 'mome', which would be the same runs
""",
    # With the preset small the two would be the same, but it is not known which one is meant.
    "what cannot be compared": """
preset = "smal"
tasks = ["hopper-2"]
algorithms = ["mome", "fewer"]
seeds = 5
[algorithm.fewer]
base = "mome"
ga_batch = 64
=> preset: unknown preset 'smal'; did you mean 'small'
""",
}


# The type checks of these tests refuse the values in this one, so it is read without them.
UNTYPED = """
tasks = ["hopper-2"]
algorithms = ["mome-p2c", "pga-me", "one"]
seeds = 1
[task.hopper-2]
backend = "sprig"
resamples = "3"
reference_point = [1]
[algorithm]
pga-me.elite_cells = 0
[algorithm.one]
base = "mome-p2c"
pg_preferences = "onehot"
tau = 7
=> task.hopper-2.backend: unknown backend 'sprig'; did you mean 'spring'
=> task.hopper-2.resamples is '3'
=> task.hopper-2.reference_point is [1]
=> algorithm.pga-me.elite_cells is 0
=> algorithm.one.pg_preferences: unknown pg_preferences 'onehot'; did you mean 'one-hot'
=> algorithm.one.tau is 7.0
"""


def check_mistakes(text, path):
    document, *expected = (part.strip() for part in text.split("=> "))
    path.write_text(document)
    found = problems_of(path)
    assert len(found) == len(expected), found
    for problem, beginning in zip(found, expected, strict=True):
        assert problem.startswith(beginning)


@pytest.mark.parametrize("mistakes", MISTAKES)
def test_every_mistake_is_said_with_its_key(mistakes, tmp_path):
    check_mistakes(MISTAKES[mistakes], tmp_path / "mine.toml")


GOOD = {"tasks": ["arm-2"], "algorithms": ["mome"], "seeds": 1}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "\nseeds = five", "not valid TOML: Invalid value .at line 2, column 9"),
        ("a.toml", "seeds = 1\nseeds = 2", "not valid TOML: Cannot overwrite a value"),
        ("a.toml", 'tasks = ["arm-2"', "not valid TOML: Unclosed array"),
        ("a.toml", f"seeds = {'1' * 5000}", "not valid TOML: .* digits"),
        ("a.toml", f"seeds = 0x{'f' * 5000}", "not valid TOML: .* digits"),
        ("a.toml", f"seeds = {'[' * 5000}{']' * 5000}", "not valid TOML: .* recursion"),
        ("a.json", '{"seeds": 1,\n}', "not valid JSON: .* line 2 column 1"),
        ("a.json", "", "not valid JSON: Expecting value"),
        ("a.json", "[1]", "there are no tasks"),
        ("a.json", "[" * 3000, "not valid JSON: .* recursion"),
        ("a.json", '{"seeds": 1' + "0" * 5000 + "}", "not valid JSON: .* digits"),
        ("a.json", '{"task": {"arm-2": {"num_joints": 3, "num_joints": 0}}}', "key 'num_joints' is given twice"),
    ],
)
def test_what_is_no_document_at_all(name, text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_study(written(tmp_path, text, name))


def test_a_name_must_do_for_a_folder(tmp_path):
    for i, name in enumerate(["../x", ".x", "a/b", "", "ü", "a b", "x" * 101, "a\nb", "..", "\ud800"]):
        (problem,) = problems_of(written(tmp_path, json.dumps({"name": name, **GOOD}), f"{i}.json"))
        assert problem.startswith("name is ")
    for i, name in enumerate(["x" * 100, "-", "A.b_c-1", "7"]):
        assert read_study(written(tmp_path, json.dumps({"name": name, **GOOD}), f"{i}.json")).name == name
    (problem,) = problems_of(written(tmp_path, json.dumps(GOOD), "my study.json"))
    assert problem.startswith("name is 'my study'; give ")


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
    assert all(len(text) < 600 and text.isprintable() for text in found)
    many = [*range(300), *range(300)]
    with pytest.raises(InputError) as caught:
        read_study(written(tmp_path, json.dumps(GOOD | {"seeds": many}, indent=1), "b.json"))
    head, *listed, last = str(caught.value).split("\n")
    assert (head[-17:], len(listed), last) == ("has 300 problems:", 100, "  and 200 more.")


def scale_of(algorithm):
    """An option of it that may be any number."""
    config = ALGORITHMS[algorithm].config
    return next(name for name in ("iso_sigma", "sigma", "sparsity_weight") if hasattr(config, name))


def a_correct_file_is_the_study_that_make_study_makes(folder):
    for seed in range(15):
        chance = random.Random(seed)
        robots = chance.choice([True, False])
        tasks = chance.sample([name for name, entry in TASKS.items() if entry.policies or not robots], 2)
        robots = all(TASKS[task].policies for task in tasks)
        own = [name for name, entry in ALGORITHMS.items() if robots or not entry.policies]
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
            chance.choice(["iterations", "evaluations"]): chance.randrange(6400, 9000),
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
        assert read_study(written(folder, json.dumps(content), "mine.json")) == expected


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
        "evaluations": lambda: 6400,
        "minutes": lambda: chance.choice([2.5, 0, "five"]),
        "env_steps": lambda: chance.choice([1000, 0, 2.5]),
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
        value = chance.choice([*STRANGE, "mome", "spring", "one-hot", 0.5, 64, [64], [1, 2], {"a": [1]}])
        return copy.deepcopy([value, chance.choice(STRANGE)] if chance.random() < 0.1 else value)

    odd = chance.choice([0, 0, 0.05, 0.5])
    needed = ("tasks", "algorithms", "seeds")
    chosen = {key for key in usual if chance.random() < (0.95 if key in needed else odd)}
    return {key: strange() if chance.random() < odd else usual[key]() for key in usual if key in chosen}


def is_study(path):
    """Anything else must be an error with its problems in lines of their own."""
    try:
        return isinstance(read_study(path), Study)
    except InputError as error:
        head, *rest = str(error).split("\n")
    assert rest or "is not text" in head
    assert all(line.startswith("  ") for line in rest)
    return False


def any_document_is_a_study_or_an_input_error(folder):
    found = []

    def look(content, suffix):
        path = Path(folder) / f"x{suffix}"
        path.write_bytes(content)
        found.append(is_study(path))

    @FUZZ
    @given(st.integers(0, 2**32))
    def studies(seed):
        look(json.dumps(study_like(random.Random(seed))).encode(), ".json")

    @FUZZ
    @given(st.sampled_from([(FULL, ".toml"), (json.dumps(tomllib.loads(FULL)), ".json")]), st.data())
    def damaged(document, data):
        text, suffix = document
        start, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 5))
        put = data.draw(st.text(st.sampled_from("[]{}\"'=:,.#\n\\0a-"), max_size=3))
        look((text[:start] + put + text[start + length :]).encode(), suffix)

    @FUZZ
    @given(st.text().map(str.encode) | st.binary(), st.sampled_from([".toml", ".json"]))
    def noise(content, suffix):
        look(content, suffix)

    for documents in (studies, damaged, noise):
        documents()
        if documents is not noise:
            assert 10 < sum(found) < len(found) - 10  # some are, some are not
        found.clear()


@pytest.mark.slow
def test_what_is_said_without_the_type_checks_of_tests():
    """They would refuse some values before moqd does, and make the building of many algorithms slow."""
    command = [sys.executable, "-W", "error", "-m", "tests.study.test_file"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check_mistakes(UNTYPED, Path(folder) / "mine.toml")
        a_correct_file_is_the_study_that_make_study_makes(folder)
        any_document_is_a_study_or_an_input_error(folder)
    assert "brax" not in sys.modules  # nothing long was started
    print("done")
