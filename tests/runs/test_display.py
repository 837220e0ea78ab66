import io
import re
from dataclasses import replace
from pathlib import Path
from threading import Thread
from unittest.mock import Mock

import jax
import pytest
from rich.console import Console

import moqd
from moqd.runs.compilation import COMPILE, HIT
from moqd.runs.config import MOST_ITERATIONS, AlgorithmConfig, RunConfig, TaskConfig
from moqd.runs.display import Display
from moqd.runs.folder import Run

CONFIG = RunConfig(TaskConfig("hop[bold]per", None), AlgorithmConfig("mome-p2c", {}), 0, 60, batch=64)
CURSOR_HIDDEN, CURSOR_SHOWN = "\x1b[?25l", "\x1b[?25h"


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("moqd.runs.display.monotonic", lambda: 1000.0)


def console(*, terminal: bool, width: int = 100) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width)


def printed(display: Display) -> list[str]:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", display._console.file.getvalue()).splitlines()


def picture(display: Display, **options) -> str:
    """The live display as plain text."""
    sheet = Console(file=io.StringIO(), width=100, **options)
    sheet.print(display.picture())
    return sheet.file.getvalue()


def row_at(iteration: int, seconds: float, **columns: float) -> dict[str, float]:
    row = {"iteration": iteration, "evaluations": 64 * (iteration + 1), "seconds": seconds, "moqd_score": 2.5}
    row |= {"moqd_sparsity_score": 0.5, "global_hypervolume": 7.0, "global_sparsity": 0.25, "max_sum_scores": 3.0}
    row |= {"coverage": 0.5, "added_random": 0.0, "added_ga": 0.0, "added_pg": 0.0, "added_actor": 0.0}
    return row | columns


def compile_for(seconds: float, *, until: float, cached: bool = False) -> None:
    """What JAX tells its listeners of a program."""
    if cached:
        jax.monitoring.record_event(HIT)
    jax.monitoring.record_event_time_span(COMPILE, until - seconds, until)


def test_plain_lines():
    """64 evaluations of 250 steps in every iteration, 5 iterations a second."""
    with Display(console(terminal=False)) as display:
        display.on_start(CONFIG)
        display.on_log(row_at(0, 10.0, added_random=64.0, env_steps=16000.0))
        display.on_progress(10)
        display.on_log(row_at(10, 12.0, added_ga=30.0, added_pg=10.0, env_steps=176000.0))
        display.on_checkpoint(Path("checkpoint"))
        display.on_log(row_at(12, 12.4, added_ga=7.0, env_steps=208000.0))  # too soon for another line
        display.on_log(row_at(20, 14.0, added_ga=13.0, coverage=0.625, env_steps=336000.0))
        display.on_log(row_at(60, 14.5, env_steps=976000.0))
    assert printed(display) == [
        "mome-p2c on hop[bold]per: 60 iterations of 64 evaluations",
        "compiling ... (longer the first time, later from the cache)",
        "iteration 0/60  10.0 s  moqd_score 2.5  global_hypervolume 7  coverage 50.0%  added: random 64 (100%)",
        "iteration 10/60  12.0 s  320 ev/s  80,000 steps/s  0:00:10 left  moqd_score 2.5  global_hypervolume 7  "
        "coverage 50.0%  added: ga 30 (75%), pg 10 (25%)",
        "checkpoint at iteration 10",
        "iteration 20/60  14.0 s  320 ev/s  80,000 steps/s  0:00:08 left  moqd_score 2.5  global_hypervolume 7  "
        "coverage 62.5%  added: ga 20 (100%), pg 0 (0%)",
        "iteration 60/60  14.5 s  853 ev/s  213,333 steps/s  moqd_score 2.5  global_hypervolume 7  coverage 50.0%  "
        "added: ga 0 (0%), pg 0 (0%)",
    ]


def test_without_environment_no_steps_and_without_cache_no_hint(monkeypatch):
    monkeypatch.setattr("moqd.runs.display.uses_cache", lambda: False)
    with Display(console(terminal=False)) as display:
        display.on_start(CONFIG)
        display.on_log(row_at(0, 10.0))
        display.on_log(row_at(10, 12.0))
    lines = printed(display)
    assert lines[1] == "compiling ..."
    assert "320 ev/s  0:00:10 left" in lines[-1]
    assert "steps" not in "".join(lines)


def test_what_was_compiled_is_said_and_does_not_count_as_work():
    """Of the 10 seconds between the first two rows 8 were compiling, so 10 iterations took 2."""
    with Display(console(terminal=False)) as display:
        display.on_start(CONFIG)
        compile_for(12.3, until=100.0)
        compile_for(0.0, until=100.0, cached=True)
        display.on_log(row_at(0, 13.0))
        compile_for(8.0, until=120.0)
        display.on_log(row_at(10, 23.0))
        compile_for(0.9, until=130.0)
        display.on_log(row_at(20, 25.9))
        compile_for(0.2, until=140.0, cached=True)
        display.on_log(row_at(30, 28.1))
    told = [line for line in printed(display) if line.startswith("compiled")]
    assert told == [
        "compiled in 12.3 s (1 of 2 programs from the cache)",
        "compiled for another 8.0 s up to iteration 10 (0 of 1 programs from the cache)",
        "compiled for another 1.1 s up to iteration 30 (1 of 2 programs from the cache)",
    ]
    lines = [line for line in printed(display) if "ev/s" in line]
    assert ["320 ev/s" in line for line in lines] == [True, True, True]
    assert "0:00:10 left" in lines[0]


def test_a_resumed_run_is_as_fast_as_it_is_now():
    with Display(console(terminal=False)) as display:
        display.on_start(replace(CONFIG, iterations=600))
        display.on_progress(500)
        display.on_log(row_at(510, 9000.0, env_steps=5e6))
        assert "ev/s" not in printed(display)[-1]
        display.on_log(row_at(520, 9002.0, env_steps=5.1e6))
    assert "iteration 520/600  9002.0 s  320 ev/s  50,000 steps/s  0:00:16 left" in printed(display)[-1]


def test_it_is_said_once_that_a_run_is_resumed_and_no_more_than_is_known():
    """That of ten minutes seven and a half are over; how many iterations there will be, nobody knows."""
    config = replace(CONFIG, iterations=MOST_ITERATIONS, minutes=10.0, patience=50)
    with Display(console(terminal=False)) as display:
        display.on_start(config)
        for iteration in (500, 501, 502):
            display.on_progress(iteration)
        display.on_log(row_at(510, 450.0))
        display.on_end(Mock(spec=Run, ended="ended at iteration 520."))
        assert "compiling" not in picture(display)
    lines = printed(display)
    assert lines[0] == "mome-p2c on hop[bold]per: iterations of 64 evaluations, 10 minutes, patience of 50 iterations"
    assert lines[2] == "goes on from iteration 500"
    assert lines[3].startswith("iteration 510  450.0 s  0:02:30 left  moqd_score")
    assert lines[4:] == ["ended at iteration 520."]


def test_only_the_last_minute_counts():
    with Display(console(terminal=False)) as display:
        display.on_start(replace(CONFIG, iterations=2000))
        display.on_log(row_at(0, 0.0))
        display.on_log(row_at(10, 100.0))
        assert "6.4 ev/s" in printed(display)[-1]
        display.on_log(row_at(20, 150.0))
        display.on_log(row_at(1000, 200.0))  # the points at 150 and 200 are left
        assert "0:00:51 left" in printed(display)[-1]  # 1000 iterations at 980 in 50 s
        display.on_log(row_at(1010, 300.0))  # the point at 200 is too old, but there is no other
        assert "6.4 ev/s" in printed(display)[-1]


def test_live_display():
    with Display(console(terminal=True)) as display:
        assert picture(display) == ""
        display.on_start(CONFIG)
        assert "compiling, 0:00:00" in picture(display)
        compile_for(12.3, until=100.0)
        display.on_log(row_at(0, 13.0, added_random=64.0, env_steps=16000.0))
        assert "compiling" not in picture(display)
        assert re.search(r"random +64 +100%", picture(display))
        better = {"moqd_score": 200000.5, "moqd_sparsity_score": 0.4, "coverage": 0.55, "max_sum_scores": float("nan")}
        display.on_log(row_at(10, 15.0, added_ga=30.0, added_pg=10.0, env_steps=176000.0, **better))
        display.on_checkpoint(Path("checkpoint"))
        display.on_progress(20)
        display._live.refresh()
    shown = picture(display)
    for expected in (
        r"mome-p2c on hop\[bold\]per .* iteration 20/60  0:00:08 left",
        r"320 evaluations/s +80,000 steps/s +checkpoint at iteration 10",
        r"moqd_score +200,000 +▲ 199,998",
        r"moqd_sparsity_score +0.4 +▼ 0.1\b",
        r"global_hypervolume +7 +=",
        r"max_sum_scores +nan *\n",
        r"coverage +55.0% +▲ 5.0%",
        r"ga +30 +75%",
        r"pg +10 +25%",
    ):
        assert re.search(expected, shown), (expected, shown)
    assert "random" not in shown
    assert "actor" not in shown
    assert max(map(len, shown.splitlines())) <= 100
    lines = [line.rstrip() for line in printed(display)]
    assert "mome-p2c on hop[bold]per: 60 iterations of 64 evaluations" in lines
    assert "compiled in 12.3 s (0 of 1 programs from the cache)" in lines
    assert any("320 evaluations/s" in line for line in lines)


def test_a_terminal_without_unicode_gets_signs():
    ascii_file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with Display(Console(file=ascii_file, force_terminal=True, width=100)) as display:
        display.on_start(CONFIG)
        display.on_log(row_at(0, 1.0))
        display.on_log(row_at(1, 2.0, moqd_score=3.0, moqd_sparsity_score=0.25))
        display._live.refresh()
        assert re.search(r"moqd_score +3 +\+ 0.5", picture(display))
        assert re.search(r"moqd_sparsity_score +0.25 +- 0.25", picture(display))


def test_while_something_is_compiled_the_live_display_says_so():
    with Display(console(terminal=True)) as display:
        display.on_start(CONFIG)
        display.on_log(row_at(0, 1.0))
        seen = []
        jax.jit(lambda x: seen.append(picture(display)) or x)(1.0)
        assert re.search(r"\n +compiling *\n", seen[0])
        assert "compiling" not in picture(display)


def test_the_terminal_is_given_back_when_a_run_fails():
    def fail(display: Display) -> None:
        with display:
            display.on_start(CONFIG)
            raise ZeroDivisionError

    display = Display(console(terminal=True))
    with pytest.raises(ZeroDivisionError):
        fail(display)
    written = display._console.file.getvalue()
    assert written.rindex(CURSOR_SHOWN) > written.rindex(CURSOR_HIDDEN)


def test_another_thread_can_give_the_terminal_back():
    with Display(console(terminal=True)) as display:
        display.on_start(CONFIG)
        display.on_log(row_at(0, 1.0))
        for _ in range(2):
            thread = Thread(target=display.stop)
            thread.start()
            thread.join(timeout=10)
            assert not thread.is_alive()
        written = display._console.file.getvalue()
        assert written.rindex(CURSOR_SHOWN) > written.rindex(CURSOR_HIDDEN)
        display.on_log(row_at(60, 2.0))
        display.on_end(Mock(spec=Run, ended=""))
    assert display._console.file.getvalue() == written


def test_no_iterations_at_all():
    for terminal in (True, False):
        with Display(console(terminal=terminal)) as display:
            display.on_start(replace(CONFIG, iterations=0))
            display.on_log(row_at(0, 1.0))
            assert "iteration 0/0" in picture(display)
        assert terminal or "iteration 0/0" in printed(display)[-1]


def test_in_a_notebook_without_widgets_there_are_plain_lines(monkeypatch, capsys):
    class Session:
        def __init__(self, loop, task, config, callbacks, control, lock):
            self.begin = lambda: [callback.on_start(config) for callback in callbacks]

        def go(self, start):
            self.begin()
            raise KeyboardInterrupt

    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("moqd.runs.start.Session", Session)
    assert Console().is_jupyter
    task = moqd.FunctionTask(lambda x: x, name="own", bounds=[(0, 1)], objective_names=["a"])
    with pytest.raises(KeyboardInterrupt):
        moqd.run("mome", task, iterations=1, ga_batch=4, num_cells=1, progress=True)
    assert capsys.readouterr().out.startswith("mome on own: 1 iterations of 4 evaluations\ncompiling ...")
