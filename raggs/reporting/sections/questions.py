"""The section of the queries: a table with filters, and for each query the lists of two systems and the golden order.

The details of a query are those of `raggs review serve --look`, rendered by the same script, which is stored with that
page.
With many queries, the file contains fewer hits per system and shorter texts: see `raggs.reporting.page`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from pydantic import Field

from raggs.base.languages import stop_words
from raggs.base.types import Number
from raggs.evaluation.analyses.losses import Waterfall
from raggs.evaluation.models import EvalReport, ReportPart
from raggs.golden.views import QuestionSheet, QuestionView, kind_of, sheet_of
from raggs.metrics.columns import GOLDEN_HIGH, GradeScale
from raggs.reporting.base import ReportFacts, ReportSection, deciding_comparisons
from raggs.reporting.page import SheetPacking, compact

TEN = 10
DEEP, SHALLOW = 20, 10  # hits per system, for few and many queries
MAX_FULL_DEPTH_LISTS = 2_000  # number of lists above which the lower depth is used

VALUE_DIGITS = 4  # decimals of a score: one more than shown, so that differences are exact


class QuestionTableRow(ReportPart):
    """A query in the table.

    Attributes:
        scores: score of each system on the metric; null if undefined.
        losses: points lost by each system; null if unknown.
        doubt: expected inversions in the top; null without ranking.
        good: number of relevant passages; null if no passage of the query has a grade.
    """

    id: str
    text: str
    language: str
    kind: str
    pool: int
    good: int | None
    doubt: Number
    scores: tuple[int | Number, ...]
    losses: tuple[int | Number, ...]


class PickedQuestion(ReportPart):
    """A query in one of the two top-ten lists, with the value that selected it."""

    id: str
    text: str
    value: str


class QuestionsPart(ReportPart):
    """Data of the section; `sheets` are JSON texts that the script unpacks."""

    measure: str
    systems: tuple[str, ...]
    pair: tuple[str, ...] = Field(
        description="systems that are compared first: the baseline and the best other, or else the first two"
    )
    stops: tuple[str, ...] = Field(description="stop words, which are not highlighted")
    lines: tuple[QuestionTableRow, ...]
    unlost: tuple[str, ...] = Field(exclude=True, description="systems whose losses are unknown")
    apart: tuple[PickedQuestion, ...] = Field(exclude=True)
    widest: int = Field(exclude=True, description="number of queries with the largest difference between systems")
    unsure: tuple[PickedQuestion, ...] = Field(exclude=True)
    names: tuple[str, ...]
    passages: tuple[tuple[str, str, str, str, int], ...]
    sheets: tuple[str, ...]
    depth: int
    texts: bool
    scale: tuple[int, int] = Field(description="lowest and highest grade")
    relevant: int = Field(description="lowest relevant grade")


class QuestionsSection(ReportSection):
    """What are the queries and their grades, and what did each system return?"""

    NAME = "questions"
    TITLE = "Queries"
    SCRIPTED = True

    def data(self, facts: ReportFacts) -> QuestionsPart | None:
        """Return the data of the section; None if the set has no queries."""
        scores = _Scores(facts.report)
        asked = facts.report.golden.queries if facts.report else 0
        depth = SHALLOW if asked * len(scores.systems) > MAX_FULL_DEPTH_LISTS else DEEP
        packing, lines, sheets = SheetPacking(texts=facts.texts), list[QuestionTableRow](), list[str]()
        languages = set[str]()
        scale = GradeScale.of(1, GOLDEN_HIGH) if facts.judgments is None else facts.judgments.qrels.scale
        for view in facts.views(depth):
            sheet = sheet_of(view, facts.golden.top, depth=depth)
            lines.append(scores.line(view, sheet, scale.relevant))
            sheets.append(packing.pack(sheet))
            languages.add(view.language)
        if not lines:
            return None
        apart, widest = _most_different(lines)
        return QuestionsPart(
            measure=scores.measure,
            systems=scores.systems,
            pair=_first_pair(facts.report),
            stops=tuple(sorted({word for each in languages for word in stop_words(each)})) if facts.texts else (),
            lines=tuple(lines),
            unlost=scores.unlost,
            apart=apart,
            widest=widest,
            unsure=_least_certain(lines),
            passages=tuple(packing.passages()),
            names=packing.names,
            sheets=tuple(sheets),
            depth=depth,
            texts=facts.texts,
            scale=(scale.low, scale.high),
            relevant=scale.relevant,
        )

    @classmethod
    def resource(cls, ending: str) -> str:
        """Return the resource, with the shared query sheet of the review page (see `ReportSection.resource`)."""
        shared = files("raggs.reviewing") / "page" / f"sheet.{ending}"
        own = super().resource(ending)
        return f"{shared.read_text(encoding='utf-8')}\n{own}" if ending in ("css", "js") else own


class _Scores:
    """Scores and losses of single queries from an evaluation; empty without one."""

    def __init__(self, report: EvalReport | None) -> None:
        self.measure = report.measures[0] if report else ""
        self.systems: tuple[str, ...] = tuple(report.per_query) if report else ()
        self._values: Sequence[Mapping[str, Number]] = (
            [report.per_query[name].get(self.measure, {}) for name in self.systems] if report else []
        )
        found = {each.system: each.part.by_query for each in Waterfall().found(report)} if report else {}
        self.unlost = tuple(name for name in self.systems if not found.get(name))
        self._losses: Sequence[Mapping[str, tuple[float, ...]]] = [found.get(name, {}) for name in self.systems]

    def line(self, view: QuestionView, sheet: QuestionSheet, relevant: int) -> QuestionTableRow:
        """Return the table row of a query."""
        losses = [each.get(view.qid) for each in self._losses]
        scores = [each.get(view.qid) for each in self._values]
        grades = [passage.grade for passage in view.passages if passage.grade is not None]
        return QuestionTableRow(
            id=view.qid,
            text=view.text,
            language=view.language,
            kind=kind_of(view.metadata),
            pool=len(view.passages),
            good=sum(grade >= relevant for grade in grades) if grades else None,
            doubt=sheet.doubt,
            scores=tuple(None if each is None else compact(each, VALUE_DIGITS) for each in scores),
            losses=tuple(None if each is None else compact(sum(each), VALUE_DIGITS) for each in losses),
        )


def _first_pair(report: EvalReport | None) -> tuple[str, ...]:
    """Return the baseline and the best other system; the first two systems if nothing was compared."""
    best = deciding_comparisons(report) if report else []
    return (best[0].baseline, best[0].system) if best else tuple(report.per_query if report else ())[:2]


def _most_different(lines: Sequence[QuestionTableRow]) -> tuple[tuple[PickedQuestion, ...], int]:
    """Return up to ten queries with the largest differences between systems, and the number of queries with the largest
    difference; none with fewer than two systems.
    """
    known = [([score for score in line.scores if score is not None], line) for line in lines]
    spans = [(max(scores) - min(scores), line) for scores, line in known if len(scores) > 1]
    chosen = sorted((each for each in spans if each[0] > 0), key=lambda each: (-each[0], each[1].id))
    found = [PickedQuestion(id=line.id, text=line.text, value=f"{span:.3f}") for span, line in chosen]
    return tuple(found[:TEN]), sum(each.value == found[0].value for each in found)


def _least_certain(lines: Sequence[QuestionTableRow]) -> tuple[PickedQuestion, ...]:
    """Return up to ten queries whose order in the golden set is least certain."""
    chosen = sorted(((line.doubt, line) for line in lines if line.doubt), key=lambda each: (-each[0], each[1].id))[:TEN]
    return tuple(PickedQuestion(id=line.id, text=line.text, value=f"{doubt:.1f}") for doubt, line in chosen)
