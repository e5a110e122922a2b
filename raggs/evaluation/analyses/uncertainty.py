"""Doubt about labels, carried into the intervals: they then cover other labels as well as other queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raggs.base.errors import UsageError
from raggs.base.types import number
from raggs.evaluation.analyses.base import Analysis
from raggs.evaluation.models import Report, ScorePart
from raggs.evaluation.study import Study
from raggs.golden.judgments import Judgments
from raggs.metrics.label_uncertainty import Doubt, with_doubt


class LabelDoubt(Analysis):
    """Intervals widened by the doubt about the labels; needs a golden set that knows it."""

    def check(self, judgments: Judgments, systems: Sequence[str]) -> None:
        """Refuse judgments whose doubt is not known.

        Raises:
            UsageError: they are.
        """
        if judgments.doubt is None:
            raise UsageError(
                f"{judgments.source} says nothing of the doubt about its labels",
                remedy="--uncertainty needs --golden RUN_DIRECTORY",
            )

    def extend(self, report: Report, study: Study) -> Report:
        """Into `low` and `high` of each score."""
        if study.judgments.doubt is None:
            return report
        changes = {
            system.name: {"scores": _widened(system.name, system.scores.values(), study, study.judgments.doubt)}
            for system in report.systems
        }
        return report.with_systems(changes).model_copy(update={"label_uncertainty": True})


def _widened(name: str, scores: Iterable[ScorePart], study: Study, doubt: Doubt) -> dict[str, ScorePart]:
    scoring, values = study.scoring, study.values[name]
    usual = list(values.interval.values())
    wide = with_doubt(study.hits[name], scoring.measures, doubt, usual, seed=scoring.seed)
    return {
        measure: score.model_copy(update={"low": number(interval.low), "high": number(interval.high)})
        for measure, score, interval in zip(values.measures, scores, wide, strict=True)
    }
