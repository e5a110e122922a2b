"""The sections on diagnoses, losses, sweeps and systems.

Diagnoses: verdicts first, then the tables and plots of each.

Losses: how far each system is from a perfect score, by cause, and how to reduce each loss. A table has the losses of
each query.

Sweeps: the choice, the Pareto front, main effects, and inconclusive comparisons.

Systems: metrics with intervals, figures, wins per query, and the findings of each analysis.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from raggs.base.document import UNDEFINED, Cell, ReportDocument, ScoreRange, Section, Table, formatted, round_document
from raggs.base.types import Number
from raggs.diagnosis.models import DiagnosisReport, KeyFigure
from raggs.evaluation.analyses import AnalysisFinding
from raggs.evaluation.analyses.losses import Waterfall, WaterfallPart
from raggs.evaluation.layout import lay_out
from raggs.evaluation.messages import KNOBS, LOSSES, verdict_word
from raggs.evaluation.models import EvalReport, ReportPart
from raggs.evaluation.svg import inlined
from raggs.reporting.base import DIGITS, ReportedSweep, ReportFacts, ReportSection, deciding_comparisons, plain_meaning
from raggs.reporting.figures import BarSegment, SvgFigure, figures, stacked
from raggs.reporting.page import compact

State = Literal["good", "bad", "doubt", "none"]
UNCHANGED = "Unchanged"  # first word of the effect of a finding that changes no comparison
STATES: dict[str, State] = {"fail": "bad", "inconclusive": "doubt", "measured": "none", "pass": "good"}  # shown first


MEANING_OF_POINTS = "1 point is 0.01 of a score or share, which is between 0 and 1."


class DiagnosisPart(ReportPart):
    """One diagnosis: a card, and its page.

    Attributes:
        title: the question that it answers.
        word: pass, fail, inconclusive or measured.
        verdict: the finding, without the action.
        decision: whether the finding can change which system is better; empty if unknown.
        number: the number that the verdict is based on.
        action: recommended first step; empty if nothing is recommended.
        command: command of the action; empty if there is none.
        document: complete page, folded.
    """

    kind: str
    title: str
    word: str
    verdict: str
    decision: str
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
        """Whether a diagnosis can change the decision, and the number of diagnoses by outcome."""
        changing = [each.kind for each in self.diagnoses if each.decision and not each.decision.startswith(UNCHANGED)]
        effect = (
            f"{_joined_names(changing)} can change the decision" if changing else "No diagnosis changes the decision"
        )
        counts = Counter(each.word for each in self.diagnoses)
        failed = [each.kind for each in self.diagnoses if each.state == "bad"]
        named = {"fail": f" ({_joined_names(failed)})"} if failed else {}
        listed = ", ".join(f"{counts[word]} {word}{named.get(word, '')}" for word in STATES if counts[word])
        return f"{effect}. {len(self.diagnoses)} {'diagnosis' if len(self.diagnoses) == 1 else 'diagnoses'}: {listed}."

    @property
    def meanings(self) -> str:
        """Meaning of points and of the outcome "measured", if a card shows them."""
        points = any(each.number is not None and each.number.value.endswith(" points") for each in self.diagnoses)
        measured = any(each.word == "measured" for each in self.diagnoses)
        said = ("Measured: there is no limit to pass or fail." * measured, MEANING_OF_POINTS * points)
        return " ".join(filter(None, said))


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
        place = "" if facts.run is None else facts.place
        parts = sorted((_part(each, place) for each in shown), key=lambda part: [*STATES].index(part.word))
        return DiagnosesPart(diagnoses=tuple(parts), said=(*facts.undiagnosed, *said))


def _part(report: DiagnosisReport, place: str) -> DiagnosisPart:
    from raggs.diagnosis.base import capital, found_in, kind_of, lay_out

    found, kind = found_in(report), kind_of(report.kind)
    word, action = kind.outcome(found), kind.action(found)
    drawn = (SvgFigure(words=name.replace("-", " "), svg=inlined(svg)) for name, svg in kind.plots(found).items())
    return DiagnosisPart(
        kind=report.kind,
        title=report.title,
        word="inconclusive" if word == "measured" and not kind.is_conclusive(found) else word,
        verdict=found.verdict if action is None else found.verdict.removesuffix(action.sentence).rstrip(),
        decision=kind.decision_effect(found),
        number=kind.key_figure(found),
        action="" if action is None else f"{capital(action.text)}{' (in the details)' * action.in_details}.",
        command="" if action is None else action.command_for(place),
        document=round_document(lay_out(report), DIGITS),
        figures=tuple(drawn),
    )


SCORE_PIECE = "score"
LOSS_NAMES = dict(
    zip(LOSSES, ("not found by any system", "not among the candidates", "ranked too low", "unjudged"), strict=True)
)
MIN_SHOWN = 0.5 * 10**-DIGITS  # a smaller loss is zero on the page
MAX_NAMED_SYSTEMS = 3  # in a sentence


class SystemBar(ReportPart):
    """The bar of a system: its score, then the losses that are not zero."""

    system: str
    said: str
    actual: Number
    perfect: Number
    pieces: tuple[BarSegment, ...]


class LossAdvice(ReportPart):
    """A loss and how to reduce it."""

    name: str
    text: str


class LossesPart(ReportPart):
    """Data of the section; values of queries are in units of 1/1000."""

    headline: str = Field(exclude=True)
    measure: str
    meaning: str = Field(exclude=True, description="the measure in plain words; empty if unknown")
    names: tuple[str, ...] = Field(description="losses that are not zero, in the order in which a list incurs them")
    advice: tuple[LossAdvice, ...] = Field(exclude=True)
    candidates: int = Field(exclude=True)
    systems: tuple[str, ...] = Field(description="best score first")
    bars: tuple[SystemBar, ...] = Field(exclude=True)
    queries: tuple[str, ...] = Field(description="query ids")
    losses: tuple[tuple[tuple[int, ...] | None, ...], ...] = Field(
        description="losses by system, query and name; null if the metric is undefined"
    )


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
        found.sort(key=lambda each: -(each.part.actual or 0.0))
        parts = [each.part for each in found]
        shown = [place for place in range(len(LOSSES)) if any((part.losses[place] or 0) >= MIN_SHOWN for part in parts)]
        by_size = sorted(shown, key=lambda place: -sum(part.losses[place] or 0 for part in parts))
        qids = sorted({qid for part in parts for qid in part.by_query})
        return LossesPart(
            headline=_losses_headline(found),
            measure=parts[0].measure,
            meaning=plain_meaning(parts[0].measure),
            names=tuple(LOSS_NAMES[LOSSES[place]] for place in shown),
            advice=tuple(LossAdvice(name=LOSS_NAMES[LOSSES[place]], text=KNOBS[place]) for place in by_size),
            candidates=parts[0].pool,
            systems=tuple(each.system for each in found),
            bars=tuple(map(_bar, found)),
            queries=tuple(qids),
            losses=tuple(tuple(_thousandths(part.by_query.get(qid), shown) for qid in qids) for part in parts),
        )


def _thousandths(losses: Sequence[float] | None, shown: Sequence[int]) -> tuple[int, ...] | None:
    return None if losses is None else tuple(round(losses[place] * 10**DIGITS) for place in shown)


def _losses_headline(found: Sequence[AnalysisFinding[WaterfallPart]]) -> str:
    """Return which loss is the largest: that of the best system first, then those of the others, by cause.

    Args:
        found: the losses of the systems, best score first.
    """
    best, *others = found
    lost = _total_loss(best.part)
    if lost < MIN_SHOWN:
        return f"{best.system} loses nothing: its lists are perfect by {best.part.measure}."
    cause = best.part.largest
    largest = best.part.losses[cause] or 0.0
    share = (
        f"all of its {lost:.{DIGITS}f}"
        if lost - largest < MIN_SHOWN
        else f"{largest:.{DIGITS}f} of its {lost:.{DIGITS}f}"
    )
    first = (
        f"Largest loss of {best.system}, the system with the best score: relevant passages are "
        f"{LOSS_NAMES[LOSSES[cause]]} ({share})."
    )
    alike: dict[int, list[str]] = {cause: []}
    for each in others:
        if _total_loss(each.part) >= MIN_SHOWN:
            alike.setdefault(each.part.largest, []).append(each.system)
    named = {
        largest: "every other system" if len(names) == len(others) > 1 else _joined_names(names)
        for largest, names in alike.items()
        if names
    }
    more = [f"This is also the largest loss of {named.pop(cause)}."] if cause in named else []
    rest = [f"Largest loss of {whose}: {LOSS_NAMES[LOSSES[largest]]}." for largest, whose in named.items()]
    return " ".join([first, *more, *rest])


def _total_loss(part: WaterfallPart) -> float:
    return sum(loss or 0.0 for loss in part.losses)


def _joined_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    if len(names) > MAX_NAMED_SYSTEMS + 1:
        return f"{', '.join(names[:MAX_NAMED_SYSTEMS])} and {len(names) - MAX_NAMED_SYSTEMS} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _bar(found: AnalysisFinding[WaterfallPart]) -> SystemBar:
    part = found.part
    losses = [
        (LOSS_NAMES[name], loss)
        for name, loss in reversed([*zip(LOSSES, part.losses, strict=True)])
        if loss is not None and loss >= MIN_SHOWN
    ]
    values = [(SCORE_PIECE, part.actual or 0.0), *losses]
    said = ", ".join(f"{name} {value:.{DIGITS}f}" for name, value in losses) or "nothing"
    return SystemBar(
        system=found.system,
        said=f"{found.system}: {part.measure} {part.actual or 0:.{DIGITS}f}; lost: {said}",
        actual=part.actual,
        perfect=part.perfect,
        pieces=stacked([(kind, value, f"{value:.{DIGITS}f}") for kind, value in values], part.perfect or 1.0),
    )


class SweepPart(ReportPart):
    """One sweep, in the order of its sweep.md.

    Attributes:
        document: the recommendation and the front.
        about: sections on the choice: what changes it, and the limits of the data.
        rest: all figures, folded.
        command: command that has the unjudged passages judged; empty if it is not the next step.
    """

    document: ReportDocument
    about: tuple[Section, ...]
    rest: tuple[Section, ...]
    figures: tuple[SvgFigure, ...]
    command: str = ""


class SweepsPart(ReportPart):
    """All sweeps."""

    sweeps: tuple[SweepPart, ...]


class SweepsSection(ReportSection):
    """Which configuration do the sweeps recommend, and what would change the choice?"""

    NAME = "sweeps"
    TITLE = "Sweeps"

    def data(self, facts: ReportFacts) -> SweepsPart | None:
        """Return the data of the section; None without sweeps."""
        if not facts.sweeps:
            return None
        return SweepsPart(sweeps=tuple(map(_sweep, facts.sweeps)))


def _sweep(found: ReportedSweep) -> SweepPart:
    from raggs.sweeps.layout import SYSTEMS, lay_out  # imported lazily: most reports contain no sweep
    from raggs.sweeps.messages import judging_command
    from raggs.sweeps.plots import plots
    from raggs.sweeps.summary import needs_judging

    drawn = tuple(SvgFigure(words=words, svg=inlined(svg)) for words, svg in plots(found.report).values())
    command = judging_command(found.file) if found.config and needs_judging(found.report) else ""
    document = round_document(lay_out(found.report, full=True, config=None if command else "FILE"), DIGITS)
    first = [section.title for section in document.sections].index(SYSTEMS)
    rest = document.sections[first:]
    return SweepPart(document=document, about=document.sections[:first], rest=rest, figures=drawn, command=command)


LOWER = " ↓ lower is better"
SCORE = f"z.{DIGITS}f"
VALUE_DIGITS = 4  # decimals of a query's value: one more than shown, so that small differences have a sign
FOUR_DECIMALS = re.compile(r"(?<![\d.])\d+\.\d{4}(?![\d.])")


class SystemsPart(ReportPart):
    """Data of the section; the script renders the values per query."""

    headline: str = Field(exclude=True)
    document: ReportDocument = Field(exclude=True)
    figures: tuple[SvgFigure, ...] = Field(exclude=True)
    measures: tuple[str, ...]
    lower: tuple[str, ...] = Field(description="metrics for which lower is better")
    systems: tuple[str, ...]
    baseline: str | None
    shown: int = Field(description="index of the system that is shown first")
    queries: tuple[str, ...] = Field(description="query ids")
    values: tuple[tuple[tuple[int | Number, ...], ...], ...] = Field(description="values by metric, system and query")


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
        qids = sorted({qid for found in report.per_query.values() for values in found.values() for qid in values})
        systems, best = list(report.per_query), deciding_comparisons(report)
        return SystemsPart(
            headline=_systems_headline(report),
            document=_as_shown(_with_directions(lay_out(report), report)),
            figures=tuple(figures(report)),
            measures=report.measures,
            lower=tuple(name for name in report.measures if not report.higher_is_better[name]),
            systems=tuple(systems),
            baseline=best[0].baseline if best else None,
            shown=systems.index(best[0].system) if best else 0,
            queries=tuple(qids),
            values=tuple(tuple(_values(report, each, name, qids) for each in systems) for name in report.measures),
        )


def _values(report: EvalReport, system: str, measure: str, qids: list[str]) -> tuple[Number, ...]:
    found = report.per_query[system].get(measure, {})
    return tuple(None if (value := found.get(qid)) is None else compact(value, VALUE_DIGITS) for qid in qids)


def _systems_headline(report: EvalReport) -> str:
    """Return the score of the baseline and the verdicts on the other systems, by the primary metric; if nothing was
    compared, the scores.
    """
    measure, compared = report.measures[0], deciding_comparisons(report)
    scores = {system.name: system.scores[measure].mean for system in report.systems}
    if not compared:
        said = _joined_names([f"{name} {formatted(mean, SCORE)}" for name, mean in scores.items()])
        return f"{measure}: {said}."
    baseline = compared[0].baseline
    verdicts: dict[str, list[str]] = {}
    for part in compared:
        verdicts.setdefault(verdict_word(part.verdict), []).append(f"{part.system} ({part.difference or 0:+{SCORE}})")
    said = "; ".join(f"{verdict}: {_joined_names(names)}" for verdict, names in verdicts.items())
    return f"{baseline} scores {formatted(scores.get(baseline), SCORE)} on {measure}. Compared with {baseline}, {said}."


def _with_directions(document: ReportDocument, report: EvalReport) -> ReportDocument:
    """Return the document with a mark at the measures whose lower value is better."""
    table = document.scores.table
    if table is None:
        return document
    marks = ("" if report.higher_is_better.get(row[0].text, True) else LOWER for row in table.rows)
    rows = tuple((replace(row[0], mark=mark), *row[1:]) for row, mark in zip(table.rows, marks, strict=True))
    return replace(document, scores=replace(document.scores, table=replace(table, rows=rows)))


def _as_shown(document: ReportDocument) -> ReportDocument:
    """Return the document with scores rounded to three decimals, and without empty ranges. The losses are omitted,
    because they have a separate section.
    """
    kept = tuple(_rounded(each) for each in document.sections if not each.title.startswith(Waterfall.TITLE))
    scores, table = _rounded(document.scores), document.scores.table
    if table is not None:
        bounded = any(each.brackets == "{}" for row in table.rows for cell in row for each in _full_ranges(cell))
        scores = replace(scores, legend=tuple(each for each in scores.legend if bounded or each.sign != "{ }"))
    return replace(document, scores=scores, sections=kept, notes=tuple(map(_three_decimals, document.notes)))


def _rounded(section: Section) -> Section:
    table = section.table and Table(section.table.head, tuple(tuple(map(_cell, row)) for row in section.table.rows))
    return replace(section, sentences=tuple(map(_three_decimals, section.sentences)), table=table)


def _cell(cell: Cell) -> Cell:
    if cell.form not in ("score", "signed"):
        return cell if cell.form != "text" else replace(cell, value=_three_decimals(cell.text))
    sign = "+" if cell.form == "signed" else ""
    value = UNDEFINED if cell.value is None else f"{cell.value:{sign}z.{DIGITS}f}"
    return Cell(value, mark=cell.mark, ranges=_full_ranges(cell), best=cell.best)


def _full_ranges(cell: Cell) -> tuple[ScoreRange, ...]:
    return tuple(each for each in cell.ranges if each.brackets == "[]" or each.low < each.high)


def _three_decimals(text: str) -> str:
    """Return a sentence with its scores rounded as on the page, unless this makes two of them equal."""
    found = set(FOUR_DECIMALS.findall(text))
    if len({f"{float(each):.{DIGITS}f}" for each in found}) < len(found):
        return text
    # whether a last 5 is rounded up depends on digits that the text does not have
    return FOUR_DECIMALS.sub(lambda found: found[0] if found[0][-1] == "5" else f"{float(found[0]):.{DIGITS}f}", text)
