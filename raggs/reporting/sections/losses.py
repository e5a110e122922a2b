"""Where the points go: losses from a perfect score down, what wins them back, and the losses of each question."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from raggs.base.types import Number
from raggs.evaluation.analyses.base import Finding
from raggs.evaluation.analyses.waterfall import Waterfall, WaterfallPart
from raggs.evaluation.document import Legend
from raggs.evaluation.models import Part
from raggs.evaluation.words import KNOBS, LOSSES
from raggs.reporting.base import Facts, ReportSection
from raggs.reporting.figures import Piece, stacked


class Bar(Part):
    """A system."""

    system: str
    said: str
    knob: str = Field(description="what could win back the largest loss; empty where none is worth it")
    actual: Number
    perfect: Number
    pieces: tuple[Piece, ...]


class QueryLosses(Part):
    """A question's losses, by system in the order of the bars; null where the measure is not defined."""

    qid: str
    text: str
    losses: tuple[tuple[float, ...] | None, ...]


class LossesPart(Part):
    """All of the section."""

    measure: str
    title: str
    names: tuple[str, ...] = Field(LOSSES, description="of the losses, in the order in which a list loses them")
    knobs: tuple[str, ...] = KNOBS
    systems: tuple[str, ...]
    bars: tuple[Bar, ...]
    queries: tuple[QueryLosses, ...]

    @property
    def key(self) -> tuple[Legend, ...]:
        """Each loss with what wins it back."""
        return tuple(Legend(name, knob) for name, knob in zip(self.names, self.knobs, strict=True))


class Losses(ReportSection):
    """What does each system lose, to what, and which knob wins it back?"""

    NAME = "losses"
    TITLE = "Losses"
    SCRIPTED = True

    def data(self, facts: Facts) -> LossesPart | None:
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


def _bar(found: Finding[WaterfallPart], said: str) -> Bar:
    part = found.part
    values = [
        ("kept", part.actual or 0.0),
        *reversed([*zip(LOSSES, (loss or 0.0 for loss in part.losses), strict=True)]),
    ]
    pieces = stacked([(kind, value, f"{value:.4f}") for kind, value in values], part.perfect or 1.0)
    return Bar(system=found.system, said=said, knob=part.knob, actual=part.actual, perfect=part.perfect, pieces=pieces)


def _queries(facts: Facts, parts: Sequence[WaterfallPart]) -> tuple[QueryLosses, ...]:
    texts = {query.qid: query.text for query in facts.golden.queries()}
    qids = sorted({qid for part in parts for qid in part.by_query})
    return tuple(
        QueryLosses(qid=qid, text=texts.get(qid, ""), losses=tuple(part.by_query.get(qid) for part in parts))
        for qid in qids
    )
