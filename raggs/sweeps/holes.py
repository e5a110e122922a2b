"""Holes: passages that systems show and nobody judged. Which of them could change most, and the grades they got since.

The grades lie in the sweep's folder, in `holes.jsonl`; the golden set itself stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from raggs.artifacts import JudgeRecord
from raggs.golden.judgments import Judgments
from raggs.jsonl import Appender, read_torn
from raggs.sweeps.labels import graded_ids, with_grades
from raggs.sweeps.partstore import Lists

HOLES = "holes.jsonl"
REMEDY = "delete the line; the judge is asked again, and what was paid for is in the cache"


class Hole(NamedTuple):
    """An unjudged passage of a question: `weight` counts the systems and cutoffs whose top it stands in."""

    qid: str
    doc_id: str
    weight: int


def find_holes(judgments: Judgments, lists: Iterable[Lists], cutoffs: Sequence[int]) -> list[Hole]:
    """All unjudged passages in the top of any system, those first that stand in the most tops.

    Args:
        judgments: the grades that there are.
        lists: of each system.
        cutoffs: of the measures.
    """
    known, weights = graded_ids(judgments), dict[tuple[str, str], int]()
    for each in lists:
        for qid, hits in each.items():
            judged = known.get(qid)
            for rank, (doc_id, _) in enumerate(hits[: max(cutoffs)]):
                if judged is not None and doc_id not in judged:
                    key = (qid, doc_id)
                    weights[key] = weights.get(key, 0) + sum(rank < cutoff for cutoff in cutoffs)
    return sorted((Hole(*key, weight) for key, weight in weights.items()), key=lambda hole: (-hole.weight, hole[:2]))


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
