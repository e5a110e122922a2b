"""Traces of a retrieval system: events of trace files, and the detection of their format.

A trace records one request of a user. It contains spans, such as a retrieval or a call of a model. A format turns the
records of a file into events: searches, requests of users, feedback, and spans that feedback may refer to. Formats are
detected by the keys of the first records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from raggs.base.errors import DataError, UsageError
from raggs.parts.queries.traces.payloads import TraceEvent
from raggs.parts.queries.traces.products import (
    events_of_langfuse,
    events_of_langsmith,
    is_langfuse_observation,
    is_langfuse_score,
    is_langfuse_trace,
)
from raggs.parts.queries.traces.spans import PREFIX, events_of_otlp, events_of_phoenix
from raggs.parts.queries.traces.streaming import (
    BROKEN_LINE,
    JSON_FILES,
    TABLES,
    TraceRecord,
    file_kind,
    read_trace_records,
)

__all__ = ["BROKEN_LINE", "TraceFormat", "TraceFormatName", "detect_trace_format", "read_trace_events"]

TraceFormat = Literal["otlp", "phoenix", "langfuse", "langsmith"]
TraceFormatName = Literal["auto", TraceFormat]
EVENTS: Mapping[TraceFormat, Callable[[TraceRecord], Iterator[TraceEvent]]] = {
    "otlp": events_of_otlp,
    "phoenix": events_of_phoenix,
    "langfuse": events_of_langfuse,
    "langsmith": events_of_langsmith,
}
DESCRIPTIONS: Mapping[TraceFormat, str] = {
    "otlp": "OTLP JSON of OpenTelemetry (resourceSpans)",
    "phoenix": "spans of Phoenix or of OpenTelemetry's console exporter (context, attributes)",
    "langfuse": "traces, observations or scores of Langfuse (traceId, type)",
    "langsmith": "runs of LangSmith (run_type)",
}
OTLP_LISTS = frozenset({"resourceSpans", "resource_spans"})
RECORDS_TO_DETECT = 200


def read_trace_events(
    path: Path, form: TraceFormatName = "auto", skipped: Counter[str] | None = None
) -> Iterator[TraceEvent]:
    """Return an iterator over the events of a trace file, in the order of the file, in bounded memory.

    Args:
        path: file of traces.
        form: format of the file.
        skipped: counts broken lines, which are then skipped; None to raise an error.

    Raises:
        UsageError: the suffix is unknown.
        NotFoundError: the file is missing or unreadable.
        DataError: the file is not valid JSON or CSV, or its format is not detected.
    """
    records = read_trace_records(path, skipped)
    found = detect_trace_format(path) if form == "auto" else form
    if found is None:
        known = "; ".join(f"{name}: {text}" for name, text in DESCRIPTIONS.items())
        raise DataError(
            "the format of the traces is not recognised", where=path, remedy=f"set --format or `format` ({known})"
        )
    events = EVENTS[found]
    return (event for record in records for event in events(record))


def detect_trace_format(path: Path) -> TraceFormat | None:
    """Return the format of a file of traces, from its first 200 records; None if none of them has a known format.

    Broken lines are skipped here, because `read_trace_events` reports them.

    Raises:
        NotFoundError: the file is missing or unreadable.
    """
    if file_kind(path) not in (*JSON_FILES, *TABLES):
        return None
    with suppress(DataError, UsageError):
        for record in islice(read_trace_records(path, Counter()), RECORDS_TO_DETECT):
            if (found := _format_of(record)) is not None:
                return found
    return None


def _format_of(record: TraceRecord) -> TraceFormat | None:
    row = record.fields
    if OTLP_LISTS & {*record.path, *row}:
        return "otlp"
    if "run_type" in row:
        return "langsmith"
    context = any(name.startswith(("context.", PREFIX)) for name in row)
    if context or ("context" in row and {"attributes", "name"} <= row.keys()) or "span_kind" in row:
        return "phoenix"
    if "result" in row and "span_id" in row and "annotator_kind" in row:
        return "phoenix"
    if is_langfuse_observation(row) or is_langfuse_score(record) or is_langfuse_trace(row):
        return "langfuse"
    return None


if set(EVENTS) != set(get_args(TraceFormat)):
    raise TypeError("each trace format needs a function")
