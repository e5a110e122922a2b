"""What a golden.lock says of judgments and measures: made of a set, and held against one that is to be scored with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from raggs.base.errors import DataError, NotFoundError
from raggs.golden.judgments import Judgments
from raggs.golden.opened import open_golden
from raggs.metrics.definitions import definitions
from raggs.metrics.names import Named
from raggs.runs.manifests.goldenlock import LockedJudgments, Meaning, meaning_findings, read_lock
from raggs.runs.manifests.opened import OpenedRun
from raggs.stages.questions import QUESTIONS

SHOWN = 3  # differences; all of them are in the audit


def meaning_of(judgments: Judgments) -> Meaning:
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
    return Meaning(judgments=locked, measures=definitions())


def meaning_of_run(run: OpenedRun) -> Meaning:
    """The same of a run; of one that has judged nothing, the measures alone."""
    if run.pipeline is QUESTIONS:
        return Meaning()
    try:
        return meaning_of(open_golden(run.folder).judgments())
    except (DataError, NotFoundError):
        return Meaning(measures=definitions())


def check_meant(lock: Path) -> None:
    """Refuse a lock by which judgments cannot be told.

    Raises:
        NotFoundError: there is no such lock.
        DataError: it is damaged, or says nothing of judgments.
    """
    if read_lock(lock)[0].judgments is None:
        said = "says nothing of judgments: of a run that had none, or written by an earlier version"
        raise DataError(said, where=lock, remedy=f"raggs audit SET --write-lock {quote(str(lock))} writes it again")


def check_lock(lock: Path, judgments: Judgments, measures: Sequence[Named]) -> None:
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
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    told = "; ".join(finding.message for finding in found[:SHOWN])
    raise DataError(
        f"means another golden set than {judgments.source}: {told}{more}",
        where=lock,
        line=found[0].line,
        remedy=f"if this set is meant: raggs audit {quote(judgments.source)} --write-lock {quote(str(lock))}; "
        "raggs diff OLD NEW compares two sets",
    )
