"""Sentences of a sweep: why a system is recommended, what would change the choice, and why others were excluded."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

from raggs.base.text import plural
from raggs.evaluation.models import UnjudgedPart
from raggs.stats.choice import Choice, Exclusion, LimitTurn
from raggs.stats.front import Candidate

MIN_SHOWN_CHANGE = 5e-5  # smallest change of quality visible with four decimals
MAX_SHOWN_EQUALS = 4
MAX_JOINED = 3  # systems in one name
BY_WAIT = "slower"  # used among equal systems, whose latencies differ by less than the jitter
WHOLE_MS, WHOLE_USD = (10.0, 1.0), (0.1, 0.01)  # (threshold, step) for rounding
WHOLE_RATIO = 100  # ratios of at least this value are shown as integers
NO_NAMES: Mapping[str, str] = {}
# how to get unjudged passages judged, if the golden set is a run of raggs, or a file of labels
OF_RUN = "raggs sweep --judge-holes has them judged"
OF_LABELS = (
    "judge them in a run of raggs: raggs run, with the sweep's lists as {type: runfile} under retrieve.retrievers"
)
RULES = {
    "quality": "has a lower {measure}",
    "slower": "is slower",
    "dearer": "costs more",
    "larger k": "is equivalent and needs more candidates",
    "more tokens": "is equivalent and sends more tokens",
    "less efficient": "is less efficient",
    "name": "is equal in everything measured",
    "dominated": "is not better in any respect, and worse in at least one",
    "tied, costlier": "is equivalent to a system that is cheaper or faster",
}

TIE_BREAKS = {
    "tied, costlier": "and cheaper or faster",
    "dominated": "and cheaper or faster",
    "larger k": "with fewer candidates",
    "more tokens": "with a shorter prompt",
    "less efficient": "and more efficient",
    "dearer": "and cheaper",
    "slower": "and faster",
    "name": "and first by name",
}


def judging_command(config: str) -> str:
    """Return the command that gets the unjudged passages of a sweep judged.

    Args:
        config: the file of the sweep, as it is typed in a command.
    """
    return f"raggs sweep --config {config} --judge-holes"


def next_step(part: UnjudgedPart, config: str | None) -> str:
    """Return how to get unjudged passages judged.

    Args:
        config: the file of the sweep, as it is typed in a command. If None, the text is empty if `judging_command`
            does it.
    """
    if part.remedy != OF_RUN:
        return part.remedy
    return "" if config is None else f"{judging_command(config)} has them judged"


def ms(value: float, more: int = 0) -> str:
    """Return milliseconds as text, with `more` further digits."""
    if value >= 0.995 * WHOLE_MS[0]:
        return f"{value:,.{more}f} ms"
    return f"{value:.{1 + more}f} ms" if value >= 0.995 else f"{value:.{2 + more}g} ms"


def usd(value: float, more: int = 0) -> str:
    """Return an amount in USD as text, with `more` further digits."""
    return f"${value:,.{2 + more}f}" if value >= WHOLE_USD[0] or value == 0 else f"${value:.{2 + more}g}"


def equal_names(figures: Iterable[tuple[str, Hashable]]) -> dict[str, str]:
    """Return by system one name for all systems with the same figures: `a+none, k20 or k50`."""
    groups: dict[Hashable, list[str]] = {}
    for name, found in figures:
        groups.setdefault(found, []).append(name)
    return {name: join_names(names) for names in groups.values() for name in names}


def join_names(names: Sequence[str]) -> str:
    """Return one name for several systems; what they have in common is stated once."""
    if len(names) > MAX_JOINED:
        return f"{names[0]} or {len(names) - 1} equal systems"
    parts = [name.split("+") for name in names]
    if len(names) > 1 and len({len(each) for each in parts}) == 1:
        columns = [list(dict.fromkeys(column)) for column in zip(*parts, strict=True)]
        common, varied = [each[0] for each in columns if len(each) == 1], [each for each in columns if len(each) > 1]
        if common and len(varied) == 1:
            return f"{'+'.join(common)}, {' or '.join(varied[0])}"
    return " or ".join(names)


def ms_change(value: float) -> str:
    """Format a change in milliseconds with its sign."""
    return f"{_sign(value)}{ms(abs(value))}"


def usd_change(value: float) -> str:
    """Format a change of USD per 1,000 queries with its sign."""
    return f"{_sign(value)}{usd(abs(value))}"


def change(value: float) -> str:
    """Format a change of quality with two significant digits."""
    return f"{value:+.2g}"


def byte_size(count: float) -> str:
    """Format bytes with a unit."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1000:
            return f"{count:,.3g} {unit}"
        count /= 1024
    return f"{count:,.3g} GiB"


def cut_time(seconds: float) -> str:
    """Format the duration of chunking."""
    return f"{seconds:,.1f} s" if seconds >= 1 else ms(1000 * seconds)


def per_second(ratio: float) -> str:
    """Return quality per second as text."""
    return f"{ratio:,.0f}" if ratio >= WHOLE_RATIO else f"{ratio:.3g}"


def _sign(value: float) -> str:
    return "+" if value > 0 else "-" if value < 0 else ""


def figures_text(each: Candidate, measure: str) -> str:
    """Return quality, latency and cost of a system."""
    parts = [f"{measure} {each.quality[0]:.3f}"]
    parts.append(_latency_text(each))
    parts.append("price unknown" if each.usd_per_1k is None else f"{usd(each.usd_per_1k)} per 1,000 queries")
    return ", ".join(parts)


def _latency_text(each: Candidate) -> str:
    if each.latency_ms is None:
        return "not timed"
    return ms(each.latency_ms) if each.tail_ms is None else f"p50 {ms(each.latency_ms)}, p95 {ms(each.tail_ms)}"


def choice_sentence(
    chosen: Choice,
    systems: int,
    measure: str,
    second: Candidate | None,
    equals: Sequence[str] = (),
    *,
    separated: bool = True,
) -> str:
    """Return which system is recommended, and the rule that chose it.

    Args:
        second: system that would be chosen without the winner and its `equals`.
        separated: whether the data separate the choice from the other systems.
    """
    if chosen.winner is None:
        return f"None of {plural(systems, 'system')} meets the limits." if systems else "No system was measured."
    held = [
        text
        for text, limit in (
            (f"a p95 of {ms(chosen.limits.latency_ms or 0)}", chosen.limits.latency_ms),
            (f"{usd(chosen.limits.usd_per_1k or 0)} per 1,000", chosen.limits.usd_per_1k),
            (f"{measure} of {chosen.limits.quality or 0:.3f}", chosen.limits.quality),
        )
        if limit is not None
    ]
    within = f" within {' and '.join(held)}" if held else ""
    allowed = systems - sum(each.bound is not None and each.by is None for each in chosen.excluded)
    rule = _rule(chosen, measure)
    after = "" if second is None else f" Next is {second.name} ({figures_text(second, measure)})."
    lead = "Recommended:" if separated else "No single best configuration. The selection rules choose"
    return (
        f"{lead} {chosen.winner.name}{_or(equals)} ({figures_text(chosen.winner, measure)}): "
        f"{rule} {plural(allowed, 'system')}{within}.{after}"
    )


def _rule(chosen: Choice, measure: str) -> str:
    if chosen.rule != "best quality":
        return "the fastest, then the cheapest, that reaches the target, of"
    best = chosen.best
    if best is None or chosen.winner is None or best.quality[0] <= chosen.winner.quality[0]:
        return "the best of"
    why = next((TIE_BREAKS[each.reason] for each in chosen.excluded if each.name == best.name), "")
    return f"equivalent to {best.name} ({measure} {best.quality[0]:.3f}), {why}, of"


def _or(equals: Sequence[str]) -> str:
    if not equals:
        return ""
    more = _more_equals_clause(equals)
    return f" or {', '.join(equals[:MAX_SHOWN_EQUALS])}{more}, with the same score on every query"


def _more_equals_clause(equals: Sequence[str]) -> str:
    return f" and {len(equals) - MAX_SHOWN_EQUALS} more" if len(equals) > MAX_SHOWN_EQUALS else ""


def excluded(each: Exclusion, measure: str) -> str:
    """Return why a system was not chosen."""
    match each.reason:
        case "latency":
            return f"p95 {ms(each.value or 0)}, above {ms(each.bound or 0)}"
        case "cost":
            return f"costs {usd(each.value or 0)} per 1,000, above {usd(each.bound or 0)}"
        case "target":
            return f"{measure} {each.value or 0:.3f}, below {each.bound or 0:.3f}"
        case "latency unknown":
            return "was not timed in every stage"
        case "cost unknown":
            return "a price of it is unknown"
    return f"{RULES[each.reason].format(measure=measure)} ({each.by})"


def puts_first(chosen: Choice, equals: Sequence[str], jitter_ms: float) -> list[str]:
    """Return a sentence if other systems are equal to the choice in price, latency and the score on every query. It
    names the tie breaker.
    """
    if chosen.winner is None or not equals:
        return []
    why = {each.reason for each in chosen.excluded if each.name in equals}
    timed = chosen.winner.latency_ms is not None
    by = f"a latency shorter by less than {jitter_ms:g} ms" if why == {BY_WAIT} and timed else "its name"
    named = f"{', '.join(equals[:MAX_SHOWN_EQUALS])}{_more_equals_clause(equals)}"
    return [f"Only {by} puts {chosen.winner.name} before {named}: same score on every query, same price."]


def other_limit_sentences(
    points: Sequence[LimitTurn],
    same: Collection[str],
    axis: str,
    other: float | None,
    names: Mapping[str, str] = NO_NAMES,
) -> list[str]:
    """Return sentences on the systems that would be chosen under other limits on one axis: the last `MAX_SHOWN_EQUALS`
    ranges of limits. Systems equal to the choice are omitted, and so are ranges narrower than one shown step.

    Args:
        other: the limit on the other axis, which is unchanged.
        names: the name that stands for a system and its equals.
    """
    said = ms if axis == "latency" else usd
    whole = WHOLE_MS if axis == "latency" else WHOLE_USD
    limit, unit, kept = ("p95", "", "cost") if axis == "latency" else ("cost", " per 1,000 queries", "p95")
    held = f"no {kept} limit" if other is None else f"{kept} limit unchanged"
    # None if no upper end is known
    ends: list[float | None] = [*(point.limit for point in points[1:]), None][: len(points)]
    others = [
        (point, end)
        for point, end in zip(points, ends, strict=True)
        if point.winner not in same and not (end is not None and end - point.limit < _shown_step(end, whole))
    ]
    return [
        f"If the {limit} limit is {_range(point.limit, end, said, whole)}{unit} ({held}): "
        f"{names.get(point.winner, point.winner)}."
        for point, end in others[-MAX_SHOWN_EQUALS:]
    ]


def _range(low: float, high: float | None, said: Callable[[float], str], whole: tuple[float, float]) -> str:
    """Return limits from `low` to below `high`, rounded inwards, so that typing them gives the stated result."""
    first = _round_limit(low, whole, math.ceil)
    if high is None:
        return f"{said(first)} or more"
    last = _round_limit(high, whole, math.floor)
    return f"between {said(first)} and {said(last)}" if first < last else said(first)


def _shown_step(value: float, whole: tuple[float, float]) -> float:
    """Return the step of the last shown digit of a positive value."""
    return whole[1] if value >= whole[0] else 10.0 ** (math.floor(math.log10(value)) - 1)


def _round_limit(value: float, whole: tuple[float, float], way: Callable[[float], int]) -> float:
    """Round a value to the shown digits: in steps of `whole[1]` from `whole[0]` on, two digits below."""
    if value <= 0:
        return 0.0
    step = _shown_step(value, whole)
    return float(f"{way(round(value / step, 6)) * step:.12g}")
