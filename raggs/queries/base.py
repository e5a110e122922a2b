"""What a set of questions is: queries from a file, each complete with what a judge may need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from raggs.artifacts import Query


class QueryReader(Protocol):
    """A source of queries. Built as ``cls(config)``."""

    def queries(self) -> Iterator[tuple[int, Query]]:
        """Line (or position) and query, in the file's order.

        Raises:
            NotFoundError: the file is missing or unreadable.
            DataError: a query is malformed; names file and line.
        """
        ...
