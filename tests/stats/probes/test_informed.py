"""One order read with grades: a judge that guesses adds nothing to them, one that is sharp is believed."""

from __future__ import annotations

import numpy as np

from raggs.stats.judge_sharpness import ObservedOrder, disagreement, with_grades

SIZE = 30


def asked(utility: np.ndarray, sharpness: float, rng: np.random.Generator) -> ObservedOrder:
    return ObservedOrder(rng.permutation(SIZE), np.argsort(-(sharpness * utility + rng.gumbel(size=SIZE))))


def test_a_guess_leaves_the_grades_and_a_sharp_order_is_kept() -> None:
    rng = np.random.default_rng(1)
    grades = rng.integers(1, 6, SIZE).astype(float)
    utility = grades + rng.normal(0, 0.35, SIZE)
    truth = ObservedOrder(np.arange(SIZE), np.argsort(-utility))
    for _ in range(5):
        guess, sharp, blunt = (asked(utility, sharpness, rng) for sharpness in (0.0, 8.0, 1.5))
        assert disagreement(guess, truth) > 0.35
        assert disagreement(with_grades(guess, grades), truth) < 0.2
        assert disagreement(with_grades(sharp, grades), sharp) < 0.08
        assert disagreement(with_grades(blunt, grades), truth) < disagreement(blunt, truth)


def test_equal_grades_leave_the_order_as_it_is_and_one_passage_has_none() -> None:
    told = ObservedOrder.of("dcba", "badc")
    assert with_grades(told, np.full(4, 3.0)).order.tolist() == told.order.tolist()
    alone = ObservedOrder.of("a", "a")
    assert with_grades(alone, np.ones(1)) is alone
