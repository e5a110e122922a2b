"""The sentences of a sweep: why this system, what would change it, why not that one."""

from __future__ import annotations

from collections.abc import Sequence

from raggs.decision.choice import Choice, Exclusion, Turn
from raggs.decision.front import Candidate
from raggs.text import plural

SHOWN = 4
RULES = {
    "quality": "has less {measure}",
    "slower": "is slower",
    "dearer": "costs more",
    "larger k": "needs more candidates for the same",
    "more tokens": "sends more tokens for the same",
    "less efficient": "is less efficient",
    "name": "is the same by all that was measured",
    "dominated": "is no better in anything and worse in something",
}


def ms(value: float) -> str:
    """Milliseconds as people write them."""
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.2g} ms"


def usd(value: float) -> str:
    """USD for 1,000 questions."""
    return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"


def told(each: Candidate, measure: str) -> str:
    """A system's three figures."""
    parts = [f"{measure} {each.quality[0]:.3f}"]
    parts.append("not timed" if each.latency_ms is None else ms(each.latency_ms))
    parts.append("price unknown" if each.usd_per_1k is None else f"{usd(each.usd_per_1k)} per 1,000 questions")
    return ", ".join(parts)


def because(chosen: Choice, systems: int, measure: str) -> str:
    """Which system to ship, and the rule that chose it."""
    if chosen.winner is None:
        return f"None of {plural(systems, 'system')} holds the limits." if systems else "No system was measured."
    held = [
        text
        for text, limit in (
            (f"{ms(chosen.limits.latency_ms or 0)}", chosen.limits.latency_ms),
            (f"{usd(chosen.limits.usd_per_1k or 0)} per 1,000", chosen.limits.usd_per_1k),
            (f"{measure} of {chosen.limits.quality or 0:.3f}", chosen.limits.quality),
        )
        if limit is not None
    ]
    within = f" within {' and '.join(held)}" if held else ""
    allowed = systems - sum(each.bound is not None and each.by is None for each in chosen.excluded)
    rule = "the best of" if chosen.rule == "best quality" else "the fastest, then cheapest, that reaches it, of"
    second = (
        "" if chosen.runner_up is None else f"; next is {chosen.runner_up.name} ({told(chosen.runner_up, measure)})"
    )
    return (
        f"Ship {chosen.winner.name} ({told(chosen.winner, measure)}): "
        f"{rule} {plural(allowed, 'system')}{within}{second}."
    )


def excluded(each: Exclusion, measure: str) -> str:
    """Why a system was not chosen."""
    match each.reason:
        case "latency":
            return f"waits {ms(each.value or 0)}, above {ms(each.bound or 0)}"
        case "cost":
            return f"costs {usd(each.value or 0)} per 1,000, above {usd(each.bound or 0)}"
        case "target":
            return f"{measure} {each.value or 0:.3f}, below {each.bound or 0:.3f}"
        case "latency unknown":
            return "was not timed in every step"
        case "cost unknown":
            return "a price of it is not known"
    return f"{RULES[each.reason].format(measure=measure)} ({each.by})"


def turns(points: Sequence[Turn], chosen: Choice, axis: str) -> list[str]:
    """What other limits on one axis would choose."""
    said = ms if axis == "latency" else usd
    unit = "" if axis == "latency" else " per 1,000"
    winner = chosen.winner.name if chosen.winner else None
    others = [point for point in points if point.winner != winner]
    return [
        f"with at least {said(point.limit)}{unit} allowed and no other limit: {point.winner}"
        for point in others[-SHOWN:]
    ]
