"""From the report to its document: the scores, a section of each analysis that found something, and the notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from raggs.base.jsontypes import Number
from raggs.evaluation.analyses import REGISTRY
from raggs.evaluation.analyses.base import Analysis
from raggs.evaluation.document import Cell, Document, Legend, Range, Row, Section, Table
from raggs.evaluation.models import Report, ScorePart
from raggs.evaluation.projected import projections
from raggs.evaluation.words import MARKS, interval, judgments
from raggs.metrics.names import glossary


def lay_out(report: Report) -> Document:
    """The document of a report; nothing is computed here.

    Raises:
        UsageError: the report holds what an analysis found that is not installed here.
    """
    analyses: list[Analysis] = [REGISTRY.load(name)() for name in dict.fromkeys((*REGISTRY.builtin, *report.analyses))]
    sections = tuple(section for analysis in analyses if (section := analysis.section(report)))
    ranged = any(score.low is not None for _, score in _each(report))
    signs = (Legend("[ ]", interval(report)) if ranged else None, *(analysis.legend(report) for analysis in analyses))
    legend = tuple(filter(None, signs))
    said = (judgments(report.golden), *projections(report))
    scores = Section("Scores", said, _scores(report), legend, _terms(report))
    return Document("Evaluation", scores, sections, report.notes, report.warnings)


def _terms(report: Report) -> tuple[Legend, ...]:
    """What the measures shown are."""
    return tuple(Legend(name, said) for name, said in glossary(report.measures).items())


def _scores(report: Report) -> Table:
    """A row for each measure, a column for each system; and the queries in the mean where that is not all of them."""
    partial = any(score.valid < report.golden.queries for _, score in _each(report))
    head = ("measure", *(system.name for system in report.systems), *(["valid queries"] if partial else []))
    return Table(head, tuple(_row(report, measure, partial) for measure in report.measures))


def _row(report: Report, measure: str, partial: bool) -> Row:
    scores = {system.name: system.scores[measure] for system in report.systems}
    best = _best(report, measure, [score.mean for score in scores.values()])
    marks = {part.system: MARKS[part.verdict] for part in report.comparisons if part.measure == measure}
    cells = (_cell(score, marks.get(name, ""), score.mean == best) for name, score in scores.items())
    return (Cell(measure), *cells, *([Cell(_valid(report, list(scores.values())))] if partial else []))


def _best(report: Report, measure: str, means: list[Number]) -> Number:
    """The best mean; none where there is nothing to be better than."""
    better: Callable[[list[float]], float] = max if report.higher_is_better[measure] else min
    known = [mean for mean in means if mean is not None]
    return better(known) if known and len(means) > 1 else None


def _cell(score: ScorePart, mark: str, best: bool) -> Cell:
    ranges = []
    if score.low is not None and score.high is not None:
        ranges.append(Range(score.low, score.high, "[]"))
    if score.lowest is not None and score.highest is not None:
        ranges.append(Range(score.lowest, score.highest, "{}"))
    return Cell(score.mean, "score", mark, tuple(ranges), best and score.mean is not None)


def _valid(report: Report, scores: list[ScorePart]) -> str:
    """``26 of 28``; where systems differ, one number each, in their order."""
    counts = [score.valid for score in scores]
    said = str(counts[0]) if len(set(counts)) == 1 else "/".join(map(str, counts))
    return f"{said} of {report.golden.queries}"


def _each(report: Report) -> Iterator[tuple[str, ScorePart]]:
    for system in report.systems:
        yield from system.scores.items()
