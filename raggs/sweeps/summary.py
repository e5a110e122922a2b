"""The recommendation of a sweep: sentences and the table of the front, for the screen, sweep.md and the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from raggs.base.document import Cell, Legend, Section, Summary, Table, bounded
from raggs.base.text import plural
from raggs.evaluation.layout import shorten_name
from raggs.stats.resampling import MIN_CLAIM_QUERIES
from raggs.sweeps.comparing import best_first
from raggs.sweeps.deciding import BOOTSTRAP_DRAWS, candidate
from raggs.sweeps.messages import figures_text, ms, usd
from raggs.sweeps.models import SweepReport, SystemRow

MAX_ROWS = 6  # rows of the front
MAX_RIVALS = 3  # maximum number of systems named in addition to the recommended one
MAX_NAME_CHARS = 38
FRONT_MEANING = "front: no other system is at least as good, fast and cheap, and better in one of these"
DETAILS = "--details: all systems and measures, main effects, ceilings, memory, definitions"
FLAGS: Mapping[str, str] = {"latency_ms": "--slo", "usd_per_1k": "--max-usd-per-1k", "quality": "--target"}


@dataclass(frozen=True)
class BrokenLimit:
    """A limit that a system does not meet.

    Attributes:
        flag: the option that changes the limit.
        value: the system's value, with its unit; "unknown" if it is not known.
        limit: the limit, with its unit.
        needed: the value for the option with which the system meets the limit.
        excess: the distance from the limit, as a share of it; infinite if the value is not known.
    """

    flag: str
    value: str
    limit: str
    needed: str
    excess: float


def summarise_sweep(report: SweepReport, config: str, folder: str) -> Summary:
    """Return the default output of a sweep. Only sums of figures in the report are computed.

    Args:
        config: the file of the sweep, as it is typed in a command.
        folder: where the sweep is stored, as it is typed in a command.
    """
    nearest = _nearest(report)
    return Summary(
        headline=tuple(_headline(report, nearest, MAX_NAME_CHARS)),
        table=front_table(report, MAX_NAME_CHARS, *report.quality[1:]),
        legend=f"{FRONT_MEANING}; [ ] {report.confidence:.0%} interval",
        trust=tuple(_limits(report)),
        next=_next_command(report, config, folder, nearest),
        details=DETAILS,
    )


def recommend(report: SweepReport) -> Section:
    """Return the recommendation: which system, how certain and why, and the table of the front."""
    reason = list(_reason(report))
    sentences = (*_headline(report, _nearest(report), None), *reason)
    terms = (Legend("front", FRONT_MEANING.partition(": ")[2]), Legend("[ ]", f"{report.confidence:.0%} interval"))
    return Section("Recommendation", sentences, front_table(report), terms=terms)


def _reason(report: SweepReport) -> Iterator[str]:
    """Yield why the rules choose this system."""
    chosen, name = report.choice, report.choice.winner
    if name is None:
        return
    measure, limits = report.quality[0], chosen.limits
    held = [f"a p95 of {ms(limits['latency_ms'])}"] if "latency_ms" in limits else []
    held += [f"{usd(limits['usd_per_1k'])} per 1,000 queries"] if "usd_per_1k" in limits else []
    within = plural(len(report.systems), "system") + (f" within {' and '.join(held)}" if held else "")
    if "quality" in limits:
        reason = f"it is the fastest, then the cheapest, of {within} that reaches {measure} {limits['quality']:.3f}"
    elif chosen.best in (None, name):
        reason = f"it has the highest {measure} of {within}"
    else:
        reason = f"its {measure} is statistically tied with the highest ({chosen.best}) of {within}"
    yield f"Why {name}: {reason}.{' It is also the baseline of the sweep.' if name == report.baseline else ''}"


def chosen_share(report: SweepReport) -> float | None:
    """Return the share of resamples in which the choice, or a system tied with it, is chosen; None if not computed."""
    alike = {report.choice.winner, *report.choice.tied}
    return sum(part.share for part in report.wins if part.system in alike) if report.wins else None


def is_separated(report: SweepReport) -> bool:
    """Return whether the data separate the choice from the systems that are not tied with it."""
    share = chosen_share(report)
    return share is not None and share >= report.confidence


def _headline(
    report: SweepReport, nearest: tuple[SystemRow, Sequence[BrokenLimit]] | None, chars: int | None
) -> Iterator[str]:
    def short(name: str) -> str:
        return _shorten(name, chars)

    name = report.choice.winner
    if name is None:
        yield "No system meets the limits." if report.systems else "No system was measured."
        if nearest is not None:
            row, broken = nearest
            told = " and ".join(f"{each.value} (limit {each.limit})" for each in broken)
            yield f"Nearest: {short(row.name)} with {told}. Change {' and '.join(each.flag for each in broken)}."
        return
    found = candidate(report.system(name), report.quality)
    figures = (
        "" if found is None or chars is None else f" ({figures_text(found, report.quality[0])})"
    )  # else in the table
    if is_separated(report):
        weak = f" (few queries: {report.questions})" if report.questions < MIN_CLAIM_QUERIES else ""
        yield f"Recommended{' for now' if report.choice.inconclusive else weak}: {short(name)}{figures}."
        yield from _tied_sentence(report, report.system(name), chars)
        return
    share = chosen_share(report)
    others = [each for each in report.choice.tied if each != name]
    often = "" if share is None else f" is chosen in {share:.0%} of {BOOTSTRAP_DRAWS:,} resamples of the queries"
    yield f"No single best configuration: {short(name)}{figures}{' or a tied one' if others else ''}{often}."
    if rivals := [*map(short, others), *_rivals(report, chars)]:
        yield f"Statistically tied: {_listed(rivals)}."


def _rivals(report: SweepReport, chars: int | None) -> Iterator[str]:
    """Yield the systems that are chosen in nearly all resamples, together with the choice, each with its share of the
    resamples.
    """
    total = chosen_share(report) or 0.0
    for part in report.wins:
        if part.system not in (report.choice.winner, *report.choice.tied) and total < report.confidence:
            total += part.share
            yield f"{_shorten(part.system, chars)} ({part.share:.0%})"


def _tied_sentence(report: SweepReport, winner: SystemRow, chars: int | None) -> Iterator[str]:
    """Yield a sentence on systems that are statistically tied with the recommended one, and whether they are cheaper
    or faster.
    """
    others = [row for row in report.systems if row.name in report.choice.tied and row.name != winner.name]
    cheaper = [row.name for row in others if _is_less(row.price, winner.price)]
    faster = [row.name for row in others if row.name not in cheaper and _is_less(row.p95, winner.p95)]
    rest = [row.name for row in others if row.name not in (*cheaper, *faster)]
    parts = [
        f"{_listed([_shorten(name, chars) for name in names])}{word}"
        for names, word in ((cheaper, " (cheaper)"), (faster, " (faster)"), (rest, ""))
        if names
    ]
    if parts:
        yield f"Statistically tied with it: {'; '.join(parts)}."


def _is_less(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one < other


def _nearest(report: SweepReport) -> tuple[SystemRow, Sequence[BrokenLimit]] | None:
    """Return the system that misses the limits by the smallest share, and the limits that it misses. Return None if a
    system meets all limits, or if no such share is known.
    """
    if report.choice.winner is not None:
        return None
    found = [(row, broken) for row in report.systems if (broken := list(_broken_limits(report, row)))]
    known = [(row, broken) for row, broken in found if all(math.isfinite(each.excess) for each in broken)]
    return min(known, key=lambda pair: (max(each.excess for each in pair[1]), pair[0].name)) if known else None


def _broken_limits(report: SweepReport, row: SystemRow) -> Iterator[BrokenLimit]:
    score = row.scores.get(report.quality[0])
    values = {"latency_ms": row.p95, "usd_per_1k": row.price, "quality": None if score is None else score.mean}
    for name, limit in report.choice.limits.items():
        value = values[name]
        if value is None:
            yield BrokenLimit(FLAGS[name], "unknown", "", "", math.inf)
        elif (value < limit) if name == "quality" else (value > limit):
            excess = abs(value - limit) / limit if limit else math.inf if value == 0 else abs(value)
            yield BrokenLimit(FLAGS[name], *_texts(name, report.quality[0], value, limit), excess)


def _texts(name: str, measure: str, value: float, limit: float) -> tuple[str, str, str]:
    """Return the value, the limit, and the value that the option needs, as text."""
    if name == "latency_ms":
        return f"p95 {ms(value)}", ms(limit), f"{_round_up(value):g}ms"
    if name == "usd_per_1k":
        return f"{usd(value)} per 1,000 queries", usd(limit), f"{_round_up(value):g}"
    return f"{measure} {value:.3f}", f"{limit:.3f}", f"{math.floor(1000 * value) / 1000:g}"


def _round_up(value: float) -> float:
    """Return the value rounded up to two significant digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1) if value > 0 else 1.0
    return math.ceil(round(value / step, 6)) * step


def front_table(report: SweepReport, chars: int | None = None, *others: str) -> Table | None:
    """Return up to `MAX_ROWS` systems on the front, the chosen one first and marked, then the best; None if no system
    was measured.

    Args:
        chars: maximum length of a name; None: names are not shortened.
        others: further measures, as last columns.
    """
    first, chosen = report.quality[0], report.choice.winner
    found = [row for row in best_first(report) if row.name in report.front or row.name == chosen]
    rows = sorted(found, key=lambda row: row.name != chosen)
    timed = any(row.p95 is not None for row in rows)
    priced = any(row.price for row in rows)
    title = "choice and front" + (f" ({MAX_ROWS} of {len(rows)})" if len(rows) > MAX_ROWS else "")
    head = [title, first, *(["p95"] if timed else []), *(["per 1,000"] if priced else []), *others]
    mark = " (recommended)" if is_separated(report) else " (chosen)"
    lines = []
    for row in rows[:MAX_ROWS]:
        score, is_chosen = row.scores[first], row.name == chosen
        more = [row.scores[name].mean for name in others]
        lines.append(
            [
                Cell(_shorten(row.name, chars) + mark * is_chosen, best=is_chosen),
                bounded(score.mean, score.low, score.high),
                *([Cell(None if row.p95 is None else ms(row.p95))] if timed else []),
                *([Cell(None if row.price is None else usd(row.price))] if priced else []),
                *(Cell(mean, "score") for mean in more),
            ]
        )
    return Table.of(head, lines)


def _limits(report: SweepReport) -> Iterator[str]:
    """Yield sentences on the limits of the data for this choice."""
    share = chosen_share(report)
    if report.choice.winner is not None and is_separated(report) and share is not None:
        claim = f"; a claim needs {MIN_CLAIM_QUERIES} queries" if report.questions < MIN_CLAIM_QUERIES else ""
        drawn = f"{BOOTSTRAP_DRAWS:,} resamples of {plural(report.questions, 'query')}"
        yield f"The recommended or a tied system is chosen in {share:.0%} of {drawn}{claim}."
    k = str(report.cutoffs[0])
    most = max((row.holes.get(k) or 0.0 for row in report.systems), default=0.0)
    if most:
        rivals = [name for name in report.choice.inconclusive if name != report.choice.winner]
        could = f"; they could put {plural(len(rivals), 'other system')} first" if rivals else ""
        yield f"Unjudged passages in the top {k}: up to {_percent(most)} per system{could}."
    if any(row.projection is not None for row in report.systems):
        yield "Systems with other chunks are scored by projected grades."
    if all(row.latency.total is None for row in report.systems):
        yield "Latency was not measured."
    if all(row.price is None for row in report.systems):
        yield "No price is known."


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else f"{share:.2%}"


def _next_command(
    report: SweepReport, config: str, folder: str, nearest: tuple[SystemRow, Sequence[BrokenLimit]] | None
) -> str:
    command = f"raggs sweep --config {config}"
    if nearest is not None:
        return f"{command} {' '.join(f'{each.flag} {each.needed}' for each in nearest[1])}"
    if any("--judge-holes" in part.remedy for part in report.choice.inconclusive.values()):
        return f"{command} --judge-holes"
    return f"raggs report {quote(report.golden.source)} --sweep {folder}"


def _shorten(name: str, chars: int | None) -> str:
    return name if chars is None else shorten_name(name, chars)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_RIVALS} more" if len(names) > MAX_RIVALS else ""
    return ", ".join(names[:MAX_RIVALS]) + more
