"""Plots and files of a sweep: SVG files, sweep.json, sweep.csv and sweep.md, and a pandas frame.

Plots are drawn only from the report, so an audit can draw them again. A plot without data is omitted. pandas is
optional.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from raggs.base.document import GLOSSARY, csv_text, frame_of, markdown
from raggs.base.types import Number
from raggs.evaluation.models import ScorePart
from raggs.evaluation.svg import (
    HIGH,
    LEFT,
    LINE,
    MAX_LINE_LETTERS,
    RIGHT,
    TOP,
    AxisScale,
    Box,
    Curve,
    Drawing,
    ForestRow,
    curves,
    forest,
    place_label,
    shortened,
)
from raggs.sweeps.comparing import best_first, fold_similar_systems
from raggs.sweeps.layout import SYSTEMS, lay_out
from raggs.sweeps.messages import ms, usd
from raggs.sweeps.models import SweepReport, SystemRow

if TYPE_CHECKING:
    from pandas import DataFrame

KEYED = 12  # systems that are named below a plot
SERIES = 8  # lines of a plot over k
BARS = 24  # effects
COLOURS = "blue: the front, over deciding measures, latency and cost; grey: the others"
Point = tuple[SystemRow, float, float]
Figure = Callable[[SystemRow], Number]


def plots(report: SweepReport) -> dict[str, tuple[str, str]]:
    """Return description and SVG of each plot by file name."""
    measure = report.quality[0]
    found = {
        "front.svg": (f"{measure} and latency of each system", _front(report, _limited(report), "ms")),
        "front-cost.svg": (f"{measure} and price of each system", _front(report, _price, "usd")),
        "quality-over-k.svg": (f"{measure} over candidates", _over_k(report, _quality(measure), measure)),
        "latency-over-k.svg": ("latency over candidates", _over_k(report, _median_latency, "p50 in ms")),
        "effects.svg": (f"main effects on {measure}", _effects(report)),
    }
    return {name: (words, svg) for name, (words, svg) in found.items() if svg is not None}


def _median_latency(row: SystemRow) -> Number:
    return None if row.latency.total is None else row.latency.total.p50


def _p95_latency(row: SystemRow) -> Number:
    return None if row.latency.total is None else row.latency.total.p95


def _limited(report: SweepReport) -> Figure:
    """Return the latency in the plot of the front: the one that the limit applies to, if there is a limit."""
    return _p95_latency if "latency_ms" in report.choice.limits else _median_latency


def _price(row: SystemRow) -> Number:
    return None if row.cost is None else row.cost.total


def _quality(measure: str) -> Figure:
    return lambda row: None if measure not in row.scores else row.scores[measure].mean


# --- the frontier ---------------------------------------------------------------------------------------------------


def _front(report: SweepReport, figure: Figure, unit: str) -> str | None:
    """Plot quality over latency or cost, with the front joined, the choice ringed and the limits dashed."""
    measure, ordered = report.quality[0], best_first(report)
    folded, quality = fold_similar_systems(report, ordered), _quality(report.quality[0])
    rows = [row for row in ordered if row.name not in folded]
    points = [(row, x, y) for row in rows if (x := figure(row)) is not None and (y := quality(row)) is not None]
    if not points or (unit == "usd" and len({x for _, x, _ in points}) < 2):
        return None
    keyed = [point for point in points if _is_labelled(report, point[0])][:KEYED]
    foot = TOP + HIGH
    waits, limits = unit == "ms", report.choice.limits
    limit = limits.get("latency_ms" if waits else "usd_per_1k")
    across = AxisScale.of([x for _, x, _ in points] + ([limit] if limit else []), LEFT, RIGHT, log=True)
    up = AxisScale.of([y for _, _, y in points] + [limits[key] for key in ("quality",) if key in limits], foot, TOP)
    drawing = Drawing(f"{measure} over {'waiting' if waits else 'price'}", foot + 3.2 * LINE + (len(keyed) + 1) * LINE)
    scale = ", logarithmic" if across.log else ""
    wait = f"{'p50' if limit is None else 'p95'} in ms before generation"
    title = wait if waits else "USD for 1,000 questions"
    drawing.frame(across, up, (title + scale, measure))
    _limits(drawing, across, up, limit, limits.get("quality"))
    _front_line(drawing, [(across.at(x), up.at(y)) for row, x, y in points if row.name in report.front])
    _points(drawing, report, points, keyed, (across, up))
    _key(drawing, report, keyed, (foot + 3.4 * LINE, ms if waits else usd))
    return drawing.svg()


def _is_labelled(report: SweepReport, row: SystemRow) -> bool:
    return row.name in report.front or row.name == report.choice.winner


def _limits(drawing: Drawing, across: AxisScale, up: AxisScale, limit: float | None, target: float | None) -> None:
    if limit is not None:
        drawing.line(across.at(limit), up.start, across.at(limit), up.end, "limit")
        drawing.text(across.at(limit) - 5, up.end + 12, "limit", "soft", "end")
    if target is not None:
        drawing.line(across.start, up.at(target), across.end, up.at(target), "limit")
        drawing.text(across.end - 5, up.at(target) - 5, "quality to be reached", "soft", "end")


def _front_line(drawing: Drawing, places: Sequence[tuple[float, float]]) -> None:
    """Draw the frontier as steps from the fastest or cheapest system to the best."""
    best: list[tuple[float, float]] = []
    for x, y in sorted(places):
        if not best or y < best[-1][1]:
            best.append((x, y))
    if len(best) > 1:
        corners = [corner for one, other in pairwise(best) for corner in ((other[0], one[1]), other)]
        drawing.path([best[0], *corners], "frontline")


def _points(
    drawing: Drawing,
    report: SweepReport,
    points: Sequence[Point],
    keyed: Sequence[Point],
    scales: tuple[AxisScale, AxisScale],
) -> None:
    across, up = scales
    taken = [Box(across.at(x) - 4, up.at(y) - 4, across.at(x) + 4, up.at(y) + 4) for _, x, y in points]
    inside = Box(across.start, up.end, across.end, up.start)
    for row, x, y in reversed(points):
        on = row.name in report.front
        drawing.dot(across.at(x), up.at(y), "front" if on else "other", row.name, 5 if on else 4)
        if row.name == report.choice.winner:
            drawing.dot(across.at(x), up.at(y), "chosen", row.name, 9)
    for number, (_, x, y) in enumerate(keyed, start=1):
        if place := place_label(across.at(x), up.at(y), str(number), taken, inside):
            drawing.text(*place, str(number), "strong")


def _key(
    drawing: Drawing, report: SweepReport, keyed: Sequence[Point], where: tuple[float, Callable[[float], str]]
) -> None:
    """Return the names of the numbered systems."""
    top, said = where
    for number, (row, x, y) in enumerate(keyed, start=1):
        chosen = row.name == report.choice.winner
        what = " (the choice, ringed)" if chosen else ""
        words = f"{number}  {shortened(row.name, MAX_LINE_LETTERS - 40)}: {y:.3f}, {said(x)}{what}"
        drawing.text(LEFT, top + (number - 1) * LINE, words, "strong" if chosen else "")
    more = sum(row.name in report.front for row in report.systems) - len(keyed)
    beyond = f"; {more} more on it" if len(keyed) == KEYED and more > 0 else ""
    drawing.text(LEFT, top + len(keyed) * LINE, COLOURS + beyond, "soft")


# --- over k ---------------------------------------------------------------------------------------------------


def _over_k(report: SweepReport, figure: Figure, title: str) -> str | None:
    """Plot one line per family of systems that differ only in k; equal lines are drawn once."""
    lines = _series(report, figure)[:SERIES]
    if not lines:
        return None
    ks = sorted({k for line in lines for k, _ in line.points})
    return curves(f"{title} over candidates", lines, ("k, candidates", title), ks)


def _series(report: SweepReport, figure: Figure) -> list[Curve]:
    """Return the families of systems that differ only in k, best first."""
    families: dict[str, list[SystemRow]] = {}
    for row in best_first(report):
        if "k" in row.levels and row.plain and figure(row) is not None:
            families.setdefault(_family(row), []).append(row)
    same: dict[str, Curve] = {}
    for name, rows in families.items():
        line = tuple((row.k, figure(row) or 0.0) for row in sorted(rows, key=lambda each: each.k))
        if len(line) > 1:
            key = repr([(k, f"{value:.5g}") for k, value in line])
            same[key] = Curve((*(same[key].names if key in same else ()), name), line)
    return list(same.values())


def _family(row: SystemRow) -> str:
    """Return a system's name without its k."""
    levels = {axis: level for axis, level in row.levels.items() if axis != "k"}
    named = row.name.split("+")
    short = "+".join(part for part in named if part != f"k{row.k}")
    return short if short != row.name else " ".join(f"{axis} {level}" for axis, level in levels.items())


# --- effects --------------------------------------------------------------------------------------------------


def _effects(report: SweepReport) -> str | None:
    """Plot each change of a level with its interval; grey if it is not significant."""
    rows = [
        ForestRow(f"{part.axis}: {part.against} → {part.level}", part.quality, part.low, part.high, part.clear)
        for part in report.effects
        if part.quality is not None
    ][:BARS]
    if not rows:
        return None
    told = f"mean change with {report.confidence:.0%} intervals; grey: may be chance"
    return forest(f"Main effects on {report.quality[0]}", rows, told, changes=True)


UNKNOWN_SCORE = ScorePart(mean=None, low=None, high=None, valid=0)


def report_files(report: SweepReport) -> dict[str, str]:
    """Return the text of each file by its name."""
    drawn = plots(report)
    shown = "".join(f"\n![{words}]({name})\n" for name, (words, _) in drawn.items())
    return {
        "sweep.json": report.model_dump_json(indent=2) + "\n",
        "sweep.csv": table_csv(report),
        "sweep.md": _page(report, shown),
        **{name: svg for name, (_, svg) in drawn.items()},
    }


def _page(report: SweepReport, plots: str) -> str:
    """Return sweep.md, which an audit derives again."""
    choice, title, rest = markdown(lay_out(report, full=True), glossary=False).partition(f"\n## {SYSTEMS}\n")
    drawn = f"\n## Plots\n{plots}" if plots else ""
    return f"{choice}{drawn}{title}{rest}\n{GLOSSARY}, or docs/reference/glossary.md\n"


def table_csv(report: SweepReport) -> str:
    """Return one row per system with levels, scores, intervals, latency, cost and memory; empty if unknown."""
    head, *rows = table_rows(report)
    return csv_text(map(str, head), rows)


def table_rows(report: SweepReport) -> Iterator[list[str | bool | Number]]:
    """Return the titles, then one row per system; None if unknown."""
    axes = sorted({axis for row in report.systems for axis in row.levels})
    yield ["system", *axes, "on_front", *(title for title, _ in _figures(report, report.systems[0]))]
    for row in report.systems:
        figures = [value for _, value in _figures(report, row)]
        yield [row.name, *(row.levels.get(axis) for axis in axes), row.name in report.front, *figures]


def _figures(report: SweepReport, row: SystemRow) -> Iterator[tuple[str, Number]]:
    """Yield the titles and numbers of a row."""
    for measure in report.measures:
        score = row.scores.get(measure, UNKNOWN_SCORE)
        yield from ((measure, score.mean), (f"{measure} low", score.low), (f"{measure} high", score.high))
    for cutoff in report.cutoffs:
        for name in report.ceilings:
            yield f"realised {name}@{cutoff}", row.realised.get(f"{name}@{cutoff}")
    for cutoff in report.cutoffs if report.cuts else ():
        yield f"unjudged characters@{cutoff}", row.unjudged_characters.get(str(cutoff))
    for step, spread in row.latency:
        yield f"{step} p50 ms", None if spread is None else spread.p50
        yield f"{step} p95 ms", None if spread is None else spread.p95
        yield f"{step} p95 low", None if spread is None else spread.low
        yield f"{step} p95 high", None if spread is None else spread.high
        yield f"{step} p95 of medians ms", None if spread is None else spread.p95_of_medians
    cost, memory = row.cost, row.memory
    for name in ("embed", "rerank", "generate", "total"):
        yield f"{name} usd_per_1k", None if cost is None else cost.usd()[name]
    yield "candidate tokens", None if cost is None else cost.candidate_tokens
    yield "candidate tokens sd", None if cost is None else cost.candidate_tokens_sd
    yield "context tokens", None if cost is None else cost.context_tokens
    yield "memory bytes", None if memory is None else memory.bytes
    yield "memory bytes at 1M", None if memory is None else memory.million
    yield "efficiency", row.efficiency


def make_frame(report: SweepReport) -> DataFrame:
    """Return one row per system with the columns of sweep.csv."""
    head, *rows = table_rows(report)
    return frame_of([str(title) for title in head], rows)
