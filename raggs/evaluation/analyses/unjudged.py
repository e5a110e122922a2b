"""Bounds: each score with all of its unjudged passages at the lowest, and at the highest grade.

Pooling: whether the golden set was made from the very systems under test, and how much only one of them found.

What nobody found was not judged. So a ceiling by such a set flatters its makers, and a new system looks worse than it
is; the more passages only one maker found, the more there may be that none did (Zobel 1998).

Doubt about labels, carried into the intervals: they then cover other labels as well as other queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from raggs.base.document import Legend, Section
from raggs.base.errors import UsageError
from raggs.base.text import plural
from raggs.base.types import finite_or_none
from raggs.evaluation.analyses import Analysis, AnalysisFinding, PartAnalysis
from raggs.evaluation.analyses.losses import BottleneckAnalysis
from raggs.evaluation.models import EvalReport, PoolPart, ScorePart, SystemPart
from raggs.evaluation.study import Study, mean
from raggs.golden.judgments import Judgments
from raggs.metrics.unjudged import Fillings, LabelUncertainty, with_doubt


class UnjudgedBoundsAnalysis(Analysis):
    """What unjudged passages could make of each score."""

    def extend(self, report: EvalReport, study: Study) -> EvalReport:
        """Into `lowest` and `highest` of each score."""
        return report.with_systems({each.name: {"scores": dict(_bounded(each, study))} for each in report.systems})

    def legend(self, report: EvalReport) -> Legend | None:
        """What the braces beside the scores say."""
        if all(score.lowest is None for system in report.systems for score in system.scores.values()):
            return None
        return Legend("{ }", "with every unjudged passage at the lowest and the highest grade")


def _bounded(system: SystemPart, study: Study) -> Iterator[tuple[str, ScorePart]]:
    fillings = Fillings(study.hits[system.name])
    for named in study.scoring.measures:
        lowest, highest = map(mean, fillings.bounds(named))
        yield named.name, system.scores[named.name].model_copy(update={"lowest": lowest, "highest": highest})


class Pooling(PartAnalysis[PoolPart]):
    """Whether the set was pooled from the systems under test; said beside the ceilings of their pools."""

    NAME = "pooling"
    TITLE = "The pool"
    COLUMNS = ("makers", "relevant", "alone", "share")
    PART = PoolPart

    def compute(self, study: Study) -> Sequence[AnalysisFinding[PoolPart]]:
        """The makers among the systems, and of the relevant passages those that a single maker found."""
        makers = tuple(name for name in study.hits if name in study.makers)
        if not makers or not study.graded:
            return ()
        single = [name for name in makers if name not in study.derived]
        relevant = study.judgments.qrels.grade >= study.judgments.qrels.scale.relevant
        found = np.zeros(len(relevant), dtype=np.int64)
        for name in single:
            found[study.hits[name].item] += 1
        alone = int((relevant & (found == 1)).sum()) if len(single) > 1 else None
        known = any(study.makers[name] for name in makers)
        part = PoolPart(makers=makers, stated=known, relevant=int((relevant & (found > 0)).sum()), alone=alone)
        return [AnalysisFinding("", part)]

    def sentences(self, found: Sequence[AnalysisFinding[PoolPart]]) -> Sequence[str]:
        """What such a set cannot show."""
        return [
            f"{_pool_origin_clause(part)}: a pool cannot show what its makers missed, so the ceilings flatter them"
            + ("" if part.share is None else f"; {part.share:.0%} of {_theirs(part)} one alone found")
            for _, part in found
        ]

    def section(self, report: EvalReport) -> Section | None:
        """Beside the ceilings alone."""
        return super().section(report) if BottleneckAnalysis().shown(report) else None


def _pool_origin_clause(part: PoolPart) -> str:
    names = ", ".join(part.makers)
    if part.stated:
        return f"the set was pooled from {names}"
    return f"all that {names} show at the top is judged, as where a set is pooled from the systems under test"


def _theirs(part: PoolPart) -> str:
    return f"the {plural(part.relevant, 'relevant passage')} they found"


class LabelUncertaintyAnalysis(Analysis):
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

    def extend(self, report: EvalReport, study: Study) -> EvalReport:
        """Into `low` and `high` of each score."""
        if study.judgments.doubt is None:
            return report
        changes = {
            system.name: {"scores": _widened(system.name, system.scores.values(), study, study.judgments.doubt)}
            for system in report.systems
        }
        return report.with_systems(changes).model_copy(update={"label_uncertainty": True})


def _widened(name: str, scores: Iterable[ScorePart], study: Study, doubt: LabelUncertainty) -> dict[str, ScorePart]:
    scoring, values = study.scoring, study.values[name]
    usual = list(values.interval.values())
    wide = with_doubt(study.hits[name], scoring.measures, doubt, usual, seed=scoring.seed)
    return {
        measure: score.model_copy(update={"low": finite_or_none(interval.low), "high": finite_or_none(interval.high)})
        for measure, score, interval in zip(values.measures, scores, wide, strict=True)
    }
