"""Human labels: append-only files, and the labels that are currently valid.

reviews.jsonl contains one line per label, with annotator, time, and what the annotator was shown. Lines are only added,
never changed; a later line may replace an earlier one. `append` returns only when the line is on disk. Several
processes may append lines, one after the other. If a power failure truncates the last line, readers ignore it, and the
next write removes it. Names that differ only in case belong to one annotator; the spelling of the first line is used.

Queries and passages are identified by digests of their texts, not by ids. A passage with a changed text is another
passage. The same passage in another run or file keeps its labels. The ids are stored for display, and to detect labels
of texts that have changed.

`fold_reviews` computes the valid labels. If an annotator has several lines for an item, the last line in the file
counts, regardless of its time. If an annotator withdraws a label, the previous one is valid again, even if the
withdrawn label replaced it. An adjudicated grade has priority. Without adjudication, the grade is the common grade if
annotators agree, otherwise the lower median, which is reported as a conflict. "Cannot tell" is a valid answer but not a
grade: an item with no other answers has no grade.

Evidence sets belong to queries. The sets of a query count if all its annotators gave the same ones, or if one of them
adjudicated. Otherwise annotators differ, and the query keeps the sets that are stored with it.

shown.jsonl records when an annotator was shown grades of a model or of other annotators. A later label for the passage
is not blind, even after a restart, an undo or on another day. The line is on disk before the grades are displayed.

draws.jsonl records random samples with their inclusion probabilities. One line is a whole sample, so that its
completeness can be checked. If a draw selects an item that already has a label, this label counts. Samples with the
same seed are nested: a larger one contains a smaller one.

A plan file lists passages to label next, with reasons, in order.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median_low
from threading import RLock
from typing import Annotated, Literal, Protocol, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, Field, PrivateAttr, RootModel, StringConstraints, model_validator

from raggs.base.artifacts import EvidenceSets, Frozen, Grade, Groups, Identifier, Passage, Query, Span
from raggs.base.errors import BusyError, DataError
from raggs.base.files import disk, sync_folder
from raggs.base.hashing import hash_bytes, hash_value
from raggs.base.jsonl import Appender, WrittenFile, read_on, read_records, read_torn, write_records

MAX_NAME_CHARS, MAX_NOTE_CHARS = 80, 10_000  # maximum characters of a name and of a note
HEX = 32  # number of hex digits in a digest, of the 64 digits of the hash

Digest = Annotated[str, StringConstraints(pattern=rf"^[0-9a-f]{{{HEX}}}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS, pattern=r"^\S(.*\S)?$")]
Key = tuple[str, str]  # digests of query and passage


def question_digest(query: Query) -> str:
    """Return the digest of a query: 32 hex digits of a hash of its original text, and of any earlier turns."""
    return hash_bytes(query.in_context().encode())[:HEX]


def passage_digest(passage: Passage) -> str:
    """Return the digest of a passage: 32 hex digits of a hash of title and text as shown to a judge."""
    return hash_bytes(passage.content.encode())[:HEX]


def key_of(query: Query, passage: Passage) -> Key:
    """Return the key of a passage for a query: the digests of both."""
    return question_digest(query), passage_digest(passage)


class _Line(Frozen):
    """Fields common to all lines.

    `chance` is the inclusion probability in a random sample, which estimates need; None if an annotator or a plan
    selected the item.
    """

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line format")
    who: Name = Field(description="name of the annotator")
    at: AwareDatetime = Field(description="time of the label, for information only; the order of lines counts")
    qid: Identifier = Field(description="query id at the time of the label")
    query: Digest = Field(description="digest of the query text")
    note: str = Field("", max_length=MAX_NOTE_CHARS, description="note of the annotator")
    seconds: float | None = Field(None, ge=0, description="seconds between display and answer")
    prompt: str = Field("", description="name and version of the rubric that was shown")
    blind: bool = Field(
        True, description="whether it is known that no model grade, rank, system or other label was shown before"
    )
    chance: float | None = Field(
        None, gt=0, le=1, description="inclusion probability; null if the item was not randomly drawn"
    )
    replaces: str | None = Field(None, description="id of the annotator's earlier line that this one replaces")

    @property
    def takes_back(self) -> bool:
        """Whether the line only withdraws another line."""
        return False

    # id of the line as stored, if it was stored with another spelling of the name
    _stored_id: str | None = PrivateAttr(None)

    @property
    def id(self) -> str:
        """Id by which other lines refer to this line: 16 hex digits of a hash of the line."""
        return self._stored_id or hash_value(self.model_dump(mode="json"))[:16]

    def spelled(self, name: str) -> Self:
        """Return the line with another spelling of its annotator's name; the id stays the same."""
        if name == self.who:
            return self
        found = self.model_copy(update={"who": name})
        found._stored_id = self.id
        return found


class GradeReview(_Line):
    """A grade of a passage, or "cannot tell"."""

    kind: Literal["grade"] = "grade"
    doc_id: Identifier = Field(description="passage id at the time of the label")
    passage: Digest = Field(description="digest of the passage's title and text")
    span: Span | None = Field(None, description="position in the source document, if known")
    grade: Grade | None = Field(description="1 (not relevant) to 5 (answers the query); null: cannot tell")
    settles: bool = Field(False, description="whether this grade adjudicates differing grades of annotators or a model")

    @property
    def key(self) -> Key:
        """Key of the item."""
        return self.query, self.passage


class OrderReview(_Line):
    """An order of a few passages from best to worst. Passages of one group are tied."""

    kind: Literal["order"] = "order"
    shown: tuple[Identifier, ...] = Field(min_length=2, description="passage ids in the order of presentation")
    passages: tuple[Digest, ...] = Field(description="passage digests, in the order of `shown`")
    order: tuple[tuple[Identifier, ...], ...] = Field(description="groups of tied passages, best first")

    @model_validator(mode="after")
    def _of_the_same(self) -> Self:
        ordered = [doc_id for group in self.order for doc_id in group]
        if len(self.passages) != len(self.shown) or sorted(ordered) != sorted(set(self.shown)) or not all(self.order):
            raise ValueError("an order must contain each shown passage exactly once, with one digest per passage")
        return self

    @property
    def places(self) -> tuple[int, ...]:
        """Group number of each passage (0 is best), in the order of presentation."""
        group = {doc_id: place for place, members in enumerate(self.order) for doc_id in members}
        return tuple(group[doc_id] for doc_id in self.shown)


class EvidenceReview(_Line):
    """The combinations of passages that suffice for an answer to a query; an empty `sets` means that none suffices."""

    kind: Literal["evidence"] = "evidence"
    shown: tuple[Identifier, ...] = Field(min_length=1, description="passage ids in the order of presentation")
    passages: tuple[Digest | None, ...] = Field(
        description="passage digests, in the order of `shown`; null if the text of the passage was unknown"
    )
    proposed: Groups = Field(description="sets of passage ids that were shown to the annotator")
    sets: EvidenceSets = Field(description="sets of passage ids that suffice together; empty: no set suffices")
    settles: bool = Field(False, description="whether these sets adjudicate differing sets of annotators")

    @model_validator(mode="after")
    def _of_the_shown(self) -> Self:
        if len(self.passages) != len(self.shown) or len(set(self.shown)) < len(self.shown):
            raise ValueError("evidence must name each shown passage once, with one digest per passage")
        for doc_id in (doc_id for members in (*self.sets, *self.proposed) for doc_id in members):
            if doc_id not in self.shown:
                raise ValueError(f"passage {doc_id} of an evidence set was not shown")
        return self

    def sets_in(self, pool: Mapping[str, str]) -> Groups | None:
        """Return the sets with the passage ids of a pool.

        Args:
            pool: digest of each passage by id.

        Returns:
            None if the pool lacks the text of a passage of a set; if no set suffices, of any shown passage.
        """
        here = {digest: doc_id for doc_id, digest in reversed([*pool.items()])}
        names = {
            doc_id: doc_id if digest is None or pool.get(doc_id) == digest else here.get(digest)
            for doc_id, digest in zip(self.shown, self.passages, strict=True)
        }
        needed = {doc_id for members in self.sets for doc_id in members} or names.keys()
        if any(names[doc_id] is None for doc_id in needed):
            return None
        return tuple(tuple(dict.fromkeys(names[doc_id] or "" for doc_id in members)) for members in self.sets)


class Withdrawal(_Line):
    """Withdrawal of an earlier line of the same annotator; `replaces` is the id of that line."""

    kind: Literal["withdrawal"] = "withdrawal"
    replaces: str = Field(description="id of the withdrawn line")

    @classmethod
    def of(cls, line: OrderReview | EvidenceReview) -> Self:
        """Return the withdrawal of a line by its annotator, with the current time."""
        return cls(who=line.who, at=datetime.now(UTC), qid=line.qid, query=line.query, replaces=line.id)

    @property
    def takes_back(self) -> bool:
        """True, because a withdrawal contains no label."""
        return True


Review = GradeReview | OrderReview | EvidenceReview | Withdrawal


class ReviewLine(RootModel[Annotated[Review, Field(discriminator="kind")]]):
    """Any line of reviews.jsonl."""


def digests(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Return the digest of each passage."""
    return tuple(map(passage_digest, passages))


Settlement = Literal["one", "agreed", "settled", "median"]


@dataclass(frozen=True)
class SettledGrade:
    """The human grade of a passage.

    Attributes:
        grade: 1 to 5.
        by: annotators who gave grades, in the order of their labels; an annotator who only adjudicated comes last.
        how: origin of the grade: a single annotator, agreement, adjudication, or lower median.
    """

    grade: int
    by: tuple[str, ...]
    how: Settlement

    @property
    def conflict(self) -> bool:
        """Whether annotators differ and the item was not adjudicated."""
        return self.how == "median"


@dataclass(frozen=True)
class SettledEvidence:
    """The human evidence of a query.

    Attributes:
        sets: the sets that count, with the passage ids of the pool; empty if no set suffices. None if annotators differ
            and the query was not adjudicated.
        by: annotators whose sets were compared, in the order of their labels; an adjudicator comes last.
    """

    sets: Groups | None
    by: tuple[str, ...]


@dataclass
class CurrentReviews:
    """All labels that are currently valid.

    Attributes:
        grades: latest label of each annotator for each item.
        blind: latest blind label of each annotator for each item; later changes that are not blind are ignored.
        orders: orders by query and set of passages, per annotator.
        latest_order: latest order per annotator.
        settling: adjudicated grade per item.
        evidence: latest evidence of each annotator for each query.
        settling_evidence: adjudicated evidence per query.
        latest_evidence: latest evidence per annotator, adjudicated or not.
        unmatched: ids that a line withdraws or replaces although no earlier label of the same annotator has them.
    """

    grades: dict[Key, dict[str, GradeReview]] = field(default_factory=dict)
    blind: dict[Key, dict[str, GradeReview]] = field(default_factory=dict)
    orders: dict[tuple[str, frozenset[str]], dict[str, OrderReview]] = field(default_factory=dict)
    latest_order: dict[str, OrderReview] = field(default_factory=dict)
    settling: dict[Key, GradeReview] = field(default_factory=dict)
    evidence: dict[str, dict[str, EvidenceReview]] = field(default_factory=dict)
    settling_evidence: dict[str, EvidenceReview] = field(default_factory=dict)
    latest_evidence: dict[str, EvidenceReview] = field(default_factory=dict)
    unmatched: list[str] = field(default_factory=list)

    def settled(self, key: Key) -> SettledGrade | None:
        """Return the valid grade of an item; None if the item has no grade."""
        words = [word for word in self.grades.get(key, {}).values() if word.grade is not None]
        decided = self.settling.get(key)
        if decided is not None and decided.grade is not None:
            return SettledGrade(
                decided.grade, tuple(dict.fromkeys([*(word.who for word in words), decided.who])), "settled"
            )
        if not words:
            return None
        grades, by = [word.grade or 0 for word in words], tuple(word.who for word in words)
        if len(set(grades)) == 1:
            return SettledGrade(grades[0], by, "agreed" if len(words) > 1 else "one")
        return SettledGrade(median_low(grades), by, "median")

    def settled_evidence(self, query: str, pool: Mapping[str, str]) -> SettledEvidence | None:
        """Return the human evidence of the query with that digest; None if no current label of its evidence exists.

        An adjudication has priority. Without one, the sets count only if all annotators gave the same. Labels of
        passages whose text has changed do not count.

        Args:
            pool: digest of each passage of the query's pool, by id.
        """
        given = {
            who: sets for who, each in self.evidence.get(query, {}).items() if (sets := each.sets_in(pool)) is not None
        }
        decided = self.settling_evidence.get(query)
        if decided is not None and (sets := decided.sets_in(pool)) is not None:
            return SettledEvidence(sets, tuple(dict.fromkeys((*given, decided.who))))
        if not given:
            return None
        meanings = {frozenset(map(frozenset, sets)) for sets in given.values()}
        return SettledEvidence(next(iter(given.values())) if len(meanings) == 1 else None, tuple(given))

    def items(self) -> dict[Key, SettledGrade]:
        """Return every item that has a grade."""
        keys = dict.fromkeys([*self.grades, *self.settling])
        return {key: settled for key in keys if (settled := self.settled(key)) is not None}

    @property
    def unseen(self) -> CurrentReviews:
        """The blind labels and adjudications; later changes that are not blind are ignored."""
        settling = {key: word for key, word in self.settling.items() if word.blind}
        return replace(self, grades=self.blind, settling=settling)

    def stale(self, present: Mapping[tuple[str, str], Key]) -> list[GradeReview]:
        """Return labels of passages or queries whose text has changed since. Such labels stay in the file, but are not
        used.

        Args:
            present: current keys, by query id and passage id.
        """
        known = set(present.values())
        return [
            word
            for key, words in self.grades.items()
            for word in words.values()
            if key not in known and (word.qid, word.doc_id) in present
        ]


def fold_reviews(reviews: Iterable[Review]) -> CurrentReviews:
    """Return the labels that are valid after all lines, in file order."""
    found, named = CurrentReviews(), [(line.id, line) for line in reviews]
    for review in lines_in_force([each for each in named if each[1].blind], []):
        if isinstance(review, GradeReview) and not review.settles:
            _note_word(found.blind, review)
    for review in lines_in_force(named, found.unmatched):
        if isinstance(review, GradeReview):
            _note_grade(found, review)
        elif isinstance(review, OrderReview):
            found.orders.setdefault((review.query, frozenset(review.passages)), {})[review.who] = review
            found.latest_order[review.who] = review
        elif isinstance(review, EvidenceReview):
            _note_evidence(found, review)
    return found


class ReviewKey(Protocol):
    """The fields that must be known of each line to determine which lines are valid."""

    @property
    def who(self) -> str:
        """Name of the annotator."""

    @property
    def replaces(self) -> str | None:
        """Id of the line that this line replaces or withdraws."""

    @property
    def takes_back(self) -> bool:
        """Whether this line only withdraws another line."""


S = TypeVar("S", bound=ReviewKey)


def lines_in_force(lines: Sequence[tuple[str, S]], unmatched: list[str]) -> Iterator[S]:
    """Yield the valid lines, in file order. Withdrawals, and withdrawn and replaced lines, are omitted.

    Args:
        lines: each line, after its id.
        unmatched: receives each id that a line refers to if no earlier label of the same annotator has it.
    """
    places = dict[str, int]()
    names = dict[int, int]()  # index of the line that each line replaces or withdraws
    for number, (name, line) in enumerate(lines):
        if line.replaces is not None:
            old = places.get(line.replaces)
            if old is None or lines[old][1].who != line.who or lines[old][1].takes_back:
                unmatched.append(line.replaces)
            else:
                names[number] = old
        places[name] = number
    gone = {old for number, old in names.items() if lines[number][1].takes_back}
    gone |= {old for number, old in names.items() if number not in gone}
    yield from (line for number, (_, line) in enumerate(lines) if number not in gone and not line.takes_back)


def _note_grade(found: CurrentReviews, review: GradeReview) -> None:
    if review.settles:
        found.settling.pop(review.key, None)  # so that the latest decision comes last
        found.settling[review.key] = review
    else:
        _note_word(found.grades, review)


def _note_evidence(found: CurrentReviews, review: EvidenceReview) -> None:
    found.latest_evidence[review.who] = review
    if review.settles:
        found.settling_evidence[review.query] = review
    else:
        given = found.evidence.setdefault(review.query, {})
        given.pop(review.who, None)  # so that the latest label comes last
        given[review.who] = review


def _note_word(grades: dict[Key, dict[str, GradeReview]], review: GradeReview) -> None:
    words = grades.setdefault(review.key, {})
    words.pop(review.who, None)  # so that the latest label comes last
    words[review.who] = review


REVIEWS_FILE, LOCK = "reviews.jsonl", ".lock"
LOCK_TIMEOUT_S = 10.0  # a write takes some milliseconds
FILE_REMEDY = "only raggs should write this file; delete the line, or restore the file from a backup"


class ReviewStore:
    """All lines of reviews.jsonl, in the order in which they were written.

    Args:
        folder: folder of reviews.jsonl; created with the first line.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / REVIEWS_FILE
        self._lock = RLock()
        self._held: tuple[int, CurrentReviews] | None = None
        self._names: dict[str, str] = {}  # first spelling of each name, by the name in lower case

    def read(self) -> list[Review]:
        """Return all lines, oldest first; empty if there are no lines.

        Raises:
            DataError: a line is invalid; the error names the line. A truncated last line is ignored.
        """
        return [self._unified(line.root) for line in read_torn(self.path, ReviewLine, FILE_REMEDY)]

    def lines(self) -> Iterator[Review]:
        """Return an iterator over all lines, for callers that do not need them all in memory.

        Raises:
            DataError: see `read`.
        """
        return (line for line, _ in self.since(0))

    def held(self) -> CurrentReviews:
        """Return the valid labels; cached until a line is added, so callers must not modify them.

        Raises:
            DataError: see `read`.
        """
        with self._lock:
            size = self.size
            if self._held is None or self._held[0] != size:
                self._held = size, fold_reviews(self.read())
            return self._held[1]

    @property
    def size(self) -> int:
        """Size of the file in bytes; 0 if it does not exist."""
        return self.path.stat().st_size if self.path.exists() else 0

    def since(self, byte: int) -> Iterator[tuple[Review, int]]:
        """Return an iterator over the complete lines after a byte offset, each with the offset of its end.

        Raises:
            DataError: a line is invalid.
        """
        return ((self._unified(line.root), end) for line, end in read_on(self.path, ReviewLine, FILE_REMEDY, byte))

    def spelling(self, name: str) -> str:
        """Return the known spelling of an annotator's name; `name` itself if the annotator has no labels yet.

        Raises:
            DataError: see `read`.
        """
        if not self._names:
            for _ in self.lines():
                pass
        return self._names.get(name.casefold(), name)

    def _unified(self, line: Review) -> Review:
        return line.spelled(self._names.setdefault(line.who.casefold(), line.who))

    @property
    def torn(self) -> bool:
        """Whether the last line is truncated and therefore ignored."""
        if not self.path.exists() or not self.path.stat().st_size:
            return False
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def append(self, *reviews: Review) -> None:
        """Append lines and wait until they are on disk.

        Raises:
            ProviderError: the file cannot be written, or the folder is read-only.
            BusyError: another process has locked the folder for 10 s.
        """
        append_lines(self.path, reviews)


def append_lines(path: Path, lines: Sequence[BaseModel]) -> None:
    """Append lines to a file in a reviews folder, which is created if missing. Only one process at a time can append.

    Raises:
        ProviderError: the file cannot be written, or the folder is read-only.
        BusyError: another process has locked the folder for 10 s.
    """
    folder = path.parent
    # imported lazily: the import installs hooks on file operations, and readers need no lock
    from filelock import FileLock, Timeout

    with disk(folder, "set a writable folder: --reviews DIR"):
        new = not path.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / LOCK, timeout=LOCK_TIMEOUT_S), Appender(path) as file:
                for line in lines:
                    file.append(line)
                file.sync()
        except Timeout as error:
            raise BusyError("another process has locked the labels", where=path, remedy="try again") from error
        if new:
            sync_folder(folder)


SHOWN_FILE = "shown.jsonl"


class ShownRecord(Frozen):
    """A record that an annotator was shown grades of other annotators or of a model for a passage."""

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line format")
    who: Name = Field(description="name of the annotator")
    at: AwareDatetime = Field(description="time, by the machine's clock")
    query: Digest = Field(description="digest of the query text")
    passage: Digest = Field(description="digest of the passage's title and text")


class ShownStore:
    """Records of grades that annotators were shown, in a reviews folder.

    Args:
        folder: folder of shown.jsonl; created with the first line.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / SHOWN_FILE
        self._read, self._known, self._lock = 0, dict[str, set[Key]](), RLock()

    def knows(self, who: str, key: Key) -> bool:
        """Return whether an annotator was shown grades for an item.

        Raises:
            DataError: a line is invalid.
        """
        return key in self.of(who)

    def of(self, who: str) -> Collection[Key]:
        """Return the items for which an annotator was shown grades.

        Raises:
            DataError: a line is invalid.
        """
        with self._lock:
            if (size := self.path.stat().st_size if self.path.exists() else 0) < self._read:
                self._read, self._known = 0, {}
            if size > self._read:
                for line, end in read_on(self.path, ShownRecord, FILE_REMEDY, self._read):
                    self._read = end
                    self._known.setdefault(line.who, set()).add((line.query, line.passage))
            return self._known.get(who, ())

    def note(self, *lines: ShownRecord) -> None:
        """Add each line whose annotator and item have no line yet; wait until the lines are on disk.

        Raises:
            ProviderError, BusyError: see `ReviewStore.append`.
        """
        with self._lock:
            if new := [line for line in lines if not self.knows(line.who, (line.query, line.passage))]:
                append_lines(self.path, new)


DRAWS_FILE = "draws.jsonl"

DrawUnit = Literal["passage", "question"]


class DrawnItem(Frozen):
    """A randomly drawn passage, for its query."""

    query: Digest = Field(description="digest of the query text")
    passage: Digest = Field(description="digest of the passage's title and text")
    chance: float = Field(gt=0, le=1, description="inclusion probability")

    @property
    def key(self) -> Key:
        """Key of the item."""
        return self.query, self.passage


class Draw(Frozen):
    """A random sample."""

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line format")
    unit: DrawUnit = Field(description="sampling unit: passages, or queries with all their passages")
    seed: int = Field(description="random seed of the draw")
    items: tuple[DrawnItem, ...] = Field(
        min_length=1, description="drawn passages; for queries, in the order of the queries' random numbers"
    )


@dataclass(frozen=True)
class CompletedDraw:
    """The part of a sample that estimates can use because it is completely labelled.

    Attributes:
        chance: inclusion probability per usable item; of drawn queries, only those before the first unlabelled item are
            usable.
        unread: number of drawn items without a label.
        among: number of items in the sampled population, estimated as the sum of 1 / probability over the drawn items;
            0 if the sample is not completely labelled.
    """

    chance: dict[Key, float]
    unread: int
    among: int = 0


def read_draws(folder: Path) -> list[Draw]:
    """Return all samples, oldest first; empty if there are no samples.

    Raises:
        DataError: a line is invalid; the error names the line.
    """
    return list(read_torn(folder / DRAWS_FILE, Draw, FILE_REMEDY))


def note_draw(folder: Path, draw: Draw) -> None:
    """Add a sample, if it differs from the last one.

    Raises:
        DataError: a line of the file is invalid.
        ProviderError: the file cannot be written, or the folder is read-only.
        BusyError: another process has locked the folder for 10 s.
    """
    # imported lazily: the import installs hooks on file operations, and readers need no lock
    from filelock import FileLock, Timeout

    with disk(folder, "set a writable folder: --reviews DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / LOCK, timeout=LOCK_TIMEOUT_S):
                if read_draws(folder)[-1:] != [draw]:
                    with Appender(folder / DRAWS_FILE) as file:
                        file.append(draw)
                        file.sync()
        except Timeout as error:
            raise BusyError("another process has locked the labels", where=folder, remedy="try again") from error


def completed_draw(draw: Draw, present: Collection[Key], read: Collection[Key]) -> CompletedDraw:
    """Return the usable part of a sample.

    A completely labelled sample is usable as a whole. Otherwise, an unfinished sample of passages is not usable at all;
    of a sample of queries, only those before the first query with an unlabelled passage are usable. Queries are stored
    in the order of their random numbers, so that the first ones are a smaller random sample.

    Args:
        present: items of the pools; other items no longer exist, or their text has changed.
        read: items with at least one label.
    """
    items = [item for item in draw.items if item.key in present]
    unread = [item for item in items if item.key not in read]
    if not unread:
        among = round(sum(1 / item.chance for item in draw.items))
        return CompletedDraw({item.key: item.chance for item in items}, 0, among)
    if draw.unit == "passage":
        return CompletedDraw({}, len(unread))
    order = list(dict.fromkeys(item.query for item in items))
    open_ = {item.query for item in unread}
    first = next(place for place, query in enumerate(order) if query in open_)
    whole = set(order[:first])
    share = first / len(order)
    return CompletedDraw({item.key: item.chance * share for item in items if item.query in whole}, len(unread))


def latest(
    draws: Sequence[Draw], unit: DrawUnit, present: Collection[Key], read: Collection[Key]
) -> tuple[CompletedDraw | None, int]:
    """Return the usable part of one sample of a unit, or None, and the number of unlabelled items in the latest sample.

    For passages, the latest completely labelled sample is used; for queries, the sample with the most usable items.
    """
    mine = [draw for draw in draws if draw.unit == unit and any(item.key in present for item in draw.items)]
    found = [completed_draw(draw, present, read) for draw in reversed(mine)]
    counting = [each for each in found if each.chance]
    best = max(counting, key=lambda each: len(each.chance) if unit == "question" else 0, default=None)
    return best, found[0].unread if found else 0


def ever_drawn(draws: Sequence[Draw], present: Collection[Key], read: Collection[Key]) -> set[Key]:
    """Return every usable item of all samples (see `completed_draw`). The rest of an unfinished sample is excluded,
    because earlier labels could bias it.
    """
    return {key for draw in draws for key in completed_draw(draw, present, read).chance}


class PlanItem(Frozen):
    """A passage to be labelled for a query."""

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line format")
    qid: Identifier = Field(description="query id in the run")
    query: Digest = Field(description="digest of the query text")
    doc_id: Identifier = Field(description="passage id in the run")
    passage: Digest = Field(description="digest of the passage's title and text")
    worth: float = Field(ge=0, description="expected effect of a label on the verdicts; 0: no effect")
    chance: float | None = Field(
        None, gt=0, le=1, description="inclusion probability; null if the item was selected by worth"
    )
    unit: DrawUnit = Field("passage", description="sampling unit, if chance is set")
    seed: int | None = Field(None, description="random seed of the draw, if chance is set")
    read: bool = Field(False, description="whether the passage already has a label and is not shown again")
    seconds: float = Field(gt=0, description="expected reading time in seconds")
    why: str = Field(description="reason for the selection, in words")

    @property
    def key(self) -> Key:
        """Key of the item."""
        return self.query, self.passage


def write_plan(path: Path, items: Iterable[PlanItem], option: str = "--out") -> WrittenFile:
    """Write a plan atomically.

    Args:
        option: command-line option of the file, for the remedy.

    Raises:
        ProviderError: the file cannot be written.
    """
    with disk(path, f"set a writable file: {option} FILE"):
        return write_records(path, items)


def read_plan(path: Path) -> list[PlanItem]:
    """Return the items of a plan, in order.

    Raises:
        NotFoundError: the file does not exist.
        DataError: a line is invalid, an item occurs twice, or the plan is empty.
    """
    items = list(read_records(path, PlanItem))
    if not items:
        raise DataError("the plan is empty", where=path, remedy="create a plan: raggs review plan RUN")
    seen: set[Key] = set()
    for number, item in enumerate(items, start=1):
        if item.key in seen:
            said = f"query {item.qid} and passage {item.doc_id} occur twice"
            raise DataError(said, where=path, line=number, remedy="create the plan again: raggs review plan RUN")
        seen.add(item.key)
    return items
