"""Which hole to fill first: what divides the contenders, on queries of which little is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.decision import order_holes

TOPS = {
    "a": {"q1": ["j", "all", "half"], "q2": ["half2"]},
    "b": {"q1": ["j", "all", "half"], "q2": ["x"]},
    "c": {"q1": ["j", "all", "one"], "q2": ["half2"]},
    "d": {"q1": ["j", "all"], "q2": ["x"]},
}
JUDGED = {"q1": {"j"}, "q2": {"x"}}


def found(holes):
    return [(hole.query, hole.doc_id) for hole in holes]


def test_what_divides_the_contenders_comes_first():
    holes = order_holes(TOPS, JUDGED, {"q1": 1})
    assert found(holes) == [("q2", "half2"), ("q1", "half"), ("q1", "one"), ("q1", "all")]
    by_id = {hole.doc_id: hole for hole in holes}
    assert (by_id["half"].systems, by_id["half"].divides) == (2, 0.5)
    assert by_id["one"].divides == 2 * 0.25 * 0.75 and by_id["all"].worth == 0
    assert by_id["half"].worth == 0.25, "with it, two useful passages would be known"
    assert by_id["half2"].worth == 0.5


def test_a_top_holds_no_more_useful_passages_than_it_is_long():
    few, many = (order_holes(TOPS, JUDGED, {"q1": known}) for known in (2, 50))
    assert few == many


def test_only_those_that_may_win_count():
    holes = order_holes(TOPS, JUDGED, {}, {"a": 0.6, "b": 0.4})
    assert found(holes)[0] == ("q2", "half2") and holes[0].divides == pytest.approx(0.48)
    assert {hole.doc_id: hole.worth for hole in holes}["half"] == 0, "both have it"


def test_a_query_without_judgments_has_no_holes():
    assert {hole.query for hole in order_holes(TOPS, {"q1": []}, {})} == {"q1"}
    assert order_holes({}, JUDGED, {}) == ()


lists = st.dictionaries(st.sampled_from(["q1", "q2"]), st.lists(st.sampled_from("uvwxyz"), max_size=4))


@given(st.dictionaries(st.sampled_from("abc"), lists))
def test_each_hole_stands_once_and_none_is_judged(tops):
    judged = {"q1": {"u", "v"}, "q2": set()}
    holes = order_holes(tops, judged, {})
    shown = {(query, doc_id) for by_query in tops.values() for query, ids in by_query.items() for doc_id in ids}
    assert sorted(found(holes)) == sorted(each for each in shown if each[1] not in judged[each[0]])
    assert all(0 <= hole.divides <= 0.5 for hole in holes)


def test_weights_are_numbers_from_zero_up():
    with pytest.raises(ValueError, match="from 0 up"):
        order_holes(TOPS, JUDGED, {}, {"a": -1})
    with pytest.raises(ValueError, match="no system weighs anything"):
        order_holes(TOPS, JUDGED, {}, {"e": 1})
