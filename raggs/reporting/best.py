"""Which comparison a decision is about: the best of the other systems against the baseline, by the first measure."""

from __future__ import annotations

from raggs.evaluation.models import ComparisonPart, Report


def compared(report: Report) -> list[ComparisonPart]:
    """The comparisons by the measure that decides, best first; none where nothing was compared."""
    measure = report.measures[0]
    sign = 1.0 if report.higher_is_better[measure] else -1.0
    known = [part for part in report.comparisons if part.measure == measure and part.difference is not None]
    return sorted(known, key=lambda part: -sign * (part.difference or 0.0))


def is_ahead(part: ComparisonPart, report: Report) -> bool:
    """Whether a system's mean is the better one, sure or not."""
    sign = 1.0 if report.higher_is_better[part.measure] else -1.0
    return sign * (part.difference or 0.0) > 0
