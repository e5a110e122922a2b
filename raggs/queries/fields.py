"""From a mapping of any of the accepted spellings to a `Query`: the one place that knows the spellings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from raggs.artifacts import Query
from raggs.errors import DataError
from raggs.jsonl import explain

ALIASES = {
    "qid": ("_id", "id", "qid", "query_id"),
    "text": ("text", "query", "question", "user_input"),
    "language": ("language", "lang"),
    "answer": ("answer", "expected_answer", "reference_answer"),
    "references": ("references",),
    "nuggets": ("nuggets",),
    "metadata": ("metadata",),
}
REMEDY = 'expected {"_id": "...", "text": "..."}'


def query_of(row: Mapping[str, Any], path: Path, line: int) -> Query:
    """The query that a row describes; fields of no known spelling go to its metadata.

    Raises:
        DataError: an id or text is missing or empty, a pattern is no regular expression, a field has a wrong type.
    """
    names = {field: next((name for name in spellings if name in row), None) for field, spellings in ALIASES.items()}
    values = {field: row[name] for field, name in names.items() if name is not None and row[name] not in (None, "")}
    for field in ("qid", "text"):
        if not isinstance(values.get(field), str) or not values[field].strip():
            known = " or ".join(ALIASES[field][:3])
            raise DataError(f"{field} ({known}) is missing, empty, or not a text", where=path, line=line, remedy=REMEDY)
    if values["qid"] != "".join(values["qid"].split()):
        raise DataError(f"query id {values['qid']!r} holds white space, which TREC files cannot carry", where=path, line=line, remedy="rename it")
    values["references"] = [{"text": entry} if isinstance(entry, str) else entry for entry in _entries(values, "references")]
    values["nuggets"] = [{"any": [entry]} if isinstance(entry, str) else entry for entry in _entries(values, "nuggets")]
    used = {name for name in names.values() if name}
    extra = {key: value for key, value in row.items() if key not in used}
    values["metadata"] = {**(values.get("metadata") or {}), **extra}
    try:
        query = Query.model_validate(values)
    except ValidationError as error:
        raise DataError(f"query {values['qid']}: {explain(error)}", where=path, line=line, remedy=REMEDY) from error
    _check_patterns(query, path, line)
    return query


def _entries(values: Mapping[str, Any], field: str) -> list[Any]:
    found = values.get(field) or []
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _check_patterns(query: Query, path: Path, line: int) -> None:
    for nugget in query.nuggets:
        for pattern in nugget.any:
            try:
                re.compile(pattern)
            except re.error as error:
                raise DataError(
                    f"query {query.qid}: nugget {pattern!r} is no regular expression ({error})", where=path, line=line, remedy="escape it, e.g. \\("
                ) from error
