"""Export and import of human labels, and of passages that need labels.

Exported tasks contain no grade by a model, no rank and no system. An import adds all labels or none: every row of every
file is checked against the run before a label is added. Duplicates are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from raggs.app.review import reviewer, reviews_of
from raggs.app.review_pool import PassageItems, text_of, word_of
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE
from raggs.base.errors import UsageError
from raggs.base.files import disk, write_atomic
from raggs.base.jsonl import first_fault
from raggs.base.tables import NO_COLUMNS, ColumnNames, check_column
from raggs.base.text import clean_unicode, did_you_mean, plural
from raggs.parts.review_files import CANNOT_TELL, EXPORT_FORMS, ReviewFileRow, Task, read_rows
from raggs.parts.reviews import (
    CurrentReviews,
    EvidenceReview,
    GradeReview,
    OrderReview,
    Review,
    ReviewStore,
    Withdrawal,
    fold_reviews,
    passage_digest,
)
from raggs.runs.manifests.open_run import OpenedRun


@dataclass(frozen=True)
class ReviewFileResult:
    """The written file, and its numbers of passages and labels."""

    path: Path
    items: int
    words: int


def export_reviews(
    run: OpenedRun,
    out: Path,
    form: str,
    *,
    folder: Path | None = None,
    todo: bool = False,
    everything: bool = False,
    force: bool = False,
) -> ReviewFileResult:
    """Write the human labels of a run, or the passages without labels, to a file.

    Args:
        form: csv, jsonl, argilla or label-studio.
        todo: write the passages without labels, in the order of the pools, instead of the labels.
        everything: write all lines of this run's queries, including replaced labels; only as JSON lines.

    Raises:
        UsageError: the format is unknown, the file exists, or `everything` is combined with `todo` or another format.
        DataError: a line of the labels is invalid.
        ProviderError: the file cannot be written.
    """
    if form not in EXPORT_FORMS:
        raise UsageError(f"unknown format {form!r}", remedy=did_you_mean(form, EXPORT_FORMS))
    if everything and (todo or form != "jsonl"):
        raise UsageError(
            "--all cannot be combined with --todo or with another format than jsonl",
            remedy="use --all with --format jsonl and without --todo",
        )
    if out.exists() and not force:
        raise UsageError(f"{out} exists", remedy="name another --out, or pass --force to replace it")
    lines, items = ReviewStore(reviews_of(run.folder, folder)).read(), PassageItems(run)
    if everything:
        questions = set(items.questions.values())
        of_run = [line for line in lines if line.query in questions or line.qid in items.queries]
        text, given = "".join(line.model_dump_json() + "\n" for line in of_run), ReviewFileResult(out, 0, len(of_run))
    else:
        tasks = _tasks(items, fold_reviews(lines), todo)
        text, given = (
            EXPORT_FORMS[form](tasks),
            ReviewFileResult(out, len(tasks), sum(len(task.words) for task in tasks)),
        )
        if form == "jsonl" and not todo:
            others = _orders_and_evidence(items, fold_reviews(lines))
            text, given = text + "".join(others), ReviewFileResult(out, len(tasks), given.words + len(others))
    with disk(out, "write to another folder"):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(out, text.encode())
    return given


def _tasks(items: PassageItems, held: CurrentReviews, todo: bool) -> list[Task]:
    found = []
    for key, query, passage in items.tasks():
        words = list(held.grades.get(key, {}).values())
        if key in held.settling:
            words.append(held.settling[key])
        if bool(words) != todo:
            found.append(Task(query, passage, tuple(words)))
    return found


def _orders_and_evidence(items: PassageItems, held: CurrentReviews) -> list[str]:
    questions = set(items.questions.values())
    orders = (order for by in held.orders.values() for order in by.values())
    evidence = (each for by in held.evidence.values() for each in by.values())
    found = (*orders, *evidence, *held.settling_evidence.values())
    return [each.model_dump_json() + "\n" for each in found if each.query in questions]


Identity = tuple[object, ...]
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # annotator id in Argilla
MAX_SHOWN_NAMES = 3
GRADES = f"write a grade from {MIN_GRADE} to {MAX_GRADE}, or {CANNOT_TELL} for cannot tell, or leave the cell empty"
TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no")


@dataclass(frozen=True)
class ReviewImportResult:
    """Result of an import.

    Attributes:
        added: number of added labels.
        known: number of rows that repeat a stored label.
        open: number of rows without a grade.
        stale: number of added labels of passages whose text is not in the run's pools.
        folder: folder of the labels.
    """

    added: int
    known: int
    open: int
    stale: int
    folder: Path


@dataclass(frozen=True)
class ReviewerNames:
    """Names of annotators.

    Attributes:
        usual: annotator of rows that contain no name, or only a UUID; None if unknown.
        known: names of annotators by the id that a file uses.
    """

    usual: str | None = None
    known: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def told(cls, said: Sequence[str]) -> ReviewerNames:
        """Parse ``NAME`` (at most once) and ``AS=NAME``.

        Raises:
            UsageError: a name is invalid, or two names apply to the same rows.
        """
        pairs = [each.rpartition("=") for each in said]
        usual = [name for _, sign, name in pairs if not sign]
        known = {called.strip(): reviewer(name) for called, sign, name in pairs if sign}
        if len(usual) > 1 or len(known) + len(usual) < len(pairs):
            raise UsageError(
                "--annotator: two names apply to the same rows",
                remedy="give --annotator NAME at most once, and --annotator AS=NAME once for each id AS in the file",
            )
        return cls(reviewer(usual[0]) if usual else None, known)

    def of(self, row: ReviewFileRow) -> str:
        """Return the annotator of a row; empty if unknown."""
        called = word_of(row.cells.get("who"))
        if self.usual and (not called or UUID.fullmatch(called)):
            return self.known.get(called, self.usual)
        return self.known.get(called, called)

    def check(self, rows: Sequence[ReviewFileRow]) -> None:
        """Raise an error if a file identifies an annotator only by UUID and the user gave no name for it.

        Raises:
            DataError: there is such an annotator. A default name is enough if there is only one.
        """
        called = {word_of(row.cells.get("who")): row for row in reversed(rows) if word_of(row.cells.get("grade"))}
        strange = [name for name in sorted(called) if UUID.fullmatch(name) and name not in self.known]
        if not strange or (len(strange) == 1 and self.usual):
            return
        shown = " ".join(f"--annotator {name}=NAME" for name in strange[:MAX_SHOWN_NAMES]) + (
            " ..." if strange[MAX_SHOWN_NAMES:] else ""
        )
        known = "named only by UUID"
        raise called[strange[0]].wrong(
            f"{plural(len(strange), 'annotator')} {known}", f"pass their names: {shown} (see client.users in Argilla)"
        )


@dataclass
class _ReviewImport:
    """An import in progress.

    Attributes:
        seen: row of each label, by annotator, passage and time.
        held: current labels, including those read so far.
        said: identities of all stored labels.
        spelling: returns the known spelling of an annotator's name.
    """

    items: PassageItems
    names: ReviewerNames
    now: datetime
    held: CurrentReviews
    said: set[Identity]
    seen: dict[Identity, ReviewFileRow]
    spelling: Callable[[str], str]
    known: int = 0
    open: int = 0

    def take(self, row: ReviewFileRow) -> Review | None:
        """Return the label of a row; None if the row has no grade or repeats a stored label."""
        review = row.review or self._grade(row)
        if review is None:
            self.open += 1
            return None
        if row.review is not None:
            self._check(row, row.review)
        self._once(row, review)
        if _identity(review) in self.said or (row.review is None and self._repeats(row, review)):
            self.known += 1
            return None
        self.said.add(_identity(review))
        return review

    def _grade(self, row: ReviewFileRow) -> GradeReview | None:
        """Return the label of a row in any format; None if the row has no grade."""
        given = word_of(row.cells.get("grade"))
        if not given:
            return None
        qid, doc_id, (query, passage) = self.items.find(row)
        who = self._who(row)
        settles = _flag(row, "settles", False)
        before = self.held.settling.get((query, passage)) if settles else self._words(query, passage).get(who)
        pool = self.items.pools.get(qid, {})
        told: dict[str, object] = {
            "who": who,
            "at": self._at(row),
            "qid": qid,
            "query": query,
            "note": clean_unicode(text_of(row.cells.get("note"))),
            "seconds": _number(row, "seconds"),
            "prompt": word_of(row.cells.get("prompt")),
            "blind": _flag(row, "blind", bool(row.cells.get("passage"))),
            "chance": _number(row, "chance"),
            "replaces": before.id if before is not None and before.who == who else None,
            "doc_id": doc_id,
            "passage": passage,
            "span": pool[doc_id].span if doc_id in pool and passage_digest(pool[doc_id]) == passage else None,
            "grade": _number_of(row, given),
            "settles": settles,
        }
        try:
            return GradeReview.model_validate(told)
        except ValidationError as error:
            raise row.wrong(first_fault(error), "correct the row") from error

    def _words(self, query: str, passage: str) -> Mapping[str, GradeReview]:
        return self.held.grades.get((query, passage), {})

    def _who(self, row: ReviewFileRow) -> str:
        found = self.names.of(row)
        if not found:
            raise row.wrong("does not name the annotator", "name the annotator of such rows: --annotator NAME")
        try:
            return self.spelling(reviewer(found))
        except UsageError as error:
            raise row.wrong(error.message, "shorten it") from error

    def _at(self, row: ReviewFileRow) -> datetime:
        given = word_of(row.cells.get("at"))
        try:
            found = datetime.fromisoformat(given) if given else self.now
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        except ValueError as error:
            raise row.wrong(f"{given!r} is not a time", "write it as 2026-01-31T12:00:00+00:00") from error

    def _check(self, row: ReviewFileRow, review: Review) -> None:
        """Check that a line of the labels belongs to this run."""
        if isinstance(review, GradeReview):
            cells = {"qid": review.qid, "doc_id": review.doc_id, "query": review.query, "passage": review.passage}
            self.items.find(ReviewFileRow(row.path, row.line, cells))
        elif review.query not in self.items.questions.values() and review.qid not in self.items.queries:
            raise row.wrong(f"no query {review.qid} in this run", did_you_mean(review.qid, self.items.queries))

    def _once(self, row: ReviewFileRow, review: Review) -> None:
        """Check that no two rows contain an annotator's grade of the same passage, unless their times differ."""
        if isinstance(review, GradeReview):
            timed = row.review is not None or bool(word_of(row.cells.get("at")))
            word = (review.who.casefold(), review.key, review.settles, review.at if timed else None)
            if (first := self.seen.setdefault(word, row)) is not row:
                said = f"{review.who} grades passage {review.doc_id} of query {review.qid} twice"
                raise row.wrong(said, f"keep one row; the first is {first.path}:{first.line}")

    def _repeats(self, row: ReviewFileRow, review: Review) -> bool:
        """Return whether a row without a time repeats the annotator's current label."""
        if not isinstance(review, GradeReview) or word_of(row.cells.get("at")):
            return False
        held = self.held.settling.get(review.key) if review.settles else self._words(*review.key).get(review.who)
        return held is not None and (held.who, held.grade, held.note) == (review.who, review.grade, review.note)


def import_reviews(
    run: OpenedRun,
    files: Sequence[Path],
    *,
    folder: Path | None = None,
    who: Sequence[str] = (),
    columns: ColumnNames = NO_COLUMNS,
) -> ReviewImportResult:
    """Import human labels of a run from files: all rows, or none if a row is invalid.

    Args:
        files: tables (.csv), JSON lines (.jsonl), or lists (.json) of Argilla's records or Label Studio's tasks.
        folder: folder of the labels [default: `reviews` next to the folder of runs].
        who: ``NAME`` for the annotator of rows without a name; ``AS=NAME`` for the annotator with the id AS in a file.
        columns: columns by role, e.g. ``{"grade": "score"}``.

    Raises:
        UsageError: a file has an unknown extension, `who` is not a valid name, or no file has a named column.
        NotFoundError: a file cannot be read.
        DataError: a row is invalid: unknown query, passage or grade, no annotator, or a second grade.
        ProviderError: the file of labels cannot be written.
    """
    store = ReviewStore(reviews_of(run.folder, folder))
    lines, items = store.read(), PassageItems(run)
    for role, name in columns.items():
        check_column(role, name, [path for path in files if path.suffix == ".csv" or ".jsonl" in path.suffixes])
    names, rows = ReviewerNames.told(who), [row for path in files for row in read_rows(path, columns)]
    names.check(rows)
    reading = _ReviewImport(
        items, names, datetime.now(UTC), fold_reviews(lines), set(map(_identity, lines)), {}, store.spelling
    )
    new = [review for row in rows if (review := reading.take(row)) is not None]
    if new:
        store.append(*new)
    stale = sum(isinstance(review, GradeReview) and review.key not in items.ids for review in new)
    return ReviewImportResult(len(new), reading.known, reading.open, stale, store.folder)


def _identity(review: Review) -> Identity:
    """Return what identifies a label. A label that was replaced later keeps its identity."""
    said = (review.kind, review.who.casefold(), review.at, review.query)
    if isinstance(review, Withdrawal):
        return (*said, review.replaces)
    if isinstance(review, OrderReview):
        return (*said, review.passages, review.places)
    if isinstance(review, EvidenceReview):
        return (*said, review.passages, review.sets, review.settles)
    return (*said, review.passage, review.grade, review.settles, review.note)


def _number_of(row: ReviewFileRow, given: str) -> int | None:
    if given == CANNOT_TELL:
        return None
    whole = given.removesuffix(".0")
    if not whole.isascii() or not whole.isdigit():
        raise row.wrong(f"{given!r} is not a grade", GRADES)
    if not MIN_GRADE <= int(whole[:9]) <= MAX_GRADE:
        raise row.wrong(f"grade {whole} is outside {MIN_GRADE}..{MAX_GRADE}", GRADES)
    return int(whole)


def _number(row: ReviewFileRow, name: str) -> float | None:
    given = word_of(row.cells.get(name))
    try:
        return float(given) if given else None
    except ValueError as error:
        raise row.wrong(f"{name}: {given!r} is not a number", "leave it empty if it is not known") from error


def _flag(row: ReviewFileRow, name: str, usual: bool) -> bool:
    given = word_of(row.cells.get(name)).lower()
    if given and given not in (*TRUE, *FALSE):
        raise row.wrong(f"{name}: {given!r} is neither true nor false", "leave it empty if it is not known")
    return given in TRUE if given else usual
