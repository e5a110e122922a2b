"""Rows in one folder, a file for each thing they were made of: what can be made again, kept between invocations.

A file appears whole or not at all. Its first line holds the hash of all that the rows were made from and the hash of
the rows; both are checked whenever it is read. So a file that was damaged, edited or exchanged for another one is never
used: the listener is told, and the rows are made again. Nothing here knows what the rows mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from raggs.base.atomic import disk, write_atomic
from raggs.base.bulk import all_records
from raggs.base.errors import NotFoundError, RaggsError
from raggs.base.hashing import canonical_json, hash_bytes, hash_value
from raggs.base.inputs import read_whole
from raggs.base.jsonl import M, dump_line
from raggs.base.progress import Hear, Notice, deaf

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
