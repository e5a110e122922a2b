"""Holes: passages that systems show and nobody judged. Which of them could change most, and the grades they got since.

The grades lie in the sweep's folder, in `holes.jsonl`; the golden set itself stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from raggs.base.artifacts import JudgeRecord
from raggs.base.jsonl import Appender, read_torn
from raggs.golden.judgments import Judgments
from raggs.stats.decision.holes import Hole, order_holes
from raggs.sweeps.labels import graded_ids, with_grades
from raggs.sweeps.partstore import Lists

HOLES = "holes.jsonl"
REMEDY = "delete the line; the judge is asked again, and what was paid for is in the cache"


def find_holes(judgments: Judgments, lists: Iterable[Lists], cutoffs: Sequence[int]) -> tuple[Hole, ...]:
    """All unjudged passages in the top of any system, those first that could change most between the systems.

    Args:
        judgments: the grades that there are.
        lists: of each system.
        cutoffs: of the measures.
    """
    known, relevant = graded_ids(judgments), judgments.qrels.scale.relevant
    useful = {qid: sum(grade >= relevant for grade in grades.values()) for qid, grades in known.items()}
    tops = ((1.0, {qid: [doc_id for doc_id, _ in hits] for qid, hits in each.items()}) for each in lists)
    return order_holes(tops, known, useful, cutoffs)


def with_holes(judgments: Judgments, folder: Path) -> Judgments:
    """The grades with those that a sweep's holes got since; the same where there are none."""
    found: dict[str, dict[str, int]] = {}
    for record in read_holes(folder):
        if record.grade is not None:
            found.setdefault(record.qid, {})[record.doc_id] = record.grade
    return with_grades(judgments, found) if found else judgments


def read_holes(folder: Path) -> list[JudgeRecord]:
    """What the judge said of holes so far.

    Raises:
        DataError: a line is damaged.
    """
    return list(read_torn(folder / HOLES, JudgeRecord, REMEDY))


def keep_holes(folder: Path, records: Iterable[JudgeRecord]) -> None:
    """Add what the judge said."""
    with Appender(folder / HOLES) as file:
        for record in records:
            file.append(record)
