"""Retrievers: base class and registry.

A retriever takes embedded queries and returns the best k passages for each query.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pydantic import Field

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.arrays import Vectors
from raggs.base.artifacts import EmbedRecord
from raggs.base.cache import Cache
from raggs.base.errors import PrerequisiteError
from raggs.base.loops import open_loop
from raggs.base.registry import Registry
from raggs.base.settings import Causes
from raggs.parts.chunkers import Chunker, ChunkerConfig
from raggs.parts.elastic import VectorPlace
from raggs.parts.indexes.passages import Passages, PassageStore
from raggs.parts.rerankers import Reranker, RerankerConfig
from raggs.parts.retrievers.depth import ScoreSource

if TYPE_CHECKING:
    from raggs.parts.indexes import IndexFacts

Faults = Iterator[tuple[Path, str]]  # folders of altered indexes, each with a description of the fault


class Hit(NamedTuple):
    """A passage id and the retriever's score; higher is better."""

    doc_id: str
    score: float


class RetrieverConfig(AdapterConfig):
    """Settings common to all retrievers."""

    name: str | None = Field(None, description="name of the retriever in records and fusion weights; null: its type")
    k: int = Field(50, ge=1, description="hits per query")


def name_of(config: RetrieverConfig) -> str:
    """Return the name of a configured retriever in records and weights: its `name`, or its `type`."""
    return config.name or config.type


def no_embedder(_: Sequence[str]) -> Vectors:
    """Raise an error. This is the embedding function if no embedder is configured.

    Raises:
        PrerequisiteError: always.
    """
    raise PrerequisiteError("no embedder is configured", remedy="set embed.embedder")


def _no_other_retriever(_: RetrieverConfig, __: Passages) -> Retriever:
    raise TypeError("this retriever cannot use another retriever")


def _no_chunker(_: ChunkerConfig) -> Chunker:
    raise TypeError("this retriever cannot use a chunker")


def _no_reranker(_: RerankerConfig) -> Reranker:
    raise TypeError("this retriever cannot use a reranker")


@dataclass(frozen=True)
class RetrieverContext:
    """Resources for retrievers: passages, query ids, embedder, cache, and other parts."""

    passages: Passages
    queries: Collection[str]  # the ids of all queries of the run
    embed: Callable[[Sequence[str]], Vectors]
    embedder: str
    dims: int
    cache: Cache  # cache of indexes
    progress: Callable[[str, int, int], None]  # name of the task, steps done, steps in total
    # creates another retriever over these passages
    retriever: Callable[[RetrieverConfig, Passages], Retriever] = _no_other_retriever
    reranker: Callable[[RerankerConfig], Reranker] = _no_reranker
    chunker: Callable[[ChunkerConfig], Chunker] = _no_chunker  # creates a chunker that makes no paid calls
    loop: Callable[[], asyncio.Runner] = open_loop  # returns the event loop for coroutines

    @property
    def store(self) -> PassageStore:
        """The whole corpus as a local store, for retrievers with `WHOLE_CORPUS`."""
        if not isinstance(self.passages, PassageStore):
            raise TypeError("a retriever that reads the whole corpus must set WHOLE_CORPUS")
        return self.passages


class Retriever(Adapter, ABC):
    """Searches the corpus. Created as ``cls(config, context)``; builds or opens its index at the first search."""

    Config: ClassVar[type[RetrieverConfig]] = RetrieverConfig
    # whether the retriever needs all passages, for example because it reads them by position
    WHOLE_CORPUS: ClassVar[bool] = False
    NEEDS_VECTORS: ClassVar[bool] = False  # whether the retriever needs embeddings of all passages

    config: RetrieverConfig

    def __init__(self, config: RetrieverConfig, context: RetrieverContext) -> None:
        self.config = config
        self.context = context

    @classmethod
    def whole_corpus(cls, config: RetrieverConfig) -> bool:  # noqa: ARG003 - for subclasses
        """Return whether a retriever with these settings needs all passages, for example to read them by position."""
        return cls.WHOLE_CORPUS

    @classmethod
    def needs_vectors(cls, config: RetrieverConfig) -> bool:  # noqa: ARG003
        """Return whether a retriever with these settings needs an embedder."""
        return cls.NEEDS_VECTORS

    @classmethod
    def reads(cls, config: RetrieverConfig) -> ScoreSource | None:  # noqa: ARG003
        """Return where the scores of a retriever with these settings come from; None if unknown."""
        return None

    @classmethod
    def at(cls, config: RetrieverConfig, depth: int) -> RetrieverConfig:
        """Return the settings with another number of hits."""
        return config.model_copy(update={"k": depth})

    @classmethod
    def paid(cls, config: RetrieverConfig) -> bool:  # noqa: ARG003
        """Return whether a retriever with these settings calls models of providers, so needs keys and a budget."""
        return False

    @classmethod
    def index_place(cls, config: RetrieverConfig) -> VectorPlace | None:  # noqa: ARG003 - for subclasses
        """Return the server index that the retriever searches and that `raggs index` can create; None if there is
        none.
        """
        return None

    @classmethod
    def index_faults(cls, config: RetrieverConfig, store: PassageStore, cache: Cache) -> Faults:  # noqa: ARG003
        """Yield the folder and a description of each altered file in the retriever's cached index; no index is
        built.
        """
        return iter(())

    @property
    def folds(self) -> bool:
        """Whether a model reads query and passage together, with typographic quotation marks replaced by ASCII ones."""
        return False

    @property
    def models(self) -> tuple[str, ...]:
        """Paid models that each search calls; empty if there are none."""
        return ()

    @property
    def facts(self) -> IndexFacts | None:
        """Size and cost of the vector index, which is built or opened to determine them; None if there is none."""
        return None

    def embedded(self) -> Iterator[Passages]:
        """Yield the passages, or their units, whose vectors each search needs; nothing is embedded."""
        if self.NEEDS_VECTORS:
            yield self.context.passages

    def reranks(self) -> Iterator[tuple[RerankerConfig, int]]:
        """Yield the rerankers that each search uses, with the maximum number of candidates; by default, there are
        none.
        """
        yield from ()

    def causes(self) -> Causes:
        """Return what affects the hits apart from the corpus: settings, versions, state of a server index."""
        return self.own_causes()

    def check(self) -> None:
        """Raise an error if a prerequisite is missing, before any paid call.

        Raises:
            RaggsError: a package, key, index or field is missing, or a server is down.
        """
        return

    @abstractmethod
    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        """Yield at most `k` hits per query, best first: by descending score, then by ascending doc_id.

        Raises:
            DataError: a score is NaN, or a query's vector does not fit the index.
        """

    def latency_ms(self, query: EmbedRecord) -> float | None:
        """Search once without cached results, and return the milliseconds; None if `search` caches nothing, so that its
        duration is the latency.
        """
        return None

    def close(self) -> None:
        """Close open resources. May be called twice."""
        return


REGISTRY: Registry[Retriever] = Registry(
    "retriever",
    "retrievers",
    "raggs.parts.retrievers:Retriever",
    {
        "bm25": "raggs.parts.retrievers.bm25:Bm25Retriever",
        "dense": "raggs.parts.retrievers.dense:DenseRetriever",
        "elasticsearch": "raggs.parts.retrievers.elasticsearch:ElasticsearchRetriever",
        "http": "raggs.parts.retrievers.http:HttpRetriever",
        "parent": "raggs.parts.retrievers.parent:ParentRetriever",
        "python": "raggs.parts.callables:PythonRetriever",
        "reranked": "raggs.parts.retrievers.reranked:RerankedRetriever",
        "runfile": "raggs.parts.retrievers.runfile:RunFileRetriever",
    },
)
