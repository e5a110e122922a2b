"""From scores to findings: margins, their changes, and whether these are within their limits."""

from __future__ import annotations

from collections.abc import Mapping

from raggs.base.jsontypes import Number, number
from raggs.diagnosis.names.models import AblationPart, MarginPart
from raggs.parts.perturbers.base import Family
from raggs.stats.probes.margins import LEAST_BASE, Change, Margins, Mean, ratio

MOSTLY = 0.5  # share of bundles with a margin too small for percentages from which these say nothing


def mean_part(found: Mean) -> MarginPart:
    """A mean as it is written down."""
    return MarginPart(
        value=number(found.value),
        sd=number(found.spread),
        run_low=number(found.by_runs.low),
        run_high=number(found.by_runs.high),
        low=number(found.by_questions.low),
        high=number(found.by_questions.high),
        count=found.count,
    )


def ablation_part(perturber: str, family: Family, found: Change, limits: tuple[float, float]) -> AblationPart:
    """A change as it is written down; `limits`: least loss of an identity, most of anything else, in percent."""
    percent = mean_part(found.percent)
    return AblationPart(
        perturber=perturber,
        family=family,
        percent=percent,
        of_means=number(found.of_means),
        of_means_low=number(found.of_means_bounds.low),
        of_means_high=number(found.of_means_bounds.high),
        absolute=mean_part(found.absolute),
        left_out=found.left_out,
        holds=holds(percent, family, *limits),
    )


def holds(percent: MarginPart, family: Family, least: float, most: float) -> bool | None:
    """Whether a change is within its limit: None where its interval over questions holds the limit."""
    low, high = percent.low, percent.high
    if low is None or high is None:
        return None
    if family == "identity":
        return True if high <= -least else False if low > -least else None
    return True if low >= -most else False if high < -most else None


def small_share(margins: Margins) -> float:
    """Share of bundles whose name margin is too small for a percentage, or negative."""
    return float((margins.name < LEAST_BASE).mean())


def name_by_topic(margins: Margins, seed: int) -> Mapping[str, Number]:
    """The ratio of both margins, with its interval, as fields of a `SubjectPart`."""
    value, bounds = ratio(margins.name, margins.topic, seed=seed)
    return {"ratio": number(value), "ratio_low": number(bounds.low), "ratio_high": number(bounds.high)}
