"""Studies are carried out: by processes, on this machine or a cluster, whatever dies on the way."""

import _thread
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from moqd.io.errors import InputError
from moqd.report import write_study_report
from moqd.runs.config import AlgorithmConfig, RunConfig, TaskConfig
from moqd.runs.folder import TIMING, load_run, write_archive
from moqd.runs.lock import RunLock, process_start
from moqd.runs.start import resume
from moqd.study.execute import STUDY, ExecutionOptions, StudyCallback, execute, stored_study, write_study
from moqd.study.job import Ending, Job, main, note_failure, outcome_of, write_outcome
from moqd.study.plan import PlannedRun, Variant, make_study
from moqd.study.status import (
    Standing,
    counts_of,
    folder_of,
    keep_records,
    results_of,
    seconds_left,
    standing_of,
    standings_of,
)
from moqd.study.summaries import record_of
from moqd.study.workers import LocalWorkers, RayWorkers, _on_a_node, carry_out, places
from tests.plain import PLAIN
from tests.quick import only

ROOT = Path(__file__).parent.parent.parent
OFTEN = ExecutionOptions(cores=1, checkpoint_minutes=0.0, timing=False)
"""One core each, and a checkpoint after every chunk."""


EARLY = range(30, 200)
"""Iterations at which a run has saved something, and has much to do."""


def study_of(seeds, iterations=600, name="tiny", **options):
    small = {"num_cells": 8, "front_length": 4}
    return make_study(
        name,
        tasks={"arm-2": {"num_joints": 3}},
        algorithms={
            "mome": Variant("mome", {"ga_batch": 8, **small, **PLAIN, **options}),
            "nsga2": Variant("nsga2", {"population": 8, **small, "variation": "iso-line"}),
        },
        seeds=seeds,
        iterations=iterations,
        log_every=10,
    )


def archives_of(root, study):
    return {
        run.key: hashlib.sha256((folder_of(root, run) / "archive.safetensors").read_bytes()).hexdigest()
        for run in study.runs
    }


def rows_of(root, run):
    """Of metrics.csv, without seconds, which differ."""
    lines = (folder_of(root, run) / "metrics.csv").read_text().splitlines()
    return [[cell for i, cell in enumerate(line.split(",")) if i != 2] for line in lines]


def log_of(root, run):
    return (folder_of(root, run) / "log.txt").read_text()


def process_of(root, run):
    return int(re.findall(r"process (\d+) begins", log_of(root, run))[-1])


def parent_of(process):
    return int(re.search(r"PPid:\t(\d+)", Path(f"/proc/{process}/status").read_text())[1])


class Seen(StudyCallback):
    def __init__(self):
        self.started, self.endings = [], {}

    def on_start(self, run):
        self.started.append(run.key)

    def on_end(self, run, ending):
        self.endings[run.key] = ending


@contextmanager
def meanwhile(act):
    """Tries to act all the time, until it could."""
    over = threading.Event()

    def watch():
        while not over.wait(0.02) and not act():
            pass

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, pytestconfig):
    """A study of 12 runs (2 in the quick tests), made on this machine without any fault, by two workers of one core."""
    seeds = range(1 if pytestconfig.option.markexpr == "not slow" else 6)
    root, study, seen = tmp_path_factory.mktemp("studies"), study_of(seeds), Seen()
    write_study(root, study)
    assert execute(study, root, LocalWorkers(2), OFTEN, seen)
    assert set(seen.endings.values()) == {Ending.DONE}
    return root, study


def test_all_runs_are_done_and_are_not_done_again(whole):
    root, study = whole
    number = len(study.runs)
    assert number in (2, 12)
    counts = counts_of(standings_of(root, study))
    assert counts == {"done": number, "running": 0, "stopped": 0, "failed": 0, "waiting": 0}
    before, seen = archives_of(root, study), Seen()
    assert len(set(before.values())) == number, "other seeds and algorithms, other archives"
    assert execute(study_of(study.seeds[:2], name="another"), root, LocalWorkers(2), OFTEN, seen)
    assert seen.started == [], "a study takes the runs of others"
    assert archives_of(root, study) == before


@pytest.mark.slow
def test_runs_that_their_time_ends_are_done_and_recorded(tmp_path):
    study = make_study("timed", tasks={"arm-2": {}}, algorithms={"mome": Variant("mome", {})}, seeds=[0], minutes=0.02)
    write_study(tmp_path, study)
    assert counts_of(standings_of(tmp_path, study))["waiting"] == 1
    assert execute(study, tmp_path, LocalWorkers(1), OFTEN, Seen())
    seen = Seen()
    assert execute(stored_study(tmp_path / "timed"), tmp_path, LocalWorkers(1), OFTEN, seen)
    assert seen.started == []
    results = results_of(tmp_path, study)
    (result,) = results.results
    assert result.metrics["seconds"][-1] >= 1.2
    assert result.config.iterations == result.metrics["iteration"][-1]
    keep_records(tmp_path, results)
    shutil.rmtree(folder_of(tmp_path, study.runs[0]))
    (recorded,) = results_of(tmp_path, study).results
    assert recorded.metrics["moqd_score"].tolist() == result.metrics["moqd_score"].tolist()


@pytest.mark.slow  # compiles a robot in a process of its own
def test_runs_that_their_steps_end_are_done_and_recorded(tmp_path):
    study = make_study(
        "stepped",
        tasks={"hopper-2": {"episode_length": 10}},
        algorithms={"mome": Variant("mome", {"ga_batch": 8, "num_cells": 4})},
        seeds=[0],
        env_steps=500,
    )
    write_study(tmp_path, study)
    assert execute(study, tmp_path, LocalWorkers(1), OFTEN, Seen())
    seen = Seen()
    assert execute(stored_study(tmp_path / "stepped"), tmp_path, LocalWorkers(1), OFTEN, seen)
    assert seen.started == []
    (standing,) = standings_of(tmp_path, study)
    assert (standing.state, standing.work) == ("done", (500.0, 500.0))
    (result,) = results_of(tmp_path, study).results
    steps = result.metrics["env_steps"]
    assert steps[-1] >= 500 > steps[-2]
    assert standing.env_steps == steps[-1]


def test_results_are_read_without_genotypes(whole):
    root, study = whole
    results = results_of(root, study)
    assert len(results.results) == len(study.runs)
    assert results.unfinished == ()
    assert set(results.tasks) == {"arm-2"}
    for result, run in zip(results.results, study.runs, strict=True):
        assert (result.task, result.algorithm, result.seed) == (run.task, run.algorithm, run.seed)
        assert result.archive.genotype == ()
        assert result.archive.feature.size == result.archive.preference.size == 0
        assert result.archive.fitness.shape == (8, 4, 2)
        assert result.metrics["iteration"][-1] == 600
        assert result.config.surroundings.machine["cores"] == 1
        assert result.config.surroundings.devices == ("cpu",)


@pytest.mark.slow  # a cluster of Ray, and twelve processes
def test_a_cluster_that_loses_a_node_gives_the_same_bits(whole, tmp_path):
    """In a process of its own, so that nothing of Ray stays in that of the tests."""
    local, study = whole
    command = [sys.executable, "-m", "tests.study.test_execute", str(tmp_path), str(len(study.seeds))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    killed = next(run for run in study.runs if run.key == done.stdout.split()[-1])
    assert counts_of(standings_of(tmp_path, study))["done"] == len(study.runs)
    assert archives_of(tmp_path, study) == archives_of(local, study)
    for run in study.runs:
        assert rows_of(tmp_path, run) == rows_of(local, run)
    assert re.search("goes on from iteration [1-9]", log_of(tmp_path, killed))


def on_a_cluster(root, seeds):
    """Makes the study on two nodes of one core, and kills that of a run which has saved something."""
    import ray
    from ray.cluster_utils import Cluster

    study = study_of(range(seeds))
    folder = write_study(root, study)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    raylets = {node.all_processes["raylet"][0].process.pid: node for node in nodes}
    killed = []

    def kill():
        """Once some other runs are done."""
        standings = standings_of(root, study)
        begun = [one.run for one in standings if one.state == "running" and one.iteration in EARLY]
        if not begun or sum(one.state == "done" for one in standings) < len(standings) // 3:
            return False
        worker = parent_of(process_of(root, begun[0]))
        cluster.remove_node(raylets[parent_of(worker)], allow_graceful=False)
        killed.append(begun[0].key)
        return True

    try:
        workers = RayWorkers(cluster.address, cores=1, gpus=0, marker=folder / STUDY)
        with meanwhile(kill):
            assert execute(study, root, workers, OFTEN, StudyCallback())
    finally:
        ray.shutdown()
        cluster.shutdown()
    print("killed the node of", *killed)


@pytest.mark.slow
def test_a_run_that_fails_does_not_take_the_study_down(whole, tmp_path):
    """Nor does one whose process is killed."""
    local, study = whole[0], study_of([0])
    write_study(tmp_path, study)
    odd, shot = study.runs
    in_the_way = folder_of(tmp_path, odd) / "something"
    in_the_way.mkdir(parents=True)

    def shoot():
        """As soon as it has saved something."""
        standing = standing_of(tmp_path, shot)
        if standing.state != "running" or standing.iteration not in EARLY:
            return False
        os.kill(process_of(tmp_path, shot), signal.SIGKILL)
        return True

    seen = Seen()
    with meanwhile(shoot):
        assert execute(study, tmp_path, LocalWorkers(2), OFTEN, seen)
    assert seen.endings == {run.key: Ending.FAILED if run == odd else Ending.DONE for run in study.runs}
    assert re.search("SIGKILL.*attempt 1 of 3", log_of(tmp_path, shot))
    assert re.search("goes on from iteration [1-9]", log_of(tmp_path, shot))
    standing = standing_of(tmp_path, odd)
    assert standing.state == "failed"
    assert "which is there already; give the name of a new folder" in standing.reason
    (unfinished,) = results_of(tmp_path, study).unfinished
    assert (unfinished.state, unfinished.reason) == ("failed", standing.reason)
    in_the_way.rmdir()
    again = Seen()
    assert execute(study, tmp_path, LocalWorkers(1), OFTEN, again)
    assert again.endings == {odd.key: Ending.DONE}, "what failed is tried again, and nothing else"
    expected = archives_of(local, whole[1])
    assert archives_of(tmp_path, study).items() <= expected.items()


def test_a_process_that_always_dies_is_given_up(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    job = Job(str(tmp_path / "runs" / "run"), study_of([0]).runs[0].config, cores=1)
    assert carry_out(job, lambda: False, {"PYTHONPATH": str(tmp_path)}) is Ending.FAILED
    outcome = outcome_of(Path(job.folder))
    assert outcome["state"] == "failed"
    assert outcome["reason"] == "its process died 3 times, the last time with signal SIGKILL (perhaps out of memory)"


FILE = """
name = "mine"
tasks = ["arm-2"]
algorithms = ["mome"]
seeds = 3
iterations = 100000
log_every = 10

[algorithm.mome]
ga_batch = 8
num_cells = 8
front_length = 4
"""


@pytest.mark.slow  # test_a_run_that_fails_does_not_take_the_study_down kills one process; this one all
def test_a_study_that_is_killed_or_stopped_is_continued(tmp_path):
    """From the command line: killed, stopped by Ctrl-C, looked at, and continued, with runs that would take minutes."""
    file = tmp_path / "mine.toml"
    file.write_text(FILE)

    def moqd(*arguments):
        command = [
            sys.executable,
            "-c",
            "import sys; from moqd.cli.main import main; sys.exit(main())",
            "study",
            *arguments,
        ]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def wait_for(holds):
        end = time.monotonic() + 300
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.1)

    def processes():
        logs = (tmp_path / "studies" / "runs").glob("*/log.txt")
        return [int(pid) for log in logs for pid in re.findall(r"process (\d+) begins", log.read_text())]

    def alive():
        return [pid for pid in processes() if process_start(pid) is not None]

    def standings():
        return standings_of(tmp_path / "studies", stored_study(tmp_path / "studies" / "mine"))

    def under_way():
        return (tmp_path / "studies" / "mine" / STUDY).exists() and [
            one for one in standings() if one.state == "running" and one.iteration >= 10
        ]

    study = moqd(str(file), "--jobs", "2", "--checkpoint-minutes", "0")
    wait_for(under_way)
    study.kill()
    study.communicate()
    wait_for(lambda: not alive())
    assert not counts_of(standings())["running"]
    study = moqd("studies/mine", "--jobs", "2", "--checkpoint-minutes", "0")
    wait_for(lambda: len(alive()) == 2 and len(under_way()) == 2)
    study.send_signal(signal.SIGINT)
    printed, _ = study.communicate(timeout=300)
    assert study.returncode == 130
    assert "stopped. Everything is saved; continue with: moqd study studies/mine" in printed
    assert not alive()
    counts = counts_of(standings())
    assert (counts["stopped"], counts["waiting"]) == (2, 1)
    status = moqd("studies/mine", "--status")
    printed, _ = status.communicate(timeout=300)
    assert status.returncode == 0
    assert "1 task x 1 algorithm x 3 seeds = 3 runs" in printed
    assert "2 stopped, 1 waiting" in printed
    assert "nothing is running; left: about" in printed


def planned(task, algorithm, seed=0, iterations=100):
    config = RunConfig(TaskConfig(task, {"name": task}), AlgorithmConfig(algorithm, {}), seed, iterations)
    return PlannedRun(algorithm, config)


def test_the_time_left_is_taken_from_what_is_most_alike():
    done = [Standing(planned("a", "x"), "done", 100, 200.0), Standing(planned("a", "y"), "done", 100, 50.0)]
    assert seconds_left([Standing(planned("a", "x"), "waiting")], 1) is None
    assert seconds_left([*done, Standing(planned("a", "x", 1), "waiting")], 1) == 200
    # The same algorithm on another task; then anything at all, the mean of 2 s and 0.5 s per iteration.
    assert seconds_left([*done, Standing(planned("b", "y"), "waiting")], 1) == 50
    assert seconds_left([*done, Standing(planned("b", "z"), "waiting")], 1) == 125
    # Half done: 1 s per iteration so far, and 2 s in the other run of its kind, so 1.5 s for 50 iterations.
    half = Standing(planned("a", "x", 1), "running", 50, 50.0)
    assert seconds_left([*done, half], 1) == 75
    # Four of 200 s for two workers; but never less than the longest.
    waiting = [Standing(planned("a", "x", seed), "waiting") for seed in range(1, 5)]
    assert seconds_left([*done, *waiting], 2) == 400
    assert seconds_left([*done, *waiting], 100) == 200
    assert seconds_left([*done, Standing(planned("a", "x", 1), "failed")], 1) == 0


def test_gpus_are_shared_evenly():
    assert places(2, []) == [{}, {}]
    assert places(2, ["0", "3"]) == [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "3"}]
    half = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.45"}
    assert places(2, ["0"]) == [{"CUDA_VISIBLE_DEVICES": "0", **half}] * 2


@pytest.mark.parametrize(
    "change",
    [
        {"runs": []},
        {"runs": 3},
        {"tasks": ["hopper-2"]},
        {"reference": "other"},
        {"runs": [{"task": "../../x", "algorithm": "mome", "seed": 0, "settings": {"task": {"name": "../../x"}}}]},
    ],
)
def test_a_stored_study_is_checked(change, tmp_path):
    study = study_of([0])
    folder = write_study(tmp_path, study)
    assert stored_study(folder) == study
    content = json.loads((folder / STUDY).read_text())
    (folder / STUDY).write_text(json.dumps(content | change))
    with pytest.raises(InputError, match="is damaged"):
        stored_study(folder)


def test_a_damaged_outcome_is_a_failure(tmp_path):
    run = study_of([0]).runs[0]
    folder = folder_of(tmp_path, run)
    folder.mkdir(parents=True)
    assert standing_of(tmp_path, run).state == "waiting"
    write_outcome(folder, "failed", "why")
    assert standing_of(tmp_path, run)[1:] == ("failed", 0, 0.0, 0, "why")
    (folder / "outcome.json").write_text("{")
    assert standing_of(tmp_path, run).state == "failed"


def finished(source, run, root):
    """A copy of a run that is done."""
    shutil.copytree(folder_of(source, run), folder_of(root, run))
    return folder_of(root, run)


@pytest.mark.parametrize(
    "harm", only(["extended", "another", "cut", "flipped"], ["extended", "another", "cut", "gone", "flipped"])
)
def test_what_is_done_is_looked_at(whole, tmp_path, harm):
    """A run that is not what was planned, or damaged, is in no number, and the study makes it again."""
    local, study = whole[0], study_of([0])
    run, other = study.runs
    folder = finished(local, run, tmp_path)
    finished(local, other, tmp_path)
    results = results_of(tmp_path, study)
    assert len(results.results) == 2
    keep_records(tmp_path, results)  # which do not hide that a run is damaged
    config = json.loads((folder / "config.json").read_text())
    table, archive = folder / "metrics.csv", folder / "archive.safetensors"
    if harm == "extended":
        (folder / "config.json").write_text(json.dumps(config | {"iterations": 700}))
    elif harm == "another":
        shutil.rmtree(folder)
        shutil.copytree(folder_of(local, other), folder)
    elif harm == "cut":
        table.write_text("".join(table.read_text().splitlines(keepends=True)[:3]))
    elif harm == "gone":
        archive.unlink()
    else:
        archive.write_bytes(archive.read_bytes()[:-1] + b"x")
    results = results_of(tmp_path, study)
    assert [result.algorithm for result in results.results] == ["nsga2"]
    (unfinished,) = results.unfinished
    assert (unfinished.task, unfinished.algorithm, unfinished.seed) == ("arm-2", "mome", 0)
    assert standing_of(tmp_path, run).state in ("stopped", "failed"), "so it is made again"
    if harm in ("gone", "flipped"):  # from the last checkpoint
        assert execute(study, tmp_path, LocalWorkers(1), OFTEN, StudyCallback())
        assert archives_of(tmp_path, study) == archives_of(local, study)


def tables_of(results, folder):
    write_study_report(results, folder)
    return {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}


@pytest.mark.slow
def test_a_study_goes_on_from_its_records_alone(whole, tmp_path):
    """On another machine, to which nothing else was taken: the same report, and only what is missing is made."""
    local, elsewhere = whole[0], tmp_path / "elsewhere"
    study, more = study_of([0, 1]), study_of([0, 1, 6])
    for run in study.runs:
        finished(local, run, tmp_path)
    timing = {"iterations": 1, "devices": ["cpu"], "cores": 1, "processor": "p", "seconds": {}, "parameters": {}}
    timing["seconds"] = {"iteration": [2.0], "rollout": [1.0], "addition": [0.5]}
    timing["parameters"] = {"policy": 3, "actors": 0, "critics": 0}
    (folder_of(tmp_path, study.runs[2]) / TIMING).write_text(json.dumps({"format": 1, **timing}))
    results = results_of(tmp_path, study)
    keep_records(tmp_path, results)
    (elsewhere / "runs").mkdir(parents=True)
    shutil.copytree(tmp_path / "records", elsewhere / "records")
    assert all(path.stat().st_size < 20_000 for path in (elsewhere / "records").iterdir())

    assert {one.state for one in standings_of(elsewhere, study)} == {"done"}
    assert tables_of(results_of(elsewhere, study), tmp_path / "b") == tables_of(results, tmp_path / "a")
    assert results_of(elsewhere, study).timings == results.timings
    assert len(results.timings) == 1
    seen = Seen()
    assert execute(more, elsewhere, LocalWorkers(2), OFTEN, seen)
    assert sorted(seen.started) == sorted(run.key for run in more.runs if run.seed == 6)
    assert len(results_of(elsewhere, more).results) == 6


@pytest.mark.parametrize("harm", ["flipped", "another", "empty", "link"])
def test_a_record_that_is_not_what_was_planned_is_in_no_number(whole, tmp_path, harm):
    local, study = whole[0], study_of([0])
    keep_records(tmp_path, results_of(local, study))
    record, other = (record_of(tmp_path, run) for run in study.runs)
    content = record.read_bytes()
    record.unlink()
    if harm == "link":
        record.symlink_to(other)
    else:
        broken = {"flipped": content[:-9] + b"x" + content[-8:], "another": other.read_bytes(), "empty": b""}
        record.write_bytes(broken[harm])
    results = results_of(tmp_path, study)
    assert [result.algorithm for result in results.results] == ["nsga2"]
    (unfinished,) = results.unfinished
    assert unfinished.state == "failed"
    standing = standing_of(tmp_path, study.runs[0])
    assert (standing.state, standing.reason) == ("failed", unfinished.reason), "so the study makes it again"
    assert record.name in standing.reason
    finished(local, study.runs[0], tmp_path)
    assert standing_of(tmp_path, study.runs[0]).state == "done"
    keep_records(tmp_path, results_of(tmp_path, study))
    assert record.read_bytes() == content, "and its record is written anew"
    assert not record.is_symlink()


def test_what_cannot_be_read_is_a_failure(tmp_path):
    study = study_of([0])
    run = study.runs[0]
    folder = folder_of(tmp_path, run)
    folder.mkdir(parents=True)
    (folder / ".lock").symlink_to(tmp_path)
    standing = standing_of(tmp_path, run)
    assert standing.state == "failed"
    assert "not a folder but a link" in standing.reason
    (folder / ".lock").unlink()
    (folder / "metrics.csv").write_text("iteration,evaluations,seconds\n1e999,1,nan\n")
    assert standing_of(tmp_path, run) == Standing(run, "waiting", 0, 0.0)


def test_a_job_is_not_logged_through_a_link(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    job = Job(str(tmp_path / "run"), study_of([0]).runs[0].config, cores=1)
    Path(job.folder).mkdir()
    (Path(job.folder) / "log.txt").symlink_to(elsewhere)
    workers = LocalWorkers(1)
    workers.submit("it", job)
    assert workers.ended(60) == [("it", Ending.FAILED)]
    assert elsewhere.read_text() == "mine"


def test_failing_to_time_a_run_does_not_undo_it(tmp_path):
    config = study_of([0]).runs[0].config
    for timing, state in ((True, "done"), (False, "done")):
        write_outcome(tmp_path, "done", "")
        note_failure(Job(str(tmp_path), config, cores=1, timing=timing), "why")
        assert outcome_of(tmp_path)["state"] == state
    write_outcome(tmp_path, "failed", "before")
    note_failure(Job(str(tmp_path), config, cores=1, timing=True), "why")
    assert outcome_of(tmp_path)["reason"] == "before"
    note_failure(Job(str(tmp_path), config, cores=1), "why")
    assert outcome_of(tmp_path)["reason"] == "why"


def test_a_ray_task_that_is_cancelled_waits_until_its_run_has_saved(monkeypatch, tmp_path):
    """Ray raises KeyboardInterrupt in the main thread; here this process does, twice."""

    def saves_slowly(job, should_stop, environment):
        _thread.interrupt_main()
        while not should_stop():
            time.sleep(0.01)
        _thread.interrupt_main()
        time.sleep(1)
        (tmp_path / "saved").touch()
        return Ending.STOPPED

    monkeypatch.setattr("moqd.study.workers.carry_out", saves_slowly)
    job = Job(str(tmp_path), study_of([0]).runs[0].config, cores=1).to_json()
    assert _on_a_node(job, str(tmp_path), {}) == (Ending.STOPPED, "")
    assert (tmp_path / "saved").exists()


def test_a_cluster_that_has_nothing_to_do_is_waited_for(monkeypatch):
    workers, slept = RayWorkers.__new__(RayWorkers), []
    workers._under_way = {}
    monkeypatch.setattr("moqd.study.workers.time.sleep", slept.append)
    assert workers.ended(0.5) == []
    assert slept == [0.5]


def test_a_folder_that_is_not_shared_is_said(tmp_path):
    job = Job(str(tmp_path), study_of([0]).runs[0].config, cores=1).to_json()
    ending, reason = _on_a_node(job, str(tmp_path / "not there"), {})
    assert ending == Ending.FAILED
    assert "put the study on storage that all machines of the cluster share (--out)" in reason


def test_an_error_of_the_display_does_not_leave_workers_behind(tmp_path):
    class Broken(StudyCallback):
        def on_look(self):
            raise OSError("stale file handle")

    class Told:
        stopped = False

        def submit(self, name, job):
            pass

        def ended(self, seconds):
            return []

        def stop(self):
            self.stopped = True

    told = Told()
    with pytest.raises(OSError, match="stale"):
        execute(study_of([0]), tmp_path, told, OFTEN, Broken())
    assert told.stopped


def test_a_run_that_another_process_is_at_is_left_to_it(tmp_path, monkeypatch):
    run = study_of([0]).runs[0]
    folder = folder_of(tmp_path, run)
    folder.mkdir(parents=True)
    orders = tmp_path / "orders"
    orders.write_text(Job(str(folder), run.config, cores=2).to_json() + "\n")
    monkeypatch.setattr("moqd.study.job._obey", lambda *_: None)
    with RunLock(folder), orders.open() as lines:
        assert main(lines) is Ending.BUSY
    assert standing_of(tmp_path, run).state == "waiting"


def test_what_another_study_makes_is_waited_for_and_not_made_again(whole, tmp_path):
    local, study = whole[0], study_of([0])
    run, other = study.runs
    folder_of(tmp_path, run).mkdir(parents=True)
    finished(local, other, tmp_path)

    class Busy(StudyCallback):
        told, endings = 0, ()

        def on_busy(self, planned):
            assert planned == run
            self.told += 1
            shutil.copytree(folder_of(local, run), folder_of(tmp_path, run), dirs_exist_ok=True)
            lock.release()  # the other has done it

        def on_end(self, planned, ending):
            self.endings += ((planned, ending),)

    class Find:
        """Says what a process would find, without any."""

        submitted = 0

        def submit(self, name, job):
            self.submitted += 1

        def ended(self, seconds):
            return [(run.key, Ending.BUSY)]

        def stop(self):
            raise AssertionError

    workers, watcher = Find(), Busy()
    with RunLock(folder_of(tmp_path, run)) as lock:
        assert execute(study, tmp_path, workers, OFTEN, watcher)
    assert (workers.submitted, watcher.told, watcher.endings) == (1, 1, ((run, Ending.DONE),))


def test_a_run_that_was_finished_by_hand_is_done(whole, tmp_path):
    study = study_of([0])
    run = study.runs[0]
    folder = finished(whole[0], run, tmp_path)
    (folder / "outcome.json").unlink()
    assert standing_of(tmp_path, run).state == "done"
    write_outcome(folder, "failed", "its process died")
    assert standing_of(tmp_path, run).state == "failed"
    resume(folder)
    assert standing_of(tmp_path, run).state == "done"
    shutil.rmtree(folder / "checkpoints")
    assert standing_of(tmp_path, run).state == "done", "the archive says that it is the last"
    write_archive(folder / "archive.safetensors", load_run(folder).archive, 590)
    assert standing_of(tmp_path, run).state == "stopped", "and here that it is not"
    write_archive(folder / "archive.safetensors", load_run(folder).archive)
    assert standing_of(tmp_path, run).state == "stopped", "one of an earlier version does not say"
    write_outcome(folder, "done", "")
    assert standing_of(tmp_path, run).state == "done", "but a study knew"


if __name__ == "__main__":
    on_a_cluster(Path(sys.argv[1]), int(sys.argv[2]))
