"""People's word on the pools of a run, made up: who reads what, and how far they differ from the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from raggs.base.artifacts import JudgeRecord, MergeRecord, QueryRecord
from raggs.base.jsonl import read_records
from raggs.parts.reviews import GradeReview, ReviewStore, key_of

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
Speaker = Callable[[MergeRecord, int | None], int | None]


def graded_pool(run: Path) -> Iterator[tuple[QueryRecord, MergeRecord, int | None]]:
    """Every passage of the pools with its question and the judge's grade."""
    queries = {record.qid: record for record in read_records(run / "queries.jsonl", QueryRecord)}
    grades = {(record.qid, record.doc_id): record.grade for record in read_records(run / "judge.jsonl", JudgeRecord)}
    for record in read_records(run / "merge.jsonl", MergeRecord):
        yield queries[record.qid], record, grades[record.qid, record.doc_id]


def speak(
    run: Path,
    folder: Path,
    says: Speaker,
    *,
    who: str = "ada",
    blind: bool = True,
    chance: float | None = None,
    reads: Callable[[MergeRecord], bool] = lambda _: True,
) -> int:
    """Have somebody read passages of a run; gives how many.

    Args:
        says: the grade of a passage that the judge graded so; None for cannot tell.
        reads: which passages.
    """
    words = []
    for query, record, grade in graded_pool(run):
        if not reads(record):
            continue
        question, passage = key_of(query, record.passage)
        words.append(
            GradeReview(
                who=who,
                at=AT,
                qid=record.qid,
                query=question,
                doc_id=record.doc_id,
                passage=passage,
                grade=says(record, grade),
                blind=blind,
                chance=chance,
            )
        )
    ReviewStore(folder).append(*words)
    return len(words)
