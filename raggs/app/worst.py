"""Where a system does badly: the questions with the worst values, or those that lost most against an earlier result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from raggs.base.errors import UsageError
from raggs.base.jsontypes import Number
from raggs.base.text import did_you_mean
from raggs.evaluation.models import Report
from raggs.golden.base import GoldenSet

WORST = 10  # questions that are named


@dataclass(frozen=True)
class Worst:
    """A question where a system does badly.

    Attributes:
        system, qid: whose list, for which question.
        value: of the measure.
        before: the value in the earlier result; None without one.
        text: the question's words; empty where they are not known.
    """

    system: str
    qid: str
    value: float
    before: Number
    text: str


def worst_of(
    report: Report,
    golden: GoldenSet | None,
    before: Report | None = None,
    *,
    measure: str | None = None,
    count: int = WORST,
) -> tuple[Worst, ...]:
    """The worst questions, worst first; of equal ones the first by id.

    Args:
        golden: knows the questions' words.
        before: an earlier result; one on other judgments counts for nothing.
        measure: of the report; its first one where left out.
        count: how many at most.

    Raises:
        UsageError: the report has no such measure.
    """
    name = measure or report.measures[0]
    if name not in report.measures:
        raise UsageError(f"{name} was not measured", remedy=did_you_mean(name, report.measures))
    sign = 1.0 if report.higher_is_better[name] else -1.0
    found = [(sign * (each.value - (each.before or 0.0)), each) for each in _values(report, before, name)]
    found.sort(key=lambda pair: (pair[0], pair[1].qid, pair[1].system))
    texts = {} if golden is None else {query.qid: query.text for query in golden.queries()}
    return tuple(replace(each, text=texts.get(each.qid, "")) for _, each in found[:count])


def _values(report: Report, before: Report | None, measure: str) -> Iterator[Worst]:
    for system, by_measure in report.per_query.items():
        then = _earlier(report, before, system).get(measure, {})
        for qid, value in by_measure.get(measure, {}).items():
            if value is not None:
                yield Worst(system, qid, value, then.get(qid), "")


def _earlier(report: Report, before: Report | None, system: str) -> Mapping[str, Mapping[str, Number]]:
    """The earlier values of a system: those of its name, or of the only one there is."""
    if before is None or report.golden.digest != before.golden.digest:
        return {}
    alone = len(report.per_query) == len(before.per_query) == 1
    return next(iter(before.per_query.values())) if alone else before.per_query.get(system, {})
