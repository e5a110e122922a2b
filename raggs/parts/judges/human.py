"""People as a judge: what they said of a passage is its grade, and where nobody spoke the judge abstains.

Read from reviews.jsonl (`raggs review`), once, when it is first needed: what is said while a run is at work counts in
the next one. Questions and passages are known by what they say, so that words on a text that has changed since are not
used; how many there are is told. Nobody is asked, nobody is paid, and nothing is ever written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage, Query
from raggs.base.hashing import hash_value
from raggs.base.judge_health import HUMAN_SOURCE
from raggs.base.settings import AnchoredPath, Causes, Effort
from raggs.base.text import plural
from raggs.parts.judges import Judge, JudgeContext, Judgment, KnownOrder, Ordering, Task
from raggs.parts.reviews import (
    CurrentReviews,
    GradeReview,
    Key,
    OrderReview,
    ReviewStore,
    SettledGrade,
    digests,
    fold_reviews,
    key_of,
    passage_digest,
    question_digest,
)
from raggs.ranking.fusion import consensus_order

NOT_REVIEWED, REVIEWER_UNSURE, UNDECIDED = (
    "nobody has reviewed it",
    "nobody could tell",
    "people differ, and nobody has decided",
)
NO_ORDER = "nobody has ordered these passages"
IRRELEVANT_SETTINGS: Mapping[Task, tuple[str, ...]] = {  # do not matter for it
    "grade": ("sharpness",),
    "grades": ("sharpness",),
    "order": ("conflicts",),
}
SETTLEMENT_WORDS = {"agreed": "agreed", "settled": "settled", "median": "they differ; the lower median"}


class HumanConfig(AdapterConfig):
    type: Literal["human"] = "human"
    reviews: Effort[AnchoredPath | None] = Field(
        None, description="folder of reviews.jsonl, which counts by what it says; null: `reviews` beside the runs"
    )
    reviewers: tuple[str, ...] | None = Field(None, min_length=1, description="whose word counts; null: everybody's")
    conflicts: Literal["median", "abstain"] = Field(
        "median", description="where people differ and nobody decided: the lower median of their grades, or no grade"
    )
    sharpness: float = Field(
        4.5, gt=0, le=8, description="of people's orders in the ranking: 4.5 puts a grade apart right 99 times in 100"
    )


class HumanJudge(Judge):
    """What people said (`raggs review`): their grades and orders; abstains where nobody spoke."""

    Config = HumanConfig
    VERSION = 2  # 1: each sample counted the same word again
    IN_CASCADE = False  # nobody overrules people: a panel asks them first
    config: HumanConfig

    def __init__(self, config: HumanConfig, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._met: dict[tuple[str, str], Key] = {}  # by query id and passage id, what was looked up
        self._graded: set[Key] = set()

    @classmethod
    def exact(cls, causes: Causes) -> bool:  # noqa: ARG003 - whoever they are
        """See `Judge.exact`: people err, but words that are on file are the same whenever they are read."""
        return True

    @classmethod
    def abstains(cls, settings: Causes) -> bool:  # noqa: ARG003 - whatever they are
        """See `Judge.abstains`."""
        return True

    @property
    def name(self) -> str:
        return HUMAN_SOURCE

    @property
    def central(self) -> bool:
        return True

    def causes(self, task: Task) -> Causes:
        """See `Judge.causes`: of what people said only that which concerns the run's questions."""
        own = {name: value for name, value in self.own_causes().items() if name not in IRRELEVANT_SETTINGS[task]}
        return own if task == "order" else {**own, "reviews": self._grades_hash}

    @cached_property
    def _held(self) -> CurrentReviews:
        lines = self._store.read()
        if self.config.reviewers is None:
            return fold_reviews(lines)
        chosen = {name.casefold() for name in self.config.reviewers}
        return fold_reviews(line for line in lines if line.who.casefold() in chosen)

    @property
    def _store(self) -> ReviewStore:
        return ReviewStore(self.config.reviews or self.context.reviews)

    @cached_property
    def _questions(self) -> set[str] | None:
        asked = self.context.questions
        return None if asked is None else {question_digest(query) for query in asked()}

    def _concerns(self, question: str) -> bool:
        return self._questions is None or question in self._questions

    @cached_property
    def _grades_hash(self) -> str:
        keys = {key for key in (*self._held.grades, *self._held.settling) if self._concerns(key[0])}
        said = [(key, self._judgment(key)) for key in sorted(keys)]
        return hash_value([[*key, found.grade, found.reason, found.by, found.silent] for key, found in said])

    @cached_property
    def told(self) -> str | None:
        """See `Judge.told`."""
        found = [
            [question, order.who, list(order.passages), list(order.places)]
            for question, orders in self._orders.items()
            for order in orders
            if self._concerns(question)
        ]
        return hash_value(sorted(found)) if found else None

    @cached_property
    def _orders(self) -> Mapping[str, list[OrderReview]]:
        """By question, in an order that does not depend on when they were given."""
        found: dict[str, list[OrderReview]] = {}
        for (question, _), orders in self._held.orders.items():
            found.setdefault(question, []).extend(orders.values())
        return {
            question: sorted(orders, key=lambda order: (order.who, sorted(order.passages)))
            for question, orders in found.items()
        }

    def check(self, queries: Iterable[Query]) -> None:
        """Read what people said.

        Raises:
            DataError: a line cannot be right; names it.
        """
        _ = self._held

    def remarks(self) -> Iterator[str]:
        """How much of what was looked up has people's word, and what of theirs is about texts that have changed."""
        total = len(self._met)
        if total:
            yield f"people graded {len(self._graded):,} of the {plural(total, 'passage')} that they were looked up for"
        if total and not self._graded:
            yield f"no review in {self._store.folder} is of these passages; raggs review set gives one"
        if stale := len(self._held.stale(self._met)):
            yield f"{plural(stale, 'review')} of passages or questions whose text has changed since: not used"

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        key = self._met[query.qid, passage.doc_id] = key_of(query, passage)
        found = self._judgment(key)
        if found.grade is not None:
            self._graded.add(key)
        return found

    def _judgment(self, key: Key) -> Judgment:
        settled, words = self._held.settled(key), self._held.grades.get(key, {})
        if settled is None:
            return Judgment(None, silent=REVIEWER_UNSURE if words else NOT_REVIEWED)
        if settled.conflict and self.config.conflicts == "abstain":
            return Judgment(None, silent=UNDECIDED)
        decided = self._held.settling.get(key)
        return Judgment(settled.grade, _reason(settled, words.values(), decided), by=_by(settled.by))

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        """See `Judge.order`: where people put all of these in one order, without equals; of several, Kemeny's."""
        if len(passages) == 1:
            return Ordering((0,))
        shown = digests(passages)
        given = self._orders.get(question_digest(query), ())
        covering = (order for order in given if set(shown) <= set(order.passages))
        found = {order.who: found for order in covering if (found := _strict(order, shown))}
        if not found:
            return Ordering(None, silent=NO_ORDER)
        return Ordering(consensus_order(list(found.values()), [1.0] * len(found)), by=_by(tuple(found)))

    async def known(self, query: Query, passages: Sequence[Passage]) -> Sequence[KnownOrder]:
        """See `Judge.known`: each order as far as it is of these passages, and says something of them."""
        ids = {passage_digest(passage): passage.doc_id for passage in passages}
        found = []
        for order in self._orders.get(question_digest(query), ()):
            groups: dict[int, list[str]] = {}
            for digest, place in zip(order.passages, order.places, strict=True):
                if digest in ids:
                    groups.setdefault(place, []).append(ids[digest])
            if len(groups) > 1:
                ordered = tuple(tuple(sorted(groups[place])) for place in sorted(groups))
                found.append(KnownOrder(ordered, self.config.sharpness, _by((order.who,))))
        return found


def _strict(order: OrderReview, digests: Sequence[str]) -> tuple[int, ...] | None:
    """The positions of `digests`, best first; None where two of them are equal, by their order or by their text."""
    place = dict(zip(order.passages, order.places, strict=True))
    places = [place[digest] for digest in digests]
    if len(set(places)) < len(places):
        return None
    return tuple(sorted(range(len(places)), key=places.__getitem__))


def _by(names: Sequence[str]) -> str:
    return f"{HUMAN_SOURCE}: {', '.join(names)}"


def _reason(settled: SettledGrade, words: Iterable[GradeReview], decided: GradeReview | None) -> str:
    """Who said so, how it was settled, and what they noted."""
    noted = [f"{word.who}: {word.note}" for word in (*words, *((decided,) if decided else ())) if word.note]
    how = f": {SETTLEMENT_WORDS[settled.how]}" if settled.how in SETTLEMENT_WORDS else ""
    return "; ".join([f"{', '.join(settled.by)}{how}", *noted])
