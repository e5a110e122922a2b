"""Loss analyses: ceilings (PROC), and a decomposition of the distance from a perfect score.

PROC, the pool-restricted ceiling, separates the possible gain of better retrieval from the possible gain of a better
order. The waterfall attributes the loss to retrieval, candidates, order and unjudged passages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from raggs.base.arrays import Floats
from raggs.base.document import Column, percent, score
from raggs.base.types import Number, finite_or_none
from raggs.evaluation.analyses import AnalysisFinding, PartAnalysis
from raggs.evaluation.messages import BOTTLENECKS, KNOBS, LOSSES
from raggs.evaluation.models import BottleneckPart, EvalReport, ReportPart
from raggs.evaluation.study import Study, doubt_of, mean
from raggs.metrics.bottleneck import PAIRS, PUBLISHED, bottleneck, found_by, loss_ladder, steady
from raggs.metrics.hits import Hits
from raggs.metrics.names import MeasureSpec

WRAPPER = re.compile(r"^\w+\[")


@dataclass(frozen=True)
class BottleneckAnalysis(PartAnalysis[BottleneckPart]):
    """Whether retrieval or ordering limits a system; requires grades from 1 to 5.

    Attributes:
        pool: number of top passages of a system that count as its candidates.
        cutoffs: cutoffs to analyse. Cutoffs above the length of the lists are ignored. If none is left, the cutoffs of
            the evaluation are used.
    """

    pool: int = 50
    cutoffs: tuple[int, ...] = ()

    NAME = "bottleneck"
    TITLE = "Retrieval or order"
    PLACE = "bottleneck"
    COLUMNS = ("system", "measure", "actual", "ceiling", "of_means", "of_queries", "retrieval", "ordering", "kind")
    PART = BottleneckPart

    def compute(self, study: Study) -> Sequence[AnalysisFinding[BottleneckPart]]:
        """Return one finding per system, cutoff and measure (RA-nWG, N-Recall4, N-Recall5). Systems whose scores mean
        little are omitted.
        """
        if not study.graded:
            return ()
        return [
            AnalysisFinding(system, _part(hits, measure, cutoff, self.pool))
            for system, hits in study.hits.items()
            if not doubt_of(study, system)  # advice based on lists from another corpus would be wrong
            for measure in PAIRS
            for cutoff in self._cutoffs(study, hits)
        ]

    def _cutoffs(self, study: Study, hits: Hits) -> Sequence[int]:
        """Return the cutoffs that do not exceed the longest list. If there are none, return the cutoffs of the
        evaluation.
        """
        longest = int(hits.length.max(initial=0))
        return [k for k in self.cutoffs if k <= longest] or sorted(set(study.scoring.cutoffs))

    def shown(self, report: EvalReport) -> Sequence[AnalysisFinding[BottleneckPart]]:
        """Return the findings on measures that are in the report, directly or as ceilings."""
        asked = {WRAPPER.sub("", name).partition("(")[0].partition("@")[0] for name in report.measures}
        names = {name for name in PAIRS if not asked.isdisjoint((name, f"proc_{name}"))}
        return [each for each in self.found(report) if each.part.measure.partition("@")[0] in names]

    def title(self, found: Sequence[AnalysisFinding[BottleneckPart]]) -> str:
        """Return the title with the size of the pool."""
        return f"{self.TITLE} (pool of {found[0].part.pool})"

    def sentences(self, found: Sequence[AnalysisFinding[BottleneckPart]]) -> Sequence[str]:
        """Return recommendations per system on the first measure (RA-nWG if it is in the report), at the cutoffs in
        `PUBLISHED`. If a system has none of these, its largest cutoff is used.
        """
        first = _measure_stem(found[0].part)
        return [
            f"{system}: {part.measure} {score(part.actual)}, ceiling {score(part.ceiling)} with a perfect order of its "
            f"top {part.pool}{_shares(part)}. Possible gain: retrieval {score(part.retrieval)}, order "
            f"{score(part.ordering)} — {BOTTLENECKS[part.kind]}"
            for system, part in _reported_findings([each for each in found if _measure_stem(each.part) == first])
            if part.actual is not None
        ]


def _measure_stem(part: BottleneckPart) -> str:
    return part.measure.partition("@")[0]


def _cutoff(part: BottleneckPart) -> int:
    return int(part.measure.partition("@")[2])


def _reported_findings(found: Sequence[AnalysisFinding[BottleneckPart]]) -> Sequence[AnalysisFinding[BottleneckPart]]:
    """Return the findings at the cutoffs in `PUBLISHED`. For a system without such findings, return those at its
    largest cutoff.
    """
    most = {system: max(_cutoff(part) for name, part in found if name == system) for system, _ in found}
    told = {system for system, part in found if _cutoff(part) in PUBLISHED}
    return [
        each
        for each in found
        if (_cutoff(each.part) in PUBLISHED if each.system in told else _cutoff(each.part) == most[each.system])
    ]


def _shares(part: BottleneckPart) -> str:
    if part.of_means is None:
        return ""
    return f" (it reaches {percent(part.of_means)} of the ceiling)"


def _part(hits: Hits, measure: str, k: int, pool: int) -> BottleneckPart:
    found = bottleneck(hits, measure, k=k, pool=pool)
    return BottleneckPart(
        measure=f"{measure}@{k}",
        pool=found.pool,
        actual=finite_or_none(found.actual),
        ceiling=finite_or_none(found.ceiling),
        of_means=finite_or_none(found.share_of_means),
        of_queries=finite_or_none(found.share),
        retrieval=finite_or_none(found.retrieval),
        ordering=finite_or_none(found.ordering),
        kind=found.kind,
        queries={kind: found.by_query.count(kind) for kind in BOTTLENECKS},
        by_query={qid: kind for qid, kind in zip(hits.qrels.qids, found.by_query, strict=True) if kind},
    )


DIGITS = 6  # number of decimals of a query's losses
MIN_NAMED_LOSS = 0.01  # in units of the measure; smaller losses need no action


class WaterfallPart(ReportPart):
    """The losses of one system on one measure. They add up to `perfect` minus `actual`."""

    measure: Annotated[str, Column("measure")]
    pool: int = Field(description="number of top passages of a system that count as its candidates")
    perfect: Annotated[Number, Column("perfect", "score")] = Field(
        description="score of the best list that the labels allow, mean over the queries"
    )
    losses: tuple[Number, ...] = Field(
        description="mean losses over the queries: passages found by no system, candidates, order, unjudged passages"
    )
    actual: Annotated[Number, Column("score", "score")]
    by_query: dict[str, tuple[float, ...]] = Field(description="the same losses of each query")

    @property
    def lost(self) -> Annotated[Mapping[str, Number], Column("{key}", "score")]:
        """The losses, by the names of their causes."""
        return dict(zip(LOSSES, self.losses, strict=True))

    @property
    def largest(self) -> int:
        """The index of the largest loss."""
        known = [loss or 0.0 for loss in self.losses]
        return known.index(max(known))

    @property
    def knob(self) -> str:
        """Advice on how to reduce the largest loss; empty if the loss is too small."""
        return KNOBS[self.largest] if (self.losses[self.largest] or 0.0) >= MIN_NAMED_LOSS else ""


@dataclass(frozen=True)
class Waterfall(PartAnalysis[WaterfallPart]):
    """Decomposition of a system's loss: passages found by no system, candidates, order, unjudged passages.

    Attributes:
        pool: number of top passages of a system that count as its candidates.
    """

    pool: int = 50

    NAME = "waterfall"
    TITLE = "Decomposition of the losses"
    COLUMNS = ("system", "measure", "perfect", *(("lost", name) for name in LOSSES), "actual")
    PART = WaterfallPart

    def compute(self, study: Study) -> Sequence[AnalysisFinding[WaterfallPart]]:
        """Return one finding per system, on the first measure that can be decomposed. It is empty if there is no such
        measure. Systems whose scores mean little are omitted.
        """
        named = next((each for each in study.scoring.measures if steady(each)), None)
        if named is None:
            return ()
        return [
            AnalysisFinding(system, self._part(study, hits, named))
            for system, hits in study.hits.items()
            if not doubt_of(study, system)
        ]

    def _part(self, study: Study, hits: Hits, named: MeasureSpec) -> WaterfallPart:
        alike = [each for each in study.hits.values() if each.qrels is hits.qrels]
        found = found_by(alike, max(self.pool, named.measure.k or 0)) if len(alike) > 1 else None
        steps = loss_ladder(hits, named, found, pool=self.pool)
        return WaterfallPart(
            measure=named.name,
            pool=max(self.pool, named.measure.k or 0),
            perfect=mean(steps.values[:, 0]),
            losses=tuple(mean(column) for column in steps.losses.T),
            actual=mean(steps.values[:, -1]),
            by_query=dict(_by_query(hits, steps.losses)),
        )

    def title(self, found: Sequence[AnalysisFinding[WaterfallPart]]) -> str:
        """Return the title with measure and pool."""
        return f"{self.TITLE} ({found[0].part.measure}, candidates: the first {found[0].part.pool})"

    def sentences(self, found: Sequence[AnalysisFinding[WaterfallPart]]) -> Sequence[str]:
        """Return a sentence per system with its losses, and advice on how to reduce the largest loss."""
        return [_sentence(system, part) for system, part in found if part.actual is not None]


def _by_query(hits: Hits, losses: Floats) -> Iterator[tuple[str, tuple[float, ...]]]:
    for qid, row in zip(hits.qrels.qids, losses.round(DIGITS), strict=True):
        if np.isfinite(row).all():
            yield qid, tuple(finite_or_none(value) or 0.0 for value in row.tolist())


def _sentence(system: str, part: WaterfallPart) -> str:
    lost = ", ".join(f"{score(loss)} ({name})" for name, loss in part.lost.items())
    named = f"{system}: {part.measure} {score(part.actual)} of {score(part.perfect)}; lost {lost}"
    return f"{named} — {part.knob}" if part.knob else named
