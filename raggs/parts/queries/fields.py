"""From a mapping of any of the accepted spellings to a `Query`: the one place that knows the spellings.

Whatever has no known spelling becomes metadata, so nothing that an author wrote is lost. A row without a place for an
id gets one that is made of its question. What cannot be right (no text, an id that files would lose, a nugget that is
no pattern or fits every text) is said with file and line; half of a surrogate pair becomes U+FFFD.

References of a question in any of the accepted forms, and in words what is wrong with one that has none of them.

A form is a text; an object of `text` and optionally `doc_id` and `span`; or, as chunking benchmarks have it, of
`content`, `start_index` and `end_index` in the document that the row names. Whether a text stands at its place is not
known here.

All queries of a run, checked together.
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

DOCUMENT = "corpus_id"  # names the document that offsets of references count in
REFERENCE_REMEDY = 'write {"content": "...", "start_index": 0, "end_index": 9}, or the text alone'
START, END = "start_index", "end_index"
MAX_SHOWN_CHARS = 60


def reference_of(entry: object, document: object) -> Reference:
    """The reference that an entry of a list of references describes.

    Args:
        document: that offsets without a name count in, as the row has it.

    Raises:
        ValueError: it describes none, in words that go on "reference 1".
    """
    if isinstance(entry, str):
        entry = {"text": entry}
    if not isinstance(entry, Mapping):
        raise ValueError(f"is {_json_type(entry)}, neither a text nor an object")
    name = "content" if "content" in entry else "text"
    text = entry.get(name)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"has no text: its {name} is {'missing' if text is None else 'blank or no text'}")
    known = {"content", START, END} if name == "content" else {*Reference.model_fields}
    if strange := sorted(map(str, entry.keys() - known)):
        raise ValueError(f"({shorten(text, MAX_SHOWN_CHARS)!r}): its key {strange[0]!r} means nothing here")
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
        raise ValueError(f"{START} and {END} need {DOCUMENT}, the document that they count in")
    return Span(source=document, start=start, end=end)


def _span(span: object) -> Span | None:
    if span is None:
        return None
    if not isinstance(span, Mapping) or span.keys() != Span.model_fields.keys():
        raise ValueError("its span is no object of source, start and end")
    if not isinstance(source := span["source"], str) or not source:
        raise ValueError("the source of its span is no name of a document")
    start, end = _parse_bounds(span, "start", "end")
    return Span(source=source, start=start, end=end)


def _parse_bounds(entry: Mapping[str, object], first: str, last: str) -> tuple[int, int]:
    start, end = (_parse_offset(entry, name) for name in (first, last))
    if end <= start:
        raise ValueError(f"it goes from {start} to {end}, and so holds nothing")
    return start, end


def _parse_offset(entry: Mapping[str, object], name: str) -> int:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        said = "missing" if value is None else f"{shorten(repr(value), 30)}, which is no whole number from 0 up"
        raise ValueError(f"its {name} is {said}")
    return value


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a truth value"
    return "a number" if isinstance(value, int | float) else "a text" if isinstance(value, str) else "a list"


ALIASES = {
    "qid": ("_id", "id", "qid", "query_id"),
    "text": ("text", "query", "question", "user_input"),
    "language": ("language", "lang"),
    "answer": ("answer", "expected_answer", "reference_answer"),
    "references": ("references",),
    "nuggets": ("nuggets",),
    "metadata": ("metadata",),
}
MAX_QUESTION_CHARS = 100_000  # of a question; each judgment and each search reads all of it
ROW_REMEDY = 'expected {"_id": "...", "text": "..."}'


def query_of(row: Mapping[str, Any], path: Path, line: int) -> Query:
    """The query that a row describes; fields of no known spelling go to its metadata.

    Raises:
        DataError: an id or text is missing or empty, a pattern is no regular expression, a field has a wrong type.
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
        raise DataError(message, where=path, line=line, remedy="use texts, numbers, lists and mappings only") from error
    _check_patterns(query, path, line)
    return query


def made_id(text: str) -> str:
    """The id of a question that has none: of its text alone, so that it stays the same in any file."""
    return f"q-{hash_bytes(text.encode())[:12]}"


def check_length(text: str, path: Path | str, line: int) -> None:
    """
    Raises:
        DataError: the question is longer than `MAX_QUESTION_CHARS`.
    """
    if len(text) > MAX_QUESTION_CHARS:
        message = f"a question of {len(text):,} characters; at most {MAX_QUESTION_CHARS:,} are taken"
        raise DataError(message, where=path, line=line, remedy="shorten it; a document belongs to the corpus")


def _check_required(values: Mapping[str, Any], named: bool, path: Path, line: int) -> None:
    """A question is there, and an id where the row has a place for one."""
    for field in ("qid", "text") if named else ("text",):
        value = values.get(field)
        if not isinstance(value, str) or not value.strip():
            known = ", ".join(ALIASES[field][:-1]) + " or " + ALIASES[field][-1]
            raise DataError(f"{known}: missing, empty, or not a text", where=path, line=line, remedy=ROW_REMEDY)
    check_length(values["text"], path, line)
    if not clean_unicode(values["text"]).strip():
        message = "the question holds no character that can be seen"
        raise DataError(message, where=path, line=line, remedy="write it out, or leave the line out")
    if named and (problem := id_problem(values["qid"], first=True)):
        raise DataError(f"query id {values['qid']!a} {problem}", where=path, line=line, remedy="rename it")


def _entries(found: Any) -> list[Any]:
    """A list of entries from a list, or a single entry."""
    return [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]


def _references(values: Mapping[str, Any], document: object, path: Path, line: int) -> Iterator[Reference]:
    """See `reference_of`.

    Raises:
        DataError: an entry is no reference; with its number.
    """
    for number, entry in enumerate(_entries(values.get("references")), start=1):
        try:
            yield reference_of(entry, document)
        except ValueError as error:
            message = f"query {values['qid']!r}: reference {number} {error}"
            raise DataError(message, where=path, line=line, remedy=REFERENCE_REMEDY) from error


def _with_list(entry: Any) -> Any:
    """A nugget that is a pattern alone, or whose single pattern is written without a list."""
    if isinstance(entry, str):
        return {"any": [entry]}
    if isinstance(entry, Mapping) and isinstance(entry.get("any"), str):
        return {**entry, "any": [entry["any"]]}
    return entry


def _check_patterns(query: Query, path: Path, line: int) -> None:
    for pattern in (pattern for nugget in query.nuggets for pattern in nugget.any):
        problem, remedy = None, "escape it, for example \\( for a bracket"
        try:
            if Pattern(pattern).within(""):
                problem, remedy = "fits every text", "ask for at least one character"
        except ValueError as error:
            problem = f"is no regular expression ({error})"
        except SlowPatternError as error:
            problem, remedy = f"cannot be searched for: {error}", "write it without repeats inside of repeats"
        if problem:
            message = f"query {query.qid}: nugget {shorten(pattern, 60)!r} {problem}"
            raise DataError(message, where=path, line=line, remedy=remedy)


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
