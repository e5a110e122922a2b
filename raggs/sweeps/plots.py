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
    POSITIVE,
    SHARE,
    AxisLimit,
    ChartAxis,
    Curve,
    ForestRow,
    Point,
    chart,
    forest,
)
from raggs.sweeps.comparing import best_first, fold_similar_systems
from raggs.sweeps.layout import SYSTEMS, lay_out
from raggs.sweeps.messages import ms, usd
from raggs.sweeps.models import SweepReport, SystemRow
from raggs.sweeps.summary import system_names

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_NAMED = 6  # systems on the front that are named in a plot
BARS = 24  # effects
Figure = Callable[[SystemRow], Number]


def plots(report: SweepReport) -> dict[str, tuple[str, str]]:
    """Return description and SVG of each plot by file name."""
    measure = report.quality[0]
    found = {
        "front.svg": (f"{measure} and latency of each system", _front(report, _limited(report), "ms")),
        "front-cost.svg": (f"{measure} and cost of each system", _front(report, _price, "usd")),
        "quality-over-k.svg": (
            f"{measure} by number of candidates",
            _over_k(report, _quality(measure), "Do more candidates improve the quality?", measure),
        ),
        "latency-over-k.svg": (
            "latency by number of candidates",
            _over_k(report, _median_latency, "How much latency do more candidates add?", "median latency in ms"),
        ),
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


# --- the front ------------------------------------------------------------------------------------------------------


def _front(report: SweepReport, figure: Figure, unit: str) -> str | None:
    """Plot quality over latency or cost. The front is joined, its first systems are named, the choice is ringed and the
    limits are marked.
    """
    measure, ordered = report.quality[0], best_first(report)
    folded, quality, names = fold_similar_systems(report, ordered), _quality(measure), system_names(report)
    first = {names[row.name]: row.name for row in reversed(ordered)}  # equal systems are one point
    if report.choice.winner in names:
        first[names[report.choice.winner]] = report.choice.winner
    kept = {*(row.name for row in ordered if row.name not in folded), report.choice.winner}
    rows = [row for row in ordered if row.name in kept and row.name == first[names[row.name]]]
    found = [(row, x, y) for row in rows if (x := figure(row)) is not None and (y := quality(row)) is not None]
    if not found or (unit == "usd" and len({x for _, x, _ in found}) < 2):
        return None
    timed, limits = unit == "ms", report.choice.limits
    said, limit, target = (
        ms if timed else usd,
        limits.get("latency_ms" if timed else "usd_per_1k"),
        limits.get("quality"),
    )
    on_front = {names[name] for name in report.front}
    front = [row.name for row, _, _ in found if names[row.name] in on_front]
    named = sorted(front, key=lambda name: name != report.choice.winner)[:MAX_NAMED]
    points = [
        Point(
            x,
            y,
            names[row.name] if row.name in named or row.name == report.choice.winner else "",
            f"{names[row.name]}: {y:.3f}, {said(x)}",
            row.name in front or row.name == report.choice.winner,
            row.name == report.choice.winner,
        )
        for row, x, y in found
    ]
    latency = f"{'median' if limit is None else 'p95'} latency before generation in ms"
    across = ChartAxis(
        latency if timed else "USD per 1,000 queries",
        log=True,
        limit=None if limit is None else AxisLimit(limit, f"limit {said(limit)}"),
        within=POSITIVE,
    )
    up = ChartAxis(
        measure, SHARE, limit=None if target is None else AxisLimit(target, f"required quality {target:.4g}")
    )
    more = len(front) - len(named)
    return chart(
        f"Which system is best at each {'latency' if timed else 'cost'}?",
        (across, up),
        points=points,
        steps=_front_line([(x, y) for row, x, y in found if row.name in front]),
        other="other systems",
        notes=(
            "ring: chosen; in colour: the front of quality, p50 latency and cost"
            + (f" ({more} more systems without a name)" if more > 0 else ""),
        ),
    )


def _front_line(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the front as steps from the fastest or cheapest system to the best."""
    best: list[tuple[float, float]] = []
    for x, y in sorted(places, key=lambda place: (place[0], -place[1])):
        if not best or y > best[-1][1]:
            best.append((x, y))
    return best[:1] + [corner for one, other in pairwise(best) for corner in ((other[0], one[1]), other)]


# --- over k ---------------------------------------------------------------------------------------------------


def _over_k(report: SweepReport, figure: Figure, title: str, quantity: str) -> str | None:
    """Plot one line per family of systems that differ only in k; equal lines are drawn once."""
    lines = _series(report, figure)
    if not lines:
        return None
    ks = sorted({k for line in lines for k, _ in line.points})
    up = ChartAxis(quantity, SHARE if quantity == report.quality[0] else POSITIVE)
    return chart(title, (ChartAxis("k, number of candidates", ticks=ks, log=True), up), lines=lines)


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
    told = f"mean change of {report.quality[0]}, {report.confidence:.0%} interval"
    return forest("Which setting changes the quality?", rows, told, changes=True)


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
    """Yield the titles, then one row per system; None if unknown."""
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
