import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.util import tensor_util

from moqd.io.errors import InputError, StorageError
from moqd.runs.config import RunConfig
from moqd.runs.folder import Run
from moqd.runs.tensorboard import TensorBoard


def row_at(iteration: int, moqd_score: float) -> dict[str, float]:
    return {"iteration": iteration, "evaluations": 64 * (iteration + 1), "moqd_score": moqd_score, "loss": float("nan")}


def scalars(folder: Path, tag: str) -> list[tuple[int, float]]:
    """As TensorBoard reads them."""
    events = event_accumulator.EventAccumulator(str(folder)).Reload()
    return [(event.step, event.value) for event in events.Scalars(tag)]


def served_scalars(folder: Path, tag: str) -> list[tuple[int, float]]:
    """As TensorBoard's server reads them, which has a reader of its own."""
    events = plugin_event_accumulator.EventAccumulator(str(folder)).Reload()
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto).item()) for event in events.Tensors(tag)]


def test_every_column_is_a_scalar_over_the_iterations(tmp_path):
    board = TensorBoard(tmp_path / "new" / "folder")
    assert list(tmp_path.iterdir()) == []  # nothing is written before there is something to write
    board.on_start(Mock(spec=RunConfig))
    for iteration, score in ((0, 1.5), (10, 2.5)):
        board.on_log(row_at(iteration, score))
        board.on_progress(iteration + 5)
        assert scalars(tmp_path / "new" / "folder", "moqd_score")[-1] == (iteration, score)  # on disk already
    board.on_end(Mock(spec=Run))
    events = event_accumulator.EventAccumulator(str(tmp_path / "new" / "folder")).Reload()
    assert sorted(events.Tags()["scalars"]) == ["evaluations", "loss", "moqd_score"]
    assert scalars(tmp_path / "new" / "folder", "evaluations") == [(0, 64), (10, 704)]
    assert events.Scalars("loss")[0].value != events.Scalars("loss")[0].value


@pytest.mark.parametrize("read", [scalars, served_scalars])
def test_a_resumed_run_shows_nothing_twice(read, tmp_path):
    """Killed after iteration 40, while its last checkpoint was of iteration 25; and killed again."""
    first = TensorBoard(tmp_path)
    for iteration in range(0, 50, 10):
        first.on_log(row_at(iteration, iteration))
    second = TensorBoard(tmp_path)
    second.on_progress(25)
    second.on_log(row_at(30, -30.0))
    second.on_progress(35)
    second.on_log(row_at(40, -40.0))
    expected = [(0, 0), (10, 10), (20, 20), (30, -30), (40, -40)]
    assert read(tmp_path, "moqd_score") == expected
    third = TensorBoard(tmp_path)
    third.on_progress(30)
    assert read(tmp_path, "moqd_score") == expected[:4]
    third.on_log(row_at(40, 0.5))
    assert read(tmp_path, "moqd_score") == [*expected[:4], (40, 0.5)]
    for board in (first, second, third):
        board.on_end(Mock(spec=Run))


def test_a_run_that_starts_anew_forgets_the_old_one(tmp_path):
    for score in (1.0, 2.0):
        board = TensorBoard(tmp_path)
        for iteration in (0, 10)[: int(3 - score)]:
            board.on_log(row_at(iteration, score))
        board.on_end(Mock(spec=Run))
    assert scalars(tmp_path, "moqd_score") == served_scalars(tmp_path, "moqd_score") == [(0, 2.0)]


def test_without_the_package_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(
        InputError,
        match=r"needs the package 'tensorboard', .* pip install 'moqd\[",
    ):
        TensorBoard(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    board = TensorBoard(tmp_path / "file" / "folder")
    with pytest.raises(StorageError, match="could not be written"):
        board.on_log(row_at(0, 1.0))
    board.on_end(Mock(spec=Run))


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link, which is not followed"):
        TensorBoard(tmp_path / "run").on_log({"iteration": 0.0})
    assert not list((tmp_path / "elsewhere").iterdir())
