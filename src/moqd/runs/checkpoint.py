"""Checkpoints: the complete state of a run, in folders that are whole or not there.

A checkpoint is `state.safetensors`, the rows of `metrics.csv` so far, and `manifest.json` with the size and SHA-256 of
both, and its own. It is written to a hidden folder, brought to the disk and renamed. Reading checks all of it first, so
that a damaged checkpoint is never used.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from moqd.io import files
from moqd.io.errors import InputError, to_repeat
from moqd.runs.packing import packed, unpacked

CHECKPOINTS = "checkpoints"
STATE, TABLE, MANIFEST = "state.safetensors", "metrics.csv", "manifest.json"
KEPT = 2
"""The newest so many are kept."""
FACTS = {
    "iteration": int,
    "env_steps": int,
    "seconds": float,
    "reference_point": list,
    "metrics": dict,
    "made_with": dict,
}
"""What a checkpoint says beside its arrays."""


class Checkpoint(NamedTuple):
    """What a run goes on from."""

    facts: Mapping[str, Any]
    """All that is not an array: `FACTS`."""
    state: Any
    table: str
    """metrics.csv up to here."""


def write_checkpoint(
    run_folder: Path, checkpoint: Checkpoint, run_identity: str, before_rename: Callable[[], object] = lambda: None
) -> Path:
    """Writes the checkpoint of an iteration and removes those that are too old; gives its folder."""
    folder = files.own_folder(run_folder / CHECKPOINTS)
    path = folder / f"{checkpoint.facts['iteration']:08d}"
    beside = folder / f".{path.name}.{os.getpid()}.tmp"
    files.remove_folder(beside)
    try:
        with files.storing(path):
            beside.mkdir()
            files.write_tensors(beside / STATE, packed(checkpoint.state))
            files.write_text(beside / TABLE, checkpoint.table)
            digests = {name: _fingerprint(beside / name) for name in (STATE, TABLE)}
            content = {"format": files.FORMAT, "run": run_identity, "facts": dict(checkpoint.facts), "files": digests}
            files.write_text(beside / MANIFEST, _sealed(content))
            before_rename()
            if path.exists() or path.is_symlink():
                files.remove_folder(path)  # damaged, or of the same iteration and so the same
            beside.replace(path)
            files.sync(folder)
    finally:
        files.remove_folder(beside)
    for old in _checkpoints(run_folder)[KEPT:]:
        files.remove_folder(old)
    return path


def oldest_iteration(run_folder: Path) -> int:
    """Of all checkpoints that are kept; -1 if there is none."""
    return min((int(path.name) for path in _checkpoints(run_folder)), default=-1)


def newest_checkpoint(
    run_folder: Path, template: Any, place: Callable[[Any], Any], run_identity: str, *, remove_damaged: bool = True
) -> Checkpoint | None:
    """The newest checkpoint that is whole, with a warning for those that are not, which are removed; None if there is
    none yet."""
    refused: dict[Path, Exception] = {}
    for path in _checkpoints(run_folder):
        try:
            found = read_checkpoint(path, template, place, run_identity)
        except NewerFormatError:
            raise
        except (InputError, OSError) as error:
            refused[path] = error
            continue
        for bad, why in refused.items():
            use = "The run goes on from" if remove_damaged else "The checkpoint before it is used, of"
            warnings.warn(f"{why} {use} iteration {int(path.name)}.", stacklevel=2)
            if remove_damaged and isinstance(why, InputError):  # and not the storage, which may be back soon
                files.remove_folder(bad)
        return found
    if refused:
        raise InputError(f"no checkpoint of {str(run_folder)!r} is whole, {to_repeat(run_folder)}")
    return None


def read_checkpoint(path: Path, template: Any, place: Callable[[Any], Any], run_identity: str) -> Checkpoint:
    """Raises InputError if anything of it is not as it was written."""
    content = _read_manifest(path)
    if content.get("run") != run_identity:
        raise InputError(f"{str(path)!r} is a checkpoint of another run.")
    facts, digests = content.get("facts"), content.get("files")
    if not _says_all(facts) or facts["iteration"] != int(path.name) or not isinstance(digests, dict):
        raise InputError(f"{str(path / MANIFEST)!r} is damaged: it does not say all of {', '.join(FACTS)}.")
    for name in (STATE, TABLE):
        if _fingerprint(path / name) != digests.get(name):
            raise InputError(f"{str(path / name)!r} is damaged (its checksum differs).")
    state = unpacked(template, files.read_tensors(path / STATE), place, repr(str(path / STATE)))
    return Checkpoint(facts, state, files.read_text(path / TABLE, most=2**30))


def _says_all(facts: Any) -> TypeGuard[dict[str, Any]]:
    if not isinstance(facts, dict) or not all(isinstance(facts.get(name), kind) for name, kind in FACTS.items()):
        return False
    return all(isinstance(number, (int, float)) for number in (*facts["reference_point"], *facts["metrics"].values()))


def clean_up(run_folder: Path) -> None:
    """Removes what a process that was killed left half done."""
    for folder in (run_folder, *(path for path in run_folder.iterdir() if path.is_dir() and not path.is_symlink())):
        for path in folder.glob(".*"):
            if path.name.endswith((".tmp", ".old", ".new", ".now")):
                files.remove_folder(path)


class NewerFormatError(InputError):
    """Written by a newer moqd: to go back to the checkpoint before it would throw away what that one did."""


def _read_manifest(path: Path) -> dict[str, Any]:
    if path.is_symlink() or not path.is_dir():
        raise InputError(f"{str(path)!r} is not a folder (links are not followed).")
    text = files.read_text(path / MANIFEST)
    try:
        content = json.loads(text)
        del content["sha256"]
        whole = text == _sealed(content)
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise InputError(f"{str(path / MANIFEST)!r} is damaged (its checksum differs).")
    try:
        files.check_format(path / MANIFEST, content.get("format"))
    except InputError as error:
        raise NewerFormatError(str(error)) from error
    return dict(content)


def _sealed(content: Mapping[str, Any]) -> str:
    """As the file has it: with a checksum of itself. There is one text for a content, so that any change shows."""
    checksum = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "sha256": checksum}, sort_keys=True, indent=2) + "\n"


def _fingerprint(path: Path) -> dict[str, Any]:
    return {"size": files.check_regular(path).st_size, "sha256": files.sha256_of(path)}


def _checkpoints(run_folder: Path) -> list[Path]:
    """The newest first."""
    folder = files.own_folder(run_folder / CHECKPOINTS)
    return sorted((path for path in folder.iterdir() if path.name.isdecimal()), reverse=True)
