"""How far the judge can be trusted, as sentences read off the health that the locks keep. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from raggs.ranking.health import ECHO, grade_apart
from raggs.text import plural

Line = tuple[str, bool]  # and whether it is a warning
TOLD_BIAS = 0.1  # grades; less is not worth a word


def trust_lines(health: Mapping[str, Mapping[str, Any]]) -> Iterator[Line]:
    """What there is to tell of the stages' health, by stage."""
    tellers = {"depth": _depth, "samples": _samples, "panel": _panel}
    judged = health.get("judge", {})
    for name, tell in tellers.items():
        if judged.get(name):
            yield from tell(judged[name])
    if health.get("rank", {}).get("first", {}).get("total"):
        yield from _orders(health["rank"])


def _depth(depth: Mapping[str, Any]) -> Iterator[Line]:
    total = depth["asked"] + depth["saved"]
    share = depth["saved"] / total if total else 0.0
    yield (
        f"depth: {depth['saved']:,} of {plural(total, 'judgment')} saved ({share:.0%}), "
        f"{plural(depth['stopped'], 'query')} stopped early",
        False,
    )


def _samples(samples: Mapping[str, Any]) -> Iterator[Line]:
    if samples["passages"]:
        yield (
            f"samples: {samples['asked']} a passage, {samples['unanimous']:.0%} unanimous, pairs {_agreement(samples)}",
            False,
        )


def _panel(panel: Mapping[str, Any]) -> Iterator[Line]:
    for name, member in panel["members"].items():
        if member["mean"] is not None:
            yield f"panel: {name} gave {plural(member['given'], 'grade')}, on average {member['mean']:.2f}", False
    for pair in panel["agreement"]:
        if pair["pairs"]:
            yield f"panel: {' and '.join(pair['judges'])} {_agreement(pair)}", False
    for warning in panel["warnings"]:
        yield f"warning: {warning}", True


def _agreement(found: Mapping[str, Any]) -> str:
    kappa = "" if found["kappa"] is None else f" (quadratic kappa {found['kappa']:.2f})"
    return f"agree {found['exact']:.0%}{kappa}"


def _orders(health: Mapping[str, Any]) -> Iterator[Line]:
    flips, cycles, invalid = (health[name] for name in ("flips", "cycles", "invalid"))
    parts = [f"first shown wins {health['first']['rate']:.0%} (fair: {health['fair_first']:.0%})"]
    if flips["total"]:
        parts.append(f"{flips['rate']:.0%} of {flips['total']:,} close pairs flip when asked again (a coin: 50%)")
    if cycles["total"]:
        parts.append(f"{cycles['rate']:.0%} of triples go round in a circle")
    parts.append(f"{invalid['count']:,} of {plural(invalid['total'], 'batch')} without an order")
    yield f"judge: {', '.join(parts)}", False
    # Runs of older versions, and engines that do not estimate them, lack the following.
    if (sharpness := health.get("sharpness")) is not None:
        yield f"judge: {judge_words(sharpness, health.get('echo'), health.get('position_bias'))}", False
    if (inversions := health.get("expected_inversions")) is not None:
        yield f"order: {inversions:.1f} wrongly ordered pairs expected in the top of a query, on average", False
    for warning in health["warnings"]:
        yield f"warning: {warning}", True


def judge_words(sharpness: float, echo: float | None, bias: float | None) -> str:
    """What an engine found out about a judge, for people; nothing of a position bias that is not worth a word."""
    better = f"{grade_apart(sharpness):.0%}"
    words = [f"sharpness {sharpness:.1f} (of two passages a grade apart it prefers the better {better})"]
    if echo is not None:
        meaning = "it repeats its own errors" if echo > ECHO else "asking again is a fresh opinion"
        words.append(f"echo {echo:.2f} ({meaning})")
    if bias is not None and abs(bias) >= TOLD_BIAS:
        place = "first" if bias > 0 else "last"
        words.append(f"a passage gains {abs(bias):.1f} grades by being shown {place} (the order is free of it)")
    return ", ".join(words)
