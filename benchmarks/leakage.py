"""Measure whether queries that copy rare words give lexical search an advantage.

    python benchmarks/leakage.py FOLDER QUESTIONS [--chunker recursive:200] [--embedder wordllama] [-k 5]

All chunks of all documents are searched together by BM25 (k1 1.5, b 0.75) and by vectors. Recall is the share of the
excerpts' characters that are found (`raggs.metrics.spans`). The queries are divided into thirds by their leakage.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from raggs.base.languages import quiet_bm25s
from raggs.chunking.documents import chunk_documents, read_documents
from raggs.chunking.models import parse_spec
from raggs.chunking.questions import place_questions
from raggs.metrics.spans import ChunkTargets, DocumentOffsets, LengthScale, score
from raggs.parts import chunkers, embedders, queries
from raggs.parts.chunkers import ChunkerConfig
from raggs.parts.embedders import EmbedderConfig
from raggs.parts.indexes.exact import search
from raggs.parts.indexes.lexical import words_of
from raggs.parts.workspace import Workspace, open_queries
from raggs.stats.question_filters import WordWeights, leakage, summarise_leakage

PARTS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--chunker", default="recursive:200")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("-k", type=int, default=5)
    options = parser.parse_args()
    documents = read_documents(options.folder)
    config = queries.REGISTRY.load(options.questions.suffix[1:]).Config.model_validate({"path": options.questions})
    read = open_queries(config)
    asked = place_questions(read, documents, options.questions)
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        chunks = chunk_documents(
            workspace.chunker(parse_spec(options.chunker, chunkers.REGISTRY, ChunkerConfig)), documents
        )
        embedder = workspace.embedder(parse_spec(options.embedder, embedders.REGISTRY, EmbedderConfig))
        vectors, aimed = embedder.embed(chunks.texts), embedder.embed_queries(asked.texts)
        workspace.close()
    words = [words_of(text, "en") for text in chunks.texts]
    sought = [words_of(text, "en") for text in asked.texts]
    target = ChunkTargets(
        asked.questions, chunks.spans, DocumentOffsets.of(documents.lengths), LengthScale.characters()
    )
    found = {
        "BM25": lexical(words, sought, options.k),
        "vectors": search(vectors, np.arange(len(vectors), dtype=np.int32), aimed, options.k).positions,
    }
    recall = {name: score(target, rows, options.k).values["recall"] for name, rows in found.items()}
    weights = WordWeights.of(words)
    excerpts = [[words_of(each.text, "en") for each in read[qid].references] for qid in asked.ids]
    values = np.array([leakage(one, every, weights) for one, every in zip(sought, excerpts, strict=True)])
    report(values, recall["BM25"], recall["vectors"])


def lexical(words: list[list[str]], sought: list[list[str]], k: int) -> np.ndarray:
    """Return the first `k` chunks by BM25, with ties in their order and -1 after the last."""
    numbers: dict[str, int] = {}
    codes = [[numbers.setdefault(word, len(numbers)) for word in each] for each in words]
    bm25 = quiet_bm25s().BM25(method="lucene", backend="numpy")
    bm25.index((codes, numbers), show_progress=False)
    rows = np.full((len(sought), k), -1, dtype=np.int64)
    for row, each in zip(rows, sought, strict=True):
        scores = bm25.get_scores_from_ids([numbers[word] for word in each if word in numbers] or [0])
        best = np.argsort(-scores, kind="stable")[:k]
        row[: len(best)] = best
    return rows


def report(values: np.ndarray, lexical_: np.ndarray, dense: np.ndarray) -> None:
    """Print the thirds by leakage, and the rank correlation of leakage and difference."""
    gain = lexical_ - dense
    print(summarise_leakage(values))
    print("\n| leakage | queries | BM25 | vectors | BM25 minus vectors | 95% interval |\n|---|---|---|---|---|---|")
    for rows in np.array_split(np.argsort(values, kind="stable"), PARTS):
        (low, high) = bootstrap(gain[rows])
        print(
            f"| {values[rows].min():.2f} to {values[rows].max():.2f} | {len(rows)} | {lexical_[rows].mean():.3f} "
            f"| {dense[rows].mean():.3f} | {gain[rows].mean():+.3f} | {low:+.3f} to {high:+.3f} |"
        )
    rho = spearmanr(values, gain)
    print(
        f"\nSpearman of leakage and difference: {rho.statistic:+.3f} (p {rho.pvalue:.1e}); "
        f"mean difference {gain.mean():+.3f}"
    )


def bootstrap(values: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of the mean over resampled queries."""
    chance = np.random.default_rng(0)
    drawn = chance.choice(values, (10_000, len(values))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


if __name__ == "__main__":
    main()
