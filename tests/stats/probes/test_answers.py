"""delta from answers: the paper's own figures give the paper's delta."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.stats.index_loss import RecallBin, accuracy_by_recall, choose_delta

PAPER = {0.1: 0.40, 0.2: 0.70, 0.4: 0.91, 0.7: 0.97, 1.0: 1.0}


def answers(ratios: dict[float, float], each: int = 100) -> tuple[RecallBin, ...]:
    recall = np.repeat(list(ratios), each)
    correct = np.concatenate([np.arange(each) < round(ratio * each) for ratio in ratios.values()])
    return accuracy_by_recall(recall, correct, np.ones(len(recall), dtype=bool), seed=1)


def test_the_papers_figures_give_its_delta() -> None:
    bins = answers(PAPER)
    assert [each.recall for each in bins] == list(PAPER)
    assert choose_delta(bins) == 0.2
    assert choose_delta(bins, near=0.9) == 0.4
    assert all(each.ratio.low <= each.ratio.mean <= each.ratio.high for each in bins)


def test_hard_questions_are_not_held_against_the_index() -> None:
    recall, exact = np.array([0.3] * 20 + [1.0] * 20), np.array([True] * 10 + [False] * 10 + [True] * 20)
    bins = accuracy_by_recall(recall, exact, exact, seed=1)  # wrong only where the exact search was wrong, too
    assert [each.ratio.mean for each in bins] == [1, 1]
    assert bins[0].accuracy == bins[0].exact == 0.5


def test_what_too_few_answers_say_is_not_believed() -> None:
    assert choose_delta(answers(PAPER, each=9)) is None
    assert choose_delta(answers({0.2: 0.9, 0.5: 0.3, 0.9: 1.0})) == 0.9  # a dip above: no delta below it holds
    assert choose_delta(answers({0.5: 0.3})) is None
    assert choose_delta(answers({0.0: 1.0, 0.5: 1.0})) == 0.5  # a delta of 0 asks nothing


def test_where_the_exact_search_is_never_right_there_is_no_ratio() -> None:
    bins = accuracy_by_recall(np.full(12, 0.5), np.ones(12, bool), np.zeros(12, bool), seed=1)
    assert math.isnan(bins[0].ratio.mean)
    assert choose_delta(bins) is None
    with pytest.raises(ValueError, match="one value per answer"):
        accuracy_by_recall(np.zeros(2), np.ones(1, bool), np.ones(2, bool), seed=1)


def test_tenths_are_not_lost_to_rounding() -> None:
    recall = np.array([3 / 10, 0.7, 29 / 100, 1.0])
    bins = accuracy_by_recall(recall, np.ones(4, bool), np.ones(4, bool), seed=1)
    assert [each.recall for each in bins] == [0.2, 0.3, 0.7, 1.0]
