"""Bytes by key in one sqlite file: what can be made again, kept by what it was made of.

Several processes may read and write one file at once. Nothing here knows what the bytes mean; whoever reads them looks
whether they are still of use.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from raggs.atomic import disk, disk_fault, make_folder

ASKED = 500  # keys looked up at a time
PATIENCE_S = 30.0  # how long another process may write
TABLE = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID"


class Kept:
    """One file.

    Args:
        file: made with its folder when something is put there.
        remedy: what to do where the disk does not allow it.
    """

    def __init__(self, file: Path, remedy: str) -> None:
        self.file = file
        self._remedy = remedy

    def find(self, keys: Iterable[str]) -> dict[str, bytes]:
        """What is kept under these keys.

        Raises:
            ProviderError: the file cannot be read, or is damaged.
        """
        wanted = list(dict.fromkeys(keys))
        if not wanted or not self.file.exists():
            return {}
        with self._open() as database:
            return dict(_rows(database, wanted))

    def put(self, rows: Mapping[str, bytes]) -> None:
        """Keep all of these or, where the process is killed, none.

        Raises:
            ProviderError: the file cannot be written, or is damaged.
        """
        with self._open() as database, database:
            database.executemany("REPLACE INTO vectors VALUES (?, ?)", rows.items())

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


def _rows(database: sqlite3.Connection, keys: list[str]) -> Iterator[tuple[str, bytes]]:
    for start in range(0, len(keys), ASKED):
        asked = keys[start : start + ASKED]
        marks = ", ".join("?" * len(asked))
        rows = database.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", asked)  # noqa: S608
        yield from ((key, row) for key, row in rows if isinstance(row, bytes))
