"""How a score grows with the cutoff: what more passages in the prompt would bring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from raggs.base.types import Number
from raggs.evaluation.analyses.base import Finding, PartAnalysis
from raggs.evaluation.document import Row, cells
from raggs.evaluation.models import Part
from raggs.evaluation.study import Study, mean
from raggs.metrics.hits import Hits
from raggs.metrics.names import Named

CUTOFFS = (1, 3, 5, 10, 20, 50)


class DepthsPart(Part):
    """The means of one measure over cutoffs."""

    measure: str
    means: dict[int, Number]


class Depths(PartAnalysis[DepthsPart]):
    """How the first measure of each system grows with the cutoff."""

    NAME = "depths"
    TITLE = "Over the cutoff"
    HEAD = ("system", "measure", *(f"@{k}" for k in CUTOFFS))
    PART = DepthsPart

    def compute(self, study: Study) -> Sequence[Finding[DepthsPart]]:
        """Each system, as far as its longest list reaches; none where the first measure has no cutoff."""
        named = study.scoring.measures[0]
        if named.measure.k is None:
            return ()
        return [Finding(system, _part(hits, named)) for system, hits in study.hits.items()]

    def rows(self, found: Sequence[Finding[DepthsPart]]) -> Sequence[Row]:
        """A row for each system."""
        return [cells(system, part.measure, *(part.means.get(k) for k in CUTOFFS)) for system, part in found]


def _part(hits: Hits, named: Named) -> DepthsPart:
    means = {k: mean(each.values(hits)) for k, each in _at(named) if k <= hits.length.max()}
    return DepthsPart(measure=named.name.partition("@")[0], means=means)


def _at(named: Named) -> Iterator[tuple[int, Named]]:
    for k in CUTOFFS:
        yield k, replace(named, measure=replace(named.measure, k=k))
