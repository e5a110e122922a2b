"""Bytes by key in one sqlite file: what can be made again, kept by what it was made of.

Several processes may read and write one file at once. Each row has a sum over its key and its bytes, which is checked
whenever the row is read: a row that was damaged, edited or exchanged for another one is as good as none, and the
listener is told. Nothing here knows what the bytes mean.

Rows in one folder, a file for each thing they were made of: what can be made again, kept between invocations.

A file appears whole or not at all. Its first line holds the hash of all that the rows were made from and the hash of
the rows; both are checked whenever it is read. So a file that was damaged, edited or exchanged for another one is never
used: the listener is told, and the rows are made again. Nothing here knows what the rows mean.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import BaseModel

from raggs.base.errors import NotFoundError, RaggsError
from raggs.base.files import disk, disk_fault, make_folder, read_whole, write_atomic
from raggs.base.hashing import canonical_json, hash_bytes, hash_value
from raggs.base.jsonl import M, all_records, dump_line
from raggs.base.text import plural
from raggs.base.types import Hear, Notice, Notify, deaf, unheard

ASKED = 500  # keys looked up at a time
PATIENCE_S = 30.0  # how long another process may write
TABLE = "CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, value BLOB, sum BLOB) WITHOUT ROWID"


class StoredFile:
    """One file.

    Args:
        file: made with its folder when something is put there.
        remedy: what to do where the disk does not allow it.
        notify: hears of rows that are not what was put there.
    """

    def __init__(self, file: Path, remedy: str, notify: Notify = unheard) -> None:
        self.file = file
        self._remedy, self._notify = remedy, notify

    def find(self, keys: Iterable[str]) -> dict[str, bytes]:
        """What is kept under these keys, as it was put there.

        Raises:
            ProviderError: the file cannot be read, or is damaged.
        """
        wanted = list(dict.fromkeys(keys))
        if not wanted or not self.file.exists():
            return {}
        with self._open() as database:
            rows = list(_rows(database, wanted))
        found = {key: value for key, value, known in rows if isinstance(value, bytes) and known == _sum(key, value)}
        if lost := len(rows) - len(found):
            said = f"{plural(lost, 'row')} {'is' if lost == 1 else 'are'} not what raggs stored there"
            self._notify(f"{self.file}: {said}, so what was kept is made again")
        return found

    def put(self, rows: Mapping[str, bytes]) -> None:
        """Keep all of these or, where the process is killed, none.

        Raises:
            ProviderError: the file cannot be written, or is damaged.
        """
        with self._open() as database, database:
            database.executemany(
                "REPLACE INTO rows VALUES (?, ?, ?)", ((key, value, _sum(key, value)) for key, value in rows.items())
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with disk(self.file, self._remedy):
                make_folder(self.file.parent)
                with closing(sqlite3.connect(self.file, timeout=PATIENCE_S)) as database:
                    database.execute(TABLE)
                    yield database
        except sqlite3.Error as error:
            raise disk_fault(error, self.file, "delete it; what it holds is made again") from error


def _sum(key: str, value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=16, key=hashlib.sha256(key.encode()).digest()).digest()


def _rows(database: sqlite3.Connection, keys: list[str]) -> Iterator[tuple[str, object, object]]:
    for start in range(0, len(keys), ASKED):
        asked = keys[start : start + ASKED]
        marks = ", ".join("?" * len(asked))
        yield from database.execute(f"SELECT key, value, sum FROM rows WHERE key IN ({marks})", asked)  # noqa: S608


FORMAT = 2


class RowStore:
    """Rows by the hash of all that they were made from; the folder is made when some are kept.

    Args:
        folder: of the files.
        hear: is told of each file that cannot be used.
    """

    def __init__(self, folder: Path, hear: Hear = deaf) -> None:
        self._folder, self._hear = folder, hear

    def has(self, causes: object) -> bool:
        """Whether something is kept; reading may still find it damaged."""
        return self._path(_key(causes)).is_file()

    def rows(self, causes: object, model: type[M]) -> list[M] | None:
        """Return the rows; None if there are none, or if the file is not what was stored under these causes."""
        key = _key(causes)
        path = self._path(key)
        try:
            head, _, body = read_whole(path).partition(b"\n")
        except NotFoundError:
            return None
        except RaggsError:
            head, body = b"", b""
        found = all_records(body.splitlines(), model) if head == _seal(key, body) else None
        if found is None:
            self._hear(Notice(f"{path}: not what raggs stored there, so it is not used but computed again"))
        return found

    def keep(self, causes: object, rows: Iterable[BaseModel]) -> None:
        """Keep rows.

        Raises:
            ProviderError: the folder cannot be written.
        """
        key = _key(causes)
        path, body = self._path(key), b"".join(map(dump_line, rows))
        with disk(path, "check the folder's permissions"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, _seal(key, body) + b"\n" + body, durable=False)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key[:32]}.jsonl"


def _key(causes: object) -> str:
    return hash_value([FORMAT, causes])


def _seal(key: str, body: bytes) -> bytes:
    """Return the first line of a file: what its rows were made from, and their hash."""
    return canonical_json({"causes": key, "sha256": hash_bytes(body)}).encode()
