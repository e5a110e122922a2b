"""What a reader compares configurations by beside their scores: ceilings, efficiency, and the frontier for each SLO.

Dallaire, "Practical RAG Evaluation", 2025: a low ceiling (PROC) asks for better retrieval, a high one of which little
is realised (%PROC) for better ordering (section 6); efficiency is for shortlists alone; frontiers are conditioned on
limits of latency (section 5.4). Every figure is of the report; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raggs.base.jsontypes import Number
from raggs.base.text import plural
from raggs.evaluation.document import Cell, Legend, Row, Section, Table
from raggs.sweeps.folding import best_first, fold
from raggs.sweeps.models import FrontierPart, SweepReport, SystemRow
from raggs.sweeps.words import ms

SHOWN = 12  # systems on the screen
WHOLE = 100  # from where on ratios are whole numbers
CHOICE, OPEN_CHOICE, FRONT, OVER = "choice", "choice?", "frontier", "over"


def ceilings_section(report: SweepReport, full: bool) -> Section | None:
    """How far each system realises its own ceiling, and its quality per second."""
    rows = [row for row in _rows(report, full) if row.scores]
    if not rows:
        return None
    names = report.ceilings if full else report.ceilings[:1]
    cutoffs = sorted({report.cutoffs[0], report.cutoffs[-1]})
    measures = [f"{name}@{cutoff}" for name in names for cutoff in cutoffs]
    timed = any(row.efficiency is not None for row in rows)
    if not measures and not timed:
        return None
    several = len(names) > 1
    head = ["system"]
    for measure in measures:
        said = measure if several else f"@{measure.rpartition('@')[2]}"
        head += [f"PROC {said}" if several else f"PROC{said}", f"%PROC {said}" if several else f"%PROC{said}"]
    ends = ["efficiency", *(["end to end"] if full else [])] if timed else []
    table = Table((*head, *ends), tuple(_ceilings(row, measures, full, timed=timed) for row in rows))
    return Section("Ceilings and efficiency", tuple(_advice(report)), table, (), tuple(_terms(report, full, timed)))


def _ceilings(row: SystemRow, measures: Sequence[str], full: bool, *, timed: bool) -> Row:
    cells = [Cell(row.name)]
    for measure in measures:
        score, share = row.scores.get(f"proc_{measure}"), row.realised.get(measure)
        cells += [Cell(None if score is None else score.mean, "score"), Cell(None if share is None else f"{share:.1%}")]
    if timed:
        cells += [_ratio(row.efficiency), *([_ratio(row.efficiency_all)] if full else [])]
    return tuple(cells)


def _ratio(value: Number) -> Cell:
    return Cell(None if value is None else f"{value:,.0f}" if value >= WHOLE else f"{value:.3g}")


def _advice(report: SweepReport) -> Iterator[str]:
    if report.ceilings:
        yield "a low PROC asks for better retrieval, a high PROC with a low %PROC for better ordering"


def _terms(report: SweepReport, full: bool, timed: bool) -> Iterator[Legend]:
    if report.ceilings:
        said = "" if full else f" {report.ceilings[0]}"
        yield Legend("PROC", f"the best{said} that any order of the system's own candidates reaches, mean over queries")
        yield Legend("%PROC", "the system's score as a share of its PROC")
    if timed:
        yield Legend("efficiency", "mean quality per second (p50) of reranking, or of retrieval without a reranker")
    if timed and full:
        yield Legend("end to end", "the same per second of everything before generation, and of generation_ms")


def frontiers_section(report: SweepReport, full: bool) -> Section | None:
    """For each limit on latency, which systems are on the frontier and which one is the choice, side by side."""
    parts = report.frontiers
    limits = [part.slo_ms for part in parts if part.slo_ms is not None]
    if not limits or all(row.latency.total is None for row in report.systems):
        return None
    if len({(part.front, part.choice, bool(part.inconclusive)) for part in parts}) == 1 and not full:
        said = ", ".join(map(ms, limits))
        return Section("Frontier for each SLO", (f"the same for a p95 of at most {said}, and without a limit",))
    named = {name for part in parts for name in (*part.front, part.choice)}
    shown = [row for row in _rows(report, full) if full or row.name in named]
    head = ("system", *(f"p95 ≤ {ms(limit)}" for limit in limits), "no limit")
    table = Table(head, tuple((Cell(row.name), *(Cell(_place(row, part)) for part in parts)) for row in shown))
    sentences = tuple(map(_counted, parts)) if full else ()
    signs = {_place(row, part) for row in shown for part in parts}
    terms = {
        CHOICE: "chosen under that limit",
        OPEN_CHOICE: "chosen under that limit, but inconclusive: unjudged passages could change it",
        FRONT: "no other system that keeps the limit beats it in cost, latency and quality at once",
        OVER: "its p95 is above the limit, or unknown",
    }
    legend = tuple(Legend(sign, text) for sign, text in terms.items() if sign in signs)
    return Section("Frontier for each SLO", sentences, table, (), legend)


def _counted(part: FrontierPart) -> str:
    limit = "no limit" if part.slo_ms is None else f"p95 ≤ {ms(part.slo_ms)}"
    chosen = f"choice {part.choice}" if part.choice else "no choice"
    return f"{limit}: {plural(part.allowed, 'system')}, {len(part.front)} on the frontier, {chosen}"


def _place(row: SystemRow, part: FrontierPart) -> str | None:
    if row.name == part.choice:
        return OPEN_CHOICE if part.inconclusive else CHOICE
    if row.name in part.front:
        return FRONT
    return OVER if row.name in part.over else None


def _rows(report: SweepReport, full: bool) -> list[SystemRow]:
    """All systems; on the screen the choice, the front and the best of the others, without those that are folded."""
    ordered = best_first(report)
    if full:
        return ordered
    folded = fold(report, ordered)
    lines = [row for row in ordered if row.name not in folded]
    first = [row for row in lines if row.name in report.front or row.name == report.choice.winner][:SHOWN]
    names = {row.name for row in (*first, *[row for row in lines if row not in first][: SHOWN - len(first)])}
    return [row for row in lines if row.name in names]
