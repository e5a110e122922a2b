"""People's words in one line each: grades and orders as reviews."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from raggs.base.artifacts import MergeRecord, Passage, Query, QueryRecord
from raggs.base.jsonl import read_records
from raggs.parts.reviews import (
    EvidenceReview,
    GradeReview,
    OrderReview,
    Review,
    ReviewStore,
    digests,
    key_of,
    question_digest,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def grade(query: Query, passage: Passage, who: str, given: int | None, **more: Any) -> GradeReview:
    question, content = key_of(query, passage)
    return GradeReview(
        who=who, at=NOON, qid=query.qid, query=question, doc_id=passage.doc_id, passage=content, grade=given, **more
    )


def order(query: Query, passages: Sequence[Passage], who: str, *groups: Sequence[str]) -> OrderReview:
    """Groups of ids, best first; the passages are shown as they are given."""
    return OrderReview(
        who=who,
        at=NOON,
        qid=query.qid,
        query=question_digest(query),
        shown=tuple(passage.doc_id for passage in passages),
        passages=digests(passages),
        order=tuple(map(tuple, groups)),
    )


def evidence(
    query: Query, passages: Sequence[Passage], who: str, *sets: Sequence[str], settles: bool = False
) -> EvidenceReview:
    """Sets of ids of the passages that are shown."""
    return EvidenceReview(
        who=who,
        at=NOON,
        qid=query.qid,
        query=question_digest(query),
        shown=tuple(passage.doc_id for passage in passages),
        passages=digests(passages),
        proposed=(),
        sets=tuple(map(tuple, sets)),
        settles=settles,
    )


def kept(folder: Path, *reviews: Review) -> Path:
    ReviewStore(folder).append(*reviews)
    return folder


def pools(run: Path) -> dict[str, tuple[Query, list[Passage]]]:
    """By query id, the question of a run and its pool, best fused first."""
    found: dict[str, tuple[Query, list[Passage]]] = {
        record.qid: (record, []) for record in read_records(run / "queries.jsonl", QueryRecord)
    }
    for record in read_records(run / "merge.jsonl", MergeRecord):
        found[record.qid][1].append(record.passage)
    return found
