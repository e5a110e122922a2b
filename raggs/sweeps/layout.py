"""Build the document of a sweep's report: systems, recommendation, effects, and limits of the data.

The screen shows only the information for a decision; `full` is everything, for sweep.md. This module selects and counts
results, but computes no scores.
Levels and steps without any effect are named in sentences instead of tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from raggs.base.document import (
    Cell,
    Column,
    ColumnSpec,
    Legend,
    ReportDocument,
    Section,
    Table,
    interval,
    table_of,
    terms_of,
)
from raggs.base.text import plural
from raggs.evaluation.messages import inconclusive, unjudged_share
from raggs.metrics.names import glossary
from raggs.sweeps.comparing import (
    best_first,
    ceilings_section,
    comparing,
    cuts_section,
    first_of,
    fold_similar_systems,
    folded_sentence,
    frontiers_section,
    mean,
    next_steps,
    span_columns,
)
from raggs.sweeps.judgments import TERMS
from raggs.sweeps.messages import MIN_SHOWN_CHANGE, next_step, usd
from raggs.sweeps.models import (
    UNCERTAIN_MARK,
    EffectPart,
    MemoryPart,
    PlanLine,
    StepPart,
    SweepPlan,
    SweepReport,
    SystemRow,
    add,
)
from raggs.sweeps.summary import is_separated, recommend, system_names

MAX_ROWS = 8  # maximum number of lines of a table on the screen


def findings(report: SweepReport, full: bool, config: str | None = "FILE") -> list[Section]:
    """Return the sections with findings."""
    found = (
        _effects(report, full, config),
        _steps(report, full, config),
        _latency_section(report) if full else None,
        _memory(report, full),
    )
    placed = (frontiers_section(report, full), ceilings_section(report, full))
    return [*filter(None, placed), *filter(None, found), *comparing(report, full, config)]


def _effects(report: SweepReport, full: bool, config: str | None) -> Section | None:
    if not report.effects:
        return None
    idle = [part for part in report.effects if _has_no_effect(part, report.jitter_ms)]
    told = [part for part in report.effects if part not in idle]
    shown = told if full else [part for part in told if _from_first(part, report.effects)][:MAX_ROWS]
    paid = any(part.usd_per_1k for part in report.effects)
    columns = ("axis", "change", "quality", "latency_ms", *(("usd_per_1k",) if paid else ()), "pairs")
    sentences = ["mean change over pairs of systems that differ only in that axis"]
    if idle:
        named = ", ".join(f"{part.axis} {part.change}" for part in idle)
        sentences.append(f"no visible effect: {named}")
    if len(shown) < len(told):
        sentences.append(f"{len(told) - len(shown)} more in sweep.md")
    sentences += list(_inconclusive(report.effects))
    sentences += [part.sentence for part in report.interactions if part.clear or part.unjudged or full]
    open_ = [*(part.unjudged for part in report.effects), *(part.unjudged for part in report.interactions)]
    sentences += next_steps(open_, config)
    terms = [Legend("[ ]", f"{report.confidence:.0%} interval over resampled queries")] if shown else []
    terms += (
        [
            Legend(
                UNCERTAIN_MARK,
                "not significant after correction for the number of comparisons, or unjudged passages could reverse it",
            )
        ]
        if any(not part.clear for part in shown)
        else []
    )
    table = table_of(shown, *columns, quality=report.quality[0])
    return Section("Main effects", tuple(sentences), table, terms=tuple(terms))


def _inconclusive(parts: Sequence[EffectPart]) -> Iterator[str]:
    """Yield sentences on the effects that unjudged passages could reverse, grouped by the reason."""
    found: dict[str, list[str]] = {}
    for part in parts:
        if part.unjudged is not None:
            found.setdefault(inconclusive(part.unjudged), []).append(f"{part.axis} {part.change}")
    yield from (f"{', '.join(changes)}: {why}" for why, changes in found.items())


def _has_no_effect(part: EffectPart, jitter: float) -> bool:
    """Return whether a level changes neither quality (four decimals), latency (beyond the jitter) nor cost."""
    still = part.quality is not None and abs(part.quality) < MIN_SHOWN_CHANGE
    return still and abs(part.latency_ms or 0.0) < jitter and not part.usd_per_1k


def _from_first(part: EffectPart, parts: Sequence[EffectPart]) -> bool:
    return part.against == next(each.against for each in parts if each.axis == part.axis)


def _steps(report: SweepReport, full: bool, config: str | None) -> Section | None:
    """Return the section on the effect of each increase of k."""
    if not report.steps:
        return None
    moving = [part for part in report.steps if not _changes_nothing(part)]
    idle = Counter(f"k {part.step}" for part in report.steps if _changes_nothing(part))
    total = Counter(f"k {part.step}" for part in report.steps)
    sentences = [
        f"{step} changes {report.quality[0]}, cost and latency in none of {_count_of_systems(count, total[step])}"
        for step, count in idle.items()
    ]
    shown = sorted(moving, key=lambda part: -abs(part.quality or 0.0))[: None if full else MAX_ROWS]
    if len(shown) < len(moving):
        sentences.append(f"{len(moving) - len(shown)} smaller changes in sweep.md")
    if moving and all(part.within_jitter for part in moving):
        sentences.append(f"no step adds {report.jitter_ms:g} ms of latency; smaller differences count as equal")
    open_ = [part for part in moving if part.unjudged is not None]
    whys = [f"{part.system} from k {part.from_k}: {inconclusive(part.unjudged)}" for part in open_ if part.unjudged]
    sentences += whys if full else first_of(whys)
    sentences += next_steps((part.unjudged for part in open_), config)
    terms = (
        (Legend(UNCERTAIN_MARK, "unjudged passages could reverse it"),) if any(part.unjudged for part in shown) else ()
    )
    paid = any(part.usd_per_1k for part in shown)
    columns = ("system", "step", "quality", "ms", *(("usd_per_1k", "gain") if paid else ()))
    table = table_of(shown, *columns, quality=report.quality[0])
    return Section("Effect of more candidates", tuple(sentences), table, terms=terms)


def _changes_nothing(part: StepPart) -> bool:
    if part.unjudged is not None:
        return False
    return abs(part.quality or 0.0) < MIN_SHOWN_CHANGE and not part.usd_per_1k and (part.within_jitter or not part.ms)


def _count_of_systems(count: int, total: int) -> str:
    return plural(total, "system") if count == total else f"the {count} systems (of {total})"


def _latency_section(report: SweepReport) -> Section | None:
    """Return the section on the median and tail latency of each system."""
    timed = [(row, row.latency.total) for row in best_first(report) if row.latency.total is not None]
    if not timed:
        return None
    sentences = (
        "p50 and p95 of medians: percentiles over queries of the median latency of each query over its rounds",
        "p95: percentile of all single searches, which limits apply to; low and high are its "
        f"{report.confidence:.0%} interval over resampled queries and rounds",
    )
    table = table_of(timed, "name", "p50", "p95_of_medians", "p95", "low", "high", "searches")
    return Section("Latency", sentences, table)


def _memory(report: SweepReport, full: bool) -> Section | None:
    seen: dict[str, tuple[SystemRow, MemoryPart]] = {}
    for row in report.systems:
        if row.memory is not None:
            seen.setdefault(row.vectors, (row, row.memory))
    if not seen:
        return None
    rows = list(seen.values())
    shown = rows if full else rows[:MAX_ROWS]
    more = () if len(shown) == len(rows) else (f"{len(rows) - len(shown)} more in sweep.md",)
    sentences = ("vectors and index together: measured here, and extrapolated by bytes per vector", *more)
    return Section("Memory", sentences, table_of(shown, "vectors", "bytes", "million", "ten_million", "built_s"))


SYSTEMS = "Systems"  # title of the section with all figures; all sections before it are about the choice
MAX_SYSTEMS = 12  # maximum number of systems on the screen; files contain all systems
FIGURE = re.compile(r"[ :]*\d")
MAX_NAMED_RIVALS = 3  # maximum number of systems named that unjudged passages could put before the choice
MAX_FRONT_SYSTEMS = 24  # of the front on the screen
SINGLE_SYSTEMS_AXIS = "systems"  # Key in a plan's axes for systems outside the grid.
FRONT_SIGN, CHOSEN_SIGN, CHOSEN_FRONT_SIGN = "*", ">", ">*"
SIGNS = {
    CHOSEN_FRONT_SIGN: "recommended, and on the front like those with *",
    CHOSEN_SIGN: "recommended under the limits, but not on the front",
    FRONT_SIGN: "on the front: no other system is at least as good, fast (p50) and cheap, and better in one of these",
}


def lay_out(report: SweepReport, *, full: bool = False, config: str | None = "FILE") -> ReportDocument:
    """Return the document of a sweep: the recommendation, what changes it, and then all figures.

    Args:
        full: whether to include all systems and tables. If False, only the front and the best other systems are
            included.
        config: the file of the sweep, as it is typed in a command; None to omit `judging_command`, for callers that
            show it separately.
    """
    choice = report.choice
    sections = [
        Section("What changes the choice", (*choice.changes, *_uncertain(report), *rivals(report, config))),
        Section("Limits of the data", tuple(_unmeasured(report))),
        _systems(report, full),
        Section("Rule of the choice", (choice.sentence,)),
    ]
    sections += [each for each in (cuts_section(report),) if each]
    sections += findings(report, full, config)
    return ReportDocument(
        f"Sweep {report.name}",
        recommend(report),
        tuple(each for each in sections if each.sentences or each.table),
        (*report.left_out, *report.notes),
    )


def _uncertain(report: SweepReport) -> tuple[str, ...]:
    """Return the open questions on the choice, without the shares of resamples, which the recommendation states if the
    data do not separate the choice.
    """
    unknown = report.choice.unknown
    return unknown[1:] if report.wins and not is_separated(report) else unknown


def rivals(report: SweepReport, config: str | None = "FILE") -> Iterator[str]:
    """Yield sentences on the first `MAX_NAMED_RIVALS` systems that unjudged passages could put before the choice, or
    across the limit on quality. Also say how to get these passages judged.

    Args:
        config: as for `lay_out`.
    """
    names = system_names(report)
    found, target = report.choice.inconclusive, report.choice.limits.get("quality")
    chosen = names.get(report.choice.winner or "", report.choice.winner)
    first = [*found.items()][:MAX_NAMED_RIVALS]
    if target is None and len(first) > 1 and all([top.system for top in part.tops] == [name] for name, part in first):
        listed = ", ".join(f"{name} ({unjudged_share(part.tops[0].share)})" for name, part in first)
        more = f" and {len(found) - len(first)} more" if len(found) > len(first) else ""
        cutoff = first[0][1].tops[0].cutoff
        yield f"Unjudged passages (their share of the top {cutoff}) could put others before {chosen}: {listed}{more}."
        first = []
    for name, part in first:
        what = f"is better than {chosen}"
        if target is not None and (
            name == report.choice.winner or mean(report.system(name), report.quality[0]) < target
        ):
            what = f"reaches {report.quality[0]} of {target:.3f}"
        yield f"Whether {name} {what} is {inconclusive(part)}."
    if first and len(found) > MAX_NAMED_RIVALS:
        yield f"The same holds for {len(found) - MAX_NAMED_RIVALS} more systems."
    yield from (f"Next: {step}." for step in dict.fromkeys(next_step(part, config) for part in found.values()) if step)


def _unmeasured(report: SweepReport) -> Iterator[str]:
    if all(row.latency.total is None for row in report.systems):
        yield "Latency was not measured."
    if all(row.cost is None or row.cost.total is None for row in report.systems):
        yield "Cost per query is unknown: no price is set."


def _systems(report: SweepReport, full: bool) -> Section:
    ordered = best_first(report)
    folded = {} if full else fold_similar_systems(report, ordered)
    lines = [row for row in ordered if row.name not in folded]
    shown = lines if full else _shown_rows(report, lines)
    told = [f"{plural(len(ordered), 'system')} on {plural(report.questions, 'query')}, best {report.quality[0]} first"]
    if folded:
        told.append(folded_sentence(report, folded))
    if len(shown) < len(lines):
        beyond = sum(row.name in report.front for row in lines) - sum(row.name in report.front for row in shown)
        which = f"{beyond} of them on the front" if beyond else "none of them on the front"
        told.append(f"{len(lines) - len(shown):,} more, {which}, in sweep.md and sweep.csv")
    free = _is_free(report)
    if free:
        told.append("no system has a cost: none calls a provider, and `prices` names no generator")
    read = span_columns(report) if report.cuts else ()
    best = {measure: max(mean(each, measure) for each in report.systems) for measure in (*report.quality, *read)}
    others = [_measure(measure, best, ranged=full) for measure in report.quality[1:]]
    spans, holes = [_measure(measure, best, ranged=full) for measure in read], _holes(report)
    columns: list[ColumnSpec] = ["p50", *([] if free else ["price"]), *spans, *others, "p95", *holes]
    if full:
        columns = [*others, *spans, "p50", "p95", "price", *holes]
    table = table_of(shown, _signed(report, full), _measure(report.quality[0], best, ranged=True), *columns)
    terms = (
        *(Legend(sign, text) for sign, text in SIGNS.items() if sign in {_sign(report, row) for row in shown}),
        *_of_measures(report, () if table is None else table.head),
        Legend("[ ]", f"{report.confidence:.0%} interval of the mean"),
        *terms_of(shown, *columns),
    )
    return Section(SYSTEMS, tuple(told), table, terms=terms)


def _signed(report: SweepReport, full: bool) -> ColumnSpec:
    """Return the column of names, each after its sign. On the screen, signs have a fixed width."""

    def name(row: SystemRow) -> str:
        sign = _sign(report, row)
        return f"{sign:<{0 if full else 2}} {row.name}" if sign or not full else row.name

    return Column("system"), name


def _measure(name: str, best: Mapping[str, float], ranged: bool) -> ColumnSpec:
    def cell(row: SystemRow) -> Cell:
        score = row.scores.get(name)
        if score is None or score.mean is None:
            return Cell(None)
        ranges = interval(score.low, score.high) if ranged else ()
        return Cell(score.mean, "score", "", ranges, score.mean == best[name])

    return Column(name), cell


def _shown_rows(report: SweepReport, lines: Sequence[SystemRow]) -> list[SystemRow]:
    """Return the choice, the front, and the best others, in their order."""
    front = [row.name for row in lines if row.name in report.front][:MAX_FRONT_SYSTEMS]
    asked = {*front, report.choice.winner}
    rest = [row.name for row in lines if row.name not in asked and row.name not in report.front]
    kept = {*asked, *rest[: max(0, MAX_SYSTEMS - sum(row.name in asked for row in lines))]}
    return [row for row in lines if row.name in kept]


def _is_free(report: SweepReport) -> bool:
    return all(row.cost is not None and row.cost.total == 0 for row in report.systems)


def _holes(report: SweepReport) -> list[tuple[str, str]]:
    first = str(report.cutoffs[0])
    return [("holes", first)] if any(row.holes.get(first) for row in report.systems) else []


def _sign(report: SweepReport, row: SystemRow) -> str:
    chosen, front = row.name == report.choice.winner, row.name in report.front
    return CHOSEN_FRONT_SIGN if chosen and front else CHOSEN_SIGN if chosen else FRONT_SIGN if front else ""


def _of_measures(report: SweepReport, titles: Sequence[str]) -> Iterator[Legend]:
    """Yield the definitions of the measures in the table."""
    names = [*report.quality, *(each for each in titles if each in report.measures and each not in report.quality)]
    yield from (Legend(name, text) for name, text in glossary(names).items())
    told = {title.partition("@")[0] for title in titles if "@" in title}
    yield from (Legend(name, text) for name, text in TERMS.items() if name in told)


# --- a dry run ------------------------------------------------------------------------------------------------


def lay_out_plan(plan: SweepPlan) -> ReportDocument:
    """Return the document of a dry run: number of systems, and the maximum cost."""
    left = plan.lists - plan.kept
    sentences = [
        f"{plural(len(plan.systems), 'system')} on {plural(plan.questions, 'query')} and "
        f"{plural(plan.passages, 'passage')}{f' in {plan.cuts} chunkings' if plan.cuts > 1 else ''}; "
        + (f"lists of {plan.kept:,} exist, {left:,} are missing" if plan.kept else "no list exists yet")
    ]
    return ReportDocument(
        f"Plan of {plan.name}",
        _grid(plan, sentences),
        (Section("Cost", (_money(plan),), _bill(plan)),),
        plan.left_out,
    )


def _grid(plan: SweepPlan, sentences: Sequence[str]) -> Section:
    """Return the section with the systems by name if they are few, otherwise with the levels of each axis."""
    if len(plan.systems) <= MAX_SYSTEMS or not plan.axes:
        return Section("Systems", tuple(sentences), Table.of(["system"], [[name] for name in plan.systems]))
    varied = {axis: levels for axis, levels in plan.axes.items() if len(levels) > 1 or axis == SINGLE_SYSTEMS_AXIS}
    fixed = ", ".join(f"{axis} {levels[0]}" for axis, levels in plan.axes.items() if axis not in varied)
    said = (*sentences, f"all with {fixed}") if fixed else tuple(sentences)
    rows = ((axis, ", ".join(levels)) for axis, levels in varied.items())
    return Section("Systems", said, Table.of(["axis", "levels"], rows))


def _bill(plan: SweepPlan) -> Table | None:
    """Return the table of paid calls. If there are many parts, they are grouped by kind and model."""
    by_kind: dict[tuple[str, str], list[PlanLine]] = {}
    for line in plan.paid:
        kind = line.what if len(plan.paid) <= MAX_SYSTEMS else FIGURE.split(line.what)[0]
        by_kind.setdefault((kind, line.model), []).append(line)
    rows = [
        PlanLine(
            what=kind if len(lines) == 1 else f"{kind}, {len(lines)} times",
            model=model,
            calls=sum(line.calls for line in lines),
            tokens=sum(line.tokens for line in lines),
            usd=add([line.usd for line in lines]),
        )
        for (kind, model), lines in by_kind.items()
    ]
    return table_of(rows, "what", "model", "calls", "tokens", "usd")


def _money(plan: SweepPlan) -> str:
    if not plan.paid:
        return "nothing to pay: no provider is called, or all answers are cached"
    time = f"{plan.hours:.1f} hours" if plan.hours >= 1 else plural(max(1, round(plan.hours * 60)), "minute")
    if plan.usd is None:
        return f"unknown: set the missing prices under `prices`; calls take about {time}"
    return f"at most {usd(plan.usd)} (if every candidate is read); calls take about {time}"
