"""Bounds: each score with all of its unjudged passages at the lowest, and at the highest grade."""

from __future__ import annotations

from raggs.evaluation.analyses.base import Analysis
from raggs.evaluation.document import Legend
from raggs.evaluation.models import Report, ScorePart
from raggs.evaluation.study import Study, mean
from raggs.metrics.bounds import bounds
from raggs.metrics.hits import Hits
from raggs.metrics.names import Named


class HoleBounds(Analysis):
    """What unjudged passages could make of each score."""

    def extend(self, report: Report, study: Study) -> Report:
        """Into `lowest` and `highest` of each score."""
        return report.with_systems(
            {
                system.name: {
                    "scores": {
                        named.name: _bounded(system.scores[named.name], study.hits[system.name], named)
                        for named in study.scoring.measures
                    }
                }
                for system in report.systems
            }
        )

    def legend(self, report: Report) -> Legend | None:
        """What the braces beside the scores say."""
        if all(score.lowest is None for system in report.systems for score in system.scores.values()):
            return None
        return Legend("{ }", "with every unjudged passage at the lowest and the highest grade")


def _bounded(score: ScorePart, hits: Hits, named: Named) -> ScorePart:
    lowest, highest = map(mean, bounds(hits, named))
    return score.model_copy(update={"lowest": lowest, "highest": highest})
