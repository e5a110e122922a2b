"""Acc|Hit: how often a system's answer is correct on queries whose evidence was retrieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.document import score
from raggs.base.errors import DataError
from raggs.base.text import plural
from raggs.base.types import finite_or_none
from raggs.evaluation.analyses import AnalysisFinding, PartAnalysis, by_system
from raggs.evaluation.models import AnswersPart, EvalReport
from raggs.evaluation.study import Study
from raggs.metrics.hits import Hits
from raggs.metrics.names import parse_measure
from raggs.stats.agreement import accuracy_given_hit


@dataclass(frozen=True)
class GivenAnswers(PartAnalysis[AnswersPart]):
    """How often the answer is correct on queries whose evidence was retrieved (Acc|Hit).

    Attributes:
        correct: for each query, whether the answer was correct. If this and `by_system` are empty, nothing is computed.
        by_system: for each system with its own answers, the same mapping. These answers take precedence over `correct`.
    """

    correct: Mapping[str, bool] = field(default_factory=dict)
    by_system: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)

    NAME = "answers"
    TITLE = "Answers with all evidence retrieved"
    COLUMNS = ("system", "measure", "accuracy", "interval", "correct", "hits", "queries")
    PART = AnswersPart

    def compute(self, study: Study) -> Sequence[AnalysisFinding[AnswersPart]]:
        """Return one finding per system, at the largest cutoff.

        Raises:
            DataError: no judged query has a known answer.
        """
        if not self.correct and not self.by_system:
            return ()
        flags = {system: self._flags(system, hits) for system, hits in study.hits.items()}
        if not any(np.isfinite(each).any() for each in flags.values()):
            remedy = "use the same query ids and the same names of systems in both files"
            raise DataError("no judged query has a known answer", remedy=remedy)
        confidence = study.scoring.confidence
        return [
            AnalysisFinding(system, self._part(hits, flags[system], study.evidence, confidence))
            for system, hits in study.hits.items()
        ]

    def _flags(self, system: str, hits: Hits) -> Floats:
        """Return shape (queries,): 1 if the answer is correct, 0 if not, NaN if unknown."""
        correct = {**self.correct, **self.by_system.get(system, {})}
        return np.array([float(correct[qid]) if qid in correct else np.nan for qid in hits.qrels.qids])

    def _part(self, hits: Hits, flags: Floats, name: str, confidence: float) -> AnswersPart:
        met = parse_measure(name).values(hits)
        found = accuracy_given_hit(flags, met, confidence=confidence)
        return AnswersPart(
            measure=name,
            accuracy=finite_or_none(found.value),
            low=found.low,
            high=found.high,
            hits=found.hits,
            correct=found.correct,
            queries=int(np.isfinite(flags).sum()),
            missing=int(((met == 1) & np.isnan(flags)).sum()),
        )

    def put(self, report: EvalReport, found: Sequence[AnalysisFinding[AnswersPart]]) -> EvalReport:
        """Return the report with the parts in `answers` of each system."""
        return report.with_systems({name: {"answers": part} for name, (part,) in by_system(report, found).items()})

    def found(self, report: EvalReport) -> Sequence[AnalysisFinding[AnswersPart]]:
        """Return the parts from `answers` of each system."""
        return [AnalysisFinding(system.name, system.answers) for system in report.systems if system.answers is not None]

    def sentences(self, found: Sequence[AnalysisFinding[AnswersPart]]) -> Sequence[str]:
        """Return the accuracy of each system that retrieved all evidence for a query, and how many of these queries
        have no known answer.
        """
        return [_sentence(system, part) for system, part in found if part.accuracy is not None or part.missing]


def _sentence(system: str, part: AnswersPart) -> str:
    if part.accuracy is None:
        return f"{system}: {plural(part.missing, 'query')} with all evidence but an unknown answer"
    missing = f"; not counted: {plural(part.missing, 'query')} without a known answer" if part.missing else ""
    return (
        f"{system}: Acc|{part.measure} {score(part.accuracy)} [{part.low:.3f}, {part.high:.3f}], "
        f"{part.correct} of {part.hits} queries with all evidence{missing}"
    )
