"""Stage 5: keep the passages that are worth ranking. Passages of the best grade are kept, then those of the next grade,
until there are enough. If the last grade has too many passages, only its best fused passages are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, model_validator

from raggs.base.artifacts import JudgeRecord, PruneRecord
from raggs.base.settings import Causes, Settings
from raggs.ranking.pruning import prune
from raggs.stages.base import QueryServices, Services, Stage, StageWork


class PruneConfig(Settings):
    """Settings of the prune stage: how many passages are ranked."""

    min_keep: int = Field(
        35,
        ge=1,
        description="minimum number of passages to keep; the best grade is kept, then the next one, and so on, until"
        " this number is reached",
    )
    max_keep: int = Field(
        60,
        ge=1,
        description="maximum number of passages to keep; if the last grade has too many passages, those with the worst "
        "fused ranks are dropped",
    )

    @model_validator(mode="after")
    def _ordered(self) -> PruneConfig:
        if self.min_keep > self.max_keep:
            raise ValueError(f"min_keep ({self.min_keep}) is above max_keep ({self.max_keep})")
        return self


class PruneStage(Stage[PruneConfig]):
    NAME = "prune"
    READS = ("judge",)
    Config = PruneConfig
    RECORD = PruneRecord

    def causes(self, config: PruneConfig, services: Services) -> Causes:
        return {}

    def run(self, work: StageWork, config: PruneConfig, services: QueryServices) -> Iterator[PruneRecord]:
        total = len(services.queries)
        for done, (_, pool) in enumerate(work.by_query("judge", JudgeRecord), start=1):
            leaders = [record for record in pool if record.duplicate_of is None]
            grades, ranks = [record.grade for record in leaders], [record.rank for record in leaders]
            decisions = prune(grades, ranks, min_keep=config.min_keep, max_keep=config.max_keep)
            decided = {record.doc_id: decision for record, decision in zip(leaders, decisions, strict=True)}
            for record in pool:
                decision = decided[record.duplicate_of or record.doc_id]
                yield PruneRecord(
                    qid=record.qid,
                    rank=record.rank,
                    doc_id=record.doc_id,
                    grade=record.grade,
                    kept=decision.kept,
                    why=record.skipped or decision.why,
                    duplicate_of=record.duplicate_of,
                    distribution=record.distribution,
                )
            work.progress(done, total)


STAGE = PruneStage()
