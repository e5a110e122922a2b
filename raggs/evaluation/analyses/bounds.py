"""Bounds: each score with all of its unjudged passages at the lowest, and at the highest grade."""

from __future__ import annotations

from collections.abc import Iterator

from raggs.evaluation.analyses.base import Analysis
from raggs.evaluation.document import Legend
from raggs.evaluation.models import Report, ScorePart, SystemPart
from raggs.evaluation.study import Study, mean
from raggs.metrics.unjudged import Fillings


class HoleBounds(Analysis):
    """What unjudged passages could make of each score."""

    def extend(self, report: Report, study: Study) -> Report:
        """Into `lowest` and `highest` of each score."""
        return report.with_systems({each.name: {"scores": dict(_bounded(each, study))} for each in report.systems})

    def legend(self, report: Report) -> Legend | None:
        """What the braces beside the scores say."""
        if all(score.lowest is None for system in report.systems for score in system.scores.values()):
            return None
        return Legend("{ }", "with every unjudged passage at the lowest and the highest grade")


def _bounded(system: SystemPart, study: Study) -> Iterator[tuple[str, ScorePart]]:
    fillings = Fillings(study.hits[system.name])
    for named in study.scoring.measures:
        lowest, highest = map(mean, fillings.bounds(named))
        yield named.name, system.scores[named.name].model_copy(update={"lowest": lowest, "highest": highest})
