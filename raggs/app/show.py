"""One query of a golden set with its grades, order and system results, or one line per query."""

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
    """Golden set to show, with further systems and labels.

    Attributes:
        golden: a run directory, or labels in files.
        runs: run files of other systems, as ``[NAME=]PATH``.
        reviews: folder of the human labels [default: `reviews` next to the folder of runs].
        texts: whether to read the texts of passages.
    """

    golden: Path
    runs: Sequence[str] = ()
    reviews: Path | None = None
    texts: bool = True


@dataclass(frozen=True)
class ShownQuestion:
    """A query to print, and the number of leading ranks that matter (0 if the golden set has no ranking).

    `by_grade`: whether the golden set has no ranking, so that only grades define the order.
    """

    question: QuestionView
    top: int
    by_grade: bool = False

    @property
    def pool(self) -> tuple[PassageView, ...]:
        """Passages of the pool by fused rank; by grade first if the golden set has no ranking or no fused ranks."""
        found = sorted(self.question.passages, key=lambda each: (each.pooled or 0, -(each.grade or 0)))
        return tuple(sorted(found, key=lambda each: -(each.grade or 0)) if self.by_grade else found)

    @property
    def json(self) -> str:
        """The query as JSON, with the fields of `QuestionView`."""
        return TypeAdapter(QuestionView).dump_json(self.question, indent=2).decode()


def show(request: ShowRequest, qid: str, system: str | None = None) -> ShownQuestion:
    """Return one query.

    Args:
        system: show only the results of this system [default: all systems].

    Raises:
        NotFoundError: there is no such query or system; the error suggests the most similar name.
        UsageError, DataError: the golden set, a system or the labels are invalid.
    """
    golden = open_golden(request.golden)
    questions = GoldenQuestions(golden, reviews=_reviews(request), texts=request.texts)
    found = questions.view(qid)
    if request.runs:
        others = GoldenQuestions(golden, [*open_systems([*request.runs])]).view(qid)
        found = replace(found, systems=(*found.systems, *others.systems))
    known = [each.system for each in found.systems]
    if twice := next((name for name in known if known.count(name) > 1), None):
        raise UsageError(f"two systems have the name {twice}", remedy="give one of them another name: --run NAME=FILE")
    if system is not None:
        found = replace(found, systems=tuple(each for each in found.systems if each.system == system))
        if not found.systems:
            raise NotFoundError(f"unknown system {system!r}", remedy=did_you_mean(system, known))
    return ShownQuestion(found, questions.top, golden.by_grade)


def lines(request: ShowRequest) -> Iterator[QuestionBrief]:
    """Yield a short view of each query, in the order of the ids.

    Raises:
        NotFoundError, DataError: see `show`.
    """
    return GoldenQuestions(open_golden(request.golden)).briefs()


def said_by(passage: PassageView) -> str:
    """Return the source of a passage's grade, which is `human` for every annotator; empty if it was not judged."""
    return "" if passage.judged is None else source_of(passage.judged.judge)


def _reviews(request: ShowRequest) -> CurrentReviews | None:
    if not request.golden.is_dir():
        return None
    return ReviewStore(reviews_of(request.golden, request.reviews)).held()
