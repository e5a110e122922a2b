"""The systems: measures with intervals, figures, who wins on which question, and what each analysis found."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from raggs.base.types import Number
from raggs.evaluation.analyses.waterfall import Waterfall
from raggs.evaluation.document import Cell, Document, Table
from raggs.evaluation.layout import lay_out
from raggs.evaluation.models import Part, Report
from raggs.reporting.base import Facts, ReportSection, compared
from raggs.reporting.figures import Figure, figures

DIGITS = 5  # of the value of a query


class SystemsPart(Part):
    """All of the section; what the script draws is the values by query."""

    document: Document = Field(exclude=True)
    figures: tuple[Figure, ...] = Field(exclude=True)
    measures: tuple[str, ...]
    lower: tuple[str, ...] = Field(description="measures of which less is better")
    systems: tuple[str, ...]
    baseline: str | None
    shown: int = Field(description="the system that is shown first")
    queries: tuple[str, ...] = Field(description="ids")
    texts: tuple[str, ...] = Field(description="of the queries; empty where they are not known")
    values: tuple[tuple[tuple[Number, ...], ...], ...] = Field(description="by measure, system and query")


class Systems(ReportSection):
    """How good is each system, is a difference real, and on which questions?"""

    NAME = "systems"
    TITLE = "Systems"
    SCRIPTED = True

    def data(self, facts: Facts) -> SystemsPart | None:
        """None where nothing was scored."""
        report = facts.report
        if report is None:
            return None
        texts = {query.qid: query.text for query in facts.golden.queries()}
        qids = sorted({qid for found in report.per_query.values() for values in found.values() for qid in values})
        systems, best = list(report.per_query), compared(report)
        return SystemsPart(
            document=_as_shown(lay_out(report)),
            figures=tuple(figures(report)),
            measures=report.measures,
            lower=tuple(name for name in report.measures if not report.higher_is_better[name]),
            systems=tuple(systems),
            baseline=best[0].baseline if best else None,
            shown=systems.index(best[0].system) if best else 0,
            queries=tuple(qids),
            texts=tuple(texts.get(qid, "") for qid in qids),
            values=tuple(tuple(_values(report, each, name, qids) for each in systems) for name in report.measures),
        )


def _values(report: Report, system: str, measure: str, qids: list[str]) -> tuple[Number, ...]:
    found = report.per_query[system].get(measure, {})
    return tuple(None if (value := found.get(qid)) is None else round(value, DIGITS) for qid in qids)


def _as_shown(document: Document) -> Document:
    """Without the losses, which have a section of their own, and without bounds that enclose nothing."""
    kept = tuple(each for each in document.sections if not each.title.startswith(Waterfall.TITLE))
    scores, table = document.scores, document.scores.table
    if table is not None:
        rows = tuple(tuple(map(_told, row)) for row in table.rows)
        bounded = any(each.brackets == "{}" for row in rows for cell in row for each in cell.ranges)
        legend = tuple(each for each in scores.legend if bounded or each.sign != "{ }")
        scores = replace(scores, table=Table(table.head, rows), legend=legend)
    return replace(document, scores=scores, sections=kept)


def _told(cell: Cell) -> Cell:
    return replace(cell, ranges=tuple(each for each in cell.ranges if each.brackets == "[]" or each.low < each.high))
