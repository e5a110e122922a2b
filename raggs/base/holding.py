"""One process at a time in a folder: whoever comes second is told at once, and waits for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raggs.base.atomic import disk
from raggs.base.errors import BusyError


@contextmanager
def held(lock: Path, folder: Path, *, who: str, wait: str, remedy: str) -> Iterator[None]:
    """Hold a folder, made if missing, by a file that is its lock.

    Args:
        who: that may hold it: "another raggs run is using this directory".
        wait: what to do then.
        remedy: what to do where the disk does not allow it.

    Raises:
        BusyError: another process holds it.
        ProviderError: it cannot be made or written.
    """
    from filelock import FileLock, Timeout  # late: from then on it listens to all that the process imports and opens

    with disk(folder, remedy):
        folder.mkdir(parents=True, exist_ok=True)
        found = FileLock(lock, timeout=0)
        try:
            found.acquire()
        except Timeout as error:
            raise BusyError(who, where=folder, remedy=wait) from error
    try:
        yield
    finally:
        found.release()
