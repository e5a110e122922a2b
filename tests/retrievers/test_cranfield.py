"""The default retrievers on a public test collection: no change may cost quality unseen."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import pytest

from raggs.artifacts import EmbedRecord, Passage
from raggs.embedders.wordllama import WordLlamaEmbedder
from raggs.fusion import fuse
from raggs.indexes.passages import PassageStore
from raggs.retrievers.base import RetrieverContext
from raggs.retrievers.bm25 import Bm25Retriever
from raggs.retrievers.dense import DenseRetriever

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "cranfield"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the Cranfield collection is not on this machine")


def read(name):
    with (DATA / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def ndcg_at_10(lists):
    """Linear gain, mean over queries, as trec_eval computes it."""
    labels = defaultdict(dict)
    for line in (DATA / "qrels.trec").read_text().splitlines():
        qid, _, doc_id, grade = line.split()
        labels[qid][doc_id] = int(grade)
    total = 0.0
    for qid, grades in labels.items():
        gains = [grades.get(doc_id, 0) for doc_id, _ in lists[qid][:10]]
        ideal = sorted(grades.values(), reverse=True)[:10]
        total += sum(gain / math.log2(place + 2) for place, gain in enumerate(gains)) / sum(
            gain / math.log2(place + 2) for place, gain in enumerate(ideal)
        )
    return total / len(labels)


def test_quality(tmp_path):
    rows = [Passage(doc_id=row["_id"], title=row["title"], text=row["text"] or "-") for row in read("corpus.jsonl")]
    embedder = WordLlamaEmbedder(WordLlamaEmbedder.Config())
    queries = read("queries.jsonl")
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
    with PassageStore.build(tmp_path / "p.sqlite", rows, "source") as store:
        context = RetrieverContext(
            store, labels(records), embedder.embed, embedder.identity, embedder.dims, tmp_path, lambda *_: None
        )
        bm25 = dict(zip(labels(records), Bm25Retriever(Bm25Retriever.Config(), context).search(records), strict=True))
        dense = dict(
            zip(labels(records), DenseRetriever(DenseRetriever.Config(), context).search(records), strict=True)
        )
    fused = {
        qid: [(item.doc_id, item.score) for item in fuse({"bm25": bm25[qid], "dense": dense[qid]})] for qid in bm25
    }
    assert ndcg_at_10(bm25) == pytest.approx(0.513, abs=0.01)
    assert ndcg_at_10(dense) == pytest.approx(0.411, abs=0.01)
    assert ndcg_at_10(fused) == pytest.approx(0.488, abs=0.01)


def labels(records):
    return [record.qid for record in records]
