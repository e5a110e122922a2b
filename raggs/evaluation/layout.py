"""From the report to its document: the scores, a section of each analysis that found something, and the notes.

A report as files: eval.json for programs, eval.csv for spreadsheets, eval.md for people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from raggs.base.document import Cell, Legend, ReportDocument, Row, ScoreRange, Section, Table, csv_text, markdown
from raggs.base.files import write_texts
from raggs.base.types import Number
from raggs.evaluation.analyses import REGISTRY, Analysis
from raggs.evaluation.messages import MARKS, interval_words, judgments
from raggs.evaluation.models import EvalReport, ScorePart
from raggs.evaluation.report import projections
from raggs.metrics.names import glossary


def lay_out(report: EvalReport) -> ReportDocument:
    """Return the document of a report. Nothing is computed.

    Raises:
        UsageError: the report contains findings of an analysis that is not installed.
    """
    analyses: list[Analysis] = [REGISTRY.load(name)() for name in dict.fromkeys((*REGISTRY.builtin, *report.analyses))]
    sections = tuple(section for analysis in analyses if (section := analysis.section(report)))
    ranged = any(score.low is not None for _, score in _all_scores(report))
    signs = (
        Legend("[ ]", interval_words(report)) if ranged else None,
        *(analysis.legend(report) for analysis in analyses),
    )
    legend = tuple(filter(None, signs))
    said = (judgments(report.golden), *projections(report))
    scores = Section("Scores", said, _scores(report), legend, _terms(report))
    return ReportDocument("Evaluation", scores, sections, report.notes, report.warnings)


def _terms(report: EvalReport) -> tuple[Legend, ...]:
    """Return the definitions of the measures in the report."""
    return tuple(Legend(name, said) for name, said in glossary(report.measures).items())


def _scores(report: EvalReport) -> Table:
    """Return one row per measure and one column per system, plus the number of valid queries if it is not all."""
    partial = any(score.valid < report.golden.queries for _, score in _all_scores(report))
    head = ("measure", *(system.name for system in report.systems), *(["valid queries"] if partial else []))
    return Table(head, tuple(_row(report, measure, partial) for measure in report.measures))


def _row(report: EvalReport, measure: str, partial: bool) -> Row:
    scores = {system.name: system.scores[measure] for system in report.systems}
    best = _best_mean(report, measure, [score.mean for score in scores.values()])
    marks = {part.system: MARKS[part.verdict] for part in report.comparisons if part.measure == measure}
    cells = (_cell(score, marks.get(name, ""), score.mean == best) for name, score in scores.items())
    return (Cell(measure), *cells, *([Cell(_valid(report, list(scores.values())))] if partial else []))


def _best_mean(report: EvalReport, measure: str, means: list[Number]) -> Number:
    """Return the best mean; None for a single system."""
    better: Callable[[list[float]], float] = max if report.higher_is_better[measure] else min
    known = [mean for mean in means if mean is not None]
    return better(known) if known and len(means) > 1 else None


def _cell(score: ScorePart, mark: str, best: bool) -> Cell:
    ranges = []
    if score.low is not None and score.high is not None:
        ranges.append(ScoreRange(score.low, score.high, "[]"))
    if score.lowest is not None and score.highest is not None:
        ranges.append(ScoreRange(score.lowest, score.highest, "{}"))
    return Cell(score.mean, "score", mark, tuple(ranges), best and score.mean is not None)


def _valid(report: EvalReport, scores: list[ScorePart]) -> str:
    """Return ``26 of 28``; if systems differ, one number each, in their order."""
    counts = [score.valid for score in scores]
    said = str(counts[0]) if len(set(counts)) == 1 else "/".join(map(str, counts))
    return f"{said} of {report.golden.queries}"


def _all_scores(report: EvalReport) -> Iterator[tuple[str, ScorePart]]:
    for system in report.systems:
        yield from system.scores.items()


RESULT = "eval.json"


def write_report(report: EvalReport, folder: Path) -> list[Path]:
    """Write all files into `folder`, made if missing; each appears whole or not at all.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {
        RESULT: report_json(report) + "\n",
        "eval.csv": per_query_csv(report),
        "eval.md": markdown(lay_out(report)),
    }
    return write_texts(folder, texts)


def report_json(report: EvalReport) -> str:
    """Return the report as JSON; `raggs schema eval` describes it."""
    return report.model_dump_json(indent=2)


def per_query_head(report: EvalReport) -> list[str]:
    """Return the column titles of `per_query_rows`."""
    return ["system", "qid", *report.measures]


def per_query_rows(report: EvalReport) -> Iterator[tuple[str, str, list[Number]]]:
    """Yield system, query and a value per measure, None if not defined; queries are sorted."""
    for system, by_measure in report.per_query.items():
        for qid in sorted({qid for values in by_measure.values() for qid in values}):
            yield system, qid, [by_measure[measure].get(qid) for measure in report.measures]


def per_query_csv(report: EvalReport) -> str:
    """Return one CSV row per system and query and one column per measure; an empty cell means "not defined"."""
    rows = ((system, qid, *values) for system, qid, values in per_query_rows(report))
    return csv_text(per_query_head(report), rows)
