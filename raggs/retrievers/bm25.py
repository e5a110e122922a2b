"""Lexical retrieval by BM25, embedded. The index lives in `raggs.indexes.lexical`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from raggs.arrays import shortest_floats
from raggs.languages import STEMMERS
from raggs.retrievers.base import Hit, RetrieverAdapter, RetrieverContext
from raggs.settings import Settings

if TYPE_CHECKING:
    from raggs.artifacts import EmbedRecord
    from raggs.indexes.lexical import LexicalIndex


class Bm25Retriever(RetrieverAdapter):
    """BM25 (Lucene's variant), with stemmer and stop words by language."""

    WHOLE_CORPUS = True
    PACKAGES = ("bm25s", "PyStemmer")

    class Config(Settings):
        type: Literal["bm25"] = "bm25"
        name: str | None = Field(None, description="its name in records and weights; the type if absent")
        k: int = Field(50, ge=1, description="hits for each query")
        k1: float = Field(1.2, ge=0, description="how soon repeated words stop counting")
        b: float = Field(0.75, ge=0, le=1, description="how much long passages are held back")
        language: str = Field(
            "auto", description="auto: the languages that the corpus is found to have; or an ISO 639-1 code"
        )

        @field_validator("language")
        @classmethod
        def _known(cls, language: str) -> str:
            if language != "auto" and language not in STEMMERS:
                raise ValueError(f"no stemmer for {language!r}; known: auto, {', '.join(sorted(STEMMERS))}")
            return language

    def __init__(self, config: Config, context: RetrieverContext) -> None:
        self._config = config
        self._context = context

    @cached_property
    def _index(self) -> LexicalIndex:
        from raggs.indexes.lexical import Parameters, open_lexical

        parameters = Parameters(self._config.k1, self._config.b, self._config.language)
        return open_lexical(self._context.cache, self._context.store, parameters, self._context.progress)

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        for query in queries:
            positions, scores = self._index.search(query.bm25_text, query.language, self._config.k)
            ids = self._context.store.ids_at(positions.tolist())
            yield [Hit(doc_id, score) for doc_id, score in zip(ids, shortest_floats(scores), strict=True)]
