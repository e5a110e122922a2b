"""Made-up searches, and the trace files that each product would write about them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Searched:
    """A search: query, documents (id, text, score), start and latency in ms, and the feedback of its trace."""

    query: str
    documents: Sequence[tuple[str, str, float | None]] = ()
    start_ms: int = 1_700_000_000_000
    latency_ms: int = 100
    feedback: float | None = None
    failed: bool = False


def ids(number: int) -> tuple[str, str, str]:
    """The ids of the trace, its root and its search."""
    return f"{number + 1:032x}", f"{2 * number + 1:016x}", f"{2 * number + 2:016x}"


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1e3, UTC).isoformat()


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _attributes(value)}}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _attributes(values: dict[str, Any]) -> Rows:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _flat(search: Searched) -> dict[str, Any]:
    found: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": search.query}
    for at, (doc_id, text, score) in enumerate(search.documents):
        parts = {"id": doc_id or None, "content": text or None, "score": score}
        found |= {f"retrieval.documents.{at}.document.{name}": value for name, value in parts.items()}
    return found


def _genai(search: Searched) -> dict[str, Any]:
    documents = [{"id": doc_id, "content": text, "score": score} for doc_id, text, score in search.documents]
    return {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": search.query,
        "gen_ai.retrieval.documents": json.dumps(documents),
    }


def _events(search: Searched) -> Rows:
    names = ("id", "document", "score")
    return [
        {
            "name": "db.query.result",
            "attributes": _attributes(
                {
                    f"db.query.result.{name}": value
                    for name, value in zip(names, each, strict=True)
                    if value not in ("", None)
                }
            ),
        }
        for each in search.documents
    ]


def otlp(searches: Iterable[Searched], convention: str = "openinference") -> Rows:
    """One OTLP document per trace: a root, which has the feedback as an evaluation, and the search."""
    found = []
    for number, search in enumerate(searches):
        trace, root, span = ids(number)
        start, end = search.start_ms * 10**6, (search.start_ms + search.latency_ms) * 10**6
        times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}
        evaluation = {"gen_ai.evaluation.name": "user", "gen_ai.evaluation.score.value": search.feedback}
        events = [{"name": "gen_ai.evaluation.result", "attributes": _attributes(evaluation)}]
        own = {"openinference": _flat, "genai": _genai}.get(convention, lambda s: {"input.value": s.query})(search)
        searched = {
            "traceId": trace,
            "spanId": span,
            "parentSpanId": root,
            "name": "retriever",
            **times,
            "attributes": _attributes({"gen_ai.operation.name": "retrieval", **own}),
            "events": _events(search) if convention == "openllmetry" else [],
            "status": {"code": 2 if search.failed else 0},
        }
        request = {
            "traceId": trace,
            "spanId": root,
            "parentSpanId": "",
            "name": "request",
            **times,
            "attributes": _attributes({"input.value": f"asked: {search.query}"}),
            "events": [] if search.feedback is None else events,
        }
        scopes = [{"scope": {"name": "test"}, "spans": [searched, request]}]
        found.append({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": scopes}]})
    return found


def phoenix(searches: Iterable[Searched]) -> Rows:
    """Spans of Phoenix with nested attributes; feedback is an annotation that names only the root."""
    found: Rows = []
    for number, search in enumerate(searches):
        trace, root, span = ids(number)
        times = {"start_time": _iso(search.start_ms), "end_time": _iso(search.start_ms + search.latency_ms)}
        documents = [
            {"document": {"id": doc_id, "content": text, "score": score}} for doc_id, text, score in search.documents
        ]
        attributes = {"input": {"value": search.query}, "retrieval": {"documents": documents}}
        context = {"trace_id": trace, "span_id": span}
        code = "ERROR" if search.failed else "OK"
        row = {"name": "retriever", "span_kind": "RETRIEVER", "parent_id": root, **times, "status_code": code}
        found.append({**row, "context": context, "attributes": attributes})
        asked = {"input": {"value": f"asked: {search.query}"}}
        above = {"name": "request", "span_kind": "CHAIN", "parent_id": None, **times, "status_code": "OK"}
        found.append({**above, "context": {"trace_id": trace, "span_id": root}, "attributes": asked})
        if search.feedback is not None:
            result = {"score": search.feedback, "label": None}
            found.append({"name": "user", "annotator_kind": "HUMAN", "span_id": root, "result": result})
    return found


def phoenix_table(searches: Iterable[Searched]) -> Rows:
    """Spans of Phoenix as rows of a data frame; there is no feedback."""
    found = []
    for number, search in enumerate(searches):
        trace, root, span = ids(number)
        documents = [
            {"document.id": doc_id, "document.content": text, "document.score": score}
            for doc_id, text, score in search.documents
        ]
        found.append(
            {
                "name": "retriever",
                "span_kind": "RETRIEVER",
                "parent_id": root,
                "start_time": _iso(search.start_ms),
                "end_time": _iso(search.start_ms + search.latency_ms),
                "status_code": "ERROR" if search.failed else "OK",
                "context.trace_id": trace,
                "context.span_id": span,
                "attributes.input.value": search.query,
                "attributes.retrieval.documents": documents,
            }
        )
    return found


def langfuse(searches: Iterable[Searched]) -> Rows:
    """Observations in snake case, as exported to a bucket, and scores."""
    found: Rows = []
    for number, search in enumerate(searches):
        trace, root, span = ids(number)
        documents = [
            {"pageContent": text, "metadata": {"id": doc_id, "score": score}}
            for doc_id, text, score in search.documents
        ]
        row = {
            "trace_id": trace,
            "start_time": _iso(search.start_ms)[:-6].replace("T", " "),
            "end_time": _iso(search.start_ms + search.latency_ms)[:-6].replace("T", " "),
        }
        level = "ERROR" if search.failed else "DEFAULT"
        found.append(
            {
                **row,
                "id": span,
                "type": "RETRIEVER",
                "name": "retriever",
                "parent_observation_id": root,
                "level": level,
                "input": json.dumps({"query": search.query}),
                "output": json.dumps(documents),
            }
        )
        asked = json.dumps([{"role": "user", "content": f"asked: {search.query}"}])
        found.append({**row, "id": root, "type": "SPAN", "name": "request", "input": asked, "output": "an answer"})
        if search.feedback is not None:
            score = {"trace_id": trace, "name": "user", "value": search.feedback, "data_type": "NUMERIC"}
            found.append({**score, "id": f"score-{number}"})
    return found


def langfuse_traces(searches: Iterable[Searched]) -> Rows:
    """Traces in camel case with their observations and scores inside, as the API returns them."""
    found: Rows = []
    for number, search in enumerate(searches):
        trace, root, span = ids(number)
        documents = [{"id": doc_id, "text": text, "score": score} for doc_id, text, score in search.documents]
        observation = {
            "id": span,
            "traceId": trace,
            "parentObservationId": root,
            "type": "SPAN" if documents else "RETRIEVER",
            "name": "VectorStoreRetriever",
            "startTime": _iso(search.start_ms),
            "endTime": _iso(search.start_ms + search.latency_ms),
            "level": "ERROR" if search.failed else "DEFAULT",
            "input": search.query,
            "output": {"documents": documents},
        }
        score = {"id": "s", "traceId": trace, "name": "user", "value": search.feedback, "dataType": "NUMERIC"}
        found.append(
            {
                "id": trace,
                "timestamp": _iso(search.start_ms),
                "name": "request",
                "input": {"messages": [{"role": "user", "content": f"asked: {search.query}"}]},
                "observations": [observation],
                "scores": [] if search.feedback is None else [score],
            }
        )
    return found


def langsmith(searches: Iterable[Searched]) -> Rows:
    """Runs of LangSmith; the root has statistics of the feedback."""
    found: Rows = []
    for number, search in enumerate(searches):
        trace, root, span = ids(number)
        documents = [
            {"page_content": text, "metadata": {"doc_id": doc_id, "score": score}, "type": "Document"}
            for doc_id, text, score in search.documents
        ]
        times = {"start_time": _iso(search.start_ms), "end_time": _iso(search.start_ms + search.latency_ms)}
        found.append(
            {
                "id": span,
                "trace_id": trace,
                "parent_run_id": root,
                "name": "retriever",
                "run_type": "retriever",
                "inputs": {"query": search.query},
                "outputs": {"documents": documents},
                "error": "timeout" if search.failed else None,
                **times,
            }
        )
        stats = None if search.feedback is None else {"user": {"n": 1, "avg": search.feedback}}
        found.append(
            {
                "id": root,
                "trace_id": trace,
                "parent_run_id": None,
                "name": "request",
                "run_type": "chain",
                "inputs": {"messages": [[{"type": "human", "data": {"content": f"asked: {search.query}"}}]]},
                "outputs": {"output": "an answer"},
                "feedback_stats": stats,
                **times,
            }
        )
    return found


WRITERS: dict[str, tuple[str, Callable[[Iterable[Searched]], Rows]]] = {
    "otlp openinference": ("otlp", otlp),
    "otlp genai": ("otlp", lambda searches: otlp(searches, "genai")),
    "otlp openllmetry": ("otlp", lambda searches: otlp(searches, "openllmetry")),
    "phoenix": ("phoenix", phoenix),
    "phoenix table": ("phoenix", phoenix_table),
    "langfuse": ("langfuse", langfuse),
    "langfuse traces": ("langfuse", langfuse_traces),
    "langsmith": ("langsmith", langsmith),
}  # format, and rows of a file


def json_lines(rows: Rows) -> str:
    """One object per line."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def document(rows: Rows) -> str:
    """One JSON document: the merged resourceSpans of OTLP, otherwise a list."""
    if rows and "resourceSpans" in rows[0]:
        return json.dumps({"resourceSpans": [span for row in rows for span in row["resourceSpans"]]}, indent=2)
    return json.dumps(rows, indent=2)


def table(rows: Rows) -> str:
    """A CSV table; objects and lists are JSON texts."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    for row in rows:
        cells = (row.get(name) for name in names)
        writer.writerow(
            [json.dumps(each) if isinstance(each, dict | list) else "" if each is None else each for each in cells]
        )
    return text.getvalue()


FORMS: dict[str, Callable[[Rows], str]] = {".jsonl": json_lines, ".json": document, ".csv": table}
