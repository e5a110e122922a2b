"""Stage 4: a grade from 1 to 5 for every passage of the pool.

Only representatives are judged; their near-duplicates take the grade over. A judge that fails leaves a record
without a grade and with the reason: a failure never becomes a number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from statistics import median_low
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from raggs import judges
from raggs.artifacts import JudgeRecord, MergeRecord
from raggs.judges.base import Judgment
from raggs.llm import BatchSettings
from raggs.registry import spec_type
from raggs.settings import Effort, PromptName, Settings
from raggs.stages.base import Inputs, Services, Stage, run_ordered

if TYPE_CHECKING:
    JudgeSpec = Settings
else:
    JudgeSpec = spec_type(judges.REGISTRY)


class JudgeConfig(Settings):
    """Who grades, by which prompt, how often."""

    judge: JudgeSpec = Field(description="also orders the batches of the rank stage")
    prompt: PromptName = Field("grade@1", description="a prompt's name, or the path of a Markdown file")
    mode: Effort[Literal["direct", "batch"]] = Field(
        "direct", description="batch: grades by the provider's Batch API, in hours, at about half the price"
    )
    batch: Effort[BatchSettings] = BatchSettings()
    samples: int = Field(1, ge=1, description="grades asked for each passage; the lower median counts")


class Judge(Stage[JudgeConfig, JudgeRecord]):
    NAME = "judge"
    READS = ("merge",)
    Config = JudgeConfig
    Record = JudgeRecord

    def causes(self, config: JudgeConfig, services: Services) -> dict[str, Any]:
        return {"queries": services.causes("queries"), "judge": services.causes("judge", "grade")}

    def run(self, inputs: Inputs, config: JudgeConfig, services: Services) -> Iterator[JudgeRecord]:
        total = len(services.queries)

        async def grade(item: tuple[str, list[MergeRecord]]) -> list[JudgeRecord]:
            _, pool = item
            leaders = [record for record in pool if record.duplicate_of is None]
            graded = await asyncio.gather(*(self._grade(record, config, services) for record in leaders))
            by_id = {record.doc_id: record for record in graded}
            return [self._shared(record, by_id) for record in pool]

        # A pool is some dozens of calls, so a few queries at a time keep every slot of the concurrency filled, and
        # some hundreds fill a batch.
        window = max(4, config.batch.max_requests // 16 if config.mode == "batch" else services.concurrency // 4)
        pools = inputs.by_query("merge", MergeRecord)
        for done, records in enumerate(run_ordered(services, pools, grade, window=window), start=1):
            yield from records
            services.progress(done, total)

    def failed(self, record: JudgeRecord) -> bool:
        return record.grade is None and record.duplicate_of is None

    async def _grade(self, record: MergeRecord, config: JudgeConfig, services: Services) -> JudgeRecord:
        query = services.queries[record.qid]
        samples = await asyncio.gather(
            *(services.judge.grade(query, record.passage, sample=number) for number in range(config.samples))
        )
        return combine(record, samples, services.judge.name)

    @staticmethod
    def _shared(record: MergeRecord, graded: dict[str, JudgeRecord]) -> JudgeRecord:
        if record.duplicate_of is None:
            return graded[record.doc_id]
        update = {"rank": record.rank, "doc_id": record.doc_id, "duplicate_of": record.duplicate_of}
        return graded[record.duplicate_of].model_copy(update=update)


def combine(record: MergeRecord, samples: list[Judgment], judge: str) -> JudgeRecord:
    """One record from all samples: the lower median of those that succeeded, no grade if none did."""
    grades = [sample.grade for sample in samples]
    valid = [grade for grade in grades if grade is not None]
    grade = median_low(valid) if valid else None
    failed = [sample for sample in samples if sample.grade is None]
    return JudgeRecord(
        qid=record.qid,
        rank=record.rank,
        doc_id=record.doc_id,
        grade=grade,
        grades=tuple(grades),
        reason=next((sample.reason for sample in samples if sample.grade == grade and grade is not None), ""),
        judge=judge,
        error=failed[0].error if failed else None,
        raw=failed[0].raw if failed else None,
    )


STAGE = Judge()
