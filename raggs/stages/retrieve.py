"""Stage 2: every retriever's best passages for every query."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from pydantic import Field, field_validator

from raggs import retrievers
from raggs.adapter import OneOf
from raggs.artifacts import EmbedRecord, RetrieveRecord
from raggs.retrievers.base import RetrieverConfig, name_of
from raggs.settings import Causes, Settings
from raggs.stages.base import Services, Stage, Work

BATCH = 64

RetrieverSpec = Annotated[RetrieverConfig, OneOf(retrievers.REGISTRY)]


class RetrieveConfig(Settings):
    """Which retrievers fill the pool."""

    retrievers: tuple[RetrieverSpec, ...] = Field(
        ({"type": "bm25"}, {"type": "dense"}), validate_default=True, min_length=1, description="each fills the pool"
    )

    @field_validator("retrievers")
    @classmethod
    def _unique_names(cls, specs: tuple[RetrieverConfig, ...]) -> tuple[RetrieverConfig, ...]:
        names = [name_of(spec) for spec in specs]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two retrievers are called {name!r}; give each a `name` of its own")
        return specs


class Retrieve(Stage[RetrieveConfig]):
    NAME = "retrieve"
    READS = ("embed",)
    Config = RetrieveConfig
    RECORD = RetrieveRecord

    def causes(self, config: RetrieveConfig, services: Services) -> Causes:
        return {"corpus": services.causes("corpus"), **services.causes("retrievers")}

    def by_query(self, config: RetrieveConfig) -> bool:
        return not any(retrievers.REGISTRY.of(spec).paid(spec) for spec in config.retrievers)

    def prepare(self, work: Work, services: Services) -> None:
        """One search by each retriever, which builds its index."""
        first = list(islice(work.read("embed", EmbedRecord), 1))
        for retriever in services.retrievers.values():
            list(retriever.search(first))

    def run(self, work: Work, config: RetrieveConfig, services: Services) -> Iterator[RetrieveRecord]:
        total, done = len(services.queries), 0
        queries = work.read("embed", EmbedRecord)
        named = sorted(services.retrievers.items())
        while batch := list(islice(queries, BATCH)):
            found = {name: list(retriever.search(batch)) for name, retriever in named}
            for position, query in enumerate(batch):
                for name, lists in found.items():
                    for rank, hit in enumerate(lists[position], start=1):
                        yield RetrieveRecord(
                            qid=query.qid, retriever=name, rank=rank, doc_id=hit.doc_id, score=float(hit.score)
                        )
            done += len(batch)
            work.progress(done, total)


STAGE = Retrieve()
