"""A corpus in an Elasticsearch index.

A run reads only the passages that its pools need (`remote`). If a retriever works on the whole corpus (bm25, dense),
all documents are read at one point in time and stored like any other corpus. In both cases, the hash is that of the
index's state: after any write to the index, the stages that depend on the corpus run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Literal

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage
from raggs.parts.corpora import Corpus, EmptyPassage
from raggs.parts.elastic import IndexPlace
from raggs.parts.elastic.index import ElasticIndex
from raggs.parts.elastic.passages import IndexPassages


class ElasticsearchConfig(IndexPlace, AdapterConfig):
    type: Literal["elasticsearch"] = "elasticsearch"


class ElasticsearchCorpus(Corpus):
    """Documents of an Elasticsearch index: only those in the pools, or all if a retriever needs them."""

    Config = ElasticsearchConfig
    config: ElasticsearchConfig

    @classmethod
    def index_place(cls, config: AdapterConfig) -> IndexPlace | None:
        return config if isinstance(config, cls.Config) else None

    def source_hash(self) -> str:
        """Return a hash of the index's state on the server, which changes with any write."""
        with closing(self.remote()) as index:
            return index.content_hash

    def passages(self) -> Iterator[Passage]:
        """Yield all documents of one point in time (see `Corpus.passages`)."""
        self.left_out.clear()
        self.replaced.clear()
        with closing(self.remote()) as index:
            for number, (doc_id, passage) in enumerate(index.scan(), start=1):
                if passage is None:
                    self.left_out.append(EmptyPassage(doc_id, number))
                else:
                    yield passage

    def remote(self) -> IndexPassages:
        """Return the passages of the current index, fetched on demand and not copied."""
        return IndexPassages(ElasticIndex(self.config), self.replaced)
