"""Conditions that a CI job sets: a mean that must be reached, a result that must not get worse.

A gate is judged after everything is written, so a failed one loses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from raggs.errors import DataError, NotFoundError, PartialError
from raggs.evaluation.models import Report, SystemPart
from raggs.inputs import read_whole
from raggs.jsonl import first_fault
from raggs.metrics.stats import compare
from raggs.readers.pipes import replayable

CUTOFF = re.compile(r"@\d+")
UNGATED = re.compile(r"(?:range|bias)\[|(?:\w+\[)?(?:holes|judged)\b")  # not how good a system is


@dataclass(frozen=True)
class Gates:
    """What a result must hold.

    Attributes:
        limits: by canonical measure.
        before: an earlier result, as it was before this one is written, perhaps over it.
        where: its file.
        drop: what a mean may lose against it.
    """

    limits: Mapping[str, float]
    before: Report | None
    where: Path | None
    drop: float

    def judge(self, report: Report) -> None:
        """Hold a result against all of them.

        Raises:
            PartialError: one is not met; all that are not are named.
            DataError: it cannot be compared with the earlier one.
        """
        failed = under(report, self.limits)
        if self.before is not None:
            failed += regressions(report, self.before, drop=self.drop, where=self.where)
        if failed:
            raise PartialError("; ".join(failed))


def under(report: Report, limits: Mapping[str, float]) -> list[str]:
    """A sentence for each system that misses a limit; for measures where lower is better, that exceeds it."""
    sentences = []
    for measure, limit in limits.items():
        if measure not in report.measures:  # samples have cutoffs of their own
            measure = CUTOFF.sub("@k", measure)
        higher = report.higher_is_better[measure]
        for system in report.systems:
            mean = system.scores[measure].mean
            if mean is None:
                sentences.append(f"{measure} of {system.name} is not defined for any query, wanted is {limit:g}")
            elif (mean < limit) if higher else (mean > limit):
                side = "below" if higher else "above"
                sentences.append(f"{measure} of {system.name} is {mean:.4f}, {side} {limit:g}")
    return sentences


def read_report(path: Path) -> Report:
    """An eval.json.

    Raises:
        NotFoundError: it is missing.
        DataError: it is none.
    """
    try:
        with replayable(path) as file:
            return Report.model_validate_json(read_whole(file))
    except NotFoundError as error:
        error.remedy = "write one with raggs eval ... --out DIR"
        raise
    except ValidationError as error:
        raise DataError(first_fault(error), where=path, remedy="name an eval.json of this version of raggs") from error


def regressions(report: Report, before: Report, *, drop: float, where: Path | None) -> list[str]:
    """A sentence for each measure of each system that got worse: by more than `drop` in the mean, or significantly.

    Args:
        report: the result.
        before: an earlier one on the same judgments. Systems are matched by name, single ones in any case.
        drop: what the mean may lose.
        where: the earlier result's file.

    Raises:
        DataError: other judgments, or no system or measure in common.
    """
    if report.golden.digest != before.golden.digest:
        raise DataError(
            "was measured on other judgments, so nothing follows from a difference",
            where=where,
            remedy="evaluate the earlier system again on these judgments",
        )
    pairs = _pairs(report.systems, before.systems)
    shared = [name for name in report.measures if name in before.measures and not UNGATED.match(name)]
    if not pairs or not shared:
        what = "system" if not pairs else "measure"
        raise DataError(f"has no {what} in common with this result", where=where, remedy="name them alike")
    return [
        sentence
        for ours, theirs in pairs
        for measure in shared
        if (sentence := _worse(report, before, (ours.name, theirs.name), measure, drop))
    ]


def _pairs(ours: Sequence[SystemPart], theirs: Sequence[SystemPart]) -> list[tuple[SystemPart, SystemPart]]:
    if len(ours) == 1 and len(theirs) == 1:
        return [(ours[0], theirs[0])]
    known = {system.name: system for system in theirs}
    return [(system, known[system.name]) for system in ours if system.name in known]


def _worse(report: Report, before: Report, names: tuple[str, str], measure: str, drop: float) -> str | None:
    now, then = (
        part.per_query.get(name, {}).get(measure, {}) for part, name in ((report, names[0]), (before, names[1]))
    )
    qids = sorted(now.keys() & then.keys())
    if not qids:
        return None
    sign = 1.0 if report.higher_is_better[measure] else -1.0
    values = [sign * np.array([float(side[qid] or 0.0) for qid in qids]) for side in (now, then)]
    result = compare(values[0], values[1], seed=report.seed, alpha=1.0 - report.confidence)
    lost = -result.difference.mean
    if lost <= drop and not (result.verdict == "loss" and not result.negligible):
        return None
    said = "significantly" if result.verdict == "loss" else f"not significantly, but by more than {drop:g}"
    old, new = (sign * float(side.mean()) + 0.0 for side in reversed(values))  # + 0.0 makes -0.0 a plain zero
    return f"{measure} of {names[0]} went from {old:.4f} to {new:.4f} on {len(qids)} queries, {said} worse"
