"""Where the points go: from a perfect score down to the system's own, each loss with what could win it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from raggs.base.arrays import Floats
from raggs.base.types import Number, number
from raggs.evaluation.analyses.base import Finding, PartAnalysis
from raggs.evaluation.document import Row, cells
from raggs.evaluation.models import Part
from raggs.evaluation.study import Study, doubt_of, mean
from raggs.evaluation.words import KNOBS, LOSSES, score
from raggs.metrics.bottleneck import found_by, ladder, steady
from raggs.metrics.hits import Hits
from raggs.metrics.names import Named

DIGITS = 6  # of the losses of single queries
LITTLE = 0.01  # points; a smaller loss asks for nothing


class WaterfallPart(Part):
    """The losses of one system on one measure, in its points."""

    measure: str
    pool: int = Field(description="how many of its passages are a system's candidates")
    perfect: Number = Field(description="of the best list that the labels allow, mean over the queries")
    losses: tuple[Number, ...] = Field(description="mean, by pool, candidates, order and unjudged passages")
    actual: Number
    by_query: dict[str, tuple[float, ...]] = Field(description="the same losses of each query")

    @property
    def largest(self) -> int:
        """The place of the largest loss."""
        known = [loss or 0.0 for loss in self.losses]
        return known.index(max(known))

    @property
    def knob(self) -> str:
        """What could win the largest loss back; empty where that is not worth it."""
        return KNOBS[self.largest] if (self.losses[self.largest] or 0.0) >= LITTLE else ""


@dataclass(frozen=True)
class Waterfall(PartAnalysis[WaterfallPart]):
    """What each system loses by what nobody found, by its candidates, by its order and by unjudged passages.

    Attributes:
        pool: how many of its passages are its candidates.
    """

    pool: int = 50

    NAME = "waterfall"
    TITLE = "Where the points go"
    HEAD = ("system", "measure", "perfect", *LOSSES, "score")
    PART = WaterfallPart

    def compute(self, study: Study) -> Sequence[Finding[WaterfallPart]]:
        """Each system on the first measure whose losses can be told; none where there is no such measure."""
        named = next((each for each in study.scoring.measures if steady(each)), None)
        if named is None:
            return ()
        return [
            Finding(system, self._part(study, hits, named))
            for system, hits in study.hits.items()
            if not doubt_of(study, system)
        ]

    def _part(self, study: Study, hits: Hits, named: Named) -> WaterfallPart:
        alike = [each for each in study.hits.values() if each.qrels is hits.qrels]
        found = found_by(alike, max(self.pool, named.measure.k or 0)) if len(alike) > 1 else None
        steps = ladder(hits, named, found, pool=self.pool)
        return WaterfallPart(
            measure=named.name,
            pool=max(self.pool, named.measure.k or 0),
            perfect=mean(steps.values[:, 0]),
            losses=tuple(mean(column) for column in steps.losses.T),
            actual=mean(steps.values[:, -1]),
            by_query=dict(_by_query(hits, steps.losses)),
        )

    def rows(self, found: Sequence[Finding[WaterfallPart]]) -> Sequence[Row]:
        """A row for each system."""
        return [cells(system, part.measure, part.perfect, *part.losses, part.actual) for system, part in found]

    def title(self, found: Sequence[Finding[WaterfallPart]]) -> str:
        """With the measure and the pool."""
        return f"{self.TITLE} ({found[0].part.measure}, candidates: the first {found[0].part.pool})"

    def sentences(self, found: Sequence[Finding[WaterfallPart]]) -> Sequence[str]:
        """Each system's losses, and what could win the largest back."""
        return [_sentence(system, part) for system, part in found if part.actual is not None]


def _by_query(hits: Hits, losses: Floats) -> Iterator[tuple[str, tuple[float, ...]]]:
    for qid, row in zip(hits.qrels.qids, losses.round(DIGITS), strict=True):
        if np.isfinite(row).all():
            yield qid, tuple(number(value) or 0.0 for value in row.tolist())


def _sentence(system: str, part: WaterfallPart) -> str:
    lost = ", ".join(f"{score(loss)} by {name}" for name, loss in zip(LOSSES, part.losses, strict=True))
    named = f"{system}: {part.measure} {score(part.actual)} of {score(part.perfect)}; lost {lost}"
    return f"{named} — {part.knob}" if part.knob else named
