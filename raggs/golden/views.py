"""One question of a golden set, with all that is known of it: what was asked, what was looked at, what was decided.

A `QuestionView` is what the terminal, the review page and the report show of a question; they compute nothing of their
own. It is a plain value: texts, numbers, and None where nothing is known. Passages are foreign text, character for
character: whoever shows them sees to it that they stay text.

A question as pages show it: one flat list of passages to which all else points, and no default said twice.

The review page and the report draw the same sheet with the same script (`reviewing/page/sheet.js`). Which passages are
on it and how much of each text is chosen here, so that a report of a thousand questions has a size that can be stated.
Texts are foreign, character for character; the script shows them as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import PlainSerializer, TypeAdapter

from raggs.base.artifacts import JudgeRecord, Placement, RankingRecord, RankRecord, Span
from raggs.base.judge_health import source_of
from raggs.base.text import shorten
from raggs.parts.file_shapes import RELEVANT
from raggs.runs.manifests.rank_messages import STOPS


def _view_serializer(**fields: str) -> PlainSerializer:
    """A record as JSON under the names that views give its fields."""
    return PlainSerializer(lambda record: {name: getattr(record, of) for name, of in fields.items()})


def _unchanged_names(names: str) -> dict[str, str]:
    return {name: name for name in names.split()}


JudgedPart = Annotated[
    JudgeRecord,
    _view_serializer(
        **_unchanged_names("doc_id grade"),
        samples="grades",
        **_unchanged_names("votes judge reason duplicate_of skipped error"),
    ),
]
PlacePart = Annotated[
    RankRecord,
    _view_serializer(
        **_unchanged_names("rank score sigma confidence"),
        low="rank_low",
        high="rank_high",
        **_unchanged_names("membership exposures"),
        below="locks_out",
        above="locks_in",
        unordered="unordered",
    ),
]
CoursePart = Annotated[
    RankingRecord,
    _view_serializer(calls="calls", failed="skipped", stopped="stop_reason", inversions="expected_inversions"),
]


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """What a person says of a passage now. `grade`: None where they cannot tell; `settles`: decides among others."""

    who: str
    grade: int | None
    note: str = ""
    settles: bool = False


SOURCES = ("source", "url", "uri", "file", "path")  # keys of metadata that name where a passage is from, best first


def passage_source(metadata: Mapping[str, object], span: Span | None) -> str:
    """Return the document, file or address that a passage is from; empty if nothing says so."""
    named = (value for name in SOURCES if isinstance(value := metadata.get(name), str) and value.strip())
    return next(named, "" if span is None else span.source)


@dataclass(frozen=True, slots=True)
class PassageView:
    """A passage that was looked at for a question.

    Attributes:
        doc_id: its id.
        pooled: its fused rank in the pool, from 1; None where no pool is known.
        sources: by retriever, where that placed it.
        title: of the passage; with a path of sections where the corpus gives one (Guide > Install > Linux).
        text: empty where texts are left out or not at hand.
        span: its place in the source.
        source: the document, file or address that it is from, by its metadata or its span; empty if neither says so.
        judged: its grade and who gave it; None where the judge has not come to it.
        place: in the golden order; None where it was not ranked.
        cut: why it was not ranked, in the words of the pruning.
        duplicate_of: the representative of its near-duplicates.
        words: of people, the latest of each; where somebody decided, that comes last.
    """

    doc_id: str
    pooled: int | None = None
    sources: Mapping[str, Placement] = field(default_factory=dict)
    title: str = ""
    text: str = ""
    span: Span | None = None
    source: str = ""
    judged: JudgedPart | None = None
    place: PlacePart | None = None
    cut: str = ""
    duplicate_of: str | None = None
    words: tuple[HumanLabel, ...] = ()

    @property
    def grade(self) -> int | None:
        """Its grade in the golden set; None where it has none."""
        return None if self.judged is None else self.judged.grade

    @property
    def votes(self) -> str:
        """Every answer that its grade was made of, where there were several: "one 4 4 5; other 3 –"; else empty."""
        judged = self.judged
        if judged is None or (not judged.votes and len(judged.grades) < 2):
            return ""
        rows = judged.votes.items() or [("", judged.grades)]
        return "; ".join(" ".join([*filter(None, [name]), *(str(each or "–") for each in row)]) for name, row in rows)


@dataclass(frozen=True, slots=True)
class HitView:
    """A passage that a system returned. `grade`: None: not judged."""

    rank: int
    doc_id: str
    score: float
    grade: int | None


@dataclass(frozen=True, slots=True)
class ReturnedHits:
    """What a system returned for the question, best first; equal scores by descending id, as trec_eval has it.

    `found`: how many passages there were, of which `hits` may be the first; None where they were not counted.
    `escalated`: signals for which the question was searched deeper; empty where it was not.
    """

    system: str
    hits: tuple[HitView, ...]
    found: int | None = None
    escalated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question.

    Attributes:
        qid: its id.
        text: as its author wrote it; empty where only labels are known.
        rewrite: what was searched for; empty where that is the question.
        language: ISO 639-1; empty where unknown.
        answer: the expected one; None where there is none.
        metadata: what else its author wrote, JSON values.
        passages: the pool, best fused first; of a file of labels what it judges.
        course: of the ranking; None where nothing was ranked.
        systems: what each returned.
    """

    qid: str
    text: str = ""
    rewrite: str = ""
    language: str = ""
    answer: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    passages: tuple[PassageView, ...] = ()
    course: CoursePart | None = None
    systems: tuple[ReturnedHits, ...] = ()

    @property
    def order(self) -> tuple[PassageView, ...]:
        """The golden order, best first."""
        return tuple(passage for _, passage in sorted(self._placed(), key=lambda pair: pair[0]))

    @property
    def escalated(self) -> tuple[str, ...]:
        """The signals for which retrievers searched the question deeper; empty where none did."""
        return tuple(dict.fromkeys(signal for returned in self.systems for signal in returned.escalated))

    @property
    def grades(self) -> dict[str, int | None]:
        """By passage of the pool its grade."""
        return {passage.doc_id: passage.grade for passage in self.passages}

    def passage(self, doc_id: str) -> PassageView | None:
        """A passage of the pool by its id."""
        return next((passage for passage in self.passages if passage.doc_id == doc_id), None)

    def twins(self, passage: PassageView) -> tuple[PassageView, ...]:
        """The near-duplicates of a passage, itself left out."""
        group = passage.duplicate_of or passage.doc_id
        near = (each for each in self.passages if (each.duplicate_of or each.doc_id) == group)
        return tuple(each for each in near if each.doc_id != passage.doc_id)

    def without_texts(self) -> QuestionView:
        """The same without what passages say, and without what judges and people say of them, who may quote."""
        return replace(self, passages=tuple(map(_without_texts, self.passages)))

    def _placed(self) -> Iterator[tuple[int, PassageView]]:
        return ((passage.place.rank, passage) for passage in self.passages if passage.place is not None)


@dataclass(frozen=True, slots=True)
class QuestionBrief:
    """A question in a line.

    Attributes:
        qid, text, language: of the question.
        metadata: what else its author wrote.
        pooled: passages of its pool that the judge has come to.
        grades: of those that have one.
        doubt: wrongly ordered pairs expected in the top; None where nothing is ranked.
    """

    qid: str
    text: str
    language: str
    metadata: Mapping[str, object]
    pooled: int
    grades: tuple[int, ...]
    doubt: float | None

    @property
    def graded(self) -> int:
        """How many have a grade."""
        return len(self.grades)

    @property
    def relevant(self) -> int:
        """How many of the grades are 4 or 5."""
        return sum(grade >= RELEVANT for grade in self.grades)


def _without_texts(passage: PassageView) -> PassageView:
    judged = None if passage.judged is None else passage.judged.model_copy(update={"reason": "", "error": None})
    return replace(
        passage,
        title="",
        text="",
        judged=judged,
        words=tuple(replace(word, note="") for word in passage.words),
    )


MAX_FACT_CHARS = 400  # characters of what else an author wrote
MAX_NOTE_CHARS = 2_000  # of a judge's reason, of a note
KINDS = ("kind", "type", "category")  # under which authors say what kind of question it is
SCORE_DIGITS = 3
UNLISTED = 50  # passages beside the order that a short sheet shows where no system is known
MIN_SHOWN_RANKS = 10  # ranks that are shown at once, as in the script


@dataclass(frozen=True, slots=True)
class HumanLabelLine:
    """What a person says of a passage. `grade`: None: cannot tell; `decided`: it settles what others said."""

    who: str
    grade: int | None = None
    note: str = ""
    decided: bool = False


@dataclass(frozen=True, slots=True)
class SheetPassage:
    """A passage on the sheet.

    Attributes:
        id, title, text: of the passage; `text` is its beginning.
        more: characters of it that are left out.
        where: its place in the source, in words.
        grade: None where it has none; `by` says who gave it, `said` why, or why there is none.
        votes: the answers that it was made of, where there were several.
        rank, low, high: in the golden order, and the ranks that are plausible at 95%; None where it was not ranked.
        sure: probability that it stands above the next one; None at the end.
        locked: whether that is beyond doubt.
        below: all that it stands above beyond doubt.
        score, sigma: of the ranking.
        pooled: its fused rank in the pool.
        sources: by retriever, its rank there.
        twin: the representative of its near-duplicates, where that is another passage.
        cut: why it was not ranked.
        words: people's.
    """

    id: str
    title: str = ""
    text: str = ""
    more: int = 0
    where: str = ""
    grade: int | None = None
    by: str = ""
    said: str = ""
    votes: str = ""
    rank: int | None = None
    low: int | None = None
    high: int | None = None
    sure: float | None = None
    locked: bool = False
    below: tuple[str, ...] = ()
    score: float | None = None
    sigma: float | None = None
    pooled: int | None = None
    sources: tuple[tuple[str, int], ...] = ()
    twin: str | None = None
    cut: str = ""
    words: tuple[HumanLabelLine, ...] = ()


@dataclass(frozen=True, slots=True)
class ReturnedList:
    """What a system returned: the first passages, by row or, where one has none, by id; and how many, if known."""

    system: str
    found: int | None
    hits: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class QuestionSheet:
    """A question.

    Attributes:
        id, text, rewrite, language, kind, answer: of the question; empty where there is none.
        facts: what else its author wrote, name and value.
        top: how many ranks of the order count; 0 where nothing is ranked.
        doubt: wrongly ordered pairs expected in the top; None where nothing is ranked.
        stopped: why the ranking asked no more.
        rows: the order, best first, then what else is shown of the pool.
        pool: how many passages the pool has.
        lists: of the systems.
    """

    id: str
    text: str = ""
    rewrite: str = ""
    language: str = ""
    kind: str = ""
    answer: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    top: int = 0
    doubt: float | None = None
    stopped: str = ""
    rows: tuple[SheetPassage, ...] = ()
    pool: int = 0
    lists: tuple[ReturnedList, ...] = ()


SHEETS: TypeAdapter[QuestionSheet] = TypeAdapter(QuestionSheet)


def kind_of(metadata: Mapping[str, object]) -> str:
    """What kind of question its author says that it is; empty where nothing is said."""
    return next((value for name in KINDS if isinstance(value := metadata.get(name), str)), "")


def sheet_of(view: QuestionView, top: int, *, depth: int | None = None, most: int | None = None) -> QuestionSheet:
    """The sheet of a question.

    Args:
        top: how many ranks of the order count.
        depth: hits of each system that are shown, and besides them the first ranks, at least FEWEST; None: all of the
            hits, the whole order and the whole pool.
        most: characters of each passage's text; all of them if left out.
    """
    order = view.order
    passages = _passages(view, order, max(top, MIN_SHOWN_RANKS), depth)
    numbers = {passage.doc_id: number for number, passage in enumerate(passages)}
    below = [*(passage.doc_id for passage in order[1:]), None]
    after = dict(zip((passage.doc_id for passage in order), below, strict=False))
    return QuestionSheet(
        id=view.qid,
        text=view.text,
        rewrite=view.rewrite,
        language=view.language,
        kind=kind_of(view.metadata),
        answer=view.answer or "",
        facts=tuple(_facts(view)),
        top=top if order else 0,
        doubt=None if view.course is None else round(view.course.expected_inversions, 2),
        stopped="" if view.course is None else STOPS.get(view.course.stop_reason, view.course.stop_reason),
        rows=tuple(_row(passage, after.get(passage.doc_id), most) for passage in passages),
        pool=len(view.passages),
        lists=tuple(_list(returned, numbers, depth) for returned in view.systems),
    )


def sheet_json(sheet: QuestionSheet) -> bytes:
    """The sheet as JSON without what has its default, as the script reads it."""
    return SHEETS.dump_json(sheet, exclude_defaults=True)


def _passages(
    view: QuestionView, order: tuple[PassageView, ...], first: int, depth: int | None
) -> tuple[PassageView, ...]:
    """Those that are shown: the order, then the rest by fused rank, of labels by grade."""
    rest = sorted(
        (each for each in view.passages if each.place is None), key=lambda each: (each.pooled or 0, -(each.grade or 0))
    )
    if depth is None:
        return (*order, *rest)
    shown = {hit.doc_id for returned in view.systems for hit in returned.hits[:depth]}
    ranked = (each for at, each in enumerate(order) if at < first or each.doc_id in shown)
    beside = [each for each in rest if each.doc_id in shown] if view.systems else rest[:UNLISTED]
    return (*ranked, *beside)


def _facts(view: QuestionView) -> Iterator[tuple[str, str]]:
    for name, value in view.metadata.items():
        if name not in KINDS and isinstance(value, str | int | float) and value != "":
            yield name, shorten(str(value), MAX_FACT_CHARS)


def _row(passage: PassageView, after: str | None, most: int | None) -> SheetPassage:
    place, judged = passage.place, passage.judged
    said = "" if judged is None else judged.reason or judged.error or judged.skipped or ""
    text = passage.text if most is None else passage.text[:most]
    return SheetPassage(
        id=passage.doc_id,
        title=passage.title,
        text=text,
        more=len(passage.text) - len(text),
        where="" if passage.span is None else f"{passage.span.source} {passage.span.start}–{passage.span.end}",
        grade=passage.grade,
        by="" if judged is None else source_of(judged.judge),
        said=said[:MAX_NOTE_CHARS],
        votes=passage.votes,
        rank=None if place is None else place.rank,
        low=None if place is None else place.rank_low,
        high=None if place is None else place.rank_high,
        sure=None if place is None or after is None else round(place.confidence, SCORE_DIGITS),
        locked=place is not None and after in place.locks_out,
        below=() if place is None else place.locks_out,
        score=None if place is None else round(place.score, SCORE_DIGITS),
        sigma=None if place is None else round(place.sigma, SCORE_DIGITS),
        pooled=passage.pooled,
        sources=tuple((name, source.rank) for name, source in passage.sources.items()),
        twin=passage.duplicate_of if passage.duplicate_of != passage.doc_id else None,
        cut=passage.cut,
        words=tuple(
            HumanLabelLine(word.who, word.grade, word.note[:MAX_NOTE_CHARS], word.settles) for word in passage.words
        ),
    )


def _list(returned: ReturnedHits, numbers: Mapping[str, int], depth: int | None) -> ReturnedList:
    hits = tuple(numbers.get(hit.doc_id, hit.doc_id) for hit in returned.hits[:depth])
    return ReturnedList(returned.system, returned.found, hits)
