"""What a judge may be used for: yes, no, or how many judgments more would tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raggs.stats.agreement import AgreementEstimate, JudgeHumanAgreement, check_labels
from raggs.stats.judge_agreement import judge_validity

PLAIN = check_labels([1, 2, 3, 4, 5] * 20, [1, 2, 3, 4, 5] * 20, [str(number % 25) for number in range(100)], seed=1)


def checked(
    kappa: tuple[float, float, float], bias: tuple[float, float, float] = (0.0, -0.1, 0.1)
) -> JudgeHumanAgreement:
    return replace(PLAIN, kappa=AgreementEstimate(*kappa), bias=AgreementEstimate(*bias))


@pytest.mark.parametrize(
    ("kappa", "bias", "answers"),
    [
        ((0.8, 0.7, 0.9), (0.0, -0.1, 0.1), ["yes", "yes"]),
        ((0.8, 0.7, 0.9), (0.5, 0.4, 0.6), ["yes", "no"]),
        ((0.8, 0.7, 0.9), (-0.5, -0.6, -0.4), ["yes", "no"]),
        ((0.55, 0.45, 0.65), (0.0, -0.1, 0.1), ["yes", "not yet"]),
        ((0.5, 0.42, 0.58), (0.0, -0.1, 0.1), ["yes", "no"]),
        ((0.2, 0.1, 0.3), (0.0, -0.1, 0.1), ["no", "no"]),
        ((0.5, 0.3, 0.7), (0.0, -0.1, 0.1), ["not yet", "not yet"]),
    ],
)
def test_a_threshold_is_passed_by_the_whole_interval(
    kappa: tuple[float, float, float], bias: tuple[float, float, float], answers: list[str]
) -> None:
    assert [each.answer for each in judge_validity(checked(kappa, bias))] == answers


def test_how_many_more_follows_from_the_width() -> None:
    """The interval of 100 grades reaches 0.2 below 0.5 and may reach 0.1: four times as many grades are needed."""
    comparing, absolute = judge_validity(checked((0.5, 0.3, 0.7)))
    assert comparing.more == 300
    assert absolute.more is None, "more of the same would not lift the value above its threshold"


def test_the_wider_of_two_figures_decides_how_many() -> None:
    _, absolute = judge_validity(checked((0.8, 0.55, 0.95), (0.05, -0.25, 0.35)))
    assert absolute.answer == "not yet"
    assert absolute.more == 125  # of the bias: 0.3 wide, 0.2 allowed; kappa alone would need 57 more


def test_too_few_grades() -> None:
    few = check_labels([1, 2], [1, 2], ["a", "b"], seed=1)
    assert [(each.answer, each.more) for each in judge_validity(few)] == [("not yet", 18), ("not yet", 18)]
    assert "20 grades of 5 questions" in judge_validity(few)[0].rule


def test_what_is_not_defined_is_not_yet_known() -> None:
    alike = check_labels([5] * 30, [5] * 30, [str(number) for number in range(30)], seed=1)
    assert [each.answer for each in judge_validity(alike)] == ["not yet", "not yet"]


def test_many_grades_of_few_questions_need_other_questions() -> None:
    few = check_labels([1, 2, 3] * 10, [1, 2, 3] * 10, ["a", "b", "c"] * 10, seed=1)
    assert [(each.answer, each.more) for each in judge_validity(few)] == [("not yet", 2), ("not yet", 2)]
