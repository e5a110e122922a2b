"""One question of a golden set, or a line about each: what was decided, and what systems made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from raggs.app.review import reviews_of
from raggs.base.errors import NotFoundError, UsageError
from raggs.base.judge_health import source_of
from raggs.base.text import did_you_mean
from raggs.golden.questions import GoldenQuestions
from raggs.golden.sources import open_golden, open_systems
from raggs.golden.views import HitView, PassageView, QuestionBrief, QuestionView
from raggs.parts.reviews import CurrentReviews, ReviewStore

__all__ = [
    "HitView",
    "PassageView",
    "QuestionView",
    "ShowRequest",
    "ShownQuestion",
    "lines",
    "said_by",
    "show",
]


@dataclass(frozen=True)
class ShowRequest:
    """What is to be shown.

    Attributes:
        golden: a run directory, or labels of others.
        runs: ``[NAME=]PATH`` of what other systems returned.
        reviews: the folder of reviews; `reviews` beside the runs' if left out.
        texts: whether passages bring their texts.
    """

    golden: Path
    runs: Sequence[str] = ()
    reviews: Path | None = None
    texts: bool = True


@dataclass(frozen=True)
class ShownQuestion:
    """A question, and how many ranks of its order count (0: nothing is ranked).

    `by_grade`: whether nobody is to be asked for an order, so that grades say what comes first.
    """

    question: QuestionView
    top: int
    by_grade: bool = False

    @property
    def pool(self) -> tuple[PassageView, ...]:
        """The passages by fused rank, of labels by grade; where grades are all there is, by grade, then fused rank."""
        found = sorted(self.question.passages, key=lambda each: (each.pooled or 0, -(each.grade or 0)))
        return tuple(sorted(found, key=lambda each: -(each.grade or 0)) if self.by_grade else found)

    @property
    def json(self) -> str:
        """The question as JSON: the fields of `QuestionView`."""
        return TypeAdapter(QuestionView).dump_json(self.question, indent=2).decode()


def show(request: ShowRequest, qid: str, system: str | None = None) -> ShownQuestion:
    """One question.

    Args:
        system: this system's list alone; all of them if left out.

    Raises:
        NotFoundError: no such question, or system; names the nearest.
        UsageError, DataError: as the readers of golden sets, systems and reviews.
    """
    golden = open_golden(request.golden)
    questions = GoldenQuestions(golden, reviews=_reviews(request), texts=request.texts)
    found = questions.view(qid)
    if request.runs:
        others = GoldenQuestions(golden, [*open_systems([*request.runs])]).view(qid)
        found = replace(found, systems=(*found.systems, *others.systems))
    known = [each.system for each in found.systems]
    if twice := next((name for name in known if known.count(name) > 1), None):
        raise UsageError(f"two systems are called {twice}", remedy="name one: --run NAME=FILE")
    if system is not None:
        found = replace(found, systems=tuple(each for each in found.systems if each.system == system))
        if not found.systems:
            raise NotFoundError(f"there is no system {system!r}", remedy=did_you_mean(system, known))
    return ShownQuestion(found, questions.top, golden.by_grade)


def lines(request: ShowRequest) -> Iterator[QuestionBrief]:
    """Every question, in the order of their ids.

    Raises:
        NotFoundError, DataError: as `show`.
    """
    return GoldenQuestions(open_golden(request.golden)).briefs()


def said_by(passage: PassageView) -> str:
    """Who gave a passage's grade, people as one; empty where nobody did."""
    return "" if passage.judged is None else source_of(passage.judged.judge)


def _reviews(request: ShowRequest) -> CurrentReviews | None:
    if not request.golden.is_dir():
        return None
    return ReviewStore(reviews_of(request.golden, request.reviews)).held()
