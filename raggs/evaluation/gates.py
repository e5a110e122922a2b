"""Conditions that a CI job sets: a mean that must be reached, a result that must not get worse.

A gate is judged after everything is written, so a failed one loses nothing. A gate that could not look at something
has failed: what an earlier result holds and this one does not is named, never passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from raggs.errors import DataError, GateError, NotFoundError
from raggs.evaluation.models import Report, SystemPart
from raggs.evaluation.projected import rule_words
from raggs.inputs import read_whole
from raggs.jsonl import first_fault
from raggs.jsontypes import Number
from raggs.metrics.stats import compare
from raggs.readers.pipes import replayable
from raggs.text import plural

AGAIN = "evaluate the earlier system again in the same way"
SHOWN = 12  # digits of a fingerprint
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
        across: whether the earlier result may be one on other judgments.
    """

    limits: Mapping[str, float]
    before: Report | None
    where: Path | None
    drop: float
    across: bool = False

    def outcomes(self, report: Report) -> tuple[Outcome, ...]:
        """What each of them says of a result.

        Raises:
            DataError: it cannot be compared with the earlier one.
        """
        found = list(limits_kept(report, self.limits))
        if self.before is not None:
            found += against(report, self.before, drop=self.drop, where=self.where, across=self.across)
        return tuple(found)

    def judge(self, report: Report) -> None:
        """Hold a result against all of them.

        Raises:
            GateError: one is not met; all that are not are named.
            DataError: it cannot be compared with the earlier one.
        """
        settle(self.outcomes(report), report)


@dataclass(frozen=True)
class Outcome:
    """What a gate says of one measure of one system.

    Attributes:
        gate: what was asked, in words.
        said: a sentence.
        failed: whether it is not met.
        system, measure: empty where it is about several.
    """

    gate: str
    said: str
    failed: bool
    system: str = ""
    measure: str = ""


def settle(outcomes: Iterable[Outcome], report: Report) -> None:
    """Fail where a gate did.

    Raises:
        GateError: all that are not met are named.
    """
    if failed := [each.said for each in outcomes if each.failed]:
        raise GateError(failed, report.golden.source)


def limits_kept(report: Report, limits: Mapping[str, float]) -> Iterator[Outcome]:
    """Each system held against each limit."""
    for measure, limit in limits.items():
        if measure not in report.measures:  # samples have cutoffs of their own
            measure = CUTOFF.sub("@k", measure)
        for system in report.systems:
            yield _limited(system, measure, limit, higher=report.higher_is_better[measure])


def _limited(system: SystemPart, measure: str, limit: float, *, higher: bool) -> Outcome:
    mean, gate = system.scores[measure].mean, f"{measure} {'at least' if higher else 'at most'} {limit:g}"
    if mean is None:
        said = f"{measure} of {system.name} is not defined for any query, wanted is {limit:g}"
        return Outcome(gate, said, True, system.name, measure)
    failed = (mean < limit) if higher else (mean > limit)
    side = ("below" if higher else "above") if failed else f"wanted is {'at least' if higher else 'at most'}"
    return Outcome(gate, f"{measure} of {system.name} is {mean:.4f}, {side} {limit:g}", failed, system.name, measure)


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
        if error.errors(include_url=False)[0]["loc"] == ("golden", "digest"):
            said = "does not say by which judgments it was measured: an earlier version of raggs wrote it"
            raise DataError(said, where=path, remedy=AGAIN) from error
        raise DataError(first_fault(error), where=path, remedy="name an eval.json of this version of raggs") from error


def against(
    report: Report, before: Report, *, drop: float, where: Path | None, across: bool = False
) -> Iterator[Outcome]:
    """Whether each measure of each system got worse: by more than `drop` in the mean, or significantly.

    So has whatever the earlier result holds and this one lacks: a system, a measure, values of queries.

    Args:
        report: the result.
        before: an earlier one on the same judgments. Systems are matched by name, single ones in any case.
        drop: what the mean may lose.
        where: the earlier result's file.
        across: whether it may be one on other judgments; queries that both measured are compared then.

    Raises:
        DataError: other judgments, gains or rules, or no system, measure or query in common.
    """
    apart = report.golden.digest != before.golden.digest
    if apart and not across:
        raise _other_set(report, before, where)
    if other := _other(report, before):
        raise DataError(f"was measured {other}, so nothing follows from a difference", where=where, remedy=AGAIN)
    pairs = _pairs(report.systems, before.systems)
    gated = [name for name in before.measures if not UNGATED.match(name)]
    shared = [name for name in gated if name in report.measures]
    sides = [(report, ours.name, before, theirs.name) for ours, theirs in pairs]
    if not pairs or not shared:
        what = "system" if not pairs else "measure"
        raise DataError(f"has no {what} in common with this result", where=where, remedy="name them alike")
    if not any(_common(*side, measure) for side in sides for measure in shared):
        raise DataError("has no query with a value in both results", where=where, remedy="evaluate it again")
    gate = f"not worse than {where or 'the earlier result'}"
    for side in sides:
        for measure in shared:
            said = _worse(*side, measure, drop, apart)
            fine = f"{measure} of {side[1]} is no worse"
            yield Outcome(gate, said or fine, said is not None, side[1], measure)
    for said in _not_compared(before, pairs, [name for name in gated if name not in shared]):
        yield Outcome(gate, said, True)


def _other_set(report: Report, before: Report, where: Path | None) -> DataError:
    here, there = report.golden, before.golden
    return DataError(
        f"was measured on other judgments: fingerprint {there.digest[:SHOWN]} ({there.source}), here "
        f"{here.digest[:SHOWN]} ({here.source}); nothing follows from a difference",
        where=where,
        remedy=f"{AGAIN}; raggs diff OLD NEW tells the sets apart, --across-sets compares all the same",
    )


def _other(report: Report, before: Report) -> str:
    """What makes values of two results incomparable, whatever the judgments; empty where nothing does."""
    ours, theirs = report.golden, before.golden
    scales = [(side.lowest, side.highest, side.relevant, side.gains) for side in (ours, theirs)]
    if scales[0][:2] != scales[1][:2]:
        return f"on the scale {theirs.lowest} to {theirs.highest}, here {ours.lowest} to {ours.highest}"
    if ours.relevant != theirs.relevant:
        return f"with relevance from {theirs.relevant} on, here from {ours.relevant}"
    if ours.gains != theirs.gains:
        return f"with other gains ({_listed(theirs.gains)}, here {_listed(ours.gains)})"
    if report.ties != before.ties:
        return f"with --ties {before.ties}, here {report.ties}"
    if other := _carried(before, report):
        return other
    if report.condensed != before.condensed:
        return "with condensed lists" if before.condensed else "with whole lists, here condensed"
    return ""


def _carried(before: Report, report: Report) -> str:
    """What tells two results apart where grades were carried over to other passages in one of them."""
    then, now = ({rule_words(each.projection) for each in side.systems if each.projection} for side in (before, report))
    if not then or not now:
        return "" if then == now else f"{'with' if then else 'without'} --project"
    return "" if then == now else f"by another rule of --project ({'; '.join(sorted(then))})"


def _listed(gains: Sequence[float]) -> str:
    return " ".join(f"{gain:g}" for gain in gains)


def _not_compared(before: Report, pairs: Sequence[tuple[SystemPart, SystemPart]], measures: Sequence[str]) -> list[str]:
    """A sentence for the systems, and one for the measures, that only the earlier result has."""
    met = {theirs.name for _, theirs in pairs}
    systems = [system.name for system in before.systems if system.name not in met]
    return [
        f"not compared: {', '.join(names)} of the earlier result, for this one has no such {what}"
        for what, names in (("system", systems), ("measure", measures))
        if names
    ]


def _common(report: Report, name: str, before: Report, earlier: str, measure: str) -> list[str]:
    """The queries that have a value in both results, sorted."""
    return sorted(_values(report, name, measure).keys() & _values(before, earlier, measure).keys())


def _values(report: Report, name: str, measure: str) -> Mapping[str, Number]:
    return report.per_query.get(name, {}).get(measure, {})


def _pairs(ours: Sequence[SystemPart], theirs: Sequence[SystemPart]) -> list[tuple[SystemPart, SystemPart]]:
    if len(ours) == 1 and len(theirs) == 1:
        return [(ours[0], theirs[0])]
    known = {system.name: system for system in theirs}
    return [(system, known[system.name]) for system in ours if system.name in known]


def _worse(
    report: Report, name: str, before: Report, earlier: str, measure: str, drop: float, apart: bool
) -> str | None:
    now, then = _values(report, name, measure), _values(before, earlier, measure)
    qids = _common(report, name, before, earlier, measure)
    if not qids and (now or then):
        return f"not compared: {measure} of {name}, for no query has a value in both results"
    if (lost := len(then) - len(qids)) and not apart:
        return f"not compared: {measure} of {name} on {plural(lost, 'query')} that had a value in the earlier result"
    if not qids:
        return None
    sign = 1.0 if report.higher_is_better[measure] else -1.0
    values = [sign * np.array([float(side[qid] or 0.0) for qid in qids]) for side in (now, then)]
    result = compare(values[0], values[1], seed=report.seed, alpha=1.0 - report.confidence)
    if -result.difference.mean <= drop and not (result.verdict == "loss" and not result.negligible):
        return None
    said = "significantly" if result.verdict == "loss" else f"not significantly, but by more than {drop:g}"
    old, new = (sign * float(side.mean()) + 0.0 for side in reversed(values))  # + 0.0 makes -0.0 a plain zero
    over = "queries of both sets" if apart else "queries"
    return f"{measure} of {name} went from {old:.4f} to {new:.4f} on {len(qids)} {over}, {said} worse"
