"""Vectors of texts, kept by text: ways of cutting that share a chunk share its vector, now and in the next comparison.

One database an embedder, below the caches of embeddings; whatever it holds can be made again. A row of another
length than the embedder's is made again, too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from raggs.arrays import Vectors
from raggs.atomic import disk, disk_fault, make_folder
from raggs.embedders.base import Embedder
from raggs.hashing import hash_value

STEP = 256  # texts embedded before they are kept: what a kill costs at most
ASKED = 500  # keys looked up at a time
PATIENCE_S = 30.0  # how long another process may write
TABLE = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID"
REMEDY = "choose another --out"


class KeptVectors:
    """The vectors of one embedder.

    Args:
        embedder: makes them.
        folder: of the database.
        tell: hears how many of how many texts are embedded.
    """

    def __init__(self, embedder: Embedder, folder: Path, tell: Callable[[int, int], None]) -> None:
        self._embedder = embedder
        self._file = folder / f"texts-{hash_value(embedder.causes())[:16]}.sqlite"
        self._tell = tell

    def of(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text, shape (texts, dims).

        Raises:
            ProviderError: the embedder failed, or the folder cannot be written.
        """
        keys = [hash_value(text) for text in texts]
        with self._open() as database:
            known = dict(self._known(database, sorted(set(keys))))
            lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
            for part in self._steps(list(lacking.items())):
                with database:
                    database.executemany("REPLACE INTO vectors VALUES (?, ?)", part.items())
                known |= part
        rows = np.frombuffer(b"".join(known[key] for key in keys), dtype="<f4")
        return rows.reshape(len(texts), self._embedder.dims).astype(np.float32)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with disk(self._file, REMEDY):
                make_folder(self._file.parent)
                with closing(sqlite3.connect(self._file, timeout=PATIENCE_S)) as database:
                    database.execute(TABLE)
                    yield database
        except sqlite3.Error as error:
            raise disk_fault(error, self._file, "delete it; its vectors are made again") from error

    def _known(self, database: sqlite3.Connection, keys: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        size = 4 * self._embedder.dims
        for start in range(0, len(keys), ASKED):
            asked = keys[start : start + ASKED]
            marks = ", ".join("?" * len(asked))
            rows = database.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", asked)  # noqa: S608
            yield from ((key, row) for key, row in rows if isinstance(row, bytes) and len(row) == size)

    def _steps(self, lacking: Sequence[tuple[str, str]]) -> Iterator[dict[str, bytes]]:
        """The vectors of texts that are not known, some at a time."""
        for start in range(0, len(lacking), STEP):
            part = lacking[start : start + STEP]
            vectors = self._embedder.embed([text for _, text in part]).astype("<f4")
            yield {key: vector.tobytes() for (key, _), vector in zip(part, vectors, strict=True)}
            self._tell(start + len(part), len(lacking))
