"""What a CI job asks of an evaluation: limits and an earlier result, and what tells its golden set from this one's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.errors import RaggsError
from raggs.evaluation.gates import Gates, read_report
from raggs.evaluation.models import Report

if TYPE_CHECKING:
    from raggs.diffs.models import DiffReport


@dataclass(frozen=True)
class GateRequest:
    """Conditions that the result must hold.

    Attributes:
        limits: by measure, what its mean must reach, or must not exceed where lower is better.
        before: an earlier eval.json that it must not fall behind.
        drop: what a mean may lose against it.
        across: whether it may be one on other judgments.
        lock: a golden.lock that must mean the judgments, and the measures asked for.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    before: Path | None = None
    drop: float = 0.01
    across: bool = False
    lock: Path | None = None


def open_gates(asked: GateRequest) -> Gates:
    """The gates, with the earlier result as it is before this one is written, perhaps over it.

    Raises:
        NotFoundError, DataError: the earlier result is missing, or is none.
    """
    before = None if asked.before is None else read_report(asked.before)
    return Gates(limits=asked.limits, before=before, where=asked.before, drop=asked.drop, across=asked.across)


def sets_apart(report: Report, gates: Gates, runs: tuple[str, ...]) -> DiffReport | str | None:
    """What tells the set of the earlier result from this one's; None where it is the same, or may not differ.

    Args:
        runs: the systems of the report, as they were named.

    Returns:
        A sentence where the earlier set cannot be read any more.
    """
    before = gates.before
    if before is None or not gates.across or before.golden.digest == report.golden.digest:
        return None
    from raggs.app.diff import DiffRequest, diff  # late: most evaluations compare no sets

    there, gone = before.golden, f"the judgments of {gates.where} ({before.golden.digest[:12]}) cannot be read any more"
    if not Path(there.source).exists():
        return f"{gone}: {there.source} is not there"
    old, new = Path(there.source), Path(report.golden.source)
    if old.resolve() == new.resolve():
        return f"{gone}: {there.source} holds others now"
    measures = tuple(name for name in report.measures if name in before.measures)
    try:
        found = diff(DiffRequest(old, new, runs, measures, report.confidence, report.seed))
    except RaggsError as error:
        return f"{gone}: {error.message}"
    return found if found.old.digest == there.digest else f"{gone}: {there.source} holds others now"
