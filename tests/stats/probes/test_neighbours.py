"""What an index kept of the truth: against figures by hand, and against a plain reading of the formulas."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.metrics.bottleneck import recall_profile
from raggs.stats.index_loss import kept_values, robustness, truth_positions


def test_figures_by_hand() -> None:
    truth = np.array([[7, 3, 9, 1], [5, 6, 7, 8], [1, 2, 3, 4]])
    found = np.array([[3, 0, 7, 2], [-1, -1, -1, -1], [1, 2, 3, 4]])
    values, ideal = kept_values(found, truth), sum(1 / log2(place + 1) for place in (1, 2, 3, 4))
    np.testing.assert_allclose(values.recall, [0.5, 0, 1])
    np.testing.assert_allclose(values.ap, [(1 + 2 / 3) / 4, 0, 1])
    np.testing.assert_allclose(values.rr, [1, 0, 1])
    np.testing.assert_allclose(values.ndcg, [(1 / log2(3) + 1) / ideal, 0, 1])  # 3 stands second in the truth, 7 first
    assert truth_positions(found, truth)[0].tolist() == [1, -1, 0, -1]


def test_the_discount_is_that_of_the_truth_and_not_of_the_list() -> None:
    truth = np.arange(10)[None]
    ahead, behind = np.array([[0, 1, 2, 90, 91]]), np.array([[90, 91, 2, 1, 0]])
    assert kept_values(ahead, truth).ndcg == pytest.approx(kept_values(behind, truth).ndcg)
    assert kept_values(np.array([[0]]), truth).ndcg > kept_values(np.array([[9]]), truth).ndcg
    assert kept_values(ahead, truth).recall == [0.3]  # by K, although five were returned


def test_more_than_k_are_cut_and_less_than_the_truth_is_refused() -> None:
    assert kept_values(np.array([[5, 1, 2]]), np.array([[1, 2]])).recall == [0.5]
    with pytest.raises(ValueError, match="complete truth list"):
        kept_values(np.array([[1, 2]]), np.array([[1, -1]]))
    with pytest.raises(ValueError, match="2 lists for 1 truth lists"):
        kept_values(np.array([[1], [2]]), np.array([[1]]))


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_against_a_plain_reading(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.array([rng.permutation(20)[:k] for _ in range(4)])
    found = np.array([rng.permutation(20)[:k] for _ in range(4)])
    values, ideal = kept_values(found, truth), sum(1 / log2(place + 2) for place in range(k))
    for row, (mine, exact) in enumerate(zip(found.tolist(), truth.tolist(), strict=True)):
        hits = [rank for rank, each in enumerate(mine, 1) if each in exact]
        assert values.recall[row] == pytest.approx(len(set(mine) & set(exact)) / k)
        assert values.ap[row] == pytest.approx(sum(n / rank for n, rank in enumerate(hits, 1)) / k)
        assert values.rr[row] == pytest.approx(1 / hits[0] if hits else 0)
        gain = sum(1 / log2(exact.index(each) + 2) for each in mine if each in exact)
        assert values.ndcg[row] == pytest.approx(gain / ideal)
    shares = recall_profile(values.recall).shares
    assert all(values.reached(delta).mean() == share for delta, share in shares.items())
    assert list(values.measures([0.3, 0.9]))[-2:] == [robustness(0.3), robustness(0.9)] == ["r0.3", "r0.9"]
