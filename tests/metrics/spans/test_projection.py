"""Projected grades, by the naive way: every character painted, every passage asked character by character."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.metrics.spans import (
    UNJUDGED_GRADE,
    DocumentOffsets,
    JudgedSpans,
    ProjectedPassages,
    ProjectionRule,
    Spans,
    new_characters,
    project,
)

Place = tuple[int, int, int]
Judged = tuple[int, Place, int]
LENGTHS = (30, 12)
PLACES = st.sampled_from([0, 1]).flatmap(
    lambda document: st.tuples(
        st.just(document), st.integers(0, LENGTHS[document] - 1), st.integers(1, 12)
    ).map(lambda row: (row[0], row[1], min(row[1] + row[2], LENGTHS[row[0]])))
)  # fmt: skip
JUDGED = st.lists(st.tuples(st.integers(0, 2), PLACES, st.integers(1, 5)), max_size=10)
RULES = st.builds(
    ProjectionRule,
    by=st.sampled_from(["cover", "share", "mean", "max"]),
    least=st.sampled_from([0.25, 0.5, 0.75, 1.0]),
    known=st.sampled_from([0.0, 0.5, 0.9]),
    proof=st.sampled_from([3, 4, 6]),
    overlap=st.sampled_from(["highest", "lowest"]),
)


def painted(judged: Iterable[Judged], lengths: tuple[int, ...] = LENGTHS) -> JudgedSpans:
    rows = list(judged)
    return JudgedSpans(
        3,
        Spans.of(place for _, place, _ in rows),
        np.array([query for query, _, _ in rows], dtype=np.int64),
        np.array([grade for _, _, grade in rows], dtype=np.int64),
        DocumentOffsets.of(lengths),
    )


def grades(found: ProjectedPassages) -> dict[tuple[int, int], int]:
    pairs = zip(found.query.tolist(), found.passage.tolist(), strict=True)
    return dict(zip(pairs, found.grade.tolist(), strict=True))


def chars(place: Place) -> list[tuple[int, int]]:
    return [(place[0], at) for at in range(place[1], place[2])]


def by_character(judged: list[Judged], passage: Place, rule: ProjectionRule) -> int | None:
    """The grade of one passage for one query; None where nothing of it was judged."""
    best: Callable[[Iterable[int]], int] = max if rule.overlap == "highest" else min
    paint = {
        char: best(grade for place, grade in ((place, grade) for _, place, grade in judged) if char in chars(place))
        for _, place, _ in judged
        for char in chars(place)
    }
    mine = [paint[char] for char in chars(passage) if char in paint]
    if not mine:
        return None
    own = [grade for _, place, grade in judged if place == passage]
    if own:
        return max(own)
    share = max(grade for grade in range(1, 6) if sum(each >= grade for each in mine) >= rule.least * len(mine) - 1e-9)
    covered = [
        grade
        for _, place, grade in judged
        if len(set(chars(place)) & set(chars(passage))) >= rule.least * len(chars(place)) - 1e-9
    ]
    earned = {
        "share": share,
        "cover": max([share, *covered]),
        "mean": math.floor(sum(mine) / len(mine) + 0.5 + 1e-9),
        "max": max(mine),
    }[rule.by]
    unsure = len(mine) / len(chars(passage)) < rule.known - 1e-9 and earned < rule.proof
    return UNJUDGED_GRADE if unsure else earned


@given(judged=JUDGED, passages=st.lists(PLACES, max_size=8), rule=RULES)
def test_grades_are_those_of_a_count_of_characters(
    judged: list[Judged], passages: list[Place], rule: ProjectionRule
) -> None:
    found = project(painted(judged), Spans.of(passages), rule)
    naive = {
        (query, row): grade
        for query in range(3)
        for row, passage in enumerate(passages)
        if (grade := by_character([each for each in judged if each[0] == query], passage, rule)) is not None
    }
    assert grades(found) == naive
    assert list(grades(found)) == sorted(grades(found))
    for query, row, share in zip(found.query.tolist(), found.passage.tolist(), found.share.tolist(), strict=True):
        known = {char for asked, place, _ in judged if asked == query for char in chars(place)}
        assert share == pytest.approx(len(known & set(chars(passages[row]))) / len(chars(passages[row])))


@given(judged=JUDGED, rule=RULES)
def test_onto_the_passages_that_were_judged_every_grade_stays(judged: list[Judged], rule: ProjectionRule) -> None:
    once = {(query, place): grade for query, place, grade in judged}
    places = sorted({place for _, place in once})
    rows = [(query, place, grade) for (query, place), grade in once.items()]
    found = grades(project(painted(rows), Spans.of(places), rule))
    assert all(found[query, places.index(place)] == grade for query, place, grade in rows)


@given(judged=JUDGED, overlap=st.sampled_from(["highest", "lowest"]), grade=st.integers(0, 6))
def test_stretches_of_a_grade_hold_its_characters_and_do_not_overlap(
    judged: list[Judged], overlap: str, grade: int
) -> None:
    made = painted(judged)
    found = made.from_grade(grade, "highest" if overlap == "highest" else "lowest")
    best = max if overlap == "highest" else min
    for query in range(3):
        mine = [(place, given_) for asked, place, given_ in judged if asked == query]
        wanted = {
            char
            for place, _ in mine
            for char in chars(place)
            if best(given_ for other, given_ in mine if char in chars(other)) >= grade
        }
        on_line = [
            at
            for asked, start, end in zip(found.query, found.starts, found.ends, strict=True)
            if asked == query
            for at in range(start, end)
        ]
        assert sorted(on_line) == sorted(int(made.line.base[document]) + at for document, at in wanted)


def test_a_longer_passage_has_the_grade_of_the_judged_one_that_it_holds() -> None:
    rows = [(0, (0, 0, 10), 5), (0, (0, 10, 30), 1)]
    found = {
        by: project(painted(rows), Spans.of([(0, 0, 30)]), ProjectionRule(by)).grade.tolist()
        for by in ("cover", "share")
    }
    assert found == {"cover": [5], "share": [1]}


def test_a_passage_of_which_little_was_judged_is_a_hole_unless_that_is_proof() -> None:
    passages = Spans.of([(0, 0, 30)])
    assert project(painted([(0, (0, 0, 10), 3)]), passages, ProjectionRule()).grade.tolist() == [UNJUDGED_GRADE]
    assert project(painted([(0, (0, 0, 10), 4)]), passages, ProjectionRule()).grade.tolist() == [4]
    assert project(painted([(0, (0, 0, 15), 1)]), passages, ProjectionRule()).grade.tolist() == [1]
    assert project(painted([(0, (0, 0, 10), 4)]), passages, ProjectionRule()).holes == 0


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="do not hold"):
        ProjectionRule(least=0.0)
    with pytest.raises(ValueError, match="needs a query in"):
        JudgedSpans(0, Spans.of([(0, 0, 1)]), np.array([0]), np.array([1]), DocumentOffsets.of([5]))
    with pytest.raises(ValueError, match="one query and one grade"):
        JudgedSpans(1, Spans.of([(0, 0, 1)]), np.array([0, 0]), np.array([1]), DocumentOffsets.of([5]))


@given(judged=JUDGED, shown=st.lists(st.tuples(st.integers(0, 2), PLACES), max_size=10))
def test_a_wanted_character_counts_where_it_is_first_read(judged: list[Judged], shown: list[tuple[int, Place]]) -> None:
    made = painted(judged)
    query = np.array([asked for asked, _ in shown], dtype=np.int64)
    rank = np.array([[asked for asked, _ in shown[: row + 1]].count(each) for row, (each, _) in enumerate(shown)])
    found = new_characters(
        made.from_grade(4, "highest"), Spans.of(place for _, place in shown), query, rank.astype(np.int64), made.line
    )
    naive, seen = [], set()
    for asked, place in shown:
        wanted = {(asked, char) for q, where, grade in judged if q == asked and grade >= 4 for char in chars(where)}
        new = {(asked, char) for char in chars(place)} & wanted - seen
        seen |= new
        naive.append(len(new))
    assert found.tolist() == naive
