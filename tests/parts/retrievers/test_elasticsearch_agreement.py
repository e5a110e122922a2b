"""The server's search and the embedded ones agree on a real text: Python's own reference and questions about it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from support.elastic import fill, vector_of

from raggs.base.artifacts import EmbedRecord
from raggs.base.cache import Cache
from raggs.parts.corpora.pydoc import PydocConfig, PydocCorpus
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.indexes.lexical import words_of
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.queries.formats import YamlQueries, YamlQueriesConfig
from raggs.parts.retrievers import RetrieverContext
from raggs.parts.retrievers.bm25 import Bm25Retriever
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.parts.retrievers.elasticsearch import ElasticsearchRetriever

QUESTIONS = Path(__file__).resolve().parents[3] / "examples" / "quickstart" / "questions.yaml"
PASSAGES = 300
TOP = 10


@pytest.fixture(scope="module")
def passages():
    """Each text once: passages of equal score and text would be no disagreement."""
    unique = {passage.text: passage for passage in PydocCorpus(PydocConfig()).passages()}
    return list(islice(unique.values(), PASSAGES))


@pytest.fixture(scope="module")
def embedder():
    return WordLlamaEmbedder(WordLlamaEmbedder.Config(dims=64))


@pytest.fixture(scope="module")
def asked(embedder):
    queries = [query for _, query in YamlQueries(YamlQueriesConfig(path=QUESTIONS)).queries()]
    vectors = embedder.embed([query.text for query in queries])
    return [
        EmbedRecord(
            qid=query.qid,
            text=query.text,
            rewrite=query.text,
            bm25_text=query.text,
            language="en",
            embedding=tuple(vector.tolist()),
            embedder=embedder.identity,
        )
        for query, vector in zip(queries, vectors, strict=True)
    ]


@pytest.fixture
def context(tmp_path, passages, asked, embedder):
    with PassageStore.build(tmp_path / "p.sqlite", passages) as store:
        ids = [query.qid for query in asked]
        yield RetrieverContext(
            store, ids, embedder.embed, embedder.identity, embedder.dims, Cache(tmp_path), lambda *_: None
        )


@pytest.fixture(scope="module")
def source(elastic_url, passages, embedder):
    """An index whose text is analysed as the embedded search does it: its words, parted by blanks."""
    vectors = embedder.embed([passage.content for passage in passages])
    documents = {
        passage.doc_id: {"text": " ".join(words_of(passage.content, "en")), "vector": vector.tolist()}
        for passage, vector in zip(passages, vectors, strict=True)
    }
    text = {"type": "text", "analyzer": "whitespace"}
    return {"url": elastic_url, "index": fill(elastic_url, documents, text=text, vector=vector_of(embedder.dims))}


def overlap(context, asked, embedded, source, **options):
    """The mean share of one top list that is in the other."""
    server = ElasticsearchRetriever(ElasticsearchRetriever.Config(k=TOP, **source, **options), context)
    words = [query.model_copy(update={"bm25_text": " ".join(words_of(query.bm25_text, "en"))}) for query in asked]
    shares = [
        len({hit.doc_id for hit in here} & {hit.doc_id for hit in there}) / max(len(here), 1)
        for here, there in zip(embedded.search(asked), server.search(words), strict=True)
    ]
    assert len(shares) >= 25
    return sum(shares) / len(shares)


def test_bm25(context, asked, source):
    embedded = Bm25Retriever(Bm25Retriever.Config(k=TOP, language="en"), context)
    assert overlap(context, asked, embedded, source, mode="bm25") >= 0.95


def test_knn(context, asked, source):
    embedded = DenseRetriever(DenseRetriever.Config(k=TOP), context)
    assert overlap(context, asked, embedded, source, mode="knn") >= 0.95
