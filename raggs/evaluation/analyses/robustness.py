"""The distribution of recall over queries: how many are served badly behind a good mean."""

from __future__ import annotations

from collections.abc import Sequence

from raggs.evaluation.analyses.base import Finding, PartAnalysis, by_system
from raggs.evaluation.document import Row, cells
from raggs.evaluation.models import Report, RobustnessPart
from raggs.evaluation.study import Study, mean
from raggs.evaluation.words import score
from raggs.metrics.hits import Hits
from raggs.metrics.names import parse_measure
from raggs.metrics.robustness import DELTAS, recall_profile


class Robustness(PartAnalysis[RobustnessPart]):
    """How evenly queries are served: the distribution of recall over them."""

    NAME = "robustness"
    TITLE = "Robustness"
    HEAD = ("system", "recall", "mean", "zero", *(f">= {delta:g}" for delta in DELTAS), "worst 5%")
    PART = RobustnessPart

    def compute(self, study: Study) -> Sequence[Finding[RobustnessPart]]:
        """Each system at each cutoff."""
        return [
            Finding(system, _part(hits, cutoff))
            for system, hits in study.hits.items()
            for cutoff in study.scoring.cutoffs
        ]

    def put(self, report: Report, found: Sequence[Finding[RobustnessPart]]) -> Report:
        """Into each system's `robustness`."""
        return report.with_systems({name: {"robustness": parts} for name, parts in by_system(report, found).items()})

    def found(self, report: Report) -> Sequence[Finding[RobustnessPart]]:
        """From each system's `robustness`."""
        return [Finding(system.name, part) for system in report.systems for part in system.robustness]

    def rows(self, found: Sequence[Finding[RobustnessPart]]) -> Sequence[Row]:
        """A row for each system and cutoff."""
        return [
            cells(system, part.measure, part.mean, part.zero, *part.shares.values(), part.percentiles["5"])
            for system, part in found
        ]

    def sentences(self, found: Sequence[Finding[RobustnessPart]]) -> Sequence[str]:
        """The curve of each system at each cutoff."""
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
