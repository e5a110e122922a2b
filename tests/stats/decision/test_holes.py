"""Which hole to fill first: what divides the systems, on queries of which little is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.annotation_value import order_holes

TOPS = [
    {"q1": ["j", "all", "half"], "q2": ["half2"]},
    {"q1": ["j", "all", "half"], "q2": ["x"]},
    {"q1": ["j", "all", "one"], "q2": ["half2"]},
    {"q1": ["j", "all"], "q2": ["x"]},
]
JUDGED = {"q1": {"j"}, "q2": {"x"}}


def ordered(tops=TOPS, judged=JUDGED, useful=None, weights=(1, 1, 1, 1), cutoffs=(3,)):
    return order_holes(zip(weights, tops, strict=False), judged, useful or {}, cutoffs)


def found(holes):
    return [(hole.qid, hole.doc_id) for hole in holes]


def test_what_divides_the_systems_comes_first():
    holes = ordered(useful={"q1": 1})
    assert found(holes) == [("q2", "half2"), ("q1", "half"), ("q1", "one"), ("q1", "all")]
    by_id = {hole.doc_id: hole for hole in holes}
    assert (by_id["half"].systems, by_id["half"].divides) == (2, 0.5)
    assert by_id["one"].divides == 2 * 0.25 * 0.75 and by_id["all"].worth == 0
    assert by_id["half"].worth == 0.25, "with it, two useful passages would be known"
    assert by_id["half2"].worth == 0.5


def test_a_top_holds_no_more_useful_passages_than_it_is_long():
    assert ordered(useful={"q1": 2}) == ordered(useful={"q1": 50}) != ordered(useful={"q1": 1})


def test_a_passage_counts_at_the_cutoffs_that_show_it():
    deep, both = ({hole.doc_id: hole for hole in ordered(cutoffs=cutoffs)} for cutoffs in ((3,), (2, 3)))
    assert both["half"].worth == deep["half"].worth / 2 and both["half"].divides == deep["half"].divides
    assert both["half2"].worth == deep["half2"].worth
    assert {hole.doc_id for hole in ordered(cutoffs=(1,))} == {"half2"}


def test_only_those_that_may_win_count():
    holes = ordered(weights=(0.6, 0.4, 0, 0))
    assert found(holes)[0] == ("q2", "half2") and holes[0].divides == pytest.approx(0.48)
    assert {hole.doc_id: hole.worth for hole in holes}["half"] == 0, "both have it"
    assert ordered(weights=(6, 4, 0, 0)) == holes


def test_a_query_without_judgments_has_no_holes():
    assert {hole.qid for hole in ordered(judged={"q1": []})} == {"q1"}
    assert ordered(tops=[]) == ()


lists = st.dictionaries(st.sampled_from(["q1", "q2"]), st.lists(st.sampled_from("uvwxyz"), max_size=4, unique=True))


@given(st.lists(lists, max_size=4), st.integers(1, 5))
def test_each_hole_stands_once_and_none_is_judged(tops, cutoff):
    judged = {"q1": {"u", "v"}, "q2": set()}
    holes = ordered(tops, judged, cutoffs=(cutoff,))
    shown = {(qid, doc_id) for by_query in tops for qid, ids in by_query.items() for doc_id in ids[:cutoff]}
    assert sorted(found(holes)) == sorted(each for each in shown if each[1] not in judged[each[0]])
    assert all(0 <= hole.divides <= 0.5 for hole in holes)


def test_weights_and_cutoffs_are_numbers():
    with pytest.raises(ValueError, match="at least 0"):
        ordered(weights=(-1, 1, 1, 1))
    with pytest.raises(ValueError, match="all systems have weight 0"):
        ordered(weights=(0, 0, 0, 0))
    for cutoffs in ((), (0, 10)):
        with pytest.raises(ValueError, match="at least 1"):
            ordered(cutoffs=cutoffs)
