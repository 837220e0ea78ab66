"""Files that are whole or not there, and that are safe to read: what a run writes and reads goes through here.

Tensors are written in the safetensors format, with a SHA-256 digest of their content, and piece by piece, so that a
large state is never held twice. Symbolic links are refused, and nothing that is read is executed.
"""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from moqd.io.errors import InputError, MissingFileError, StorageError

FORMAT = 1
"""Version of all files; a newer one is refused."""
MOST_JSON = 2**24
"""Bytes of the largest JSON that is read."""
DTYPES = {
    **{"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "uint32": "U32", "uint8": "U8"},
    "bool": "BOOL",
}


class Tensor(NamedTuple):
    """An array as it is written: its rows come in pieces, so that it need not be in memory as a whole."""

    dtype: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[np.ndarray]]


def whole(array: Any) -> Tensor:
    """An array that is small enough to be written in one piece."""
    array = np.asarray(array)
    return Tensor(str(array.dtype), array.shape, lambda: [array])


@contextmanager
def storing(path: Path, what: str = "could not be written") -> Iterator[None]:
    """What the system refuses is a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{str(path)!r} {what} ({error.strerror or error}).") from error


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """All or nothing: `write` writes beside, which is brought to the disk and renamed."""
    if not path.name:
        raise InputError(f"{str(path)!r} is no name for a file; give one.")
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with storing(path):
            beside.unlink(missing_ok=True)  # never written through, whatever it is
            write(beside)
            sync(beside)
            beside.replace(path)
            sync(path.parent)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def write_new(path: Path, content: bytes) -> None:
    """A small file that only matters while its process lives, so it is not brought to the disk."""
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """As it is: line ends are not touched, here or by `read_text`."""
    write_file(path, lambda beside: beside.write_bytes(text.encode()))


def write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=2) + "\n")


def sync(path: Path) -> None:
    """What was written to a file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def users_folder(path: Path) -> Path:
    """A folder that the user has named, made with all above it if it is not there."""
    with storing(path, "could not be made"):
        path.mkdir(parents=True, exist_ok=True)
    return path


def own_folder(path: Path) -> Path:
    """A folder within a run, made if it is not there; a link to somewhere else is refused."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise InputError(f"{str(path)!r} is not a folder but a link or a file; remove it.")
    if not path.is_dir():
        with storing(path, "could not be made"):
            path.mkdir(exist_ok=True)
            sync(path.parent)
    return path


def check_regular(path: Path) -> os.stat_result:
    """Raises MissingFileError, or InputError where it is a link, a pipe or a folder."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFileError(f"{str(path)!r} is missing.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{str(path)!r} is not a plain file (links are not followed); remove it.")
    return status


def read_text(path: Path, *, most: int = MOST_JSON) -> str:
    size = check_regular(path).st_size
    if size > most:
        raise InputError(f"{str(path)!r} has {size} bytes, more than the {most} that such a file may have.")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is damaged: it is not text.") from error
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read ({error.strerror}).") from error


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The object in a JSON file of a format that is known; `what` it should be is said where it is not."""
    text = read_text(path)
    try:
        content = json.loads(text)
        version = content["format"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InputError(f"{str(path)!r} is not {what} ({type(error).__name__}).") from error
    check_format(path, version)
    return dict(content)


def check_format(path: Path, version: Any) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InputError(f"{str(path)!r} is damaged: its format is {version!r}.")
    if version > FORMAT:
        raise InputError(f"{str(path)!r} has format {version}, but this moqd reads up to {FORMAT}; upgrade moqd.")


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """A safetensors file, with its format and a digest of what it holds."""
    ordered = dict(sorted(tensors.items()))
    header: dict[str, Any] = {}
    sha, offset = hashlib.sha256(), 0
    for name, tensor in ordered.items():
        sha.update(_title(name, tensor.dtype, tensor.shape))
        start = offset
        for piece in map(_bytes, tensor.pieces()):
            sha.update(piece)
            offset += len(piece)
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, offset]}
    metadata = {"format": str(FORMAT), "sha256": sha.hexdigest()}
    text = json.dumps({"__metadata__": metadata, **header}).encode()
    text += b" " * (-len(text) % 8)

    def write(beside: Path) -> None:
        with beside.open("xb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor in ordered.values():
                file.writelines(map(_bytes, tensor.pieces()))

    write_file(path, write)


def _bytes(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _title(name: str, dtype: str, shape: tuple[int, ...]) -> bytes:
    """What the digest of a file holds of an array besides its bytes."""
    return json.dumps([name, dtype, list(shape)]).encode()


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file that `write_tensors` wrote, which are those that it wrote."""
    check_regular(path)
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            version = metadata.get("format", "")
            check_format(path, int(version) if version.isdigit() else version)
            arrays = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} is damaged ({error}).") from error
    sha = hashlib.sha256()
    for name, array in arrays.items():
        sha.update(_title(name, str(array.dtype), array.shape))
        sha.update(_bytes(array))
    if sha.hexdigest() != metadata.get("sha256"):
        raise InputError(f"{str(path)!r} is damaged (its checksum differs).")
    return arrays


def sha256_of(path: Path) -> str:
    """Of a file as it is on disk."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_folder(path: Path) -> None:
    """Out of the way first, so that nobody sees half of it."""
    if path.is_symlink() or path.is_file():
        path.unlink()
        return
    if not path.name.startswith("."):
        aside = path.with_name(f".{path.name}.{os.getpid()}.old")
        shutil.rmtree(aside, ignore_errors=True)
        path = path.replace(aside)
    shutil.rmtree(path, ignore_errors=True)
