"""Paid answers on disk, and claims on calls in progress.

By default, diskcache loads pickles from its database, and a planted pickle could run code. The `TextDisk` class here
stores only text in the database and rejects everything else: no pickles, no side files. Entries are never evicted. A
row that raggs cannot have written counts as a miss and is replaced by the next answer. Writes survive a killed process.
A power cut may lose the latest writes.

`AnswerClaims` prevents runs that share a cache from sending the same request at the same time. A claim is a row with a
request's key and the session of the run that sends it. A session is alive as long as its process locks the session's
file. The operating system releases the lock when the process ends, so a killed run does not block other runs. Claims
save money but do not affect results: if they cannot be stored, no run waits, and a request may be paid for twice.

If a request is already in the batch of another live run, raggs raises an error. If it is in the batch of a stopped run,
raggs fetches the answer in batch mode, and raises an error otherwise. So it does not wait for hours, and does not pay
twice.
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import diskcache
from filelock import FileLock, Timeout

from raggs.base.artifacts import Spending
from raggs.base.errors import BusyError, ProviderError
from raggs.base.files import lacks_handles, no_handles, regular_file
from raggs.base.hashing import canonical_json
from raggs.llm.batch_api import BATCHES, keys_in_batches
from raggs.llm.messages import Answerer, CallUsage

T = TypeVar("T")
N = TypeVar("N", int, float)

RAW_MODE = 1  # diskcache's mode for values that are stored in the database unchanged
FOLDER_MODE = 0o700
DATABASE = "cache.db"
LONGEST_PAYER = 64  # maximum length of a payer id, in characters
MAX_AMOUNT = 1e12  # maximum tokens or USD of one answer
PATIENCE_S = 30.0  # seconds to wait while another process locks the database
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class RefusedRow(OSError):
    """A row that this cache cannot have written. It is an OSError, because diskcache treats an OSError as a miss."""


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Accept only text as keys and values, stored in the database."""

    def put(self, key: object) -> tuple[str, bool]:
        if not isinstance(key, str):
            raise TypeError(f"a cache key is text, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: bool) -> str:
        return key if raw and isinstance(key, str) else ""

    def store(self, value: object, read: bool, key: object = None) -> tuple[int, int, None, str]:
        if read or not isinstance(value, str):
            raise TypeError(f"a cached value is text, not {type(value).__name__}")
        return 0, RAW_MODE, None, value

    def fetch(self, mode: int, filename: str | None, value: object, read: bool) -> str:
        if mode != RAW_MODE or filename is not None or read or not isinstance(value, str):
            raise RefusedRow("not a row of this cache")
        return value

    def remove(self, file_path: str) -> None:
        """Ignore a request to delete a file, because all data is in the database."""


@dataclass(frozen=True)
class CachedAnswer:
    """A valid answer: the model's text, its usage and its cost.

    Attributes:
        ms: duration of the calls in milliseconds, if known.
        by: the model that answered, if recorded.
        payer: id of the run that paid for it, as in its ledger; empty if unknown.
    """

    raw: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    usd: float
    ms: float | None = None
    by: Answerer | None = None
    payer: str = ""

    @classmethod
    def of(
        cls,
        raw: str,
        model: str,
        spent: Spending,
        ms: float | None = None,
        by: Answerer | None = None,
        payer: str = "",
    ) -> CachedAnswer:
        """Return the cache entry for the text `raw` of `model` and its usage."""
        return cls(raw, model, spent.prompt_tokens, spent.completion_tokens, spent.usd, _round_ms(ms), by, payer)

    @property
    def answerer(self) -> Answerer:
        """The model that answered; without names if they were not recorded."""
        return self.by or Answerer(asked=self.model)

    @property
    def row(self) -> str:
        """The stored text."""
        found = {name: value for name, value in vars(self).items() if value is not None and value != ""}
        found["raw"] = self.raw
        return canonical_json({**found, **({} if self.by is None else {"by": self.by.stated})})

    @property
    def took(self) -> CallUsage:
        """The usage when the answer was paid for. The number of calls is not stored and counts as 1."""
        return CallUsage(1, self.prompt_tokens, self.ms, self.usd)


class AnswerCache:
    """Answers by key in one database, which several processes may use at the same time."""

    def __init__(self, folder: Path) -> None:
        """Open the cache in `folder`, which is created if missing. The mode of the folder is set to 0700 if possible,
        even if the folder already exists.

        Raises:
            ProviderError: the folder is not writable, or the database is damaged.
            BusyError: another process locks the database for longer than `PATIENCE_S`.
        """
        self.folder = folder
        self._bad: set[str] = set()
        with self._guarded():
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            with suppress(PermissionError):  # a folder of another user, shared on purpose
                folder.chmod(FOLDER_MODE)
            _wait_for(folder / DATABASE)
            self._cache = diskcache.Cache(
                str(folder), disk=TextDisk, eviction_policy="none", cull_limit=0, timeout=PATIENCE_S
            )

    def get(self, key: str) -> CachedAnswer | None:
        """Return the entry of `key`, or None if it is missing or unreadable."""
        with self._guarded():
            text = self._cache.get(key)
        found = None if text is None else _parse(text)
        if text is not None and found is None:
            self._bad.add(key)
        return found

    @property
    def damaged(self) -> int:
        """Number of requested keys whose text was not a valid entry. Rows that contain no text are not counted."""
        return len(self._bad)

    def put(self, key: str, entry: CachedAnswer) -> None:
        """Store an entry, replacing an older one."""
        self.put_all({key: entry})

    def put_all(self, entries: Mapping[str, CachedAnswer]) -> None:
        """Store the entries of one call in one transaction: if the process is killed, all or none are stored."""
        with self._guarded(), self._alone():
            for key, entry in entries.items():
                self._cache.set(key, entry.row)

    def clear(self) -> int:
        """Delete all entries and return the number of rows."""
        with self._guarded():
            return int(self._cache.clear())

    def stats(self) -> CacheStats:
        """Return statistics of the cache. Reads every row."""
        with self._guarded():
            entries = [entry for key in self._cache if key and (entry := self.get(key))]
            usd = sum(entry.usd for entry in entries)
            return CacheStats(len(entries), int(self._cache.volume()), usd, len(self._cache) - len(entries))

    def close(self) -> None:
        """Close the database."""
        self._cache.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Open a transaction. After a timeout, the next answer does not wait for the lock again."""
        if (database := self.folder / DATABASE) in _given_up:
            _wait_for(database)
        with self._cache.transact():
            yield

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, diskcache.Timeout, OSError) as error:
            if isinstance(error, diskcache.Timeout) or getattr(error, "sqlite_errorcode", None) in LOCKED:
                _given_up[self.folder / DATABASE] = time.monotonic()
                raise BusyError(
                    f"another process has locked the answer cache for more than {PATIENCE_S:g} s",
                    where=self.folder / DATABASE,
                    remedy="wait for that process to end, or stop it; then run again",
                ) from None
            if lacks_handles():
                raise no_handles(self.folder / DATABASE) from None
            told = str(error)
            remedy = (
                f"free disk space or check the folder; delete {DATABASE} if it is damaged (its answers must "
                "be paid for again)"
            )
            raise ProviderError(f"the answer cache cannot be used: {told}", where=self.folder, remedy=remedy) from None


_given_up: dict[Path, float] = {}  # databases whose lock timed out, and when


def _wait_for(database: Path) -> None:
    """Wait until no other process is writing to a database, by starting a write transaction. With a write-ahead log,
    readers never wait.

    diskcache itself writes when it opens a database. On a locked database, each of its statements would wait for a
    minute or more.
    """
    if database.exists():
        # an earlier request has just waited for the lock until its timeout
        waited = time.monotonic() - _given_up.get(database, -math.inf) < PATIENCE_S
        with closing(sqlite3.connect(regular_file(database), timeout=0 if waited else PATIENCE_S)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    _given_up.pop(database, None)


def _parse(text: str) -> CachedAnswer | None:
    try:
        found = json.loads(text)
        return CachedAnswer(
            raw=_typed(found["raw"], str),
            model=_typed(found["model"], str),
            prompt_tokens=_amount(_typed(found["prompt_tokens"], int)),
            completion_tokens=_amount(_typed(found["completion_tokens"], int)),
            usd=_amount(float(found["usd"])),
            ms=None if (ms := found.get("ms")) is None else _amount(float(ms)),
            by=None if (by := found.get("by")) is None else Answerer(asked=found["model"], **by),
            payer=_typed(found.get("payer", ""), str)[:LONGEST_PAYER],
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _round_ms(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 3)


def _amount(value: N) -> N:
    """Check that a count or price is plausible, and return it.

    Raises:
        ValueError: it is negative, not a number, or larger than `MAX_AMOUNT`.
    """
    if not 0 <= value <= MAX_AMOUNT:
        raise ValueError("not an amount")
    return value


def _typed(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"not {kind.__name__}")
    return value


@dataclass(frozen=True)
class CacheStats:
    """Statistics of a cache: `entries` answers in `bytes` on disk, which cost `usd`; and the number of damaged rows."""

    entries: int
    bytes: int
    usd: float
    damaged: int = 0


def cache_stats(folder: Path) -> CacheStats:
    """Return the statistics of the cache in `folder`; zeros if there is none.

    Raises:
        ProviderError: it cannot be read.
        BusyError: another process locks the database.
    """
    return CacheStats(0, 0, 0.0) if (cache := _existing(folder)) is None else _then_close(cache, cache.stats)


def clear_cache(folder: Path) -> int:
    """Delete all answers in `folder` and return the number of rows. The key of the injection guard is kept.

    Raises:
        ProviderError: it cannot be written.
        BusyError: another process locks the database.
    """
    return 0 if (cache := _existing(folder)) is None else _then_close(cache, cache.clear)


def _existing(folder: Path) -> AnswerCache | None:
    return AnswerCache(folder) if (folder / DATABASE).exists() else None


def _then_close(cache: AnswerCache, work: Callable[[], T]) -> T:
    try:
        return work()
    finally:
        cache.close()


FOLDER = "claims"
CLAIMS_DATABASE = "claims.db"
FIRST_LOOK_S, LAST_LOOK_S = 0.05, 1.0  # seconds between two checks whether another run has received the answer
OLD_S = 86_400.0  # seconds after which the file of a dead session is deleted
BUSY_S = 5.0
TABLE = "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, session TEXT NOT NULL)"


BATCH = " batch"  # suffix of a claim's session if the request is in a batch


@asynccontextmanager
async def claim_keys(
    claims: AnswerClaims | None, keys: Collection[str], *, batched: bool = False
) -> AsyncIterator[set[str]]:
    """Claim keys for this session. Wait until at least one is free; the block gets all keys that this session could
    claim. Without claims, it gets all keys immediately.

    Raises:
        BusyError: one of the keys is in a batch of another live session; or, unless `batched`, in a batch that was not
            fetched.
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


class AnswerClaims:
    """The claims of one session, next to the cache in `cache_folder`."""

    def __init__(self, cache_folder: Path) -> None:
        self._folder = cache_folder / FOLDER
        self._batches = cache_folder / BATCHES
        self._noted = keys_in_batches(self._batches)
        self._session = uuid4().hex
        self._lock = FileLock(self._file(self._session))
        self._rows: sqlite3.Connection | None = None
        with suppress(OSError, sqlite3.Error, Timeout):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._tidy()
            self._lock.acquire(timeout=BUSY_S)
            path = self._folder / CLAIMS_DATABASE
            rows = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            rows.execute("PRAGMA synchronous=OFF")  # claims need not survive a power cut
            rows.execute(TABLE)
            self._rows = rows

    def take(self, keys: Collection[str], *, batched: bool = False) -> set[str]:
        """Claim keys until `release`, and return those that this session got.

        Raises:
            BusyError: one of the keys is in a batch of another live session; or, unless `batched`, in a batch that was
                not fetched.
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
                told = "another raggs run has sent these requests in a batch"
                raise BusyError(told, where=self._folder, remedy="wait for it to end; its answers are then cached")
            return False
        if by_batch and not batched:  # the other session was killed, but its batch continues at the provider
            self._noted = keys_in_batches(self._batches)
        changed = rows.execute("UPDATE claims SET session = ? WHERE key = ? AND session = ?", (claim[1], key, *found))
        return changed.rowcount == 1

    def release(self, keys: Collection[str]) -> None:
        """Release keys, because their answers are cached, or there will be none."""
        with self._kept() as rows:
            if rows is not None:
                mine = (self._session, self._session + BATCH)
                rows.executemany(
                    "DELETE FROM claims WHERE key = ? AND session IN (?, ?)", [(key, *mine) for key in keys]
                )

    def close(self) -> None:
        """Release all remaining claims."""
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
        """Yield the claims table, or None after an earlier error. An error in the block makes it None from now on."""
        try:
            yield self._rows
        except (sqlite3.Error, OSError):
            self._rows = None

    def _check_noted(self, keys: Collection[str]) -> None:
        """Raise an error instead of paying for requests in a batch that was sent but not fetched."""
        if found := next((self._noted[key] for key in keys if key in self._noted), None):
            self.release(keys)
            remedy = "set judge.mode: batch to fetch it, or delete the file to pay for the requests again"
            raise BusyError("these requests were sent in a batch that has not been fetched", where=found, remedy=remedy)

    def _file(self, session: str) -> Path:
        return self._folder / f"{session}.lock"

    def _alive(self, session: str) -> bool:
        """Return whether a process holds the lock of a session."""
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
