"""A golden set that has some of every part, and what each of two retrievers returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from raggs.base.artifacts import Nugget, Passage, Query, RankRecord, Reference, RetrieveRecord, Span
from raggs.golden.base import GoldenQuery, LabelRecord
from support.golden import GivenGolden

GRADES = {"q1": {"d9": 2, "d1": 5, "d10": 4, "d2": None, "d3": 1}, "q2": {"d3": 4, "é/7": 3}}
ORDERS = {"q1": ["d1", "d10", "d9", "d3"], "q2": ["d3", "é/7"]}
LISTS = {"bm25": {"q1": {"d1": 2.5, "d9": 2.5, "d77": 0.1}, "q2": {"d3": 1.0}}, "my dense": {"q1": {"d10": 1e-9}}}


@dataclass
class RichGolden(GivenGolden):
    """With lists."""

    def hits(self) -> Iterator[RetrieveRecord]:
        for name, lists in LISTS.items():
            for qid, found in lists.items():
                for rank, (doc_id, score) in enumerate(found.items(), start=1):
                    yield RetrieveRecord(qid=qid, retriever=name, rank=rank, doc_id=doc_id, score=score)


def rich_golden() -> RichGolden:
    """The set; its top is 3."""
    return RichGolden("rich", 3, [_query(qid) for qid in GRADES])


def _query(qid: str) -> GoldenQuery:
    said = {"language": "fr", "answer": "Ici", "nuggets": (Nugget(any=("ici",)),), "metadata": {"n": [1, {"x": None}]}}
    place = Reference(text="ici", doc_id="d1", span=Span(source="a.md", start=3, end=6))
    asked = Query(qid=qid, text=f"Où\u2028{qid} ?", references=(place,), **(said if qid == "q1" else {}))
    orders = (_place(qid, rank, doc_id) for rank, doc_id in enumerate(ORDERS[qid], start=1))
    return GoldenQuery(qid, asked, tuple(map(_passage, GRADES[qid])), tuple(_grades(qid)), tuple(orders))


def _passage(doc_id: str) -> Passage:
    known = {"span": Span(source="a.md", start=0, end=15), "metadata": {"page": 3}} if doc_id == "d1" else {}
    return Passage(doc_id=doc_id, title=f"T {doc_id}", text=f"The text\tof {doc_id}.\nIts end", **known)


def _grades(qid: str) -> Iterator[LabelRecord]:
    for doc_id, grade in GRADES[qid].items():
        several = {"samples": (4, 5, None), "votes": {"a": (5,), "b": (4,)}} if doc_id == "d1" else {}
        yield LabelRecord(
            qid=qid,
            doc_id=doc_id,
            grade=grade,
            judge="human: ada" if doc_id == "d9" else "gpt",
            reason="" if grade is None else f"because of {doc_id}",
            duplicate_of="d1" if doc_id == "d10" else None,
            error="no answer" if grade is None else None,
            **several,
        )


def _place(qid: str, rank: int, doc_id: str) -> RankRecord:
    return RankRecord(
        qid=qid,
        rank=rank,
        doc_id=doc_id,
        grade=GRADES[qid][doc_id],
        score=3.25 - rank / 3,
        sigma=0.5,
        confidence=0.75,
        rank_low=1,
        rank_high=4,
        membership=0.9,
        exposures=4,
        duplicate_of="d1" if doc_id == "d10" else None,
    )
