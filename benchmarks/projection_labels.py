"""Measure whether labels of whole documents, projected to chunks, preserve the order of systems.

    python benchmarks/projection_labels.py FOLDER [--size 100] [--draws 200]

FOLDER is a labelled collection (`corpus.jsonl`, `queries.jsonl`, `qrels.trec`). Eight systems search chunks of its
documents by `recursive`. Their lists are scored by projected grades ("projected"), and by the labels if each document
has the rank of its first chunk ("merged"). The same systems also search whole documents ("whole"). The table has
Kendall's tau-b of two orders, with standard errors from a bootstrap over queries. Labels of documents without text
are ignored.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from projection import systems, tau

from raggs.base.arrays import Floats
from raggs.base.artifacts import Passage, Span
from raggs.base.hashing import generator
from raggs.base.jsonl import read_objects
from raggs.golden.judgments import Judgments
from raggs.golden.places import JudgedPlaces, JudgedText, project_onto
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.evaluate import measure_hits
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measures
from raggs.parts.chunkers import Document
from raggs.parts.chunkers.recursive import RecursiveChunker
from raggs.parts.corpora.jsonl import JsonlCorpus
from raggs.parts.run_files import read_labels

MEASURES = ("ra_nwg@10", "n_recall4@10", "ndcg@10", "precision4@10")


def scores(qrels: Qrels, runs: Sequence[Run]) -> Floats:
    """Return the scores, shape (metrics, systems, queries)."""
    found = [measure_hits(find_hits(qrels, run), parse_measures(MEASURES)).values for run in runs]
    return np.stack(found, axis=1)


def named(run: Run, names: Sequence[str], qids: Sequence[str]) -> Run:
    """Return a run of documents from a run of rows. Each document has the rank of its first row."""
    lists: dict[str, dict[str, float]] = {qid: {} for qid in qids}
    rows = [int(each) for each in run.docs.take(np.arange(len(run.docs))).tolist()]
    for query, row, score in zip(run.query.tolist(), rows, run.score.tolist(), strict=True):
        lists[qids[int(run.qids[query][1:])]].setdefault(names[row], score)
    return Run.of(lists)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=100, help="tokens per chunk")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    texts = {
        each.doc_id: each.content
        for each in JsonlCorpus(JsonlCorpus.Config(path=given.folder / "corpus.jsonl")).passages()
    }
    asked = {str(row["_id"]): str(row["text"]) for _, row in read_objects(given.folder / "queries.jsonl")}
    labels = [each for each in read_labels(given.folder / "qrels.trec") if each.doc_id in texts]
    columns = ([each.qid for each in labels], [each.doc_id for each in labels], [each.grade for each in labels])
    qrels = Qrels.from_columns(*columns, GradeScale.of(1, 5))
    qids = list(qrels.qids)
    chunker = RecursiveChunker(RecursiveChunker.Config(size=given.size))
    parts = [
        Passage(doc_id=f"{name}#{row}", text=each.text, span=Span(source=name, start=each.start, end=each.end))
        for name, text in texts.items()
        for row, each in enumerate(chunker.chunk(Document(text, name)))
    ]
    canvas, docs = JudgedText("labels"), [doc.decode() for doc in qrels.docs.take(np.arange(len(qrels.docs))).tolist()]
    spans = [Span(source=name, start=0, end=len(texts[name])) for name in docs]
    for name, span in dict(zip(docs, spans, strict=True)).items():
        canvas.paint(Passage(doc_id=name, text=texts[name], span=span))
    places = JudgedPlaces(Judgments("labels", qrels), qrels.query, qrels.grade, tuple(spans), canvas)
    projection = project_onto(places, parts, "parts", "parts")
    questions = [asked[qid] for qid in qids]
    cut = dict(systems(questions, [part.text for part in parts]))
    ids, sources = [part.doc_id for part in parts], [part.doc_id.rpartition("#")[0] for part in parts]
    projected = scores(projection.judgments.qrels, [named(run, ids, qids) for run in cut.values()])
    merged = scores(qrels, [named(run, sources, qids) for run in cut.values()])
    over = dict(systems(questions, list(texts.values())))
    whole = scores(qrels, [named(run, list(texts), qids) for run in over.values()])
    draws = generator(given.seed, "questions").multinomial(len(qids), np.full(len(qids), 1 / len(qids)), given.draws)
    print(f"{len(texts):,} documents, {len(parts):,} chunks, {len(qids)} queries\n")
    print("| metric | projected, merged | projected, whole | merged, whole |")
    print("|---|---|---|---|")
    for number, measure in enumerate(MEASURES):
        cells = []
        for one, other in ((projected, merged), (projected, whole), (merged, whole)):
            drawn = [tau(one[number], other[number], each.astype(float)) for each in draws]
            cells.append(f"{tau(one[number], other[number], np.ones(len(qids))):.2f} ± {np.std(drawn):.2f}")
        print(f"| {measure} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
