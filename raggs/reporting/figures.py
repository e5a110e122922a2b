"""SVG figures of an evaluation: means and differences with intervals, scores over cutoffs, recall; and stacked bars.

Figures are drawn only from the report; a figure without data is omitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from raggs.base.types import Number
from raggs.evaluation.analyses.robustness import DepthAnalysis
from raggs.evaluation.messages import interval_words
from raggs.evaluation.models import EvalReport, ReportPart
from raggs.evaluation.svg import SHARE, ChartAxis, Curve, ForestRow, chart, forest, inlined


class SvgFigure(ReportPart):
    """A drawing and its caption."""

    words: str
    svg: str


def figures(report: EvalReport) -> Iterator[SvgFigure]:
    """Yield the figures of the section on systems, the one of the primary metric first. `differences` yields another
    one, for the section on the decision.
    """
    measure = report.measures[0]
    yield from _means(report, measure)
    yield from _over_cutoffs(report)
    yield from _recall(report)


def _means(report: EvalReport, measure: str) -> Iterator[SvgFigure]:
    scores = sorted(
        ((each.name, each.scores[measure]) for each in report.systems), key=lambda each: _order(each[1].mean, report)
    )
    rows = [ForestRow(name, part.mean, part.low, part.high) for name, part in scores if part.mean is not None]
    if rows:
        words = f"How good is each system? Mean {measure}"
        told = f"mean {measure}, {interval_words(report)}"
        yield SvgFigure(words=words, svg=inlined(forest(words, rows, told, changes=False, within=SHARE)))


def _order(value: Number, report: EvalReport) -> float:
    """Return the sort key with which the best value by the primary measure is the first."""
    return 0.0 if value is None else -value if report.higher_is_better[report.measures[0]] else value


def _baseline_and_best(report: EvalReport) -> list[str]:
    """Return the baseline, if there is one, then the other systems, best first: a chart names only the first lines."""
    means = {each.name: each.scores[report.measures[0]].mean for each in report.systems}
    baselines = {part.baseline for part in report.comparisons[:1]}
    return sorted(means, key=lambda name: (name not in baselines, _order(means[name], report)))


def differences(report: EvalReport, measure: str) -> Iterator[SvgFigure]:
    """Yield one figure: the differences of the compared systems from the baseline, with intervals; none if nothing was
    compared.
    """
    rows = [
        ForestRow(part.system, part.difference, part.low, part.high, part.verdict in ("better", "worse"))
        for part in sorted(report.comparisons, key=lambda part: _order(part.difference, report))
        if part.measure == measure and part.difference is not None
    ]
    if rows:
        baseline = report.comparisons[0].baseline
        words = f"Which system differs from {baseline} in {measure}?"
        told = f"mean difference of {measure}, {report.confidence:.0%} interval"
        yield SvgFigure(words=words, svg=inlined(forest(words, rows, told, changes=True, zero=f"equal to {baseline}")))


def _over_cutoffs(report: EvalReport) -> Iterator[SvgFigure]:
    found = dict(DepthAnalysis().found(report))
    lines = [
        Curve((system,), points)
        for system in _baseline_and_best(report)
        if system in found and len(points := _defined_points(found[system].means.items())) > 1
    ]
    if lines:
        measure = next(iter(found.values())).measure
        words = f"How does {measure} grow with the passages in the prompt?"
        ticks = sorted({x for line in lines for x, _ in line.points})
        axes = (ChartAxis("k, passages in the prompt", ticks=ticks, log=True), ChartAxis(measure, SHARE))
        drawn = chart(words, axes, lines=lines)
        yield SvgFigure(words=words, svg=inlined(drawn))


def _recall(report: EvalReport) -> Iterator[SvgFigure]:
    """Yield the curve of the share of queries with at least a given recall."""
    parts = {each.name: each.robustness[-1] for each in report.systems if each.robustness}
    lines = [(name, parts[name]) for name in _baseline_and_best(report) if name in parts]
    if lines:
        measure = lines[0][1].measure
        words = f"How many queries reach each {measure}?"
        named = [
            Curve((name,), _defined_points((float(at), each) for at, each in part.shares.items()))
            for name, part in lines
        ]
        ticks = sorted({x for line in named for x, _ in line.points})
        axes = (ChartAxis(measure, SHARE, ticks), ChartAxis(f"share of queries with at least that {measure}", SHARE))
        drawn = chart(words, axes, lines=named)
        yield SvgFigure(words=words, svg=inlined(drawn))


def _defined_points(points: Iterable[tuple[float, Number]]) -> tuple[tuple[float, float], ...]:
    return tuple((x, y) for x, y in points if y is not None)


BAR_WIDTH = 1000.0  # width of a full bar, in its own units


class BarSegment(ReportPart):
    """A segment of a bar; `start` and `width` in units of 1/1000 of the bar, `text` is the formatted value."""

    kind: str
    text: str
    start: float
    width: float


def stacked(values: Sequence[tuple[str, float, str]], whole: float) -> tuple[BarSegment, ...]:
    """Return adjacent segments.

    Args:
        values: kind, value and text of each segment.
        whole: value of a full bar; above 0.
    """
    pieces, start = [], 0.0
    for kind, value, text in values:
        width = BAR_WIDTH * value / whole
        pieces.append(BarSegment(kind=kind, text=text, start=round(start, 1), width=round(width, 1)))
        start += width
    return tuple(pieces)
