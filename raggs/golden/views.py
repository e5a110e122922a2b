"""One query of a golden set with everything known about it: the query, its passages, grades and order.

A `QuestionView` contains everything that the terminal, the review page and the report show of a query, so they compute
nothing themselves. Unknown values are None or empty. The texts of passages are unmodified and untrusted, so every
display must escape them.

A `QuestionSheet` is a query for HTML pages. It has one flat list of passages, which all other parts refer to. The
review page receives it as JSON without default values, the report in a packed form with limited texts
(`raggs.reporting.page`). Both display it with the same script (`reviewing/page/sheet.js`), which shows texts as plain
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import PlainSerializer, TypeAdapter

from raggs.base.artifacts import JudgeRecord, Placement, RankingRecord, RankRecord, Span
from raggs.base.judge_health import reason_in_words, source_of
from raggs.base.text import join_wrapped_lines, shorten
from raggs.parts.file_shapes import RELEVANT
from raggs.runs.manifests.rank_messages import STOPS


def _view_serializer(**fields: str) -> PlainSerializer:
    """Return a serializer of records to JSON. It maps the field names of the views to those of the record."""
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
    """A human label of a passage. `grade` is None if the annotator was undecided. `settles` marks an adjudicated
    label.
    """

    who: str
    grade: int | None
    note: str = ""
    settles: bool = False


SOURCES = ("source", "url", "uri", "file", "path")  # metadata keys that may contain the source of a passage, best first


def passage_source(metadata: Mapping[str, object], span: Span | None) -> str:
    """Return the document, file or address that a passage is from. The text is empty if the source is unknown."""
    named = (value for name in SOURCES if isinstance(value := metadata.get(name), str) and value.strip())
    return next(named, "" if span is None else span.source)


@dataclass(frozen=True, slots=True)
class PassageView:
    """A passage in the pool of a query.

    Attributes:
        doc_id: id of the passage.
        pooled: fused rank of the passage in the pool, counted from 1; None if unknown.
        sources: rank and score of the passage in the list of each retriever that found it.
        title: title of the passage, with the path of sections if known (Guide > Install > Linux).
        text: text of the passage; empty if omitted or unavailable.
        span: position of the passage in its source.
        source: document, file or address that the passage is from; empty if unknown.
        judged: grade of the passage, with its source; None if the passage was not judged.
        place: position in the golden order; None if the passage was not ranked.
        cut: why the prune stage excluded the passage from the ranking; empty if it did not.
        duplicate_of: id of the passage that represents its near-duplicates; None if there is none.
        words: latest label of each annotator; an adjudicated label is last.
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
        """Grade of the passage in the golden set; None if it has no grade."""
        return None if self.judged is None else self.judged.grade

    @property
    def repeats(self) -> bool:
        """Whether the passage is a near-duplicate that another passage represents."""
        return self.duplicate_of not in (None, self.doc_id)

    @property
    def votes(self) -> str:
        """The single answers that the grade was computed from, for example "one 4 4 5; other 3 –". Empty if there is
        only one answer.
        """
        judged = self.judged
        if judged is None or (not judged.votes and len(judged.grades) < 2):
            return ""
        rows = judged.votes.items() or [("", judged.grades)]
        return "; ".join(" ".join([*filter(None, [name]), *(str(each or "–") for each in row)]) for name, row in rows)


@dataclass(frozen=True, slots=True)
class HitView:
    """A passage that a system returned. `grade` is None if the passage was not judged."""

    rank: int
    doc_id: str
    score: float
    grade: int | None


@dataclass(frozen=True, slots=True)
class ReturnedHits:
    """A system's hits for the query, best first, with ties by descending id as in trec_eval.

    `found`: number of passages that the system returned; None if unknown. `hits` may contain only the first of these
    passages. `escalated`: signals that made the system search deeper for the query; empty if it did not.
    """

    system: str
    hits: tuple[HitView, ...]
    found: int | None = None
    escalated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A query.

    Attributes:
        qid: id of the query.
        text: text of the query as its author wrote it; empty if only labels are known.
        rewrite: the rewritten text that was searched for; empty if the query was not rewritten.
        language: ISO 639-1 code; empty if unknown.
        answer: the expected answer; None if unknown.
        metadata: additional data from its author, JSON values.
        passages: the pool, best fused passage first; for a file of labels, the judged passages.
        course: statistics of the ranking; None if the query was not ranked.
        systems: the hits of each system.
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
        """The ranked passages in the golden order, best first."""
        return tuple(passage for _, passage in sorted(self._placed(), key=lambda pair: pair[0]))

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks in the golden order of the ranked passages that are not near-duplicates of others, ascending."""
        return tuple(sorted(rank for rank, passage in self._placed() if not passage.repeats))

    @property
    def escalated(self) -> tuple[str, ...]:
        """The signals that made a system search deeper for the query; empty if none did."""
        return tuple(dict.fromkeys(signal for returned in self.systems for signal in returned.escalated))

    @property
    def grades(self) -> dict[str, int | None]:
        """Grade of each passage in the pool."""
        return {passage.doc_id: passage.grade for passage in self.passages}

    def passage(self, doc_id: str) -> PassageView | None:
        """Return the passage of the pool with this id, or None."""
        return next((passage for passage in self.passages if passage.doc_id == doc_id), None)

    def twins(self, passage: PassageView) -> tuple[PassageView, ...]:
        """Return the near-duplicates of a passage, without the passage itself."""
        group = passage.duplicate_of or passage.doc_id
        near = (each for each in self.passages if (each.duplicate_of or each.doc_id) == group)
        return tuple(each for each in near if each.doc_id != passage.doc_id)

    def without_texts(self) -> QuestionView:
        """Return the query without texts of passages, and without reasons and notes, which may quote them."""
        return replace(self, passages=tuple(map(_without_texts, self.passages)))

    def _placed(self) -> Iterator[tuple[int, PassageView]]:
        return ((passage.place.rank, passage) for passage in self.passages if passage.place is not None)


@dataclass(frozen=True, slots=True)
class QuestionBrief:
    """Summary of a query.

    Attributes:
        qid, text, language: id, text and language of the query.
        metadata: additional data from its author.
        pooled: number of passages in the pool that have a record of the judge; if none has, the size of the pool.
        grades: grades of the graded passages.
        doubt: expected number of inversions in the top; None if the query was not ranked, or the set is not a run.
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
        """Number of passages with a grade."""
        return len(self.grades)

    @property
    def relevant(self) -> int:
        """Number of passages with grade 4 or 5."""
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


MAX_FACT_CHARS = 400  # maximum length of a metadata value
MAX_NOTE_CHARS = 2_000  # maximum length of a reason or a note
KINDS = ("kind", "type", "category")  # metadata keys that may contain the kind of a question
SCORE_DIGITS = 3
UNLISTED = 50  # maximum number of passages outside the order in a short sheet without systems
MIN_SHOWN_RANKS = 10  # minimum number of ranks that are shown initially, as in the script


@dataclass(frozen=True, slots=True)
class HumanLabelLine:
    """A human label of a passage. `grade` is None if the annotator was undecided. `decided` marks an adjudicated
    label.
    """

    who: str
    grade: int | None = None
    note: str = ""
    decided: bool = False


@dataclass(frozen=True, slots=True)
class SheetPassage:
    """A passage on the sheet.

    Attributes:
        id, title: id and title of the passage.
        text: its text, without line breaks that only limit the width.
        where: position of the passage in its source, as text.
        grade: grade of the passage, or None. `by` is the source of the grade. `said` is the reason for the grade, or
            why there is no grade.
        votes: the single answers that the grade was computed from; empty if there is only one.
        rank, low, high: rank in the golden order, and its 95% interval; None if the passage was not ranked.
        sure: probability that the passage is better than the next one in the order; None for the last passage, and for
            passages that were not ranked.
        locked: whether the passage is locked above the next one.
        below: ids of the passages that are locked below this passage.
        score, sigma: score and standard error of the ranking.
        pooled: fused rank of the passage in the pool.
        sources: rank of the passage in the list of each retriever.
        twin: id of the passage that represents its near-duplicates, if that is another passage.
        cut: why the prune stage excluded the passage from the ranking.
        words: human labels.
    """

    id: str
    title: str = ""
    text: str = ""
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
    """The first passages that a system returned: for each passage, its index in `rows` of the sheet, or its id if it is
    not there.

    `found` is the number of all passages that the system returned; None if unknown.
    """

    system: str
    found: int | None
    hits: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class QuestionSheet:
    """A query.

    Attributes:
        id, text, rewrite, language, kind, answer: fields of the query; empty if missing.
        facts: pairs of name and value: additional data from the author of the query.
        top: number of leading ranks that matter; 0 if the query was not ranked.
        doubt: expected number of inversions in the top; None if the query was not ranked.
        stopped: why the ranking ended.
        rows: the order, best first, then the other shown passages of the pool.
        pool: number of passages in the pool.
        lists: the systems' lists.
        terms: words to highlight in the passages, in lower case and without accents.
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
    terms: tuple[str, ...] = ()


SHEETS: TypeAdapter[QuestionSheet] = TypeAdapter(QuestionSheet)


def kind_of(metadata: Mapping[str, object]) -> str:
    """Return the kind of a question according to its author; empty if unknown."""
    return next((value for name in KINDS if isinstance(value := metadata.get(name), str)), "")


def sheet_of(view: QuestionView, top: int, *, depth: int | None = None) -> QuestionSheet:
    """Return the sheet of a query.

    Args:
        view: the query.
        top: number of leading ranks that matter.
        depth: number of shown hits per system. Passages are shown if they are among these hits, or among the first
            `top` (at least `MIN_SHOWN_RANKS`) of the order. Without systems, up to `UNLISTED` passages outside the
            order are shown, too. If None, all hits, the whole order and the whole pool are shown.
    """
    order = view.order
    passages = _passages(view, order, max(top, MIN_SHOWN_RANKS), depth)
    numbers = {passage.doc_id: number for number, passage in enumerate(passages)}
    below = [*(passage.doc_id for passage in order[1:]), None]
    ranks = view.ranks
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
        rows=tuple(_row(passage, after.get(passage.doc_id), ranks) for passage in passages),
        pool=len(view.passages),
        lists=tuple(_list(returned, numbers, depth) for returned in view.systems),
    )


def rank_of_position(position: int, ranks: Sequence[int]) -> int:
    """Return the rank in a list of a position that was counted without near-duplicates.

    Ranking orders one passage per group of near-duplicates. In the list, the others follow directly after this
    passage, so lower passages get larger ranks.

    Args:
        position: position among passages without near-duplicates, from 1.
        ranks: ranks in the list of these passages, ascending; positions beyond them keep the last offset.
    """
    if position <= len(ranks):
        return ranks[position - 1]
    return position + (ranks[-1] - len(ranks) if ranks else 0)


def sheet_json(sheet: QuestionSheet) -> bytes:
    """Return the sheet as JSON without default values, as the script reads it."""
    return SHEETS.dump_json(sheet, exclude_defaults=True)


def _passages(
    view: QuestionView, order: tuple[PassageView, ...], first: int, depth: int | None
) -> tuple[PassageView, ...]:
    """Return the shown passages: first the ranked ones, then the others by fused rank or, for a file of labels, by
    grade.
    """
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


def _row(passage: PassageView, after: str | None, ranks: Sequence[int]) -> SheetPassage:
    place, judged = passage.place, passage.judged
    said = "" if judged is None else judged.reason or judged.error or judged.skipped or ""
    return SheetPassage(
        id=passage.doc_id,
        title=passage.title,
        text=join_wrapped_lines(passage.text),
        where="" if passage.span is None else f"{passage.span.source} {passage.span.start}–{passage.span.end}",
        grade=passage.grade,
        by="" if judged is None else source_of(judged.judge),
        said=reason_in_words(said)[:MAX_NOTE_CHARS],
        votes=passage.votes,
        rank=None if place is None else place.rank,
        low=None if place is None else rank_of_position(place.rank_low, ranks),
        high=None if place is None else rank_of_position(place.rank_high, ranks),
        sure=None if place is None or after is None else round(place.confidence, SCORE_DIGITS),
        locked=place is not None and after in place.locks_out,
        below=() if place is None else place.locks_out,
        score=None if place is None else round(place.score, SCORE_DIGITS),
        sigma=None if place is None else round(place.sigma, SCORE_DIGITS),
        pooled=passage.pooled,
        sources=tuple((name, source.rank) for name, source in passage.sources.items()),
        twin=passage.duplicate_of if passage.repeats else None,
        cut=passage.cut,
        words=tuple(
            HumanLabelLine(word.who, word.grade, word.note[:MAX_NOTE_CHARS], word.settles) for word in passage.words
        ),
    )


def _list(returned: ReturnedHits, numbers: Mapping[str, int], depth: int | None) -> ReturnedList:
    hits = tuple(numbers.get(hit.doc_id, hit.doc_id) for hit in returned.hits[:depth])
    return ReturnedList(returned.system, returned.found, hits)
