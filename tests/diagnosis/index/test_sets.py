"""The sets of questions: the comparison is about the user's questions where it can be, and its size is that set's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from raggs.diagnosis.index import IndexDiagnosis
from raggs.diagnosis.index.comparing import most_telling
from raggs.diagnosis.index.models import IndexFindings, MatchedPart, Origin, QuerySetPart
from raggs.diagnosis.models import MeanPart

DELTAS = (0.3,)
SIZES: dict[Origin, int] = {"questions": 72, "held-out passages": 500}


def compared(origin: Origin, level: float, apart: float = 0.1) -> list[MatchedPart]:
    """The first index and another one at a level."""
    value, change = {"r0.3": MeanPart(mean=0.5, low=0.4, high=0.6)}, MeanPart(mean=apart, low=0.0, high=0.2)
    first = MatchedPart(index="hnsw", k=10, origin=origin, level=level, bracketed=True, values=value)
    return [first, first.model_copy(update={"index": "ivf", "against": {"r0.3": change}})]


def missed(origin: Origin, level: float) -> list[MatchedPart]:
    """Two indexes that were not measured around a level."""
    return [MatchedPart(index=name, k=10, origin=origin, level=level, bracketed=False) for name in ("hnsw", "ivf")]


def found_of(matched: Sequence[MatchedPart]) -> IndexFindings:
    return IndexFindings(
        verdict="",
        passed=None,
        rows=5000,
        dims=8,
        source="vectors",
        asked=tuple(QuerySetPart(origin=origin, questions=count) for origin, count in SIZES.items()),
        exact_qps=None,
        load=None,
        deltas=DELTAS,
        points=(),
        matched=tuple(matched),
    )


def test_the_level_is_one_at_which_the_questions_themselves_are_compared() -> None:
    matched = [*compared("questions", 0.8), *missed("questions", 0.9), *compared("held-out passages", 0.9)]
    part = most_telling(matched, DELTAS)
    assert part is not None
    assert (part.index, part.origin, part.level) == ("ivf", "questions", 0.8)


def test_the_level_nearest_to_the_usual_one_counts_even_if_indexes_differ_less_there() -> None:
    part = most_telling([*compared("questions", 0.8, 0.3), *compared("questions", 0.95, 0.1)], DELTAS)
    assert part is not None
    assert part.level == 0.95


@pytest.mark.parametrize(
    ("matched", "count"),
    [
        ([*compared("questions", 0.9), *compared("held-out passages", 0.9)], 72),
        ([*missed("questions", 0.9), *compared("held-out passages", 0.9)], 500),
        ([*missed("questions", 0.9), *missed("held-out passages", 0.9)], 72),
    ],
    ids=["both", "only held out", "neither"],
)
def test_the_verdict_rests_on_the_set_that_is_compared(matched: Sequence[MatchedPart], count: int) -> None:
    assert IndexDiagnosis(IndexDiagnosis.Config()).rests_on(found_of(matched)) == count
