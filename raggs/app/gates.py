"""Gates of an evaluation for CI: limits, an earlier result, and a golden.lock.

Outcomes are reported as sentences, as Markdown, and as JUnit XML. If the earlier result used another golden set, the
summary describes the difference.
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

    # the comparison of two golden sets, or the reason why it is impossible; None if no comparison is needed
    Apart = DiffReport | str | None


@dataclass(frozen=True)
class GateRequest:
    """Conditions that the result must meet.

    Attributes:
        limits: by measure, the minimum of its mean; for measures where lower is better, the maximum.
        before: earlier eval.json to compare with.
        drop: maximum loss of a mean against the earlier result. A smaller loss also fails if it is significant and
            not negligible.
        across: whether the earlier result may use other judgments.
        lock: golden.lock that the judgments and the requested measures must match.
        inconclusive: whether a gate fails if unjudged passages could reverse its outcome.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    before: Path | None = None
    drop: float = 0.01
    across: bool = False
    lock: Path | None = None
    inconclusive: Inconclusive = "fail"


def keep_earlier(before: Path | None, *outputs: Path | None) -> None:
    """Raise an error if an output would overwrite the earlier result, even by another path to the same file.

    Otherwise a repeated evaluation would be compared with its own result and pass, or quality could sink a little each
    time.

    Args:
        before: earlier eval.json; None if there is no comparison.
        outputs: files to be written.

    Raises:
        UsageError: an output is the earlier result.
    """
    for file in outputs:
        if before is not None and file is not None and _same_file(before, file):
            raise UsageError(
                f"is the earlier result of the comparison, and writing {file} would replace it",
                where=before,
                remedy=f"write to another folder than {file.parent}; to make a result the new baseline, evaluate once "
                f"without --fail-on-regression and with --out {file.parent}",
            )


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of the files does not exist
        return False


def open_gates(asked: GateRequest) -> Gates:
    """Read the earlier result now, before the new result may overwrite it, and return the gates.

    Raises:
        NotFoundError, DataError: the earlier result is missing or invalid.
    """
    before = None if asked.before is None else read_report(asked.before)
    return Gates(asked.limits, before, asked.before, asked.drop, asked.across, asked.inconclusive)


def sets_apart(report: EvalReport, gates: Gates, runs: tuple[str, ...]) -> Apart:
    """Compare the golden set of the earlier result with the current one.

    Args:
        runs: systems of the report, in the syntax of `raggs eval --run`.

    Returns:
        The comparison, or a sentence if the earlier set can no longer be read. None if both sets are equal, or if the
        gates do not accept another set.
    """
    before = gates.before
    if before is None or not gates.across or before.golden.digest == report.golden.digest:
        return None
    from raggs.app.diff import DiffRequest, diff  # Imported lazily: most evaluations compare no sets.

    there, gone = before.golden, f"the judgments of {gates.where} ({before.golden.digest[:12]}) cannot be read again"
    if not Path(there.source).exists():
        return f"{gone}: {there.source} is missing"
    old, new = Path(there.source), Path(report.golden.source)
    if old.resolve() == new.resolve():
        return f"{gone}: {there.source} now contains other judgments"
    measures = tuple(name for name in report.measures if name in before.measures)
    try:
        found = diff(DiffRequest(old, new, runs, measures, report.confidence, report.seed))
    except RaggsError as error:
        return f"{gone}: {error.message}"
    return found if found.old.digest == there.digest else f"{gone}: {there.source} now contains other judgments"


@dataclass(frozen=True)
class GateVerdicts:
    """Outcomes of the gates for a report.

    Attributes:
        report: the report that was checked.
        outcomes: one outcome per gate, measure and system.
        refused: error that prevented the comparison with the earlier result; it is also one of the outcomes.
    """

    report: EvalReport
    outcomes: tuple[GateOutcome, ...]
    refused: DataError | None = None

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Return a sentence for each inconclusive outcome that does not fail, and its remedy."""
        found = [each for each in self.outcomes if each.inconclusive and not each.failed]
        return (*(each.said for each in found), *dict.fromkeys(each.remedy for each in found if each.remedy))

    def settle(self) -> None:
        """Raise an error if a gate failed.

        Raises:
            GateError: a gate failed.
            DataError: a gate could not be checked.
        """
        if self.refused is not None:
            raise self.refused
        settle(self.outcomes, self.report)


def check_gates(report: EvalReport, gates: Gates) -> GateVerdicts:
    """Check a report against the gates. Failures do not raise an error here, so that all outcomes can be written
    first.
    """
    try:
        return GateVerdicts(report, gates.outcomes(report))
    except DataError as error:
        return GateVerdicts(report, (GateOutcome(f"not worse than {gates.where}", str(error), True),), error)


def summary(verdicts: GateVerdicts, apart: Apart = None) -> str:
    """Return Markdown: the gates, the report, and the difference between the earlier golden set and this one.

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
    """Return the symbol of an outcome: passed, failed or inconclusive."""
    if outcome.inconclusive:
        return "❔"
    return "❌" if outcome.failed else "✅"


def _set_difference_lines(apart: Apart) -> list[str]:
    if apart is None:
        return []
    if isinstance(apart, str):
        return ["", f"> {apart}"]
    from raggs.app.diff import lay_out_diff  # Imported lazily: most evaluations compare no sets.

    return ["", markdown(lay_out_diff(apart))]


@contextmanager
def refusals_told(lock: Path | None, junit: Path | None, append: Callable[[str], None] | None) -> Iterator[None]:
    """Report any error of the evaluation to the CI server, in the same form as failed gates, and raise it again.

    Args:
        lock: golden.lock that the set must match, if any.
        junit: file for JUnit XML; None to write none.
        append: adds Markdown to the summary of the step; None to write no summary.
    """
    try:
        yield
    except RaggsError as error:
        what = "an evaluation" if lock is None else f"an evaluation against the set of {lock}"
        if append is not None:
            append(f"## Gates\n\nno system was scored, because of an error\n\n- ❌ {error}")
        if junit is not None:
            _write_junit(junit_of_refusal(what, str(error)), junit)
        raise


def write_junit(verdicts: GateVerdicts, file: Path) -> None:
    """Write JUnit XML with one case per gate and one per measure and system.

    Raises:
        ProviderError: the file cannot be written.
    """
    _write_junit(junit_xml(verdicts.report, verdicts.outcomes), file)


def _write_junit(xml: bytes, file: Path) -> None:
    with disk(file, "choose another --junit"):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, xml)


MAX_SHOWN_FINDINGS = 3  # maximum number of differences in the message; the audit lists all


def meaning_of(judgments: Judgments) -> LockDefinitions:
    """Return the definitions that a lock stores: digest and counts of the judgments, and the formulas of the
    measures.
    """
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
    """Return a run's definitions for a lock, as `meaning_of` does.

    A run without judgments has only measures. A run of `raggs questions` has no definitions.
    """
    from raggs.stages.questions import QUESTIONS  # Imported lazily: only runs have stages.

    if run.pipeline is QUESTIONS:
        return LockDefinitions()
    try:
        return meaning_of(open_golden(run.folder).judgments())
    except (DataError, NotFoundError):
        return LockDefinitions(measures=definitions())


def check_meant(lock: Path) -> None:
    """Raise an error if a lock has no definitions of judgments.

    Raises:
        NotFoundError: the lock does not exist.
        DataError: the lock is damaged, or contains no judgments.
    """
    if read_lock(lock)[0].judgments is None:
        said = "contains no judgments: it was written for a run without grades"
        raise DataError(said, where=lock, remedy=f"write it again: raggs audit SET --write-lock {quote(str(lock))}")


def check_lock(lock: Path, judgments: Judgments, measures: Sequence[MeasureSpec]) -> None:
    """Raise an error if judgments or measures differ from those of a lock.

    Args:
        measures: requested measures; other measures of the lock are ignored.

    Raises:
        NotFoundError: the lock does not exist.
        DataError: the lock is damaged, contains no judgments, or contains other judgments or definitions of measures.
    """
    check_meant(lock)
    asked = {named.measure.NAME for named in measures}
    found = list(meaning_findings(meaning_of(judgments), lock, asked))
    if not found:
        return
    more = f"; and {len(found) - MAX_SHOWN_FINDINGS} more" if len(found) > MAX_SHOWN_FINDINGS else ""
    told = "; ".join(finding.message for finding in found[:MAX_SHOWN_FINDINGS])
    raise DataError(
        f"is the lock of another golden set than {judgments.source}: {told}{more}",
        where=lock,
        line=found[0].line,
        remedy=f"to accept this set: raggs audit {quote(judgments.source)} --write-lock {quote(str(lock))}; "
        "to compare two sets: raggs diff OLD NEW",
    )
