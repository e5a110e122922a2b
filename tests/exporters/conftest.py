"""A small golden set with everything that exporters must get right."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from raggs.artifacts import JudgeRecord, MergeRecord, Placement, Query, RankRecord
from raggs.exporters.base import Golden

# By query: fused order with grades (None: the judge failed), near-duplicates by representative, and the final order.
POOLS = {
    "q1": {"d9": 2, "d1": 5, "d10": 4, "d2": None, "d3": 1, "d3b": 1},
    "q10": {"d3": 4, "é/7": 3, "d1": 1},
    "q2": {"d5": 3},
}
DUPLICATES = {("q1", "d3b"): "d3"}
ORDERS = {"q1": ["d10", "d1", "d9", "d3", "d3b"], "q10": ["é/7", "d3", "d1"], "q2": ["d5"]}
TEXTS = {"d1": 'A "quoted"\ttext\nof two lines\u2028or three\x85or four', "é/7": "Élan vital"}


def text_of(doc_id: str) -> str:
    return TEXTS.get(doc_id, f"The text of {doc_id}.")


def merge_records():
    for qid, pool in POOLS.items():
        for rank, doc_id in enumerate(pool, start=1):
            yield MergeRecord(
                qid=qid,
                rank=rank,
                doc_id=doc_id,
                score=1 / rank,
                sources={"bm25": Placement(rank=rank, score=9.5)},
                duplicate_of=DUPLICATES.get((qid, doc_id)),
                title=f"Title {doc_id}" if doc_id != "d9" else "",
                text=text_of(doc_id),
            )


def judge_records():
    for qid, pool in POOLS.items():
        for rank, (doc_id, grade) in enumerate(pool.items(), start=1):
            error = "no answer" if grade is None else None
            duplicate_of = DUPLICATES.get((qid, doc_id))
            yield JudgeRecord(
                qid=qid, rank=rank, doc_id=doc_id, grade=grade, judge="test", error=error, duplicate_of=duplicate_of
            )


def rank_records():
    for qid, order in ORDERS.items():
        for rank, doc_id in enumerate(order, start=1):
            yield RankRecord(
                qid=qid,
                rank=rank,
                doc_id=doc_id,
                grade=POOLS[qid][doc_id],
                score=3.25,
                sigma=0.5,
                confidence=0.75,
                rank_low=1,
                rank_high=9,
                membership=1,
                exposures=4,
                duplicate_of=DUPLICATES.get((qid, doc_id)),
            )


@dataclass(frozen=True)
class Maker:
    """Fresh golden sets whose streams can be read once only."""

    base: Golden

    def __call__(self, **changes) -> Golden:
        streams = {"pool": merge_records(), "grades": judge_records(), "ranking": rank_records()}
        return replace(self.base, **{**streams, **changes})


@pytest.fixture
def golden() -> Maker:
    queries = {qid: Query(qid=qid, text=f"What of {qid}?") for qid in ("q2", "q1", "q10")}
    return Maker(Golden("my test", 4, queries, (), (), (), {"run": "r1", "judge": {"model": "été"}}))
