"""A small corpus, an embedder that knows a few words, and queries as the embed stage writes them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from support.elastic import fill, vector_of

from raggs.base.artifacts import EmbedRecord, Passage
from raggs.base.cache import Cache
from raggs.parts import chunkers, rerankers, retrievers
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.retrievers import RetrieverContext

TEXTS = {
    "wing": "The lift of a wing in a slipstream was measured.",
    "plate": "Transition of the boundary layer on a flat plate.",
    "cat": "A cat sleeps on the mat for most of the day.",
    "copy": "A cat sleeps on the mat for most of the day.",
}
TOPICS = ("wing", "plate", "cat")


def embed(texts):
    rows = np.array([[float(topic in text.lower()) for topic in TOPICS] for text in texts], dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)


@pytest.fixture
def context(tmp_path):
    rows = [Passage(doc_id=doc_id, text=text) for doc_id, text in TEXTS.items()]
    with PassageStore.build(tmp_path / "p.sqlite", rows) as store, asyncio.Runner() as loop:
        made = RetrieverContext(
            store,
            ("q1", "q2"),
            embed,
            "topics/1",
            len(TOPICS),
            Cache(tmp_path / "cache"),
            lambda *_: None,
            retriever=lambda spec, among: retrievers.REGISTRY.of(spec)(spec, replace(made, passages=among)),
            chunker=lambda spec: chunkers.REGISTRY.of(spec)(spec),
            reranker=lambda spec: rerankers.REGISTRY.of(spec)(spec, None),
            loop=lambda: loop,
        )
        yield made


@pytest.fixture(scope="session")
def elastic_texts(elastic_url):
    """The corpus in an index: its address and name."""
    vectors = embed(TEXTS.values())
    documents = {
        doc_id: {"text": text, "vector": vector.tolist()}
        for (doc_id, text), vector in zip(TEXTS.items(), vectors, strict=True)
    }
    return {"url": elastic_url, "index": fill(elastic_url, documents, vector=vector_of(len(TOPICS)))}


@pytest.fixture
def ask():
    def query(text, qid="q1", language="en", **changes):
        values = {"bm25_text": text, "embedding": tuple(embed([text])[0].tolist()), "embedder": "topics/1", **changes}
        return EmbedRecord(qid=qid, text=text, rewrite=text, language=language, **values)

    return query
