"""Human labels: kept for good, one line per label, and folded to the labels that hold now.

reviews.jsonl in a folder of its own: lines are added, never changed.

Names that differ by case alone are one reviewer, under the spelling that came first.

A line is on the disk before `append` returns, whoever else writes at the same time. A last line that a power cut tore
is dropped when the next one is added; whoever reads passes over it and can say so.

The lines of reviews.jsonl: who said what of which passage, when, and what they had before their eyes.

A question and a passage are known by what they say, not by their ids: a passage whose text changed is another one, and
the same passage in another run, or cut from another file, takes its reviews along. The ids that were shown are kept for
people and for finding what became stale. No line is ever changed; a later one may replace it.

What holds now: all lines of reviews.jsonl folded, by question and passage.

Of each reviewer the latest word on an item counts, by the order of lines, whatever their clocks said. What was taken
back was never said: the word before it holds again, and so does one whose place it took. Where several reviewers
spoke, what they agree on holds; else what was settled; else the lower median, and the conflict stays visible.
"Cannot tell" is an answer, but no grade: an item on which nobody could tell has none.

What reviewers were shown of a machine's or others' words: shown.jsonl beside reviews.jsonl, lines are added alone.

A grade that is given afterwards is not blind, even after a restart, an undo or on another day. A line is on the disk
before its words are on a screen.

draws.jsonl beside reviews.jsonl: which items chance chose to be read, and with which probabilities.

A line is a whole draw, so that it is known whether it was read to its end, and what somebody had read before counts
where chance hits it. Draws by one seed grow: the latest holds the earlier ones, and its chances are those of all of it.
Lines are added, never changed.

The lines of a plan: which passages to read next, and why. A queue for whoever reads, in the order of the file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median_low
from threading import RLock
from typing import Annotated, Literal, Protocol, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, Field, PrivateAttr, RootModel, StringConstraints, model_validator

from raggs.base.artifacts import Frozen, Grade, Identifier, Passage, Query, Span
from raggs.base.errors import BusyError, DataError
from raggs.base.files import disk, sync_folder
from raggs.base.hashing import hash_bytes, hash_value
from raggs.base.jsonl import Appender, WrittenFile, read_on, read_records, read_torn, write_records

MAX_NAME_CHARS, MAX_NOTE_CHARS = 80, 10_000  # characters
HEX = 32  # of 64 digits

Digest = Annotated[str, StringConstraints(pattern=rf"^[0-9a-f]{{{HEX}}}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS, pattern=r"^\S(.*\S)?$")]
Key = tuple[str, str]  # of a question and of a passage, by what they say


def question_digest(query: Query) -> str:
    """What a question is known by: 32 hex digits over its text as its author gave it."""
    return hash_bytes(query.text.encode())[:HEX]


def passage_digest(passage: Passage) -> str:
    """What a passage is known by: 32 hex digits over title and text as a judge reads them."""
    return hash_bytes(passage.content.encode())[:HEX]


def key_of(query: Query, passage: Passage) -> Key:
    """What a judgment of a passage for a question is filed under."""
    return question_digest(query), passage_digest(passage)


class _Line(Frozen):
    """What every line says.

    `chance` is what estimates need: the known probability with which the item was drawn at random; None where somebody,
    or a plan, chose it.
    """

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line's form")
    who: Name = Field(description="the reviewer, by the name that they gave")
    at: AwareDatetime = Field(description="when, by the clock of the machine; the order of lines counts, not clocks")
    qid: Identifier = Field(description="query id, as it was shown")
    query: Digest = Field(description="digest of the question's text")
    note: str = Field("", max_length=MAX_NOTE_CHARS, description="the reviewer's words")
    seconds: float | None = Field(None, ge=0, description="from showing to answering")
    prompt: str = Field("", description="the rubric that was shown: name and version")
    blind: bool = Field(True, description="whether no machine's grade, rank or system was shown before")
    chance: float | None = Field(None, gt=0, le=1, description="probability with which it was drawn; null if chosen")
    replaces: str | None = Field(None, description="id of the reviewer's line that this one takes the place of")

    @property
    def takes_back(self) -> bool:
        """Whether it says nothing but that another line holds no longer."""
        return False

    _stored_id: str | None = PrivateAttr(None)  # of the line as it is stored, under another spelling of the name

    @property
    def id(self) -> str:
        """What other lines name this one by: 16 hex digits over all of it."""
        return self._stored_id or hash_value(self.model_dump(mode="json"))[:16]

    def spelled(self, name: str) -> Self:
        """Return the line with its reviewer's name in another spelling, under the same id."""
        if name == self.who:
            return self
        found = self.model_copy(update={"who": name})
        found._stored_id = self.id
        return found


class GradeReview(_Line):
    """A grade for a passage, or that one cannot tell."""

    kind: Literal["grade"] = "grade"
    doc_id: Identifier = Field(description="as it was shown")
    passage: Digest = Field(description="digest of the passage's title and text")
    span: Span | None = Field(None, description="where in the corpus it stands, where known")
    grade: Grade | None = Field(description="1 (not relevant) to 5 (answers); null: cannot tell")
    settles: bool = Field(False, description="decides where reviewers, or a reviewer and a model, differ")

    @property
    def key(self) -> Key:
        """What it is filed under."""
        return self.query, self.passage


class OrderReview(_Line):
    """A few passages from best to worst. Those in one group are equal."""

    kind: Literal["order"] = "order"
    shown: tuple[Identifier, ...] = Field(min_length=2, description="in the order of presentation")
    passages: tuple[Digest, ...] = Field(description="digests, in the order of `shown`")
    order: tuple[tuple[Identifier, ...], ...] = Field(description="groups of equals, best first")

    @model_validator(mode="after")
    def _of_the_same(self) -> Self:
        ordered = [doc_id for group in self.order for doc_id in group]
        if len(self.passages) != len(self.shown) or sorted(ordered) != sorted(set(self.shown)) or not all(self.order):
            raise ValueError("an order holds each passage that was shown once, and a digest of each is given")
        return self

    @property
    def places(self) -> tuple[int, ...]:
        """The group of each passage, 0 the best, in the order of presentation."""
        group = {doc_id: place for place, members in enumerate(self.order) for doc_id in members}
        return tuple(group[doc_id] for doc_id in self.shown)


class Withdrawal(_Line):
    """An earlier line of the same reviewer no longer holds: `replaces` names it."""

    kind: Literal["withdrawal"] = "withdrawal"
    replaces: str = Field(description="id of the line")

    @property
    def takes_back(self) -> bool:
        """It does."""
        return True


Review = GradeReview | OrderReview | Withdrawal


class ReviewLine(RootModel[Annotated[Review, Field(discriminator="kind")]]):
    """Any line of reviews.jsonl."""


def digests(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Of each passage."""
    return tuple(map(passage_digest, passages))


Settlement = Literal["one", "agreed", "settled", "median"]


@dataclass(frozen=True)
class SettledGrade:
    """The grade of a passage by people.

    Attributes:
        grade: 1 to 5.
        by: who gave grades, in the order of their words.
        how: by one reviewer, by several of one mind, by a decision among them, or by their lower median.
    """

    grade: int
    by: tuple[str, ...]
    how: Settlement

    @property
    def conflict(self) -> bool:
        """Whether reviewers differ, and nobody has decided."""
        return self.how == "median"


@dataclass
class CurrentReviews:
    """All that people say now.

    Attributes:
        grades: by item, each reviewer's word on it.
        blind: by item, what each said before they had seen a machine's grade; also where they changed it afterwards.
        orders: each reviewer's orders, by question and the passages that were shown.
        latest_order: of each reviewer who gave orders, the latest.
        settling: by item, the decision between differing words.
        unmatched: ids that withdrawals and replacements name, of lines that there are not.
    """

    grades: dict[Key, dict[str, GradeReview]] = field(default_factory=dict)
    blind: dict[Key, dict[str, GradeReview]] = field(default_factory=dict)
    orders: dict[tuple[str, frozenset[str]], dict[str, OrderReview]] = field(default_factory=dict)
    latest_order: dict[str, OrderReview] = field(default_factory=dict)
    settling: dict[Key, GradeReview] = field(default_factory=dict)
    unmatched: list[str] = field(default_factory=list)

    def settled(self, key: Key) -> SettledGrade | None:
        """The grade that holds for an item; None where nobody gave one."""
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

    def items(self) -> dict[Key, SettledGrade]:
        """Every item that has a grade."""
        keys = dict.fromkeys([*self.grades, *self.settling])
        return {key: settled for key in keys if (settled := self.settled(key)) is not None}

    @property
    def unseen(self) -> CurrentReviews:
        """What people said before they had seen what a machine said, also where they changed it afterwards."""
        settling = {key: word for key, word in self.settling.items() if word.blind}
        return replace(self, grades=self.blind, settling=settling)

    def stale(self, present: Mapping[tuple[str, str], Key]) -> list[GradeReview]:
        """Words on passages, or for questions, whose text is another one now. They are kept, and do not count.

        Args:
            present: by query id and passage id, what is filed under these ids now.
        """
        known = set(present.values())
        return [
            word
            for key, words in self.grades.items()
            for word in words.values()
            if key not in known and (word.qid, word.doc_id) in present
        ]


def fold_reviews(reviews: Iterable[Review]) -> CurrentReviews:
    """What holds after all lines, in their order."""
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
    return found


def standing_reviews(reviews: Iterable[Review]) -> Iterator[Review]:
    """Grades and orders that nobody took back, and whose place none such took; in their order."""
    yield from lines_in_force([(line.id, line) for line in reviews], [])


class ReviewKey(Protocol):
    """What of a line decides whether it, and others, hold."""

    @property
    def who(self) -> str:
        """The reviewer."""

    @property
    def replaces(self) -> str | None:
        """The line whose place it takes, or that it takes back."""

    @property
    def takes_back(self) -> bool:
        """Whether it does nothing else."""


S = TypeVar("S", bound=ReviewKey)


def lines_in_force(lines: Sequence[tuple[str, S]], unmatched: list[str]) -> Iterator[S]:
    """Like `standing_reviews`, for lines with their ids.

    `unmatched` gets each id that a line names if no earlier line of the same key has it.
    """
    places = dict[str, int]()
    names = dict[int, int]()  # by line, the line that it names
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
        found.settling.pop(review.key, None)  # so that the latest decision stands last
        found.settling[review.key] = review
    else:
        _note_word(found.grades, review)


def _note_word(grades: dict[Key, dict[str, GradeReview]], review: GradeReview) -> None:
    words = grades.setdefault(review.key, {})
    words.pop(review.who, None)  # so that the latest word stands last
    words[review.who] = review


REVIEWS_FILE, LOCK = "reviews.jsonl", ".lock"
LOCK_TIMEOUT_S = 10.0  # seconds; a line takes some milliseconds
FILE_REMEDY = "nobody but raggs should write here; delete the line, or bring the file back from a copy"


class ReviewStore:
    """All that was ever said, in the order in which it was said.

    Args:
        folder: made at the first line.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / REVIEWS_FILE
        self._lock = RLock()
        self._held: tuple[int, CurrentReviews] | None = None
        self._names: dict[str, str] = {}  # first spelling, by the name without case

    def read(self) -> list[Review]:
        """All lines, oldest first; none where nothing was said.

        Raises:
            DataError: a line cannot be right; names it. A torn last line is none.
        """
        return [self._unified(line.root) for line in read_torn(self.path, ReviewLine, FILE_REMEDY)]

    def lines(self) -> Iterator[Review]:
        """The same one by one, for whoever keeps little of them.

        Raises:
            DataError: as `read`.
        """
        return (line for line, _ in self.since(0))

    def held(self) -> CurrentReviews:
        """What holds now, folded again only after a line was added; nobody may change it.

        Raises:
            DataError: as `read`.
        """
        with self._lock:
            size = self.size
            if self._held is None or self._held[0] != size:
                self._held = size, fold_reviews(self.read())
            return self._held[1]

    @property
    def size(self) -> int:
        """Bytes of the file; 0 where there is none."""
        return self.path.stat().st_size if self.path.exists() else 0

    def since(self, byte: int) -> Iterator[tuple[Review, int]]:
        """Each whole line from a byte at which one begins, and the byte at which it ends.

        Raises:
            DataError: a line cannot be right.
        """
        return ((self._unified(line.root), end) for line, end in read_on(self.path, ReviewLine, FILE_REMEDY, byte))

    def spelling(self, name: str) -> str:
        """Return the spelling under which the words of a reviewer are known; `name` itself if there are none.

        Raises:
            DataError: as `read`.
        """
        if not self._names:
            for _ in self.lines():
                pass
        return self._names.get(name.casefold(), name)

    def _unified(self, line: Review) -> Review:
        return line.spelled(self._names.setdefault(line.who.casefold(), line.who))

    @property
    def torn(self) -> bool:
        """Whether the last line is torn, so that it does not count."""
        if not self.path.exists() or not self.path.stat().st_size:
            return False
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def append(self, *reviews: Review) -> None:
        """Add lines; they are on the disk when this returns.

        Raises:
            ProviderError: the disk refuses, or the folder is read-only.
            BusyError: another process has held the file for 10 s.
        """
        append_lines(self.path, reviews)


def append_lines(path: Path, lines: Sequence[BaseModel]) -> None:
    """Add lines to a file of a folder of reviews, which is made where there is none; one process writes at a time.

    Raises:
        ProviderError: the disk refuses, or the folder is read-only.
        BusyError: another process has held the folder for 10 s.
    """
    folder = path.parent
    from filelock import FileLock, Timeout  # late: from then on it listens to all that is opened; readers lock nothing

    with disk(folder, "name a folder that can be written: --reviews DIR"):
        new = not path.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / LOCK, timeout=LOCK_TIMEOUT_S), Appender(path) as file:
                for line in lines:
                    file.append(line)
                file.sync()
        except Timeout as error:
            raise BusyError("another process holds the reviews", where=path, remedy="try again") from error
        if new:
            sync_folder(folder)


SHOWN_FILE = "shown.jsonl"


class ShownRecord(Frozen):
    """Somebody was shown what others, or a machine, said of a passage."""

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line's form")
    who: Name = Field(description="the reviewer")
    at: AwareDatetime = Field(description="when, by the clock of the machine")
    query: Digest = Field(description="digest of the question's text")
    passage: Digest = Field(description="digest of the passage's title and text")


class ShownStore:
    """Who was shown what, in a folder of reviews.

    Args:
        folder: made at the first line.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / SHOWN_FILE
        self._read, self._known, self._lock = 0, dict[str, set[Key]](), RLock()

    def knows(self, who: str, key: Key) -> bool:
        """Whether a reviewer was shown words on an item.

        Raises:
            DataError: a line cannot be right.
        """
        return key in self.of(who)

    def of(self, who: str) -> Collection[Key]:
        """The items on which a reviewer was shown words.

        Raises:
            DataError: a line cannot be right.
        """
        with self._lock:
            if (size := self.path.stat().st_size if self.path.exists() else 0) < self._read:
                self._read, self._known = 0, {}
            if size > self._read:
                for line, end in read_on(self.path, ShownRecord, FILE_REMEDY, self._read):
                    self._read = end
                    self._known.setdefault(line.who, set()).add((line.query, line.passage))
            return self._known.get(who, ())

    def note(self, line: ShownRecord) -> None:
        """Add a line, once for each reviewer and item; it is on the disk when this returns.

        Raises:
            ProviderError, BusyError: as `ReviewStore.append`.
        """
        with self._lock:
            if not self.knows(line.who, (line.query, line.passage)):
                append_lines(self.path, [line])


DRAWS_FILE = "draws.jsonl"

DrawUnit = Literal["passage", "question"]


class DrawnItem(Frozen):
    """A passage that chance chose, for its question."""

    query: Digest = Field(description="digest of the question's text")
    passage: Digest = Field(description="digest of the passage's title and text")
    chance: float = Field(gt=0, le=1, description="probability with which it was drawn")

    @property
    def key(self) -> Key:
        """What its reviews are filed under."""
        return self.query, self.passage


class Draw(Frozen):
    """All that chance chose at once."""

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line's form")
    unit: DrawUnit = Field(description="what was drawn: passages, or questions with all their passages")
    seed: int = Field(description="of the numbers by which it was drawn")
    items: tuple[DrawnItem, ...] = Field(min_length=1, description="questions in the order of their numbers")


@dataclass(frozen=True)
class CompletedDraw:
    """What of a draw was read to its end.

    Attributes:
        chance: by item.
        unread: how many items of the draw nobody has read; what was begun after the first of them does not count.
        among: how many items it was drawn from; each that was drawn stands for one over its chance.
    """

    chance: dict[Key, float]
    unread: int
    among: int = 0


def read_draws(folder: Path) -> list[Draw]:
    """All draws, oldest first; none where there was none.

    Raises:
        DataError: a line cannot be right; names it.
    """
    return list(read_torn(folder / DRAWS_FILE, Draw, FILE_REMEDY))


def note_draw(folder: Path, draw: Draw) -> None:
    """Add a draw, unless it is the last one.

    Raises:
        ProviderError: the disk refuses, or the folder is read-only.
        BusyError: another process has held the folder for 10 s.
    """
    from filelock import FileLock, Timeout  # late: from then on it listens to all that is opened; readers lock nothing

    with disk(folder, "name a folder that can be written: --reviews DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / LOCK, timeout=LOCK_TIMEOUT_S):
                if read_draws(folder)[-1:] != [draw]:
                    with Appender(folder / DRAWS_FILE) as file:
                        file.append(draw)
                        file.sync()
        except Timeout as error:
            raise BusyError("another process holds the reviews", where=folder, remedy="try again") from error


def completed_draw(draw: Draw, present: Collection[Key], read: Collection[Key]) -> CompletedDraw:
    """What of a draw can be counted: all of it once it is read; of questions, those before the first that is not.

    The questions of a draw stand in the order of the numbers that drew them: the first ones are a smaller draw.

    Args:
        present: items of the pools; others have gone, or their text is another one now.
        read: items on which somebody said something.
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
    """What counts of the draws of a kind, and how many items of the latest are unread.

    The latest of which all was read counts; of questions, the one with the most that were read whole.
    """
    mine = [draw for draw in draws if draw.unit == unit and any(item.key in present for item in draw.items)]
    found = [completed_draw(draw, present, read) for draw in reversed(mine)]
    counting = [each for each in found if each.chance]
    best = max(counting, key=lambda each: len(each.chance) if unit == "question" else 0, default=None)
    return best, found[0].unread if found else 0


def ever_drawn(draws: Sequence[Draw], present: Collection[Key], read: Collection[Key]) -> set[Key]:
    """Every item of draws that were read to their end; of one that was not, what was read before would be too many."""
    return {key for draw in draws for key in completed_draw(draw, present, read).chance}


class PlanItem(Frozen):
    """A passage to be read for a question."""

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line's form")
    qid: Identifier = Field(description="query id, as the run has it")
    query: Digest = Field(description="digest of the question's text")
    doc_id: Identifier = Field(description="as the run has it")
    passage: Digest = Field(description="digest of the passage's title and text")
    worth: float = Field(ge=0, description="what reading it does for the verdicts, by expectation; 0: nothing")
    chance: float | None = Field(
        None, gt=0, le=1, description="probability with which it was drawn at random; null if chosen for its worth"
    )
    unit: DrawUnit = Field("passage", description="what was drawn, where chance is given")
    seed: int | None = Field(None, description="of the numbers by which it was drawn, where chance is given")
    read: bool = Field(
        False, description="somebody has read it: it stands here since chance hit it, and nobody is asked again"
    )
    seconds: float = Field(gt=0, description="that reading it is expected to take")
    why: str = Field(description="for people: what makes it worth reading")

    @property
    def key(self) -> Key:
        """What its reviews are filed under."""
        return self.query, self.passage


def write_plan(path: Path, items: Iterable[PlanItem], option: str = "--out") -> WrittenFile:
    """Write a plan, whole or not at all.

    Args:
        option: by which the file was named, for the remedy.

    Raises:
        ProviderError: the disk refuses.
    """
    with disk(path, f"name a file that can be written: {option} FILE"):
        return write_records(path, items)


def read_plan(path: Path) -> list[PlanItem]:
    """The items of a plan, in its order.

    Raises:
        NotFoundError: there is no such file.
        DataError: a line is none of a plan, an item stands twice, or there is none.
    """
    items = list(read_records(path, PlanItem))
    if not items:
        raise DataError("a plan of nothing", where=path, remedy="raggs review plan RUN makes one")
    seen: set[Key] = set()
    for number, item in enumerate(items, start=1):
        if item.key in seen:
            said = f"query {item.qid} and passage {item.doc_id} stand twice"
            raise DataError(said, where=path, line=number, remedy="raggs review plan RUN writes it anew")
        seen.add(item.key)
    return items
