"""The sections on diagnoses, losses, sweeps and systems.

Diagnoses: verdicts first, then the tables and plots of each.

Losses: points lost from a perfect score down, how to recover them, and the losses of each query.

Sweeps: the choice, the Pareto front, main effects, and inconclusive comparisons.

Systems: metrics with intervals, figures, wins per query, and the findings of each analysis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from raggs.base.document import Cell, Legend, ReportDocument, Table, round_document
from raggs.base.types import Number
from raggs.diagnosis.models import DiagnosisReport, KeyFigure
from raggs.evaluation.analyses import AnalysisFinding
from raggs.evaluation.analyses.losses import Waterfall, WaterfallPart
from raggs.evaluation.layout import lay_out
from raggs.evaluation.messages import KNOBS, LOSSES
from raggs.evaluation.models import EvalReport, ReportPart
from raggs.evaluation.svg import inlined
from raggs.reporting.base import DIGITS as SCORE_DIGITS
from raggs.reporting.base import ReportFacts, ReportSection, deciding_comparisons
from raggs.reporting.figures import BarSegment, SvgFigure, figures, stacked
from raggs.sweeps.models import SweepReport

State = Literal["good", "bad", "doubt", "none"]
STATES: dict[str, State] = {"fail": "bad", "inconclusive": "doubt", "measured": "none", "pass": "good"}  # shown first


class DiagnosisPart(ReportPart):
    """One diagnosis: a card, and its page.

    Attributes:
        title: the question that it answers.
        word: pass, fail, inconclusive or measured.
        verdict: the finding, without the action.
        number: the number that the verdict is based on.
        action: recommended first step; empty if nothing is recommended.
        command: command of the action; empty if there is none.
        document: complete page, folded.
    """

    kind: str
    title: str
    word: str
    verdict: str
    number: KeyFigure | None
    action: str
    command: str
    document: ReportDocument
    figures: tuple[SvgFigure, ...]

    @property
    def state(self) -> State:
        """State of the verdict, as the class of its chip."""
        return STATES[self.word]


class DiagnosesPart(ReportPart):
    """All diagnoses, and why some are omitted."""

    diagnoses: tuple[DiagnosisPart, ...]
    said: tuple[str, ...]

    @property
    def headline(self) -> str:
        """Number of diagnoses by outcome."""
        counts = Counter(each.word for each in self.diagnoses)
        listed = ", ".join(f"{counts[word]} {word}" for word in STATES if counts[word])
        return f"{len(self.diagnoses)} {'diagnosis' if len(self.diagnoses) == 1 else 'diagnoses'}: {listed}."


class DiagnosesSection(ReportSection):
    """What do small controlled probes reveal about the embedder, the reranker, the index and the set?"""

    NAME = "diagnoses"
    TITLE = "Diagnoses"

    def data(self, facts: ReportFacts) -> DiagnosesPart | None:
        """Return the data of the section; None without diagnoses. Diagnoses that show passages are omitted if not
        allowed.
        """
        if not facts.diagnoses and not facts.undiagnosed:
            return None
        from raggs.diagnosis.base import shows_passages  # imported lazily: most reports contain no diagnosis

        shown = [each for each in facts.diagnoses if facts.texts or not shows_passages(each)]
        hidden = [each.kind for each in facts.diagnoses if each not in shown]
        said = [f"{kind}: omitted, because it shows passages" for kind in hidden]
        parts = sorted(map(_part, shown), key=lambda part: [*STATES].index(part.word))
        return DiagnosesPart(diagnoses=tuple(parts), said=(*facts.undiagnosed, *said))


def _part(report: DiagnosisReport) -> DiagnosisPart:
    from raggs.diagnosis.base import action_in, found_in, kind_of, lay_out, plots
    from raggs.stats.resampling import MIN_CLAIM_QUERIES

    found, kind = found_in(report), kind_of(report.kind)
    word = kind.outcome(found)
    few = kind.rests_on(found) < MIN_CLAIM_QUERIES
    if word == "measured" and (few or found.verdict.startswith("Inconclusive")):
        word = "inconclusive"
    verdict, advice = action_in(found.verdict)
    action, colon, command = advice.removesuffix(".").partition(": raggs ")
    drawn = (SvgFigure(words=_plot_caption(report.kind, name), svg=inlined(svg)) for name, svg in plots(report).items())
    return DiagnosisPart(
        kind=report.kind,
        title=report.title,
        word=word,
        verdict=verdict,
        number=kind.key_figure(found),
        action=f"{action}." if action else "",
        command=f"raggs {command}" if colon else "",
        document=round_document(lay_out(report), SCORE_DIGITS),
        figures=tuple(drawn),
    )


def _plot_caption(kind: str, file: str) -> str:
    """Return the caption of a plot, derived from its file name."""
    return file.removesuffix(".svg").removeprefix(f"{kind}-").replace("-", " ")


class SystemBar(ReportPart):
    """The bar of a system."""

    system: str
    said: str
    knob: str = Field(description="setting that could recover the largest loss; empty if none is worthwhile")
    actual: Number
    perfect: Number
    pieces: tuple[BarSegment, ...]


class QueryLosses(ReportPart):
    """Losses of a query, by system in the order of the bars; null if the metric is undefined."""

    qid: str
    text: str
    losses: tuple[tuple[float, ...] | None, ...]


class LossesPart(ReportPart):
    """Data of the section."""

    measure: str
    title: str
    names: tuple[str, ...] = Field(LOSSES, description="names of the losses, in the order in which a list incurs them")
    knobs: tuple[str, ...] = KNOBS
    systems: tuple[str, ...]
    bars: tuple[SystemBar, ...]
    queries: tuple[QueryLosses, ...]

    @property
    def key(self) -> tuple[Legend, ...]:
        """Each loss with the setting that reduces it."""
        return tuple(Legend(name, knob) for name, knob in zip(self.names, self.knobs, strict=True))


class LossesSection(ReportSection):
    """What does each system lose, why, and which setting recovers it?"""

    NAME = "losses"
    TITLE = "Losses"
    SCRIPTED = True

    def data(self, facts: ReportFacts) -> LossesPart | None:
        """Return the data of the section; None if losses are unknown for all metrics."""
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
    """One sweep, as in its sweep.md."""

    document: ReportDocument
    figures: tuple[SvgFigure, ...]


class SweepsPart(ReportPart):
    """All sweeps."""

    sweeps: tuple[SweepPart, ...]


class SweepsSection(ReportSection):
    """Which configuration do the sweeps recommend, and what would change the choice?"""

    NAME = "sweeps"
    TITLE = "Sweeps"

    def data(self, facts: ReportFacts) -> SweepsPart | None:
        """Return the data of the section; None without sweeps."""
        return SweepsPart(sweeps=tuple(map(_sweep, facts.sweeps))) if facts.sweeps else None


def _sweep(report: SweepReport) -> SweepPart:
    from raggs.sweeps.layout import lay_out  # imported lazily: most reports contain no sweep
    from raggs.sweeps.plots import plots

    drawn = tuple(SvgFigure(words=words, svg=inlined(svg)) for words, svg in plots(report).values())
    return SweepPart(document=lay_out(report, full=True), figures=drawn)


DIGITS = 5  # decimals of a query's value


class SystemsPart(ReportPart):
    """Data of the section; the script renders the values per query."""

    document: ReportDocument = Field(exclude=True)
    figures: tuple[SvgFigure, ...] = Field(exclude=True)
    measures: tuple[str, ...]
    lower: tuple[str, ...] = Field(description="metrics for which lower is better")
    systems: tuple[str, ...]
    baseline: str | None
    shown: int = Field(description="index of the system that is shown first")
    queries: tuple[str, ...] = Field(description="query ids")
    texts: tuple[str, ...] = Field(description="query texts; empty if unknown")
    values: tuple[tuple[tuple[Number, ...], ...], ...] = Field(description="values by metric, system and query")


class SystemsSection(ReportSection):
    """How good is each system, which differences are significant, and on which queries?"""

    NAME = "systems"
    TITLE = "Systems"
    SCRIPTED = True

    def data(self, facts: ReportFacts) -> SystemsPart | None:
        """Return the data of the section; None without an evaluation."""
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
    """Return the document without the losses, which have a separate section, and without empty ranges."""
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
