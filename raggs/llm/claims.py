"""Who asks what just now, among all runs that share a cache of answers: a question on its way is not sent twice.

A claim is a row with the question's key and the session that asks it. A session lives as long as it holds the lock on
its file, which the system lets go when its process ends, however it ends; so a run that was killed blocks nobody. A
claim protects money, not results: where claims cannot be kept, nobody waits, and the same question may be paid twice.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

FOLDER = "claims"
DATABASE = "claims.db"
FIRST_LOOK_S, LAST_LOOK_S = 0.05, 1.0  # pauses between two looks at whether another run has its answer
OLD_S = 86_400.0  # after so long the file of a dead session goes
BUSY_S = 5.0
TABLE = "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, session TEXT NOT NULL)"


@asynccontextmanager
async def asking(claims: Claims | None, key: str) -> AsyncIterator[None]:
    """The block in which `key` is this session's to ask, which begins when no other one asks it."""
    pause = FIRST_LOOK_S
    while claims is not None and not claims.take(key):
        await asyncio.sleep(pause)
        pause = min(2 * pause, LAST_LOOK_S)
    try:
        yield
    finally:
        if claims is not None:
            claims.release(key)


class Claims:
    """The claims of one session, beside the cache in `cache_folder`."""

    def __init__(self, cache_folder: Path) -> None:
        self._folder = cache_folder / FOLDER
        self._session = uuid4().hex
        self._lock = FileLock(self._file(self._session))
        self._rows: sqlite3.Connection | None = None
        with suppress(OSError, sqlite3.Error, Timeout):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._tidy()
            self._lock.acquire(timeout=BUSY_S)
            path = self._folder / DATABASE
            rows = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            rows.execute("PRAGMA synchronous=OFF")  # after a power cut nobody is asked anything
            rows.execute(TABLE)
            self._rows = rows

    def take(self, key: str) -> bool:
        """Whether `key` is this session's to ask, now and until `release`."""
        with self._kept() as rows:
            if rows is None or rows.execute("INSERT OR IGNORE INTO claims VALUES (?, ?)", self._row(key)).rowcount:
                return True
            found = rows.execute("SELECT session FROM claims WHERE key = ?", (key,)).fetchone()
            if found is None or self._alive(found[0]):
                return False
            taken = rows.execute(
                "UPDATE claims SET session = ? WHERE key = ? AND session = ?", (self._session, key, *found)
            )
            return taken.rowcount == 1
        return True

    def release(self, key: str) -> None:
        """The answer to `key` is kept, or there is none."""
        with self._kept() as rows:
            if rows is not None:
                rows.execute("DELETE FROM claims WHERE key = ? AND session = ?", self._row(key))

    def close(self) -> None:
        """Give up whatever is claimed still."""
        with self._kept() as rows:
            if rows is not None:
                rows.execute("DELETE FROM claims WHERE session = ?", (self._session,))
                rows.close()
        self._rows = None
        self._lock.release()
        with suppress(OSError):
            self._file(self._session).unlink(missing_ok=True)

    @contextmanager
    def _kept(self) -> Iterator[sqlite3.Connection | None]:
        """The rows, until they cannot be used."""
        try:
            yield self._rows
        except (sqlite3.Error, OSError):
            self._rows = None

    def _row(self, key: str) -> tuple[str, str]:
        return key, self._session

    def _file(self, session: str) -> Path:
        return self._folder / f"{session}.lock"

    def _alive(self, session: str) -> bool:
        """Whether someone holds the lock of a session."""
        path = self._file(session)
        if session == self._session or not path.exists():
            return session == self._session
        probe = FileLock(path)
        try:
            probe.acquire(timeout=0)
        except Timeout:
            return True
        probe.release()
        return False

    def _tidy(self) -> None:
        for path in self._folder.glob("*.lock"):
            if time.time() - path.stat().st_mtime > OLD_S and not self._alive(path.stem):
                path.unlink(missing_ok=True)
