"""A judge's orders against people's grades, by the place in the prompt at which a passage stood.

Grades are asked one passage a prompt, or in places drawn by lot, of which the run's health tells; orders are asked for
a few passages at once, and the journal of the ranking knows how they stood. Two passages of one prompt to which people
gave different grades are a case for each of the two: whether the judge, and whether people, put it above the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from raggs.base.artifacts import JournalRecord
from raggs.base.health import PEOPLE, source_of
from raggs.runs.manifests.opened import OpenedRun

PLACE = "place in the prompt"


@dataclass(frozen=True)
class Pair:
    """A passage beside another of its prompt.

    Attributes:
        place: at which it stood, from 1.
        judge, people: whether they put it above the other.
        qid: the question.
    """

    place: int
    judge: bool
    people: bool
    qid: str


def ordered_pairs(run: OpenedRun, grades: Mapping[tuple[str, str], int]) -> list[Pair]:
    """All that the run's orders say of passages that people graded; none where there was no ranking.

    Args:
        grades: people's, by query id and passage id.
    """
    if "rank" not in run.pipeline.order or not run.file("rank.journal").is_file():
        return []
    entries = run.typed("rank.journal", JournalRecord)
    return [pair for entry in entries if source_of(entry.by) != PEOPLE for pair in _pairs(entry, grades)]


def _pairs(entry: JournalRecord, grades: Mapping[tuple[str, str], int]) -> Iterator[Pair]:
    rank = {doc_id: place for place, doc_id in enumerate(entry.order or ())}
    known = [doc_id for doc_id in entry.shown if doc_id in rank and (entry.qid, doc_id) in grades]
    for one, other in permutations(known, 2):
        mine, theirs = grades[entry.qid, one], grades[entry.qid, other]
        if mine != theirs:
            yield Pair(entry.shown.index(one) + 1, rank[one] < rank[other], mine > theirs, entry.qid)
