"""Gates for CI: conditions that a result must meet; if not, the command fails. A gate is a limit on a mean, or requires
that a result is not worse than an earlier one. The outcomes can be written as JUnit XML.

Gates are checked after all files are written, so that no result is lost if a gate fails. If a gate cannot compare a
system, a measure or a query of the earlier result, it fails with a message. Queries are exempt if the judgments differ.
An outcome that unjudged passages could reverse is inconclusive. A setting decides whether an inconclusive gate fails.

The JUnit XML has one test case per outcome of a gate, and one per score. Characters that XML forbids are escaped, since
names come from users' files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np
from pydantic import ValidationError

from raggs.base.arrays import Flags, Floats
from raggs.base.document import score
from raggs.base.errors import DataError, GateError, NotFoundError, UsageError
from raggs.base.files import read_whole
from raggs.base.jsonl import first_fault
from raggs.base.text import escape_controls, plural
from raggs.base.types import Number
from raggs.evaluation.messages import unjudged_tops
from raggs.evaluation.models import EvalReport, ScorePart, SystemPart, UnjudgedTopPart
from raggs.evaluation.report import rule_words
from raggs.evaluation.study import Study, judging_remedy, unjudged_in
from raggs.metrics.columns import Run
from raggs.metrics.hits import find_hits
from raggs.metrics.names import MeasureSpec, parse_measure
from raggs.metrics.unjudged import ShownPassages, difference_ends, top_of, value_ends
from raggs.parts.file_shapes import replayable
from raggs.stats.comparison import Comparison, DifferenceBounds, compare, could_cross, could_reverse

EVALUATE_AGAIN_REMEDY = "evaluate the earlier system again in the same way"
SHOWN_HASH_DIGITS = 12  # number of digits of a fingerprint that are shown
CUTOFF = re.compile(r"@\d+")
EARLIER_LABEL = "the earlier {}"
Inconclusive = Literal["fail", "pass"]
# measures that do not rate quality: no check for regressions, and their limits are never inconclusive
UNGATED = re.compile(r"(?:range|bias)\[|(?:\w+\[)?(?:holes|judged|unj)\b")


@dataclass(frozen=True)
class Gates:
    """Conditions that a result must meet.

    Attributes:
        limits: limit of the mean of each measure, by the canonical name of the measure.
        before: the earlier result. It is read before the new result is written, because both may have the same path.
        where: path of the earlier result.
        drop: largest accepted drop of a mean.
        across: whether the earlier result may have other judgments.
        inconclusive: "fail" if an inconclusive outcome fails the gate, "pass" if not.
        study: the study of the result, from which unjudged passages are known; None if there is none.
    """

    limits: Mapping[str, float]
    before: EvalReport | None
    where: Path | None
    drop: float
    across: bool = False
    inconclusive: Inconclusive = "fail"
    study: Study | None = None

    def outcomes(self, report: EvalReport) -> tuple[GateOutcome, ...]:
        """Return the outcome of each gate.

        Raises:
            DataError: the result cannot be compared with the earlier one.
        """
        found = list(limits_kept(report, self.limits, self.study))
        if self.before is not None:
            found += regression_outcomes(
                report, self.before, drop=self.drop, where=self.where, across=self.across, study=self.study
            )
        if self.inconclusive == "pass":
            found = [replace(each, failed=False) if each.inconclusive else each for each in found]
        return tuple(found)

    def judge(self, report: EvalReport) -> None:
        """Check a result against all gates.

        Raises:
            GateError: at least one gate failed; the message names all that failed.
            DataError: the result cannot be compared with the earlier one.
        """
        settle(self.outcomes(report), report)


@dataclass(frozen=True)
class GateOutcome:
    """Outcome of a gate for one measure of one system.

    Attributes:
        gate: the condition in words.
        said: the outcome in words.
        failed: whether the gate fails, because the condition is not met or the outcome is inconclusive. A setting lets
            inconclusive gates pass.
        system, measure: names; empty if the outcome is about several systems or measures.
        inconclusive: whether unjudged passages could reverse the outcome.
        remedy: how to get these passages judged; empty if the outcome is conclusive.
    """

    gate: str
    said: str
    failed: bool
    system: str = ""
    measure: str = ""
    inconclusive: bool = False
    remedy: str = ""


def settle(outcomes: Iterable[GateOutcome], report: EvalReport) -> None:
    """Raise an error that names all failed gates, if there are any.

    Raises:
        GateError: at least one gate failed; the message names all that failed.
    """
    if failed := [each for each in outcomes if each.failed]:
        remedies = dict.fromkeys(each.remedy for each in failed if each.remedy)
        raise GateError([each.said for each in failed], report.golden.source, "; ".join(remedies) or None)


def limits_kept(report: EvalReport, limits: Mapping[str, float], study: Study | None = None) -> Iterator[GateOutcome]:
    """Yield the outcome of each limit for each system. Unjudged passages count as not relevant.

    If grades for unjudged passages could move a score across its limit, the outcome is inconclusive. This is checked
    only if `study` is given.
    """
    for measure, limit in limits.items():
        if measure not in report.measures:  # the measures of samples with their own cutoffs are called name@k
            measure = CUTOFF.sub("@k", measure)
        for system in report.systems:
            found = _limited(system, measure, limit, higher=report.higher_is_better[measure])
            yield found if study is None else _if_judged(found, study, limit)


def _if_judged(found: GateOutcome, study: Study, limit: float) -> GateOutcome:
    """Return the outcome of a limit. It becomes inconclusive if grades for unjudged passages could move the score
    across the limit.
    """
    shown = None if UNGATED.match(found.measure) else study.shown(found.system)
    if shown is None or not (parts := unjudged_in(named := parse_measure(found.measure), {found.system: shown.top})):
        return found
    sign, ends = (1.0 if named.higher else -1.0), value_ends(named, shown)
    values = study.values[found.system].column(named.name)
    if not could_cross(sign * values, sign * limit, ends if named.higher else -ends):
        return found
    said = f"{found.said}; inconclusive: {unjudged_tops(parts)}"
    up = found.failed == named.higher
    far = np.nanmean(ends.high if up else ends.low)
    if np.isfinite(far):
        said += f", so {found.measure} could be as {'high' if up else 'low'} as {far:.4f}"
    remedy = judging_remedy(parts, study.sources, study.judgments.source)
    return replace(found, said=said, failed=True, inconclusive=True, remedy=remedy)


def _limited(system: SystemPart, measure: str, limit: float, *, higher: bool) -> GateOutcome:
    mean, gate = system.scores[measure].mean, f"{measure} {'at least' if higher else 'at most'} {limit:g}"
    if mean is None:
        said = f"{measure} of {system.name} is not defined for any query, wanted is {limit:g}"
        return GateOutcome(gate, said, True, system.name, measure)
    failed = (mean < limit) if higher else (mean > limit)
    side = ("below" if higher else "above") if failed else f"wanted is {'at least' if higher else 'at most'}"
    return GateOutcome(
        gate, f"{measure} of {system.name} is {mean:.4f}, {side} {limit:g}", failed, system.name, measure
    )


def read_report(path: Path) -> EvalReport:
    """Return the report in an eval.json.

    Raises:
        NotFoundError: the file is missing.
        DataError: the file is not an eval.json.
    """
    try:
        with replayable(path) as file:
            return EvalReport.model_validate_json(read_whole(file))
    except NotFoundError as error:
        error.remedy = "write one with raggs eval ... --out DIR"
        raise
    except ValidationError as error:
        if error.errors(include_url=False)[0]["loc"] == ("golden", "digest"):
            said = "does not say by which judgments it was measured: an earlier version of raggs wrote it"
            raise DataError(said, where=path, remedy=EVALUATE_AGAIN_REMEDY) from error
        raise DataError(first_fault(error), where=path, remedy="pass an eval.json of this version of raggs") from error


def regression_outcomes(
    report: EvalReport,
    before: EvalReport,
    *,
    drop: float,
    where: Path | None,
    across: bool = False,
    study: Study | None = None,
) -> Iterator[GateOutcome]:
    """Check each measure of each system for a regression: a mean drop above `drop`, or a drop that is significant and
    not negligible.

    A system, a measure or a value of a query that only the earlier result has counts as a failure. If the judgments
    differ, queries are exempt.

    Args:
        report: the result.
        before: the earlier result. Systems are matched by name. If each result has only one system, the two always
            match.
        drop: largest accepted drop of the mean.
        where: path of the earlier result.
        across: whether the judgments may differ. If they do, only queries of both sets are compared.
        study: the study of the result, from which unjudged passages are known.

    Raises:
        DataError: the judgments differ and `across` is False. Or the scale, relevance, gains, ties, projection or
            condensing differ. Or the results share no system, measure or query.
    """
    apart = report.golden.digest != before.golden.digest
    if apart and not across:
        raise _other_set(report, before, where)
    if other := _incomparable_reason(report, before):
        raise DataError(
            f"was measured {other}, so nothing follows from a difference", where=where, remedy=EVALUATE_AGAIN_REMEDY
        )
    pairs = _pairs(report.systems, before.systems)
    gated = [name for name in before.measures if not UNGATED.match(name)]
    shared = [name for name in gated if name in report.measures]
    sides = [(report, ours.name, before, theirs.name) for ours, theirs in pairs]
    if not pairs or not shared:
        what = "system" if not pairs else "measure"
        remedy = "use the same names of systems in both" if not pairs else "evaluate the same measures in both"
        raise DataError(f"has no {what} in common with this result", where=where, remedy=remedy)
    if not any(_common(*side, measure) for side in sides for measure in shared):
        raise DataError("has no query with a value in both results", where=where, remedy="evaluate it again")
    gate = f"not worse than {where or 'the earlier result'}"
    for side in sides:
        for measure in shared:
            yield _regression_outcome(_Change(*side, measure, drop, apart, study), gate)
    for said in _not_compared(before, pairs, [name for name in gated if name not in shared]):
        yield GateOutcome(gate, said, True)


def _other_set(report: EvalReport, before: EvalReport, where: Path | None) -> DataError:
    here, there = report.golden, before.golden
    return DataError(
        f"was measured on other judgments: fingerprint {there.digest[:SHOWN_HASH_DIGITS]} ({there.source}), here "
        f"{here.digest[:SHOWN_HASH_DIGITS]} ({here.source}); nothing follows from a difference",
        where=where,
        remedy=f"{EVALUATE_AGAIN_REMEDY}; raggs diff OLD NEW compares the sets, --across-sets the results anyway",
    )


def _incomparable_reason(report: EvalReport, before: EvalReport) -> str:
    """Return why the values of two results cannot be compared, even with the same judgments. The text is empty if
    they can be compared.
    """
    ours, theirs = report.golden, before.golden
    scales = [(side.lowest, side.highest, side.relevant, side.gains) for side in (ours, theirs)]
    if scales[0][:2] != scales[1][:2]:
        return f"on the scale {theirs.lowest} to {theirs.highest}, here {ours.lowest} to {ours.highest}"
    if ours.relevant != theirs.relevant:
        return f"with relevance from {theirs.relevant} on, here from {ours.relevant}"
    if ours.gains != theirs.gains:
        return f"with other gains ({_gain_list(theirs.gains)}, here {_gain_list(ours.gains)})"
    if report.ties != before.ties:
        return f"with --ties {before.ties}, here {report.ties}"
    if other := _projection_difference(before, report):
        return other
    if report.condensed != before.condensed:
        return "with condensed lists" if before.condensed else "with whole lists, here condensed"
    return ""


def _projection_difference(before: EvalReport, report: EvalReport) -> str:
    """Return how the projection of grades differs between two results; empty if it does not."""
    then, now = ({rule_words(each.projection) for each in side.systems if each.projection} for side in (before, report))
    if not then or not now:
        return "" if then == now else f"{'with' if then else 'without'} --project"
    return "" if then == now else f"by another rule of --project ({'; '.join(sorted(then))})"


def _gain_list(gains: Sequence[float]) -> str:
    return " ".join(f"{gain:g}" for gain in gains)


def _not_compared(
    before: EvalReport, pairs: Sequence[tuple[SystemPart, SystemPart]], measures: Sequence[str]
) -> list[str]:
    """Return a sentence on the systems, and one on the measures, that only the earlier result has."""
    met = {theirs.name for _, theirs in pairs}
    systems = [system.name for system in before.systems if system.name not in met]
    return [
        f"not compared: {', '.join(names)} of the earlier result, because this one has no such {what}"
        for what, names in (("system", systems), ("measure", measures))
        if names
    ]


def _common(report: EvalReport, name: str, before: EvalReport, earlier: str, measure: str) -> list[str]:
    """Return the queries with a value in both results, sorted."""
    return sorted(_values(report, name, measure).keys() & _values(before, earlier, measure).keys())


def _values(report: EvalReport, name: str, measure: str) -> Mapping[str, Number]:
    return report.per_query.get(name, {}).get(measure, {})


def _pairs(ours: Sequence[SystemPart], theirs: Sequence[SystemPart]) -> list[tuple[SystemPart, SystemPart]]:
    if len(ours) == 1 and len(theirs) == 1:
        return [(ours[0], theirs[0])]
    known = {system.name: system for system in theirs}
    return [(system, known[system.name]) for system in ours if system.name in known]


@dataclass(frozen=True)
class _Change:
    """The values of one system on one measure, in the new and in the earlier result."""

    report: EvalReport
    name: str
    before: EvalReport
    earlier: str
    measure: str
    drop: float
    apart: bool
    study: Study | None

    @property
    def sign(self) -> float:
        """Factor that makes larger values better: -1 if lower values are better, otherwise 1."""
        return 1.0 if self.report.higher_is_better[self.measure] else -1.0

    @property
    def now(self) -> Mapping[str, Number]:
        return _values(self.report, self.name, self.measure)

    @property
    def then(self) -> Mapping[str, Number]:
        return _values(self.before, self.earlier, self.measure)

    @property
    def qids(self) -> list[str]:
        return _common(self.report, self.name, self.before, self.earlier, self.measure)

    def compared(self, differences: Floats) -> Comparison:
        """Return a statistical test of the differences by query. A positive difference is an improvement."""
        none = np.zeros(len(differences))
        alpha = 1.0 - self.report.confidence
        return compare(differences, none, seed=self.report.seed, alpha=alpha, tests=("randomisation",))

    def is_worse(self, differences: Floats) -> bool:
        """Return whether the differences by query are a regression."""
        found = self.compared(differences)
        return -found.difference.mean > self.drop or (found.verdict == "worse" and not found.negligible)


def _regression_outcome(change: _Change, gate: str) -> GateOutcome:
    """Return the outcome of the gate for one measure of one system."""
    outcome = partial(GateOutcome, gate, system=change.name, measure=change.measure)
    now, then, qids, measure, name = change.now, change.then, change.qids, change.measure, change.name
    if not qids and (now or then):
        return outcome(f"not compared: {measure} of {name}, because no query has a value in both results", True)
    if (lost := len(then) - len(qids)) and not change.apart:
        had = f"{plural(lost, 'query')} that had a value in the earlier result"
        return outcome(f"not compared: {measure} of {name} on {had}", True)
    if not qids:
        return outcome(f"{measure} of {name} is not defined for any query in either result", False)
    sides = [change.sign * np.array([float(side[qid] or 0.0) for qid in qids]) for side in (now, then)]
    worse, said = change.is_worse(sides[0] - sides[1]), f"{measure} of {name} is not worse"
    old, new = (change.sign * float(side.mean()) + 0.0 for side in reversed(sides))  # + 0.0 makes -0.0 a plain zero
    over = "queries of both sets" if change.apart else "queries"
    went = f"{measure} of {name} went from {old:.4f} to {new:.4f} on {len(qids)} {over}"
    tops, ends = _unjudged(change)
    if worse:
        verdict = change.compared(sides[0] - sides[1]).verdict
        sure = "significantly" if verdict == "worse" else f"not significantly, but by more than {change.drop:g}"
        said = f"{went}, {sure} worse"
    if ends is not None and could_reverse(change.is_worse, _differences(change), ends):
        remedy = judging_remedy(tops, {} if change.study is None else _sources(change), change.report.golden.source)
        said = f"{went}; inconclusive: {unjudged_tops(tops)}"
        return outcome(said, True, inconclusive=True, remedy=remedy)
    return outcome(said, worse)


def _sources(change: _Change) -> dict[str, str]:
    then = {EARLIER_LABEL.format(each.name): each.source for each in change.before.systems}
    return {**then, **(change.study.sources if change.study else {})}


def _differences(change: _Change) -> Floats:
    """Return the difference of each query; NaN if one of the results has no value."""
    if change.study is None:
        return np.empty(0)
    pairs = ((change.now.get(qid), change.then.get(qid)) for qid in change.study.judgments.qrels.qids)
    found = [np.nan if None in pair else float(pair[0] or 0.0) - float(pair[1] or 0.0) for pair in pairs]
    return change.sign * np.array(found)


def _unjudged(change: _Change) -> tuple[tuple[UnjudgedTopPart, ...], DifferenceBounds | None]:
    """Return the unjudged shares of the tops in both results, and the bounds of each query's difference. A positive
    difference is an improvement.
    """
    ours = None if change.study is None else change.study.shown(change.name)
    try:
        named = parse_measure(change.measure)
    except UsageError:  # the measures of samples with their own cutoffs are called name@k
        return (), None
    if ours is None or change.study is None or named.measure.EVIDENCE:  # grades do not change evidence sets
        return (), None
    theirs = _earlier_lists(change, ours)
    tops = {change.name: ours.top} | ({} if theirs is None else {EARLIER_LABEL.format(change.earlier): theirs.top})
    parts, earlier = unjudged_in(named, tops), _holes(change, named)
    if theirs is None and earlier.any():
        share = float(np.mean([each or 0.0 for each in _earlier_unjudged_shares(change, named).values()]))
        where = UnjudgedTopPart(system=EARLIER_LABEL.format(change.earlier), cutoff=named.measure.k or 0, share=share)
        parts = (*parts, where)
    if not parts:
        return (), None
    stands = change.sign * _differences(change)
    try:
        ends = (
            _known_list_bounds(named, ours, theirs, stands)
            if theirs
            else _unknown_list_bounds(named, ours, earlier, change)
        )
    except DataError:  # the stored lists of the earlier result are too short for the measure
        ends = _unknown_list_bounds(named, ours, earlier, change)
    if change.apart:  # queries that are in only one of the sets are not compared
        ends = DifferenceBounds(*(np.where(np.isnan(stands), np.nan, end) for end in ends))
    return parts, ends if change.sign > 0 else -ends


def _earlier_lists(change: _Change, ours: ShownPassages) -> ShownPassages | None:
    """Return the lists stored in the earlier result, with grades of the current judgments. Return None if the judgments
    or the projections differ, or no lists are stored.
    """
    lists = change.before.shown.get(change.earlier)
    parts = [next(each for each in side.systems if each.name == name).projection
             for side, name in ((change.report, change.name), (change.before, change.earlier))]  # fmt: skip
    same = (None if part is None else (part.corpus, rule_words(part)) for part in parts)
    if change.apart or not lists or len(set(same)) > 1:
        return None
    run = Run.of(lists)
    hits = replace(find_hits(ours.hits.qrels, run, "file"), facet=ours.hits.facet)
    return ShownPassages(hits, top_of(hits, run, "file", ours.top.depth))


def _known_list_bounds(
    named: MeasureSpec, ours: ShownPassages, theirs: ShownPassages, stands: Floats
) -> DifferenceBounds:
    """Return bounds of the difference if the earlier lists are stored. The part of the difference due to deeper
    ranks, which are not stored, stays unchanged.
    """
    found = difference_ends(named, ours, theirs)
    with np.errstate(invalid="ignore"):
        rest = stands - (named.values(ours.hits) - named.values(theirs.hits))
    rest = np.nan_to_num(rest)
    return DifferenceBounds(found.low + rest, found.high + rest)


def _unknown_list_bounds(named: MeasureSpec, ours: ShownPassages, earlier: Flags, change: _Change) -> DifferenceBounds:
    """Return bounds of the difference if the earlier lists are not stored. The earlier value of a query with
    unjudged passages may then be any value in the measure's range.
    """
    low, high = named.measure.RANGE
    qids = ours.hits.qrels.qids
    values = np.array([np.nan if (value := change.then.get(qid)) is None else value for qid in qids])
    mine = value_ends(named, ours)
    return DifferenceBounds(mine.low - np.where(earlier, high, values), mine.high - np.where(earlier, low, values))


def _earlier_unjudged_shares(change: _Change, named: MeasureSpec) -> Mapping[str, Number]:
    """Return the unjudged share of each query's top in the earlier result."""
    return _values(change.before, change.earlier, f"holes@{named.measure.k}")


def _holes(change: _Change, named: MeasureSpec) -> Flags:
    """Return for each query whether its top had unjudged passages in the earlier result."""
    if change.study is None:
        return np.zeros(0, dtype=bool)
    open_ = _earlier_unjudged_shares(change, named)
    return np.array([bool(open_.get(qid)) for qid in change.study.judgments.qrels.qids])


NO_CHARACTERS = re.compile("[\ufffe\uffff]")


def junit_xml(report: EvalReport, outcomes: Sequence[GateOutcome]) -> bytes:
    """Return the XML: the gates, then one suite per system. A measure without a value is skipped."""
    root = Element("testsuites", name="raggs eval")
    if outcomes:
        suite = _suite(root, "gates")
        for each in outcomes:
            _gate(suite, each)
    for system in report.systems:
        suite = _suite(root, system.name)
        for measure in report.measures:
            _score(suite, system, measure)
    return _written_out(root)


def junit_of_refusal(what: str, why: str) -> bytes:
    """Return the XML of an evaluation that raised an error: one failed gate with the reason, and no scores."""
    root = Element("testsuites", name="raggs eval")
    _gate(_suite(root, "gates"), GateOutcome(what, why, True))
    return _written_out(root)


def _written_out(root: Element) -> bytes:
    for element in (*root, root):
        for kind, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            element.set(kind, str(sum(1 for _ in element.iter(tag))))
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(root: Element, name: str) -> Element:
    return SubElement(root, "testsuite", name=_text(name), errors="0")


def _gate(suite: Element, found: GateOutcome) -> None:
    place = f"gates.{found.system}" if found.system else "gates"
    name = found.gate if not found.measure or found.measure in found.gate else f"{found.measure} {found.gate}"
    case = SubElement(suite, "testcase", classname=_text(place), name=_text(name))
    said = f"{found.said}; {found.remedy}" if found.remedy else found.said
    if found.failed:
        SubElement(case, "failure", message=_text(said), type="inconclusive" if found.inconclusive else "gate")
    elif found.inconclusive:
        SubElement(case, "skipped", message=_text(said))
    else:
        SubElement(case, "system-out").text = _text(found.said)


def _score(suite: Element, system: SystemPart, measure: str) -> None:
    case = SubElement(suite, "testcase", classname=_text(f"scores.{system.name}"), name=_text(measure))
    found = system.scores[measure]
    if found.mean is None:
        SubElement(case, "skipped", message="not defined for any query")
    else:
        SubElement(case, "system-out").text = _interval(found)


def _interval(found: ScorePart) -> str:
    interval = "" if found.low is None else f" [{score(found.low)}, {score(found.high)}]"
    return f"{score(found.mean)}{interval} over {plural(found.valid, 'query')}"


def _text(text: str) -> str:
    return NO_CHARACTERS.sub(lambda match: ascii(match[0])[1:-1], escape_controls(text))
