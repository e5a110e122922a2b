"""The sentences of gates that are not met."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from raggs.evaluation.gates import limits_kept, regression_outcomes
from raggs.evaluation.models import EvalReport


def under(report: EvalReport, limits: Mapping[str, float]) -> list[str]:
    """Of each system that misses a limit."""
    return [each.said for each in limits_kept(report, limits) if each.failed]


def regressions(report: EvalReport, before: EvalReport, *, drop: float, where: Path | None) -> list[str]:
    """Of whatever got worse."""
    return [each.said for each in regression_outcomes(report, before, drop=drop, where=where) if each.failed]
