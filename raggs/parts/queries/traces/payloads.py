"""Events of traces, and parts of their payloads: the text of a query, the documents of a search, times and feedback.

Frameworks log a payload as text, as JSON text, or as JSON values of various shapes. The functions search the usual keys
and return None or an empty text if they find none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from raggs.base.jsonl import decode_json
from raggs.base.types import Number, as_list, as_object, as_text


class TracedDocument(NamedTuple):
    """One document of a logged search: id and text (empty if not logged), and score (None if not logged)."""

    doc_id: str
    text: str
    score: Number


UNNAMED = TracedDocument("", "", None)  # an entry without id and text, which keeps its rank


@dataclass(frozen=True, slots=True)
class TracedSearch:
    """A search of a trace, or the request of a user.

    Attributes:
        line: line of the record in the file.
        trace, span: ids of the trace and of the span; empty if not logged.
        query: text of the query; None if it is not logged.
        documents: documents in the order of the log; None for a request, which is not itself a search.
        name: name of the span.
        start_s: start in seconds since 1970; None if not logged.
        latency_ms: duration in milliseconds; None if not logged.
        failed: whether the search ended with an error.
    """

    line: int
    trace: str
    span: str
    query: str | None
    documents: tuple[TracedDocument, ...] | None
    name: str = ""
    start_s: Number = None
    latency_ms: Number = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TraceFeedback:
    """Feedback on a trace or one of its spans; one of the ids may be empty.

    Attributes:
        line: line of the record in the file.
        trace, span: ids of the trace and of the span.
        name: name of the feedback, such as "user-feedback".
        value: number, or 1 for a positive and 0 for a negative label.
    """

    line: int
    trace: str
    span: str
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class TracedSpan:
    """The trace of a span, for formats whose feedback names only the span."""

    line: int
    trace: str
    span: str


TraceEvent: TypeAlias = TracedSearch | TraceFeedback | TracedSpan

QUERY_KEYS = (
    *("query", "question", "input", "text", "search_query", "query_str", "user_input", "prompt", "q", "inputs"),
    *("value", "content", "messages"),
)
USER_ROLES = frozenset({"user", "human"})
LIST_KEYS = (
    *("documents", "docs", "results", "matches", "hits", "chunks", "nodes", "source_nodes", "contexts", "context"),
    *("sources", "retrieved", "output", "outputs", "data", "value", "values"),
)
ID_KEYS = (
    *("document.id", "doc_id", "document_id", "docid", "chunk_id", "passage_id", "node_id", "id", "_id", "id_", "uuid"),
)
TEXT_KEYS = (
    *("document.content", "page_content", "pageContent", "content", "text", "document", "chunk", "passage", "body"),
)
SCORE_KEYS = (
    *("document.score", "score", "_score", "relevance_score", "relevanceScore", "similarity", "similarity_score"),
    *("distance", "_distance"),
)
INNER_KEYS = ("document", "node", "doc")  # objects that contain the document, next to its score
MAX_LEVELS = 8  # maximum depth of payloads inside payloads
POSITIVE_LABELS = "1 yes true good positive up thumbs_up thumbsup like liked correct helpful pass satisfied"
NEGATIVE_LABELS = """0 no false bad negative down thumbs_down thumbsdown dislike disliked incorrect wrong unhelpful fail
    unsatisfied"""
POSITIVE_WORDS, NEGATIVE_WORDS = frozenset(POSITIVE_LABELS.split()), frozenset(NEGATIVE_LABELS.split())
NUMBER_TEXT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # from this value on, a time since 1970 has so many units per second


def parsed_payload(value: object) -> object:
    """Return the JSON value of a text that contains an object or a list; any other value is returned unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return decode_json(value)
        except ValueError:
            return value
    return value


def query_text(value: object, levels: int = MAX_LEVELS) -> str | None:
    """Return the text of the query in a payload: a text, the value of a usual key, or the last message of the user.

    Returns None if the payload has none of them.
    """
    value = parsed_payload(value)
    if isinstance(value, str):
        return value if value.strip() else None
    if not levels:
        return None
    if isinstance(value, list):
        return _last_message(value, levels)
    found = as_object(value)
    held = (found[key] for key in QUERY_KEYS if key in found)
    return next((text for value in held if (text := query_text(value, levels - 1))), None)


def _last_message(messages: Sequence[object], levels: int) -> str | None:
    """Return the text of the last message of the user; a single element without a role counts as one."""
    for each in reversed(messages):
        message = as_object(each)
        role = message.get("role") or message.get("type")
        if isinstance(role, str) and role.lower() in USER_ROLES:
            parts = message.get("parts") or message.get("content") or as_object(message.get("data")).get("content")
            return _joined_parts(parts)
        if isinstance(each, list) and (text := query_text(each, levels - 1)):
            return text
    if len(messages) == 1:
        first = messages[0]
        return query_text(first, levels - 1) if isinstance(first, str) or "role" not in as_object(first) else None
    return None


def _joined_parts(parts: object) -> str | None:
    """Return the text of a message, which may be a list of parts."""
    if isinstance(parts, str):
        return parts if parts.strip() else None
    texts = (as_object(part).get("text") or as_object(part).get("content") for part in as_list(parts))
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip()) or None


def documents_in(value: object, levels: int = MAX_LEVELS) -> tuple[TracedDocument, ...] | None:
    """Return the documents in the output of a search, `UNNAMED` for entries that are not documents.

    Returns None if the output has no list of documents. An empty list has no documents.
    """
    value = parsed_payload(value)
    if isinstance(value, list):
        found = [document_of(entry) for entry in value]
        return tuple(each or UNNAMED for each in found) if any(found) or not found else None
    if not isinstance(value, dict) or not levels:
        return None
    for key in LIST_KEYS:
        if key in value and (documents := documents_in(value[key], levels - 1)) is not None:
            return documents
    return None


def document_of(entry: object) -> TracedDocument | None:
    """Return the document that an entry of a list describes: an object, a text, or a pair of an object and its score.

    Returns None if the entry has neither id nor text.
    """
    if isinstance(entry, str):
        return TracedDocument("", entry, None) if entry.strip() else None
    if isinstance(entry, list):
        found = document_of(entry[0]) if len(entry) == 2 and isinstance(entry[0], dict) else None
        return None if found is None else found._replace(score=number_of(entry[1]))
    row = as_object(entry)
    inner = next((as_object(row[key]) for key in INNER_KEYS if isinstance(row.get(key), dict)), {})
    extra = parsed_payload(row.get("metadata", inner.get("metadata", inner.get("document.metadata"))))
    layers: tuple[Mapping[str, object], ...] = (row, inner, as_object(row.get("kwargs")), as_object(extra))
    doc_id = next((text for layer in layers for key in ID_KEYS if (text := id_text(layer.get(key)))), "")
    texts = (layer.get(key) for layer in layers for key in TEXT_KEYS)
    text = next((each for each in texts if isinstance(each, str) and each.strip()), "")
    scores = (number_of(layer.get(key)) for layer in layers for key in SCORE_KEYS)
    return (
        TracedDocument(doc_id, text, next((each for each in scores if each is not None), None))
        if doc_id or text
        else None
    )


def id_text(value: object) -> str:
    """Return an id as text; empty if the value is neither a text nor a whole number."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def number_of(value: object) -> Number:
    """Return a finite number, also from its text; None for any other value."""
    if isinstance(value, str) and NUMBER_TEXT.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def seconds_of(value: object) -> Number:
    """Return a time in seconds since 1970: from ISO 8601 text (UTC if it names no zone), or from a number of seconds,
    milliseconds, microseconds or nanoseconds.
    """
    number = number_of(value)
    if number is not None:
        return next((number / unit for least, unit in UNITS if number >= least), number)
    if (text := as_text(value)) is None:
        return None
    try:
        found = datetime.fromisoformat(text.strip().removesuffix(" UTC"))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def duration_ms(start: object, end: object) -> Number:
    """Return the milliseconds between two times; None if one is missing or the end precedes the start.

    Nanoseconds are subtracted as integers, because a float cannot represent them exactly.
    """
    if isinstance(start, str) and isinstance(end, str) and start.isdecimal() and end.isdecimal():
        start, end = (int(each[:30]) for each in (start, end))
    if isinstance(start, int) and isinstance(end, int) and min(start, end) >= UNITS[0][0]:
        return (end - start) / 1e6 if end >= start else None
    begin, stop = seconds_of(start), seconds_of(end)
    return None if begin is None or stop is None or stop < begin else round((stop - begin) * 1e3, 3)


def feedback_value(*values: object) -> Number:
    """Return the first of these values that is a number or a known label, as a number."""
    for value in values:
        if isinstance(value, bool):
            return float(value)
        if (number := number_of(value)) is not None:
            return number
        word = value.strip().lower().replace("-", "_").replace(" ", "_") if isinstance(value, str) else ""
        if word in POSITIVE_WORDS | NEGATIVE_WORDS:
            return float(word in POSITIVE_WORDS)
    return None


def named_feedback(given: object) -> Iterator[tuple[str, float]]:
    """Yield names and values of feedback: ``{name: value}``, ``{name: [value]}`` or ``{name: {"avg": 0.5}}``."""
    for name, value in as_object(parsed_payload(given)).items():
        entries = value if isinstance(value, list) else [value]
        for entry in entries:
            inner = as_object(entry)
            number = feedback_value(inner.get("avg"), inner.get("value"), inner.get("score"), entry)
            if number is not None:
                yield name, number
