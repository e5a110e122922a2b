"""Pipes of the shell (``-r <(zcat run.gz)``), which give their bytes once, where a reader wants them several times.

A file is read for its format, by a fast way, and where that is not sure by a careful one. So what such a pipe gives is
copied whole before anything is read. Other pipes, which may never give anything, are left to be refused
(`raggs.base.inputs`).
"""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from raggs.base.atomic import disk
from raggs.base.errors import DataError, RaggsError

MOST = 1 << 33  # bytes
BLOCK = 1 << 20
SHELL = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")  # where a shell puts them
WRITE_IT = "write what it gives into a file first"


@contextmanager
def replayable(path: Path) -> Iterator[Path]:
    """A path that can be read several times: the same, or for a pipe of the shell a copy of all that it gives.

    Errors that name the copy are made to name the pipe.

    Raises:
        DataError: the pipe gives nothing, or more than `MOST` bytes.
        ProviderError: the disk has no room for the copy.
    """
    if not _of_the_shell(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="raggs-") as folder:
        copy = Path(folder) / path.name
        _spool(path, copy)
        try:
            yield copy
        except RaggsError as error:
            error.where = str(path) if error.where == str(copy) else error.where
            raise


def _of_the_shell(path: Path) -> bool:
    try:
        return str(path).startswith(SHELL) and stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _spool(path: Path, copy: Path) -> None:
    with disk(path, WRITE_IT, "cannot be copied"), path.open("rb") as pipe, copy.open("wb") as target:
        shutil.copyfileobj(_Limited(pipe, path), target, BLOCK)
    if not copy.stat().st_size:
        raise DataError("gives nothing; a pipe gives its content only once", where=path, remedy=WRITE_IT)


class _Limited:
    """A pipe up to `MOST` bytes."""

    def __init__(self, pipe: BinaryIO, path: Path) -> None:
        self._pipe, self._path, self._left = pipe, path, MOST

    def read(self, size: int = BLOCK) -> bytes:
        block = self._pipe.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise DataError(f"gives more than {MOST >> 30} GiB", where=self._path, remedy=WRITE_IT)
        return block
