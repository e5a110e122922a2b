"""Passages that are graded together: in which company, in which order, and how deep a walk by groups goes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.pooled import NUGGETS, judged, pool

from raggs.base.settings import causes_of
from raggs.stages.judge import JudgeConfig, groups, round_up_to_groups


@given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 3))
def test_each_passage_is_in_one_group_and_groups_are_few_and_even(count: int, size: int, sample: int) -> None:
    found = groups("q", 0, count, size, sample)
    assert sorted(place for group in found for place in group) == list(range(count))
    assert len(found) == -(-count // size)
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert found == groups("q", 0, count, size, sample)


def test_company_and_place_are_others_in_each_sample_and_no_rank_keeps_to_its_like() -> None:
    places, company = Counter[int](), Counter[tuple[int, int]]()
    for number in range(200):
        for sample in range(3):
            for group in groups(f"q{number}", 0, 20, 5, sample):
                places[group.index(0) if 0 in group else -1] += 1
                company.update(combinations(sorted(group), 2))
    assert all(80 < places[place] < 160 for place in range(5)), "passage 0 stands in each place as often"
    assert all(80 < company[pair] < 180 for pair in combinations(range(20), 2)), "4 of 19 others are beside it"


def test_a_judge_sees_groups_of_another_mixture_in_each_sample_and_grades_come_back_to_their_passages() -> None:
    texts = [str(place % 5 + 1) for place in range(12)]
    alone, _, _ = judged([pool("q1", texts, [0] * 12)], samples=3)
    found, who, _ = judged([pool("q1", texts, [0] * 12)], samples=3, group=5)
    assert found == alone
    assert [len(shown) for _, shown in who.together] == [4] * 9
    by_sample = [{frozenset(shown) for number, shown in who.together if number == sample} for sample in range(3)]
    assert by_sample[0] != by_sample[1] != by_sample[2]


def test_a_walk_goes_on_by_whole_groups_and_ends_with_one() -> None:
    grades = ["5", "1", "5", "1", "1", "1", "5", "1", "1", "1", "1", "1", "1", "1", "1", "1"]
    found, who, health = judged([pool("q1", grades, [0] * 16)], stop_after=4, group=3)
    assert [sorted(int(name[1:]) for name in shown) for _, shown in who.together[2:]] == [[6, 7, 8], [9, 10, 11]]
    assert [len(shown) for _, shown in who.together] == [3, 3, 3, 3]
    assert sum(record.skipped is not None for record in found) == health.depth.saved == 4
    assert round_up_to_groups(4, 3) == 6 and round_up_to_groups(3, 3) == 3


def test_each_alone_is_what_it_was_and_counts_as_if_the_setting_were_not_there() -> None:
    _, who, _ = judged([pool("q1", ["1"] * 6, [0] * 6)], group=1)
    assert who.together == []
    assert "group" not in causes_of(JudgeConfig(judge=NUGGETS))
    assert causes_of(JudgeConfig(judge=NUGGETS, group=5))["group"] == 5


def test_ones_own_rubric_is_not_left_out_unsaid() -> None:
    with pytest.raises(ValidationError, match="Set group_prompt too"):
        JudgeConfig(judge=NUGGETS, group=5, prompt="mine.md")
    JudgeConfig(judge=NUGGETS, group=5, prompt="mine.md", group_prompt="ours.md")
