"""Three analyses: distribution of recall over queries, sensitivity to parameters of RA-nWG, and scores by cutoff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from raggs.base.document import Column, score
from raggs.base.types import Number, finite_or_none
from raggs.evaluation.analyses import AnalysisFinding, PartAnalysis
from raggs.evaluation.models import ReportPart, RobustnessPart, SensitivityPart
from raggs.evaluation.study import Study, mean
from raggs.metrics.bottleneck import DELTAS, recall_profile, sensitivity
from raggs.metrics.hits import Hits
from raggs.metrics.names import MeasureSpec, parse_measure


class RobustnessAnalysis(PartAnalysis[RobustnessPart]):
    """How much recall differs between queries: its distribution over them."""

    NAME = "robustness"
    TITLE = "Robustness"
    PLACE = "robustness"
    SHARES = tuple(("shares", f"{delta:g}") for delta in DELTAS)
    COLUMNS = ("system", "measure", "mean", "zero", *SHARES, ("percentiles", "5"))
    PART = RobustnessPart

    def compute(self, study: Study) -> Sequence[AnalysisFinding[RobustnessPart]]:
        """Return one finding per system and cutoff."""
        return [
            AnalysisFinding(system, _part(hits, cutoff))
            for system, hits in study.hits.items()
            for cutoff in study.scoring.cutoffs
        ]

    def sentences(self, found: Sequence[AnalysisFinding[RobustnessPart]]) -> Sequence[str]:
        """Return the distribution for each system and cutoff."""
        return [
            f"{system}: {part.measure} mean {score(part.mean)}; it is 0 for {part.zero or 0.0:.0%} of the queries, at "
            "least " + ", ".join(f"{delta} for {share:.0%}" for delta, share in part.shares.items())
            for system, part in found
        ]


def _part(hits: Hits, k: int) -> RobustnessPart:
    profile = recall_profile(parse_measure(f"recall@{k}").values(hits))
    return RobustnessPart(
        measure=f"recall@{k}",
        mean=profile.mean,
        zero=profile.zero,
        area=profile.area,
        shares={f"{delta:g}": share for delta, share in profile.shares.items()},
        percentiles={str(percent): value for percent, value in profile.percentiles.items()},
        histogram=profile.histogram,
        beside={name: mean(parse_measure(name).values(hits)) for name in (f"map@{k}", f"ndcg@{k}", f"mrr@{k}")},
    )


class Sensitivity(PartAnalysis[SensitivityPart]):
    """Whether the order of the systems depends on the parameters of RA-nWG; requires grades from 1 to 5."""

    NAME = "sensitivity"
    TITLE = "Sensitivity of RA-nWG"
    PLACE = "sensitivity"
    COLUMNS = ("alpha", "cap4", "cap3", "order")
    PART = SensitivityPart

    def compute(self, study: Study) -> Sequence[AnalysisFinding[SensitivityPart]]:
        """Return one finding per point of the parameter grid, at the largest cutoff."""
        if not study.graded:
            return ()
        return [
            AnalysisFinding(
                "",
                SensitivityPart(
                    alpha=point.alpha,
                    cap4=point.cap4,
                    cap3=point.cap3,
                    means={name: finite_or_none(value) for name, value in point.means.items()},
                    order=point.order,
                    swapped=point.swapped,
                ),
            )
            for point in sensitivity(study.hits, k=study.cutoff)
        ]

    def tabled(self, found: Sequence[AnalysisFinding[SensitivityPart]]) -> Sequence[AnalysisFinding[SensitivityPart]]:
        """Return the points at which the order of systems changes."""
        return [each for each in found if each.part.swapped]

    def sentences(self, found: Sequence[AnalysisFinding[SensitivityPart]]) -> Sequence[str]:
        """Return the number of points at which the order of systems changes."""
        moved = sum(bool(part.swapped) for _, part in found)
        return [f"RA-nWG's parameters: the order of the systems changes at {moved} of {len(found)} points of the grid"]


CUTOFFS = (1, 3, 5, 10, 20, 50)


class DepthsPart(ReportPart):
    """The mean of one measure at each cutoff."""

    measure: Annotated[str, Column("measure")]
    means: Annotated[dict[int, Number], Column("@{key}", "score")]


class DepthAnalysis(PartAnalysis[DepthsPart]):
    """How the first measure of each system changes with the cutoff."""

    NAME = "depths"
    TITLE = "Scores by cutoff"
    COLUMNS = ("system", "measure", *(("means", k) for k in CUTOFFS))
    PART = DepthsPart

    def compute(self, study: Study) -> Sequence[AnalysisFinding[DepthsPart]]:
        """Return one finding per system, with cutoffs up to the length of its longest list. It is empty if the first
        measure has no cutoff.
        """
        named = study.scoring.measures[0]
        if named.measure.k is None:
            return ()
        return [AnalysisFinding(system, _depths_part(hits, named)) for system, hits in study.hits.items()]


def _depths_part(hits: Hits, named: MeasureSpec) -> DepthsPart:
    means = {k: mean(each.values(hits)) for k, each in _at(named) if k <= hits.length.max()}
    return DepthsPart(measure=named.name.partition("@")[0], means=means)


def _at(named: MeasureSpec) -> Iterator[tuple[int, MeasureSpec]]:
    for k in CUTOFFS:
        yield k, replace(named, measure=replace(named.measure, k=k))
