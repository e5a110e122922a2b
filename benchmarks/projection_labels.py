"""Labels of whole documents, carried over to their parts: is the order of systems over the parts that of the labels?

    python benchmarks/projection_labels.py FOLDER [--size 100] [--draws 200]

FOLDER holds a labelled collection (`corpus.jsonl`, `queries.jsonl`, `qrels.trec`). Its documents are cut by
`recursive`, eight systems search the parts, and their lists are scored by projected grades, and by the labels
themselves once each document stands where its first part does. Kendall's tau-b between both orders, and with that of
the same systems over whole documents; standard errors are of a bootstrap over questions. Labels of documents without
text are left out.
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
    """Shape (measures, systems, questions)."""
    found = [measure_hits(find_hits(qrels, run), parse_measures(MEASURES)).values for run in runs]
    return np.stack(found, axis=1)


def named(run: Run, names: Sequence[str], qids: Sequence[str]) -> Run:
    """A list of rows as one of documents, each where its first row stands."""
    lists: dict[str, dict[str, float]] = {qid: {} for qid in qids}
    rows = [int(each) for each in run.docs.take(np.arange(len(run.docs))).tolist()]
    for query, row, score in zip(run.query.tolist(), rows, run.score.tolist(), strict=True):
        lists[qids[int(run.qids[query][1:])]].setdefault(names[row], score)
    return Run.of(lists)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=100, help="tokens of a part")
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
    carried = scores(projection.judgments.qrels, [named(run, ids, qids) for run in cut.values()])
    folded = scores(qrels, [named(run, sources, qids) for run in cut.values()])
    over = dict(systems(questions, list(texts.values())))
    whole = scores(qrels, [named(run, list(texts), qids) for run in over.values()])
    draws = generator(given.seed, "questions").multinomial(len(qids), np.full(len(qids), 1 / len(qids)), given.draws)
    print(f"{len(texts):,} documents, {len(parts):,} parts, {len(qids)} questions\n")
    print("| measure | projected, folded | projected, whole | folded, whole |")
    print("|---|---|---|---|")
    for number, measure in enumerate(MEASURES):
        cells = []
        for one, other in ((carried, folded), (carried, whole), (folded, whole)):
            drawn = [tau(one[number], other[number], each.astype(float)) for each in draws]
            cells.append(f"{tau(one[number], other[number], np.ones(len(qids))):.2f} ± {np.std(drawn):.2f}")
        print(f"| {measure} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
