"""Rows in one folder, a file for each thing they were made of: what can be made again, kept between invocations.

A file appears whole or not at all; a damaged one is as good as none. Nothing here knows what the rows mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from raggs.atomic import disk, write_atomic
from raggs.errors import RaggsError
from raggs.hashing import hash_value
from raggs.jsonl import M, dump_line, read_records

FORMAT = 1


class RowStore:
    """Rows by the hash of all that they were made from; the folder is made when some are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, causes: object) -> bool:
        """Whether something is kept; reading may still find it damaged."""
        return self._path(causes).is_file()

    def rows(self, causes: object, model: type[M]) -> list[M] | None:
        """What is kept; None where there is nothing, or nothing that can be read."""
        path = self._path(causes)
        try:
            return list(read_records(path, model)) if path.is_file() else None
        except RaggsError:
            return None  # made again

    def keep(self, causes: object, rows: Iterable[BaseModel]) -> None:
        """Keep rows.

        Raises:
            ProviderError: the folder cannot be written.
        """
        path = self._path(causes)
        with disk(path, "check the folder's permissions"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, b"".join(map(dump_line, rows)), durable=False)

    def _path(self, causes: object) -> Path:
        return self._folder / f"{hash_value([FORMAT, causes])[:32]}.jsonl"
