"""Three analyses of labels: bounds of scores with unjudged passages, pooling, and label uncertainty.

Passages that no pooled system found are unjudged. With such a pooled set, ceilings can be too high for the pooled
systems, and scores can be too low for new systems. The more relevant passages only one of the pooled systems found, the
more relevant passages may be missing from the pool (Zobel 1998).
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
    """Range of each score over all possible grades of the unjudged passages."""

    def extend(self, report: EvalReport, study: Study) -> EvalReport:
        """Return the report with `lowest` and `highest` set in each score."""
        return report.with_systems({each.name: {"scores": dict(_bounded(each, study))} for each in report.systems})

    def legend(self, report: EvalReport) -> Legend | None:
        """Return the meaning of the braces next to the scores."""
        if all(score.lowest is None for system in report.systems for score in system.scores.values()):
            return None
        return Legend("{ }", "score with all unjudged passages at the lowest and at the highest grade")


def _bounded(system: SystemPart, study: Study) -> Iterator[tuple[str, ScorePart]]:
    fillings = Fillings(study.hits[system.name])
    for named in study.scoring.measures:
        lowest, highest = map(mean, fillings.bounds(named))
        yield named.name, system.scores[named.name].model_copy(update={"lowest": lowest, "highest": highest})


class Pooling(PartAnalysis[PoolPart]):
    """Whether the set was pooled from the systems under test; the section is printed only together with ceilings."""

    NAME = "pooling"
    TITLE = "The pool"
    COLUMNS = ("makers", "relevant", "alone", "share")
    PART = PoolPart

    def compute(self, study: Study) -> Sequence[AnalysisFinding[PoolPart]]:
        """Return the pooled systems and the number of relevant passages unique to one of them."""
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
        """Return sentences on the limits of a pooled set."""
        return [
            f"{_pool_origin_clause(part)}: passages that all of them missed are unjudged, so the ceilings are too high"
            + ("" if part.share is None else f"; {part.share:.0%} of {_theirs(part)} are unique to one of them")
            for _, part in found
        ]

    def section(self, report: EvalReport) -> Section | None:
        """Return the section only if ceilings are printed."""
        return super().section(report) if BottleneckAnalysis().shown(report) else None


def _pool_origin_clause(part: PoolPart) -> str:
    names = ", ".join(part.makers)
    if part.stated:
        return f"the set was pooled from {names}"
    return f"every top passage of {names} is judged, so the set was probably pooled from them"


def _theirs(part: PoolPart) -> str:
    return f"the {plural(part.relevant, 'relevant passage')} they found"


class LabelUncertaintyAnalysis(Analysis):
    """Intervals that include the uncertainty of the labels; requires a golden set that records this uncertainty."""

    def check(self, judgments: Judgments, systems: Sequence[str]) -> None:
        """Check that the uncertainty of the labels is known.

        Raises:
            UsageError: the golden set does not record it.
        """
        if judgments.doubt is None:
            raise UsageError(
                f"{judgments.source} does not record the uncertainty of its labels",
                remedy="give a run directory with --golden, or omit --uncertainty",
            )

    def extend(self, report: EvalReport, study: Study) -> EvalReport:
        """Return the report with wider `low` and `high` in each score."""
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
