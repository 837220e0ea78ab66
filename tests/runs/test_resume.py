"""A run that was stopped, killed or run out of disk goes on to the end that it would have had."""

import csv
import fcntl
import hashlib
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import moqd
from moqd.cli.main import main
from moqd.io.errors import BusyError
from moqd.runs.folder import write_archive
from tests import naive
from tests.algorithms.test_algorithms import interrupted
from tests.plain import FLAGS
from tests.quick import only
from tests.runs.test_lock import place
from tests.runs.test_session import bowl, small

MOQD = [sys.executable, "-c", "import sys; from moqd.cli.main import main; sys.exit(main())"]
"""The command line of the code under test, whichever is installed."""


def digest(folder):
    return hashlib.sha256((folder / "archive.safetensors").read_bytes()).hexdigest()


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def newest(folder):
    return max((int(path.name) for path in (folder / "checkpoints").glob("[0-9]*")), default=-1)


def rows(folder):
    with (folder / "metrics.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


@pytest.mark.parametrize("traceable", only([False], [True, False]))
def test_an_interrupted_run_ends_the_same(traceable, tmp_path):
    """Also where a chunk ends between two log points, and with its snapshots."""
    task, arguments = bowl(traceable), {"iterations": 23, "log_every": 5, "snapshot_every": 4, "seed": 3}
    whole = moqd.run(small(task), task, out=tmp_path / "whole", **arguments)
    stopped = interrupted(small(task), task, tmp_path / "parts", at=(2, 17), **arguments)
    assert same(whole.archive, stopped.archive)
    assert digest(tmp_path / "whole") == digest(tmp_path / "parts")
    assert rows(tmp_path / "whole") == rows(tmp_path / "parts")
    assert (np.diff(stopped.metrics["seconds"]) > 0).all()
    assert [snapshot.iteration for snapshot in stopped.snapshots()] == [0, 4, 8, 12, 16, 20, 23]
    for one, other in zip(whole.snapshots(), stopped.snapshots(), strict=True):
        assert same(one, other)
    last = stopped.snapshots()[-1]
    assert np.array_equal(last.objectives, stopped.solutions().objectives)
    assert np.array_equal(last.features, stopped.solutions().features)
    assert np.array_equal(last.cell, stopped.solutions().cell)


def test_a_finished_run_is_extended(tmp_path):
    task = moqd.make_task("arm-2")
    long = moqd.run(small(task), task, iterations=30, out=tmp_path / "long")
    moqd.run(small(task), task, iterations=12, log_every=10, out=tmp_path / "short")
    again = moqd.resume(tmp_path / "short")
    assert again.metrics["iteration"].tolist() == [0, 10, 12]
    extended = moqd.resume(tmp_path / "short", iterations=30)
    assert same(long.archive, extended.archive)
    assert extended.metrics["iteration"].tolist() == [0, 10, 12, 20, 30]
    assert moqd.load_run(tmp_path / "short").config.iterations == 30
    with pytest.raises(moqd.InputError, match=r"iterations is 20, but the run in .* is at iteration 30 already"):
        moqd.resume(tmp_path / "short", iterations=20)


def test_without_a_checkpoint_a_run_starts_anew(tmp_path):
    task = moqd.make_task("arm-2")
    whole = moqd.run(small(task), task, iterations=12, out=tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    (tmp_path / "run" / "archive.safetensors").unlink()
    (tmp_path / "run" / "metrics.csv").write_text("half a li")
    assert same(whole.archive, moqd.resume(tmp_path / "run").archive)


def test_rows_beyond_the_checkpoint_are_dropped(tmp_path):
    task = moqd.make_task("arm-2")
    whole = interrupted(small(task), task, tmp_path / "run", at=(10,), iterations=30, log_every=10)
    newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    assert newest.name == "00000030"
    shutil.rmtree(newest)
    resumed = moqd.resume(tmp_path / "run")
    assert resumed.metrics["iteration"].tolist() == [0, 10, 20, 30]
    assert same(whole.archive, resumed.archive)
    assert len(rows(tmp_path / "run")) == 4


def test_other_surroundings_are_told(tmp_path, monkeypatch):
    task = moqd.make_task("arm-2")
    moqd.run(small(task), task, iterations=2, out=tmp_path / "run")
    monkeypatch.setattr("moqd.runs.config.processor", lambda: "another one")
    with pytest.warns(UserWarning, match="goes on with other machine than before, so its bits may differ"):
        moqd.resume(tmp_path / "run", iterations=3)


def test_callbacks_are_told_of_everything(tmp_path):
    told = []

    class Recorder(moqd.Callback):
        def on_start(self, config):
            told.append(("start", config.iterations))

        def on_progress(self, iteration):
            told.append(("progress", iteration))

        def on_log(self, row):
            told.append(("log", row["iteration"]))

        def on_checkpoint(self, path):
            assert sorted(entry.name for entry in path.iterdir())[0] == "manifest.json"
            told.append(("checkpoint", int(path.name)))

        def on_end(self, run):
            told.append(("end", len(run.metrics["iteration"])))

    task = moqd.make_task("arm-2")
    arguments = {"callbacks": [Recorder()], "log_every": 2, "checkpoint_minutes": 0}
    moqd.run(small(task), task, iterations=3, out=tmp_path / "run", **arguments)
    assert told == [
        *[("start", 3), ("log", 0), ("checkpoint", 0), ("progress", 2), ("log", 2), ("checkpoint", 2)],
        *[("progress", 3), ("log", 3), ("checkpoint", 3), ("end", 3)],
    ]
    told.clear()
    moqd.resume(tmp_path / "run", iterations=4, callbacks=[Recorder()])
    assert told == [
        *[("start", 4), ("progress", 3), ("progress", 4), ("log", 4), ("checkpoint", 4), ("end", 4)],
    ]


def test_a_checkpoint_on_demand(tmp_path):
    task, control = moqd.make_task("arm-2"), moqd.Control()

    class Ask(moqd.Callback):
        def on_progress(self, iteration):
            if iteration == 20:
                control.checkpoint()

    moqd.run(small(task), task, iterations=40, out=tmp_path / "run", control=control, callbacks=[Ask()])
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == ["00000020", "00000040"]


def test_a_run_in_use_is_not_resumed(tmp_path):
    task = moqd.make_task("arm-2")

    class Meddle(moqd.Callback):
        def on_progress(self, iteration):
            with pytest.raises(moqd.InputError, match=f"is being written by process {os.getpid()} on"):
                moqd.resume(tmp_path / "run")

    moqd.run(small(task), task, iterations=2, out=tmp_path / "run", callbacks=[Meddle()])


def test_what_resume_needs_is_asked_for(tmp_path):
    task = bowl()
    algorithm = small(task)._replace(name="my own")
    moqd.run(algorithm, task, iterations=2, log_every=10, out=tmp_path / "run")
    with pytest.raises(moqd.InputError, match="which is not one of moqd's; pass it as"):
        moqd.resume(tmp_path / "run")
    with pytest.raises(moqd.InputError, match="of the algorithm 'my own', which is not one of moqd's; pass it"):
        moqd.resume(tmp_path / "run", task=task)
    with pytest.raises(
        moqd.InputError, match="is of an algorithm whose name is 'my own', but that of the one given is 'mome'"
    ):
        moqd.resume(tmp_path / "run", task=task, algorithm=small(task))
    assert len(moqd.resume(tmp_path / "run", task=task, algorithm=algorithm, iterations=4).metrics["iteration"]) == 3


@pytest.mark.slow
def test_a_run_begins_with_the_archive_of_another(tmp_path):
    task = moqd.make_task("arm-2")
    first = moqd.run(small(task), task, iterations=30, out=tmp_path / "first")
    number = int(first.metrics["num_solutions"][-1])
    for source in (first, first.archive, tmp_path / "first"):
        seeded = moqd.run(small(task), task, iterations=0, seed=1, init_from=source)
        assert seeded.metrics["evaluations"].tolist() == [number + 16]
        # All that it began with is there, or something that dominates it.
        assert seeded.metrics["moqd_score"][0] >= first.metrics["moqd_score"][-1] - 1e-6
        assert seeded.metrics["added_random"][0] >= number
    arguments = {"iterations": 12, "seed": 1, "init_from": tmp_path / "first"}
    whole = moqd.run(small(task), task, **arguments)
    resumed = interrupted(small(task), task, tmp_path / "second", at=(4,), **arguments)
    assert same(whole.archive, resumed.archive)
    # Even where the first run is gone, and with it all that the second had saved.
    shutil.rmtree(tmp_path / "first")
    shutil.rmtree(tmp_path / "second" / "checkpoints")
    (tmp_path / "second" / "archive.safetensors").unlink()
    assert same(whole.archive, moqd.resume(tmp_path / "second").archive)
    other = moqd.make_task("arm-2", num_joints=3)
    with pytest.raises(
        moqd.InputError, match=r"init_from holds solutions of shapes .* give an archive of the same task"
    ):
        moqd.run(small(other), other, iterations=1, init_from=first)


@pytest.mark.slow  # tests/core/test_archive.py merges without a run
def test_merged_archives_hold_the_best_of_all():
    """As the naive archive does that is given everything at once; fronts stay within their length."""
    task = bowl()
    algorithm = moqd.make_algorithm("mome", task, ga_batch=16, num_cells=4, front_length=200)
    runs = [moqd.run(algorithm, task, iterations=20, seed=seed) for seed in (0, 1)]
    one, other = (run.archive for run in runs)
    merged = moqd.merge([one, other])
    centroid = np.asarray(one.centroid)
    found: list[list] = [[] for _ in centroid]
    for run in runs:
        solutions = run.solutions()
        for objectives, feature in zip(solutions.objectives * task.direction, solutions.features, strict=True):
            found[np.argmin(np.sum((centroid - feature) ** 2, axis=1))].append(tuple(objectives.tolist()))
    valid, fitness = np.asarray(merged.valid), np.asarray(merged.fitness)
    for cell, newcomers in enumerate(found):
        assert sorted(map(tuple, fitness[cell][valid[cell]].tolist())) == sorted(naive.add([], newcomers, 200))
    assert same(moqd.merge([merged]), moqd.merge([merged, one, other]))
    with pytest.raises(moqd.InputError, match="archives is empty"):
        moqd.merge([])
    arm = moqd.make_task("arm-2")
    with pytest.raises(moqd.InputError, match="the archives are of different problems"):
        moqd.merge([one, moqd.run(small(arm), arm, iterations=0).archive])


def test_export_is_a_table_of_solutions(tmp_path, capsys):
    task = moqd.make_task("arm-2")
    run = moqd.run(small(task), task, iterations=5, out=tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--csv"]) == 0
    with (tmp_path / "run" / "solutions.csv").open(newline="") as file:
        header, *table = list(csv.reader(file))
    # MOME makes no solution for a preference, so there are none to show.
    assert header == ["cell", "hand x", "hand y", "bending", "torque", *task.parameter_names]
    solutions = run.solutions()
    assert np.array_equal(np.array([row[0] for row in table], int), solutions.cell)
    values = np.array([row[1:5] for row in table], np.float32)
    assert np.array_equal(values, np.hstack([solutions.features, solutions.objectives]))
    np.testing.assert_array_equal(
        np.array([row[5:] for row in table], float), np.stack([task.parameters(row) for row in solutions.genotype])
    )
    assert (solutions.objectives > 0).all()  # in the user's direction: both are minimised
    assert main(["export", str(tmp_path / "run"), "--csv", "--out", str(tmp_path / "x.csv")]) == 0
    assert (tmp_path / "x.csv").read_bytes() == (tmp_path / "run" / "solutions.csv").read_bytes()


@pytest.mark.slow
def test_the_same_run_from_its_config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("moqd.report.write_report", lambda run, *_: run.path / "report.md")  # which takes seconds
    common = ["--num-cells", "9", "--ga-batch", "8", "--iterations", "4"]
    assert main(["train", "arm-2", "--num-joints", "5", "--seed", "3", *common, "--out", "first"]) == 0
    assert main(["train", "--config", "first/config.json", "--out", "second"]) == 0
    assert digest(Path("first")) == digest(Path("second"))
    configs = [json.loads(Path(name, "config.json").read_text()) for name in ("first", "second")]
    assert configs[0] == configs[1]
    # Flags go before it.
    other = ["--algorithm", "nsga2", "--population", "8", "--out", "third"]
    assert main(["train", "--config", "first/config.json", *other]) == 0
    assert moqd.load_run("third").config.algorithm.options["population"] == 8
    assert main(["resume", "third", "--iterations", "5"]) == 0
    assert moqd.load_run("third").metrics["iteration"][-1] == 5


def test_loaded_archives_can_be_evaluated_again(tmp_path):
    task = moqd.make_task("arm-2")
    moqd.run(small(task), task, iterations=5, out=tmp_path / "run")
    loaded = moqd.load_run(tmp_path / "run")
    solutions = loaded.solutions()
    evaluation = loaded.task.evaluate(jax.random.key(0), jax.numpy.asarray(solutions.genotype))
    np.testing.assert_allclose(np.asarray(evaluation.fitness) * task.direction, solutions.objectives, rtol=1e-5)


def start(arguments, folder, **options):
    """A process of the command line, once it has shown its first row."""
    process = subprocess.Popen(
        [*MOQD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "iteration 0/" in line:
            return process, lines
    raise AssertionError("".join(lines))


ENDLESS = ["train", "arm-2", "--iterations", "10000000", "--ga-batch", "16", "--num-cells", "8", "--devices", "1"]
ENDLESS += FLAGS


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_a_signal_stops_a_run_and_saves_it(number, tmp_path):
    folder = tmp_path / "run"
    process, _ = start([*ENDLESS, "--out", str(folder)], folder)
    time.sleep(0.5)
    process.send_signal(number)
    begin = time.monotonic()
    printed, _ = process.communicate(timeout=60)
    assert time.monotonic() - begin < 10
    assert process.returncode == 128 + number
    assert f"Everything is saved; continue with: moqd resume {folder}" in printed
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    assert int(newest.name) > 0
    loaded = moqd.load_run(folder)
    assert loaded.metrics["iteration"][-1] == int(newest.name)


@pytest.mark.slow
def test_a_second_signal_stops_at_once(tmp_path):
    """Even while a chunk would go on for hours."""
    folder = tmp_path / "run"
    arguments = [*ENDLESS, "--log-every", "10000000", "--out", str(folder)]
    process, _ = start(arguments, folder)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=10)
    assert process.returncode == 128 + signal.SIGINT
    assert "stopping when this chunk is done and saved" in printed
    assert f"continue with: moqd resume {folder}" in printed
    assert (folder / "config.json").exists()


@pytest.mark.slow  # tests/runs/test_checkpoint.py has a disk that is full in this process
def test_a_full_disk_stops_a_run_with_a_sentence(tmp_path):
    """As far as a process can make its disk full: it may write no file of more than 40 kB."""
    task, folder = moqd.make_task("arm-2"), tmp_path / "run"
    moqd.run(moqd.make_algorithm("mome", task, ga_batch=16), task, iterations=1, out=folder)
    before = sorted((folder / "checkpoints").iterdir())
    arguments = ["resume", str(folder), "--iterations", "4000"]
    limited = ["bash", "-c", 'ulimit -f 40; exec "$@"', "--", *MOQD, *arguments]
    result = subprocess.run(limited, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1, result.stderr
    sentence = " ".join(result.stderr.split("moqd:")[1].split())
    assert "could not be written (File too large)." in sentence
    assert f"continue from the checkpoint of iteration 1, which is whole, with: moqd resume {folder}" in sentence
    assert sorted((folder / "checkpoints").iterdir()) == before
    assert moqd.resume(folder, iterations=3).metrics["iteration"][-1] == 3


@pytest.mark.slow
def test_a_blocked_pipe_does_not_keep_signals_from_being_heard(tmp_path):
    """As with `| less`: nobody reads what the run says, until it can say no more."""
    folder = tmp_path / "run"
    arguments = [*ENDLESS, "--log-every", "1", "--checkpoint-minutes", "0", "--out", str(folder)]
    with subprocess.Popen([*MOQD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        sizes = [-2, -1]
        while sizes[-1] < 0 or sizes[-1] != sizes[-2]:  # it has begun, and does not get any further
            time.sleep(2)
            sizes.append(newest(folder))
            assert len(sizes) < 30
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 128 + signal.SIGINT


def test_a_stop_between_two_looks_is_saved_too(tmp_path):
    class Late(moqd.Control):
        """Asked to stop after the run has looked the second time."""

        looks = 0

        @property
        def stopping(self):
            self.looks += 1
            return self.looks > 2

    task = moqd.make_task("arm-2")
    with pytest.raises(moqd.StoppedError) as stopped:
        moqd.run(small(task), task, iterations=90, log_every=10, out=tmp_path / "run", control=Late())
    assert newest(tmp_path / "run") == 20
    assert same(stopped.value.archive, moqd.load_run(tmp_path / "run").archive)
    assert same(stopped.value.run.archive, stopped.value.archive)
    assert stopped.value.run.metrics["iteration"].tolist() == [0, 10, 20]


@pytest.mark.slow
def test_an_error_in_a_callback_changes_nothing(tmp_path):
    task = moqd.make_task("arm-2")

    class Clumsy(moqd.Callback):
        def on_log(self, row):
            if row["iteration"] == 20:
                raise KeyboardInterrupt

    moqd.run(small(task), task, iterations=40, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        moqd.run(small(task), task, iterations=40, out=tmp_path / "run", callbacks=[Clumsy()])
    assert newest(tmp_path / "run") == 20
    moqd.resume(tmp_path / "run")
    assert rows(tmp_path / "run") == rows(tmp_path / "whole")


def test_seeds_that_do_not_fill_a_batch_do_not_count_as_failed():
    task = moqd.make_task("arm-2")
    some = (moqd.run(small(task), task, iterations=number) for number in range(9, 0, -1))
    first = next(run for run in some if run.metrics["num_solutions"][-1] % 16)
    assert moqd.run(small(task), task, iterations=0, init_from=first).metrics["failed_evaluations"].tolist() == [0]


def test_on_the_host_no_seed_is_evaluated_to_fill_a_batch():
    calls = []

    def function(x):
        calls.append(x)
        return [x[0], -x[0]], [x[1], x[2]]

    task = bowl(False, minimised=())
    first = moqd.run(small(task), task, iterations=0)
    number = int(first.metrics["num_solutions"][-1])
    assert number % 16
    again = replace(task, function=function)
    seeded = moqd.run(small(again), again, iterations=0, init_from=first)
    assert len(calls) == seeded.metrics["evaluations"][0] == number + 16
    assert seeded.metrics["failed_evaluations"].tolist() == [0]


def test_what_a_kill_before_the_config_leaves_is_in_nobodys_way(tmp_path):
    folder = tmp_path / "run"
    (folder / ".lock").mkdir(parents=True)
    (folder / "seeds.safetensors").write_bytes(b"half")
    (folder / "timing.json").write_text("{}")  # of a study, which times a run that only its record speaks of
    (folder / ".config.json.7.tmp").write_bytes(b"half")
    task = moqd.make_task("arm-2")
    moqd.run(small(task), task, iterations=1, out=folder)
    moqd.resume(folder)
    assert not (folder / ".config.json.7.tmp").exists()


def test_another_task_of_the_same_names_is_refused(tmp_path):
    task = bowl()
    moqd.run(small(task), task, iterations=1, out=tmp_path / "run")
    with pytest.raises(
        moqd.InputError, match=r"of a task with minimised \['near', 'far'\], but the task 'bowl' has \[\]"
    ):
        moqd.load_run(tmp_path / "run", task=bowl(minimised=()))
    with pytest.raises(moqd.InputError, match="of a task with feature bounds"):
        moqd.resume(tmp_path / "run", task=bowl(feature_bounds=[(0.0, 2.0)] * 2))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    task = moqd.make_task("arm-2")
    moqd.run(small(task), task, iterations=1, out=folder)
    return folder


@pytest.mark.parametrize("iterations", [None, 3])
def test_a_finished_run_without_checkpoints_is_not_started_over(finished, iterations, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    shutil.rmtree(folder / "checkpoints")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(moqd.InputError, match="is finished and has no checkpoint, so it cannot be continued; run it"):
        moqd.resume(folder, iterations=iterations)
    write_archive(folder / "archive.safetensors", moqd.load_run(folder).archive)  # as earlier versions did
    with pytest.raises(moqd.InputError, match="is finished and has no checkpoint"):
        moqd.resume(folder, iterations=iterations)
    before.pop("archive.safetensors")
    assert before.items() <= {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}.items()


def test_what_was_logged_but_not_saved_is_not_of_the_run(finished, tmp_path):
    """As after a kill, and while a run goes on: metrics.csv is ahead of the archive."""
    folder = shutil.copytree(finished, tmp_path / "run")
    table = folder / "metrics.csv"
    last = table.read_text().splitlines()[-1]
    with table.open("a") as file:
        file.write(f"2{last[1:]}\r\n")
    assert moqd.load_run(folder).metrics["iteration"].tolist() == [0, 1]


def test_who_was_taken_over_leaves_the_config_alone(tmp_path):
    class TakenOver(moqd.Callback):
        def on_start(self, config):
            place(tmp_path / "run", number=2, host="elsewhere", machine="elsewhere 1")
            raise moqd.InputError("something is wrong")

    task = moqd.make_task("arm-2")
    with pytest.raises(BusyError, match="was taken over by another process"):
        moqd.run(small(task), task, iterations=1, out=tmp_path / "run", callbacks=[TakenOver()])
    assert (tmp_path / "run" / "config.json").is_file()


@pytest.mark.parametrize(
    "change",
    [
        {"batch": None},
        {"snapshot_every": "x"},
        {"seed": 10**30},
        {"seed": -1},
        {"seed": True},
        {"log_every": 0},
        {"checkpoint_minutes": "x"},
        {"iterations": 1.5},
        {"task": {"name": "arm-2", "options": {}}},
        {"task": {"name": "arm-2", "options": {"name": ["arm-2"]}}},
        {"task": {"name": "arm-2", "options": {"name": "arm-9"}}},
        {"task": {"name": "arm-2", "options": {"name": "arm-2", "num_joints": "x"}}},
        {"task": {"name": "arm-2", "options": {"name": "arm-2", "os": 1}}},
        {"task": {"name": "arm-2", "options": [1]}},
        {"task": 7},
        {"algorithm": {"name": ["mome"]}},
        {"algorithm": {"name": "mome", "task": 1}},
        {"algorithm": {"name": "mome", "ga_batch": "x"}},
        {"reference_point": "x"},
    ],
)
@pytest.mark.parametrize("command", [["resume"], ["report"], ["train", "--out", "new", "--config"]])
def test_a_config_with_anything_wrong_in_it_is_one_sentence(finished, change, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    if command == ["report"] and "algorithm" in change and "name" in change["algorithm"]:
        return  # which reads the name alone
    assert main([*command, "run/config.json" if command[0] == "train" else "run"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("content", ["", "iteration\r\n1\r\n", "a,b\r\nx,y\r\n", "a\r\n" + "9" * 200_000 + "\r\n"])
def test_broken_metrics_are_one_sentence_or_none(finished, content, tmp_path, capsys):
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "metrics.csv").write_bytes(content.encode())
    code = main(["report", str(tmp_path / "run")])
    assert (code, len(capsys.readouterr().err.strip().splitlines())) == ((2, 1) if content else (0, 0))


def test_names_are_shown_as_they_are(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("moqd.report.write_report", lambda run, *_: run.path / "report.md")
    shutil.copytree(finished, "a [b]")
    assert main(["report", "a [b]"]) == 0
    assert main(["export", "a [b]", "--csv", "--out", "[x].csv"]) == 0
    assert main(["train", "arm-2", "--out", "a [b]"]) == 2
    told = capsys.readouterr()
    assert "written to a [b]/report.md" in told.out
    assert "written to [x].csv" in told.out
    assert "continue that with: moqd resume 'a [b]', or" in told.err


@pytest.mark.parametrize("out", [".", "", "nowhere/x.csv", "run/config.json/x.csv", "x" * 300, "run"])
def test_bad_places_for_an_export_are_one_sentence(finished, out, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, "run")
    assert main(["export", "run", "--csv", "--out", out]) in (1, 2)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_closed_pipe_does_not_end_a_run(tmp_path):
    folder = tmp_path / "run"
    arguments = ["train", "arm-2", "--iterations", "300", "--ga-batch", "16", "--num-cells", "8", "--devices", "1"]
    command = shlex.join([*MOQD, *arguments, "--out", str(folder)])
    subprocess.run(["bash", "-c", f"{command} 2>&1 | head -1"], check=True, stdout=subprocess.DEVNULL)
    assert moqd.load_run(folder).metrics["iteration"][-1] == 300


@pytest.mark.slow
def test_a_seeded_run_from_its_config_in_a_process_of_its_own(finished, tmp_path):
    """Where nothing may start JAX before its devices are set."""
    common = ["--iterations", "2", "--ga-batch", "16", "--num-cells", "8"]
    for arguments in (
        ["arm-2", "--init-from", str(finished), *common],
        ["--config", str(tmp_path / "0" / "config.json")],
    ):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        subprocess.run([*MOQD, "train", *arguments, "--out", str(folder)], check=True, stdout=subprocess.DEVNULL)
    assert digest(tmp_path / "0") == digest(tmp_path / "1")


TINY = {
    "mome-p2c": ["--ga-batch", "8", "--pg-batch", "4", "--actor-batch", "4"],
    "mome-pgx": ["--ga-batch", "8", "--pg-batch", "8"],
    "pga-me": ["--ga-batch", "8", "--pg-batch", "8", "--elite-cells", "30"],
    "mome": ["--ga-batch", "16"],
    "nsga2": ["--population", "16"],
    "spea2": ["--population", "16"],
}
LEARN = ["--critic-steps", "5", "--pg-steps", "5", "--minibatch", "32", "--buffer-size", "2000"]
ITERATIONS = {"mome-p2c": "400", "mome-pgx": "400", "pga-me": "400", "mome": "600", "nsga2": "600", "spea2": "600"}
KILLS = {"mome-p2c": 10, "mome-pgx": 6, "pga-me": 6, "mome": 6, "nsga2": 6, "spea2": 6}


def wait_for(process, condition):
    while process.poll() is None and not condition():
        time.sleep(0.0005)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", TINY)
def test_a_run_that_is_killed_again_and_again_ends_the_same(algorithm, tmp_path):
    """40 SIGKILLs in all at random moments, every third as soon as a checkpoint is being written."""
    lot = random.Random(algorithm)
    arguments = ["train", "hopper-2", "--algorithm", algorithm, *TINY[algorithm], "--episode-length", "40"]
    arguments += [*(LEARN if "pg" in algorithm or "p2c" in algorithm else []), "--hidden-sizes", "8", "8"]
    arguments += [
        "--iterations",
        ITERATIONS[algorithm],
        "--num-cells",
        "16",
        "--front-length",
        "8",
        "--log-every",
        "3",
        "--checkpoint-minutes",
        "0",
    ]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    quiet = {"stdout": subprocess.DEVNULL, "env": environment}

    subprocess.run([*MOQD, *arguments, "--out", str(tmp_path / "whole")], check=True, **quiet)
    folder, command, saved = tmp_path / "killed", [*arguments, "--out", str(tmp_path / "killed")], [-1]
    for kill in range(KILLS[algorithm]):
        process = subprocess.Popen([*MOQD, *command], **quiet)
        if kill % 3 == 0:  # anywhere, at times before it has done anything
            time.sleep(lot.uniform(0.5, 12))
        else:
            wait_for(process, lambda: newest(folder) > saved[-1])
            time.sleep(lot.uniform(0, 1))
        if kill % 3 == 2:
            wait_for(process, lambda: any((folder / "checkpoints").glob(".*.tmp")))
        assert process.poll() is None, "it was done before it could be killed: give it more iterations"
        process.kill()
        process.wait()
        if (folder / "config.json").exists():
            command = ["resume", str(folder)]
        saved.append(newest(folder))
    subprocess.run([*MOQD, *command], check=True, **quiet)
    assert saved == sorted(saved)  # nothing that was saved was lost
    assert digest(folder) == digest(tmp_path / "whole")
    assert rows(folder) == rows(tmp_path / "whole")
    assert not [path for path in folder.rglob(".*") if path.name.endswith((".tmp", ".old"))]
