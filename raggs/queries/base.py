"""What a set of questions is: queries from a file, each complete with what a judge may need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from raggs.adapter import Adapter, AdapterConfig
from raggs.artifacts import Query
from raggs.errors import DataError, UsageError
from raggs.inputs import read_whole

ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".yaml": "yaml", ".yml": "yaml"}


class QueryReader(Adapter, ABC):
    """A source of queries. Built as ``cls(config)``."""

    def __init__(self, config: AdapterConfig) -> None:
        self.config = config

    @abstractmethod
    def queries(self) -> Iterator[tuple[int, Query]]:
        """Line (or position) and query, in the file's order.

        Raises:
            NotFoundError: the file is missing or unreadable.
            DataError: a query is malformed; names file and line.
        """


def read_text(path: Path) -> str:
    """A whole file of questions, for formats that are not read line by line. Line ends are not translated.

    Raises:
        NotFoundError: it is missing or unreadable.
        DataError: it is no file, or not UTF-8.
    """
    try:
        return read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError("not UTF-8", where=path, line=line, remedy="save the file as UTF-8") from error


def format_of(path: Path) -> str:
    """The format of questions that a file's ending says.

    Raises:
        UsageError: it says none.
    """
    name = ENDINGS.get(path.suffix.lower())
    if name is None:
        raise UsageError(f"{path}: no format of questions", remedy=f"use one of {', '.join(ENDINGS)}")
    return name
