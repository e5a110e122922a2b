"""Query readers by name: one file and one line each (see `QueryReader`).

What a set of questions is: queries from a file, each complete with what a judge may need.

What questions say of how they were made, for every report that gives scores over them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.errors import UsageError
from raggs.base.registry import Registry
from raggs.base.text import plural

FORMAT_BY_SUFFIX = {".csv": "csv", ".jsonl": "jsonl", ".yaml": "yaml", ".yml": "yaml"}


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


def format_of(path: Path) -> str:
    """The format of questions that a file's ending says.

    Raises:
        UsageError: it says none.
    """
    name = FORMAT_BY_SUFFIX.get(path.suffix.lower())
    if name is None:
        raise UsageError(f"{path}: no format of questions", remedy=f"use one of {', '.join(FORMAT_BY_SUFFIX)}")
    return name


ORIGIN_KEY = "made"  # the key in a question's metadata


def made_notes(queries: Iterable[Query]) -> Iterator[str]:
    """A sentence for each way in which some of the questions were made; none about questions that do not say."""
    counts = Counter(str(query.metadata[ORIGIN_KEY]) for query in queries if query.metadata.get(ORIGIN_KEY))
    for how, count in counts.items():
        yield f"{plural(count, 'question')} {how}"


REGISTRY: Registry[QueryReader] = Registry(
    "query format",
    "queries",
    "raggs.parts.queries:QueryReader",
    {
        "csv": "raggs.parts.queries.formats:CsvQueries",
        "jsonl": "raggs.parts.queries.formats:JsonlQueries",
        "yaml": "raggs.parts.queries.formats:YamlQueries",
    },
)
