"""Exports of Langfuse and LangSmith as events.

Both record a tree of observations (or runs) per trace, each with input, output and type. Langfuse names fields in camel
case (API and user interface) or in snake case (exports to a bucket).

In Langfuse, only newer clients set the type RETRIEVER. So an observation of another type is also a search if its name
contains "retriev" or "search" and its output has a list with at least one document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from raggs.base.types import as_list, as_object
from raggs.parts.queries.traces.payloads import (
    TracedSearch,
    TraceEvent,
    TraceFeedback,
    documents_in,
    duration_ms,
    feedback_value,
    id_text,
    named_feedback,
    number_of,
    parsed_payload,
    query_text,
    seconds_of,
)
from raggs.parts.queries.traces.streaming import Fields, TraceRecord

SEARCH_NAME = re.compile(r"retriev|search", re.IGNORECASE)
OBSERVATION_TYPES = frozenset(
    "SPAN EVENT GENERATION AGENT TOOL CHAIN RETRIEVER EVALUATOR EMBEDDING GUARDRAIL".split()  # noqa: SIM905
)
SCORE_KEYS = frozenset({"stringValue", "string_value", "dataType", "data_type"})
RETRIEVER = "retriever"


def events_of_langfuse(record: TraceRecord) -> Iterator[TraceEvent]:
    """Yield the events of a trace, an observation or a score of Langfuse."""
    row = record.fields
    if is_langfuse_score(record):
        value = feedback_value(row.get("value"), row.get("stringValue"), row.get("string_value"))
        trace, span = _first_id(row, "traceId", "trace_id"), _first_id(row, "observationId", "observation_id")
        trace = trace or id_text(record.parent.get("id"))
        if value is not None and (trace or span):
            yield TraceFeedback(record.line, trace, span, str(row.get("name", "")), value)
    elif is_langfuse_observation(row):
        yield from _observation(record)
    elif is_langfuse_trace(row):
        trace = id_text(row.get("id"))
        yield TracedSearch(
            record.line,
            trace,
            trace,
            query_text(row.get("input")),
            None,
            str(row.get("name", "")),
            seconds_of(row.get("timestamp")),
        )
        for name, value in named_feedback(row.get("scores")):
            yield TraceFeedback(record.line, trace, "", name, value)


def is_langfuse_score(record: TraceRecord) -> bool:
    """Return whether a record is a score of Langfuse."""
    row = record.fields
    return "name" in row and ("value" in row or "stringValue" in row) and (
        bool(SCORE_KEYS & row.keys()) or record.path[-1:] == ("scores",)
    )  # fmt: skip


def is_langfuse_observation(row: Fields) -> bool:
    """Return whether a record is an observation of Langfuse."""
    return str(row.get("type")).upper() in OBSERVATION_TYPES and bool(
        {"traceId", "trace_id", "parentObservationId", "parent_observation_id"} & row.keys()
    )


def is_langfuse_trace(row: Fields) -> bool:
    """Return whether a record is a trace of Langfuse."""
    return {"id", "timestamp"} <= row.keys() and bool({"input", "output", "sessionId", "session_id"} & row.keys())


def _observation(record: TraceRecord) -> Iterator[TraceEvent]:
    row, name = record.fields, str(record.fields.get("name", ""))
    trace = _first_id(row, "traceId", "trace_id") or id_text(record.parent.get("id"))
    documents = documents_in(row.get("output"))
    searches = str(row.get("type")).lower() == RETRIEVER or bool(documents and SEARCH_NAME.search(name))
    if not searches and _first_id(row, "parentObservationId", "parent_observation_id"):
        return
    start, end = (row.get(f"{which}Time", row.get(f"{which}_time")) for which in ("start", "end"))
    latency_ms, seconds = duration_ms(start, end), number_of(row.get("latency"))
    if latency_ms is None and seconds is not None and seconds >= 0:
        latency_ms = seconds * 1e3
    yield TracedSearch(
        record.line,
        trace,
        id_text(row.get("id")),
        query_text(row.get("input")),
        (documents or ()) if searches else None,
        name,
        seconds_of(start),
        latency_ms,
        str(row.get("level")).upper() == "ERROR",
    )


def events_of_langsmith(record: TraceRecord) -> Iterator[TraceEvent]:
    """Yield the events of a run or of its feedback in LangSmith."""
    row = record.fields
    if "run_type" not in row:
        yield from _feedback(record)
        return
    trace = id_text(row.get("trace_id")) or id_text(row.get("id"))
    searches = str(row.get("run_type")).lower() == RETRIEVER
    if searches or not (row.get("parent_run_id") or as_list(parsed_payload(row.get("parent_run_ids")))):
        start, end = row.get("start_time"), row.get("end_time")
        documents = documents_in(row.get("outputs")) or () if searches else None
        yield TracedSearch(
            record.line,
            trace,
            id_text(row.get("id")),
            query_text(row.get("inputs")),
            documents,
            str(row.get("name", "")),
            seconds_of(start),
            duration_ms(start, end),
            bool(row.get("error")) or row.get("status") == "error",
        )
    for name, value in named_feedback(row.get("feedback_stats")):
        yield TraceFeedback(record.line, trace, id_text(row.get("id")), name, value)


def _feedback(record: TraceRecord) -> Iterator[TraceEvent]:
    row = record.fields
    if "key" not in row:
        return
    run = id_text(row.get("run_id")) or id_text(record.parent.get("id"))
    trace = id_text(row.get("trace_id")) or id_text(record.parent.get("trace_id"))
    value = feedback_value(row.get("score"), as_object(row.get("value")).get("score"), row.get("value"))
    if value is not None and (trace or run):
        yield TraceFeedback(record.line, trace, run, str(row["key"]), value)


def _first_id(row: Fields, *names: str) -> str:
    return next((text for name in names if (text := id_text(row.get(name)))), "")
