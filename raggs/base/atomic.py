"""Files appear whole or not at all.

A write goes to a temporary file in the same folder, is flushed to the disk, and is renamed over its target;
the folder's entry is flushed too. A kill at any moment leaves the old file or the new one. The price is one
fsync of the file and one of the folder for each write, so this is for whole artifacts, not for single lines. What a
power cut may take, since it costs nothing to make again, is written without (`durable=False`).

A disk that is full or refuses is the same error everywhere (`disk`): `ProviderError`, exit code 6.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from raggs.base.errors import ProviderError
from raggs.base.inputs import MORE_HANDLES, lacks_handles

PREFIX = ".tmp-"
BLOCK = 1 << 16
FULL = (errno.ENOSPC, errno.EDQUOT)


def disk_fault(error: Exception, where: Path, remedy: str, said: str = "cannot be written") -> ProviderError:
    """What the disk refused, as one sentence.

    Args:
        where: the file or folder that cannot be used.
        remedy: what helps, unless the disk is full: then it is to free some space.
        said: what could not be done.
    """
    full = isinstance(error, OSError) and error.errno in FULL
    if full:
        remedy = "free some space and run again"
    elif lacks_handles():
        remedy = MORE_HANDLES
    reason = getattr(error, "strerror", None) or error
    return ProviderError(f"{said} ({reason})", where=where, remedy=remedy)


@contextmanager
def disk(where: Path, remedy: str, said: str = "cannot be written") -> Iterator[None]:
    """Every fault of the disk in the block as `disk_fault`.

    Raises:
        ProviderError: an `OSError` in the block.
    """
    try:
        yield
    except OSError as error:
        raise disk_fault(error, where, remedy, said) from error


@contextmanager
def atomic_writer(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A binary file that replaces `path` when the block ends well and vanishes when it does not."""
    temporary = path.with_name(f"{PREFIX}{secrets.token_hex(8)}-{path.name}")
    # By hand rather than by tempfile, whose files only their owner may read: a team shares its runs.
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def write_atomic(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace `path` by `data`, whole or not at all."""
    with atomic_writer(path, durable=durable) as file:
        file.write(data)


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into a folder that the user named by ``--out``, made if missing; each appears whole.

    Raises:
        ProviderError: the folder cannot be written.
    """
    with disk(folder, "choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_atomic(folder / name, text.encode())
    return [folder / name for name in texts]


def make_folder(path: Path) -> None:
    """Make a folder and its parents.

    Raises:
        ProviderError: the place cannot be written.
    """
    with disk(path, "choose another workspace"):
        path.mkdir(parents=True, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut; a no-op where folders cannot be opened (Windows)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Delete temporary files that a killed process left in `folder`, of one target or of all."""
    for path in folder.glob(f"{PREFIX}*"):
        if path.name.endswith(f"-{name}" if name else ""):
            path.unlink(missing_ok=True)


def cut_torn_line(path: Path) -> None:
    """Cut off what stands after the last line break: what a kill left of a line."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - BLOCK)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        file.truncate(end)
