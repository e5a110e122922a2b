"""Stage 2: every retriever's best passages for every query. With `depth`, some queries are searched deeper than
others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from raggs.base.adapter import OneOf
from raggs.base.artifacts import EmbedRecord, Record, RetrieveRecord
from raggs.base.judge_health import COUNT_DEEPER, COUNT_QUERIES
from raggs.base.settings import AddedLater, Causes, Settings
from raggs.parts import retrievers
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig, name_of
from raggs.parts.retrievers.depth import RoutedDepth, ScoreSource, SignalInputs, readings
from raggs.stages.base import Services, Stage, StageWork, Statistics
from raggs.stats.search_depth import fired_signals

BATCH = 64

RetrieverSpec = Annotated[RetrieverConfig, OneOf(retrievers.REGISTRY)]
HitsByRetriever = dict[str, Sequence[Hit]]  # the hits of one query, by retriever
SignalsByQuery = Sequence[tuple[str, ...]]  # per query of a batch: the signals whose thresholds were reached


class RetrieveConfig(Settings):
    """Settings of the retrieve stage: which retrievers fill the pool."""

    retrievers: tuple[RetrieverSpec, ...] = Field(
        ({"type": "bm25"}, {"type": "dense"}),
        validate_default=True,
        min_length=1,
        description="retrievers whose results fill the pool",
    )
    depth: AddedLater[RoutedDepth | None] = Field(
        None, description="search depth per query, which replaces the retrievers' own k; null: use each retriever's k"
    )

    @field_validator("retrievers")
    @classmethod
    def _unique_names(cls, specs: tuple[RetrieverConfig, ...]) -> tuple[RetrieverConfig, ...]:
        names = [name_of(spec) for spec in specs]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two retrievers have the name {name!r}; give each a unique `name`")
        return specs

    @model_validator(mode="after")
    def _signals_can_be_read(self) -> Self:
        if self.depth is None:
            return self
        for spec in self.retrievers:
            if spec.k not in (self.depth.base, type(spec).model_fields["k"].default):
                raise ValueError(
                    f"retriever {name_of(spec)} has k {spec.k}, but depth sets {self.depth.base} or "
                    f"{self.depth.deep}; remove its k"
                )
        there = {reads for spec in self.retrievers if (reads := _retriever_class(spec).reads(spec)) is not None}
        if lacking := self.depth.lacking(there):
            raise ValueError(f"depth.{lacking}; remove the signal, or add the retriever")
        return self

    @property
    def searched(self) -> tuple[RetrieverConfig, ...]:
        """The retrievers as used for all queries. With `depth`, rerankers search at the base cutoff, and all others at
        the deep cutoff.
        """
        if (depth := self.depth) is None:
            return self.retrievers
        return tuple(
            _retriever_class(spec).at(spec, depth.base if _is_deepened_on_demand(spec) else depth.deep)
            for spec in self.retrievers
        )

    @property
    def again(self) -> tuple[RetrieverConfig, ...]:
        """The retrievers that search again, deeper, for escalated queries; empty without `depth`."""
        if (depth := self.depth) is None:
            return ()
        return tuple(
            _retriever_class(spec).at(spec, depth.deep) for spec in self.retrievers if _is_deepened_on_demand(spec)
        )

    @property
    def deepest(self) -> tuple[RetrieverConfig, ...]:
        """The retrievers at the deepest cutoff of any query."""
        depth = self.depth
        return (
            self.retrievers
            if depth is None
            else tuple(_retriever_class(spec).at(spec, depth.deep) for spec in self.retrievers)
        )


class RetrieveStatistics(Statistics):
    """Count queries, and those that were searched deeper, by signal."""

    def __init__(self) -> None:
        self._qid = ""
        self._counts: Counter[str] = Counter({COUNT_QUERIES: 0, COUNT_DEEPER: 0})

    def see(self, record: Record) -> None:
        """Process a hit. Hits are grouped by query."""
        if not isinstance(record, RetrieveRecord) or record.qid == self._qid:
            return
        self._qid = record.qid
        self._counts.update([COUNT_QUERIES, *([COUNT_DEEPER] if record.escalated else ()), *record.escalated])

    def counts(self) -> Mapping[str, int]:
        """Return the counts of the records so far."""
        return dict(self._counts)


class RetrieveStage(Stage[RetrieveConfig]):
    NAME = "retrieve"
    READS = ("embed",)
    Config = RetrieveConfig
    RECORD = RetrieveRecord

    def causes(self, config: RetrieveConfig, services: Services) -> Causes:
        read = {**services.causes("quotes"), **services.causes("unreadable")}
        found = {"corpus": services.causes("corpus"), **read, **services.causes("retrievers")}
        reads_rewrites = config.depth is not None and config.depth.when.rewrite is not None
        return {**found, "embedder": services.causes("embedder")} if reads_rewrites else found

    def by_query(self, config: RetrieveConfig) -> bool:
        if config.depth is not None and config.depth.when.rewrite is not None:
            return False  # queries are embedded, as in the embed stage
        return not any(retrievers.REGISTRY.of(spec).paid(spec) for spec in config.retrievers)

    def statistics(self, config: RetrieveConfig) -> Statistics:
        return Statistics() if config.depth is None else RetrieveStatistics()

    def prepare(self, work: StageWork, services: Services) -> None:
        """Search once with each retriever, so that it builds its index."""
        first = list(islice(work.read("embed", EmbedRecord), 1))
        for retriever in services.retrievers.values():
            list(retriever.search(first))

    def run(self, work: StageWork, config: RetrieveConfig, services: Services) -> Iterator[RetrieveRecord]:
        total, done = len(services.queries), 0
        queries = work.read("embed", EmbedRecord)
        named = sorted(services.retrievers.items())
        while batch := list(islice(queries, BATCH)):
            lists = {name: list(retriever.search(batch)) for name, retriever in named}
            found: list[HitsByRetriever] = [
                {name: hits[at] for name, hits in lists.items()} for at in range(len(batch))
            ]
            signals: SignalsByQuery = [()] * len(batch)
            if config.depth is not None:
                signals = _signals(batch, found, config, config.depth, services)
                _route(batch, found, signals, config.depth, services)
            for query, each, why in zip(batch, found, signals, strict=True):
                yield from _records(query.qid, each, why)
            done += len(batch)
            work.progress(done, total)


def _records(qid: str, found: HitsByRetriever, why: tuple[str, ...]) -> Iterator[RetrieveRecord]:
    for name, hits in found.items():
        for rank, hit in enumerate(hits, start=1):
            yield RetrieveRecord(
                qid=qid, retriever=name, rank=rank, doc_id=hit.doc_id, score=float(hit.score), escalated=why
            )


def _signals(
    batch: Sequence[EmbedRecord],
    found: Sequence[HitsByRetriever],
    config: RetrieveConfig,
    depth: RoutedDepth,
    services: Services,
) -> SignalsByQuery:
    """Return the signals that fire for each query. A signal is computed from the first retriever of the kind that it
    needs.
    """
    when = depth.when.thresholds
    by_kind: dict[ScoreSource, str] = {}
    for spec in config.retrievers:
        if (reads := _retriever_class(spec).reads(spec)) is not None:
            by_kind.setdefault(reads, name_of(spec))
    vectors = _vectors(batch, services) if "rewrite" in when else {}

    def seen(query: EmbedRecord, lists: HitsByRetriever) -> SignalInputs:
        hits: dict[ScoreSource, Sequence[Hit]] = {reads: lists[name] for reads, name in by_kind.items()}
        return SignalInputs(
            text=query.text,
            language=query.language,
            base=depth.base,
            vectors=hits.get("vectors"),
            words=hits.get("words"),
            candidates=[hit.score for hit in hits.get("candidates", ())],
            question=vectors.get(query.qid),
            rewrite=query.embedding,
        )

    return [fired_signals(readings(seen(query, lists), when), when) for query, lists in zip(batch, found, strict=True)]


def _vectors(batch: Sequence[EmbedRecord], services: Services) -> Mapping[str, Sequence[float]]:
    """Return the vectors of the original queries. The embeddings of queries that were not rewritten are used again."""
    rewritten = [query for query in batch if query.altered]
    vectors: dict[str, Sequence[float]] = {query.qid: query.embedding for query in batch}
    if rewritten and services.embedder is not None:
        made = services.embedder.embed_queries([query.text for query in rewritten])
        vectors |= {query.qid: vector.tolist() for query, vector in zip(rewritten, made, strict=True)}
    return vectors


def _route(
    batch: Sequence[EmbedRecord],
    found: Sequence[HitsByRetriever],
    signals: SignalsByQuery,
    depth: RoutedDepth,
    services: Services,
) -> None:
    """Truncate the lists of shallow queries. For the other queries, search again with the retrievers whose lists are
    too short.
    """
    deep = [at for at, why in enumerate(signals) if why]
    for at, lists in enumerate(found):
        if not signals[at]:
            lists.update({name: hits[: depth.base] for name, hits in lists.items()})
    for name, retriever in services.deeper.items() if deep else ():
        for at, hits in zip(deep, retriever.search([batch[at] for at in deep]), strict=True):
            found[at][name] = hits


def _retriever_class(spec: RetrieverConfig) -> type[Retriever]:
    return retrievers.REGISTRY.of(spec)


def _is_deepened_on_demand(spec: RetrieverConfig) -> bool:
    """Return whether a longer list is so expensive that it is requested only when needed."""
    return _retriever_class(spec).reads(spec) == "candidates"


STAGE = RetrieveStage()
