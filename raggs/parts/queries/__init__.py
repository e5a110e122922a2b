"""Query readers: base class and registry. A query reader yields the queries of a file, with all fields a judge may
need.

`made_notes` describes how generated queries were made; reports print this with the scores.
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
    """A source of queries. Created as ``cls(config)``."""

    def __init__(self, config: AdapterConfig) -> None:
        self.config = config

    @abstractmethod
    def queries(self) -> Iterator[tuple[int, Query]]:
        """Yield each query with its line number (or its position), in the file's order; for traces, by frequency.

        Raises:
            NotFoundError: the file is missing or unreadable.
            DataError: a query is malformed; the error names file and line.
        """


def format_of(path: Path) -> str:
    """Return the query format of a file, by its suffix.

    Raises:
        UsageError: the suffix is unknown.
    """
    name = FORMAT_BY_SUFFIX.get(path.suffix.lower())
    if name is None:
        raise UsageError(f"{path}: unknown query format", remedy=f"use one of {', '.join(FORMAT_BY_SUFFIX)}")
    return name


ORIGIN_KEY = "made"  # metadata key that states how a query was made


def made_notes(queries: Iterable[Query]) -> Iterator[str]:
    """Yield a phrase for each way in which queries were made; queries without this information are ignored."""
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
        "traces": "raggs.parts.queries.traces.log:TraceQueries",
        "yaml": "raggs.parts.queries.formats:YamlQueries",
    },
)
