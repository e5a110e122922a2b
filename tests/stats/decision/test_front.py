"""The front against its definition, for any systems, and against a published table."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.published import lite_candidates

from raggs.stats.front import JITTER_MS, Candidate, _dominated, _tabulate, find_front, may_replace
from raggs.stats.resampling import halve

FIVE = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.4])
systems = st.lists(
    st.builds(
        dict,
        usd_per_1k=st.one_of(st.none(), FIVE),
        latency_ms=st.one_of(st.none(), st.integers(0, 9).map(lambda step: 40.0 * step)),
        quality=st.tuples(FIVE, FIVE),
        k=st.sampled_from([50, 100]),
    ),
    max_size=9,
).map(lambda rows: [Candidate(f"s{place}", **row) for place, row in enumerate(rows)])
jitters = st.sampled_from([0.0, 75.0, 120.0])
shares = st.sampled_from([0.0, 0.3, 0.6])


def dominates(one, other, jitter_ms=JITTER_MS, cost_jitter=0.0):
    """Whether `one` is no worse in cost, latency and every quality, and better in something, whatever is unknown."""
    return bool(_dominated(_tabulate([one, other], jitter_ms, cost_jitter), 0)[1])


def system(name, usd, ms, *quality, k=50, tokens=500.0):
    return Candidate(name, usd, ms, quality, k, tokens)


@given(systems, jitters, shares)
def test_no_member_dominates_another_and_all_others_are_dominated_by_a_member(candidates, jitter, share):
    front = find_front(candidates, jitter, share)
    if front.left_out:
        return
    members = [each for each in candidates if each.name in front.names]
    assert not any(dominates(one, other, jitter, share) for one, other in permutations(members, 2))
    by_name = {each.name: each for each in candidates}
    assert {*front.names, *front.dominated} == by_name.keys() and not front.dominated.keys() & {*front.names}
    assert set(front.dominated.values()) <= {*front.names}
    assert all(dominates(by_name[by], by_name[name], jitter, share) for name, by in front.dominated.items())


@given(systems)
def test_without_jitter_the_front_is_whatever_nobody_dominates(candidates):
    front = find_front(candidates, 0)
    if front.left_out:
        return
    beaten = {other.name for one, other in permutations(candidates, 2) if dominates(one, other, 0)}
    assert {*front.names} == {each.name for each in candidates} - beaten


@given(systems, jitters, shares)
def test_dominance_has_no_circles(candidates, jitter, share):
    left = list(candidates)
    while left:
        top = [each for each in left if not any(dominates(other, each, jitter, share) for other in left)]
        assert top, "somebody is dominated by nobody"
        left = [each for each in left if each not in top]


@given(systems, jitters, shares, st.randoms())
def test_the_order_of_the_candidates_changes_nothing(candidates, jitter, share, random):
    shuffled = random.sample(candidates, len(candidates))
    assert find_front(shuffled, jitter, share) == find_front(candidates, jitter, share)


def test_a_system_that_is_cents_cheaper_and_worse_is_not_on_the_front():
    best, poor, cheap = system("best", 1.0, 100, 0.9), system("poor", 0.995, 100, 0.5), system("cheap", 0.5, 100, 0.4)
    assert find_front([best, poor, cheap]).names == ("best", "poor", "cheap")
    assert find_front([best, poor, cheap], cost_jitter=0.01).names == ("best", "cheap")
    as_good = system("as good", 1.005, 20, 0.9)
    assert find_front([best, as_good], cost_jitter=0.01).dominated == {"best": "as good"}, "faster by the jitter"
    with pytest.raises(ValueError, match="cost jitter"):
        find_front([best], cost_jitter=-0.1)


@given(systems, jitters)
def test_there_is_a_front_where_there_is_a_system(candidates, jitter):
    assert bool(find_front(candidates, jitter).names) == bool(candidates)


def test_a_system_is_not_lost_to_one_that_is_out_itself():
    """b is out by a, within the jitter; c is surely faster than a, and only b would dominate it."""
    candidates = [system("a", 1, 220, 0.7), system("b", 1, 160, 0.6), system("c", 1, 100, 0.5)]
    assert dominates(*candidates[:2]) and dominates(*candidates[1:]) and not dominates(candidates[0], candidates[2])
    front = find_front(candidates)
    assert front.names == ("a", "c") and front.dominated == {"b": "a"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (system("a", 1, 100, 0.5), system("b", 1, 100, 0.5), False),
        (system("a", 1, 100, 0.5), system("b", 1, 174, 0.5), False),
        (system("a", 1, 100, 0.5), system("b", 1, 175, 0.5), True),
        (system("a", 1, 174, 0.6), system("b", 1, 100, 0.5), True),
        (system("a", 1, 175, 0.6), system("b", 1, 100, 0.5), False),
        (system("a", 0.5, 100, 0.5), system("b", 1, 100, 0.5), True),
        (system("a", None, 100, 0.9), system("b", 1, 100, 0.5), False),
        (system("a", 1, 100, 0.9), system("b", None, 100, 0.5), False),
        (system("a", 0, 100, 0.9), system("b", None, 100, 0.5), True),
        (system("a", 1, None, 0.9), system("b", 1, 100, 0.5), False),
        (system("a", 1, 100, 0.9), system("b", 1, None, 0.5), False),
        (system("a", 1, 74, 0.9), system("b", 1, None, 0.5), True),
    ],
)
def test_who_dominates_whom(one, other, expected):
    assert dominates(one, other) is expected
    assert not dominates(other, one)


def test_what_is_known_of_nobody_is_not_compared():
    front = find_front([system("a", None, 100, 0.9), system("b", None, 100, 0.5)])
    assert front.names == ("a",) and front.left_out == ("cost",)
    assert find_front([system("a", None, None, 0.9), system("b", None, None, 0.5)]).left_out == ("cost", "latency")


@given(systems, jitters)
def test_whoever_dominates_may_replace(candidates, jitter):
    may = may_replace(candidates, jitter)
    assert may.shape == (len(candidates),) * 2
    for row, one in enumerate(candidates):
        for column, other in enumerate(candidates):
            if row != column and dominates(one, other, jitter):
                assert may[row, column]


def test_a_cheap_or_fast_system_outlives_a_better_one_early():
    candidates = [system("best", 3, 400, 1.0), system("cheap", 1, 400, 0.0), system("fast", 3, 100, 0.0)]
    candidates += [system("slow", 3, 470, 0.0), system("unpriced", None, 500, 0.0)]
    may = may_replace(candidates)
    assert may[0].tolist() == [True, False, False, True, False]
    assert may[3, 0], "70 ms more count as equal"
    values = [[1.0] * 30] + [[0.0] * 30] * 4
    done = halve([each.name for each in candidates], values, total=100, replaces=may)
    assert done.kept == ("best", "cheap", "fast", "unpriced")
    assert may_replace([system("a", None, None, 0.5), system("b", None, None, 0.6)]).all()


def test_a_system_over_the_latency_limit_replaces_none_within_it():
    """Also if it is slower by less than the jitter, or only its tail is over the limit."""
    candidates = [system("over", 1, 430, 1.0), system("within", 1, 390, 0.0), system("slow", 1, 480, 0.0)]
    assert may_replace(candidates)[0].all()
    assert may_replace(candidates, latency_limit_ms=400)[0].tolist() == [True, False, True]
    assert may_replace(candidates, latency_limit_ms=430)[0].all()
    tail = [replace(candidates[1], name="tail", tail_ms=500.0), candidates[1]]
    assert may_replace(tail).all()
    assert may_replace(tail, latency_limit_ms=400).tolist() == [[True, False], [True, True]]
    unknown = [system("known", 1, 430, 1.0), system("unknown", 1, None, 0.0)]
    assert not may_replace(unknown, 500.0, latency_limit_ms=400)[0, 1], "it may be within the limit"
    assert may_replace([system("a", 1, None, 1.0), system("b", 1, None, 0.0)], latency_limit_ms=400).all()


def test_the_front_of_the_published_lite_rows():
    front = find_front(lite_candidates(), jitter_ms=0)
    assert {*front.names} == {"voyage-3.5 512d K=50", "voyage-3-large 1024d K=150"}
    assert len(front.dominated) == 18


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quality": (math.nan,)}, "finite"),
        ({"quality": ()}, "finite"),
        ({"usd_per_1k": -1.0}, "cost must be .* got -1.0"),
        ({"latency_ms": math.inf}, "latency must be .* got inf"),
        ({"k": -1}, "k must be .* got -1"),
    ],
)
def test_impossible_numbers_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Candidate(**{"name": "a", "usd_per_1k": 1.0, "latency_ms": 1.0, "quality": (0.5,), "k": 50, **change})


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="two candidates have the name 'a'"):
        find_front([system("a", 1, 1, 0.5), system("a", 1, 1, 0.6)])
    with pytest.raises(ValueError, match="the same measures"):
        find_front([system("a", 1, 1, 0.5), system("b", 1, 1, 0.5, 0.6)])
    with pytest.raises(ValueError, match="jitter"):
        find_front([], jitter_ms=-1)
