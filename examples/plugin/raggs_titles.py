"""A retriever that searches only titles, and a metric for queries without a relevant result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

from raggs.base.arrays import Floats
from raggs.base.artifacts import EmbedRecord
from raggs.metrics.hits import Hits
from raggs.metrics.measures.hits import HitAny as HitMeasure
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig


class TitleRetriever(Retriever):
    """Passages whose title contains words of the query."""

    WHOLE_CORPUS = True  # it reads every passage

    class Config(RetrieverConfig):
        type: Literal["titles"] = "titles"

    @cached_property
    def _titles(self) -> dict[str, set[str]]:
        return {passage.doc_id: set(passage.title.lower().split()) for passage in self.context.store}

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        for query in queries:
            wanted = set(query.rewrite.lower().split())
            hits = [
                Hit(doc_id, len(wanted & words) / len(words))
                for doc_id, words in self._titles.items()
                if wanted & words
            ]
            yield sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))[: self.config.k]


class Miss(HitMeasure):
    """1 if no relevant passage is in the top k, else 0."""

    NAME, FORMULA, SOURCE = "miss", "1 - hit", "an example"
    HIGHER, TIES, ALIASES = False, False, ()

    def score(self, hits: Hits) -> Floats:
        return 1.0 - super().score(hits)
