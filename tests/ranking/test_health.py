import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from raggs.ranking.health import JudgeHealth, Share, judge_health
from raggs.seeds import generator


@given(total=st.integers(1, 500), data=st.data())
def test_intervals_are_wilsons(total, data):
    count = data.draw(st.integers(0, total))
    share = Share(count, total)
    expected = binomtest(count, total).proportion_ci(0.95, method="wilson")
    assert (share.low, share.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert share.low <= share.rate <= share.high


def test_nothing_seen_says_nothing():
    assert judge_health([]) == JudgeHealth(Share(0, 0), Share(0, 0), None, Share(0, 0), Share(0, 0))
    nothing = Share(0, 0)
    assert (nothing.rate, nothing.low, nothing.high) == (None, 0, 1)


def test_missing_answers_are_counted_and_nothing_else():
    health = judge_health([("ab", "ba"), ("abc", None), ("cd", None)])
    assert health.invalid == Share(2, 3) and health.first_wins == Share(0, 1)


def test_a_judge_that_repeats_the_presentation():
    rng = generator(1, "health")
    batches = [tuple(rng.permutation(list("abcdefghij"))[:5].tolist()) for _ in range(40)]
    health = judge_health([(batch, batch) for batch in batches])
    assert health.first_wins == Share(40, 40) and health.fair_first == pytest.approx(0.2)
    assert health.first_wins.low > 0.9
    assert health.cycles.count > 10


def test_a_single_passage_is_no_choice():
    assert judge_health([("a", "a")]).first_wins == Share(0, 0)


def test_flips_are_counted_in_pairs_against_the_answer_before():
    health = judge_health([("abc", "abc"), ("cab", "bac"), ("bca", "bac"), ("abd", "dba")])
    assert health.flips == Share(1, 6)


def test_a_circle_needs_three_batches():
    health = judge_health([("ab", "ab"), ("bc", "bc"), ("ca", "ca"), ("abd", "abd")])
    assert health.cycles == Share(1, 2)
    assert judge_health([("ab", "ab"), ("bc", "bc")]).cycles == Share(0, 0)


def test_a_tie_decides_no_pair():
    assert judge_health([("abc", "abc"), ("ab", "ba")]).cycles == Share(0, 0)


@given(st.lists(st.permutations("abcdef").map(lambda order: order[:3]), max_size=25))
def test_circles_against_brute_force(orders):
    wins = dict.fromkeys(itertools.permutations("abcdef", 2), 0)
    for order in orders:
        for pair in itertools.combinations(order, 2):
            wins[pair] += 1
    beats = {(a, b) for a, b in wins if wins[a, b] > wins[b, a]}
    decided = circles = 0
    for a, b, c in itertools.combinations("abcdef", 3):
        edges = [pair for pair in itertools.permutations((a, b, c), 2) if pair in beats]
        decided += len(edges) == 3
        circles += len(edges) == 3 and len({winner for winner, _ in edges}) == 3
    assert judge_health([(order, order) for order in orders]).cycles == Share(circles, decided)


@pytest.mark.parametrize("order", ["ab", "abb", "abd", "aabc"])
def test_answers_must_fit_what_was_shown(order):
    with pytest.raises(ValueError, match="not a permutation of what was shown"):
        judge_health([("abc", order)])
