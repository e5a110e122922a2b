"""All queries of a run, checked together."""

from __future__ import annotations

from pathlib import Path

from raggs.base.artifacts import Query
from raggs.base.errors import DataError
from raggs.parts.queries.base import QueryReader
from raggs.parts.queries.fields import check_length


def load_queries(reader: QueryReader, path: Path | str) -> dict[str, Query]:
    """Every query by its id, sorted by id; see `load_numbered`."""
    return {qid: query for qid, (_, query) in load_numbered(reader, path).items()}


def load_numbered(reader: QueryReader, path: Path | str) -> dict[str, tuple[int, Query]]:
    """Every query by its id, sorted by id, after its line (or position) in the file.

    Args:
        reader: gives the queries.
        path: where they are from, for messages.

    Raises:
        NotFoundError, DataError: as the reader; an id stands twice, a query is too long, or there is no query at all.
    """
    found: dict[str, tuple[int, Query]] = {}
    for line, query in reader.queries():
        check_length(query.text, path, line)
        if query.qid in found:
            first = found[query.qid][0]
            raise DataError(
                f"query id {query.qid} stands twice (first in line {first})",
                where=path,
                line=line,
                remedy="give each query an id of its own",
            )
        found[query.qid] = (line, query)
    if not found:
        raise DataError("holds no queries", where=path, remedy="add at least one")
    return {qid: found[qid] for qid in sorted(found)}
