"""Tasks from a file, on the command line: run, resumed, looked at, and in a study."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import moqd
from moqd.algorithms import ALGORITHMS
from moqd.cli.main import main
from moqd.io.errors import AGAIN, InputError
from moqd.runs.loop import Loop
from moqd.runs.user_code import OWN, SPECS, load_algorithm, load_task
from moqd.study.execute import _job
from moqd.study.job import Ending
from moqd.study.job import main as do
from moqd.study.status import folder_of
from moqd.tasks import TASKS

GEAR = """
import moqd
from beside import DENSITY  # a file beside it


def gear(module, teeth, material):
    size = module * teeth
    return [module**2 / (1 + 10 / teeth), DENSITY[material] * size**2], [size]


task = moqd.FunctionTask(
    gear,
    name="gear",
    bounds={"module": (0.5, 5.0), "teeth": moqd.Integer(8, 80), "material": moqd.Categorical("steel", "nylon")},
    objective_names=["load", "weight"],
    minimised=["weight"],
    feature_names=["size"],
    feature_bounds=[(0, 150)],
    evaluator="processes",
    workers=1,
)


def make():
    return task


def refuse():
    raise RuntimeError("no licence")


number = 3
"""
STUDY = """
name = "gears"
tasks = ["gear"]
algorithms = ["mome", "nsga2-small"]
seeds = 1
evaluations = 32
[task.gear]
reference_point = [0.0, 2000000.0]
[algorithm.mome]
ga_batch = 16
num_cells = 6
[algorithm.nsga2-small]
population = 16
num_cells = 6
"""


SKELETON = (Path(__file__).parents[2] / "docs" / "skeleton.py").read_text()
SEARCH = ["train", "arm-2", "--iterations", "2", "--out", "run", "--num-cells", "6"]


@pytest.fixture(autouse=True)
def forget():
    yield
    forget_tasks()


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "gear.py").write_text(GEAR)
    (tmp_path / "beside.py").write_text('DENSITY = {"steel": 7.8, "nylon": 1.2}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("moqd.report.run.save", lambda *_: None)  # figures are drawn but not written, for speed
    return tmp_path


TRAIN = ["train", "--ga-batch", "16", "--num-cells", "6", "--iterations", "2", "--out", "run"]


def said(capsys):
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


@pytest.mark.slow  # a study of such a task is quick enough
def test_a_run_of_a_task_from_a_file(here, capsys):
    assert main([*TRAIN, "--task", "gear.py:task"]) == 0
    config = json.loads((here / "run" / "config.json").read_text())
    assert config["task"]["options"]["name"] == "gear"
    assert len(config["task"]["options"]["fingerprint"]) == 16
    assert "gear.py" not in json.dumps(config), "files never name code"
    assert "moqd resume run --task gear.py:task" in (here / "run" / "report.md").read_text()
    forget_tasks()

    # To look at it one needs no code; to go on, one does.
    assert main(["pick", "run", "--json"]) == 0
    assert main(["export", "run", "--csv"]) == 0
    assert (here / "run" / "solutions.csv").read_text().splitlines()[0].endswith("module,teeth,material")
    assert main(["explore", "run"]) == 0
    assert main(["report", "run", "--out", "elsewhere/report"]) == 0
    assert {path.name for path in (here / "elsewhere" / "report").iterdir()} == {"figures", "report.md"}
    capsys.readouterr()
    assert main(["resume", "run", "--iterations", "3"]) == 2
    assert "on the command line as --task FILE.py:NAME" in said(capsys)
    assert main(["resume", "run", "--iterations", "3", "--task=gear.py:make"]) == 0
    forget_tasks()

    (here / "gear.py").write_text(GEAR + "# a remark\n")
    capsys.readouterr()
    assert main(["resume", "run", "--iterations", "4", "--task", "gear.py:task"]) == 2
    assert "has changed since the run was made" in said(capsys)
    forget_tasks()
    assert main(["resume", "run", "--iterations", "4", "--task", "gear.py:task", "--accept-changes"]) == 0
    assert moqd.load_run("run").metrics["iteration"][-1] == 4


def forget_tasks():
    for name in OWN:
        TASKS.pop(name, None)
    for name in [name for name, entry in ALGORITHMS.items() if hasattr(entry.config, "fingerprint")]:
        del ALGORITHMS[name]
    for known in (OWN, SPECS, AGAIN):
        known.clear()


@pytest.mark.slow  # processes that compile everything
def test_a_study_of_a_task_from_a_file(here, capsys):
    (here / "gears.toml").write_text(STUDY)
    assert main(["study", "gears.toml"]) == 2
    assert "unknown task 'gear'" in said(capsys)
    (here / "without.toml").write_text(STUDY.replace("reference_point", "# reference_point"))
    assert main(["study", "without.toml", "--task", "gear.py:task"]) == 2
    assert "task 'gear' has no reference point" in said(capsys)
    forget_tasks()
    assert main(["study", "gears.toml", "--task", "gear.py:task", "--jobs", "1"]) == 0
    report = (here / "studies" / "gears" / "report.md").read_text()
    assert "gear" in report
    assert len(list((here / "studies" / "runs").glob("gear-*"))) == 2
    shutil.rmtree(here / "studies")


def test_a_study_goes_on_with_a_file_that_has_changed_if_it_may(here, monkeypatch):
    """Its processes are told so too."""
    given = []
    monkeypatch.setattr("moqd.cli.study.execute", lambda *arguments: given.append(arguments))
    monkeypatch.setattr("moqd.study.job._obey", lambda *_: None)
    monkeypatch.setattr("moqd.study.job.run", lambda *_, **__: None)
    (here / "gears.toml").write_text(STUDY)
    main(["study", "gears.toml", "--task", "gear.py:task"])
    forget_tasks()
    (here / "gear.py").write_text(GEAR + "# a remark\n")
    for may, ending in (([], Ending.FAILED), (["--accept-changes"], Ending.DONE)):
        main(["study", "studies/gears", "--task", "gear.py:task", *may])
        study, root, _, manner, *_ = given[-1]
        (here / "orders").write_text(_job(root, study.runs[0], replace(manner, cores=2), False).to_json())
        forget_tasks()
        folder_of(root, study.runs[0]).mkdir(exist_ok=True)
        with (here / "orders").open() as lines:
            assert do(lines) is ending
        forget_tasks()


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("gear.py", "give the file and the name"),
        ("nowhere.py:task", "there is no file 'nowhere.py'"),
        ("gear.py:tusk", "has no 'tusk'; the tasks in it: task"),
        ("gear.py:number", "is no task and makes none"),
        ("broken.py:task", "could not be loaded: ZeroDivisionError"),
        ("gear.py:refuse", "'refuse' of 'gear.py' raised RuntimeError: no licence"),
        ("taken.py:task", "as one of moqd's is; give it another name"),
    ],
)
def test_mistakes_are_one_sentence(here, spec, text):
    (here / "broken.py").write_text("1 / 0\n")
    (here / "taken.py").write_text(GEAR.replace('name="gear"', 'name="hopper-2"'))
    with pytest.raises(InputError, match=text):
        load_task(spec)


@pytest.mark.slow
def test_a_task_that_gives_nothing_is_mended_and_started_again(here, capsys):
    (here / "gear.py").write_text(GEAR.replace("return [module", "return [1.0, module"))
    assert main([*TRAIN, "--task", "gear.py:task"]) == 2
    assert "returned" in said(capsys)
    forget_tasks()
    (here / "gear.py").write_text(
        GEAR.replace("], [size]", "], [size + 1000], [1.0]").replace(
            "feature_names", 'constraint_names=["c"],\n    feature_names'
        )
    )
    assert main([*TRAIN, "--task", "gear.py:task"]) == 0
    told = said(capsys)
    assert told.count("the archive is empty: none of 48 evaluations satisfied all constraints; loosen") == 1
    forget_tasks()
    (here / "gear.py").write_text(GEAR.replace("], [size]", "], [size + 1000]"))
    assert main([*TRAIN[:-1], "other", "--task", "gear.py:task"]) == 0
    assert "solutions are outside of the bounds of 'size'" in said(capsys)
    assert main(["resume", "other", "--task", "gear.py:task", "arm-2"]) == 2
    forget_tasks()
    (here / "gear.py").write_text(GEAR.replace('name="gear"', 'name="cog"'))
    capsys.readouterr()
    assert main(["resume", "other", "--task", "gear.py:task", "--iterations", "9"]) == 2
    assert "is of the task 'gear', but --task gives 'cog'" in said(capsys)


def test_accepting_changes_needs_a_task(here, capsys):
    assert main(["report", "run", "--accept-changes"]) == 2
    assert "is about code of your own" in said(capsys)


def test_a_run_of_an_algorithm_from_a_file(here, capsys):
    """Its options are flags; it is resumed, and its folder can be looked at without its code."""
    (here / "mine.py").write_text(SKELETON)
    own = ["--algorithm", "mine.py:half_random"]
    assert main([*SEARCH, *own, "--ga-batch", "8", "--random-share", "0.25"]) == 0
    config = json.loads((here / "run" / "config.json").read_text())["algorithm"]
    assert (config["name"], config["ga_batch"], config["random_share"]) == ("half-random", 8, 0.25)
    assert len(config["fingerprint"]) == 16
    assert f"moqd resume run {' '.join(own)}" in (here / "run" / "report.md").read_text()
    assert main(["algorithms", *own]) == 0
    assert "half-random all half of the offspring are random" in said(capsys)
    assert main(["algorithms", own[1]]) == 0
    assert "--random-share NUMBER" in said(capsys)
    forget_tasks()

    assert main(["pick", "run", "--json"]) == 0
    assert main(["explore", "run"]) == 0
    assert main(["report", "run"]) == 0
    assert "moqd resume run --algorithm FILE.py:NAME" in (here / "run" / "report.md").read_text()
    capsys.readouterr()
    assert main(["resume", "run", "--iterations", "3"]) == 2
    assert "on the command line with --algorithm FILE.py:NAME" in said(capsys)
    assert main(["resume", "run", "--iterations", "3", *own]) == 0
    forget_tasks()
    (here / "mine.py").write_text(SKELETON + "# a remark\n")
    capsys.readouterr()
    assert main(["resume", "run", "--iterations", "4", *own]) == 2
    assert "has changed since the run was made" in said(capsys)
    forget_tasks()
    assert main(["resume", "run", "--iterations", "4", "--accept-changes", f"--algorithm={own[1]}"]) == 0
    assert moqd.load_run("run").metrics["iteration"][-1] == 4


def test_help_lists_the_options_of_an_algorithm_from_a_file(here, capsys):
    (here / "mine.py").write_text(SKELETON)
    with pytest.raises(SystemExit):
        main(["train", "arm-2", "--algorithm", "mine.py:half_random", "--help"])
    assert "--random-share" in (text := said(capsys))
    assert "--fingerprint" not in text
    assert "Hyper-parameters of half-random search." in text


def test_a_config_without_a_docstring_has_a_heading_in_the_help(here, capsys):
    (here / "mine.py").write_text(SKELETON.replace('    """Hyper-parameters of half-random search."""\n', ""))
    with pytest.raises(SystemExit):
        main(["train", "arm-2", "--algorithm", "mine.py:half_random", "--help"])
    assert "Options of half-random. --ga-batch INT" in (text := said(capsys))
    assert "HalfRandomConfig(" not in text


@pytest.mark.slow
def test_a_study_with_an_algorithm_from_a_file(here, capsys):
    (here / "mine.py").write_text(SKELETON)
    (here / "both.toml").write_text(
        'name = "both"\ntasks = ["arm-2"]\nalgorithms = ["half-random", "rarely"]\nseeds = 1\nevaluations = 32\n'
        "[algorithm.half-random]\nga_batch = 8\nnum_cells = 6\n"
        '[algorithm.rarely]\nbase = "half-random"\nga_batch = 8\nrandom_share = 0.1\nnum_cells = 6\n'
    )
    assert main(["study", "both.toml"]) == 2
    assert "algorithm.half-random: it has no base" in (text := said(capsys))
    assert text.count("for one of your own, add --algorithm FILE.py:NAME") == 2
    assert main(["study", "both.toml", "--algorithm", "mine.py:half_random", "--jobs", "1"]) == 0
    assert "half-random" in (here / "studies" / "both" / "report.md").read_text()
    assert len(list((here / "studies" / "runs").glob("arm-2-half-random-0-*"))) == 2
    forget_tasks()
    capsys.readouterr()
    assert main(["report", "studies/both"]) == 2
    assert "add --algorithm FILE.py:NAME" in said(capsys)


@pytest.mark.parametrize(
    ("spec", "change", "text"),
    [
        ("mine.py:half", ("", ""), "has no 'half'; the algorithms in it: half_random"),
        ("mine.py:HalfRandomState", ("", ""), "is not a function"),
        ("mine.py:half_random", ("config: HalfRandomConfig", "config"), "is not a function"),
        ("mine.py:half_random", ("@dataclass(frozen=True)", "@dataclass"), "is not a function"),
        ("mine.py:half_random", ("ga_batch: int = 256", "ga_batch: int"), "has a field without a default"),
        ("mine.py:half_random", ("ga_batch", "number"), "does not say how many offspring"),
        ("mine.py:mome", ("def half_random", "def mome"), "as one of moqd's is; give it another name"),
        ("mine.py", ("", ""), "give the file and the name of the algorithm"),
    ],
)
def test_what_is_no_algorithm_is_said_in_one_sentence(here, spec, change, text):
    (here / "mine.py").write_text(SKELETON.replace(*change) if change[0] else SKELETON)
    with pytest.raises(InputError, match=text):
        load_algorithm(spec)


def test_what_makes_no_algorithm_is_said_too(here):
    (here / "mine.py").write_text(SKELETON.replace("return Algorithm(name", "return (name"))
    name = load_algorithm("mine.py:half_random")
    with pytest.raises(InputError, match=r"return a moqd\.Algorithm"):
        moqd.make_algorithm(name, moqd.make_task("arm-2"))


COUNTING = SKELETON.replace("    archive: Archive\n", "    archive: Archive\n    scale: jax.Array\n")
COUNTING = COUNTING.replace("State(archive), offspring", "State(archive, jnp.asarray(1.0)), offspring")
COUNTING = COUNTING.replace(
    "return HalfRandomState(archive), Info(added, offspring.source, {})",
    "scale = state.scale * jnp.mean(added)\n"
    '        return HalfRandomState(archive, scale), Info(added, offspring.source, {"scale": scale})',
)
"""The skeleton with a number in its state, as one writes it: jnp.asarray(1.0) is weakly typed."""


@pytest.mark.parametrize("traceable", [True, False])
def test_a_python_number_in_a_state_is_not_compiled_for_twice(here, traceable):
    (here / "mine.py").write_text(COUNTING)
    task = moqd.FunctionTask(lambda x: [x[0], -x[0]], name="t", bounds=[(0, 1)], objective_names=["a", "b"])
    task = moqd.make_task("arm-2") if traceable else task
    algorithm = moqd.make_algorithm(load_algorithm("mine.py:half_random"), task, ga_batch=4, num_cells=1)
    loop = Loop(algorithm, task, seed=0)
    loop.start()
    for _ in range(2):
        loop.advance(loop.iteration + 1)
    assert (loop._fused if traceable else loop._tell)._cache_size() == 1


def test_a_number_that_is_not_finite_is_no_advice_about_rates_that_the_algorithm_does_not_have(here):
    (here / "mine.py").write_text(COUNTING.replace('{"scale": scale}', '{"scale": scale / 0}'))
    task = moqd.make_task("arm-2")
    algorithm = moqd.make_algorithm(load_algorithm("mine.py:half_random"), task, ga_batch=4, num_cells=1)
    with pytest.raises(moqd.DivergenceError, match=r"'half-random' diverged .* log only numbers that are finite"):
        moqd.run(algorithm, task, iterations=2)
