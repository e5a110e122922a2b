import itertools
import math
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds import make_world, play, tau

from raggs.ranking import make_ranker
from raggs.ranking.online import OnlineRanker


def online(ids, grades, **options) -> OnlineRanker:
    ranker = make_ranker("online", ids, grades, **options)
    assert isinstance(ranker, OnlineRanker)
    return ranker


def names(size: int) -> list[str]:
    return [f"d{number:02d}" for number in range(size)]


def locked(ranker) -> list[tuple[str, str]]:
    return [(lock.winner, lock.loser) for lock in ranker.ranking().locks]


def show(ranker, *order: str) -> None:
    """Feed an order as if the ranker had asked for it."""
    ranker.calls += 1
    numbers = np.array([ranker.ids.index(name) for name in order])
    ranker._learn(numbers, numbers)


# --- the update -----------------------------------------------------------------------------------------------


def test_one_call_by_hand():
    ranker = online(["a", "b", "c"], [3, 3, 3], eta=0.1, max_calls=1)
    show(ranker, "b", "c", "a")
    # Stages: p = 1/3 each, then 1/2 each, then 1. Gradients: b 1 - 1/3, c 1 - 1/3 - 1/2, a -1/3 - 1/2.
    np.testing.assert_allclose(ranker.scores, [3 - 0.1 * 5 / 6, 3 + 0.1 * 2 / 3, 3 + 0.1 / 6])
    np.testing.assert_allclose(ranker.info, np.array([2 / 9 + 1 / 4, 2 / 9, 2 / 9 + 1 / 4]) + 0.01)
    np.testing.assert_allclose(ranker.sigma, 1 / np.sqrt(ranker.info))


def test_steps_are_clipped_and_decay():
    ranker = online(["a", "b"], [3, 3], eta=5, clip=0.2)
    show(ranker, "a", "b")
    np.testing.assert_allclose(ranker.scores, [3.2, 2.8])
    slow = online(["a", "b"], [3, 3], eta=0.1)
    slow.calls = 99
    show(slow, "a", "b")
    np.testing.assert_allclose(slow.scores, [3 + 0.1 / 10 / 2, 3 - 0.1 / 10 / 2])


def test_the_mean_stays_that_of_the_grades():
    world = make_world(2)
    ranker = online(world.ids, list(world.grades.values()), max_calls=40)
    play(ranker, world.judge(1.5))
    assert ranker.scores.mean() == pytest.approx(np.mean(list(world.grades.values())))


def test_ungraded_passages_start_at_the_mean_of_the_others():
    np.testing.assert_allclose(online(["a", "b", "c"], [5, None, 2]).scores, [5, 3.5, 2])
    np.testing.assert_allclose(online(["a", "b"], [math.nan, None]).scores, [3, 3])


@given(st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_in_a_world_of_two_each_win_widens_the_gap(first, second, upwards):
    ranker = online(["a", "b"], [first, second])
    order, sign = (("a", "b"), 1) if upwards else (("b", "a"), -1)
    gaps = [sign * (ranker.scores[0] - ranker.scores[1])]
    for _ in range(2):
        show(ranker, *order)
        gaps.append(sign * (ranker.scores[0] - ranker.scores[1]))
    assert gaps[0] < gaps[1] < gaps[2]


# --- locks ----------------------------------------------------------------------------------------------------


def test_a_second_confirmation_locks_a_pair():
    ranker = online(["a", "b", "c"], [3, 3, 3], z=100)
    show(ranker, "a", "b")
    assert locked(ranker) == []
    show(ranker, "a", "b")
    assert locked(ranker) == [("a", "b")]
    (lock,) = ranker.ranking().locks
    assert (lock.evidence, lock.call) == (2, 2)
    assert lock.z == pytest.approx((ranker.scores[0] - ranker.scores[1]) / math.hypot(*ranker.sigma[:2]))


def test_defeats_take_confirmations_back():
    ranker = online(["a", "b"], [3, 3], z=100)
    for order in ("ab", "ba", "ab"):
        show(ranker, *order)
    assert locked(ranker) == []
    show(ranker, *"ab")
    assert locked(ranker) == [("a", "b")]


def test_a_clear_margin_locks_at_once():
    ranker = online(["a", "b"], [5, 1], z=1, confirmations=100)
    show(ranker, "a", "b")
    assert locked(ranker) == []  # sigma is still above 7: p (1 - p) says little about so clear a pair
    even = online(["a", "b"], [4, 2.5], z=0.2, confirmations=100)
    show(even, "a", "b")
    gap, bounds = even.scores[0] - even.scores[1], 0.2 * even.sigma.sum()
    assert (gap > bounds) == (locked(even) == [("a", "b")]) and gap > bounds


def test_implied_pairs_are_not_locked_and_contrary_ones_refused():
    ranker = online(["a", "b", "c"], [3, 3, 3], z=100)
    for order in ("ab", "ab", "bc", "bc", "ac", "ac", "ca", "ca", "ca", "ca", "ca"):
        show(ranker, *order)
    assert locked(ranker) == [("a", "b"), ("b", "c")]
    assert ranker.ranking().order == ("a", "b", "c")


@pytest.mark.parametrize(("middles", "expected"), [("b", False), ("bc", True)])
def test_two_disjoint_paths_and_a_clear_margin_make_an_implied_pair_explicit(middles, expected):
    ranker = online(["a", "b", "c", "d"], [4.5, 3, 3, 1.5], z=100)
    for middle in middles:
        for _ in range(2):
            show(ranker, "a", middle)
            show(ranker, middle, "d")
    ranker.z = 0.5
    show(ranker, "a", "d")
    assert (("a", "d") in locked(ranker)) == expected


@given(st.randoms(use_true_random=False), st.integers(2, 9), st.integers(2, 6))
def test_adversarial_orders_never_break_the_dag(chance, size, batch_size):
    ranker = online(names(size), [3] * size, batch_size=batch_size, max_calls=25, stability=1000)
    while not ranker.done:
        for batch in ranker.next_batches(3):
            ranker.observe(chance.sample(batch, k=len(batch)))
            ranking = ranker.ranking()
            graph = nx.DiGraph([(lock.winner, lock.loser) for lock in ranking.locks])
            assert nx.is_directed_acyclic_graph(graph)
            place = {name: position for position, name in enumerate(ranking.order)}
            assert all(place[lock.winner] < place[lock.loser] for lock in ranking.locks)
            assert sorted(ranking.order) == names(size)


# --- sampling and stopping ------------------------------------------------------------------------------------


def test_rarely_shown_passages_come_first():
    world = make_world(1)
    ranker = online(world.ids, list(world.grades.values()), max_calls=24)
    ranking = play(ranker, world.judge(3))
    assert min(ranking.exposures) >= 1 and max(ranking.exposures) <= 6
    assert sum(ranking.exposures) == 24 * 5


def test_a_round_spreads_over_the_pool():
    rounds = [online(names(40), [3] * 40, seed=seed).next_batches(8) for seed in range(20)]
    seen = [len({name for batch in batches for name in batch}) for batches in rounds]
    assert np.mean(seen) > 28.5  # independent batches would see 26.3 of 40


def test_an_unchanged_top_ends_it():
    world = make_world(6)
    ranker = online(world.ids, list(world.grades.values()), top=10, stability=6, max_calls=500)
    judge, tops = world.judge(3), [ranker.ranking().order[:10]]
    while not ranker.done:
        (batch,) = ranker.next_batches(1)
        ranker.observe(judge(batch))
        tops.append(ranker.ranking().order[:10])
    assert ranker.ranking().stop_reason == "stable"
    runs = [len(list(group)) - 1 for _, group in itertools.groupby(tops)]
    assert runs[-1] == 6 and max(runs[:-1]) < 6


def test_the_tail_may_still_move_when_the_top_is_stable():
    ranker = online(names(8), [5, 4, 2, 2, 2, 2, 2, 2], top=1, stability=3, max_calls=500, batch_size=3)
    ranking = play(ranker, lambda batch: sorted(batch)[:1] + sorted(batch)[:0:-1], parallel=1)
    assert ranking.stop_reason == "stable" and ranking.order[0] == "d00"


# --- odd pools and odd judges ---------------------------------------------------------------------------------


def reversed_half_of_the_time():
    chance = random.Random(3)
    return lambda batch: sorted(batch, reverse=chance.random() < 0.5)


JUDGES = {"position": lambda: list, "contradictory": reversed_half_of_the_time, "sharp": lambda: sorted}


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize("judge", sorted(JUDGES))
@pytest.mark.parametrize("size", [2, 3, 5, 12, 60])
@pytest.mark.parametrize("grade", [None, 4])
def test_numbers_are_finite_and_it_stops(judge, size, grade):
    ranking = play(online(names(size), [grade] * size, max_calls=60), JUDGES[judge]())
    assert ranking.stop_reason in {"stable", "cap", "every presentation was shown"}
    assert ranking.calls <= 60
    columns = (ranking.scores, ranking.sigma, ranking.position_confidence, ranking.membership)
    assert np.isfinite(np.array(columns)).all() and math.isfinite(ranking.expected_inversions)
    assert min(ranking.sigma) > 0
    assert all(0 <= p <= 1 for p in ranking.position_confidence + ranking.membership)
    assert sum(ranking.membership) == pytest.approx(min(20, size))


def test_a_sharp_judge_is_believed():
    ranking = play(online(names(12), [3] * 12, max_calls=300), sorted)
    assert list(ranking.order) == names(12)


def test_columns_are_aligned_with_the_order():
    ranker = online(["a", "b", "c"], [1, 5, 3])
    show(ranker, "b", "c")
    ranking = ranker.ranking()
    assert ranking.order == ("b", "c", "a")
    assert ranking.exposures == (1, 1, 0)
    assert ranking.sigma[2] == 10 and ranking.scores[0] > ranking.scores[1] > ranking.scores[2]
    assert ranking.sharpness is None and ranking.released == ()


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ({"eta": 0}, "eta must be"),
        ({"eta": math.inf}, "eta must be"),
        ({"clip": -1}, "clip must be"),
        ({"z": math.nan}, "z must be"),
        ({"confirmations": 0}, "confirmations must be at least 1"),
        ({"stability": 0}, "stability must be at least 1"),
    ],
)
def test_bad_options_are_refused(option, complaint):
    with pytest.raises(ValueError, match=complaint):
        online(["a", "b"], [1, 2], **option)


# --- quality --------------------------------------------------------------------------------------------------


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(("beta", "low", "high"), [(1.5, 0.62, 0.74), (3, 0.74, 0.85)])
def test_it_beats_the_grades_as_the_published_algorithm_does(beta, low, high):
    """The reference implementation reaches tau .66 and .79 at its own stop (about 140 calls) on pools of 40."""
    by_grades, by_judge, calls, wrong = [], [], [], []
    for seed in range(8):
        world = make_world(seed)
        grades = list(world.grades.values())
        by_grades.append(tau(online(world.ids, grades, max_calls=0).ranking().order, world.truth))
        ranking = play(online(world.ids, grades, seed=seed, max_calls=400), world.judge(beta, seed))
        assert ranking.stop_reason == "stable"
        by_judge.append(tau(ranking.order, world.truth))
        calls.append(ranking.calls)
        wrong += [world.utility[lock.winner] < world.utility[lock.loser] for lock in ranking.locks]
    assert np.mean(by_judge) > np.mean(by_grades) + 0.1
    assert low < np.mean(by_judge) < high
    assert 100 < np.mean(calls) < 220
    assert 0 < np.mean(wrong) < 0.13  # the known weakness: confirmations lock by luck


def test_more_calls_are_better_on_average():
    means = []
    for cap in (0, 20, 80):
        worlds = [make_world(seed) for seed in range(8)]
        rankings = [play(online(w.ids, list(w.grades.values()), max_calls=cap), w.judge(3)) for w in worlds]
        means.append(np.mean([tau(r.order, w.truth) for r, w in zip(rankings, worlds, strict=True)]))
    assert all(less < more for less, more in itertools.pairwise(means))
