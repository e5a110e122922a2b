"""Grades of some questions alone, or with more passages judged: what a sweep scores against."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from raggs.base.arrays import Ints
from raggs.golden.judgments import Judgments
from raggs.metrics.belief import Belief, Placed, belief_of
from raggs.metrics.columns import Qrels
from raggs.metrics.ids import IdColumn


def of_queries(judgments: Judgments, qids: Collection[str]) -> Judgments:
    """The grades of some questions; without the doubt about them, which belongs to all."""
    qrels, wanted = judgments.qrels, set(qids)
    kept = tuple(qid for qid in qrels.qids if qid in wanted)
    if len(kept) == len(qrels.qids):
        return judgments
    number = {qid: at for at, qid in enumerate(kept)}
    renumbered = np.array([number.get(qid, -1) for qid in qrels.qids], dtype=np.int64)
    rows = np.flatnonzero(renumbered[qrels.query] >= 0)
    belief = None if qrels.belief is None else qrels.belief.taken(rows)
    part = Qrels(kept, renumbered[qrels.query[rows]], qrels.grade[rows], _docs(qrels, rows), qrels.scale, belief)
    return replace(judgments, qrels=part, doubt=None)


def graded_ids(judgments: Judgments) -> dict[str, dict[str, int]]:
    """By question, its graded passages with their grades."""
    qrels = judgments.qrels
    found: dict[str, dict[str, int]] = {qid: {} for qid in qrels.qids}
    docs = qrels.docs.take(np.arange(len(qrels.docs))).tolist()
    for number, doc, grade in zip(qrels.query.tolist(), docs, qrels.grade.tolist(), strict=True):
        if grade >= 0:
            found[qrels.qids[number]][doc.decode()] = grade
    return found


def with_grades(judgments: Judgments, more: Mapping[str, Mapping[str, int]]) -> Judgments:
    """The grades with those of further passages, by question and passage; what is graded already stays."""
    known = graded_ids(judgments)
    labels = {qid: {**more.get(qid, {}), **found} for qid, found in known.items()}
    qrels = Qrels.of(labels, judgments.qrels.scale)
    if judgments.qrels.belief is not None:
        pairs = ((qid, doc_id) for qid in qrels.qids for doc_id in labels[qid])
        qrels = replace(qrels, belief=belief_of(pairs, _placed(judgments.qrels, judgments.qrels.belief)))
    return replace(judgments, qrels=qrels, doubt=None)


def _placed(qrels: Qrels, belief: Belief) -> Placed:
    rows = np.flatnonzero(belief.ranked)
    docs = map(bytes.decode, qrels.docs.take(rows).tolist())
    qids = (qrels.qids[number] for number in qrels.query[rows].tolist())
    places = zip(belief.score[rows].tolist(), belief.sigma[rows].tolist(), strict=True)
    return dict(zip(zip(qids, docs, strict=True), places, strict=True))


def _docs(qrels: Qrels, rows: Ints) -> IdColumn:
    return IdColumn([qrels.docs.take(rows)])
