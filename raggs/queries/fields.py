"""From a mapping of any of the accepted spellings to a `Query`: the one place that knows the spellings.

Whatever has no known spelling becomes metadata, so nothing that an author wrote is lost. What cannot be right (no
text, a nugget that is no pattern or fits every text) is said with file and line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from raggs.artifacts import Query
from raggs.errors import DataError
from raggs.hashing import canonical_json
from raggs.jsonl import first_fault
from raggs.text import shorten

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
    _check_required(values, path, line)
    values["references"] = _entries(values.get("references"), "text")
    values["nuggets"] = [_with_list(entry) for entry in _entries(values.get("nuggets"), "any")]
    extra = {key: value for key, value in row.items() if key not in names.values()}
    if isinstance(values.get("metadata", {}), Mapping):
        values["metadata"] = {**values.get("metadata", {}), **extra}
    try:
        query = Query.model_validate(values)
        canonical_json(query.metadata).encode()
    except ValidationError as error:
        message = f"query {values['qid']!r}: {first_fault(error)}"
        raise DataError(message, where=path, line=line, remedy=REMEDY) from error
    except (TypeError, ValueError) as error:
        message = f"query {values['qid']!r}: its metadata cannot be written as JSON ({error})"
        raise DataError(message, where=path, line=line, remedy="use texts, numbers, lists and mappings only") from error
    _check_patterns(query, path, line)
    return query


def _check_required(values: Mapping[str, Any], path: Path, line: int) -> None:
    for field in ("qid", "text"):
        value = values.get(field)
        if not isinstance(value, str) or not value.strip():
            known = ", ".join(ALIASES[field][:-1]) + " or " + ALIASES[field][-1]
            raise DataError(f"{known}: missing, empty, or not a text", where=path, line=line, remedy=REMEDY)
    if any(char.isspace() for char in values["qid"]):
        message = f"query id {values['qid']!r} holds white space, which TREC files cannot carry"
        raise DataError(message, where=path, line=line, remedy="rename it")


def _entries(found: Any, field: str) -> list[Any]:
    """A list of mappings from a list, or a single entry; a plain text stands for a mapping with `field` alone."""
    entries = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
    return [{field: entry} if isinstance(entry, str) else entry for entry in entries]


def _with_list(entry: Any) -> Any:
    """A nugget whose single pattern is written without a list."""
    if isinstance(entry, Mapping) and isinstance(entry.get("any"), str):
        return {**entry, "any": [entry["any"]]}
    return entry


def _check_patterns(query: Query, path: Path, line: int) -> None:
    for pattern in (pattern for nugget in query.nuggets for pattern in nugget.any):
        problem, remedy = None, "escape it, for example \\( for a bracket"
        try:
            if re.compile(pattern).search("") is not None:
                problem, remedy = "fits every text", "ask for at least one character"
        except (re.error, OverflowError, RecursionError) as error:
            problem = f"is no regular expression ({error})"
        if problem:
            message = f"query {query.qid}: nugget {shorten(pattern, 60)!r} {problem}"
            raise DataError(message, where=path, line=line, remedy=remedy)
