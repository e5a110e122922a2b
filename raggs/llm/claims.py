"""Who asks what just now, among all runs that share a cache of answers: a question on its way is not sent twice.

A claim is a row with the question's key and the session that asks it. A session lives as long as it holds the lock on
its file, which the system lets go when its process ends, however it ends; so a run that was killed blocks nobody. A
claim protects money, not results: where claims cannot be kept, nobody waits, and the same question may be paid twice.

Who meets a question that is on its way in a batch, another run's or that of a run that was stopped, does not wait for
hours and does not pay twice: it is told so.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from raggs.base.errors import BusyError
from raggs.llm.batch.journal import BATCHES, noted

FOLDER = "claims"
DATABASE = "claims.db"
FIRST_LOOK_S, LAST_LOOK_S = 0.05, 1.0  # pauses between two looks at whether another run has its answer
OLD_S = 86_400.0  # after so long the file of a dead session goes
BUSY_S = 5.0
TABLE = "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, session TEXT NOT NULL)"


BATCH = " batch"  # after the session of a claim that a batch will answer


@asynccontextmanager
async def asking(claims: Claims | None, keys: Collection[str], *, batched: bool = False) -> AsyncIterator[set[str]]:
    """The block in which some of `keys` are this session's to ask: those that no other one asks, at least one.

    Raises:
        BusyError: one of them is on its way in a batch that is not this session's.
    """
    pause, mine = FIRST_LOOK_S, set(keys) if claims is None else claims.take(keys, batched=batched)
    while claims is not None and not mine:
        await asyncio.sleep(pause)
        pause = min(2 * pause, LAST_LOOK_S)
        mine = claims.take(keys, batched=batched)
    try:
        yield mine
    finally:
        if claims is not None:
            claims.release(mine)


class Claims:
    """The claims of one session, beside the cache in `cache_folder`."""

    def __init__(self, cache_folder: Path) -> None:
        self._folder = cache_folder / FOLDER
        self._batches = cache_folder / BATCHES
        self._noted = noted(self._batches)
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

    def take(self, keys: Collection[str], *, batched: bool = False) -> set[str]:
        """Those of `keys` that are this session's to ask, now and until `release`.

        Raises:
            BusyError: one is on its way in a batch that is not this session's.
        """
        mine = set(keys)
        with self._kept() as rows:
            if rows is not None:
                mine = {key for key in keys if self._take(rows, key, batched)}
        if not batched:
            self._check_noted(mine)
        return mine

    def _take(self, rows: sqlite3.Connection, key: str, batched: bool) -> bool:
        claim = (key, self._session + BATCH * batched)
        if rows.execute("INSERT OR IGNORE INTO claims VALUES (?, ?)", claim).rowcount:
            return True
        found = rows.execute("SELECT session FROM claims WHERE key = ?", (key,)).fetchone()
        if found is None:
            return False
        session = found[0].removesuffix(BATCH)
        by_batch = found[0] != session
        if self._alive(session):
            if by_batch and session != self._session:
                told = "another raggs run has sent these questions in a batch"
                raise BusyError(told, where=self._folder, remedy="wait for it to end; its answers are cached then")
            return False
        if by_batch and not batched:  # it was killed, and what it has sent goes on at the provider
            self._noted = noted(self._batches)
        changed = rows.execute("UPDATE claims SET session = ? WHERE key = ? AND session = ?", (claim[1], key, *found))
        return changed.rowcount == 1

    def release(self, keys: Collection[str]) -> None:
        """The answers to `keys` are kept, or there are none."""
        with self._kept() as rows:
            if rows is not None:
                mine = (self._session, self._session + BATCH)
                rows.executemany(
                    "DELETE FROM claims WHERE key = ? AND session IN (?, ?)", [(key, *mine) for key in keys]
                )

    def close(self) -> None:
        """Give up whatever is claimed still."""
        with self._kept() as rows:
            if rows is not None:
                mine = (self._session, self._session + BATCH)
                rows.execute("DELETE FROM claims WHERE session IN (?, ?)", mine)
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

    def _check_noted(self, keys: Collection[str]) -> None:
        """Refuse to pay for what lies in a batch that was sent and is not fetched."""
        if found := next((self._noted[key] for key in keys if key in self._noted), None):
            self.release(keys)
            remedy = "set judge.mode: batch, which fetches it, or delete the file to pay for them again"
            raise BusyError(
                "these questions were sent in a batch, which nobody has fetched", where=found, remedy=remedy
            )

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
