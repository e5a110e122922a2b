"""Measure the nDCG@10 of the two local embedders on Cranfield, and the fit of lsa on many passages.

    python benchmarks/embedders.py DATA                     a folder with corpus.jsonl, queries.jsonl and qrels.trec
    python benchmarks/embedders.py DATA --passages 100000   also time and peak memory of the fit on synthetic passages

Retrieval is dense, by cosine. Gains are 2^grade - 1, and queries without a relevant passage are ignored. Differences
have the standard error over queries. Seconds are processor time.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

from raggs.base.trec import read_qrels
from raggs.parts.embedders import Embedder, FittingTexts
from raggs.parts.embedders.lsa import LsaEmbedder
from raggs.parts.embedders.wordllama import WordLlamaEmbedder

CUTOFF = 10


def read(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def ndcg(ranked: list[str], grades: dict[str, int]) -> float:
    """Return nDCG of a ranking at the cutoff; NaN without a relevant passage."""
    gains = [2.0 ** grades.get(doc, 0) - 1 for doc in ranked[:CUTOFF]]
    ideal = sorted((2.0**grade - 1 for grade in grades.values() if grade > 0), reverse=True)[:CUTOFF]
    discount = 1 / np.log2(np.arange(2, CUTOFF + 2))
    return float(discount[: len(gains)] @ gains / (discount[: len(ideal)] @ ideal)) if ideal else float("nan")


def score(embedder: Embedder, data: Path) -> tuple[np.ndarray, float, float]:
    """Return nDCG by query, and the seconds of the fit and of the vectors of all passages."""
    grades: dict[str, dict[str, int]] = {}
    for label in read_qrels(data / "qrels.trec"):
        grades.setdefault(label.qid, {})[label.doc_id] = label.grade
    docs, queries = read(data / "corpus.jsonl"), read(data / "queries.jsonl")
    texts = [f"{doc.get('title', '')}\n{doc['text']}" for doc in docs]
    began = time.process_time()
    fitted = embedder.fitted(FittingTexts.of(texts))
    fitted.embed(["word"])
    middle = time.process_time()
    vectors = fitted.embed(texts)
    ended = time.process_time()
    cosines = fitted.embed_queries([query["text"] for query in queries]) @ vectors.T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :CUTOFF]
    found = [
        ndcg([docs[at]["_id"] for at in row], grades.get(query["_id"], {}))
        for row, query in zip(order, queries, strict=True)
    ]
    return np.array(found), middle - began, ended - middle


def many(count: int, data: Path) -> None:
    """Print time and peak memory of a fit on passages of words of the corpus and rare synthetic words."""
    draw = np.random.default_rng(0)
    words = " ".join(doc["text"] for doc in read(data / "corpus.jsonl")).split()
    names = np.array([f"name{number}" for number in range(200_000)])

    def passages() -> list[str]:
        starts, chosen = draw.integers(0, len(words) - 120, count), draw.integers(0, len(names), (count, 8))
        return [" ".join([*words[start : start + 120], *names[own]]) for start, own in zip(starts, chosen, strict=True)]

    texts = passages()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    embedder = LsaEmbedder(LsaEmbedder.Config()).fitted(FittingTexts.of(texts))
    embedder.embed(["word"])
    fitted = time.process_time()
    embedder.embed(texts[:10_000])
    ended = time.process_time()
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    times = f"{count:,} passages: fit {fitted - began:.0f} s, {peak:.0f} MB without the texts"
    print(f"{times}; 10,000 vectors {ended - fitted:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--passages", type=int)
    options = parser.parse_args()
    parts: dict[str, Embedder] = {"wordllama": WordLlamaEmbedder(WordLlamaEmbedder.Config())}
    parts |= {f"lsa, {dims}": LsaEmbedder(LsaEmbedder.Config(dims=dims)) for dims in (64, 128, 256, 512)}
    base: np.ndarray | None = None
    print(
        "| embedder | nDCG@10 | difference | standard error | s to fit or load | s for all passages |\n"
        "|---|---|---|---|---|---|"
    )
    for name, embedder in parts.items():
        found, fit_s, embed_s = score(embedder, options.data)
        base = found if base is None else base
        gap = (found - base)[np.isfinite(base)]
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        print(f"| {name} | {np.nanmean(found):.3f} | {gap.mean():+.3f} | {error:.3f} | {fit_s:.1f} | {embed_s:.1f} |")
    if options.passages:
        many(options.passages, options.data)


if __name__ == "__main__":
    main()
