"""Systems against a baseline: the difference of means with its interval, corrected p values, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raggs.evaluation.models import ComparisonPart, number
from raggs.metrics.evaluate import Evaluation
from raggs.metrics.names import Named
from raggs.metrics.stats import compare_many

UNCOMPARED = {"holes", "judged"}  # they tell how far a score can be trusted, not how good it is


def comparisons(
    found: Mapping[str, Evaluation], measures: Sequence[Named], baseline: str | None, *, confidence: float, seed: int
) -> list[ComparisonPart]:
    """Every other system against the baseline, measure by measure; none without a baseline."""
    if baseline is None or len(found) < 2:
        return []
    parts = []
    for named in measures:
        if named.mode in {"range", "bias"} or named.measure.NAME in UNCOMPARED:
            continue
        sign = 1.0 if named.higher else -1.0
        columns = {name: sign * evaluation.column(named.name) for name, evaluation in found.items()}
        base = columns.pop(baseline)
        several = compare_many(base, columns, seed=seed, alpha=1.0 - confidence)
        for name, result in several.items():
            bounds_ = sorted((sign * result.difference.low, sign * result.difference.high))
            parts.append(
                ComparisonPart(
                    system=name,
                    baseline=baseline,
                    measure=named.name,
                    difference=number(sign * result.difference.mean),
                    low=number(bounds_[0]),
                    high=number(bounds_[1]),
                    p={test: number(p) for test, p in result.p_values.items()},
                    corrected={test: number(p) for test, p in result.corrected.items()},
                    effect=number(sign * result.effect_size),
                    wins=result.wins,
                    ties=result.ties,
                    losses=result.losses,
                    verdict=result.verdict,
                    negligible=result.negligible,
                    queries_needed=result.queries_needed,
                )
            )
    return parts
