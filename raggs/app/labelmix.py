"""The label mix of a set in a line: how rare what is useful is, which a score alone does not tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raggs.reporting.surveying import Labels, Spread

__all__ = ["mix_json", "mix_words"]


def mix_words(labels: Labels) -> str:
    """``labels a query, median/mean: grade 5 1.0/1.3, ...; 2.0% of the judged are relevant (mean 2.4%)``."""
    relevant = ", ".join(f"{spread.name} {spread.median:.1f}/{spread.mean:.1f}" for spread in _relevant(labels))
    share = f"{labels.prevalence.median:.1%} of the judged are relevant (mean {labels.prevalence.mean:.1%})"
    return f"labels a query, median/mean: {relevant}; {share}"


def mix_json(labels: Labels | None) -> Mapping[str, Mapping[str, float]] | None:
    """Median and mean of each figure over the queries, by its name; None where nothing is graded."""
    if labels is None:
        return None
    spreads = (*labels.spreads, labels.prevalence)
    return {spread.name: {"median": spread.median, "mean": spread.mean} for spread in spreads}


def _relevant(labels: Labels) -> tuple[Spread, ...]:
    """All but the last, which counts the judged passages."""
    return labels.spreads[:-1]
