"""The judge stage once more, with a judge that says what its artifact says it said.

What the answers were cannot be derived; what the stage made of them can: each grade from its samples, in a cascade each
sample from its votes and whether they sent for the good judge, where each walk ended, who shares the grade of whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import JudgeRecord, MergeRecord, Passage, Query
from raggs.base.health import PEOPLE, source_of
from raggs.base.loops import open_loop
from raggs.parts.judges.base import Judgment
from raggs.parts.judges.exactness import may_abstain
from raggs.stages.base import Work
from raggs.stages.judge import STAGE, JudgeConfig
from raggs.stages.judgehealth import BEYOND, votes_settled

UNKNOWN = Judgment(None, error="no such answer in judge.jsonl")


class RecordedJudge:
    """Answers for the passages of one query as their records say; what was never asked fails.

    Args:
        spec: of the judge. One that may not abstain is not believed that it did.
    """

    def __init__(self, records: Sequence[JudgeRecord], spec: AdapterConfig) -> None:
        self._abstains, self._settled = may_abstain(spec.model_dump(mode="json")), votes_settled(spec)
        self._records = {record.doc_id: record for record in records if record.duplicate_of is None}
        self.name = next((record.judge for record in records if record.judge), "")

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        return other.doc_id in self._records

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        record, asked = self._records.get(passage.doc_id), sample
        if record is not None and source_of(record.judge) == PEOPLE:
            sample = 0  # they say the same to each, and are noted once
        silent = record is not None and self._abstains and not (record.skipped or "").startswith(BEYOND)
        if record is None or sample >= len(record.grades):
            return Judgment(None, silent=record.skipped or "abstained") if record and silent else UNKNOWN
        votes = {name: _said(grades[min(asked, len(grades) - 1)], record) for name, grades in record.votes.items()}
        said = _said(self._settled(record, sample), record)
        return replace(said, votes=votes, by=record.judge, answerers=record.answerers)

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        return [await self.grade(query, passage, sample=sample) for passage in passages]


def _said(grade: int | None, record: JudgeRecord) -> Judgment:
    if grade is None:
        return Judgment(None, error=record.error, raw=record.raw)
    return Judgment(grade, record.reason)


@dataclass(frozen=True)
class RecordedPool:
    """One query and its recorded judge, as grading a pool asks for them."""

    queries: Mapping[str, Query]
    judge: RecordedJudge


def regraded(work: Work, config: JudgeConfig) -> Iterator[JudgeRecord]:
    """What judge.jsonl must hold, given the pools and the answers that it holds, a query at a time.

    Where the budget ended, queries in between are left out: they are as if nobody had answered.
    """
    recorded = work.by_query("judge", JudgeRecord)
    following = next(recorded, None)
    with open_loop() as loop:
        for qid, pool in work.by_query("merge", MergeRecord):
            records = list[JudgeRecord]()
            if following is not None and following[0] <= qid:
                records, following = following[1], next(recorded, None)
            services = RecordedPool({qid: Query(qid=qid, text="?")}, RecordedJudge(records, config.judge))
            yield from loop.run(STAGE.pool(pool, config, services))
