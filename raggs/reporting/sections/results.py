"""Why retrieval fails, as diagnoses found it: their verdicts first, then the tables and plots of each.

Where the points go: losses from a perfect score down, what wins them back, and the losses of each question.

Sweeps over the set: the choice, the front, what each axis buys and what the data cannot tell.

The systems: measures with intervals, figures, who wins on which question, and what each analysis found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from raggs.base.document import Cell, Legend, ReportDocument, Table
from raggs.base.types import Number
from raggs.diagnosis.models import DiagnosisReport
from raggs.evaluation.analyses import AnalysisFinding
from raggs.evaluation.analyses.losses import Waterfall, WaterfallPart
from raggs.evaluation.layout import lay_out
from raggs.evaluation.messages import KNOBS, LOSSES
from raggs.evaluation.models import EvalReport, ReportPart
from raggs.evaluation.svg import inlined
from raggs.reporting.base import ReportFacts, ReportSection, deciding_comparisons
from raggs.reporting.figures import BarSegment, SvgFigure, figures, stacked
from raggs.sweeps.models import SweepReport

State = Literal["good", "bad", "none"]
STATE_WORDS: dict[State, str] = {"good": "holds", "bad": "does not hold", "none": "measured"}


class DiagnosisPart(ReportPart):
    """One diagnosis, as its page has it. `state`: of its verdict, `word`: the same for people."""

    kind: str
    verdict: str
    state: State
    word: str
    document: ReportDocument
    figures: tuple[SvgFigure, ...]


class DiagnosesPart(ReportPart):
    """All of them, and why some files are left out."""

    diagnoses: tuple[DiagnosisPart, ...]
    said: tuple[str, ...]


class DiagnosesSection(ReportSection):
    """What do small controlled probes say of the embedder, the reranker, the index and the set?"""

    NAME = "diagnoses"
    TITLE = "Diagnoses"

    def data(self, facts: ReportFacts) -> DiagnosesPart | None:
        """None where nothing was diagnosed. One whose tables show passages is left out where these may not be."""
        if not facts.diagnoses and not facts.undiagnosed:
            return None
        from raggs.diagnosis.base import shows_passages  # late: most reports are of no diagnosis

        shown = [each for each in facts.diagnoses if facts.texts or not shows_passages(each)]
        hidden = [each.kind for each in facts.diagnoses if each not in shown]
        said = [f"{kind}: left out, since it shows passages" for kind in hidden]
        return DiagnosesPart(diagnoses=tuple(map(_part, shown)), said=(*facts.undiagnosed, *said))


def _part(report: DiagnosisReport) -> DiagnosisPart:
    from raggs.diagnosis.base import found_in, lay_out, plots

    found = found_in(report)
    state: State = "none" if found.passed is None else "good" if found.passed else "bad"
    drawn = (SvgFigure(words=_plot_caption(report.kind, name), svg=inlined(svg)) for name, svg in plots(report).items())
    return DiagnosisPart(
        kind=report.kind,
        verdict=found.verdict,
        state=state,
        word=STATE_WORDS[state],
        document=lay_out(report),
        figures=tuple(drawn),
    )


def _plot_caption(kind: str, file: str) -> str:
    """What a plot shows, by its file."""
    return file.removesuffix(".svg").removeprefix(f"{kind}-").replace("-", " ")


class SystemBar(ReportPart):
    """A system."""

    system: str
    said: str
    knob: str = Field(description="what could win back the largest loss; empty where none is worth it")
    actual: Number
    perfect: Number
    pieces: tuple[BarSegment, ...]


class QueryLosses(ReportPart):
    """A question's losses, by system in the order of the bars; null where the measure is not defined."""

    qid: str
    text: str
    losses: tuple[tuple[float, ...] | None, ...]


class LossesPart(ReportPart):
    """All of the section."""

    measure: str
    title: str
    names: tuple[str, ...] = Field(LOSSES, description="of the losses, in the order in which a list loses them")
    knobs: tuple[str, ...] = KNOBS
    systems: tuple[str, ...]
    bars: tuple[SystemBar, ...]
    queries: tuple[QueryLosses, ...]

    @property
    def key(self) -> tuple[Legend, ...]:
        """Each loss with what wins it back."""
        return tuple(Legend(name, knob) for name, knob in zip(self.names, self.knobs, strict=True))


class LossesSection(ReportSection):
    """What does each system lose, to what, and which knob wins it back?"""

    NAME = "losses"
    TITLE = "Losses"
    SCRIPTED = True

    def data(self, facts: ReportFacts) -> LossesPart | None:
        """None where no measure's losses can be told."""
        analysis = Waterfall()
        found = [each for each in analysis.found(facts.report) if each.part.actual is not None] if facts.report else []
        if not found:
            return None
        said = analysis.sentences(found)
        return LossesPart(
            measure=found[0].part.measure,
            title=analysis.title(found),
            systems=tuple(each.system for each in found),
            bars=tuple(_bar(each, sentence) for each, sentence in zip(found, said, strict=True)),
            queries=_queries(facts, [each.part for each in found]),
        )


def _bar(found: AnalysisFinding[WaterfallPart], said: str) -> SystemBar:
    part = found.part
    values = [
        ("kept", part.actual or 0.0),
        *reversed([*zip(LOSSES, (loss or 0.0 for loss in part.losses), strict=True)]),
    ]
    pieces = stacked([(kind, value, f"{value:.4f}") for kind, value in values], part.perfect or 1.0)
    return SystemBar(
        system=found.system, said=said, knob=part.knob, actual=part.actual, perfect=part.perfect, pieces=pieces
    )


def _queries(facts: ReportFacts, parts: Sequence[WaterfallPart]) -> tuple[QueryLosses, ...]:
    texts = {query.qid: query.text for query in facts.golden.queries()}
    qids = sorted({qid for part in parts for qid in part.by_query})
    return tuple(
        QueryLosses(qid=qid, text=texts.get(qid, ""), losses=tuple(part.by_query.get(qid) for part in parts))
        for qid in qids
    )


class SweepPart(ReportPart):
    """One sweep, as its sweep.md has it."""

    document: ReportDocument
    figures: tuple[SvgFigure, ...]


class SweepsPart(ReportPart):
    """All sweeps."""

    sweeps: tuple[SweepPart, ...]


class SweepsSection(ReportSection):
    """Which stack do the sweeps choose, and what would change the choice?"""

    NAME = "sweeps"
    TITLE = "Sweeps"

    def data(self, facts: ReportFacts) -> SweepsPart | None:
        """None where no sweep was named."""
        return SweepsPart(sweeps=tuple(map(_sweep, facts.sweeps))) if facts.sweeps else None


def _sweep(report: SweepReport) -> SweepPart:
    from raggs.sweeps.layout import lay_out  # late: most reports are of no sweep
    from raggs.sweeps.plots import plots

    drawn = tuple(SvgFigure(words=words, svg=inlined(svg)) for words, svg in plots(report).values())
    return SweepPart(document=lay_out(report, full=True), figures=drawn)


DIGITS = 5  # of the value of a query


class SystemsPart(ReportPart):
    """All of the section; what the script draws is the values by query."""

    document: ReportDocument = Field(exclude=True)
    figures: tuple[SvgFigure, ...] = Field(exclude=True)
    measures: tuple[str, ...]
    lower: tuple[str, ...] = Field(description="measures of which less is better")
    systems: tuple[str, ...]
    baseline: str | None
    shown: int = Field(description="the system that is shown first")
    queries: tuple[str, ...] = Field(description="ids")
    texts: tuple[str, ...] = Field(description="of the queries; empty where they are not known")
    values: tuple[tuple[tuple[Number, ...], ...], ...] = Field(description="by measure, system and query")


class SystemsSection(ReportSection):
    """How good is each system, is a difference real, and on which questions?"""

    NAME = "systems"
    TITLE = "Systems"
    SCRIPTED = True

    def data(self, facts: ReportFacts) -> SystemsPart | None:
        """None where nothing was scored."""
        report = facts.report
        if report is None:
            return None
        texts = {query.qid: query.text for query in facts.golden.queries()}
        qids = sorted({qid for found in report.per_query.values() for values in found.values() for qid in values})
        systems, best = list(report.per_query), deciding_comparisons(report)
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


def _values(report: EvalReport, system: str, measure: str, qids: list[str]) -> tuple[Number, ...]:
    found = report.per_query[system].get(measure, {})
    return tuple(None if (value := found.get(qid)) is None else round(value, DIGITS) for qid in qids)


def _as_shown(document: ReportDocument) -> ReportDocument:
    """Without the losses, which have a section of their own, and without bounds that enclose nothing."""
    kept = tuple(each for each in document.sections if not each.title.startswith(Waterfall.TITLE))
    scores, table = document.scores, document.scores.table
    if table is not None:
        rows = tuple(tuple(map(_without_empty_ranges, row)) for row in table.rows)
        bounded = any(each.brackets == "{}" for row in rows for cell in row for each in cell.ranges)
        legend = tuple(each for each in scores.legend if bounded or each.sign != "{ }")
        scores = replace(scores, table=Table(table.head, rows), legend=legend)
    return replace(document, scores=scores, sections=kept)


def _without_empty_ranges(cell: Cell) -> Cell:
    return replace(cell, ranges=tuple(each for each in cell.ranges if each.brackets == "[]" or each.low < each.high))
