"""Lexical retrieval by BM25, in process. The index is implemented in `raggs.parts.indexes.lexical`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from raggs.base.arrays import shortest_floats
from raggs.base.languages import STEMMERS
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig

if TYPE_CHECKING:
    from raggs.base.artifacts import EmbedRecord
    from raggs.base.cache import Cache
    from raggs.parts.indexes.lexical import LexicalIndex, Parameters
    from raggs.parts.indexes.passages import PassageStore
    from raggs.parts.retrievers import Faults
    from raggs.parts.retrievers.depth import ScoreSource


class Bm25Retriever(Retriever):
    """BM25 (Lucene's variant), with a stemmer and stop words per language."""

    WHOLE_CORPUS = True
    PACKAGES = ("bm25s", "PyStemmer")

    class Config(RetrieverConfig):
        type: Literal["bm25"] = "bm25"
        k1: float = Field(
            1.2, ge=0, description="saturation of term frequency; at lower values, repeated words count less"
        )
        b: float = Field(0.75, ge=0, le=1, description="length normalisation, from 0 (none) to 1 (full)")
        language: str = Field("auto", description="ISO 639-1 code of stemmer and stop words; auto: detected")

        @field_validator("language")
        @classmethod
        def _known(cls, language: str) -> str:
            if language != "auto" and language not in STEMMERS:
                raise ValueError(f"no stemmer for {language!r}; known: auto, {', '.join(sorted(STEMMERS))}")
            return language

        @property
        def parameters(self) -> Parameters:
            """Parameters that determine the index."""
            from raggs.parts.indexes.lexical import Parameters

            return Parameters(self.k1, self.b, self.language)

    config: Config

    @classmethod
    def reads(cls, config: RetrieverConfig) -> ScoreSource:  # noqa: ARG003
        return "words"

    @classmethod
    def index_faults(cls, config: RetrieverConfig, store: PassageStore, cache: Cache) -> Faults:
        """Yield the altered files of the retriever's index."""
        from raggs.parts.indexes.lexical import lexical_faults

        if isinstance(config, cls.Config):
            yield from lexical_faults(cache.at("bm25"), store, config.parameters)

    @cached_property
    def _index(self) -> LexicalIndex:
        from raggs.parts.indexes.lexical import open_lexical

        context = self.context
        return open_lexical(context.cache.at("bm25"), context.store, self.config.parameters, context.progress)

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        """Yield the hits of each query; the index is built or opened at the first query."""
        for query in queries:
            positions, scores = self._index.search(query.bm25_text, query.language, self.config.k)
            ids = self.context.store.ids_at(positions.tolist())
            yield [Hit(doc_id, score) for doc_id, score in zip(ids, shortest_floats(scores), strict=True)]
