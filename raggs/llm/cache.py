"""Answers that were paid for, on disk.

diskcache would read a pickle that someone planted in its database, and a pickle runs code; so the `Disk` here stores
text in the database itself and refuses everything else: no pickles, no side files. Nothing is ever evicted. A row that
is not what was stored is a miss, and the next answer replaces it. Writes survive a killed process at once; a power cut
may cost the latest few.

Who asks what just now, among all runs that share a cache of answers: a question on its way is not sent twice.

A claim is a row with the question's key and the session that asks it. A session lives as long as it holds the lock on
its file, which the system lets go when its process ends, however it ends; so a run that was killed blocks nobody. A
claim protects money, not results: where claims cannot be kept, nobody waits, and the same question may be paid twice.

Who meets a question that is on its way in a batch, another run's or that of a run that was stopped, does not wait for
hours and does not pay twice: it is told so.
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

RAW_MODE = 1  # diskcache's mode for values that lie in the database as they are
FOLDER_MODE = 0o700
DATABASE = "cache.db"
LONGEST_PAYER = 64  # characters
MAX_AMOUNT = 1e12  # tokens or USD of one answer
PATIENCE_S = 30.0  # how long another process may lock the database
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class RefusedRow(OSError):
    """A row that this cache cannot have written. An OSError, since diskcache takes those for a miss."""


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Keys and values are text in the database, or they are refused."""

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
        """Nothing lies outside the database, so a row that names a file does not get it deleted."""


@dataclass(frozen=True)
class CachedAnswer:
    """A valid answer: the model's words, what they took and what they cost.

    Attributes:
        ms: the time of the calls, if known.
        by: who answered, if it was recorded.
        payer: the run that paid for it, by its ledger's name; empty if that was not recorded.
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
        """The words `raw` of `model`, and what they took."""
        return cls(raw, model, spent.prompt_tokens, spent.completion_tokens, spent.usd, _round_ms(ms), by, payer)

    @property
    def answerer(self) -> Answerer:
        """Who answered, as far as it was recorded."""
        return self.by or Answerer(asked=self.model)

    @property
    def row(self) -> str:
        """The text that the cache keeps."""
        found = {name: value for name, value in vars(self).items() if value is not None and value != ""}
        found["raw"] = self.raw
        return canonical_json({**found, **({} if self.by is None else {"by": self.by.stated})})

    @property
    def took(self) -> CallUsage:
        """What it took when it was paid for; how many calls is not kept."""
        return CallUsage(1, self.prompt_tokens, self.ms, self.usd)


class AnswerCache:
    """Answers by key. Opened once; safe for several processes at a time."""

    def __init__(self, folder: Path) -> None:
        """Open the cache in `folder`, made (mode 0700) if missing.

        Raises:
            ProviderError: the folder cannot be written, or holds a damaged database.
            BusyError: another process holds the database, for longer than `PATIENCE_S`.
        """
        self.folder = folder
        self._bad: set[str] = set()
        with self._guarded():
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            with suppress(PermissionError):  # someone else's folder, shared on purpose
                folder.chmod(FOLDER_MODE)
            _wait_for(folder / DATABASE)
            self._cache = diskcache.Cache(
                str(folder), disk=TextDisk, eviction_policy="none", cull_limit=0, timeout=PATIENCE_S
            )

    def get(self, key: str) -> CachedAnswer | None:
        """The entry of `key`; None where there is none, or none that can be read."""
        with self._guarded():
            text = self._cache.get(key)
        found = None if text is None else _parse(text)
        if text is not None and found is None:
            self._bad.add(key)
        return found

    @property
    def damaged(self) -> int:
        """How many entries were looked up that cannot be used."""
        return len(self._bad)

    def put(self, key: str, entry: CachedAnswer) -> None:
        """Keep an entry, in place of an older one."""
        self.put_all({key: entry})

    def put_all(self, entries: Mapping[str, CachedAnswer]) -> None:
        """Keep entries that one call has brought: a process that is killed has kept all of them, or none."""
        with self._guarded(), self._alone():
            for key, entry in entries.items():
                self._cache.set(key, entry.row)

    def clear(self) -> int:
        """Forget everything; returns how many rows there were."""
        with self._guarded():
            return int(self._cache.clear())

    def stats(self) -> CacheStats:
        """What it holds; reads every row."""
        with self._guarded():
            entries = [entry for key in self._cache if key and (entry := self.get(key))]
            usd = sum(entry.usd for entry in entries)
            return CacheStats(len(entries), int(self._cache.volume()), usd, len(self._cache) - len(entries))

    def close(self) -> None:
        """Close the database."""
        self._cache.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A transaction. Who has waited for one in vain does not wait again with the next answer."""
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
                    f"the cache of answers is locked by another process, for more than {PATIENCE_S:g} s",
                    where=self.folder / DATABASE,
                    remedy="end that process, or wait for it and run again",
                ) from None
            if lacks_handles():
                raise no_handles(self.folder / DATABASE) from None
            told = str(error)
            remedy = f"make room or check the folder; a damaged {DATABASE} must be deleted (its answers are paid again)"
            raise ProviderError(
                f"the cache of answers cannot be used: {told}", where=self.folder, remedy=remedy
            ) from None


_given_up: dict[Path, float] = {}  # databases, and when they were waited for in vain


def _wait_for(database: Path) -> None:
    """Wait until nobody writes into a database, by beginning to: where there is a log of writes, readers never wait.

    diskcache writes when it opens a database, and would wait for a minute and more with each of its statements.
    """
    if database.exists():
        waited = time.monotonic() - _given_up.get(database, -math.inf) < PATIENCE_S  # by the question before
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
    """A count or a price, as an answer can have.

    Raises:
        ValueError: negative, infinite or no number.
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
    """What the cache holds: `entries` answers in `bytes` on the disk, which cost `usd`; and rows that are none."""

    entries: int
    bytes: int
    usd: float
    damaged: int = 0


def cache_stats(folder: Path) -> CacheStats:
    """What the cache in `folder` holds; zeros where there is none.

    Raises:
        ProviderError: it cannot be read.
    """
    return CacheStats(0, 0, 0.0) if (cache := _existing(folder)) is None else _then_close(cache, cache.stats)


def clear_cache(folder: Path) -> int:
    """Forget all answers in `folder` (the guard's key stays); returns how many rows there were.

    Raises:
        ProviderError: it cannot be written.
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
FIRST_LOOK_S, LAST_LOOK_S = 0.05, 1.0  # pauses between two looks at whether another run has its answer
OLD_S = 86_400.0  # after so long the file of a dead session goes
BUSY_S = 5.0
TABLE = "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, session TEXT NOT NULL)"


BATCH = " batch"  # after the session of a claim that a batch will answer


@asynccontextmanager
async def claim_keys(
    claims: AnswerClaims | None, keys: Collection[str], *, batched: bool = False
) -> AsyncIterator[set[str]]:
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


class AnswerClaims:
    """The claims of one session, beside the cache in `cache_folder`."""

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
            self._noted = keys_in_batches(self._batches)
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
