"""Tasks from a file, on the command line: run, resumed, looked at, and in a study."""

import json
import shutil
from dataclasses import replace

import pytest

import moqd
from moqd.cli.main import main
from moqd.io.errors import AGAIN, InputError
from moqd.study.execute import _job
from moqd.study.job import Ending
from moqd.study.job import main as do
from moqd.study.status import folder_of
from moqd.tasks import TASKS
from moqd.tasks.user_code import OWN, SPECS, load_own

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
    assert "on the command line with --task FILE.py:NAME" in said(capsys)
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
    monkeypatch.setattr("moqd.cli.study.conduct", lambda *arguments: given.append(arguments))
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
        load_own(spec)


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
    assert "none of 48 evaluations kept to all constraints" in said(capsys)
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
    assert "is about a task of your own" in said(capsys)
