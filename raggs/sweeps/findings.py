"""What a sweep found beside its choice, as sections: what each axis and more candidates buy, and memory.

What changes nothing is one sentence, not a line each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from raggs.base.text import plural
from raggs.evaluation.document import Cell, Legend, Row, Section, Table, interval
from raggs.evaluation.words import inconclusive
from raggs.sweeps.comparing import comparing, first_of, next_commands
from raggs.sweeps.folding import best_first
from raggs.sweeps.frontiers import ceilings_section, frontiers_section
from raggs.sweeps.grid import CHUNKER
from raggs.sweeps.models import EffectPart, StepPart, SweepReport
from raggs.sweeps.words import NOTHING, byte_size, change, ms, ms_change, usd_change

SHOWN = 8  # lines of a table on the screen
DOUBT = "?"


def findings(report: SweepReport, full: bool) -> list[Section]:
    """The sections that there is something to say in."""
    found = (_effects(report, full), _steps(report, full), _waits(report) if full else None, _memory(report, full))
    placed = (frontiers_section(report, full), ceilings_section(report, full))
    return [*filter(None, placed), *filter(None, found), *comparing(report, full)]


def _effects(report: SweepReport, full: bool) -> Section | None:
    if not report.effects:
        return None
    idle = [part for part in report.effects if _idle(part, report.jitter_ms)]
    told = [part for part in report.effects if part not in idle]
    shown = told if full else [part for part in told if _from_first(part, report.effects)][:SHOWN]
    paid = any(part.usd_per_1k for part in report.effects)
    rows = tuple(_effect(part, paid) for part in shown)
    head = ("axis", "from → to", report.quality[0], "p50", *(("per 1,000",) if paid else ()), "pairs")
    sentences = ["mean change over pairs of systems that differ in that axis alone"]
    if idle:
        named = ", ".join(f"{part.axis} {part.against} → {part.level}" for part in idle)
        sentences.append(f"nothing that can be seen: {named}")
    if len(shown) < len(told):
        sentences.append(f"{len(told) - len(shown)} more in sweep.md")
    sentences += list(_inconclusive(report.effects))
    sentences += [part.sentence for part in report.interactions if part.clear or part.unjudged or full]
    sentences += next_commands(
        [*(part.unjudged for part in report.effects), *(part.unjudged for part in report.interactions)]
    )
    terms = [Legend("[ ]", f"{report.confidence:.0%} interval over resampled questions")] if shown else []
    terms += [Legend(DOUBT, "may be chance, as so many are compared")] if any(not part.clear for part in shown) else []
    return Section("What each axis buys", tuple(sentences), Table(head, rows) if rows else None, (), tuple(terms))


def _inconclusive(parts: Sequence[EffectPart]) -> Iterator[str]:
    """The effects that unjudged passages could reverse, by the reason."""
    found: dict[str, list[str]] = {}
    for part in parts:
        if part.unjudged is not None:
            found.setdefault(inconclusive(part.unjudged), []).append(f"{part.axis} {part.against} → {part.level}")
    yield from (f"{', '.join(changes)}: {why}" for why, changes in found.items())


def _idle(part: EffectPart, jitter: float) -> bool:
    """Whether a level changes nothing: quality to four decimals, waiting within the jitter, no money."""
    still = part.quality is not None and abs(part.quality) < NOTHING
    return still and abs(part.latency_ms or 0.0) < jitter and not part.usd_per_1k


def _from_first(part: EffectPart, parts: Sequence[EffectPart]) -> bool:
    return part.against == next(each.against for each in parts if each.axis == part.axis)


def _effect(part: EffectPart, paid: bool) -> Row:
    return (
        Cell(part.axis),
        Cell(f"{part.against} → {part.level}"),
        Cell(part.quality, "signed", "" if part.clear else DOUBT, interval(part.low, part.high)),
        Cell(None if part.latency_ms is None else ms_change(part.latency_ms)),
        *((Cell(None if part.usd_per_1k is None else usd_change(part.usd_per_1k)),) if paid else ()),
        Cell(part.pairs),
    )


def _steps(report: SweepReport, full: bool) -> Section | None:
    """What each larger k brings."""
    if not report.steps:
        return None
    moving = [part for part in report.steps if not _stands(part)]
    idle = Counter(f"k {part.from_k} → {part.k}" for part in report.steps if _stands(part))
    total = Counter(f"k {part.from_k} → {part.k}" for part in report.steps)
    sentences = [
        f"{step} changes no {report.quality[0]} in {_of(count, total[step])}, and costs and waits no more"
        for step, count in idle.items()
    ]
    shown = sorted(moving, key=lambda part: -abs(part.quality or 0.0))[: None if full else SHOWN]
    if len(shown) < len(moving):
        sentences.append(f"{len(moving) - len(shown)} smaller changes in sweep.md")
    if moving and all(part.within_jitter for part in moving):
        sentences.append(f"no step waits longer by {report.jitter_ms:g} ms, below which waits count as equal")
    open_ = [part for part in moving if part.unjudged is not None]
    whys = [f"{part.system} from k {part.from_k}: {inconclusive(part.unjudged)}" for part in open_ if part.unjudged]
    sentences += whys if full else first_of(whys)
    sentences += next_commands(part.unjudged for part in open_)
    terms = (Legend(DOUBT, "unjudged passages could reverse it"),) if any(part.unjudged for part in shown) else ()
    paid = any(part.usd_per_1k for part in shown)
    head = ("system", "k", report.quality[0], "p50", *(("per 1,000", "quality per USD") if paid else ()))
    table = Table(head, tuple(_step(part, paid) for part in shown)) if shown else None
    return Section("What more candidates bring", tuple(sentences), table, (), terms)


def _stands(part: StepPart) -> bool:
    if part.unjudged is not None:
        return False
    return abs(part.quality or 0.0) < NOTHING and not part.usd_per_1k and (part.within_jitter or not part.ms)


def _of(count: int, total: int) -> str:
    return f"any of {plural(total, 'system')}" if count == total else f"{count} of {plural(total, 'system')}"


def _step(part: StepPart, paid: bool) -> Row:
    money = (
        Cell(None if part.usd_per_1k is None else usd_change(part.usd_per_1k)),
        Cell(change(part.per_usd) if part.per_usd and part.per_usd > 0 and part.unjudged is None else None),
    )
    return (
        Cell(part.system),
        Cell(f"{part.from_k} → {part.k}"),
        Cell(part.quality, "signed", "" if part.unjudged is None else DOUBT),
        Cell(None if part.ms is None else ms_change(part.ms)),
        *(money if paid else ()),
    )


def _waits(report: SweepReport) -> Section | None:
    """The usual wait and the tail of each system, side by side."""
    timed = [(row.name, row.latency.total) for row in best_first(report) if row.latency.total is not None]
    if not timed:
        return None
    rows = tuple(
        (
            Cell(name),
            Cell(ms(total.p50)),
            Cell(ms(total.p95_of_medians)),
            Cell(ms(total.p95)),
            Cell(None if total.low is None else ms(total.low)),
            Cell(None if total.high is None else ms(total.high)),
            Cell(f"{total.searches:,}"),
        )
        for name, total in timed
    )
    sentences = (
        "p50 and p95 of medians are of the usual wait of each query, the median of its rounds",
        "p95 is of all single searches; limits are held against it; low and high bound its interval of "
        f"{report.confidence:.0%} over resampled queries and rounds",
    )
    head = ("system", "p50", "p95 of medians", "p95", "low", "high", "searches")
    return Section("Waiting", sentences, Table(head, rows))


def _memory(report: SweepReport, full: bool) -> Section | None:
    seen: dict[str, Row] = {}
    for row in report.systems:
        if (part := row.memory) is None:
            continue
        what = " in ".join(filter(None, map(row.levels.get, ("embedder", "index", CHUNKER))))
        built = Cell(f"{part.built_s:,.1f} s" if part.built_s else None)
        figures = (part.bytes, part.million, part.ten_million)
        seen.setdefault(what, (Cell(what), *(Cell(byte_size(figure)) for figure in figures), built))
    rows = tuple(seen.values())
    if not rows:
        return None
    shown = rows if full else rows[:SHOWN]
    more = () if len(shown) == len(rows) else (f"{len(rows) - len(shown)} more in sweep.md",)
    sentences = ("vectors and index together, here and by the same bytes a vector", *more)
    return Section("Memory", sentences, Table(("vectors", "here", "1 million", "10 million", "built in"), shown))
