"""Retrievers by name: one file and one line each (see `Retriever`).

What a retriever is: embedded queries in, the best k passages of each out.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from pydantic import Field

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.arrays import Vectors
from raggs.base.artifacts import EmbedRecord
from raggs.base.cache import Cache
from raggs.base.errors import PrerequisiteError
from raggs.base.loops import open_loop
from raggs.base.registry import Registry
from raggs.base.settings import Causes
from raggs.parts.elastic import VectorPlace
from raggs.parts.indexes.passages import Passages, PassageStore
from raggs.parts.rerankers import Reranker, RerankerConfig
from raggs.parts.retrievers.depth import ScoreSource

Faults = Iterator[tuple[Path, str]]  # folders of indexes that were altered, and what is wrong with each


class Hit(NamedTuple):
    """A passage and the retriever's score for it, higher is better."""

    doc_id: str
    score: float


class RetrieverConfig(AdapterConfig):
    """What every retriever's settings hold."""

    name: str | None = Field(None, description="its name in records and weights; the type if absent")
    k: int = Field(50, ge=1, description="hits for each query")


def name_of(config: RetrieverConfig) -> str:
    """The name of a configured retriever in records and weights: its `name`, else its `type`."""
    return config.name or config.type


def no_embedder(_: Sequence[str]) -> Vectors:
    """What embeds where no embedder is configured.

    Raises:
        PrerequisiteError: always.
    """
    raise PrerequisiteError("no embedder is configured", remedy="set embed.embedder")


def _no_other_retriever(_: RetrieverConfig) -> Retriever:
    raise TypeError("no other retriever can be had here")


def _no_reranker(_: RerankerConfig) -> Reranker:
    raise TypeError("no reranker can be had here")


@dataclass(frozen=True)
class RetrieverContext:
    """What a retriever may use: the passages, the queries' ids, the embedder, the cache, other retrievers."""

    passages: Passages
    queries: Collection[str]  # the ids of all queries of the run
    embed: Callable[[Sequence[str]], Vectors]
    embedder: str
    dims: int
    cache: Cache  # of indexes
    progress: Callable[[str, int, int], None]  # what is being built, done, of
    retriever: Callable[[RetrieverConfig], Retriever] = _no_other_retriever  # another one over the same passages
    reranker: Callable[[RerankerConfig], Reranker] = _no_reranker
    loop: Callable[[], asyncio.Runner] = open_loop  # in which rerankers are asked

    @property
    def store(self) -> PassageStore:
        """The whole corpus on this disk, for retrievers with `WHOLE_CORPUS`."""
        if not isinstance(self.passages, PassageStore):
            raise TypeError("a retriever reads the whole corpus and does not say so: set WHOLE_CORPUS")
        return self.passages


class Retriever(Adapter, ABC):
    """Searches the corpus. Built as ``cls(config, context)``; builds or opens its index at first search."""

    Config: ClassVar[type[RetrieverConfig]] = RetrieverConfig
    WHOLE_CORPUS: ClassVar[bool] = False  # whether it reads passages by position, and so all of them
    NEEDS_VECTORS: ClassVar[bool] = False  # whether it needs an embedder, by which all passages are embedded

    config: RetrieverConfig

    def __init__(self, config: RetrieverConfig, context: RetrieverContext) -> None:
        self.config = config
        self.context = context

    @classmethod
    def whole_corpus(cls, config: RetrieverConfig) -> bool:  # noqa: ARG003 - most need not look
        """Whether a retriever of these settings reads passages by position, and so all of them."""
        return cls.WHOLE_CORPUS

    @classmethod
    def needs_vectors(cls, config: RetrieverConfig) -> bool:  # noqa: ARG003
        """Whether a retriever of these settings needs an embedder."""
        return cls.NEEDS_VECTORS

    @classmethod
    def reads(cls, config: RetrieverConfig) -> ScoreSource | None:  # noqa: ARG003
        """What the scores of a retriever of these settings come from; None where nobody can say."""
        return None

    @classmethod
    def at(cls, config: RetrieverConfig, depth: int) -> RetrieverConfig:
        """The same settings with so many hits."""
        return config.model_copy(update={"k": depth})

    @classmethod
    def paid(cls, config: RetrieverConfig) -> bool:  # noqa: ARG003
        """Whether a retriever of these settings asks language models, and so works where keys and budget are."""
        return False

    @classmethod
    def index_place(cls, config: RetrieverConfig) -> VectorPlace | None:  # noqa: ARG003 - most search none
        """The index on a server that it searches and that `raggs index` can make; None where it searches none."""
        return None

    @classmethod
    def index_faults(cls, config: RetrieverConfig, store: PassageStore, cache: Cache) -> Faults:  # noqa: ARG003
        """What was altered in the index of a corpus that it keeps in the cache, with its folder; builds nothing."""
        return iter(())

    @property
    def folds(self) -> bool:
        """Whether it reads queries and passages in pairs, with quotation marks as keyboards have them."""
        return False

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are paid for each search; empty where nobody is."""
        return ()

    def reranks(self) -> Iterator[tuple[RerankerConfig, int]]:
        """The rerankers that each search asks, each with the number of its candidates at most; none of most."""
        yield from ()

    def causes(self) -> Causes:
        """What besides the corpus can change its hits, as it is now: settings, versions, an index on a server."""
        return self.own_causes()

    def check(self) -> None:
        """Find what it lacks before anything is paid for.

        Raises:
            RaggsError: its server is down, or has not what it needs.
        """
        return

    @abstractmethod
    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        """For each query its hits, best first: score descending, then doc_id ascending; at most `k`.

        Raises:
            DataError: a score is NaN, or a query's vector does not fit the index.
        """

    def close(self) -> None:
        """Let go of what is open. May be called twice."""
        return


REGISTRY: Registry[Retriever] = Registry(
    "retriever",
    "retrievers",
    "raggs.parts.retrievers:Retriever",
    {
        "bm25": "raggs.parts.retrievers.bm25:Bm25Retriever",
        "dense": "raggs.parts.retrievers.dense:DenseRetriever",
        "elasticsearch": "raggs.parts.retrievers.elasticsearch:ElasticsearchRetriever",
        "python": "raggs.parts.callables:PythonRetriever",
        "reranked": "raggs.parts.retrievers.reranked:RerankedRetriever",
        "runfile": "raggs.parts.retrievers.runfile:RunFileRetriever",
    },
)
