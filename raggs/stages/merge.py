"""Stage 3: fuse the retrievers' lists into one pool, group near-duplicates and attach texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Annotated, Literal

from pydantic import Field, model_validator

from raggs.base.adapter import NameOf
from raggs.base.artifacts import MergeRecord, Placement, RetrieveRecord
from raggs.base.settings import Causes, Settings
from raggs.ranking import fusion
from raggs.ranking.fusion import Fusion, fuse, fusion_options, group_duplicates, make_fusion
from raggs.stages.base import PassageServices, Services, Stage, StageWork


class TextDuplicates(Settings):
    """Settings for near-duplicates found by text. The best fused passage represents each group."""

    type: Literal["text"] = Field("text", description="method of detection; text: compare the words of passages")
    threshold: float = Field(
        0.95, gt=0, le=1, description="minimum text similarity of near-duplicates, above 0 and at most 1"
    )


class MergeConfig(Settings):
    """Settings of the merge stage: how lists become a pool."""

    type: Annotated[str, NameOf(fusion.REGISTRY)] = Field("rrf", description="fusion method for the retrievers' lists")
    k: int = Field(60, ge=1, description="constant k of reciprocal rank fusion")
    options: Mapping[str, int | float] = Field(default_factory=dict, description="options of the fusion method")
    depth: int = Field(100, ge=1, description="maximum number of passages in a pool")
    weights: Mapping[str, Annotated[float, Field(ge=0)]] | None = Field(
        None, description="weight of each retriever in the fusion, by name; 1 for retrievers that are not listed"
    )
    duplicates: TextDuplicates | None = Field(
        default_factory=TextDuplicates, description="detection of near-duplicates; null: no grouping"
    )

    @model_validator(mode="after")
    def _options_fit(self) -> MergeConfig:
        self.method()  # raises an error for an invalid option
        return self

    def method(self) -> Fusion:
        """Return the fusion method with its options.

        Raises:
            ValueError: an option is invalid.
        """
        usual = {"k": self.k} if "k" in fusion_options(self.type) else {}
        return make_fusion(self.type, **usual, **self.options)


class MergeStage(Stage[MergeConfig]):
    NAME = "merge"
    VERSION = 2
    READS = ("retrieve",)
    Config = MergeConfig
    RECORD = MergeRecord

    def causes(self, config: MergeConfig, services: Services) -> Causes:
        edition = fusion.REGISTRY.edition(config.type)
        return {"corpus": services.causes("corpus"), "fusion": edition, **services.causes("hygiene")}

    def run(self, work: StageWork, config: MergeConfig, services: PassageServices) -> Iterator[MergeRecord]:
        total, method = len(services.queries), config.method()
        for done, (qid, records) in enumerate(work.by_query("retrieve", RetrieveRecord), start=1):
            yield from self._pool(qid, records, method, config, services)
            work.progress(done, total)

    def _pool(
        self, qid: str, records: list[RetrieveRecord], method: Fusion, config: MergeConfig, services: PassageServices
    ) -> Iterator[MergeRecord]:
        lists = {
            name: [(record.doc_id, record.score) for record in hits]
            for name, hits in groupby(records, key=lambda record: record.retriever)
        }
        fused = fuse(lists, method, weights=config.weights, depth=config.depth)
        found = services.passages.get([item.doc_id for item in fused])
        passages = [found[item.doc_id] for item in fused]
        leaders = list(range(len(fused)))
        if config.duplicates is not None:
            leaders = group_duplicates([passage.content for passage in passages], config.duplicates.threshold)
        for position, (item, passage) in enumerate(zip(fused, passages, strict=True)):
            leader = leaders[position]
            yield MergeRecord(
                qid=qid,
                rank=position + 1,
                doc_id=item.doc_id,
                score=item.score,
                sources={name: Placement(rank=at, score=score) for name, (at, score) in sorted(item.sources.items())},
                duplicate_of=None if leader == position else fused[leader].doc_id,
                title=passage.title,
                text=passage.text,
                span=passage.span,
                metadata=passage.metadata,
            )


STAGE = MergeStage()
