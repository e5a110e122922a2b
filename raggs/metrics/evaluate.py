"""Score a run against judgments: call `evaluate`; the rest of the module supports it.

A judged query for which the run has no list is scored as an empty list, so it has the value 0 with most measures (see
`raggs.metrics.measure`). NaN means "undefined for this query". Such queries are excluded from the mean;
`Evaluation.valid` counts the others. This module reads no files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.metrics.columns import GradeScale, Labels, Lists, Qrels, Run
from raggs.metrics.hits import Hits, Ties, find_hits
from raggs.metrics.measures.evidence import find_evidence
from raggs.metrics.measures.novelty import with_first
from raggs.metrics.names import ByMeasure, MeasureSpec, parse_measures
from raggs.stats.intervals import Interval, bootstrap_means

V = TypeVar("V")

GOLDEN_MEASURES = (
    "ra_nwg@10", "n_recall4@10", "n_recall5@10", "precision4@10", "harm@10", "ndcg@10", "recall@10", "mrr@10", "map",
    "holes@10",
)  # fmt: skip
USUAL_ELSEWHERE = ("ndcg@10", "recall@10", "precision@10", "mrr@10", "map", "hit@10", "holes@10")
BOOTSTRAP_DRAWS = 2000


@dataclass(frozen=True)
class Evaluation:
    """Values of some measures for a run.

    The keys of mappings are names of measures, in any spelling.

    Attributes:
        measures: canonical names of the measures, in the requested order.
        qids: judged queries, sorted.
        values: shape (measures, queries); NaN if a measure is undefined for a query.
        hits: the ranks of judged passages from which the values were computed.
        confidence: confidence level of the intervals.
        seed: random seed of the bootstrap intervals.
    """

    measures: tuple[str, ...]
    qids: tuple[str, ...]
    values: Floats
    hits: Hits
    confidence: float = 0.95
    seed: int = 1

    @cached_property
    def mean(self) -> ByMeasure[float]:
        """Mean over the queries for which the measure is defined; NaN if it is defined for no query."""
        valid = np.isfinite(self.values)
        sums = np.where(valid, self.values, 0.0).sum(axis=1)
        return self._by(np.where(valid.any(axis=1), sums / np.maximum(valid.sum(axis=1), 1), np.nan).tolist())

    @cached_property
    def valid(self) -> ByMeasure[int]:
        """Number of queries for which the measure is defined, which is the number in the mean."""
        return self._by(np.isfinite(self.values).sum(axis=1).tolist())

    @cached_property
    def interval(self) -> ByMeasure[Interval]:
        """Bootstrap interval of the mean over queries (BCa, seeded)."""
        return self._by(bootstrap_means(self.values, confidence=self.confidence, draws=BOOTSTRAP_DRAWS, seed=self.seed))

    @cached_property
    def per_query(self) -> ByMeasure[dict[str, float]]:
        """Value of each query."""
        return self._by([dict(zip(self.qids, row.tolist(), strict=True)) for row in self.values])

    def column(self, measure: str) -> Floats:
        """Return the values of one measure in the order of `qids`, shape (queries,)."""
        found: Floats = self.values[self._by(list(range(len(self.measures))))[measure]]
        return found

    def _by(self, values: Sequence[V]) -> ByMeasure[V]:
        return ByMeasure(dict(zip(self.measures, values, strict=True)))


def evaluate(
    qrels: Qrels | Labels,
    run: Run | Lists,
    measures: Sequence[str] | None = None,
    *,
    binary_at: int | None = None,
    gains: Mapping[int, float] | None = None,
    scale: tuple[int, int] | None = None,
    ties: Ties = "trec",
    condensed: bool = False,
    facets: Mapping[str, str] | None = None,
    answer_rank: Mapping[str, float] | None = None,
    evidence: Mapping[str, Sequence[Sequence[str]]] | None = None,
    confidence: float = 0.95,
    seed: int = 1,
) -> Evaluation:
    """Score a run against judgments.

    Args:
        qrels: ``{qid: {doc_id: grade}}`` or columns; a negative grade means pooled but unjudged.
        run: ``{qid: {doc_id: score}}``, ``{qid: [doc_id, ...]}`` with the best passage first, or columns.
        measures: names, such as "ra_nwg@10", "nDCG@10" or "E[recall@5]"; None: a default selection.
        binary_at: lowest relevant grade for measures with binary relevance (default: 4 on the scale 1 to 5, 1 on a
            scale that starts at 0).
        gains: gain of each grade (default: grade - lowest grade).
        scale: lowest and highest grade (default: 0 to 4 if a grade is 0 or all are 1, else 1 to 5). Required if no
            grade would be relevant on the default scale.
        ties: order of equal scores for measures that need one (see `raggs.metrics.hits.find_hits`).
        condensed: remove unjudged passages from the lists.
        facets: facet or source of each passage, judged or unjudged; needed by ra_nwg_novel, alpha_ndcg and nrbp.
        answer_rank: for containment, the first rank whose text contains the answer, by query; inf if no text does (see
            `raggs.evaluation.samples.answer_rank`).
        evidence: for evidence_recall and complete, the sets of passages of each query that suffice for an answer.
        confidence: confidence level of the intervals, in 0 to 1.
        seed: random seed of the bootstrap intervals.

    Raises:
        DataError: a grade is outside the scale, a score is not finite, a passage is duplicated, there is no common
            query, or a measure is not defined on the judgments.
        UsageError: a measure is unknown, or its name is not valid (see `parse_measure`).
    """
    labels = _qrels(qrels, binary_at, gains, scale)
    system = run if isinstance(run, Run) else Run.of(run)
    hits = find_hits(labels, system, ties)
    if facets is not None:
        hits = with_first(hits, system, facets, ties)
    if answer_rank is not None:
        hits = replace(hits, answer_rank=np.array([answer_rank.get(qid, np.nan) for qid in labels.qids]))
    if evidence is not None:
        hits = replace(hits, evidence=find_evidence(hits.qrels, system, evidence, ties))
    wanted = parse_measures(measures or (GOLDEN_MEASURES if labels.scale.golden else USUAL_ELSEWHERE))
    return measure_hits(hits.condensed() if condensed else hits, wanted, confidence=confidence, seed=seed)


def measure_hits(hits: Hits, measures: Sequence[MeasureSpec], *, confidence: float = 0.95, seed: int = 1) -> Evaluation:
    """Score the hits of a run with measures, as `evaluate` scores a run.

    Raises:
        DataError: the run has no judged query, or a measure is not defined on these judgments.
    """
    if not hits.returned.any():
        if not len(hits.length):
            raise DataError("the judgments are empty", remedy="pass judgments of at least one query")
        raise DataError(
            "the run contains none of the judged queries",
            remedy="check that the run and the judgments use the same query ids",
        )
    values = np.array([named.values(hits) for named in measures])
    names = tuple(named.name for named in measures)
    return Evaluation(names, hits.qrels.qids, values, hits, confidence, seed)


def _qrels(
    qrels: Qrels | Labels, binary_at: int | None, gains: Mapping[int, float] | None, scale: tuple[int, int] | None
) -> Qrels:
    made = qrels if isinstance(qrels, Qrels) else Qrels.of(qrels, None if scale is None else GradeScale.of(*scale))
    if binary_at is None and gains is None and (scale is None or not isinstance(qrels, Qrels)):
        return made
    low, high = scale or (made.scale.low, made.scale.high)
    return replace(made, scale=GradeScale.of(low, high, binary_at, gains))
