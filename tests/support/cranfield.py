"""The Cranfield collection, where it lies beside the checkout, and what the default retrievers find in it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from raggs.base.artifacts import EmbedRecord, Passage
from raggs.base.cache import Cache
from raggs.base.trec import read_qrels
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.retrievers import RetrieverContext
from raggs.parts.retrievers.bm25 import Bm25Retriever
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.ranking.fusion import fuse, make_fusion

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "cranfield"
needs_cranfield = pytest.mark.skipif(not DATA.is_dir(), reason="the Cranfield collection is not on this machine")

Lists = dict[str, list[tuple[str, float]]]  # qid -> (doc_id, score), best first


def cranfield_labels() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for label in read_qrels(DATA / "qrels.trec"):
        found.setdefault(label.qid, {})[label.doc_id] = label.grade
    return found


@cache
def cranfield_runs() -> dict[str, Lists]:
    """What BM25, dense retrieval and their fusion find."""
    embedder = WordLlamaEmbedder(WordLlamaEmbedder.Config())
    queries = _read("queries.jsonl")
    vectors = embedder.embed([query["text"] for query in queries])
    records = [
        EmbedRecord(
            qid=query["_id"],
            text=query["text"],
            rewrite=query["text"],
            bm25_text=query["text"],
            language="en",
            embedding=tuple(vector.tolist()),
            embedder=embedder.identity,
        )
        for query, vector in zip(queries, vectors, strict=True)
    ]
    qids = [record.qid for record in records]
    rows = [Passage(doc_id=row["_id"], title=row["title"], text=row["text"] or "-") for row in _read("corpus.jsonl")]
    with TemporaryDirectory() as name, PassageStore.build(Path(name) / "p.sqlite", rows) as store:
        context = RetrieverContext(
            store, qids, embedder.embed, embedder.identity, embedder.dims, Cache(Path(name)), lambda *_: None
        )
        bm25 = dict(zip(qids, Bm25Retriever(Bm25Retriever.Config(), context).search(records), strict=True))
        dense = dict(zip(qids, DenseRetriever(DenseRetriever.Config(), context).search(records), strict=True))
    fused = {
        qid: [(item.doc_id, item.score) for item in fuse({"bm25": bm25[qid], "dense": dense[qid]}, make_fusion("rrf"))]
        for qid in qids
    }
    return {"bm25": bm25, "dense": dense, "fused": fused}


def _read(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
