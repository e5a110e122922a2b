"""The default output of `raggs diff` and `raggs compare`: a headline, one table, and the next command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from pydantic import JsonValue

from raggs.app.diff import format_setting, format_share
from raggs.base.document import Cell, Column, Summary, Table, table_of
from raggs.base.text import plural, shorten
from raggs.evaluation.diff_results import RunsReport
from raggs.evaluation.diff_sets import DecisionsPart, DiffReport, EstimatePart, ScoreDiffPart, VerdictPart
from raggs.evaluation.layout import shorten_name
from raggs.evaluation.messages import verdict_word

MAX_FLIPS = 3  # number of flipped verdicts that get a sentence each
MAX_ROWS = 8
MAX_VALUE_CHARS = 16
MAX_NAMED = 6  # maximum number of settings or stages in a sentence
DIFF_DETAILS = "--details: all measures, grades, orders, queries, coverage, cost and settings"
RUNS_DETAILS = "--details: all settings in full, reasons, calls and cost per stage"


def summarise_diff(report: DiffReport, digits: int = 3) -> Summary:
    """Return the default output of a comparison of two golden sets.

    Args:
        digits: decimals of differences in sentences.
    """
    found = report.decisions
    scored = found is not None and bool(found.systems)
    rows = [] if found is None else [each for each in found.scores if each.measure == found.measures[0]]
    both_runs = report.old.corpus is not None and report.new.corpus is not None and bool(report.coverage)
    old, new = quote(report.old.source), quote(report.new.source)
    return Summary(
        headline=tuple(_flips(found, digits)) if found is not None and scored else tuple(_unscored(report)),
        table=_scores(rows[:MAX_ROWS]) if rows else _counts(report),
        legend=f"{found.measures[0]} with each set" if found is not None and rows else "",
        trust=tuple(_changes(report)),
        next=f"raggs compare {old} {new}" if both_runs and report.settings else f"raggs diff {old} {new} --out diff",
        details=DIFF_DETAILS,
        warnings=report.warnings if scored else (),
    )


def _flips(found: DecisionsPart, digits: int) -> Iterator[str]:
    total, flips = len(found.verdicts), found.flips
    if not total:
        yield "Only one system is scored, so there is no verdict to compare."
        return
    if not flips:
        yield f"No verdict flips: {plural(total, 'comparison')} of {plural(len(found.systems), 'system')} agree."
        return
    yield f"{len(flips)} of {plural(total, 'verdict')} flip{'s' if len(flips) == 1 else ''}."
    yield from (flip_sentence(each, digits) for each in flips[:MAX_FLIPS])


def flip_sentence(each: VerdictPart, digits: int) -> str:
    """Return how one verdict changes: ``a against b on mrr: better (0.500) in OLD, worse (-0.500) in NEW.``"""
    first, second = shorten_name(each.first), shorten_name(each.second)
    old = f"{verdict_word(each.old)} ({_difference(each.old_difference, digits)})"
    new = f"{verdict_word(each.new)} ({_difference(each.new_difference, digits)})"
    if each.old == "inconclusive" and each.new == "unjudged":
        new = f"inconclusive, as {each.new_unjudged}"
    return f"{first} against {second} on {each.measure}: {old} in OLD, {new} in NEW."


def _difference(found: EstimatePart, digits: int) -> str:
    return "undefined" if found.value is None else f"{found.value:+z.{digits}f}"


def _unscored(report: DiffReport) -> Iterator[str]:
    if report.same:
        yield "Both sets contain the same judgments."
    elif report.grades is not None:
        moved = report.grades.up + report.grades.down
        yield f"{moved:,} of {plural(report.grades.compared, 'shared grade')} differ."
    yield "No system is scored with both sets: name run files with --run."


def _scores(rows: Sequence[ScoreDiffPart]) -> Table | None:
    change = (Column("difference", "signed"), lambda row: None if None in (row.old, row.new) else row.new - row.old)
    name = (Column("system"), lambda row: shorten_name(row.system))
    return table_of(rows, name, "old", "new", change)


def _counts(report: DiffReport) -> Table | None:
    sides = ((report.old.queries, report.new.queries), (report.old.judgments, report.new.judgments))
    rows = [(name, *map(str, pair)) for name, pair in zip(("queries", "judgments"), sides, strict=True)]
    return Table.of(("figure", "OLD", "NEW"), rows)


def _changes(report: DiffReport) -> Iterator[str]:
    """Yield sentences on versions, changed grades, orders and content, and on missing parts."""
    old, new, grades, orders = report.old, report.new, report.grades, report.orders
    yield from (f"{word}: {side.version}." for word, side in (("OLD", old), ("NEW", new)) if side.version is not None)
    if report.same:
        yield "Both sets contain the same judgments."
    elif grades is None:
        yield "Grades cannot be compared: the sets share no judgment, or use different scales."
    else:
        moved = grades.up + grades.down
        share = format_share(moved, grades.compared)
        changed = f"{moved:,} shared with another grade ({share})"
        yield f"Judgments: {old.judgments:,} in OLD, {new.judgments:,} in NEW; {changed}."
    if orders is not None and orders.tested:
        yield f"Orders: {orders.beyond} of {plural(orders.tested, 'query')} changed beyond their stated uncertainty."
    parts = [
        f"{plural(len(found), name)} {word}"
        for name, part in (("query", report.questions), ("passage", report.passages))
        for word, found in (("added", part.added), ("removed", part.removed), ("changed", part.changed))
        if found
    ]
    if parts:
        yield f"Content: {', '.join(parts)}."
    for word, side in (("OLD", old), ("NEW", new)):
        if side.lacks:
            yield f"{word} is incomplete: {side.lacks}"


def summarise_runs(report: RunsReport) -> Summary:
    """Return the default output of a comparison of two runs. Nothing is computed."""
    ordered = sorted(report.settings, key=lambda part: not part.counts)
    rows = (
        (
            shorten_name(part.name, 28),
            *(_short_value(part.old if old else part.new, part.change == absent) for old, absent in SIDES),
            "yes" if part.counts else "no",
        )
        for part in ordered[:MAX_ROWS]
    )
    more = len(ordered) - MAX_ROWS
    sums = (
        f"{name}: {plural(each.calls, 'call')}, ${each.usd:.4f}" for name, each in zip("AB", report.total, strict=True)
    )
    first, second = report.first, report.second
    return Summary(
        headline=tuple(_runs_headline(report)),
        table=Table.of(("setting", "A", "B", "affects results"), rows),
        legend=f"A: {first}; B: {second}" + (f"; {more} more settings differ" if more > 0 else ""),
        trust=(f"Cost of {'; '.join(sums)}.",),
        next=f"raggs diff {quote(first)} {quote(second)}",
        details=RUNS_DETAILS,
    )


# (whether the side is A, change of a setting that this side lacks): A lacks added settings, B lacks removed ones
SIDES = ((True, "added"), (False, "removed"))


def _short_value(value: JsonValue, absent: bool) -> Cell:
    return Cell(None if absent else shorten(format_setting(value), MAX_VALUE_CHARS))


def _runs_headline(report: RunsReport) -> Iterator[str]:
    count, affecting = len(report.settings), [part.name for part in report.settings if part.counts]
    if not count:
        yield "No setting differs."
    elif not affecting:
        yield (
            "1 setting differs; it does not affect results."
            if count == 1
            else (f"{count} settings differ; none of them affects results.")
        )
    else:
        verb = "affects" if len(affecting) == 1 else "affect"
        how = "1 setting differs and" if count == 1 else f"{count} settings differ, and {len(affecting)} of them"
        yield f"{how} {verb} results: {_listed(affecting)}."
    results = {
        "same": "Stages with the same results",
        "other": "Stages with different results",
        "one only": "Stages in only one run",
    }
    stages = {words: [part.stage for part in report.stages if part.result == kind] for kind, words in results.items()}
    yield " ".join(f"{words}: {', '.join(names)}." for words, names in stages.items() if names)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
