"""Each signal against its formula, and what cannot be read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.search_depth import agreement, entropy, fired_signals, head_margin, rewrite_distance, tail_margin

LIST = [1.0 - 0.01 * rank for rank in range(50)]
finite = st.floats(-1e6, 1e6)


def test_margins_are_read_at_their_ranks() -> None:
    assert head_margin(LIST) == pytest.approx(0.09)
    assert tail_margin(LIST, 50) == pytest.approx(0.40)
    assert tail_margin(LIST, 20) == pytest.approx(0.10)
    assert head_margin(LIST[:9]) is None
    assert tail_margin(LIST[:49], 50) is None  # there is nothing below it, so nothing to be had
    assert tail_margin(LIST, 10) is None


@given(st.lists(finite, min_size=2, max_size=60), finite)
def test_entropy_is_a_share_that_a_shift_of_all_scores_leaves_alone(scores: list[float], shift: float) -> None:
    found = entropy(scores)
    assert found is not None and 0 <= found <= 1
    assert entropy([score + shift for score in scores]) == pytest.approx(found, abs=1e-6)


def test_entropy_is_1_for_equals_0_for_a_winner_and_none_for_one() -> None:
    assert entropy([0.3] * 50) == 1
    assert entropy([100.0, *[0.0] * 49]) == pytest.approx(0, abs=1e-12)
    assert entropy([math.log(3), 0.0]) == pytest.approx((0.75 * math.log(4 / 3) + 0.25 * math.log(4)) / math.log(2))
    assert entropy([1.0]) is None


def test_a_rewrite_is_as_far_as_its_cosine_says() -> None:
    assert rewrite_distance([1, 0], [2, 0]) == pytest.approx(0)
    assert rewrite_distance([1, 0], [0, 3]) == pytest.approx(1)
    assert rewrite_distance([1, 0], [-1, 0]) == pytest.approx(2)
    assert rewrite_distance([0, 0], [1, 0]) is None


def test_lists_agree_wholly_not_at_all_or_cannot_be_compared() -> None:
    assert agreement(["a", "b"], ["a", "b"]) == pytest.approx(1)
    assert agreement(["a", "b"], ["c", "d"]) == 0
    assert agreement([], ["c"]) is None


def test_small_margins_and_high_entropy_fire_at_their_threshold_and_what_cannot_be_read_never_does() -> None:
    when = {"head_margin": 0.05, "entropy": 0.9, "name": 1.0}
    assert fired_signals({"head_margin": 0.05, "entropy": 0.9, "name": 1.0}, when) == ("head_margin", "entropy", "name")
    assert fired_signals({"head_margin": 0.06, "entropy": 0.89, "name": 0.0}, when) == ()
    assert fired_signals({"head_margin": None}, when) == ()
    assert fired_signals({"agreement": 0.0}, when) == ()
    with pytest.raises(ValueError, match="unknown signal 'noise'"):
        fired_signals({}, {"noise": 1.0})
