"""The figures of an evaluation, as SVG for a page: means and differences with intervals, scores over cutoffs, recall.

Each is drawn from the report alone; one without anything to show is left out.

Bars that are stacked of pieces: how much of a whole is what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from raggs.base.types import Number
from raggs.evaluation.analyses.robustness import DepthAnalysis
from raggs.evaluation.messages import interval_words
from raggs.evaluation.models import EvalReport, ReportPart
from raggs.evaluation.svg import Curve, ForestRow, curves, forest, inlined


class SvgFigure(ReportPart):
    """A drawing, and what it shows in words."""

    words: str
    svg: str


def figures(report: EvalReport) -> Iterator[SvgFigure]:
    """All that there is something to show in, what decides first."""
    measure = report.measures[0]
    yield from _means(report, measure)
    yield from _differences(report, measure)
    yield from _over_cutoffs(report)
    yield from _recall(report)


def _means(report: EvalReport, measure: str) -> Iterator[SvgFigure]:
    scores = [(each.name, each.scores[measure]) for each in report.systems]
    rows = [ForestRow(name, part.mean, part.low, part.high) for name, part in scores if part.mean is not None]
    if rows:
        words = f"{measure} of each system"
        yield SvgFigure(words=words, svg=inlined(forest(words, rows, f"mean, {interval_words(report)}", changes=False)))


def _differences(report: EvalReport, measure: str) -> Iterator[SvgFigure]:
    rows = [
        ForestRow(part.system, part.difference, part.low, part.high, part.verdict in ("win", "loss"))
        for part in report.comparisons
        if part.measure == measure and part.difference is not None
    ]
    if rows:
        words = f"{measure} against {report.comparisons[0].baseline}, query by query"
        told = f"mean paired difference, {report.confidence:.0%} interval; grey: it may be chance"
        yield SvgFigure(words=words, svg=inlined(forest(words, rows, told, changes=True)))


def _over_cutoffs(report: EvalReport) -> Iterator[SvgFigure]:
    found = DepthAnalysis().found(report)
    lines = [
        Curve((system,), points) for system, part in found if len(points := _defined_points(part.means.items())) > 1
    ]
    if lines:
        words = f"{found[0].part.measure} over the cutoff"
        ticks = sorted({x for line in lines for x, _ in line.points})
        drawn = curves(words, lines, ("k, passages in the prompt", found[0].part.measure), ticks, coloured=True)
        yield SvgFigure(words=words, svg=inlined(drawn))


def _recall(report: EvalReport) -> Iterator[SvgFigure]:
    """How many queries are served how well: the share of them with at least some recall."""
    lines = [(each.name, each.robustness[-1]) for each in report.systems if each.robustness]
    if lines:
        words = f"share of the queries with at least so much {lines[0][1].measure}"
        named = [
            Curve((name,), _defined_points((float(at), each) for at, each in part.shares.items()))
            for name, part in lines
        ]
        ticks = sorted({x for line in named for x, _ in line.points})
        drawn = curves(words, named, (lines[0][1].measure, "share of the queries"), ticks, coloured=True)
        yield SvgFigure(words=words, svg=inlined(drawn))


def _defined_points(points: Iterable[tuple[float, Number]]) -> tuple[tuple[float, float], ...]:
    return tuple((x, y) for x, y in points if y is not None)


BAR_WIDTH = 1000.0  # of a bar, in its own units


class BarSegment(ReportPart):
    """A piece of a bar; `start` and `width` in units of which a bar has 1000, `text` its value as it is written."""

    kind: str
    text: str
    start: float
    width: float


def stacked(values: Sequence[tuple[str, float, str]], whole: float) -> tuple[BarSegment, ...]:
    """Pieces side by side.

    Args:
        values: kind, value and its text of each.
        whole: what fills a bar; above 0.
    """
    pieces, start = [], 0.0
    for kind, value, text in values:
        width = BAR_WIDTH * value / whole
        pieces.append(BarSegment(kind=kind, text=text, start=round(start, 1), width=round(width, 1)))
        start += width
    return tuple(pieces)
