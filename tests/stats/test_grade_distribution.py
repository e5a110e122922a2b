"""Probabilities of grades: what is read from an answer, and how it is rounded."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from raggs.stats.grade_distribution import (
    UNITS,
    canonical,
    distribution_of_choices,
    distribution_of_levels,
    distribution_of_tokens,
    grade_named,
    mean_distribution,
    median_grade,
    option_shares,
)

shares = st.lists(st.floats(0, 1), min_size=5, max_size=5).filter(lambda found: sum(found) > 0.01)


def levels(found: list[float], **changes: Any) -> dict[str, Any]:
    items = [{"value": at, "label": str(at + 1), "probability": each} for at, each in enumerate(found)]
    return {"probabilities": [{**item, **changes} for item in items]}


@given(shares)
def test_canonical_shares_add_up_to_one_and_are_close(found: list[float]) -> None:
    rounded, whole = canonical(found), math.fsum(found)
    units = [round(each * UNITS) for each in rounded]
    assert sum(units) == UNITS
    assert rounded == tuple(round(each / UNITS, 4) for each in units)
    assert all(abs(each - one / whole) < 1.01 / UNITS for each, one in zip(rounded, found, strict=True))
    assert canonical(rounded) == rounded


@given(shares, st.integers(1, 1000))
def test_the_unit_of_the_shares_does_not_matter(found: list[float], factor: int) -> None:
    assume(all(each == 0 or each > 1e-3 for each in found))
    one, other = canonical(found), canonical([factor * each for each in found])
    assert all(abs(a - b) < 1.01 / UNITS for a, b in zip(one, other, strict=True))
    assert distribution_of_levels(levels(found)) == one


@given(shares)
def test_the_grade_is_the_lower_median(found: list[float]) -> None:
    rounded = canonical(found)
    units = [Fraction(round(each * UNITS), UNITS) for each in rounded]
    grade = median_grade(rounded)
    assert sum(units[:grade]) >= Fraction(1, 2)
    assert sum(units[: grade - 1]) < Fraction(1, 2)


def test_a_tie_of_two_grades_goes_down() -> None:
    assert median_grade(canonical([0, 0.5, 0, 0.5, 0])) == 2
    assert median_grade(canonical([0, 0.4999, 0.0001, 0.5, 0])) == 3


@given(st.lists(st.permutations([0.4, 0.3, 0.2, 0.1, 0.0]), min_size=1, max_size=4))
def test_the_mean_of_equal_distributions_is_that_distribution(found: list[list[float]]) -> None:
    each = [canonical(one) for one in found]
    assert mean_distribution([each[0]] * len(each)) == each[0]
    mean = mean_distribution(each)
    assert all(
        abs(value - sum(column) / len(each)) < 1.01 / UNITS
        for value, column in zip(mean, zip(*each, strict=True), strict=True)
    )


def test_weights_count() -> None:
    assert mean_distribution([(1.0, 0, 0, 0, 0), (0, 0, 0, 0, 1.0)], [3, 1]) == (0.75, 0, 0, 0, 0.25)


@pytest.mark.parametrize("name", ["3", " 3", "▁3", "Ġ3", "grade 3", "Grade: 3", '"3"', "3.", "note 3", "**3**", "(3)"])
def test_spellings_of_a_grade(name: str) -> None:
    assert grade_named(name) == 3


@pytest.mark.parametrize("name", ["", "0", "6", "33", "3.5", "-3", "three", "x3", "3/5", "3 or 4", "٣"])
def test_other_texts_name_no_grade(name: str) -> None:
    assert grade_named(name) is None


def test_missing_options_share_what_is_left_below_the_smallest_listed_one() -> None:
    assert option_shares([(4, 0.6), (3, 0.3)], closed=False) == pytest.approx((1 / 30, 1 / 30, 1 / 30, 0.3, 0.6))
    # 0.4 is left for three options, but each has at most 0.1
    found = option_shares([(4, 0.5), (3, 0.1)], closed=False)
    assert found == pytest.approx(tuple(each / 0.9 for each in (0.1, 0.1, 0.1, 0.1, 0.5)))
    # what is listed elsewhere is not left
    assert option_shares([(4, 0.6), (3, 0.1), (None, 0.3)], closed=False)[:3] == pytest.approx((0, 0, 0))


@given(st.lists(st.floats(0.02, 1), min_size=5, max_size=5), st.integers(1, 4))
def test_a_truncated_list_keeps_the_order_and_bounds_the_rest(found: list[float], kept: int) -> None:
    whole = [each / sum(found) for each in found]
    top = sorted(range(5), key=lambda at: -whole[at])[:kept]
    listed = [(at, whole[at]) for at in top]
    if sum(share for _, share in listed) < 0.5:
        with pytest.raises(ValueError, match="of the probability is on the options"):
            option_shares(listed, closed=False)
        return
    shown = option_shares(listed, closed=False)
    assert math.isclose(sum(shown), 1)
    least = min(shown[at] for at in top)
    assert all(shown[at] <= least + 1e-9 for at in range(5) if at not in top)
    assert all(shown[at] >= whole[at] - 1e-9 for at in top)


def test_spellings_of_one_grade_are_added() -> None:
    tokens = [[["3", math.log(0.4)], [" 3", math.log(0.2)], ["4", math.log(0.4)]]]
    assert distribution_of_tokens(tokens) == (0, 0, 0.6, 0.4, 0)


def test_a_space_before_the_digit_is_no_grade() -> None:
    digit = [["2", math.log(0.9)], ["1", math.log(0.1)]]
    assert distribution_of_tokens([[[" ", -0.01]], digit]) == distribution_of_tokens([digit]) == (0.1, 0.9, 0, 0, 0)


def test_half_of_the_probability_must_be_on_grades() -> None:
    assert distribution_of_tokens([[["5", math.log(0.5)], ["The", math.log(0.5)]]]) == (0, 0, 0, 0, 1)
    with pytest.raises(ValueError, match="only 49% of the probability"):
        distribution_of_tokens([[["5", math.log(0.49)], ["The", math.log(0.51)]]])


@pytest.mark.parametrize("tokens", [None, [], [[]], [[["3"]]], "3", [[["3", "x"]]], [[[3, -0.1]]]])
def test_tokens_of_another_form_cannot_be_used(tokens: object) -> None:
    with pytest.raises(ValueError, match=r"log-prob|no option|of the probability"):
        distribution_of_tokens(tokens)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, True, "0.5", None, 10**400, -(10**400)])
def test_a_wrong_probability_makes_the_answer_unusable(bad: object) -> None:
    answer = levels([0.1, 0.2, 0.3, 0.2, 0.2])
    answer["probabilities"][1]["probability"] = bad
    with pytest.raises(ValueError, match="a probability is"):
        distribution_of_levels(answer)
    if bad not in (-0.1, -(10**400)):
        with pytest.raises(ValueError, match="a log-probability is"):
            distribution_of_tokens([[["3", -0.1], ["4", bad]]])


def test_a_label_decides_over_the_number_of_its_level() -> None:
    shown = [0.0, 0.1, 0.2, 0.3, 0.4]
    whole = tuple(shown)
    items = [{"label": str(at + 1), "value": 4 - at, "probability": each} for at, each in enumerate(shown)]
    assert distribution_of_levels({"probabilities": items}) == whole
    for value in (int, str, lambda at: f"grade {at + 1}", lambda at: at + 1):
        items = [{"value": value(at), "probability": each} for at, each in enumerate(shown)]
        assert distribution_of_levels({"probabilities": items}) == whole
    for names in ("12345", "01234"):
        assert distribution_of_levels({"probabilities": dict(zip(names, shown, strict=True))}) == whole
    described = [{"label": "best of all", "value": at, "probability": each} for at, each in enumerate(shown)]
    assert distribution_of_levels({"probabilities": described}) == whole


@pytest.mark.parametrize("answer", [{}, {"probabilities": []}, {"probabilities": "x"}, {"probabilities": [1, None]}])
def test_an_answer_without_probabilities_cannot_be_used(answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="probability"):
        distribution_of_levels(answer)


def test_choices_are_found_by_their_labels_in_any_order() -> None:
    items = [{"value": "B", "probability": 0.7}, {"value": " A", "probability": 0.2}]
    assert distribution_of_choices({"probabilities": items}, ["A", "B", "C"]) == (0.2, 0.7, 0.1)
    with pytest.raises(ValueError, match="only 0%"):
        distribution_of_choices({"probabilities": [{"value": "X", "probability": 1}]}, ["A", "B"])


values = st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.sampled_from(["3", "0", 4, "A"])


@given(st.lists(st.dictionaries(st.sampled_from(["value", "label", "probability"]), values)))
def test_any_list_is_a_distribution_or_a_value_error(items: list[dict[str, Any]]) -> None:
    try:
        found = distribution_of_levels({"probabilities": items})
    except ValueError:
        return
    assert sum(round(each * UNITS) for each in found) == UNITS and len(found) == 5
