"""Errors that are the user's to mend: one sentence with what was wrong, what is allowed, and how to fix it."""

import shlex
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """Something the user gave cannot be used; the message says what and what would work."""


class StorageError(RuntimeError):
    """Something could not be written, because the disk is full or the like; what was written before is whole."""


class EndedError(RuntimeError):
    """A run ended before its last iteration; `archive` is what it has found, and `run` the Run up to there."""

    run: Any = None

    def __init__(self, message: str, archive: Any) -> None:
        super().__init__(message)
        self.archive = archive


class StoppedError(EndedError):
    """A run was asked to stop and did so; a run with a folder is saved there."""


class MissingFileError(InputError):
    """A file that should be there is not."""


class BusyError(InputError):
    """Another process is at work there."""


class EvaluationError(RuntimeError):
    """The user's task fails at every evaluation, so a run cannot go on."""


class DivergenceError(EndedError):
    """Training gave numbers that are not finite, so a run cannot go on."""


def unknown_name(kind: str, name: Any, known: Iterable[str], *, of: str = "", own: str = "") -> InputError:
    """The error for a name that is not known (of something), with the nearest ones that are.

    `own`: the option that makes known one of the user's own, where there is such an option.
    """
    known = sorted(known)
    near = get_close_matches(str(name), known, n=3, cutoff=0.4)
    if near:
        hint = f"did you mean {' or '.join(map(repr, near))}{f', or one of your own (add {own})' if own else ''}?"
    else:
        hint = f"known: {', '.join(known)}{f'; for one of your own, add {own}' if own else ''}."
    return InputError(f"unknown {kind} {name!r}{' of ' if of else ''}{of}; {hint}")


def known_name(kind: str, name: Any, known: Collection[str], *, of: str = "", own: str = "") -> str:
    """The name, which must be one of those that are known."""
    if not isinstance(name, str) or name not in known:
        raise unknown_name(kind, name, known, of=of, own=own)
    return name


def listed(texts: Sequence[str], *, most: int = 12) -> str:
    """With commas; of more than `most` only the first, and how many there are."""
    return ", ".join(texts[:most]) + f", ... ({len(texts)})" * (len(texts) > most)


def one_line(text: str) -> str:
    """The text of a length to be read, and without anything that a terminal would obey."""
    if len(text) > 500:
        text = f"{text[:240]} ... {text[-240:]}"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


AGAIN: list[str] = []
"""What commands must be told again for a run to be continued: tasks of the user's own that were named on this one."""


def to_resume(folder: Path) -> str:
    """The command that continues a run."""
    return " ".join(["moqd resume", shlex.quote(str(folder)), *AGAIN])


def to_repeat(folder: Path) -> str:
    """What to do about a run that cannot be continued."""
    again = f"moqd train --config {shlex.quote(str(folder / 'config.json'))} --out NEW_FOLDER"
    return f"so it cannot be continued; run it again with: {again}"
