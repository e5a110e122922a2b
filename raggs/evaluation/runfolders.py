"""Run directories of raggs as golden sets, and as systems: their retrievers and the fusion of these."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np

from raggs.artifacts import JudgeRecord, MergeRecord, RankRecord, RetrieveRecord
from raggs.errors import DataError
from raggs.manifests.opened import open_run
from raggs.metrics.columns import Qrels, Run, Scale
from raggs.metrics.uncertainty import Doubt

FUSED = "fused"


def golden_of(folder: Path, scale: Scale) -> tuple[Qrels, Doubt, dict[str, str]]:
    """All grades of a run, their doubt, and the facets: groups of near-duplicates.

    Passages without a grade are unjudged.

    Raises:
        NotFoundError: no run, or its judge stage has not run.
        DataError: no grades, or one outside `scale`.
    """
    opened = open_run(folder)
    graded = [record for record in opened.typed("judge", JudgeRecord) if record.grade is not None]
    if not graded:
        raise DataError("holds no grades", where=folder, remedy="raggs run --config CONFIG")
    labels: dict[str, dict[str, int]] = {}
    for record in graded:
        labels.setdefault(record.qid, {})[record.doc_id] = record.grade or 0
    qrels = Qrels.of(labels, scale)
    facets = {record.doc_id: record.duplicate_of or record.doc_id for record in graded}
    ranked = opened.typed("rank", RankRecord) if opened.store.path("rank").is_file() else iter(())
    sigma = {(record.qid, record.doc_id): record.sigma for record in ranked if record.exposures}
    samples = {(record.qid, record.doc_id): tuple(filter(None, record.grades)) for record in graded}
    rows = [(qid, doc_id) for qid in qrels.qids for doc_id in labels[qid]]
    doubt = Doubt(
        np.array([sigma.get(row, 0.0) for row in rows]),
        tuple(samples[row] if len(samples[row]) > 1 else () for row in rows),
    )
    return qrels, doubt, facets


def systems_of(folder: Path) -> Iterator[tuple[str, Run]]:
    """The retrievers of a run and their fusion, where it has several.

    Raises:
        NotFoundError: no run, or its stages have not run.
        DataError: nothing was retrieved.
    """
    opened = open_run(folder)
    rows: dict[str, list[tuple[str, str, float]]] = {}
    for record in opened.typed("retrieve", RetrieveRecord):
        rows.setdefault(record.retriever, []).append((record.qid, record.doc_id, record.score))
    if not rows:
        raise DataError("holds nothing that was retrieved", where=folder, remedy="raggs run --config CONFIG")
    for name, columns in sorted(rows.items()):
        qids, docs, scores = zip(*columns, strict=True)
        yield name, Run.from_columns(qids, docs, scores)
    if len(rows) > 1:
        fused = groupby(opened.typed("merge", MergeRecord), key=lambda record: record.qid)
        yield FUSED, Run.of({qid: {record.doc_id: record.score for record in records} for qid, records in fused})
