"""What a CI job asks of an evaluation: limits and an earlier result, what tells its golden set from this one's, and how
that is told: in a sentence, in Markdown, as JUnit XML.

What a golden.lock says of judgments and measures: made of a set, and held against one that is to be scored with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from raggs.base.document import markdown
from raggs.base.errors import DataError, NotFoundError, RaggsError, UsageError
from raggs.base.files import disk, write_atomic
from raggs.evaluation.gates import GateOutcome, Gates, Inconclusive, junit_of_refusal, junit_xml, read_report, settle
from raggs.evaluation.layout import lay_out
from raggs.evaluation.models import EvalReport
from raggs.golden.judgments import Judgments
from raggs.golden.sources import open_golden
from raggs.metrics.names import MeasureSpec, definitions
from raggs.runs.manifests.goldenlock import LockDefinitions, LockedJudgments, meaning_findings, read_lock
from raggs.runs.manifests.open_run import OpenedRun

if TYPE_CHECKING:
    from raggs.evaluation.diff_sets import DiffReport

    Apart = DiffReport | str | None  # what tells two sets apart, or why that cannot be told; None: they are the same


@dataclass(frozen=True)
class GateRequest:
    """Conditions that the result must hold.

    Attributes:
        limits: by measure, what its mean must reach, or must not exceed where lower is better.
        before: an earlier eval.json that it must not fall behind.
        drop: what a mean may lose against it.
        across: whether it may be one on other judgments.
        lock: a golden.lock that must mean the judgments, and the measures asked for.
        inconclusive: whether an outcome that unjudged passages could reverse fails.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    before: Path | None = None
    drop: float = 0.01
    across: bool = False
    lock: Path | None = None
    inconclusive: Inconclusive = "fail"


def keep_earlier(before: Path | None, *outputs: Path | None) -> None:
    """Refuse to write over the earlier result that a new one is compared with, by whatever path it is named.

    If a result replaced it, the same comparison would pass the next time, or lose a little each time.

    Args:
        before: the earlier eval.json; None where nothing is compared.
        outputs: files that would be written.

    Raises:
        UsageError: one of them is that file.
    """
    for file in outputs:
        if before is not None and file is not None and _same_file(before, file):
            raise UsageError(
                f"is the earlier result that this one is compared with, and {file} would replace it",
                where=before,
                remedy=f"write to another folder than {file.parent}; to make a result the new baseline, evaluate once "
                f"without --fail-on-regression and with --out {file.parent}",
            )


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of both is not there
        return False


def open_gates(asked: GateRequest) -> Gates:
    """The gates, with the earlier result as it is before this one is written, perhaps over it.

    Raises:
        NotFoundError, DataError: the earlier result is missing, or is none.
    """
    before = None if asked.before is None else read_report(asked.before)
    return Gates(asked.limits, before, asked.before, asked.drop, asked.across, asked.inconclusive)


def sets_apart(report: EvalReport, gates: Gates, runs: tuple[str, ...]) -> Apart:
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


@dataclass(frozen=True)
class GateVerdicts:
    """What the gates say of a report.

    Attributes:
        report: what was held against them.
        outcomes: one a gate, measure and system.
        refused: why it could not be held against the earlier result; it is among the outcomes too.
    """

    report: EvalReport
    outcomes: tuple[GateOutcome, ...]
    refused: DataError | None = None

    @property
    def passed_over(self) -> tuple[str, ...]:
        """A sentence for each outcome that is inconclusive and does not fail."""
        found = [each for each in self.outcomes if each.inconclusive and not each.failed]
        return (*(each.said for each in found), *dict.fromkeys(each.remedy for each in found if each.remedy))

    def settle(self) -> None:
        """Fail where a gate did.

        Raises:
            GateError: one is not met.
            DataError: one could not look.
        """
        if self.refused is not None:
            raise self.refused
        settle(self.outcomes, self.report)


def check_gates(report: EvalReport, gates: Gates) -> GateVerdicts:
    """Hold a report against the gates; nothing is raised yet, so that all of it can be written first."""
    try:
        return GateVerdicts(report, gates.outcomes(report))
    except DataError as error:
        return GateVerdicts(report, (GateOutcome(f"not worse than {gates.where}", str(error), True),), error)


def summary(verdicts: GateVerdicts, apart: Apart = None) -> str:
    """The report in Markdown, the gates before it, and after it what tells the set of the earlier result apart.

    Args:
        apart: see `sets_apart`.
    """
    failed = sum(each.failed for each in verdicts.outcomes)
    lines = [f"- {_mark(each)} {each.said}" for each in verdicts.outcomes]
    open_ = sum(each.inconclusive for each in verdicts.outcomes)
    said = [f"{failed} of {len(lines)} not met" if failed else "all met", *([f"{open_} inconclusive"] if open_ else [])]
    next_ = [f"- next: {each}" for each in dict.fromkeys(each.remedy for each in verdicts.outcomes if each.remedy)]
    head = ["## Gates", "", ", ".join(said), "", *lines, *next_, ""]
    return "\n".join([*(head if lines else []), markdown(lay_out(verdicts.report)), *_set_difference_lines(apart)])


def _mark(outcome: GateOutcome) -> str:
    """What a reader sees first; an inconclusive outcome is neither met nor missed."""
    if outcome.inconclusive:
        return "❔"
    return "❌" if outcome.failed else "✅"


def _set_difference_lines(apart: Apart) -> list[str]:
    if apart is None:
        return []
    if isinstance(apart, str):
        return ["", f"> {apart}"]
    from raggs.app.diff import lay_out_diff  # late: most evaluations compare no sets

    return ["", markdown(lay_out_diff(apart))]


@contextmanager
def refusals_told(lock: Path | None, junit: Path | None, append: Callable[[str], None] | None) -> Iterator[None]:
    """While systems are scored: where that is refused, a CI server hears why, as it hears of gates. The error goes on.

    Args:
        lock: the golden.lock that the set is held to, if any.
        junit: the file for JUnit XML.
        append: adds Markdown to the summary of the step.
    """
    try:
        yield
    except RaggsError as error:
        what = "an evaluation" if lock is None else f"an evaluation by the set that {lock} means"
        if append is not None:
            append(f"## Gates\n\nnothing was scored\n\n- ❌ {error}")
        if junit is not None:
            _write_junit(junit_of_refusal(what, str(error)), junit)
        raise


def write_junit(verdicts: GateVerdicts, file: Path) -> None:
    """JUnit XML: a case for each gate, and for each measure of each system.

    Raises:
        ProviderError: the file cannot be written.
    """
    _write_junit(junit_xml(verdicts.report, verdicts.outcomes), file)


def _write_junit(xml: bytes, file: Path) -> None:
    with disk(file, "choose another --junit"):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, xml)


MAX_SHOWN_FINDINGS = 3  # differences; all of them are in the audit


def meaning_of(judgments: Judgments) -> LockDefinitions:
    """What some judgments are, and what measures make of them."""
    qrels = judgments.qrels
    counts = Counter(grade for grade in qrels.grade.tolist() if grade >= 0)
    locked = LockedJudgments(
        digest=judgments.digest,
        questions=len(qrels.qids),
        grades={str(grade): counts[grade] for grade in qrels.scale.grades().tolist()},
        relevant=qrels.scale.relevant,
        gains=qrels.scale.gains,
    )
    return LockDefinitions(judgments=locked, measures=definitions())


def meaning_of_run(run: OpenedRun) -> LockDefinitions:
    """The same of a run; of one that has judged nothing, the measures alone."""
    from raggs.stages.questions import QUESTIONS  # late: only runs have stages

    if run.pipeline is QUESTIONS:
        return LockDefinitions()
    try:
        return meaning_of(open_golden(run.folder).judgments())
    except (DataError, NotFoundError):
        return LockDefinitions(measures=definitions())


def check_meant(lock: Path) -> None:
    """Refuse a lock by which judgments cannot be told.

    Raises:
        NotFoundError: there is no such lock.
        DataError: it is damaged, or says nothing of judgments.
    """
    if read_lock(lock)[0].judgments is None:
        said = "says nothing of judgments: it is of a run that had none"
        raise DataError(said, where=lock, remedy=f"raggs audit SET --write-lock {quote(str(lock))} writes it again")


def check_lock(lock: Path, judgments: Judgments, measures: Sequence[MeasureSpec]) -> None:
    """Refuse judgments, or measures, that a lock does not mean.

    Args:
        measures: those that are asked for; what others are does not matter.

    Raises:
        NotFoundError: there is no such lock.
        DataError: it is damaged, says nothing of judgments, or means others.
    """
    check_meant(lock)
    asked = {named.measure.NAME for named in measures}
    found = list(meaning_findings(meaning_of(judgments), lock, asked))
    if not found:
        return
    more = f"; and {len(found) - MAX_SHOWN_FINDINGS} more" if len(found) > MAX_SHOWN_FINDINGS else ""
    told = "; ".join(finding.message for finding in found[:MAX_SHOWN_FINDINGS])
    raise DataError(
        f"means another golden set than {judgments.source}: {told}{more}",
        where=lock,
        line=found[0].line,
        remedy=f"if this set is meant: raggs audit {quote(judgments.source)} --write-lock {quote(str(lock))}; "
        "raggs diff OLD NEW compares two sets",
    )
