"""Acc|Hit: how often a system's answer is right once all the evidence was shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from raggs.agreement import accuracy_given_hit
from raggs.errors import DataError
from raggs.evaluation.analyses.base import Finding, PartAnalysis, by_system
from raggs.evaluation.document import Cell, Row
from raggs.evaluation.models import AnswersPart, Report
from raggs.evaluation.study import Study
from raggs.evaluation.words import score
from raggs.jsontypes import number
from raggs.metrics.hits import Hits
from raggs.metrics.names import parse_measure


@dataclass(frozen=True)
class GivenAnswers(PartAnalysis[AnswersPart]):
    """How often the answer is right where all evidence was retrieved (Acc|Hit).

    Attributes:
        correct: by query, whether the answer was right; nothing is computed without any.
    """

    correct: Mapping[str, bool] = field(default_factory=dict)

    NAME = "answers"
    TITLE = "GivenAnswers where all evidence was shown"
    HEAD = ("system", "evidence by", "accuracy", "interval", "correct", "queries with it", "queries with an answer")
    PART = AnswersPart

    def compute(self, study: Study) -> Sequence[Finding[AnswersPart]]:
        """Each system at the largest cutoff.

        Raises:
            DataError: no judged query has a known answer.
        """
        if not self.correct:
            return ()
        name = f"hit_all@{study.cutoff}" if study.graded else f"hit@{study.cutoff}"
        return [
            Finding(system, self._part(hits, name, study.scoring.confidence)) for system, hits in study.hits.items()
        ]

    def _part(self, hits: Hits, name: str, confidence: float) -> AnswersPart:
        correct = self.correct
        flags = np.array([float(correct[qid]) if qid in correct else np.nan for qid in hits.qrels.qids])
        if not np.isfinite(flags).any():
            raise DataError("no judged query has a known answer", remedy="make both files name queries in the same way")
        found = accuracy_given_hit(flags, parse_measure(name).values(hits), confidence=confidence)
        return AnswersPart(
            measure=name,
            accuracy=number(found.value),
            low=found.low,
            high=found.high,
            hits=found.hits,
            correct=found.correct,
            queries=int(np.isfinite(flags).sum()),
        )

    def put(self, report: Report, found: Sequence[Finding[AnswersPart]]) -> Report:
        """Into each system's `answers`."""
        return report.with_systems({name: {"answers": part} for name, (part,) in by_system(report, found).items()})

    def found(self, report: Report) -> Sequence[Finding[AnswersPart]]:
        """From each system's `answers`."""
        return [Finding(system.name, system.answers) for system in report.systems if system.answers is not None]

    def rows(self, found: Sequence[Finding[AnswersPart]]) -> Sequence[Row]:
        """A row for each system."""
        return [
            (
                Cell(system),
                Cell(part.measure),
                Cell(part.accuracy, "score"),
                Cell(f"[{score(part.low)}, {score(part.high)}]"),
                *map(Cell, (part.correct, part.hits, part.queries)),
            )
            for system, part in found
        ]

    def sentences(self, found: Sequence[Finding[AnswersPart]]) -> Sequence[str]:
        """The accuracy of each system that had hits."""
        return [
            f"{system}: Acc|{part.measure} {score(part.accuracy)} [{part.low:.3f}, {part.high:.3f}], "
            f"{part.correct} of {part.hits} queries with all evidence"
            for system, part in found
            if part.accuracy is not None
        ]
