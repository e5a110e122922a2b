"""A corpus that lies in an index of Elasticsearch.

A run reads of it what its pools need (`remote`). Only where a retriever works on the whole corpus (bm25, dense) is
all of it read, by a point in time, and kept like any other corpus. Either way the index's state stands for its
content: any write to it makes the stages run that depend on the corpus.
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
    """The documents of an Elasticsearch index: those that the pools need, or all by a point in time."""

    Config = ElasticsearchConfig
    config: ElasticsearchConfig

    @classmethod
    def index_place(cls, config: AdapterConfig) -> IndexPlace | None:
        return config if isinstance(config, cls.Config) else None

    def source_hash(self) -> str:
        """Over the index's state on the server, which any write changes."""
        with closing(self.remote()) as index:
            return index.content_hash

    def passages(self) -> Iterator[Passage]:
        """See `Corpus.passages`; all documents as of one moment."""
        self.left_out.clear()
        self.replaced.clear()
        with closing(self.remote()) as index:
            for number, (doc_id, passage) in enumerate(index.scan(), start=1):
                if passage is None:
                    self.left_out.append(EmptyPassage(doc_id, number))
                else:
                    yield passage

    def remote(self) -> IndexPassages:
        """The passages as they are asked for, without a copy, of the index as it stands now."""
        return IndexPassages(ElasticIndex(self.config), self.replaced)
