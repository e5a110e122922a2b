"""The grades of a run as columns, with the doubt that its judge and its ranking leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord, RankRecord
from raggs.base.health import PEOPLE, source_of
from raggs.golden.judgments import Judgments
from raggs.golden.origin import origin_of
from raggs.metrics.belief import Belief, belief_of
from raggs.metrics.columns import Qrels, Scale
from raggs.metrics.uncertainty import Doubt
from raggs.runs.manifests.gate import FALLEN, fallen
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.ungraded import no_grades


def columns_of(run: OpenedRun, ranked: Iterable[RankRecord], scale: Scale | None) -> Judgments:
    """All grades of a run, their doubt, and the groups of near-duplicates. Passages without a grade are unjudged.

    Raises:
        NotFoundError: the judge stage has not run.
        DataError: no grades, or one outside `scale`.
    """
    if not run.graded:
        raise no_grades(run)
    graded = [record for record in run.typed("judge", JudgeRecord) if record.grade is not None]
    labels: dict[str, dict[str, int]] = {}
    for record in graded:
        labels.setdefault(record.qid, {})[record.doc_id] = record.grade or 0
    qrels = Qrels.of(labels, scale or Scale.of(MIN_GRADE, MAX_GRADE))
    facets = {record.doc_id: record.duplicate_of or record.doc_id for record in graded}
    judged = {qid: labels[qid] for qid in qrels.qids}
    placed = list(ranked)
    doubt, origin = _doubt(judged, graded, placed), origin_of(run.manifest)
    below = [f"{run.folder}: {FALLEN}: {said}" for said in ["; ".join(fallen(run.manifest))] if said]
    qrels = replace(qrels, belief=_belief(judged, placed))
    return Judgments(str(run.folder), qrels, doubt, facets, origin, tuple(below), _sources(graded))


def _sources(graded: Iterable[JudgeRecord]) -> Mapping[str, int]:
    """Who gave how many grades, where people gave some."""
    found = Counter(source_of(record.judge) for record in graded if record.duplicate_of is None)
    return found if PEOPLE in found else {}


def _belief(judged: Mapping[str, Iterable[str]], ranked: Sequence[RankRecord]) -> Belief | None:
    """Where the ranking puts each judged passage; None where no judge was shown any to rank it."""
    if not any(record.exposures for record in ranked):
        return None
    placed = {(record.qid, record.doc_id): (record.score, record.sigma) for record in ranked if not record.unordered}
    return belief_of([(qid, doc) for qid, docs in judged.items() for doc in docs], placed)


def _doubt(judged: Mapping[str, Iterable[str]], graded: Iterable[JudgeRecord], ranked: Iterable[RankRecord]) -> Doubt:
    """A standard error where a passage was ranked, the judge's repeats where there are any; for each judged passage."""
    sigma: dict[str, dict[str, float]] = {}
    for placed in ranked:
        if placed.exposures:
            sigma.setdefault(placed.qid, {})[placed.doc_id] = placed.sigma
    samples: dict[str, dict[str, tuple[int, ...]]] = {}
    for record in graded:
        if len(repeats := tuple(filter(None, record.grades))) > 1:
            samples.setdefault(record.qid, {})[record.doc_id] = repeats
    return Doubt(
        np.array([mine.get(doc, 0.0) for qid, docs in judged.items() for mine in [sigma.get(qid, {})] for doc in docs]),
        tuple(mine.get(doc, ()) for qid, docs in judged.items() for mine in [samples.get(qid, {})] for doc in docs),
    )
