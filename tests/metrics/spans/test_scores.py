"""Scores of retrieved chunks: the report's example, its code's departures, and a count of single characters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.metrics.spans import (
    MEASURES,
    ChunkTargets,
    Cutoff,
    DocumentOffsets,
    LengthScale,
    ReferenceColumns,
    Spans,
    score,
    summary,
)

Place = tuple[int, int, int]
LENGTHS = (40, 25)


def target(
    references: list[tuple[int, Place]],
    chunks: list[Place],
    *,
    count: int = 1,
    lengths: tuple[int, ...] = (1000,),
    compat: bool = False,
) -> ChunkTargets:
    asked = np.array([question for question, _ in references], dtype=np.int64)
    questions = ReferenceColumns(count, Spans.of(place for _, place in references), asked)
    return ChunkTargets(questions, Spans.of(chunks), DocumentOffsets.of(lengths), LengthScale.characters(), compat)


def values(made: ChunkTargets, rows: list[list[int]], cutoff: Cutoff = 5) -> dict[str, list[float]]:
    found = score(made, np.array(rows, dtype=np.int64), cutoff)
    return {name: found.values[name].tolist() for name in MEASURES}


EXAMPLE = [(0, (0, 100, 200))], [(0, 50, 150), (0, 140, 240)]


def test_the_example_by_the_formulas() -> None:
    found = values(target(*EXAMPLE), [[0, 1]])
    assert found == {
        "recall": [1],
        "precision": [0.5],
        "iou": [0.5],
        "f1": [pytest.approx(2 / 3)],
        "precision_omega": [0.5],
    }


def test_the_example_as_the_code_has_it_differs_in_omega_alone() -> None:
    plain, compat = values(target(*EXAMPLE), [[0, 1]]), values(target(*EXAMPLE, compat=True), [[0, 1]])
    assert compat.pop("precision_omega") == [pytest.approx(100 / 190)]
    assert compat == {name: plain[name] for name in compat}


def test_a_chunk_that_only_touches_hits_in_the_code_alone() -> None:
    references, chunks = [(0, (0, 100, 200))], [(0, 0, 100), (0, 100, 200)]
    plain, compat = target(references, chunks), target(references, chunks, compat=True)
    assert plain.hits.tolist() == [1]
    assert compat.hits.tolist() == [2]
    assert values(plain, [[0, 1]])["precision_omega"] == [1.0]
    assert values(compat, [[0, 1]])["precision_omega"] == [0.5]


def test_min_retrieves_as_many_as_hold_something_and_20_at_most_in_the_code() -> None:
    chunks = [(0, start, start + 10) for start in range(0, 300, 10)]
    references, ranked = [(0, (0, 5, 250))], [list(range(30))]
    plain = score(target(references, chunks), np.array(ranked), "min")
    compat = score(target(references, chunks, compat=True), np.array(ranked), "min")
    assert (plain.retrieved.tolist(), compat.retrieved.tolist()) == ([25], [20])


def test_a_character_that_is_retrieved_twice_is_held_once_and_read_twice() -> None:
    found = values(target([(0, (0, 0, 10))], [(0, 0, 10), (0, 0, 10)]), [[0, 1]])
    assert (found["recall"], found["precision"], found["iou"]) == ([1.0], [0.5], [0.5])


def test_nothing_retrieved_is_a_precision_of_0_and_no_reference_no_value() -> None:
    found = values(target([(0, (0, 0, 10))], [(0, 50, 60)], count=2), [[-1], [0]])
    assert (found["recall"][0], found["precision"][0], found["precision_omega"][0]) == (0, 0, 0)
    assert all(math.isnan(found[name][1]) for name in MEASURES)


def test_references_of_one_question_must_not_overlap() -> None:
    with pytest.raises(ValueError, match="references 1 and 0 of question 0 overlap"):
        target([(0, (0, 5, 20)), (0, (0, 0, 10))], [])
    target([(0, (0, 5, 20)), (0, (0, 0, 5)), (1, (0, 0, 10))], [], count=2)


def test_a_summary_has_the_population_deviation() -> None:
    found = summary([0.0, 1.0, math.nan])
    assert (found.mean, found.sd, found.count) == (0.5, 0.5, 2)


@pytest.mark.parametrize(("rows", "cutoff"), [([[0], [0]], 5), ([[0]], 0)])
def test_what_does_not_fit_is_refused(rows: list[list[int]], cutoff: int) -> None:
    with pytest.raises(ValueError, match="one row per question"):
        values(target(*EXAMPLE), rows, cutoff)


# --- random cases against sets and lists of single characters ---------------------------------------------------


@st.composite
def places(draw: st.DrawFn) -> Place:
    document = draw(st.integers(0, 1))
    start = draw(st.integers(0, LENGTHS[document] - 1))
    return document, start, draw(st.integers(start + 1, LENGTHS[document]))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[tuple[int, Place]], list[Place], list[list[int]]]:
    chunks = draw(st.lists(places(), min_size=1, max_size=12))
    references: list[tuple[int, Place]] = []
    for question in range(3):
        taken: set[tuple[int, int]] = set()
        for place in draw(st.lists(places(), max_size=3)):
            if not taken & set(characters(place)):
                taken |= set(characters(place))
                references.append((question, place))
    ranked = [draw(st.permutations(range(len(chunks)))) for _ in range(3)]
    return references, chunks, [list(row) for row in ranked]


def characters(place: Place) -> list[tuple[int, int]]:
    return [(place[0], at) for at in range(place[1], place[2])]


def naive(references: list[Place], chunks: list[Place], retrieved: list[Place], compat: bool) -> list[float]:
    """The five measures by counting characters one by one."""
    wanted = {each for place in references for each in characters(place)}
    if not wanted:
        return [math.nan] * 5
    read = [each for place in retrieved for each in characters(place)]
    held, touching = len(wanted & set(read)), 0 if compat else 1
    hitting = [
        chunk
        for chunk in chunks
        if any(
            chunk[0] == place[0] and min(chunk[2], place[2]) - max(chunk[1], place[1]) >= touching
            for place in references
        )
    ]
    shown = [each for place in hitting for each in characters(place)]
    whole = len(set(shown) | wanted) if compat else len(shown)
    return [
        held / len(wanted),
        held / len(read) if read else 0.0,
        held / (len(wanted) + len(read) - held),
        2 * held / (len(wanted) + len(read)),
        len(wanted & set(shown)) / whole if whole else 0.0,
    ]


@given(world=worlds(), cutoff=st.integers(1, 6), compat=st.booleans())
def test_scores_are_those_of_counting_characters(
    world: tuple[list[tuple[int, Place]], list[Place], list[list[int]]], cutoff: int, compat: bool
) -> None:
    references, chunks, ranked = world
    found = values(target(references, chunks, count=3, lengths=LENGTHS, compat=compat), ranked, cutoff)
    for question in range(3):
        own = [place for asked, place in references if asked == question]
        retrieved = [chunks[row] for row in ranked[question][:cutoff]]
        expected = naive(own, chunks, retrieved, compat)
        assert [found[name][question] for name in MEASURES] == pytest.approx(expected, nan_ok=True, abs=1e-12)
