"""Forecasts of calls that depend on missing answers: further samples of uncertain grades."""

from __future__ import annotations

from typing import Any

import pytest

from raggs.base.artifacts import JudgeRecord
from raggs.runs.forecast import MissingGrades, sampled_again
from raggs.runs.manifests.models import CostEstimate


def line(**fields: Any) -> CostEstimate:
    found = {"stage": "judge", "calls": 200, "input_tokens": 1, "output_tokens": 1, "usd": 2.0, "likely_usd": 1.0}
    return CostEstimate.model_validate({**found, "exact": False, "who": "openai/x", **fields})


def graded(*grades: int | None, twin: bool = False) -> JudgeRecord:
    fields = {"qid": "q", "rank": 1, "doc_id": "d", "grade": None, "judge": "", "grades": grades}
    return JudgeRecord.model_validate({**fields, "duplicate_of": "e" if twin else None})


def test_only_samples_after_a_missing_first_grade_are_doubtful() -> None:
    found = MissingGrades()
    assert found.doubtful(3) == 0
    found.see([graded(None, None, None), graded(4, None, None), graded(2), graded(None, None, None, twin=True)])
    assert (found.passages, found.grades, found.doubtful(3)) == (1, 5, 2 / 5)


def test_minimum_and_expected_calls_count_the_further_samples() -> None:
    first = sampled_again(line(), 0.5, None)
    assert (first.least, first.expected, first.likely_usd, first.again) == (100, None, 0.75, True)
    later = sampled_again(line(), 0.5, 0.2)
    assert (later.least, later.expected, later.likely_usd) == (100, 120, pytest.approx(0.6))
    for same in (sampled_again(line(), 0.0, 0.2), sampled_again(line(exact=True), 0.5, 0.2)):
        assert (same.least, same.expected, same.likely_usd, same.again) == (None, None, 1.0, False)


def test_the_good_judge_of_a_cascade_is_expected_less_often_in_further_samples() -> None:
    known = sampled_again(line(least=40, expected=80), 0.5, 0.2)
    assert (known.least, known.expected, known.again) == (20, 48, False)
    unknown = sampled_again(line(least=40), 0.5, 0.2)
    assert (unknown.least, unknown.expected, unknown.again) == (20, None, False)
