"""Human labels as a judge: the labels of a passage give its grade, and the judge abstains if they give none.

Labels are read from reviews.jsonl (see `raggs review`), once, at first use. Labels added during a run are used by the
next run. Queries and passages are matched by their text. If a text has changed since it was labelled, its labels are
not used, and their number is reported. The judge calls no model and writes no file.
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
    "no annotator has labelled it",
    "the annotators were unsure",
    "annotators differ, and the grade is not adjudicated",
)
NO_ORDER = "no human order of these passages"
IRRELEVANT_SETTINGS: Mapping[Task, tuple[str, ...]] = {  # settings without effect on the task
    "grade": ("sharpness",),
    "grades": ("sharpness",),
    "order": ("conflicts",),
}
SETTLEMENT_WORDS = {"agreed": "agreed", "settled": "settled", "median": "different grades; their lower median"}


class HumanConfig(AdapterConfig):
    type: Literal["human"] = "human"
    reviews: Effort[AnchoredPath | None] = Field(
        None, description="folder of reviews.jsonl; null: reviews, next to the workspace"
    )
    reviewers: tuple[str, ...] | None = Field(None, min_length=1, description="annotators to include; null: all")
    conflicts: Literal["median", "abstain"] = Field(
        "median",
        description="grade if annotators differ and nothing is adjudicated: lower median of their grades, or abstain",
    )
    sharpness: float = Field(
        4.5,
        gt=0,
        le=8,
        description="precision of human orders in ranking: 4.5 orders adjacent grades correctly in 99% of cases",
    )


class HumanJudge(Judge):
    """Human labels: grades and orders given with `raggs review`; abstains on passages without a label."""

    Config = HumanConfig
    VERSION = 2  # in version 1, a label counted once per sample
    IN_CASCADE = False  # human labels are final; a panel under rule `first` gives them priority
    config: HumanConfig

    def __init__(self, config: HumanConfig, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._met: dict[tuple[str, str], Key] = {}  # keys of all passages looked up, by query id and passage id
        self._graded: set[Key] = set()

    @classmethod
    def exact(cls, causes: Causes) -> bool:  # noqa: ARG003 - whoever they are
        """Return True (see `Judge.exact`): annotators may err, but a stored label does not vary."""
        return True

    @classmethod
    def abstains(cls, settings: Causes) -> bool:  # noqa: ARG003 - whatever they are
        """Return True (see `Judge.abstains`)."""
        return True

    @property
    def name(self) -> str:
        return HUMAN_SOURCE

    @property
    def central(self) -> bool:
        return True

    def causes(self, task: Task) -> Causes:
        """Return the causes (see `Judge.causes`). For grades, they include the labels for queries of the run."""
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
        """Hash of the human orders for queries of the run (see `Judge.told`); None if there are none."""
        found = [
            [question, order.who, list(order.passages), list(order.places)]
            for question, orders in self._orders.items()
            for order in orders
            if self._concerns(question)
        ]
        return hash_value(sorted(found)) if found else None

    @cached_property
    def _orders(self) -> Mapping[str, list[OrderReview]]:
        """Orders by query digest, in a sequence that does not depend on the time of the annotations."""
        found: dict[str, list[OrderReview]] = {}
        for (question, _), orders in self._held.orders.items():
            found.setdefault(question, []).extend(orders.values())
        return {
            question: sorted(orders, key=lambda order: (order.who, sorted(order.passages)))
            for question, orders in found.items()
        }

    def check(self, queries: Iterable[Query]) -> None:
        """Read the labels, so that errors in the file are raised before the first call.

        Raises:
            DataError: a line is invalid; the error names the line.
        """
        _ = self._held

    def remarks(self) -> Iterator[str]:
        """Yield how many of the requested passages a label grades, and how many labels are for changed texts."""
        total = len(self._met)
        if total:
            yield f"human labels grade {len(self._graded):,} of the {plural(total, 'passage')} requested"
        if total and not self._graded:
            yield f"{self._store.folder} has no grade for these passages; to add one, run raggs review set"
        if stale := len(self._held.stale(self._met)):
            yield f"not used: {plural(stale, 'label')} for passages or queries whose text has changed since"

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
        """Return an order if an annotator has ordered all these passages without ties (see `Judge.order`).

        The orders of several annotators are combined by `consensus_order`. A single passage needs no label.
        """
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
        """Return the human orders, restricted to these passages; orders in which all of them are tied are omitted."""
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
    """Return the positions of `digests`, best first; None if two of them are tied in the order or have the same
    text.
    """
    place = dict(zip(order.passages, order.places, strict=True))
    places = [place[digest] for digest in digests]
    if len(set(places)) < len(places):
        return None
    return tuple(sorted(range(len(places)), key=places.__getitem__))


def _by(names: Sequence[str]) -> str:
    return f"{HUMAN_SOURCE}: {', '.join(names)}"


def _reason(settled: SettledGrade, words: Iterable[GradeReview], decided: GradeReview | None) -> str:
    """Return who labelled the passage, how different labels were reconciled, and the notes."""
    noted = [f"{word.who}: {word.note}" for word in (*words, *((decided,) if decided else ())) if word.note]
    how = f": {SETTLEMENT_WORDS[settled.how]}" if settled.how in SETTLEMENT_WORDS else ""
    return "; ".join([f"{', '.join(settled.by)}{how}", *noted])
