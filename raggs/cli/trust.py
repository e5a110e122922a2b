"""How far the judge can be trusted, as sentences read off the health that the locks keep. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from raggs.text import plural

Line = tuple[str, bool]  # and whether it is a warning
TOLD_BIAS = 0.2  # grades that a place must make before anything is said of it


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
    flips, sharpness = health["flips"]["rate"], health.get("sharpness")
    turned = "" if flips is None else f", {flips:.0%} of close pairs flip when asked again"
    yield (
        f"judge: first shown wins {health['first']['rate']:.0%} (fair: {health['fair_first']:.0%}){turned}, "
        f"{health['cycles']['count']:,} circles, {health['invalid']['count']:,} batches without an order",
        False,
    )
    if health.get("expected_inversions") is not None:
        sharpness = (
            "" if health.get("sharpness") is None else f"; the judge's sharpness is about {health['sharpness']:.1f}"
        )
        yield f"order: {health['expected_inversions']:.1f} wrongly ordered pairs expected in a top{sharpness}", False
    for warning in health["warnings"]:
        yield f"warning: {warning}", True
