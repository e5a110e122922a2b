"""From a sweep's report to its document: the systems, the choice, and what is not known.

The screen is shown what is needed to decide; `full` is everything, for sweep.md. Nothing is computed anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from raggs.base.jsontypes import Number
from raggs.base.text import plural
from raggs.evaluation.document import Cell, Document, Legend, Row, Section, Table, interval
from raggs.evaluation.models import ScorePart
from raggs.evaluation.words import inconclusive
from raggs.metrics.names import glossary
from raggs.sweeps.excerpts import TERMS
from raggs.sweeps.findings import findings
from raggs.sweeps.folding import best_first, fold, folded_sentence, mean
from raggs.sweeps.models import Plan, PlanLine, SweepReport, SystemRow
from raggs.sweeps.recut import cuts_section, span_columns
from raggs.sweeps.words import ms, usd

SHOWN = 12  # systems on the screen; files hold all
FIGURE = re.compile(r"[ :]*\d")
NAMED = 3  # systems that unjudged passages could put before the choice
MOST = 24  # of the front on the screen
BESIDE = "systems"  # in a plan's axes: single systems beside the grid
FRONT, CHOSEN, BOTH = "*", ">", ">*"
SIGNS = {
    BOTH: "the choice; it is on the front, as those with * are",
    CHOSEN: "the choice; under the limits, though without them another one beats it",
    FRONT: "on the front: no other system is as good, as fast and as cheap, and better in one of these",
}


def lay_out(report: SweepReport, *, full: bool = False) -> Document:
    """The document of a sweep.

    Args:
        full: with all systems and tables; else the front and the best of the others.
    """
    choice = report.choice
    sections = [Section("Which to ship", (choice.sentence,))]
    sections += [Section("What would change it", choice.changes)] if choice.changes else []
    sections += [Section("What the data cannot tell", (*choice.unknown, *rivals(report), *_unmeasured(report)))]
    sections += [each for each in (cuts_section(report),) if each]
    sections += findings(report, full)
    return Document(
        f"Sweep {report.name}",
        _systems(report, full),
        tuple(each for each in sections if each.sentences or each.table),
        (*report.left_out, *report.notes),
    )


def rivals(report: SweepReport) -> Iterator[str]:
    """The systems that unjudged passages could put before the choice, and what has these judged."""
    found, target = report.choice.inconclusive, report.choice.limits.get("quality")
    for name, part in [*found.items()][:NAMED]:
        what = f"is better than {report.choice.winner}"
        if target is not None and (
            name == report.choice.winner or mean(report.system(name), report.quality[0]) < target
        ):
            what = f"reaches {report.quality[0]} of {target:.3f}"
        yield f"Whether {name} {what} is {inconclusive(part)}."
    if len(found) > NAMED:
        yield f"The same holds for {len(found) - NAMED} more systems."
    yield from dict.fromkeys(f"Next: {part.remedy}." for part in found.values())


def _unmeasured(report: SweepReport) -> Iterator[str]:
    if all(row.latency.total is None for row in report.systems):
        yield "How long a question waits: nothing was timed"
    if all(row.cost is None or row.cost.total is None for row in report.systems):
        yield "What a question costs: no price is known"


def _systems(report: SweepReport, full: bool) -> Section:
    ordered = best_first(report)
    folded = {} if full else fold(report, ordered)
    lines = [row for row in ordered if row.name not in folded]
    shown = lines if full else _shown(report, lines)
    told = [
        f"{plural(len(ordered), 'system')} on {plural(report.questions, 'question')}, best {report.quality[0]} first"
    ]
    if folded:
        told.append(folded_sentence(report, folded))
    if len(shown) < len(lines):
        beyond = sum(row.name in report.front for row in lines) - sum(row.name in report.front for row in shown)
        which = f"{beyond} of them on the front" if beyond else "none of them on the front"
        told.append(f"{len(lines) - len(shown):,} more, {which}, in sweep.md and sweep.csv")
    free = _free(report)
    if free:
        told.append("no system costs anything: no provider is asked, and `prices` names no generator")
    read = span_columns(report) if report.cuts else ()
    columns = ["p50", *(() if free else ("per 1,000",)), *read, *report.quality[1:], "p95", *_holes(report)]
    if full:
        columns = [*report.quality[1:], *read, "p50", "p95", "per 1,000", *_holes(report)]
    best = {measure: max(mean(each, measure) for each in report.systems) for measure in (*report.quality, *read)}
    rows = tuple(_row(report, row, columns, best, full) for row in shown)
    table = Table(("system", report.quality[0], *columns), rows)
    return Section("Systems", tuple(told), table, (), _terms(report, shown, columns))


def _shown(report: SweepReport, lines: Sequence[SystemRow]) -> list[SystemRow]:
    """The choice, the front, and the best of the others; in their order."""
    front = [row.name for row in lines if row.name in report.front][:MOST]
    asked = {*front, report.choice.winner}
    rest = [row.name for row in lines if row.name not in asked and row.name not in report.front]
    kept = {*asked, *rest[: max(0, SHOWN - sum(row.name in asked for row in lines))]}
    return [row for row in lines if row.name in kept]


def _free(report: SweepReport) -> bool:
    return all(row.cost is not None and row.cost.total == 0 for row in report.systems)


def _holes(report: SweepReport) -> tuple[str, ...]:
    first = str(report.cutoffs[0])
    return (f"unjudged@{first}",) if any(row.holes.get(first) for row in report.systems) else ()


def _sign(report: SweepReport, row: SystemRow) -> str:
    chosen, front = row.name == report.choice.winner, row.name in report.front
    return BOTH if chosen and front else CHOSEN if chosen else FRONT if front else ""


def _terms(report: SweepReport, shown: Sequence[SystemRow], columns: Sequence[str]) -> tuple[Legend, ...]:
    """What the signs and titles mean that are there."""
    signs = {_sign(report, row) for row in shown}
    first = report.cutoffs[0]
    titles = {
        "p50": "median over queries, of each query the median of its rounds: the usual wait before generation",
        "p95": "95% of all single searches, over all queries and rounds, ended within that time; limits count by it",
        "per 1,000": "USD for 1,000 questions: embedding, reranking, and what the generator reads",
        f"unjudged@{first}": f"share of the first {first} that nobody graded; it counts as not relevant",
    }
    return (
        *(Legend(sign, text) for sign, text in SIGNS.items() if sign in signs),
        *(Legend(name, text) for name, text in glossary([*report.quality, *_measures(report, columns)]).items()),
        *(Legend(name, text) for name, text in TERMS.items() if _told(name, [*report.quality, *columns])),
        Legend("[ ]", f"{report.confidence:.0%} interval of the mean"),
        *(Legend(title, titles[title]) for title in columns if title in titles),
    )


def _told(name: str, titles: Sequence[str]) -> bool:
    return any(title.startswith(f"{name}@") for title in titles)


def _measures(report: SweepReport, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name in report.measures and name not in report.quality]


def _row(report: SweepReport, row: SystemRow, columns: Sequence[str], best: Mapping[str, float], full: bool) -> Row:
    sign = _sign(report, row)
    total, cost = row.latency.total, row.cost
    hole = row.holes.get(str(report.cutoffs[0]))
    figures = {
        "p50": Cell(None if total is None else ms(total.p50)),
        "p95": Cell(None if total is None else ms(total.p95)),
        "per 1,000": Cell(None if cost is None or cost.total is None else usd(cost.total)),
        f"unjudged@{report.cutoffs[0]}": Cell(None if hole is None else f"{hole:.0%}"),
        **{measure: _score(row.scores.get(measure), value, full) for measure, value in best.items()},
    }
    first = _score(row.scores.get(report.quality[0]), best[report.quality[0]], ranged=True)
    name = Cell(f"{sign} {row.name}" if full and sign else f"{sign:<2} {row.name}" if not full else row.name)
    return name, first, *(figures[column] for column in columns)


def _score(score: ScorePart | None, best: float, ranged: bool) -> Cell:
    if score is None or score.mean is None:
        return Cell(None)
    return Cell(score.mean, "score", "", interval(score.low, score.high) if ranged else (), score.mean == best)


# --- a dry run ------------------------------------------------------------------------------------------------


def lay_out_plan(plan: Plan) -> Document:
    """The document of a dry run: how many systems of what, and what is to be paid."""
    left = plan.lists - plan.kept
    sentences = [
        f"{plural(len(plan.systems), 'system')} on {plural(plan.questions, 'question')} and "
        f"{plural(plan.passages, 'passage')}{f' in {plan.cuts} cuts' if plan.cuts > 1 else ''}; "
        + (f"lists of {plan.kept:,} are kept from before, {left:,} are to be made" if plan.kept else "none is made yet")
    ]
    return Document(
        f"Plan of {plan.name}",
        _grid(plan, sentences),
        (Section("To pay", (_money(plan),), _bill(plan)),),
        plan.left_out,
    )


def _grid(plan: Plan, sentences: Sequence[str]) -> Section:
    """The systems: by their names where they are few, else by the levels of each axis."""
    if len(plan.systems) <= SHOWN or not plan.axes:
        return Section("Systems", tuple(sentences), Table(("system",), tuple((Cell(name),) for name in plan.systems)))
    varied = {axis: levels for axis, levels in plan.axes.items() if len(levels) > 1 or axis == BESIDE}
    fixed = ", ".join(f"{axis} {levels[0]}" for axis, levels in plan.axes.items() if axis not in varied)
    rows = tuple((Cell(axis), Cell(", ".join(levels))) for axis, levels in varied.items())
    said = (*sentences, f"all with {fixed}") if fixed else tuple(sentences)
    return Section("Systems", said, Table(("axis", "levels"), rows))


def _bill(plan: Plan) -> Table | None:
    """What is paid for; many parts are a line for each kind and model."""
    by_kind: dict[tuple[str, str], list[PlanLine]] = {}
    for line in plan.paid:
        kind = line.what if len(plan.paid) <= SHOWN else FIGURE.split(line.what)[0]
        by_kind.setdefault((kind, line.model), []).append(line)
    rows = tuple(
        (
            Cell(kind if len(lines) == 1 else f"{kind}, {len(lines)} times"),
            Cell(model),
            Cell(f"{sum(line.calls for line in lines):,}"),
            Cell(f"{sum(line.tokens for line in lines):,}"),
            Cell(_sum([line.usd for line in lines])),
        )
        for (kind, model), lines in by_kind.items()
    )
    return Table(("part", "model", "calls", "tokens", "USD"), rows) if rows else None


def _sum(amounts: Sequence[Number]) -> str:
    return "unknown" if None in amounts else f"{sum(each or 0.0 for each in amounts):,.4f}"


def _money(plan: Plan) -> str:
    if not plan.paid:
        return "nothing to pay: no provider is asked, or all answers are kept"
    time = f"{plan.hours:.1f} hours" if plan.hours >= 1 else plural(max(1, round(plan.hours * 60)), "minute")
    if plan.usd is None:
        return f"unknown: name the models without a price under `prices`; some {time} of calls"
    return f"at most {usd(plan.usd)} (every candidate is read), some {time} of calls"
