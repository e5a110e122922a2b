"""Human labels for the passages of a run: store a label, and report the state of all labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from shlex import quote

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, MergeRecord, Passage, Query, QueryRecord
from raggs.base.errors import NotFoundError, UsageError
from raggs.base.files import hash_file
from raggs.base.judge_health import HUMAN_SOURCE
from raggs.base.text import clean_unicode, did_you_mean, one_line
from raggs.base.types import as_object, leaves
from raggs.golden.human_evidence import human_evidence
from raggs.parts.judges import reviews_beside
from raggs.parts.reviews import (
    MAX_NAME_CHARS,
    MAX_NOTE_CHARS,
    CurrentReviews,
    GradeReview,
    Key,
    ReviewStore,
    fold_reviews,
    key_of,
    passage_digest,
    question_digest,
)
from raggs.parts.reviews import REVIEWS_FILE as REVIEWS
from raggs.runs.manifests.open_run import OpenedRun


@dataclass(frozen=True)
class ReviewStatus:
    """State of the human labels of a run.

    Attributes:
        folder: folder of the labels.
        lines: number of stored lines, of this run and of other runs.
        reviewers: number of labels that apply to this run, by annotator.
        graded: number of passages in the pools with a human grade.
        pooled: number of passages in the pools.
        blind: number of `graded` passages with a label given before a grade by a model was seen. Only these count for
            `raggs judge`.
        unsure: number of passages for which every annotator answered `cannot tell`.
        conflicts: number of passages with different grades that are not adjudicated.
        stale: number of labels of this run's passages or queries whose text has changed.
        torn: whether the last line is incomplete and does not count.
        evidence: number of queries with evidence sets by annotators, or for which no set suffices.
        evidence_conflicts: number of queries with different evidence sets that are not adjudicated.
        evidence_stale: number of queries whose evidence sets do not count, because a text has changed.
    """

    folder: Path
    lines: int
    reviewers: Mapping[str, int]
    graded: int
    pooled: int
    blind: int
    unsure: int
    conflicts: int
    stale: int
    torn: bool
    evidence: int = 0
    evidence_conflicts: int = 0
    evidence_stale: int = 0


@dataclass(frozen=True)
class AnnotatorAgreement:
    """Agreement of annotators on a run.

    Attributes:
        shared: number of passages with a grade by at least two annotators.
        equal: number of `shared` passages on which all grades are equal.
    """

    shared: int
    equal: int


def reviews_of(run: Path, folder: Path | None) -> Path:
    """Return the folder of a run's labels: `folder`, or `reviews` next to the folder of runs."""
    return folder or reviews_beside(run.resolve().parent)


def calibration_files(run: OpenedRun) -> tuple[str, ...]:
    """Return the paths of the calibration files of a run's judge, as in its configuration."""
    lock = run.manifest.stages.get("judge")
    named = () if lock is None else leaves(dict(lock.params))
    return tuple(str(value) for place, value in named if place[-1:] == ("calibration",) and value is not None)


@dataclass(frozen=True)
class FittedLabels:
    """Labels that the calibration of a run's judge was fitted on.

    Attributes:
        pairs: query id and passage id of each label.
        unknown: why they are not known completely; empty if they are.
    """

    pairs: frozenset[tuple[str, str]] = frozenset()
    unknown: str = ""


def fitted_labels(run: OpenedRun) -> FittedLabels:
    """Return the labels that the calibration of a run's judge was fitted on; none without a calibration.

    A calibration file counts only if it has not changed since the run.
    """
    files, pairs = calibration_files(run), set[tuple[str, str]]()
    if not files:
        return FittedLabels()
    # imported lazily: few runs have a calibration
    from raggs.parts.judges.litellm import read_calibration_file

    hashes = {value for _, value in leaves(dict(run.manifest.stages["judge"].components)) if isinstance(value, str)}
    for name in files:
        file = Path(name)
        if not file.is_file() or hash_file(file) not in hashes:
            return FittedLabels(frozenset(pairs), f"{name} is missing or has changed since the run")
        found = read_calibration_file(file).fitted_on
        if found is None:
            return FittedLabels(frozenset(pairs), f"{name} does not name the labels of its fit")
        pairs.update(found)
    return FittedLabels(frozenset(pairs))


def next_run(run: OpenedRun, folder: Path | None = None) -> str:
    """Return the command that runs the judge stage again with the human labels.

    Args:
        folder: folder of the labels, if it is not `reviews` next to the folder of runs.
    """
    asked = as_object(run.manifest.config.get("judge"))
    if not asked.get("human_first") and HUMAN_SOURCE in str(asked.get("judge")):
        return run.command  # the judge `human` reads the labels without any change of settings
    usual, again = reviews_of(run.folder, None), run.command
    if not asked.get("human_first"):
        again = f"{again} --human-first"
    if folder is None or folder.resolve() == usual.resolve():
        return again
    return f"raggs review import {quote(str(run.folder))} {quote(str(folder / REVIEWS))} && {again}"


def reviewer(name: str | None) -> str:
    """Return the name of the annotator: the given one, or the login name.

    Raises:
        UsageError: it is empty or longer than 80 characters, or there is no login name.
    """
    try:
        found = one_line(clean_unicode(getuser() if name is None else name)).strip()
    except (KeyError, OSError) as error:
        raise UsageError("no login name", remedy="give a name: --annotator NAME") from error
    if not found or len(found) > MAX_NAME_CHARS:
        raise UsageError(
            f"an annotator's name has 1 to {MAX_NAME_CHARS} characters", remedy="give a name: --annotator NAME"
        )
    return found


def set_grade(
    run: OpenedRun,
    qid: str,
    doc_id: str,
    grade: int | None,
    *,
    folder: Path | None = None,
    who: str | None = None,
    note: str = "",
    settles: bool = False,
) -> GradeReview:
    """Store an annotator's grade of a passage; it replaces the annotator's earlier grade.

    Args:
        grade: 1 to 5; None for `cannot tell`.
        folder: folder of the labels [default: `reviews` next to the folder of runs].
        who: the annotator [default: the login name].
        settles: whether the grade adjudicates different grades.

    Returns:
        The label, which is already written to disk.

    Raises:
        UsageError: a grade outside 1..5, no valid name, or a note that is too long.
        NotFoundError: the run has no such query, or no such passage in its pool.
        ProviderError: the file cannot be written.
    """
    if grade is not None and not MIN_GRADE <= grade <= MAX_GRADE:
        raise UsageError(f"grade {grade} is outside {MIN_GRADE}..{MAX_GRADE}", remedy="pass 1 to 5, or ? if in doubt")
    if len(note) > MAX_NOTE_CHARS:
        raise UsageError(f"the note has {len(note):,} characters; at most {MAX_NOTE_CHARS:,}", remedy="shorten it")
    query, passage = find_item(run, qid, doc_id)
    store = ReviewStore(reviews_of(run.folder, folder))
    name = store.spelling(reviewer(who))
    question, content = key_of(query, passage)
    held = store.held()
    before = held.settling.get((question, content)) if settles else held.grades.get((question, content), {}).get(name)
    review = GradeReview(
        who=name,
        at=datetime.now(UTC),
        qid=qid,
        query=question,
        note=clean_unicode(note),
        blind=False,
        replaces=before.id if before is not None and before.who == name else None,
        doc_id=doc_id,
        passage=content,
        span=passage.span,
        grade=grade,
        settles=settles,
    )
    store.append(review)
    return review


def find_item(run: OpenedRun, qid: str, doc_id: str) -> tuple[Query, Passage]:
    """Return a query of a run and a passage of its pool.

    Raises:
        NotFoundError: no query or passage has this id; the error suggests the most similar id.
    """
    queries = {record.qid: record for record in run.typed("queries", QueryRecord)}
    if qid not in queries:
        raise NotFoundError(f"no query {qid} in this run", where=run.folder, remedy=did_you_mean(qid, queries))
    pool = {record.doc_id: record for record in run.typed("merge", MergeRecord) if record.qid == qid}
    if doc_id not in pool:
        message = f"no passage {doc_id} in the pool of query {qid}"
        raise NotFoundError(message, where=run.folder, remedy=did_you_mean(doc_id, pool))
    return queries[qid], pool[doc_id].passage


def items_of(run: OpenedRun) -> dict[tuple[str, str], Key]:
    """Return the review key of every pooled passage, by query id and passage id. Labels are stored under this key."""
    questions = {record.qid: question_digest(record) for record in run.typed("queries", QueryRecord)}
    return {
        (record.qid, record.doc_id): (questions[record.qid], passage_digest(record.passage))
        for record in run.typed("merge", MergeRecord)
        if record.qid in questions
    }


def review_status(run: OpenedRun, folder: Path | None = None) -> ReviewStatus:
    """Return the state of the human labels of a run.

    Raises:
        DataError: a line of the labels is invalid.
    """
    store = ReviewStore(reviews_of(run.folder, folder))
    lines, present = store.read(), items_of(run)
    held = fold_reviews(lines)
    keys, evidence = set(present.values()), human_evidence(run, store.folder)
    settled, unseen = {key: found for key, found in held.items().items() if key in keys}, held.unseen.items()
    return ReviewStatus(
        folder=store.folder,
        lines=len(lines),
        reviewers=_reviewers(held, keys),
        graded=sum(key in settled for key in present.values()),
        pooled=len(present),
        blind=sum(key in unseen for key in present.values()),
        unsure=sum(bool(held.grades.get(key)) and key not in settled for key in keys),
        conflicts=sum(found.conflict for found in settled.values()),
        stale=len(held.stale(present)),
        torn=store.torn,
        evidence=len(evidence.sets),
        evidence_conflicts=len(evidence.differing),
        evidence_stale=len(evidence.stale),
    )


def annotator_agreement(run: OpenedRun, folder: Path | None = None) -> AnnotatorAgreement:
    """Return how often the annotators of a run give the same grade.

    Raises:
        DataError: a line of the labels is invalid.
    """
    held, keys = ReviewStore(reviews_of(run.folder, folder)).held(), set(items_of(run).values())
    grades = [
        [label.grade for label in labels.values() if label.grade is not None]
        for key, labels in held.grades.items()
        if key in keys
    ]
    shared = [each for each in grades if len(each) > 1]
    return AnnotatorAgreement(len(shared), sum(len(set(each)) == 1 for each in shared))


def _reviewers(held: CurrentReviews, keys: set[Key]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key, words in held.grades.items():
        for name in words if key in keys else ():
            counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))
