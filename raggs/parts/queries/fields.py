"""Converts mappings with any accepted spelling of keys to `Query` objects, and checks all queries of a run.

Unknown keys become metadata, so nothing is lost. A row without an id gets an id that is derived from its text. If a row
is invalid, the error names file and line: for example, if it has no text, file formats cannot represent its id, or a
nugget pattern matches every text. A lone surrogate outside the id becomes U+FFFD.

A reference is a string, or an object of `text` and optionally `doc_id` and `span`. The form of chunking benchmarks is
accepted, too: an object of `content`, `start_index` and `end_index` in the document that the row names. This module
does not check whether a text occurs at its offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from raggs.base.artifacts import Query, Reference, Span
from raggs.base.errors import DataError
from raggs.base.hashing import canonical_json, hash_bytes
from raggs.base.jsonl import first_fault
from raggs.base.settings import Pattern, SlowPatternError
from raggs.base.text import clean_unicode, id_problem, replace_surrogates, shorten, sound_value
from raggs.parts.queries import QueryReader

DOCUMENT = "corpus_id"  # key of the document to which offsets of references refer
REFERENCE_REMEDY = 'write {"content": "...", "start_index": 0, "end_index": 9}, or only the text'
START, END = "start_index", "end_index"
MAX_SHOWN_CHARS = 60


def reference_of(entry: object, document: object) -> Reference:
    """Return the reference that one entry of the list of references describes.

    Args:
        document: the row's document, to which offsets refer if the entry names no source.

    Raises:
        ValueError: the entry is invalid; the message is worded to follow "reference 1".
    """
    if isinstance(entry, str):
        entry = {"text": entry}
    if not isinstance(entry, Mapping):
        raise ValueError(f"is {_json_type(entry)}, neither a string nor an object")
    name = "content" if "content" in entry else "text"
    text = entry.get(name)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"has no text: its {name} is {'missing' if text is None else 'blank or not a string'}")
    known = {"content", START, END} if name == "content" else {*Reference.model_fields}
    if strange := sorted(map(str, entry.keys() - known)):
        raise ValueError(f"({shorten(text, MAX_SHOWN_CHARS)!r}): its key {strange[0]!r} is unknown")
    try:
        span = _offsets(entry, document) if name == "content" else _span(entry.get("span"))
    except ValueError as error:
        raise ValueError(f"({shorten(text, MAX_SHOWN_CHARS)!r}): {error}") from error
    doc_id = entry.get("doc_id")
    if not isinstance(doc_id, str | None):
        raise ValueError(f"({shorten(text, MAX_SHOWN_CHARS)!r}): its doc_id is {_json_type(doc_id)}")
    return Reference(text=text, doc_id=doc_id, span=span)


def _offsets(entry: Mapping[str, object], document: object) -> Span | None:
    if entry.get(START) is None and entry.get(END) is None:
        return None
    start, end = _parse_bounds(entry, START, END)
    if not isinstance(document, str) or not document.strip():
        raise ValueError(f"{START} and {END} need {DOCUMENT}, the document to which they refer")
    return Span(source=document, start=start, end=end)


def _span(span: object) -> Span | None:
    if span is None:
        return None
    if not isinstance(span, Mapping) or span.keys() != Span.model_fields.keys():
        raise ValueError("its span is not an object of source, start and end")
    if not isinstance(source := span["source"], str) or not source:
        raise ValueError("the source of its span is not a document name")
    start, end = _parse_bounds(span, "start", "end")
    return Span(source=source, start=start, end=end)


def _parse_bounds(entry: Mapping[str, object], first: str, last: str) -> tuple[int, int]:
    start, end = (_parse_offset(entry, name) for name in (first, last))
    if end <= start:
        raise ValueError(f"its range from {start} to {end} is empty")
    return start, end


def _parse_offset(entry: Mapping[str, object], name: str) -> int:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        said = "missing" if value is None else f"{shorten(repr(value), 30)}, not a whole number of at least 0"
        raise ValueError(f"its {name} is {said}")
    return value


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, Mapping):
        return "an object"
    return "a number" if isinstance(value, int | float) else "a string" if isinstance(value, str) else "a list"


ALIASES = {
    "qid": ("_id", "id", "qid", "query_id"),
    "text": ("text", "query", "question", "user_input"),
    "language": ("language", "lang"),
    "answer": ("answer", "expected_answer", "reference_answer"),
    "references": ("references",),
    "nuggets": ("nuggets",),
    "valid_from": ("valid_from",),
    "valid_until": ("valid_until",),
    "depends_on": ("depends_on",),
    "evidence": ("evidence",),
    "history": ("history",),
    "metadata": ("metadata",),
}
MAX_QUESTION_CHARS = 100_000  # limit of a query, because each judgment and search reads the whole query
ROW_REMEDY = 'expected {"_id": "...", "text": "..."}'


def query_of(row: Mapping[str, Any], path: Path, line: int) -> Query:
    """Return the query that a row describes; unknown keys become metadata.

    Raises:
        DataError: the text is missing, empty or too long, the id is empty or invalid, a reference or a pattern is
            invalid, a field has a wrong type, or the metadata cannot be written as JSON.
    """
    names = {field: next((name for name in spellings if name in row), None) for field, spellings in ALIASES.items()}
    kept = {field: name for field, name in names.items() if name is not None and row[name] not in (None, "")}
    values: dict[str, Any] = {
        field: row[name] if field == "qid" else sound_value(row[name]) for field, name in kept.items()
    }
    _check_required(values, names["qid"] is not None, path, line)
    if names["qid"] is None:
        values["qid"] = made_id(values["text"])
    values["references"] = list(_references(values, row.get(DOCUMENT), path, line))
    values["nuggets"] = [_with_list(entry) for entry in _entries(values.get("nuggets"))]
    if "depends_on" in values:
        values["depends_on"] = _entries(values["depends_on"])
    if "history" in values:
        values["history"] = [_earlier_turn(each) for each in _entries(values["history"])]
    rest = {key: value for key, value in row.items() if key not in names.values()}
    extra = {
        replace_surrogates(key) if isinstance(key, str) else key: sound_value(value) for key, value in rest.items()
    }
    if isinstance(values.get("metadata", {}), Mapping):
        values["metadata"] = {**values.get("metadata", {}), **extra}
    try:
        query = Query.model_validate(values)
        canonical_json(query.metadata).encode()
    except ValidationError as error:
        message = f"query {values['qid']!r}: {first_fault(error)}"
        raise DataError(message, where=path, line=line, remedy=ROW_REMEDY) from error
    except (TypeError, ValueError) as error:
        message = f"query {values['qid']!r}: its metadata cannot be written as JSON ({error})"
        raise DataError(message, where=path, line=line, remedy="use strings, numbers, lists and mappings") from error
    check_length(query.earlier_turns, path, line, "the earlier turns of the query have")
    _check_patterns(query, path, line)
    return query


def made_id(text: str) -> str:
    """Return the id for a query without an id; it is derived from the text, so it is the same in any file."""
    return f"q-{hash_bytes(text.encode())[:12]}"


def check_length(text: str, path: Path | str, line: int, said: str = "the query has") -> None:
    """Check that a query, or all of its earlier turns, have at most `MAX_QUESTION_CHARS` characters.

    Raises:
        DataError: the text is longer.
    """
    if len(text) > MAX_QUESTION_CHARS:
        message = f"{said} {len(text):,} characters, but the maximum is {MAX_QUESTION_CHARS:,}"
        raise DataError(message, where=path, line=line, remedy="shorten the query; documents belong in the corpus")


def _check_required(values: Mapping[str, Any], named: bool, path: Path, line: int) -> None:
    """Check that the text is present; if the row has a key for the id, check that the id is present, too."""
    for field in ("qid", "text") if named else ("text",):
        value = values.get(field)
        if not isinstance(value, str) or not value.strip():
            known = ", ".join(ALIASES[field][:-1]) + " or " + ALIASES[field][-1]
            raise DataError(f"{known}: missing, empty, or not a string", where=path, line=line, remedy=ROW_REMEDY)
    check_length(values["text"], path, line)
    if not clean_unicode(values["text"]).strip():
        message = "the query contains no visible character"
        raise DataError(message, where=path, line=line, remedy="add a text, or remove the line")
    if named and (problem := id_problem(values["qid"], first=True)):
        raise DataError(f"query id {values['qid']!a} {problem}", where=path, line=line, remedy="rename the id")


def _entries(found: Any) -> list[Any]:
    """Return a list of entries; a single entry becomes a list of one."""
    return [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]


def _references(values: Mapping[str, Any], document: object, path: Path, line: int) -> Iterator[Reference]:
    """Yield the references (see `reference_of`).

    Raises:
        DataError: an entry is not a valid reference; the error names its number.
    """
    for number, entry in enumerate(_entries(values.get("references")), start=1):
        try:
            yield reference_of(entry, document)
        except ValueError as error:
            message = f"query {values['qid']!r}: reference {number} {error}"
            raise DataError(message, where=path, line=line, remedy=REFERENCE_REMEDY) from error


def _with_list(entry: Any) -> Any:
    """Return a nugget as a mapping with a list of patterns, also if the file contains only a single pattern."""
    if isinstance(entry, str):
        return {"any": [entry]}
    if isinstance(entry, Mapping) and isinstance(entry.get("any"), str):
        return {**entry, "any": [entry["any"]]}
    return entry


def _earlier_turn(entry: object) -> object:
    """Return an earlier turn as a mapping of role and text. A string is a turn of the user; `content` means `text`."""
    if isinstance(entry, str):
        return {"role": "user", "text": entry}
    if isinstance(entry, Mapping) and "content" in entry and "text" not in entry:
        return {("text" if key == "content" else key): value for key, value in entry.items()}
    return entry


def _check_patterns(query: Query, path: Path, line: int) -> None:
    for pattern in (pattern for nugget in query.nuggets for pattern in nugget.any):
        problem, remedy = None, "escape special characters, for example \\( for a bracket"
        try:
            if Pattern(pattern).within(""):
                problem, remedy = "matches every text", "require at least one character"
        except ValueError as error:
            problem = f"is not a regular expression ({error})"
        except SlowPatternError as error:
            problem, remedy = f"cannot be searched for: {error}", "rewrite it without nested repetition"
        if problem:
            message = f"query {query.qid}: nugget {shorten(pattern, 60)!r} {problem}"
            raise DataError(message, where=path, line=line, remedy=remedy)


def load_queries(reader: QueryReader, path: Path | str) -> dict[str, Query]:
    """Return every query by id, sorted by id (see `load_numbered`)."""
    return {qid: query for qid, (_, query) in load_numbered(reader, path).items()}


def load_numbered(reader: QueryReader, path: Path | str) -> dict[str, tuple[int, Query]]:
    """Return the line (or position) and the query by id, sorted by id.

    Args:
        reader: source of the queries.
        path: name of the source, for messages.

    Raises:
        NotFoundError, DataError: raised by the reader; or the file has a duplicate id, a query that is too long, or no
            query at all.
    """
    found: dict[str, tuple[int, Query]] = {}
    for line, query in reader.queries():
        check_length(query.text, path, line)
        if query.qid in found:
            first = found[query.qid][0]
            raise DataError(
                f"duplicate query id {query.qid} (first in line {first})",
                where=path,
                line=line,
                remedy="use a unique id for each query",
            )
        found[query.qid] = (line, query)
    if not found:
        raise DataError("contains no queries", where=path, remedy="add at least one query")
    return {qid: found[qid] for qid in sorted(found)}
