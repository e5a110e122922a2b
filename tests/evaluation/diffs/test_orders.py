"""Orders that moved, and whether their stated doubt explains it."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.evaluation.diff_sets import RankedQuestion, order_move, orders_part

K = 10


def ranked(score: np.ndarray, sigma: float, names: list[str]) -> RankedQuestion:
    order = np.argsort(-score)
    return RankedQuestion(tuple(names[place] for place in order), score[order], np.full(len(order), sigma))


def moves(k: int, shuffle: bool) -> list:
    """200 pairs of orders of 30 passages, off the truth by the doubt that they state; or of unlike truths."""
    rng, names, found = np.random.default_rng(5), [f"d{number}" for number in range(30)], []
    for number in range(200):
        truth = rng.normal(size=30)
        other = rng.permutation(truth) if shuffle else truth
        sides = (ranked(each + rng.normal(size=30) * 0.3, 0.3, names) for each in (truth, other))
        found.append(order_move(*sides, k, name=f"q{number}", confidence=0.95, seed=1))
    return found


@pytest.mark.parametrize("k", [K, 40])
def test_what_the_stated_doubt_explains_is_rarely_called_beyond_it(k: int) -> None:
    part = orders_part(moves(k, shuffle=False), k, confidence=0.95)
    assert part is not None
    assert (part.compared, part.tested, part.by_chance) == (200, 200, pytest.approx(10))
    assert part.beyond <= 16  # 10 are expected at most; 3 standard errors are 9
    assert part.expected == pytest.approx(part.shared, abs=0.05)
    other = orders_part(moves(k, shuffle=True), k, confidence=0.95)
    assert other is not None and other.beyond >= 180


def test_means_are_of_the_measures_that_agreement_has() -> None:
    one = RankedQuestion(("a", "b", "c", "d"), np.array([4.0, 3, 2, 1]), np.full(4, 0.1))
    two = RankedQuestion(("b", "a", "x", "d"), np.array([4.0, 3, 2, 1]), np.full(4, 0.1))
    found = order_move(one, two, 2, name="q", confidence=0.95, seed=1)
    assert found.overlap == 1.0
    assert found.tau_ap == pytest.approx(2 / 2 * (0 / 1 + 2 / 2) - 1)  # b, a, d against a, b, d
    assert (found.shared, found.beyond) == (1.0, False)


def test_of_few_passages_the_upper_half_is_looked_at() -> None:
    names = [f"d{number}" for number in range(K)]
    sides = ranked(np.arange(K, 0, -1.0), 0.2, names), ranked(np.arange(K) * 1.0, 0.2, names)
    found = order_move(*sides, K, name="q", confidence=0.95, seed=1)
    assert (found.overlap, found.shared, found.beyond) == (1.0, 0.0, True)  # of ten, all are in the head of ten


@pytest.mark.parametrize(("sigma", "size"), [(0.0, 12), (0.3, 3)])
def test_without_stated_doubt_or_with_hardly_a_list_nothing_is_claimed(sigma: float, size: int) -> None:
    names = [f"d{number}" for number in range(size)]
    sides = ranked(np.arange(size, 0, -1.0), sigma, names), ranked(np.arange(size) * 1.0, sigma, names)
    found = order_move(*sides, K, name="q", confidence=0.95, seed=1)
    assert found.beyond is None
    part = orders_part([found], K, confidence=0.95)
    assert part is not None and (part.tested, part.expected, part.by_chance) == (0, None, 0)


def test_orders_that_share_nothing_have_no_correlation() -> None:
    one, two = (ranked(np.arange(4, 0, -1.0), 0.2, [f"{name}{number}" for number in range(4)]) for name in "ab")
    assert orders_part([order_move(one, two, K, name="q", confidence=0.95, seed=1)], K, confidence=0.95) is None
