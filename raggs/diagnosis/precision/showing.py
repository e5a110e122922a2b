"""What was found in sentences and tables; points are hundredths of a score.

Precision over the cutoff: each measure as it stands and by expectation, and how wide it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from raggs.base.text import plural
from raggs.base.types import Number
from raggs.diagnosis.layout import said
from raggs.diagnosis.precision.models import CurvePart, PrecisionFound, ReversalPart, SystemPart, TiedPart
from raggs.evaluation.document import Cell, Legend, Row, Section, Table, bounded, cells, formatted
from raggs.evaluation.svg import Curve, curves

FAVOURS = {
    1: "the order of the file favours relevant passages, so labels leak through it",
    -1: "the order of the file disfavours relevant passages",
}
TIED = (
    "system", "precision", "measure", "as it stands", "expected", "least to most", "range, points", "at k",
    "bias, points", "questions",
)  # fmt: skip
LEGEND = (Legend("[ ]", "95% interval over questions, in points, which are hundredths"),)
PUBLISHED = (
    ("Qwen3-Reranker-0.6B", "softmax", "ndcg@10", "25.59", "1.13", "6.66", "0.24"),
    ("Qwen3-Reranker-0.6B", "softmax", "mrr@10", "38.03", "1.21", "9.08", "0.21"),
    ("bge-reranker-v2-m3", "sigmoid", "ndcg@10", "3.90", "0.16", "1.05", "0.06"),
    ("bge-reranker-v2-m3", "sigmoid", "mrr@10", "6.72", "0.19", "1.51", "0.10"),
    ("gte-multilingual-reranker-base", "sigmoid", "ndcg@10", "0.97", "0.14", "0.26", "0.05"),
    ("Qwen3-Embedding-0.6B", "product", "ndcg@10", "1.90", "0.00", "0.54", "0.00"),
    ("multilingual-e5-large", "product", "ndcg@10", "4.62", "0.00", "0.89", "0.00"),
)
ABOUT_PUBLISHED = (
    "Published for MIRACLReranking (717 questions of 100 candidates), not repeated here: in points, bfloat16 without "
    "and with high-precision scoring. Without it Qwen3-Reranker stands above gte (75.04 and 74.48), by expectation "
    "below it (68.38 and 74.22)."
)


def verdict(systems: Sequence[SystemPart], reversals: Sequence[ReversalPart], favours: int) -> str:
    """Of the system that hangs most on the order of ties; then what spares it that."""
    rounded = [part for part in systems if part.dtype != "f32" and not part.hps]
    worst = max(rounded, key=lambda part: (_widest(part), part.dtype == "bf16"), default=None)
    more = [FAVOURS[favours]] if favours else []
    if worst is None or not _widest(worst):
        return said("; ".join(["No score hangs on the order of ties, at any precision", *more]))
    widest = max(worst.at, key=lambda tied: tied.range or 0.0)
    found = f"In {worst.dtype}, scores of {worst.name} hang on the order of ties, {widest.measure} by "
    found += f"{_told(widest.range)} points"
    if pairs := {frozenset((each.first, each.second)) for each in reversals}:
        found += f", and {plural(len(pairs), 'pair')} of systems change{'s' * (len(pairs) == 1)} places by it"
    spared = next((part for part in systems if _spares(part, worst)), None)
    then = "First report the expectation and the range of ties: raggs eval prints (E, range)"
    if spared is not None:
        then = f"First take the last step in float32, which leaves {_told(_widest(spared))} at most"
    return said("; ".join([found, *more]), then)


def sections(found: PrecisionFound) -> tuple[Section, ...]:
    """What stands at the cutoff first."""
    return (
        Section(f"By precision, at {found.cutoff}", _sizes(found), Table(TIED, tuple(_tied(found))), LEGEND),
        _turned(found),
        _leaking(found),
        Section(
            "Published, not repeated here",
            (ABOUT_PUBLISHED,),
            Table(
                ("model", "form", "measure", "range", "range, HPS", "bias", "bias, HPS"),
                tuple(tuple(map(Cell, row)) for row in PUBLISHED),
            ),
        ),
    )


def _sizes(found: PrecisionFound) -> tuple[str, ...]:
    names = dict.fromkeys(part.name for part in found.systems)
    return tuple(
        f"{name}: largest group of equal scores: "
        + ", ".join(f"{part.largest:,} ({part.precision})" for part in found.systems if part.name == name)
        for name in names
    )


def _tied(found: PrecisionFound) -> list[Row]:
    return [_row(part, tied) for part in found.systems for tied in part.at]


def _row(part: SystemPart, tied: TiedPart) -> Row:
    return (
        *cells(part.name, part.precision, tied.measure, tied.oblivious, tied.expected),
        Cell(f"{formatted(tied.least, 'z.4f')} to {formatted(tied.most, 'z.4f')}"),
        _points(tied.range, tied.range_low, tied.range_high),
        _points(tied.across),
        _points(tied.bias, tied.bias_low, tied.bias_high),
        Cell(tied.moved),
    )


def _turned(found: PrecisionFound) -> Section:
    title = "Systems that change places"
    if not found.reversals:
        alone = len({part.name for part in found.systems}) < 2
        return Section(title, ("one system alone has no places to change" if alone else "none does",))
    rows = tuple(
        (
            *cells(each.first, each.second, each.precision, each.measure),
            _points(each.oblivious),
            _points(each.expected, each.low, each.high),
            _points(each.hps),
        )
        for each in found.reversals
    )
    head = ("better as it stands", "better by expectation", "precision", "measure", "as it stands", "expected", "HPS")
    return Section(title, (), Table(head, rows))


def _leaking(found: PrecisionFound) -> Section:
    title = "Whom the order of the file favours"
    if not found.leaks:
        return Section(title, ("nobody: no tie moves a measure, or files are in the order of their scores",))
    said = FAVOURS.get(found.favours, "nobody, as far as these questions tell")
    rows = tuple(
        (
            *cells(leak.system, leak.precision, leak.measure),
            _points(leak.bias),
            *map(Cell, (leak.up, leak.down)),
            Cell(leak.p, "score"),
        )
        for leak in found.leaks
    )
    head = ("system", "precision", "measure", "bias, points", "questions up", "questions down", "p (signs, Holm)")
    return Section(title, (said,), Table(head, rows))


def _spares(part: SystemPart, worst: SystemPart) -> bool:
    return part.name == worst.name and part.dtype == worst.dtype and part.hps


def _widest(part: SystemPart) -> float:
    return max((tied.range or 0.0 for tied in part.at), default=0.0)


def _told(value: Number) -> str:
    return _points(value).text


def _points(value: Number, low: Number = None, high: Number = None) -> Cell:
    """A difference in points, with its interval."""
    at, least, most = (None if each is None else 100 * each for each in (value, low, high))
    return bounded(at, least, most, "points")


SHOWN = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300, 500, 700, 1000)
TICKED = (1, 10, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000)
MOST = 8  # lines of a plot
POINTS = "points"
PLAIN = re.compile(r"\W+")  # what no file name needs
Line = tuple[str, Sequence[Number]]


def plots(found: PrecisionFound) -> Mapping[str, str]:
    """A plot a measure of the first system, and one of all ranges; nothing where no measure is defined."""
    parts = [part for part in found.systems if part.name == found.systems[0].name] if found.systems else []
    drawn: dict[str, str] = {}
    for place, full in enumerate(parts[0].curves if parts else ()):
        lines = [line for part in parts[1:] for line in _beside(part, part.curves[place], full)]
        if svg := _draw(f"{full.measure}@k of {parts[0].name} less that in f32, by precision", lines, POINTS):
            drawn[PLAIN.sub("-", full.measure).strip("-")] = svg
    wide = [line for part in parts if part.dtype == "bf16" for line in _ranges(part)]
    if parts and (svg := _draw(f"Range by the order of ties, {parts[0].name}", wide, POINTS)):
        drawn["range"] = svg
    return drawn


def _beside(part: SystemPart, curve: CurvePart, full: CurvePart) -> Iterator[Line]:
    """Differences from full precision, in points."""
    yield f"{part.precision}, expected", _less(curve.expected, full.expected)
    if not part.hps:
        yield f"{part.precision}, as it stands", _less(curve.oblivious, full.expected)
    if part.dtype == "bf16" and not part.hps:
        yield f"{part.precision}, most", _less(curve.most, full.expected)
        yield f"{part.precision}, least", _less(curve.least, full.expected)


def _less(values: Sequence[Number], others: Sequence[Number]) -> list[Number]:
    pairs = zip(values, others, strict=True)
    return [None if value is None or other is None else round(100 * (value - other), 4) for value, other in pairs]


def _ranges(part: SystemPart) -> Iterator[Line]:
    for curve in part.curves:
        yield f"{part.precision}, {curve.measure}", _less(curve.most, curve.least)


def _draw(title: str, lines: Sequence[Line], measure: str) -> str | None:
    """Lines over the cutoff; those that run alike are one."""
    alike: dict[tuple[tuple[float, float], ...], list[str]] = {}
    for name, values in lines:
        points = [(float(k), values[k - 1]) for k in SHOWN if k <= len(values)]
        known = tuple((k, value) for k, value in points if value is not None)
        if known:
            alike.setdefault(known, []).append(name)
    if not alike:
        return None
    deepest = max(points[-1][0] for points in alike)
    ticks = [float(k) for k in TICKED if k <= deepest]
    shown = [Curve(tuple(names), points) for points, names in list(alike.items())[:MOST]]
    return curves(title, shown, ("cutoff k", measure), ticks)
