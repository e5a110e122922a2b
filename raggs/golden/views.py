"""One question of a golden set, with all that is known of it: what was asked, what was looked at, what was decided.

A `QuestionView` is what the terminal, the review page and the report show of a question; they compute nothing of their
own. It is a plain value: texts, numbers, and None where nothing is known. Passages are foreign text, character for
character: whoever shows them sees to it that they stay text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from raggs.base.artifacts import Placement, RankRecord, Span
from raggs.golden.base import Graded
from raggs.parts.readers.scales import RELEVANT


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands in the golden order.

    Attributes:
        rank: 1 = best.
        score, sigma: the ranking's score, on the scale of the grades where it starts from them, and its standard error.
        confidence: probability that it truly stands above the next one, 0 to 1.
        low, high: best and worst plausible rank (95%), near-duplicates not counted.
        membership: probability that it truly belongs to the top, 0 to 1.
        exposures: in how many judged batches it was shown.
        below, above: passages that are locked below it, and above it.
        unordered: whether nobody was asked about it, since its grade lies below the floor.
    """

    rank: int
    score: float
    sigma: float
    confidence: float
    low: int
    high: int
    membership: float
    exposures: int
    below: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    unordered: bool = False

    @classmethod
    def of(cls, record: RankRecord) -> Place:
        """What a line of rank.jsonl says of it."""
        return cls(
            record.rank,
            record.score,
            record.sigma,
            record.confidence,
            record.rank_low,
            record.rank_high,
            record.membership,
            record.exposures,
            record.locks_out,
            record.locks_in,
            record.unordered,
        )


@dataclass(frozen=True, slots=True)
class Word:
    """What a person says of a passage now. `grade`: None where they cannot tell; `settles`: decides among others."""

    who: str
    grade: int | None
    note: str = ""
    settles: bool = False


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
    judged: Graded | None = None
    place: Place | None = None
    cut: str = ""
    duplicate_of: str | None = None
    words: tuple[Word, ...] = ()

    @property
    def grade(self) -> int | None:
        """Its grade in the golden set; None where it has none."""
        return None if self.judged is None else self.judged.grade

    @property
    def votes(self) -> str:
        """Every answer that its grade was made of, where there were several: "one 4 4 5; other 3 –"; else empty."""
        judged = self.judged
        if judged is None or (not judged.votes and len(judged.samples) < 2):
            return ""
        rows = judged.votes.items() or [("", judged.samples)]
        return "; ".join(" ".join([*filter(None, [name]), *(str(each or "–") for each in row)]) for name, row in rows)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a system returned. `grade`: None: not judged."""

    rank: int
    doc_id: str
    score: float
    grade: int | None


@dataclass(frozen=True, slots=True)
class Returned:
    """What a system returned for the question, best first; equal scores by descending id, as trec_eval has it.

    `found`: how many passages there were, of which `hits` may be the first; None where they were not counted.
    `escalated`: signals for which the question was searched deeper; empty where it was not.
    """

    system: str
    hits: tuple[Hit, ...]
    found: int | None = None
    escalated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Course:
    """How the ranking of the question went.

    Attributes:
        calls, failed: batches that the judge ordered, and failed on.
        stopped: why nothing more was asked.
        inversions: wrongly ordered pairs expected inside the top.
    """

    calls: int
    failed: int
    stopped: str
    inversions: float


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
    course: Course | None = None
    systems: tuple[Returned, ...] = ()

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
        return replace(self, passages=tuple(map(_silent, self.passages)))

    def _placed(self) -> Iterator[tuple[int, PassageView]]:
        return ((passage.place.rank, passage) for passage in self.passages if passage.place is not None)


@dataclass(frozen=True, slots=True)
class Brief:
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
    def relevant(self) -> int:
        """How many of the grades are 4 or 5."""
        return sum(grade >= RELEVANT for grade in self.grades)


def _silent(passage: PassageView) -> PassageView:
    judged = None if passage.judged is None else replace(passage.judged, reason="", error=None)
    return replace(
        passage, title="", text="", judged=judged, words=tuple(replace(word, note="") for word in passage.words)
    )
