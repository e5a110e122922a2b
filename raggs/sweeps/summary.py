"""The recommendation of a sweep: sentences and the table of the front, for the screen, sweep.md and the report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from shlex import quote

from raggs.base.document import Cell, Legend, Section, Summary, Table, bounded
from raggs.base.text import plural
from raggs.base.types import Number
from raggs.evaluation.layout import shorten_name
from raggs.stats.resampling import MIN_CLAIM_QUERIES
from raggs.sweeps.comparing import best_first
from raggs.sweeps.deciding import BOOTSTRAP_DRAWS, candidate
from raggs.sweeps.grid import axes_in_names, system_name
from raggs.sweeps.messages import OF_RUN, equal_names, figures_text, judging_command, ms, usd
from raggs.sweeps.models import SweepReport, SystemRow

MAX_ROWS = 6  # rows of the front
MAX_RIVALS = 3  # maximum number of systems named in addition to the recommended one
MAX_NAME_CHARS = 38
FRONT_MEANING = "front: no other system is at least as good, fast (p50) and cheap, and better in one of these"
SIGN = "> "  # marks the chosen system on the screen
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
        legend=f"{FRONT_MEANING}; {SIGN}{_chosen_word(report)}; [ ] {report.confidence:.0%} interval",
        trust=tuple(_limits(report)),
        next=_next_command(report, config, folder, nearest),
        details=DETAILS,
    )


def recommend(report: SweepReport) -> Section:
    """Return the recommendation: which system, how certain and why, and the table of the front."""
    reason = list(_reason(report))
    sentences = (*_headline(report, _nearest(report), None), *reason)
    terms = [Legend("front", FRONT_MEANING.partition(": ")[2]), Legend("[ ]", f"{report.confidence:.0%} interval")]
    terms += _meaning_of_names(report)
    return Section("Recommendation", sentences, front_table(report), terms=tuple(terms))


def _meaning_of_names(report: SweepReport) -> Iterator[Legend]:
    """Yield the settings that the longest name of a system lists, in their order, if raggs named the systems."""
    levels = {pair for row in report.systems for pair in row.levels.items()}
    varied = {axis for axis, count in Counter(axis for axis, _ in levels).items() if count > 1}
    named = [(axes_in_names(row.levels, varied), row) for row in report.systems]
    axes, longest = max(named, key=lambda pair: len(pair[0]), default=([], None))
    if longest is not None and longest.name == system_name(longest.levels, axes):
        unused = "; none: without it" if any((axis, "none") in levels for axis in axes) else ""
        listed = " + ".join("k candidates" if axis == "k" else axis for axis in axes)
        yield Legend("names of systems", f"{listed}{unused}")


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
        reason = f"its {measure} is equivalent to the highest ({chosen.best}) of {within}"
    baseline = " It is also the baseline of the sweep." if name == report.baseline else ""
    yield f"Why {system_names(report)[name]}: {reason}.{baseline}"
    if not is_separated(report):
        yield from _advantages(report)


def _advantages(report: SweepReport) -> Iterator[str]:
    """Yield which of the systems that the data do not separate is the fastest, and which is the cheapest."""
    names = system_names(report)
    alike = (report.choice.winner or "", *report.choice.tied)
    tied = {*(names.get(each, each) for each in alike), *_rival_shares(report, names)}
    rows = {names[row.name]: row for row in best_first(report) if names[row.name] in tied}
    timed = [(row.p95, name) for name, row in rows.items() if row.p95 is not None]
    priced = [(row.price, name) for name, row in rows.items() if row.price is not None]
    said: dict[str, list[str]] = {}  # by system
    if len(timed) > 1:
        said.setdefault(min(timed)[1], []).append(f"the fastest (p95 {ms(min(timed)[0])})")
    if len({usd(price) for price, _ in priced}) > 1:
        said.setdefault(min(priced)[1], []).append(f"the cheapest ({usd(min(priced)[0])} per 1,000 queries)")
    if said:
        told = [f"{name} is {' and '.join(words)}" for name, words in said.items()]
        yield f"Of the tied systems, {' and '.join(told)}."


def system_names(report: SweepReport) -> dict[str, str]:
    """Return by system one name for all systems with the same score, p95 and cost."""
    return equal_names((row.name, _figures(report, row)) for row in report.systems)


def _figures(report: SweepReport, row: SystemRow) -> tuple[Number, Number, Number]:
    score = row.scores.get(report.quality[0])
    return (None if score is None else score.mean, row.p95, row.price)


def chosen_share(report: SweepReport) -> float | None:
    """Return the share of resamples in which the choice, or a system equivalent to it, is chosen; None if not
    computed.
    """
    alike = {report.choice.winner, *report.choice.tied}
    return sum(part.share for part in report.wins if part.system in alike) if report.wins else None


def is_separated(report: SweepReport) -> bool:
    """Return whether the choice, or a system equivalent to it, is chosen in nearly all resamples."""
    share = chosen_share(report)
    return share is not None and share >= report.confidence


def _headline(
    report: SweepReport, nearest: tuple[SystemRow, Sequence[BrokenLimit]] | None, chars: int | None
) -> Iterator[str]:
    names = system_names(report)

    def short(name: str) -> str:
        return _shorten(names.get(name, name), chars)

    name = report.choice.winner
    if name is None:
        yield "No system meets the limits." if report.systems else "No system was measured."
        if nearest is not None:
            row, broken = nearest
            told = " and ".join(f"{each.value} (limit {each.limit})" for each in broken)
            yield f"Nearest: {short(row.name)} with {told}. Change {' and '.join(each.flag for each in broken)}."
        return
    found = candidate(report.system(name), report.quality)
    # if names are not shortened, the figures are in the table
    figures = "" if found is None or chars is None else f" ({figures_text(found, report.quality[0])})"
    if is_separated(report):
        weak = f" (few queries: {report.questions})" if report.questions < MIN_CLAIM_QUERIES else ""
        yield f"Recommended{' for now' if report.choice.inconclusive else weak}: {short(name)}{figures}."
        yield from _tied_sentence(report, report.system(name), chars)
        return
    share = chosen_share(report)
    others = [*dict.fromkeys(names.get(each, each) for each in (name, *report.choice.tied))][1:]
    often = "" if share is None else f" is chosen in {share:.0%} of {BOOTSTRAP_DRAWS:,} resamples of the queries"
    yield f"No single best configuration: {short(name)}{figures}{' or an equivalent one' if others else ''}{often}."
    if others:
        yield f"Equivalent to it: {_listed([*map(short, others)])}."
    if rivals := [*_rivals(report, names, chars)]:
        yield f"Statistically tied: {_listed(rivals)}."


def _rivals(report: SweepReport, names: Mapping[str, str], chars: int | None) -> Iterator[str]:
    """Yield the systems that are chosen most often after the choice, with their shares of the resamples. Stop when all
    shares sum to the confidence. Equal systems count as one.
    """
    for name, share in _rival_shares(report, names).items():
        yield f"{_shorten(name, chars)} ({share:.0%})"


def _rival_shares(report: SweepReport, names: Mapping[str, str]) -> dict[str, float]:
    total, shares = chosen_share(report) or 0.0, dict[str, float]()
    for part in report.wins:
        if part.system not in (report.choice.winner, *report.choice.tied):
            name = names.get(part.system, part.system)
            shares[name] = shares.get(name, 0.0) + part.share
    found: dict[str, float] = {}
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        if total < report.confidence:
            total += share
            found[name] = share
    return found


def _tied_sentence(report: SweepReport, winner: SystemRow, chars: int | None) -> Iterator[str]:
    """Yield a sentence on systems that are equivalent to the recommended one, and whether they are cheaper or
    faster.
    """
    names = system_names(report)
    tied = [row for row in report.systems if row.name in report.choice.tied and names[row.name] != names[winner.name]]
    others = list({names[row.name]: row for row in tied}.values())
    cheaper = [row.name for row in others if _is_less(row.price, winner.price)]
    faster = [row.name for row in others if row.name not in cheaper and _is_less(row.p95, winner.p95)]
    rest = [row.name for row in others if row.name not in (*cheaper, *faster)]
    parts = [
        f"{_listed([_shorten(names[name], chars) for name in found])}{word}"
        for found, word in ((cheaper, " (cheaper)"), (faster, " (faster)"), (rest, ""))
        if found
    ]
    if parts:
        yield f"Equivalent to it: {'; '.join(parts)}."


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
        chars: maximum length of a name on the screen, where a sign marks the chosen system, and one column has both
            latencies. If None, names are not shortened.
        others: further measures, as last columns.
    """
    first, chosen = report.quality[0], report.choice.winner
    found = [row for row in best_first(report) if row.name in report.front or row.name == chosen]
    names = equal_names((row.name, _shown_figures(report, row, others)) for row in report.systems)
    first_rows: dict[str, SystemRow] = {}  # equal systems are one row
    for row in sorted(found, key=lambda row: row.name != chosen):
        first_rows.setdefault(names[row.name], row)
    rows = [*first_rows.values()]
    more_digits = int(_looks_dominated(report, rows))
    timed = any(row.p95 is not None for row in rows)
    priced = any(row.price for row in rows)
    title = "choice and front" + (f" ({MAX_ROWS} of {len(rows)})" if len(rows) > MAX_ROWS else "")
    latencies = () if not timed else ("p95", "p50") if chars is None else ("p95 (p50) ms",)
    head = [title, first, *latencies, *(["per 1,000"] if priced else []), *others]
    sign, mark = ("", f" ({_chosen_word(report)})") if chars is None else (SIGN, "")
    lines = []
    for row in rows[:MAX_ROWS]:
        score, is_chosen = row.scores[first], row.name == chosen
        more = [row.scores[name].mean for name in others]
        lines.append(
            [
                Cell(sign * is_chosen + _shorten(names[row.name], chars) + mark * is_chosen, best=is_chosen),
                bounded(score.mean, score.low, score.high),
                *([Cell(text) for text in _latency_texts(row, more_digits, len(latencies))]),
                *([Cell(None if row.price is None else usd(row.price, more_digits))] if priced else []),
                *(Cell(mean, "score") for mean in more),
            ]
        )
    return Table.of(head, lines)


def _chosen_word(report: SweepReport) -> str:
    return "recommended" if is_separated(report) else "chosen"


def _latency_texts(row: SystemRow, more_digits: int, columns: int) -> tuple[str | None, ...]:
    """Return p95, which limits apply to, and p50, which decides the front, in one or two columns."""
    p95, p50 = (None if each is None else ms(each, more_digits) for each in (row.p95, row.p50))
    if columns == 1 and p95 is not None and p50 is not None:
        return (f"{p95.removesuffix(' ms')} ({p50.removesuffix(' ms')})",)
    return (p95, p50)[:columns]


def _shown_figures(report: SweepReport, row: SystemRow, others: Sequence[str]) -> Hashable:
    return (_figures(report, row), tuple(row.scores[name].mean if name in row.scores else None for name in others))


def _looks_dominated(report: SweepReport, rows: Iterable[SystemRow]) -> bool:
    """Return whether, with the usual digits, another row looks at least as good, fast and cheap as one on the front."""

    def shown(row: SystemRow) -> tuple[float, float, float]:
        score, _, price = _figures(report, row)
        texts = (ms(row.p50 or 0.0).removesuffix(" ms"), usd(price or 0.0).removeprefix("$"))
        slow, dear = (float(text.replace(",", "")) for text in texts)
        return (-round(score or 0.0, 3), slow, dear)

    found = {_figures(report, row): (row.name in report.front, shown(row)) for row in rows}.values()
    pairs = permutations(found, 2)
    return any(kept and all(a <= b for a, b in zip(other, own, strict=True)) for (kept, own), (_, other) in pairs)


def _limits(report: SweepReport) -> Iterator[str]:
    """Yield sentences on the limits of the data for this choice."""
    share = chosen_share(report)
    if report.choice.winner is not None and is_separated(report) and share is not None:
        claim = f"; a claim needs {MIN_CLAIM_QUERIES} queries" if report.questions < MIN_CLAIM_QUERIES else ""
        drawn = f"{BOOTSTRAP_DRAWS:,} resamples of {plural(report.questions, 'query')}"
        yield f"The recommended or an equivalent system is chosen in {share:.0%} of {drawn}{claim}."
    k = str(report.cutoffs[0])
    most = max((row.holes.get(k) or 0.0 for row in report.systems), default=0.0)
    if most:
        names = system_names(report)
        rivals = {names.get(name, name) for name in report.choice.inconclusive} - {
            names.get(report.choice.winner or "")
        }
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


def needs_judging(report: SweepReport) -> bool:
    """Return whether `judging_command` could change the choice."""
    return any(part.remedy == OF_RUN for part in report.choice.inconclusive.values())


def _next_command(
    report: SweepReport, config: str, folder: str, nearest: tuple[SystemRow, Sequence[BrokenLimit]] | None
) -> str:
    command = f"raggs sweep --config {config}"
    if nearest is not None:
        return f"{command} {' '.join(f'{each.flag} {each.needed}' for each in nearest[1])}"
    if needs_judging(report):
        return judging_command(config)
    return f"raggs report {quote(report.golden.source)} --sweep {folder}"


def _shorten(name: str, chars: int | None) -> str:
    return name if chars is None else shorten_name(name, chars)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_RIVALS} more" if len(names) > MAX_RIVALS else ""
    return ", ".join(names[:MAX_RIVALS]) + more


def speed_and_cost(one: SystemRow, other: SystemRow, jitter: float) -> Iterator[str]:
    """Yield how a system differs from another one in latency and cost: predicates of a sentence.

    Args:
        one: the system that the sentence is about.
        other: the system that it is compared with.
        jitter: latency differences below this many milliseconds count as equal.
    """
    slower = (one.p95 or 0.0) - (other.p95 or 0.0)
    if one.p95 is not None and other.p95 is not None and slower and abs(slower) >= jitter:
        yield f"is {'slower' if slower > 0 else 'faster'} (p95 {ms(one.p95)}, not {ms(other.p95)})"
    if one.price and other.price and usd(one.price) != usd(other.price):  # local models cost nothing
        dear = "more expensive" if one.price > other.price else "cheaper"
        yield f"is {dear} ({usd(one.price)}, not {usd(other.price)} per 1,000 queries)"
