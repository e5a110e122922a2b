"""Spans as events: OTLP JSON of OpenTelemetry, and exports of Phoenix.

Three conventions name the attributes of a search: GenAI (``gen_ai.retrieval.documents``), OpenInference
(``retrieval.documents.0.document.id``) and OpenLLMetry (events ``db.query.result``). Attributes may be flat, nested, or
columns of a table with the prefix ``attributes.``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from raggs.base.types import as_list, as_object
from raggs.parts.queries.traces.payloads import (
    TracedDocument,
    TracedSearch,
    TracedSpan,
    TraceEvent,
    TraceFeedback,
    document_of,
    documents_in,
    duration_ms,
    feedback_value,
    id_text,
    number_of,
    parsed_payload,
    query_text,
    seconds_of,
)
from raggs.parts.queries.traces.streaming import Fields, TraceRecord

SPAN_LISTS = frozenset({"spans"})
LIST_ATTRIBUTES = ("gen_ai.retrieval.documents", "retrieval.documents")
FLAT_DOCUMENT = re.compile(r"(?:gen_ai\.)?retrieval\.documents\.(\d{1,5})\.(?:document\.)?(id|content|text|score)")
SEARCH_OPERATIONS = frozenset({"retrieval", "retrieve", "search"})
SEARCH_KINDS = frozenset({"retriever"})
QUERY_ATTRIBUTES = (
    *("gen_ai.retrieval.query.text", "input.value", "gen_ai.input.messages", "traceloop.entity.input"),
    *("gen_ai.prompt", "input"),
)
RESULT_EVENT = "db.query.result"
EVALUATION_EVENT = "gen_ai.evaluation.result"
ERROR_CODES = frozenset({"2", "ERROR", "STATUS_CODE_ERROR"})
PREFIX = "attributes."
PARENTS = ("parentSpanId", "parent_span_id", "parent_id")
NO_PARENT = re.compile(r"0*")


def events_of_otlp(record: TraceRecord) -> Iterator[TraceEvent]:
    """Yield the events of a record of an OTLP file; records of resources and scopes have none."""
    if record.path and record.path[-1] in SPAN_LISTS:
        span = record.fields
        yield from _events(record.line, span, _otlp_attributes(span.get("attributes")))


def events_of_phoenix(record: TraceRecord) -> Iterator[TraceEvent]:
    """Yield the events of a span or an annotation, as Phoenix and the console exporter of OpenTelemetry write them."""
    fields = record.fields
    if "result" in fields and ("span_id" in fields or "trace_id" in fields):
        yield from _annotation(record.line, fields, "", "")
    elif "name" in fields or "span_kind" in fields:
        if record.path and record.path[-1] == "annotations":
            trace, span = _ids(record.parent)
            yield from _annotation(record.line, fields, trace, span)
            return
        yield from _events(record.line, fields, _plain_attributes(fields))
        trace, span = _ids(fields)
        yield TracedSpan(record.line, trace, span)


def _annotation(line: int, fields: Fields, trace: str, span: str) -> Iterator[TraceEvent]:
    result = as_object(parsed_payload(fields.get("result"))) or fields
    value = feedback_value(result.get("score"), result.get("label"))
    trace, span = id_text(fields.get("trace_id")) or trace, id_text(fields.get("span_id")) or span
    if value is not None and (trace or span):
        yield TraceFeedback(line, trace, span, str(fields.get("name", "")), value)


def _ids(span: Fields) -> tuple[str, str]:
    context = as_object(parsed_payload(span.get("context")))
    trace = span.get("traceId") or span.get("trace_id") or context.get("trace_id") or span.get("context.trace_id")
    own = span.get("spanId") or context.get("span_id") or span.get("context.span_id") or span.get("span_id")
    return id_text(trace), id_text(own)


@dataclass(frozen=True)
class _Attributes:
    """Attributes of a span by their full names, which may be nested."""

    values: Mapping[str, object]

    def get(self, name: str) -> object:
        """Return the value of an attribute, or None."""
        if name in self.values:
            return self.values[name]
        found: object = self.values
        for key in name.split("."):
            found = as_object(found).get(key)
        return found


def _otlp_attributes(given: object) -> _Attributes:
    rows = map(as_object, as_list(given))
    return _Attributes({str(row.get("key")): _any_value(row.get("value")) for row in rows})


def _any_value(given: object) -> object:
    """Return the plain value of an OTLP value, such as ``{"stringValue": "a"}``."""
    value = as_object(given)
    if "arrayValue" in value:
        return [_any_value(each) for each in as_list(as_object(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        return dict(_otlp_attributes(as_object(value["kvlistValue"]).get("values")).values)
    if "intValue" in value:
        return number_of(value["intValue"])
    return next(iter(value.values()), None)


def _plain_attributes(fields: Fields) -> _Attributes:
    found = dict(as_object(parsed_payload(fields.get("attributes"))))
    found.update({name.removeprefix(PREFIX): value for name, value in fields.items() if name.startswith(PREFIX)})
    return _Attributes(found)


def _events(line: int, span: Fields, attributes: _Attributes) -> Iterator[TraceEvent]:
    trace, own = _ids(span)
    events = [as_object(each) for each in as_list(parsed_payload(span.get("events")))]
    documents = _documents(attributes, events)
    searches = documents is not None or _is_search(span, attributes)
    if searches or _is_root(span):
        start, end = _time(span, "start"), _time(span, "end")
        yield TracedSearch(
            line,
            trace,
            own,
            next((text for name in QUERY_ATTRIBUTES if (text := query_text(attributes.get(name)))), None),
            (documents or ()) if searches else None,
            str(span.get("name", "")),
            seconds_of(start),
            duration_ms(start, end),
            _has_failed(span),
        )
    for event in events:
        if event.get("name") == EVALUATION_EVENT:
            yield from _evaluation(line, trace, own, _event_attributes(event))


def _event_attributes(event: Mapping[str, object]) -> _Attributes:
    given = event.get("attributes")
    return _otlp_attributes(given) if isinstance(given, list) else _Attributes(as_object(given))


def _evaluation(line: int, trace: str, span: str, values: _Attributes) -> Iterator[TraceEvent]:
    name = values.get("gen_ai.evaluation.name")
    value = feedback_value(values.get("gen_ai.evaluation.score.value"), values.get("gen_ai.evaluation.score.label"))
    if value is not None:
        yield TraceFeedback(line, trace, span, str(name or ""), value)


def _time(span: Fields, which: str) -> object:
    return span.get(f"{which}TimeUnixNano") or span.get(f"{which}_time_unix_nano") or span.get(f"{which}_time")


def _is_root(span: Fields) -> bool:
    found = next((id_text(span.get(name)) for name in PARENTS if span.get(name)), "")
    return NO_PARENT.fullmatch(found) is not None


def _is_search(span: Fields, attributes: _Attributes) -> bool:
    kind = attributes.get("openinference.span.kind") or span.get("span_kind")
    return str(kind).lower() in SEARCH_KINDS or str(attributes.get("gen_ai.operation.name")) in SEARCH_OPERATIONS


def _has_failed(span: Fields) -> bool:
    status = as_object(parsed_payload(span.get("status")))
    code = status.get("code") or status.get("status_code") or span.get("status_code") or span.get("status")
    return str(code).upper() in ERROR_CODES


def _documents(attributes: _Attributes, events: list[Mapping[str, object]]) -> tuple[TracedDocument, ...] | None:
    """Return the documents of a span, in any of the three conventions; None if it has none."""
    for name in LIST_ATTRIBUTES:
        if (found := documents_in(attributes.get(name))) is not None:
            return found
    rows: dict[int, dict[str, object]] = {}
    for name, value in attributes.values.items():
        if match := FLAT_DOCUMENT.fullmatch(name):
            rows.setdefault(int(match[1]), {})[match[2]] = value
    if not rows:
        results = (_event_attributes(each) for each in events if each.get("name") == RESULT_EVENT)
        parts = ("id", "score", "distance", "document")
        rows = {at: {part: each.get(f"{RESULT_EVENT}.{part}") for part in parts} for at, each in enumerate(results)}
    documents = (document_of(rows[at]) for at in sorted(rows))
    return tuple(each for each in documents if each is not None) or None
